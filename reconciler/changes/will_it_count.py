"""Before a change goes to main: may its author make it?

`reconciler.trust.policy` decides, as it does for commits of people, so neither commands nor the API allow more than
Git. A command knows its author by address alone. On a verified main the controller checks signatures and the forge,
never addresses: a doubt is a warning. Otherwise only the command checks who changes what: a doubt is a refusal.

Held by tests/reconciler/cli/test_resubmitting.py and tests/reconciler/cli/test_rights.py.
"""

from __future__ import annotations

from collections.abc import Callable

from reconciler.changes.reinstate import file_versions
from reconciler.model.evidence import Actor, Denial
from reconciler.queries.state import State
from reconciler.sources.source import Changes, Source
from reconciler.store.store_port import Person
from reconciler.trust.authority import Team, roll_of
from reconciler.trust.policy import Change, What, denial
from schemas.documents.approval import Approval
from schemas.documents.base import Document
from schemas.reading.reader import Reading, read_document


def is_verified(state: State) -> bool:
    """True if the controller judges who may change what on main."""
    return state.committed is not None and state.committed.trust is not None


def doubts(source: Source, state: State, base: str, changes: Changes, who: Person) -> tuple[Denial, ...]:
    """Why the author may not make the change, one reason per file.

    On a verified main an unlisted address proves nothing: its key may be listed.
    """
    actor = _actor(state, who.email)
    if is_verified(state) and not (actor.is_admin or actor.member_of):
        return ()
    # A request for a slice waits for an admin by design.
    judged = {
        path: data for path, data in changes.items() if data is None or not path.startswith("requests/")
    }
    counts = {path: file_versions(source, state, base, path).counts for path in judged}
    return denials(actor, judged, counts.get, signed_by=_claimed)


def denials(
    actor: Actor,
    changes: Changes,
    before: Callable[[str], bytes | None],
    *,
    read: Callable[[str, bytes], Reading] = read_document,
    signed_by: Callable[[Document | None], str] = lambda _: "",
) -> tuple[Denial, ...]:
    """Why the actor may not make the changes, one reason per such file, sorted by path.

    `before` gives a file's content that counts, `signed_by` the admin whose signature in an approval is valid.
    """

    def document(path: str, data: bytes | None) -> Document | None:
        found = None if data is None else read(path, data)
        return found if isinstance(found, Document) else None

    found = []
    for path, data in sorted(changes.items()):
        old, new = before(path), document(path, data)
        what: What = "delete" if data is None else "create" if old is None else "change"
        found.append(denial(actor, Change(path, what, document(path, old), new, signed_by(new))))
    return tuple(refused for refused in found if refused is not None)


def _claimed(document: Document | None) -> str:
    """The named admin of a signed approval: the controller checks the signature."""
    return document.metadata.name if isinstance(document, Approval) and document.spec.signature else ""


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
