"""`egs describe …`: everything that is known about one thing, as data."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from reconciler.model.facts import Facts
from reconciler.queries import holds, tables
from reconciler.queries.costs import cost_so_far
from reconciler.queries.event_search import EventRow
from reconciler.queries.schedule import schedule
from reconciler.queries.state import State, split
from reconciler.queries.why import reasons
from reconciler.sources.command_errors import NotFound, WrongUse
from scheduler.calendars.elastic import existing
from schemas.reading.units import instant, wire
from schemas.rules.view import gpr_path
from schemas.status.gpr_status import WAITING, GPRStatus
from schemas.status.gpu_faults import fault_kind
from schemas.status.node_status import NodeRecord

EVENTS = 20
"""Number of latest events that a description shows."""


def gpr_data(state: State, key: str, told: Sequence[EventRow], now: datetime | None = None) -> dict[str, Any]:
    """The same data from a state and the request's events; costs are as of `now` (None: the state's time)."""
    slice_, name = split(key)
    why = reasons(state, key)
    status = state.facts.requests.get(key)
    path = gpr_path(slice_, name)
    problems = [p for p in state.problems if p.file == path]
    held = holds.hold_of(state.committed, key)
    return {
        "slice": slice_,
        "name": name,
        "file": path if key in state.wanted.filed or held is not None else None,
        "why": why,
        **_standing(state, key, status),
        "cost": _cost(state, status, now or state.now),
        "status": None if status is None else status.model_dump(mode="json", by_alias=True),
        "held": None if held is None else holds.row(held),
        "problems": [
            {"rule": p.rule, "severity": p.severity, "message": p.message, "fix": p.fix} for p in problems
        ],
        "events": list(told),
    }


def _cost(state: State, status: GPRStatus | None, now: datetime) -> dict[str, Any] | None:
    """The cost so far; the status has none yet while the request runs."""
    cost = None if status is None else cost_so_far(state.wanted, status, now)
    return None if cost is None else cost.model_dump(mode="json", by_alias=True)


def _standing(state: State, key: str, status: GPRStatus | None) -> dict[str, Any]:
    """Rank, position and wait of a waiting request; they follow from the status and the clock."""
    names = ("rank", "position", "estimatedStartTime", "estimatedWaitSeconds")
    if status is None or status.phase not in WAITING:
        return dict.fromkeys(names)
    row = next(row for row in tables.queue(state) if f"{row['slice']}/{row['name']}" == key)
    return {name: row[name] for name in names}


def slice_data(state: State, name: str, told: Sequence[EventRow]) -> dict[str, Any]:
    """The data of `egs describe slice`. Raises NotFound."""
    spec = state.wanted.slices.get(name)
    if spec is None:
        raise NotFound("slice", name, state.wanted.slices)
    usage = state.facts.usage.get(name)
    row = _row(tables.slices(state), name)
    return {
        "name": name,
        "spec": spec.model_dump(mode="json", by_alias=True),
        **{key: row[key] for key in ("waiting", "holding", "gpusHeld")},
        "requests": tables.gprs(state, name),
        "usage": [] if usage is None else [m.model_dump(mode="json", by_alias=True) for m in usage.months],
        "queues": queue_rows(state.facts, name),
        "services": service_rows(state.facts, name),
        "events": list(told),
    }


def service_rows(facts: Facts, slice_: str) -> list[dict[str, Any]]:
    """What the slice exports, by cluster, with names for its other clusters; none if it exports nothing."""
    return [
        {
            "cluster": cluster,
            "state": row.state,
            "policy": row.policy,
            "message": row.message,
            "exports": [
                {**each.model_dump(mode="json", by_alias=True), "dns": each.dns} for each in row.exports
            ],
        }
        for cluster, rows in sorted(facts.services.items())
        for row in rows
        if row.slice == slice_
    ]


def queue_rows(facts: Facts, slice_: str) -> list[dict[str, Any]]:
    """The slice's queues, by cluster; none if it wants none."""
    return [
        {"cluster": cluster, **row.model_dump(mode="json", by_alias=True, exclude={"slice"})}
        for cluster, rows in sorted(facts.queues.items())
        for row in rows
        if row.slice == slice_
    ]


def cluster_data(state: State, name: str, told: Sequence[EventRow]) -> dict[str, Any]:
    """The data of `egs describe cluster`. Raises NotFound."""
    if name not in state.wanted.clusters:
        raise NotFound("cluster", name, state.wanted.clusters)
    return {
        **_row(tables.clusters(state), name),
        "spec": state.wanted.clusters[name].model_dump(mode="json", by_alias=True, exclude={"pools"}),
        "schedule": _reservations(state, name),
        "nodesOut": [row for row in tables.nodes(state, name) if row["state"] != "Ready"],
        "events": list(told),
    }


def _reservations(state: State, cluster: str) -> list[dict[str, Any]]:
    """Which request has, or will have, how many nodes of each pool."""
    rows = schedule(state.facts.requests, state.snapshot, state.wanted).rows
    return [
        {
            "request": row.key,
            "phase": str(row.phase),
            "pool": row.pool[1],
            "count": state.facts.requests[row.key].accepted_spec.nodes,
            "nodes": None if row.nodes is None else list(row.nodes),
            "start": wire(row.start),
            "end": wire(row.end),
        }
        for row in sorted(rows, key=lambda row: (row.start is None, row.start, row.key))
        if row.pool is not None and row.pool[0] == cluster
    ]


def parts_of_node(name: str) -> tuple[str, str]:
    """Cluster and name of `CLUSTER/NODE`. Raises WrongUse."""
    cluster, slash, node = name.partition("/")
    if not slash:
        raise WrongUse(f"{name} is not a node; write CLUSTER/NODE, for example east/h100-1")
    return cluster, node


def node_data(state: State, name: str, told: Sequence[EventRow]) -> dict[str, Any]:
    """The data of `egs describe node`. Raises NotFound and WrongUse."""
    key = parts_of_node(name)
    rows = tables.nodes(state) + tables.unmanaged_nodes(state)
    found = [row for row in rows if (row["cluster"], row["name"]) == key]
    if not found:
        raise NotFound(
            "node", name, (f"{pool[0]}/{n}" for pool, p in state.wanted.pools.items() for n in existing(p))
        )
    record, lease = state.facts.nodes.get(key), tables.held_nodes(state).get(key)
    return {
        **found[0],
        "heldUntil": None if lease is None else wire(instant(lease.held_until)),
        "gpus": [] if record is None else [g.model_dump(mode="json", by_alias=True) for g in record.gpus],
        "rules": _rules(record),
        "cards": [
            card.model_dump(mode="json", by_alias=True, exclude={"cluster", "node"})
            for _, card in sorted(state.facts.cards.items())
            if (card.cluster, card.node) == key
        ],
        "events": list(told),
    }


def _rules(record: NodeRecord | None) -> list[dict[str, Any]]:
    """The rules by which the agent judged, for each reason of this node."""
    if record is None:
        return []
    reasons = {r: None for g in record.gpus for r in (*g.reasons, *g.watched)} | {record.reason: None}
    kinds = [kind for reason in reasons if reason is not None and (kind := fault_kind(reason)) is not None]
    return [
        {
            "reason": kind.name,
            "evidence": kind.evidence,
            "forSeconds": int(kind.patience.total_seconds()),
            "clears": kind.clears,
            "action": str(kind.action),
            "source": kind.source,
        }
        for kind in kinds
    ]


def _row(rows: tables.Rows, name: str) -> dict[str, Any]:
    return next(row for row in rows if row["name"] == name)
