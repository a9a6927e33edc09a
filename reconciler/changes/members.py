"""`egs slice members …`: a slice's people with their keys and accounts; each command changes one entry of one list."""

from __future__ import annotations

from collections.abc import Sequence

from egs.commands.output import note
from reconciler.changes.change import Change, Means
from reconciler.changes.people import Entry, Newcomer
from reconciler.changes.publish import aimed, publish
from reconciler.changes.requests import check_typed
from reconciler.changes.slices import file_of
from reconciler.changes.yaml_list import with_item, without_item
from reconciler.documents.yaml_edit import with_field
from reconciler.queries.state import State
from reconciler.sources.command_errors import NotAllowed, NotFound, WrongUse
from schemas.reading.strict_yaml import load
from schemas.rules.view import slice_path

MEMBERS, OWNERS = ("spec", "members"), ("spec", "owners")


def add(means: Means, name: str, who: Newcomer) -> None:
    """Adds a person, or updates their entry."""

    def build(state: State, base: str) -> Change:
        there = file_of(source, state, base, name)
        path, old = there.path, there.data or b""
        data = _with(old, MEMBERS, who)
        if who.is_owner and path != slice_path(name):
            raise NotAllowed(
                f"slice {name} comes from a slice request, whose requester owns it; "
                f"run `egs slice create {name}` to give it a file with owners"
            )
        if who.is_owner:
            # Rights follow the entry: an owner's key belongs in the owners list.
            data = _with(data, OWNERS, who)
        if data == old and there.hold is None:
            raise NotAllowed(f"{who.mail} is in slice {name} already; nothing to change")
        check_typed(path, data, old)
        return Change({path: data}, f"Add {who.mail} to slice {name}")

    _check_mail(who.mail)
    with aimed(means) as source:
        done = publish(source, means, build)
    _told(done.change, name)


def _with(data: bytes, field: tuple[str, str], who: Newcomer) -> bytes:
    people = _people(data, field[1])
    place = _place(people, who.mail)
    if place is None:
        return with_item(data, field, who.entry(None))
    entry = who.entry(people[place])
    if entry == people[place]:
        return data
    return with_field(data, field, [*people[:place], entry, *people[place + 1 :]])


def remove(means: Means, name: str, mail: str) -> None:

    def build(state: State, base: str) -> Change:
        there = file_of(source, state, base, name)
        path, data = there.path, there.data or b""
        spec = _spec(data)
        if _place([spec.get("requester", {})], mail) is not None:
            raise NotAllowed(
                f"{mail} requested slice {name} and owns it; "
                f"to change the owner run `egs slice edit {name} requester.email=…`"
            )
        changed = data
        for field in (MEMBERS, OWNERS):
            place = _place(_people(changed, field[1]), mail)
            if place is not None:
                changed = without_item(changed, field, place)
        if changed == data and there.hold is None:
            raise NotFound("member", mail, [person["email"] for person in _people(data, "members")])
        if path == slice_path(name) and not _people(changed, "members"):
            raise NotAllowed(
                f"{mail} is the last member of slice {name}; add another one first, or delete the slice"
            )
        return Change({path: changed}, f"Remove {mail} from slice {name}")

    _check_mail(mail)
    with aimed(means) as source:
        done = publish(source, means, build)
    _told(done.change, name)


def _told(change: Change, name: str) -> None:
    if slice_path(name) not in change.changes:
        note(
            f"slice {name} comes from a slice request: if main is verified, an admin has to make or approve its changes"
        )


def _check_mail(mail: str) -> None:
    if "@" not in mail:
        raise WrongUse(f"{mail} is not an e-mail address; write for example dee@example.com")


def _spec(data: bytes) -> Entry:
    document = load(data)
    spec = document.get("spec") if isinstance(document, dict) else None
    return spec if isinstance(spec, dict) else {}


def _people(data: bytes, field: str) -> list[Entry]:
    return [person for person in _spec(data).get(field) or () if isinstance(person, dict)]


def _place(people: Sequence[Entry], mail: str) -> int | None:
    """Index in the list; addresses are compared case-insensitively."""
    found = (i for i, person in enumerate(people) if str(person.get("email", "")).lower() == mail.lower())
    return next(found, None)
