"""The status branch's front page on a forge: queue, running requests, free nodes, problems. Pure.

It has times, never remaining durations, so that it changes only when a fact does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime

from reconciler.model.facts import Facts, Wanted
from reconciler.model.statuses import live
from schemas.rules.problems import quoted
from schemas.status.gpr_status import HOLDING, GPRStatus, Phase, WorkspacePhase
from schemas.status.node_status import NodeRecord, NodeState

MARKUP = re.compile(r"[\\\[\]<>`|]")
"""Characters that could end a cell, or become a link, code or HTML: texts of agents and checks are untrusted."""
SHOWN = 50
"""Rows of each table; queue.yaml has them all."""


def readme(facts: Facts, wanted: Wanted, order: tuple[str, ...], frozen: str = "") -> str:
    """Markdown; every time is UTC. `frozen`: why main is not followed; empty: it is."""
    parts = [
        "# GPU queue",
        *([f"**`main` is frozen: no change of it takes effect.** {_cell(frozen)}"] if frozen else []),
        "Written by the controller after every decision; all times are UTC. "
        "A start in this queue is a promise: it moves later only for a cause that the request's own file names.",
        "## Running",
        _running(facts),
        "## Waiting",
        _waiting(facts, order),
        "## Waiting for approval",
        _pending(facts),
        *_asked(facts),
        *_held(facts),
        "## Nodes",
        _nodes(facts, wanted),
        "## Out of service",
        _out(facts),
    ]
    return "\n\n".join(parts) + "\n"


def _running(facts: Facts) -> str:
    rows = []
    for key in sorted(k for k, s in live(facts.requests).items() if s.phase in HOLDING):
        status = facts.requests[key]
        held = status.assignment
        where = f"{held.cluster}/{held.pool}: {', '.join(held.nodes)}" if held else ""
        start = status.start_time or status.estimated_start_time
        end = status.end_time or status.estimated_end_time
        rows.append((key, str(status.phase), where, _time(start), _time(end)))
    return _table(("request", "phase", "nodes", "start", "end"), rows)


def _waiting(facts: Facts, order: tuple[str, ...]) -> str:
    there = live(facts.requests)
    waiting = [
        (rank, key, status)
        for rank, key in enumerate(order, start=1)
        if (status := there.get(key)) is not None and status.phase is Phase.QUEUED
    ]
    rows = []
    for rank, key, status in waiting[:SHOWN]:
        where = f"{status.estimated_cluster}/{status.estimated_pool}" if status.estimated_cluster else ""
        rows.append(
            (str(rank), key, str(status.accepted_spec.priority), _wish(status), _start(status), where)
        )
    head = ("rank", "request", "priority", "asks for", "starts", "where")
    return _table(head, rows, more=len(waiting) - SHOWN)


def _start(status: GPRStatus) -> str:
    if status.estimated_start_time is None:
        return status.reason or "not planned yet"
    text = _time(status.estimated_start_time)
    return f"{text} (moved {status.delayed_count}x: {status.slips[-1].cause})" if status.slips else text


def _pending(facts: Facts) -> str:
    pending = sorted(k for k, s in live(facts.requests).items() if s.phase is Phase.PENDING_APPROVAL)
    rows = [(k, _wish(facts.requests[k]), facts.requests[k].message or "") for k in pending]
    return _table(("request", "asks for", "needs"), rows)


def _asked(facts: Facts) -> list[str]:
    """Requested slices that do not exist yet; empty if there are none."""
    waiting = (WorkspacePhase.PENDING_APPROVAL, WorkspacePhase.INVALID)
    found = [(name, r) for name, r in sorted(facts.workspaces.items()) if r.phase in waiting]
    rows = [(name, str(record.phase), record.message, _time(record.since)) for name, record in found]
    return ["## Requested slices", _table(("slice", "phase", "state", "since"), rows)] if rows else []


def _held(facts: Facts) -> list[str]:
    """Changes on main that do not count; empty if there are none."""
    holds = () if facts.trust is None else facts.trust.held
    rows = [(quoted(change.path), change.rule, change.commit[:12], _time(change.since)) for change in holds]
    if not rows:
        return []
    text = "Changes on `main` that do not count, because no person with the right to make them made or approved them."
    return ["## Held", text, _table(("file", "rule", "commit", "since"), rows, "trust.yaml")]


def _wish(status: GPRStatus) -> str:
    spec = status.accepted_spec
    shape = " or ".join(spec.gpu_shapes) or "any GPU"
    return f"{spec.nodes} × {spec.gpus_per_node} {shape}"


def _nodes(facts: Facts, wanted: Wanted) -> str:
    leased = {
        (s.assignment.cluster, n)
        for s in live(facts.requests).values()
        if s.assignment is not None and s.phase in HOLDING
        for n in s.assignment.nodes
    }
    rows = []
    for cluster, spec in sorted(wanted.clusters.items()):
        reach = facts.clusters.get(cluster)
        note = spec.mode if reach is None or reach.reachable else f"unreachable since {_time(reach.since)}"
        for pool in spec.pools:
            names = pool.node_names()
            gone = {n for n in names if _is_not_ready(facts.nodes.get((cluster, n)))}
            held = sum((cluster, n) in leased for n in names)
            free = sum((cluster, n) not in leased and n not in gone for n in names)
            shape = f"{pool.gpus_per_node} × {pool.gpu_shape}"
            rows.append(
                (f"{cluster}/{pool.name}", shape, str(len(names)), str(held), str(free), str(len(gone)), note)
            )
    return _table(("pool", "node", "nodes", "leased", "free", "out", "cluster"), rows)


def _is_not_ready(record: NodeRecord | None) -> bool:
    return record is not None and record.state is not NodeState.READY


def _out(facts: Facts) -> str:
    rows = [
        (
            f"{cluster}/{node}",
            str(record.state),
            record.reason or "",
            record.message or "",
            _time(record.since),
        )
        for (cluster, node), record in sorted(facts.nodes.items())
        if _is_not_ready(record)
    ]
    return _table(("node", "state", "reason", "message", "since"), rows)


def _time(at: datetime | None) -> str:
    return "" if at is None else f"{at:%Y-%m-%d %H:%M:%S}"


def _cell(text: str) -> str:
    return MARKUP.sub(r"\\\g<0>", " ".join(text.split()))


def _table(
    head: tuple[str, ...], rows: Iterable[tuple[str, ...]], file: str = "queue.yaml", more: int = 0
) -> str:
    """The first rows; `more` further rows exist besides `rows`."""
    kept = list(rows)
    if not kept:
        return "None."
    lines = [head, tuple("---" for _ in head), *kept[:SHOWN]]
    text = "\n".join("| " + " | ".join(_cell(text) for text in line) + " |" for line in lines)
    more = max(more, len(kept) - SHOWN)
    return text if more <= 0 else f"{text}\n\n… and {more} more in `{file}`."
