"""GPUs of a fleet as a map: a row for each node, a cell for each GPU, in steps of heat. Pure.

A value that is not known has no step: absent is never cold.

Held by tests/portal/views/test_heat_map.py.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from reconciler.model.facts import NodeKey
from reconciler.telemetry.telemetry_port import Metric
from reconciler.workloads.gpu_rows import Gpu
from schemas.status.gpu_faults import FaultKind, fault_kind
from schemas.status.node_status import NodeRecord

By = Literal["limit", "temperature", "use", "power"]
WAYS: Mapping[By, str] = {
    "limit": "Nearness to its own limit, %",
    "temperature": "Temperature, °C",
    "use": "Use, %",
    "power": "Power, W",
}
_BOUNDS: Mapping[By, tuple[float, ...]] = {
    "limit": (0.6, 0.75, 0.85, 0.95, 1.0),
    "temperature": (50, 65, 75, 82, 87),
    "use": (5, 25, 50, 75, 95),
    "power": (150, 300, 450, 600, 750),
}
"""Where each step begins; below the first is step 0."""
_METRICS: Mapping[By, Metric] = {
    "temperature": Metric.TEMPERATURE,
    "use": Metric.UTILISATION,
    "power": Metric.POWER,
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One GPU."""

    gpu: Gpu
    value: float | None
    step: int | None
    """0 to 5; None: not measured."""

    @property
    def is_bad(self) -> bool:
        """Its agent says that it cannot serve."""
        return self.gpu.device is not None and not self.gpu.device.healthy


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node with its GPUs by number."""

    cluster: str
    node: str
    pool: str
    state: str
    request: str
    """That holds it; empty: none."""
    cells: tuple[Cell, ...]


def rows(gpus: Iterable[Gpu], records: Mapping[NodeKey, NodeRecord], by: By) -> list[NodeRow]:
    """By cluster and node."""
    found: dict[NodeKey, list[Gpu]] = defaultdict(list)
    for gpu in gpus:
        found[gpu.cluster, gpu.node].append(gpu)
    made = []
    for (cluster, node), own in sorted(found.items()):
        record, first = records.get((cluster, node)), own[0]
        cells = sorted((_cell(gpu, by) for gpu in own), key=lambda cell: (cell.gpu.index or 0, cell.gpu.uuid))
        made.append(
            NodeRow(
                cluster,
                node,
                first.pool,
                "Ready" if record is None else str(record.state),
                "" if first.held is None else first.held.request,
                tuple(cells),
            )
        )
    return made


def _cell(gpu: Gpu, by: By) -> Cell:
    value = gpu.closeness if by == "limit" else gpu.values.get(_METRICS[by])
    step = None if value is None else bisect_right(_BOUNDS[by], value)
    if by == "limit" and gpu.is_hot:
        step = len(_BOUNDS[by])
    return Cell(gpu, None if value is None else 100 * value if by == "limit" else value, step)


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with one GPU, with its rule."""

    gpu: Gpu
    reason: str
    kind: FaultKind | None
    """None: not of this release."""


def faults(gpus: Sequence[Gpu]) -> list[Fault]:
    """Faults and what is watched, by the agents, then errors that a source of values shows; by place."""
    found = []
    for gpu in gpus:
        told = () if gpu.device is None else (*gpu.device.reasons, *gpu.device.watched)
        found += [Fault(gpu, reason, fault_kind(reason)) for reason in told]
        xid = gpu.values.get(Metric.XID)
        reason = f"Xid{int(xid)}" if xid else ""
        if reason and reason not in told:
            found.append(Fault(gpu, reason, fault_kind(reason)))
    return sorted(found, key=lambda one: (one.gpu.cluster, one.gpu.node, one.gpu.index or 0, one.reason))
