"""The base of a change if main's file is held, and the line that submits the content again.

A held content has no authorised author, and the last authorised content counts instead: a change is based on
that one. Git records no change for an equal file; a comment at its end makes it different, with a new author.

Held by tests/reconciler/cli/test_resubmitting.py and tests/portal/test_verified.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from reconciler.queries.state import State
from reconciler.sources.source import Changes, Source
from reconciler.store.git.git_objects import blob_oid
from reconciler.store.store_port import Person
from schemas.errors import Fault
from schemas.reading.units import format_instant
from schemas.status.judgements import HeldChange, TrustRecord

_AGAIN = re.compile(rb"\n# brought in again (?:by [^\s#]+ )?at [0-9TZ:.-]+\n*\Z")


@dataclass(frozen=True, slots=True)
class FileVersions:
    """One file: as it is on main, and as it counts."""

    path: str
    main: bytes | None
    counts: bytes | None
    hold: HeldChange | None = None
    restored: bytes | None = None
    """For a request whose file is missing or unreadable on main: the file as it counts."""

    @property
    def data(self) -> bytes | None:
        """The base of a change: the content that counts; if the file never counted, main's content."""
        return self.main if self.counts is None else self.counts

    @property
    def says_why(self) -> str:
        """Which change on main does not count, and by which rule."""
        assert self.hold is not None
        return f"{self.path} is held as it is on main (commit {self.hold.commit[:12]}, {self.hold.rule})"


def held_by_path(trust: TrustRecord | None) -> Mapping[str, HeldChange]:
    """The changes on main that do not count."""
    return {} if trust is None else {hold.path: hold for hold in trust.held}


def versions_of(
    path: str, main: bytes | None, hold: HeldChange | None, blob: Callable[[str | None], bytes | None]
) -> FileVersions:
    """The file with that content on main; a hold of another content is over. `blob` reads a content by its id."""
    if hold is None or hold.found != (None if main is None else blob_oid(main)):
        return FileVersions(path, main, main)
    return FileVersions(path, main, blob(hold.authorised), hold)


def file_versions(source: Source, state: State, base: str, path: str) -> FileVersions:
    """The file at `base`. In a folder, only a file identical to main's can be held."""
    hold = held_by_path(None if state.committed is None else state.committed.trust).get(path)
    return versions_of(path, source.store.read_path(base, path), hold, partial(_blob, source))


def _blob(source: Source, oid: str | None) -> bytes | None:
    """A content by its id, from the status' store; None: no id, or not available here."""
    if oid is None:
        return None
    found = source.status()
    try:
        return (source.store if found is None else found[0]).read([oid])[oid]
    except Fault:
        return None


def brought_again(data: bytes, who: Person | None, at: datetime) -> bytes:
    """The same document with a new last line; it replaces an earlier such line."""
    kept = _AGAIN.sub(b"\n", data)
    name = f"by {who.email} " if who is not None and re.fullmatch(r"[^\s#]+", who.email) else ""
    end = "" if kept.endswith(b"\n") else "\n"
    return kept + f"{end}# brought in again {name}at {format_instant(at)}\n".encode()


def settled(
    changes: Changes, versions: Callable[[str], FileVersions], who: Person | None, now: datetime
) -> tuple[Changes, tuple[str, ...]]:
    """The same changes, in contents that main does not hold already; and notes on the held ones."""
    made, told = dict(changes), list[str]()
    for path, data in sorted(changes.items()):
        found = versions(path)
        if found.hold is None or data is None:
            continue
        if data == found.main:
            made[path] = brought_again(data, who, now)
            told.append(f"{found.says_why}; it is submitted again")
        elif found.counts is not None:
            told.append(
                f"{found.says_why}; the change is based on the content that counts, without the held one"
            )
    return made, tuple(told)
