"""Before a change goes to main: may its author make it, judging by the author's address?

On a verified main the controller checks signatures and the forge, never addresses: a doubt is a warning.
Otherwise only this command checks who changes what: a doubt is a refusal.

Held by tests/reconciler/cli/test_resubmitting.py and tests/reconciler/cli/test_rights.py.
"""

from __future__ import annotations

from reconciler.changes.reinstate import file_versions
from reconciler.model.evidence import Actor, Denial
from reconciler.queries.state import State
from reconciler.sources.source import Changes, Source
from reconciler.store.store_port import Person
from reconciler.trust.authority import Team, roll_of
from reconciler.trust.policy import Change, What, denial
from schemas.documents.approval import Approval
from schemas.documents.base import Document
from schemas.reading.reader import read_document


def is_verified(state: State) -> bool:
    """True if the controller judges who may change what on main."""
    return state.committed is not None and state.committed.trust is not None


def doubts(source: Source, state: State, base: str, changes: Changes, who: Person) -> tuple[Denial, ...]:
    """Why the author may not make the change, one reason per such file.

    On a verified main an unlisted address proves nothing: its key may be listed.
    """
    actor = _actor(state, who.email)
    if is_verified(state) and not (actor.is_admin or actor.member_of):
        return ()
    found = []
    for path, data in sorted(changes.items()):
        if path.startswith("requests/") and data is not None:
            continue  # it waits for an admin by design
        found.append(denial(actor, _change(path, file_versions(source, state, base, path).counts, data)))
    return tuple(refused for refused in found if refused is not None)


def _actor(state: State, email: str) -> Actor:
    """The person with that address, according to the manifests."""
    project = state.wanted.project
    admins = {person.email: person.handle for person in project.admins}
    rolls = {name: (roll_of(s.members), roll_of(s.owners)) for name, s in state.wanted.slices.items()}
    teams = {name: Team(*both) for name, both in rolls.items()}
    owns = frozenset(name for name, team in teams.items() if email in team.owners.emails)
    works = frozenset(name for name, team in teams.items() if email in team.members.emails)
    # On a verified main, people listed only in slices are known by those entries; the operator's keys are not
    # visible here.
    own_in = owns | works if is_verified(state) and email not in admins else None
    handle = admins.get(email, "")
    return Actor(email, email in admins, owns, owns | works, handle, own_in=own_in, admins=frozenset(admins))


def _change(path: str, old: bytes | None, new: bytes | None) -> Change:
    what: What = "delete" if new is None else "create" if old is None else "change"
    after = _document(path, new)
    signed = after.metadata.name if isinstance(after, Approval) and after.spec.signature else ""
    return Change(path, what, _document(path, old), after, signed)


def _document(path: str, data: bytes | None) -> Document | None:
    found = None if data is None else read_document(path, data)
    return found if isinstance(found, Document) else None
