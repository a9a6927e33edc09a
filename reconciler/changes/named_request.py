"""What commands need to know of the request they change: its file, its name, and the outcome of the change.

A command reads the status, then main; the controller may commit a hand-over of nodes in between. A change
that ends a request is right anyway; after an edit the command checks again whether it counts, and says so.

Held by tests/reconciler/cli/test_endings.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reconciler.changes.change import Submitted
from reconciler.changes.reinstate import FileVersions, file_versions
from reconciler.documents.restored_files import as_it_counts, last_read, readable, says
from reconciler.queries.state import State, as_filed, split
from reconciler.sources.command_errors import NotAllowed, NotFound
from reconciler.sources.source import Source
from schemas.documents.gpr import RequestSpec
from schemas.rules.edits import FIELD_NAMES, changed_terms
from schemas.rules.view import gpr_path
from schemas.status.gpr_status import HOLDING, TERMINAL, WAITING, GPRStatus

TAKEN = "{key} exists already; `egs gpr edit` changes it, a new request needs a new name"


def existing(source: Source, state: State, base: str, key: str) -> FileVersions:
    """The file of an existing request, or of a request that has only a status. Raises NotFound."""
    path, status = gpr_path(*split(key)), state.facts.requests.get(key)
    there = file_versions(source, state, base, path)
    if there.data is None and status is None:
        raise NotFound("request", key, state.wanted.filed)
    if status is None or readable(path, there.data) is not None:
        return there
    return replace(there, restored=restored(source, state, base, key))


def restored(source: Source, state: State, base: str, key: str) -> bytes:
    """The file of a request with a status, as it counts. Reads the commits back to where main last had it."""
    accepted = state.facts.requests[key].accepted_spec
    last = last_read(source.store, base, gpr_path(*split(key)))
    return as_it_counts(key, last, accepted, state.wanted.templates)


def said_by(there: FileVersions, state: State) -> RequestSpec | None:
    """What a file on main asks for, template included; None: unusable."""
    return says(readable(there.path, there.main), state.wanted.templates)


def is_judged(source: Source, state: State, path: str, data: bytes) -> bool:
    """True if a controller has judged this content of main; always true if main is not verified."""
    trust = None if state.committed is None else state.committed.trust
    return trust is None or source.store.read_path(trust.main, path) == data


def taken_by(state: State, key: str) -> str | None:
    """Why a name is taken; None: it has no status.

    The committed status counts: a file restored before the controller saw it gone never runs.
    """
    known = {} if state.committed is None else state.committed.requests
    status = known.get(key) or state.facts.requests.get(key)
    if status is None:
        return None
    if key in state.wanted.filed:
        if status.phase not in TERMINAL:
            return TAKEN.format(key=key)
        to_do = "choose a new name, or free this one with `egs prune --apply`"
        return f"{key} is {status.phase} and never runs again; {to_do}"
    if status.phase in TERMINAL:
        return f"{key} was {status.phase}, and the controller's next cycle removes its record; try again then"
    return f"{key} is {status.phase} though its file is gone; a new request needs a new name"


def check_waits(source: Source, done: Submitted, key: str) -> None:
    """Raises NotAllowed if a move is on main but the request got its nodes meanwhile."""
    status = _status_now(source, done, key)
    if status is not None and status.phase not in WAITING:
        raise NotAllowed(
            f"{key} got its nodes while the change was being pushed: the number is on main but has no effect"
        )


def _status_now(source: Source, done: Submitted, key: str) -> GPRStatus | None:
    """The request's committed status after a pushed change; None: not pushed, or no status."""
    found = source.loaded(done.before.now) if done.is_pushed else None
    return None if found is None else found.facts.requests.get(key)


def check_counts(source: Source, done: Submitted, key: str) -> None:
    """Raises NotAllowed if the change is on main but the request got its nodes on other terms meanwhile."""
    status, said = _status_now(source, done, key), as_filed(source, done.commit, key)
    terms = terms_too_late(status, said, as_filed(source, done.base, key))
    if terms:
        to_do = f"`egs gpr release {key}` ends it, `egs gpr restore {key}` writes the file back"
        raise NotAllowed(too_late(key, terms, to_do), "GpuAlreadyProvisioned")


def terms_too_late(
    status: GPRStatus | None, said: RequestSpec | None, before: RequestSpec | None
) -> list[str]:
    """Terms that a change on main set although the request holds nodes on others; `before`: None if unknown."""
    if status is None or said is None or status.phase not in HOLDING or said.early_release:
        return []
    return [
        FIELD_NAMES.get(field, field)
        for field in changed_terms(status.accepted_spec, said)
        if before is None or getattr(before, field) != getattr(said, field)
    ]


def too_late(key: str, terms: Sequence[str], to_do: str) -> str:
    return (
        f"{key} got its nodes while the change was being pushed and keeps its terms ({', '.join(terms)}): the change "
        f"is on main but has no effect; {to_do}"
    )
