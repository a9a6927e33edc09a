"""The queue as the status branch has it, for somebody who looks once: only what still matters is read as a document.

Most requests of a repository are over, and their records play no part in a plan. A record is passed over only when
its own text says so beyond doubt; whatever looks otherwise is read. Held by
tests/reconciler/pulls/test_queue_at_check.py.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from reconciler.documents.in_force import ACCEPTED
from reconciler.model.facts import Facts
from reconciler.status.parse import OWN_BYTES, UNREADABLE, Record, facts_of, record_from
from reconciler.status.render import request_path
from reconciler.status.tree import FACT
from reconciler.store.store_port import REGULAR_MODE, Commit, Store
from reconciler.store.trailers import parse_stamp
from schemas.status.gpr_status import TERMINAL

_PHASE = re.compile(rb"^status:\n  phase: ([A-Za-z]+)$", re.MULTILINE)
"""Where our writer puts a request's phase: its status' first field."""
_OVER = frozenset(str(phase).encode() for phase in TERMINAL)


@dataclass(frozen=True, slots=True)
class CommittedStatus:
    """What a controller committed, as far as it matters now."""

    commit: str
    at: datetime
    facts: Facts
    accepted: Mapping[str, bytes]  # documents in force that main does not have so
    over: frozenset[str] = frozenset()  # requests that were passed over: they never run again


def committed_status(store: Store, tip: str, needed: Collection[str] = ()) -> CommittedStatus:
    """The status at `tip`: requests (`slice/name`) that are not over, and the `needed` ones, whatever they are.

    Files that cannot be read count as absent: this is a look, and the controller is the one to mend them.
    """
    commit = store.commit(tip)
    wanted = {request_path(key) for key in needed}
    plain = {
        entry.path: entry.oid
        for entry in store.diff(None, tip)
        if entry.oid is not None and entry.mode == REGULAR_MODE and FACT.fullmatch(entry.path)
    }
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


def over_at(store: Store, tip: str) -> frozenset[str]:
    """Requests that never run again, as the status at `tip` has it; nothing of it is parsed."""
    plain = {
        entry.path: entry.oid
        for entry in store.diff(None, tip)
        if entry.oid is not None and entry.mode == REGULAR_MODE and entry.path.startswith("slices/")
    }
    blobs = store.read(set(plain.values()))
    return frozenset(
        _key(path) for path, oid in plain.items() if FACT.fullmatch(path) and _is_over(path, blobs[oid])
    )


def _is_over(path: str, data: bytes) -> bool:
    found = _PHASE.search(data) if path.startswith("slices/") else None
    return found is not None and found[1] in _OVER


def _key(path: str) -> str:
    """The request of a record, by the record's path."""
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
    """The commit of main that a status commit answers; empty when it does not say."""
    stamp = parse_stamp(commit.trailers)
    return (stamp.intent if stamp is not None else None) or ""
