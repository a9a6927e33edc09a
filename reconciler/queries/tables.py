"""The rows of `egs get …`, from a state and the clock. Pure; docs/reference/commands/look.md documents the columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from reconciler.model.facts import NodeKey
from reconciler.model.pools import is_within, unreserved
from reconciler.model.statuses import live
from reconciler.queries.costs import cost_so_far, running
from reconciler.queries.schedule import ranked_row, unranked_row
from reconciler.queries.state import State
from scheduler.calendars.elastic import existing
from scheduler.calendars.stretches import leases_by_pool
from scheduler.choices.node_choice import in_order_of_begin, need
from scheduler.choices.node_turns import NodesInTurn
from scheduler.plan import plan
from scheduler.snapshot import FOREVER, Lease, Plan, PoolKey, Snapshot, Window
from schemas.reading.units import format_duration, instant, wire
from schemas.status.gpr_status import HOLDING, WAITING, Cost, GPRStatus, Phase
from schemas.status.node_status import NodeState

Rows = list[dict[str, Any]]
SHOWN_WINDOWS = 5
"""Maintenance windows shown per node: recurring windows have no end."""
UNMANAGED = "Unmanaged"
"""Shown instead of a state for a node that is not managed."""
UNRESERVED = "Unreserved"
"""Shown instead of a state for a node that does not exist now, because its pool is reserved for other times."""


def gprs(
    state: State, slice_: str | None = None, phase: str | None = None, now: datetime | None = None
) -> Rows:
    """Every request in any phase, by slice and name; costs are as of `now` (None: the state's time)."""
    return [
        gpr_row(key, status, cost_so_far(state.wanted, status, now or state.now))
        for key, status in sorted(state.facts.requests.items())
        if slice_ in (None, key.partition("/")[0]) and phase in (None, str(status.phase))
    ]


def gpr_row(key: str, status: GPRStatus, cost: Cost | None) -> dict[str, Any]:
    spec, held, name = status.accepted_spec, status.assignment, key.partition("/")
    return {
        "slice": name[0],
        "name": name[2],
        "displayName": spec.display_name,
        "phase": str(status.phase),
        "reason": status.reason,
        "message": status.message,
        "priority": spec.priority,
        "nodes": spec.nodes,
        "gpusPerNode": spec.gpus_per_node,
        "gpuShapes": list(spec.gpu_shapes),
        "duration": format_duration(spec.duration),
        "estimatedStartTime": wire(status.estimated_start_time),
        "estimatedEndTime": wire(status.estimated_end_time),
        "forecast": None
        if status.forecast is None
        else status.forecast.model_dump(mode="json", by_alias=True),
        "startTime": wire(status.start_time),
        "endTime": wire(status.end_time),
        "cluster": held.cluster if held else status.estimated_cluster,
        "pool": held.pool if held else status.estimated_pool,
        "nodeNames": list(held.nodes) if held else None,
        "retryCount": status.retry_count,
        "delayedCount": status.delayed_count,
        "warnedAt": wire(None if status.warned is None else status.warned.at),
        "checkpointedAt": wire(None if status.checkpoint is None else status.checkpoint.at),
        "cost": None if cost is None else cost.amount,
        "currency": None if cost is None else cost.currency,
    }


def slices(state: State, now: datetime | None = None) -> Rows:
    """Every slice in force, with what it has used by `now` (None: the state's time), running leases included."""
    rows = []
    for name, spec in sorted(state.wanted.slices.items()):
        own = [s for k, s in state.facts.requests.items() if k.partition("/")[0] == name]
        usage = state.facts.usage.get(name)
        months = () if usage is None else usage.months
        runs = running(state.wanted, state.facts.requests, name, now or state.now)
        rows.append(
            {
                "name": name,
                "clusters": list(spec.clusters),
                "members": [person.email for person in spec.members],
                "quotaGpus": None if spec.quota is None else spec.quota.gpus,
                "weight": spec.weight,
                "waiting": sum(s.phase in WAITING for s in own),
                "holding": sum(s.phase in HOLDING for s in own),
                "gpusHeld": sum(_gpus(state, s) for s in own if s.phase in HOLDING),
                "gpuHours": round(sum(m.gpu_hours for m in months) + runs.gpu_hours, 4),
                "cost": round(sum(m.amount for m in months) + runs.amount, 4),
                "currency": state.wanted.project.currency,
            }
        )
    return rows


def _gpus(state: State, status: GPRStatus) -> int:
    held = status.assignment
    pool = None if held is None else state.wanted.pools.get((held.cluster, held.pool))
    return 0 if held is None or pool is None else len(held.nodes) * pool.gpus_per_node


def clusters(state: State) -> Rows:
    """Every cluster in force: whether it answers, how fresh its data is, and its pools."""
    held, absent = held_nodes(state), absences(state)
    rows = []
    for name, spec in sorted(state.wanted.clusters.items()):
        reach = state.facts.clusters.get(name)
        rows.append(
            {
                "name": name,
                "driver": spec.driver,
                "mode": spec.mode,
                "reachable": None if reach is None else reach.reachable,
                "since": None if reach is None else wire(reach.since),
                "statusTime": None if state.committed is None else wire(state.committed.at),
                "pools": [_pool_row(state, (name, pool.name), held, absent) for pool in spec.pools],
            }
        )
    return rows


def _pool_row(
    state: State, pool: PoolKey, held: Mapping[NodeKey, Lease], absent: Mapping[NodeKey, str]
) -> dict[str, Any]:
    found, cluster = state.wanted.pools[pool], pool[0]
    names = existing(found)
    out = {n for n in names if _state(state, (cluster, n)) is not NodeState.READY or (cluster, n) in absent}
    leased = {n for n in names if (cluster, n) in held}
    return {
        "name": pool[1],
        "gpuShape": found.gpu_shape,
        "gpusPerNode": found.gpus_per_node,
        "memoryPerGpu": found.memory_per_gpu,
        "pricePerGpuHour": found.price_per_gpu_hour,
        "nodes": len(names),
        "leased": len(leased),
        "out": len(out),
        "free": len(set(names) - out - leased),
    }


def nodes(state: State, cluster: str | None = None, pool: str | None = None) -> Rows:
    """Every node of a pool, and leased nodes that left theirs: the lease, and the calendar from now on."""
    held, calendars, absent = held_nodes(state), calendar_of_nodes(state), absences(state)
    names = {key: list(existing(found)) for key, found in state.wanted.pools.items()}
    pooled = {(key[0], name) for key, found in names.items() for name in found}
    for node, lease in sorted(held.items()):
        if node not in pooled:
            names.setdefault(lease.pool, []).append(node[1])
    return [
        node_row(state, (key[0], name), key[1], held, calendars) | _absence(absent.get((key[0], name)))
        for key, found in sorted(names.items())
        for name in found
        if cluster in (None, key[0]) and pool in (None, key[1])
    ]


def node_row(
    state: State, node: NodeKey, pool: str, held: Mapping[NodeKey, Lease], calendars: Mapping[NodeKey, Rows]
) -> dict[str, Any]:
    record, lease = state.facts.nodes.get(node), held.get(node)
    return {
        "cluster": node[0],
        "pool": pool,
        "name": node[1],
        "state": str(_state(state, node)),
        "reason": None if record is None else record.reason,
        "message": None if record is None else record.message,
        "since": None if record is None else wire(record.since),
        "lease": None if lease is None else lease.key,
        "schedule": calendars.get(node, []),
    }


def _absence(said: str | None) -> dict[str, Any]:
    return {} if said is None else {"state": UNRESERVED, "message": said}


def open_clusters(state: State, cluster: str | None = None) -> list[str]:
    """Managed real clusters that do not keep pods from outside slices off the nodes."""
    return [
        name
        for name, spec in sorted(state.wanted.clusters.items())
        if cluster in (None, name)
        and (spec.driver, spec.mode, spec.admission.mode) == ("kubernetes", "manage", "none")
    ]


def unmanaged_nodes(state: State, cluster: str | None = None) -> Rows:
    """GPU nodes in clusters that no pool contains, as last seen; they are never planned."""
    pooled = {(key[0], name) for key, pool in state.wanted.pools.items() for name in pool.nodes}
    return [
        {
            "cluster": name,
            "pool": None,
            "name": node.name,
            "state": UNMANAGED,
            "reason": None,
            "message": f"{node.gpus} x {node.product}, in no pool",
            "since": None,
            "lease": None,
            "schedule": [],
        }
        for name, found in sorted(state.facts.unmanaged.items())
        for node in found
        if cluster in (None, name) and name in state.wanted.clusters and (name, node.name) not in pooled
    ]


def _state(state: State, node: NodeKey) -> NodeState:
    record = state.facts.nodes.get(node)
    return NodeState.READY if record is None else record.state


def held_nodes(state: State) -> dict[NodeKey, Lease]:
    return {(lease.pool[0], n): lease for lease in state.snapshot.leases.values() for n in lease.nodes}


def absences(state: State) -> dict[NodeKey, str]:
    """Nodes without a lease that do not exist now: their pool is reserved for other times, as the sentence says."""
    held, found = held_nodes(state), {}
    for node, away in unreserved_nodes(state).items():
        window = next((one for one in away if one.begin <= state.snapshot.now < one.end), None)
        if window is not None and node not in held:
            is_last = window.end >= FOREVER
            found[node] = (
                "its reservation is over" if is_last else f"reserved from {wire(instant(window.end))}"
            )
    return found


def unreserved_nodes(state: State) -> dict[NodeKey, tuple[Window, ...]]:
    """When which nodes do not exist; only those of reserved pools."""
    return unreserved(state.wanted.clusters, state.snapshot.pools.values(), state.snapshot.now)


def calendar_of_nodes(state: State) -> dict[NodeKey, Rows]:
    """Each node's calendar: leases, maintenance, and `tentative` entries, as the plan would choose nodes now."""
    snapshot, away = state.snapshot, unreserved_nodes(state)
    found: dict[NodeKey, Rows] = {}
    for lease in sorted(snapshot.leases.values(), key=lambda lease: (lease.held_from, lease.key)):
        _enter(found, lease, is_tentative=False)
    for lease in tentative_leases(snapshot):
        _enter(found, lease, is_tentative=True)
    for pool in snapshot.pools.values():
        for node, windows in pool.windows.items():
            for window in windows[:SHOWN_WINDOWS]:
                # What begins with time itself is no maintenance: the node is out, or has a lease from elsewhere.
                is_maintenance = window.begin > 0 and window.end < FOREVER
                if is_maintenance and not is_within(window, away.get((pool.key[0], node), ())):
                    row = _calendar_row(None, window.begin, window.end, is_tentative=False)
                    found.setdefault((pool.key[0], node), []).append(row)
    return {node: sorted(rows, key=lambda row: str(row["begin"])) for node, rows in found.items()}


def tentative_leases(snapshot: Snapshot, planned: Plan | None = None) -> list[Lease]:
    """The plan with node names: what would happen if nothing changed. `planned` is the plan if it is known already."""
    planned = planned or plan(snapshot)
    busy = leases_by_pool(snapshot.leases)
    turns: dict[PoolKey, NodesInTurn] = {}
    found = []
    for place in in_order_of_begin(snapshot, planned):
        pool, request = snapshot.pools[place.pool], snapshot.requests[place.key]
        wanted = need(pool, request, place, snapshot.now)
        if pool.key not in turns:
            turns[pool.key] = NodesInTurn(pool, busy.get(pool.key, ()), snapshot.now)
        names = turns[pool.key].choose(wanted)
        if names is None:
            continue
        begin, end = wanted.hold.begin, wanted.hold.end
        found.append(Lease(place.key, request.slice, pool.key, names, begin, place.start, place.end, end))
    return found


def _enter(found: dict[NodeKey, Rows], lease: Lease, *, is_tentative: bool) -> None:
    for node in lease.nodes:
        row = _calendar_row(lease.key, lease.held_from, lease.held_until, is_tentative=is_tentative)
        found.setdefault((lease.pool[0], node), []).append(row)


def _calendar_row(key: str | None, begin: int, end: int, *, is_tentative: bool) -> dict[str, Any]:
    """One entry of a node's calendar, preparation and cleaning included; no request: maintenance."""
    return {
        "request": key,
        "begin": wire(instant(begin)),
        "end": None if end >= FOREVER else wire(instant(end)),
        "tentative": is_tentative,
    }


@dataclass(frozen=True, slots=True)
class QueuePosition:
    """The position of a waiting request; None: it is not planned."""

    rank: int | None = None
    position: int | None = None
    """Among the requests promised in the same pool, else planned in it."""
    pool: PoolKey | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """Waiting requests in rank order, then unplanned ones by name; and the plan behind it."""

    turns: Mapping[str, QueuePosition]
    planned: Plan


def line(state: State, planned: Plan | None = None) -> Line:
    """`planned` is the state's plan if the caller already has it."""
    planned, requests = planned or plan(state.snapshot), state.facts.requests
    waiting = {key: status for key, status in live(requests).items() if status.phase in WAITING}
    ahead: Counter[PoolKey] = Counter()
    found: dict[str, QueuePosition] = {}
    ranked = (key for key in planned.order if key in requests and key not in state.snapshot.leases)
    for rank, key in enumerate(ranked, start=1):
        status = waiting.pop(key, None)
        if status is not None:
            where = _promised(status) or _planned_in(planned, key)
            if where is not None:
                ahead[where] += 1
            found[key] = QueuePosition(rank, None if where is None else ahead[where], where)
    return Line(found | {key: QueuePosition() for key in sorted(waiting)}, planned)


def _planned_in(planned: Plan, key: str) -> PoolKey | None:
    place = planned.placements.get(key)
    return None if place is None else place.pool


def _promised(status: GPRStatus) -> PoolKey | None:
    cluster, pool = status.estimated_cluster, status.estimated_pool
    return None if cluster is None or pool is None else (cluster, pool)


def queue(state: State, slice_: str | None = None) -> Rows:
    """Waiting requests in rank order: the promised start if there is one, else the planned one."""
    found = line(state)
    return [queue_row(state, found, key) for key in found.turns if slice_ in (None, key.partition("/")[0])]


def queue_row(state: State, found: Line, key: str) -> dict[str, Any]:
    status, turn = state.facts.requests[key], found.turns[key]
    if turn.rank is None:
        row = unranked_row(key, status)
    else:
        row = ranked_row((key, status), (turn.rank, turn.position), state.snapshot, found.planned)
    start = status.estimated_start_time or row.start
    slice_, _, name = key.partition("/")
    where = turn.pool or _promised(status)
    wait = None if start is None else max(timedelta(), start - state.now)
    return {
        "rank": turn.rank,
        "position": turn.position,
        "slice": slice_,
        "name": name,
        "phase": str(status.phase),
        "priority": status.accepted_spec.priority,
        "nodes": status.accepted_spec.nodes,
        "estimatedStartTime": wire(start),
        "estimatedWaitSeconds": None if wait is None else int(wait.total_seconds()),
        "cluster": None if where is None else where[0],
        "pool": None if where is None else where[1],
        "promised": status.estimated_start_time is not None,
        "delayedCount": status.delayed_count,
        "reason": row.reason if status.phase is Phase.QUEUED else "NeedsApproval",
    }
