"""What changed on the status branch between two polls: new events, and the state of followed requests.

A poll costs one fetch; if the branch moved, also a listing and the changed files. The repository is open during
a poll only, so other commands find its mirror unlocked in between.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from egs.commands import output
from egs.commands.backend import STANDS
from reconciler.model.differing import differing
from reconciler.queries.event_search import Filter, event_row
from reconciler.queries.state import bad_name, is_name
from reconciler.sources.command_errors import NotAllowed
from reconciler.sources.open_source import opened
from reconciler.sources.source import STATUS, Source
from reconciler.status.event_files import age
from reconciler.status.parse import UNREADABLE, events_from, record_from
from reconciler.store.store_port import Store
from schemas.errors import Fault
from schemas.reading.units import wire
from schemas.status.gpr_status import GPRRecord

Line = dict[str, Any]
"""One change, as `-o json` prints it."""

_REQUEST = re.compile(r"slices/([^/]+)/gprs/([^/]+)\.yaml")


@dataclass(frozen=True, slots=True)
class Seen:
    """The result of one poll: the branch's head, its relevant files, and the state of the followed requests."""

    tip: str | None = None
    files: Mapping[str, str] | None = None  # object ids by path
    requests: Mapping[str, Line] | None = None  # by path


def follow(repo: str | None, wanted: Filter, looks: Iterable[None]) -> Iterator[Line | None]:
    """Every change between two looks, and None after each. A repository that answered once may be away later."""
    _check(wanted)
    seen: Seen | None = None
    is_away = False
    for _ in looks:
        try:
            with opened(repo) as source:
                found, lines = look(source, seen, wanted)
        except Fault as fault:
            if seen is None:
                raise
            if not is_away:
                output.note(f"{fault}; trying again")
            is_away = True
            continue
        if seen is None:
            _say_what_is_not_there(found, wanted)
        seen, is_away = found, False
        yield from lines
        yield None


def _say_what_is_not_there(found: Seen, wanted: Filter) -> None:
    """The name may appear later, so this is not an error; a mistyped name would wait forever without this note."""
    if found.tip is None:
        output.note("no controller has written a status yet; waiting for one")
    elif found.requests:
        return
    elif wanted.gpr is not None:
        output.note(f"request {wanted.gpr} does not exist yet; waiting for it")
    elif wanted.slice is not None:
        output.note(f"slice {wanted.slice} has no request yet; waiting for one")


def _check(wanted: Filter) -> None:
    slice_, _, name = (wanted.gpr or "").rpartition("/")
    for option, text in (("--slice", wanted.slice), ("--gpr", name), ("--gpr", slice_)):
        if text and not is_name(text):
            raise bad_name(f"{option} {text}")


def look(source: Source, before: Seen | None, wanted: Filter) -> tuple[Seen, list[Line]]:
    """The current state and what is new since `before`; the first poll reports no events, only the requests' state."""
    status = source.status()
    if status is None and source.is_folder:
        raise NotAllowed(
            f"there is no status to follow: no remote with a branch {STATUS}; name it with --repo"
        )
    if status is None:
        return Seen(files={}, requests={}), []
    store, tip = status
    if before is not None and before.tip == tip:
        return before, []
    files = {e.path: e.oid for e in store.diff(None, tip) if e.oid is not None and _counts(e.path, wanted)}
    at = wire(store.commit(tip).at)
    requests, moved = _requests(store, files, before, at)
    told = [] if before is None else _events(store, files, before.files or {}, wanted)
    return Seen(tip, files, requests), [*told, *moved]


def _counts(path: str, wanted: Filter) -> bool:
    """True if a file may contain something to report; without a filter, requests are reported through events only."""
    if path.startswith("events/"):
        return True
    found = _REQUEST.fullmatch(path)
    has_filter = wanted.slice is not None or wanted.gpr is not None
    return found is not None and has_filter and wanted.takes({"request": f"{found[1]}/{found[2]}"})


def _events(store: Store, files: Mapping[str, str], before: Mapping[str, str], wanted: Filter) -> list[Line]:
    """Files only grow: the new rows are those after the old number."""
    changed = [p for p, oid in files.items() if p.startswith("events/") and before.get(p) != oid]
    lines: list[Line] = []
    for path in sorted(changed, key=age):
        rows = _rows(store, files[path])[len(_rows(store, before.get(path))) :]
        lines += [{"kind": "event"} | event_row(row) for row in rows if wanted.takes(row)]
    return lines


def _rows(store: Store, oid: str | None) -> list[dict[str, str]]:
    """A file's events; empty if unreadable. If an old version is gone, its events are reported again."""
    try:
        return [] if oid is None else events_from(store.read([oid])[oid])
    except (Fault, *UNREADABLE):
        return []


def _requests(
    store: Store, files: Mapping[str, str], before: Seen | None, at: str | None
) -> tuple[Mapping[str, Line], list[Line]]:
    """The state of each followed request, and those that changed."""
    old_files = (before and before.files) or {}
    old = (before and before.requests) or {}
    now: dict[str, Line] = {}
    for path, oid in files.items():
        if _REQUEST.fullmatch(path):
            stands = old.get(path) if old_files.get(path) == oid else _stands(store, path, oid)
            if stands is not None:
                now[path] = stands
    changed = sorted(differing(old, now))
    return now, [_moved(path, at, old.get(path), now.get(path)) for path in changed]


def _stands(store: Store, path: str, oid: str) -> Line | None:
    try:
        record = record_from(path, store.read([oid])[oid])
    except UNREADABLE:
        return None
    if not isinstance(record, GPRRecord):
        return None
    found = record.status
    times = (wire(found.estimated_start_time), wire(found.estimated_end_time))
    return dict(zip(STANDS, (str(found.phase), found.reason, *times), strict=True))


def _moved(path: str, at: str | None, was: Line | None, now: Line | None) -> Line:
    _, slice_, _, file = path.split("/")
    head = {"kind": "request", "at": at, "slice": slice_, "name": file.removesuffix(".yaml")}
    return head | (now or dict.fromkeys(STANDS)) | {"was": was}
