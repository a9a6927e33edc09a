"""Before a change goes to main: whether it would be held there, as far as the author's address tells.

The controller goes by signatures and by the forge, never by addresses; so this only warns.

Held by tests/commands/test_resubmitting.py.
"""

from __future__ import annotations

from reconciler.commands.grounds import ground
from reconciler.commands.source import Changes, Source
from reconciler.commands.state import State
from reconciler.store.port import Person
from reconciler.trust.authority import Team, roll_of
from reconciler.trust.model import Actor
from reconciler.trust.policy import Change, What, denial
from schemas.approval import Approval
from schemas.base import Document
from schemas.reading import read_document


def doubts(source: Source, state: State, base: str, changes: Changes, who: Person) -> tuple[str, ...]:
    """A sentence for every file whose change its author may not make; none where main is not verified."""
    if state.committed is None or state.committed.trust is None:
        return ()
    actor = _listed(state, who.email)
    if actor is None:
        return ()
    found = []
    for path, data in sorted(changes.items()):
        if path.startswith("requests/") and data is not None:
            continue  # to wait for an admin is its way
        refused = denial(actor, _change(path, ground(source, state, base, path).counts, data))
        if refused is not None:
            found.append(f"main will hold this change, {refused.rule}: {refused.message}")
    return tuple(found)


def _listed(state: State, email: str) -> Actor | None:
    """What the manifests make of that address; None: they do not name it."""
    project = state.wanted.project
    admins = {person.email: person.handle for person in project.admins}
    rolls = {name: (roll_of(s.members), roll_of(s.owners)) for name, s in state.wanted.slices.items()}
    teams = {name: Team(*both) for name, both in rolls.items()}
    owns = frozenset(name for name, team in teams.items() if email in team.owners.emails)
    works = frozenset(name for name, team in teams.items() if email in team.members.emails)
    if email not in admins and not owns | works:
        return None
    # Whom slices alone name is known by what those list; whether the operator knows more is not seen from here.
    own_in = None if email in admins else owns | works
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
