"""The fleet in figures: what its pools hold and do, and what needs an admin. Pure; all of one view.

Held by tests/portal/pages/test_admin_pages.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import fmean
from typing import Any

from portal.views.view import View
from reconciler.model.statuses import live
from reconciler.queries import tables
from reconciler.telemetry.telemetry_port import Metric
from reconciler.workloads.gpu_rows import Gpu
from scheduler.snapshot import PoolKey
from schemas.status.gpr_status import Slip, WorkspacePhase
from schemas.status.gpu_faults import GpuAction
from schemas.status.node_status import NodeRecord, NodeState

Row = dict[str, Any]

FOR_PEOPLE = frozenset({NodeState.QUARANTINED, NodeState.SUSPECT})
"""States that only an admin ends."""


@dataclass(frozen=True, slots=True)
class PoolState:
    """A pool: what is allocated, and what the allocated GPUs do."""

    cluster: str
    pool: str
    shape: str
    nodes: int
    leased: int
    out: int
    free: int
    gpus: int
    """Of all its nodes."""
    allocated: int
    """GPUs of leased nodes."""
    measured: int
    """GPUs among those whose use is known."""
    used_percent: float | None
    """Mean use of these; None: none is measured."""
    idle: int | None
    hot: int | None


def pools(view: View, gpus: Iterable[Gpu]) -> list[PoolState]:
    """By cluster and pool; `gpus` are all that the caller sees."""
    found: dict[PoolKey, list[Gpu]] = defaultdict(list)
    for gpu in gpus:
        found[gpu.cluster, gpu.pool].append(gpu)
    return [
        _pool(cluster["name"], pool, found.get((cluster["name"], pool["name"]), []))
        for cluster in tables.clusters(view.state)
        for pool in cluster["pools"]
    ]


def _pool(cluster: str, row: Row, gpus: Sequence[Gpu]) -> PoolState:
    held = [gpu for gpu in gpus if gpu.held is not None]
    used = [gpu.values[Metric.UTILISATION] for gpu in held if Metric.UTILISATION in gpu.values]
    return PoolState(
        cluster,
        row["name"],
        row["gpuShape"],
        row["nodes"],
        row["leased"],
        row["out"],
        row["free"],
        row["nodes"] * row["gpusPerNode"],
        row["leased"] * row["gpusPerNode"],
        len(used),
        round(fmean(used), 1) if used else None,
        sum(gpu.is_idle is True for gpu in held) if used else None,
        sum(gpu.is_hot for gpu in gpus) if any(gpu.values for gpu in gpus) else None,
    )


def use_of(found: Sequence[PoolState]) -> float | None:
    """Mean use of all measured GPUs of these pools, percent."""
    measured = sum(pool.measured for pool in found)
    total = sum((pool.used_percent or 0.0) * pool.measured for pool in found)
    return round(total / measured, 1) if measured else None


@dataclass(frozen=True, slots=True)
class Need:
    """Something that waits for an admin."""

    count: int
    what: str
    path: str
    """The page on which it is dealt with."""
    is_urgent: bool = False


def needs(view: View, problems: Sequence[Row]) -> list[Need]:
    """What an admin has to do, the urgent first; `problems`: rows of `GET problems`."""
    found = [
        *_clusters_out(view),
        Need(
            sum(1 for _ in bad_nodes(view)), "node out of service|nodes out of service", "/admin/health", True
        ),
        Need(_held(view), "change of main is held|changes of main are held", "/admin/trust", True),
        Need(_asking(view), "request needs an approval|requests need an approval", "/admin/approvals"),
        Need(_workspaces(view), "workspace is asked for|workspaces are asked for", "/admin/workspaces"),
        Need(
            sum(row["severity"] == "error" for row in problems),
            "document has a problem|problems of documents",
            "/admin/problems",
        ),
    ]
    return [need for need in found if need.count]


def _clusters_out(view: View) -> Iterator[Need]:
    for name, reach in sorted(view.facts.clusters.items()):
        if not reach.reachable and name in view.wanted.clusters:
            text = f"cluster {name} does not answer"
            yield Need(1, f"{text}|{text}", f"/admin/clusters/{name}", True)


def bad_nodes(view: View) -> Iterator[NodeRecord]:
    """Nodes that people must repair, replace or clear, by cluster and name."""
    for (cluster, _), record in sorted(view.facts.nodes.items()):
        if cluster not in view.wanted.clusters:
            continue
        acts = {gpu.action for gpu in record.gpus}
        if record.state in FOR_PEOPLE or acts & {GpuAction.REPLACE, GpuAction.RESET, GpuAction.REBOOT}:
            yield record


def _held(view: View) -> int:
    return 0 if view.facts.trust is None else len(view.facts.trust.held)


def _asking(view: View) -> int:
    return sum(status.phase == "PendingApproval" for status in live(view.facts.requests).values())


def _workspaces(view: View) -> int:
    return sum(record.phase is WorkspacePhase.PENDING_APPROVAL for record in view.facts.workspaces.values())


@dataclass(frozen=True, slots=True)
class Moved:
    """A promise of a live request that moved to later."""

    request: str
    slip: Slip


def slips(view: View, since: datetime) -> list[Moved]:
    """Slips of live requests from then on, the newest first."""
    found = [
        Moved(key, slip)
        for key, status in live(view.facts.requests).items()
        for slip in status.slips
        if slip.at >= since
    ]
    return sorted(found, key=lambda one: (-one.slip.at.timestamp(), one.request))


def phases(view: View) -> Mapping[str, int]:
    """Number of live requests by phase."""
    found: dict[str, int] = defaultdict(int)
    for status in live(view.facts.requests).values():
        found[str(status.phase)] += 1
    return found
