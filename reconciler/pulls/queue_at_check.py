"""The queue on the status branch, for a single look: parses only what still matters.

Most requests are finished, and their records do not affect a plan. A record is skipped only if its own text
clearly says so; anything else is parsed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from reconciler.documents.in_force import ACCEPTED
from reconciler.documents.unread_files import is_request
from reconciler.model.facts import Facts
from reconciler.status.parse import OWN_BYTES, UNREADABLE, Record, facts_of, record_from, tells_over
from reconciler.status.render import request_path
from reconciler.status.tree import FACT
from reconciler.store.store_port import REGULAR_MODE, Commit, Contents, History
from reconciler.store.trailers import parse_stamp


@dataclass(frozen=True, slots=True)
class CommittedStatus:
    """What a controller committed, as far as it matters now."""

    commit: str
    at: datetime
    facts: Facts
    accepted: Mapping[str, bytes]  # documents in force that differ from main
    over: frozenset[str] = frozenset()  # finished requests, which were skipped


def committed_status(store: History, tip: str, needed: Collection[str] = ()) -> CommittedStatus:
    """The status at `tip`: unfinished requests (`slice/name`), and the `needed` ones in any phase.

    Unreadable files count as absent: this only reads, the controller repairs.
    """
    commit = store.commit(tip)
    wanted = {request_path(key) for key in needed}
    plain = _files(store, tip)
    blobs = store.read(set(plain.values()))
    records: dict[str, Record] = {}
    accepted: dict[str, bytes] = {}
    over: set[str] = set()
    for path, oid in plain.items():
        data = blobs[oid]
        if path.startswith(ACCEPTED):
            accepted[path.removeprefix(ACCEPTED)] = data
        elif path not in wanted and _is_over(path, data):
            over.add(_key(path))
        elif (record := _record(path, data)) is not None:
            records[path] = record
    facts = facts_of(records, commit.at, intent_of(commit))
    return CommittedStatus(tip, commit.at, facts, accepted, frozenset(over))


def over_at(store: Contents, tip: str) -> frozenset[str]:
    """Finished requests in the status at `tip`; parses nothing."""
    plain = {path: oid for path, oid in _files(store, tip).items() if is_request(path)}
    blobs = store.read(set(plain.values()))
    return frozenset(_key(path) for path, oid in plain.items() if _is_over(path, blobs[oid]))


def _files(store: Contents, tip: str) -> dict[str, str]:
    """Blob ids of the facts, by path."""
    return {
        entry.path: entry.oid
        for entry in store.diff(None, tip)
        if entry.oid is not None and entry.mode == REGULAR_MODE and FACT.fullmatch(entry.path)
    }


def _is_over(path: str, data: bytes) -> bool:
    return is_request(path) and tells_over(data)


def _key(path: str) -> str:
    """The request of a record's path."""
    _, slice_, _, file = path.split("/")
    return f"{slice_}/{file.removesuffix('.yaml')}"


def _record(path: str, data: bytes) -> Record | None:
    if len(data) > OWN_BYTES:
        return None
    try:
        return record_from(path, data)
    except UNREADABLE:
        return None


def intent_of(commit: Commit) -> str:
    """The commit of main that a status commit covers; empty if unknown."""
    stamp = parse_stamp(commit.trailers)
    return (stamp.intent if stamp is not None else None) or ""
