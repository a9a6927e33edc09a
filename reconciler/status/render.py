"""The status branch's files, from facts and back. Pure.

Only facts are written. Wait, position and remaining time follow from facts and the clock, so the passing of
time alone changes no file. No file exceeds 1 MB and no folder 1,000 entries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from functools import partial
from itertools import accumulate, islice
from typing import Any, TypeVar
from zlib import crc32

from reconciler.approvals.held_changes import held_problems
from reconciler.model.events import Event
from reconciler.model.facts import Facts, Wanted
from reconciler.model.status_edits import counted_end
from reconciler.model.statuses import live
from reconciler.status.inventory import MAX_ROWS, inventory
from reconciler.status.parse import OWN_BYTES
from reconciler.status.readme import readme
from reconciler.status.yaml_rows import Written, document, plain, row, with_rows
from schemas.documents.base import Document, Metadata
from schemas.reading.units import format_instant
from schemas.reading.yaml_text import dump
from schemas.rules.problems import Problem
from schemas.status.cards import Card, CardsRecord
from schemas.status.endpoint_status import EndpointRecord
from schemas.status.gpr_status import (
    HOLDING,
    WAITING,
    ClusterState,
    ControllerRecord,
    GPRRecord,
    GPRStatus,
    Phase,
    WorkspacePhase,
)
from schemas.status.gpu_alerts import AlertsRecord
from schemas.status.inventory import PoolNodes
from schemas.status.judgements import SpentRecord, TrustRecord
from schemas.status.node_status import NodeState
from schemas.status.remedies import RemediesRecord, Remedy
from schemas.status.workload_status import WorkloadRecord

MAX_NAMES = 3500
"""Node names in one file; a name has 253 characters at most."""
MAX_NODE_FILES = 1000
"""Entries of one folder; further nodes are in the inventory only."""
MAX_FILES = 1000
"""Entries of the folder of slice requests; finished ones are left out first."""
CARD_FILES = 64
"""So that 5,000 cards with 20 faults each stay far below 1 MB a file."""
SETTLED = frozenset({WorkspacePhase.READY, WorkspacePhase.SUPERSEDED})
SEEN_ANEW = frozenset(
    {NodeState.READY, NodeState.LOST, NodeState.CORDONED, NodeState.UNFIT, NodeState.OCCUPIED}
)
"""States that the next look at the cluster reports again: their files are left out first."""
MAX_HELD = 500
"""Held changes in one file; each has its path, the person and the advice."""
EVENTS_KEPT = timedelta(days=30)
"""Older event files are removed; the branch's history still has them."""
EVENT_BYTES = 700
"""Of one event's message; what it quotes from a file can be very long."""

Files = dict[str, bytes]
S = TypeVar("S")


def render(
    facts: Facts,
    wanted: Wanted,
    order: tuple[str, ...],
    problems: Iterable[Problem],
    written: Written | None = None,
    *,
    frozen: str = "",
) -> Files:
    """Every file of the branch except requests (see `request_file`) and events (see `event_files`).

    `written` caches the last files. `frozen` says why main is not followed; empty: it is followed.
    """
    written = Written() if written is None else written
    files: Files = {
        "README.md": readme(facts, wanted, order, frozen).encode(),
        "controller.yaml": document(_controller(facts)),
        "queue.yaml": _queue(facts, order, written),
        "problems.yaml": _problems((*problems, *held_problems(facts.trust))),
        **trust_files(facts.trust),
    }
    for name in sorted(wanted.clusters):
        files[f"clusters/{name}/inventory.yaml"] = document(inventory(name, facts, wanted))
        files[f"clusters/{name}/schedule.yaml"] = _schedule(name, facts, order, written)
    for (cluster, pool), names in sorted(facts.found.items()):
        for part, begin in enumerate(range(0, len(names), MAX_NAMES)):
            named = PoolNodes(metadata=Metadata(name=pool), nodes=names[begin : begin + MAX_NAMES])
            files[f"clusters/{cluster}/pools/{pool}/{part:03}.yaml"] = document(named)
    for cluster in sorted(wanted.clusters):
        found = sorted(key for key in facts.nodes if key[0] == cluster)
        found.sort(key=lambda key: facts.nodes[key].state in SEEN_ANEW)
        for key in found[:MAX_NODE_FILES]:
            path = f"nodes/{cluster}/{key[1]}.yaml"
            files[path] = written.document(path, facts.nodes[key])
    for slice_, rows in sorted(facts.used_approvals.items()):
        files[f"approvals/{slice_}.yaml"] = document(SpentRecord(metadata=Metadata(name=slice_), spent=rows))
    files |= _remembered(facts, written)
    for name, outbox in sorted(facts.outbox.items()):
        files[f"outbox/{name}.yaml"] = written.document(f"outbox/{name}.yaml", outbox)
    spaces = facts.workspaces
    for name in sorted(spaces, key=lambda name: (spaces[name].phase in SETTLED, name))[:MAX_FILES]:
        files[f"requests/{name}.yaml"] = document(facts.workspaces[name])
    return files


def _remembered(facts: Facts, written: Written) -> Files:
    """Usage, cards that failed, alerts, resets and reboots, settled promises, statistics of finished requests."""
    records: dict[str, Document] = {f"usage/{name}.yaml": usage for name, usage in facts.usage.items()}
    if facts.insights is not None:
        records["insights.yaml"] = facts.insights
    records |= _cards(facts) | _remedies(facts)
    for cluster, alerts in facts.alerts.items():
        records[f"alerts/{cluster}.yaml"] = AlertsRecord(metadata=Metadata(name=cluster), alerts=alerts)
    records |= {f"insights/{day}.yaml": ended for day, ended in facts.ended.items()}
    records |= _inside_requests(facts)
    records |= {f"promises/{month}.yaml": settled for month, settled in facts.promises.items()}
    return {path: written.document(path, record) for path, record in sorted(records.items())}


def _cards(facts: Facts) -> dict[str, Document]:
    """Each card in the file that its serial number chooses, so that a new one changes one file."""
    parts: dict[str, list[Card]] = {}
    for serial in sorted(facts.cards):
        parts.setdefault(f"{crc32(serial.encode()) % CARD_FILES:02}", []).append(facts.cards[serial])
    return {
        f"cards/{part}.yaml": CardsRecord(metadata=Metadata(name=part), cards=tuple(cards))
        for part, cards in parts.items()
    }


def _remedies(facts: Facts) -> dict[str, Document]:
    clusters: dict[str, list[Remedy]] = {}
    for key in sorted(facts.remedies):
        clusters.setdefault(key[0], []).extend(facts.remedies[key])
    return {
        f"remedies/{name}.yaml": RemediesRecord(metadata=Metadata(name=name), remedies=tuple(found))
        for name, found in clusters.items()
    }


def _inside_requests(facts: Facts) -> dict[str, Document]:
    """Workloads and endpoints."""
    workloads = _by_slice("workloads", facts.workloads)
    endpoints = _by_slice("endpoints", facts.endpoints)
    return {
        path: WorkloadRecord(metadata=Metadata(name=name), status=status)
        for path, (name, status) in workloads.items()
    } | {
        path: EndpointRecord(metadata=Metadata(name=name), status=status)
        for path, (name, status) in endpoints.items()
    }


def _by_slice(folder: str, statuses: Mapping[str, S]) -> dict[str, tuple[str, S]]:
    """By path, each one's name and status: for each slice only what one folder may hold."""
    found: dict[str, tuple[str, S]] = {}
    counts: Counter[str] = Counter()
    for key, status in sorted(statuses.items(), key=lambda one: one[0]):
        slice_, _, name = key.partition("/")
        counts[slice_] += 1
        if counts[slice_] <= MAX_FILES:
            found[f"slices/{slice_}/{folder}/{name}.yaml"] = name, status
    return found


def trust_files(record: TrustRecord | None) -> Files:
    """How far main was judged, and the held changes: some in trust.yaml, the rest in parts."""
    if record is None:
        return {}
    files: Files = {}
    for part, begin in enumerate(range(0, max(1, len(record.held)), MAX_HELD)):
        path = "trust.yaml" if part == 0 else f"trust/{part:03}.yaml"
        held = record.held[begin : begin + MAX_HELD]
        files[path] = document(record.edited(held=held))
    return files


def request_path(key: str) -> str:
    slice_, _, name = key.partition("/")
    return f"slices/{slice_}/gprs/{name}.yaml"


def request_key(path: str) -> str:
    _, slice_, _, file = path.split("/")
    return f"{slice_}/{file.removesuffix('.yaml')}"


def request_file(key: str, status: GPRStatus) -> bytes:
    return document(GPRRecord(metadata=Metadata(name=key.partition("/")[2]), status=status))


def event_path(at: datetime, part: int) -> str:
    """The file of one hour's events; a busy hour has several parts."""
    return f"events/{at:%Y-%m-%d}/{at:%H}-{part}.yaml"


def event_rows(events: Iterable[Event], *known: Facts) -> list[dict[str, str]]:
    """Events as written, without empty fields; a request's id comes from the first of `known` that has it."""
    rows = []
    for event in events:
        row = {
            "at": format_instant(event.at),
            "reason": str(event.reason),
            "type": "Warning" if event.warning else "Normal",
            "request": event.request,
            "uid": _uid_of(event.request, known),
            "slice": event.slice,
            "cluster": event.cluster,
            "node": event.node,
            "message": event.message.encode("utf-8", "replace")[:EVENT_BYTES].decode("utf-8", "ignore"),
        }
        rows.append({k: v for k, v in row.items() if v})
    return rows


def _uid_of(key: str, known: tuple[Facts, ...]) -> str:
    found = (facts.requests.get(key) for facts in known)
    return next((status.uid for status in found if status is not None), "")


def _controller(facts: Facts) -> ControllerRecord:
    return ControllerRecord(
        metadata=Metadata(name="controller"),
        held_deletions=facts.held_deletions,
        clusters=tuple(
            ClusterState(name=name, reachable=reach.reachable, since=reach.since)
            for name, reach in sorted(facts.clusters.items())
        ),
        unread=tuple(sorted(facts.unread)),
    )


def _queue(facts: Facts, order: tuple[str, ...], written: Written) -> bytes:
    there = live(facts.requests)
    holding = sorted(k for k, s in there.items() if s.phase in HOLDING)
    pending = sorted(k for k, s in there.items() if s.phase is Phase.PENDING_APPROVAL)
    keys = [k for k in dict.fromkeys((*holding, *order, *pending)) if k in there]
    known = written.rows["queue"]
    known.keep(there)
    rows = _fitting(known.of(k, partial(_queue_row, k, there[k]), same=(there[k],)) for k in keys)
    return with_rows(plain("Queue", {}), "requests", rows, f"omitted: {len(keys) - len(rows)}\n")


def _fitting(rows: Iterable[str]) -> list[str]:
    """As many of the first rows as fit in a file."""
    kept, size = list[str](), 0
    for text in islice(rows, MAX_ROWS):
        size += len(text.encode())
        if size > OWN_BYTES * 9 // 10:
            break
        kept.append(text)
    return kept


def _queue_row(key: str, status: GPRStatus) -> str:
    pairs: dict[str, Any] = {"request": key, "phase": str(status.phase)}
    if status.phase in WAITING:
        pairs["priority"] = status.accepted_spec.priority
    start = status.start_time or status.estimated_start_time
    if start is not None:
        pairs["start"] = format_instant(start)
    if status.reason:
        pairs["reason"] = status.reason
    return row(pairs)


def _problems(problems: Iterable[Problem]) -> bytes:
    rows = [
        {
            "file": p.file,
            "line": p.line,
            "column": p.column,
            "rule": p.rule,
            "severity": p.severity,
            "message": p.message,
            "fix": p.fix,
        }
        for p in sorted(problems)
    ]
    # A quoted text can be long: as many as fit, whatever the number.
    sizes = accumulate(len(dump({"problems": [row]}).encode()) for row in rows[: MAX_ROWS // 5])
    shown = [row for row, size in zip(rows, sizes, strict=False) if size < OWN_BYTES * 9 // 10]
    return plain("Problems", {"problems": shown, "omitted": len(rows) - len(shown)})


def _schedule(cluster: str, facts: Facts, order: tuple[str, ...], written: Written) -> bytes:
    there = live(facts.requests)
    holding = sorted(k for k, s in there.items() if s.phase in HOLDING)
    keys = [key for key in dict.fromkeys((*holding, *order)) if key in there]
    known = written.rows[f"clusters/{cluster}"]
    known.keep(there)
    here = (known.of(k, partial(_reservation, k, there[k], cluster), same=(there[k],)) for k in keys)
    rows = [text for text in here if text]
    kept = _fitting(rows)
    begin = plain("Schedule", {"metadata": {"name": cluster}})
    return with_rows(begin, "reservations", kept, f"omitted: {len(rows) - len(kept)}\n")


def _reservation(key: str, status: GPRStatus, cluster: str) -> str:
    """Its row in the cluster's schedule; empty if it has none."""
    begin = status.start_time or status.estimated_start_time
    end = counted_end(status) or status.estimated_end_time
    held = status.assignment
    if begin is None or end is None or (held.cluster if held else status.estimated_cluster) != cluster:
        return ""
    pairs = {
        "request": key,
        "phase": str(status.phase),
        "pool": held.pool if held else status.estimated_pool or "",
        "nodes": list(held.nodes) if held else [],
        "count": status.accepted_spec.nodes,
        "begin": format_instant(begin),
        "end": format_instant(end),
    }
    return row(pairs)  # the format of `schemas.status.inventory.Reservation`
