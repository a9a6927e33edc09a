"""The rows of `egs get workloads`: requests that have nodes, what they run and the nodes' health. Pure.

Held by tests/contract/test_command_contract.py and tests/portal/test_queue.py.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from reconciler.model.facts import Facts, Wanted
from reconciler.model.statuses import holders
from reconciler.queries.costs import cost_so_far, money
from schemas.reading.units import format_instant
from schemas.status.gpr_status import GPRStatus
from schemas.status.node_status import NodeState

Row = dict[str, Any]


def rows_at(wanted: Wanted, facts: Facts, now: datetime, slice_: str | None = None) -> list[Row]:
    found = sorted(holders(facts.requests).items())
    return [
        _row(wanted, facts, (key, status), now)
        for key, status in found
        if slice_ in (None, key.partition("/")[0])
    ]


def _row(wanted: Wanted, facts: Facts, one: tuple[str, GPRStatus], now: datetime) -> Row:
    (key, status), held, spec = one, one[1].assignment, one[1].accepted_spec
    slice_, _, name = key.partition("/")
    cluster, pool_name = ("", "") if held is None else (held.cluster, held.pool)
    pool = wanted.pools.get((cluster, pool_name))
    nodes = [_node(facts, cluster, node) for node in (() if held is None else held.nodes)]
    failed = [
        f"{c.node}: {c.name} {c.value}".rstrip() for c in status.checks if c.stage == "run" and not c.passed
    ]
    cost = cost_so_far(wanted, status, now)
    return {
        "gprId": status.uid,
        "name": key,
        "gprName": spec.display_name or name,
        "sliceName": slice_,
        "namespaces": list(wanted.slices[slice_].namespaces) if slice_ in wanted.slices else [],
        "phase": str(status.phase),
        "model": spec.model.model_dump(),
        "clusterName": cluster,
        "pool": pool_name,
        "gpuShape": "" if pool is None else pool.gpu_shape,
        "numGPUs": 0 if pool is None else len(nodes) * pool.gpus_per_node,
        "nodes": nodes,
        "healthy": not failed and all(node["state"] == NodeState.READY for node in nodes),
        "failedChecks": failed,
        "idleSince": "" if status.idle_since is None else format_instant(status.idle_since),
        "idleSeconds": _since(status.idle_since, now),
        "startTime": "" if status.start_time is None else format_instant(status.start_time),
        "endTime": "" if status.end_time is None else format_instant(status.end_time),
        "elapsedSeconds": _since(status.start_time, now),
        "cost": money(cost, wanted.project.currency),
        "gpuHours": 0.0 if cost is None else cost.gpu_hours,
    }


def _node(facts: Facts, cluster: str, name: str) -> Row:
    record = facts.nodes.get((cluster, name))
    if record is None:
        return {"name": name, "state": str(NodeState.READY), "reason": "", "message": "", "gpus": []}
    return {
        "name": name,
        "state": str(record.state),
        "reason": record.reason or "",
        "message": record.message or "",
        "gpus": [
            {
                "index": gpu.index,
                "product": gpu.product,
                "memoryMib": gpu.memory_mib,
                "healthy": gpu.healthy,
                "reasons": list(gpu.reasons),
            }
            for gpu in record.gpus
        ],
    }


def _since(at: datetime | None, now: datetime) -> int:
    return 0 if at is None else max(0, int((now - at).total_seconds()))
