"""What a diagnosis is made of, and what it consists of. Pure values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from reconciler.model.pod_port import Pod, PodTrouble
from reconciler.telemetry.telemetry_port import Metric, Point, Series
from reconciler.workloads.alerts import Severity
from reconciler.workloads.gpu_rows import Gpu
from schemas.status.gpr_status import Check, Eviction


class Cause(StrEnum):
    """Stable names of findings; the order breaks ties: what explains others comes first."""

    REQUEST_WAITS = "RequestWaits"
    NO_LEASE = "NoLease"
    PODS_REFUSED = "PodsRefused"
    PODS_HELD_BACK = "PodsHeldBack"
    PODS_UNPLACED = "PodsUnplaced"
    IMAGE_PULL = "ImagePull"
    PODS_STARTING = "PodsStarting"
    OUT_OF_MEMORY = "OutOfMemory"
    PODS_CRASH = "PodsCrash"
    PODS_FAILED = "PodsFailed"
    NO_PODS = "NoPods"
    GPU_UNHEALTHY = "GpuUnhealthy"
    GPU_ERRORS = "GpuErrors"
    NODE_REPLACED = "NodeReplaced"
    LATENCY_HIGH = "LatencyHigh"
    POWER_BRAKE = "PowerBrake"
    HEAT_SLOWDOWN = "HeatSlowdown"
    ALL_IDLE = "AllIdle"
    PARTLY_USED = "PartlyUsed"
    SLOW_GPU = "SlowGpu"
    WAITING = "WaitingForOthers"
    INPUT_BOUND = "InputBound"
    GPU_MEMORY_FULL = "GpuMemoryFull"
    OVERSIZED = "Oversized"
    ENDS_EARLY = "EndsEarly"
    NO_TELEMETRY = "NoTelemetry"
    NO_PODS_SEEN = "NoPodsSeen"
    WELL = "Well"


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence, what it rests on, and what to do."""

    cause: Cause
    severity: Severity
    sentence: str
    advice: str
    evidence: tuple[str, ...] = ()
    gpus: int = 0  # how many it concerns: among equally severe ones the costlier comes first


@dataclass(frozen=True, slots=True)
class Replaced:
    """A node that left the running request."""

    node: str
    message: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Episode:
    """Everything that is known about a workload, or about all of a request."""

    now: datetime
    request: str = ""  # slice/name of the running request; empty: its slice has no nodes now
    waiting: str = ""  # slice/name of a request that waits for nodes, if that is what is asked about
    since: datetime | None = None  # start of the lease
    next_start: datetime | None = None  # of the slice's next request; None: none has a promise
    eviction: Eviction | None = None
    gpus: tuple[Gpu, ...] = ()  # of the lease, or of the workload's pods
    allocated: int = 0  # GPUs of the lease
    per_node: int = 0  # GPUs of one of its nodes
    series: tuple[Series, ...] = ()  # of these GPUs, at most the last hour
    pods: tuple[Pod, ...] = ()
    troubles: tuple[PodTrouble, ...] = ()
    checks: tuple[Check, ...] = ()  # of the request
    replaced: tuple[Replaced, ...] = ()
    silences: tuple[str, ...] = ()  # why values are missing
    pods_silence: str = ""  # why pods are missing
    is_whole: bool = True  # of the whole request, not of one of its workloads
    sees_containers: bool = True
    worked_out: dict[tuple[str, str, str, Metric], tuple[Point, ...]] = field(
        default_factory=dict, compare=False, repr=False
    )

    def __post_init__(self) -> None:
        for one in self.series:
            gpu = one.gpu
            self.worked_out[gpu.cluster, gpu.node, gpu.uuid, one.metric] = one.points

    def points(self, gpu: Gpu, metric: Metric) -> tuple[Point, ...]:
        """Values of the last hour, by time; empty: unknown."""
        return self.worked_out.get((gpu.cluster, gpu.node, gpu.uuid, metric), ())

    def mean(self, gpu: Gpu, metric: Metric) -> float | None:
        """Over the last hour, else as it is now."""
        points = self.points(gpu, metric)
        if points:
            return sum(point.value for point in points) / len(points)
        return gpu.values.get(metric)

    @property
    def measured(self) -> tuple[Gpu, ...]:
        """GPUs whose use is known and not stale."""
        return tuple(
            g
            for g in self.gpus
            if g.sample is not None and not g.sample.is_stale(self.now) and g.is_idle is not None
        )

    @property
    def busy(self) -> tuple[Gpu, ...]:
        return tuple(gpu for gpu in self.measured if not gpu.is_idle)

    @property
    def idle(self) -> tuple[Gpu, ...]:
        return tuple(gpu for gpu in self.measured if gpu.is_idle)

    @property
    def unfinished(self) -> tuple[Pod, ...]:
        """Pods with GPUs that run or wait."""
        return tuple(pod for pod in self.pods if pod.gpus and not pod.is_over)


def clock(at: datetime, now: datetime) -> str:
    """A time of a sentence: without the day if it is today's."""
    return f"{at:%H:%M} UTC" if at.date() == now.date() else f"{at:%Y-%m-%d %H:%M} UTC"


def listed(names: Iterable[str], most: int = 4) -> str:
    """`a, b and c`; of many the first, and how many more."""
    found = list(names)
    rest = len(found) - most
    if rest > 1:
        return f"{', '.join(found[:most])} and {rest} more"
    return found[0] if len(found) == 1 else f"{', '.join(found[:-1])} and {found[-1]}"


def counted(count: int, thing: str) -> str:
    """`1 pod`, `2 pods`."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def by_node(gpus: Sequence[Gpu]) -> str:
    """`GPU 3 on h100-2`; several of a node together: `GPUs 6 and 7 on h100-2`."""
    nodes: dict[str, list[str]] = {}
    for gpu in sorted(gpus, key=lambda one: (one.node, one.index or 0)):
        nodes.setdefault(gpu.node, []).append(gpu.uuid if gpu.index is None else str(gpu.index))
    return listed(
        f"{'GPU' if len(indices) == 1 else 'GPUs'} {listed(indices, 8)} on {node}"
        for node, indices in nodes.items()
    )
