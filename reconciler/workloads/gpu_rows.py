"""GPUs one by one: what they are, who has them, what they do, how near they are to their limits. Pure.

Sorted by closeness to the GPU's own threshold, so that the hot ones come first whatever the product. Values are those
of the lease: the caller filters samples by `reconciler.telemetry.leased_time` before, and nothing here brings others
back.

Held by tests/reconciler/workloads/test_gpu_rows.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from reconciler.model.facts import NodeKey
from reconciler.model.pod_port import Pod
from reconciler.telemetry.telemetry_port import GpuSample, Metric
from reconciler.workloads.leases import Held
from reconciler.workloads.thresholds import Limits, closeness, is_heated, limits_of, slowdowns
from reconciler.workloads.workload import Workload
from schemas.documents.cluster import ClusterSpec
from schemas.reading.units import format_instant
from schemas.status.node_status import GpuReport

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU, from its agent, from telemetry, or from both."""

    cluster: str
    node: str
    index: int | None
    uuid: str
    pool: str = ""
    shape: str = ""
    device: GpuReport | None = None  # as its agent reported it last
    sample: GpuSample | None = None  # of the caller's lease
    held: Held | None = None
    pods: tuple[Pod, ...] = ()
    is_pod_certain: bool = False  # False: one of these pods of its node, or unknown
    workloads: tuple[Workload, ...] = ()
    limits: Limits = field(default_factory=Limits)

    @property
    def values(self) -> Mapping[Metric, float]:
        return {} if self.sample is None else self.sample.values

    @property
    def closeness(self) -> float | None:
        return closeness(self.values, self.limits)

    @property
    def is_hot(self) -> bool:
        """At one of its limits, or slowed down by heat."""
        near = self.closeness
        return (near is not None and near >= 1) or is_heated(self.values)

    @property
    def is_idle(self) -> bool | None:
        """None: its use is unknown."""
        used = self.values.get(Metric.UTILISATION)
        return None if used is None else used < self.limits.idle_percent

    @property
    def name(self) -> str:
        """For sentences: `GPU 3 on h100-2`."""
        return f"GPU {self.uuid if self.index is None else self.index} on {self.node}"


@dataclass(frozen=True, slots=True)
class Fleet:
    """What is known about the GPUs of some nodes."""

    clusters: Mapping[str, ClusterSpec]
    nodes: Mapping[NodeKey, str]  # the nodes to show, with their pools
    devices: Mapping[NodeKey, tuple[GpuReport, ...]] = field(default_factory=dict)
    samples: tuple[GpuSample, ...] = ()
    held: Mapping[NodeKey, Held] = field(default_factory=dict)
    workloads: tuple[Workload, ...] = ()


def gpus_of(fleet: Fleet) -> tuple[Gpu, ...]:
    """Every GPU of these nodes, the nearest to its own limits first; unknown ones come last, by place."""
    samples: dict[NodeKey, list[GpuSample]] = defaultdict(list)
    for sample in fleet.samples:
        samples[sample.gpu.at_node].append(sample)
    on_node = _pods_by_node(fleet.workloads)
    found = [
        gpu for key in sorted(fleet.nodes) for gpu in _of_node(key, fleet, samples[key], on_node.get(key, ()))
    ]
    return tuple(sorted(found, key=_order))


def _order(gpu: Gpu) -> tuple[float, str, str, int, str]:
    near = gpu.closeness
    index = -1 if gpu.index is None else gpu.index
    return (0.0 if near is None else -near, gpu.cluster, gpu.node, index, gpu.uuid)


Placed = tuple[Pod, Workload]


def _pods_by_node(workloads: Iterable[Workload]) -> dict[NodeKey, tuple[Placed, ...]]:
    found: dict[NodeKey, list[Placed]] = defaultdict(list)
    for workload in workloads:
        for pod in workload.pods:
            if pod.holds_gpus and pod.node is not None:
                found[pod.cluster, pod.node].append((pod, workload))
    return {key: tuple(pods) for key, pods in found.items()}


def _of_node(
    key: NodeKey, fleet: Fleet, samples: Sequence[GpuSample], pods: Sequence[Placed]
) -> Iterable[Gpu]:
    devices = {device.uuid: device for device in fleet.devices.get(key, ())}
    measured = {sample.gpu.uuid: sample for sample in samples}
    (cluster, node), spec = key, fleet.clusters.get(key[0])
    pool = fleet.nodes[key]
    declared = next((one for one in spec.pools if one.name == pool), None) if spec is not None else None
    count = max(len({*devices, *measured}), 0 if declared is None else declared.gpus_per_node)
    knows_pods = any(sample.pods for sample in samples)
    for uuid in sorted({*devices, *measured}):
        device, sample = devices.get(uuid), measured.get(uuid)
        shape = declared.gpu_shape if declared is not None else _product(device, sample)
        own, is_certain = _pods_of(sample, pods, count, knows_pods=knows_pods)
        yield Gpu(
            cluster,
            node,
            device.index if device is not None else None if sample is None else sample.index,
            uuid,
            pool,
            shape,
            device,
            sample,
            fleet.held.get(key),
            tuple(pod for pod, _ in own),
            is_certain,
            tuple({workload.key: workload for _, workload in own}.values()),
            limits_of(shape, spec, {} if sample is None else sample.values),
        )


def _product(device: GpuReport | None, sample: GpuSample | None) -> str:
    if device is not None:
        return device.product
    return "" if sample is None else sample.product


def _pods_of(
    sample: GpuSample | None, pods: Sequence[Placed], count: int, *, knows_pods: bool
) -> tuple[Sequence[Placed], bool]:
    """The pods that use the GPU: as the source says, else those of its node; certain if one pod has the whole node."""
    if sample is not None and knows_pods:
        named = {(ref.namespace, ref.pod) for ref in sample.pods}
        return [one for one in pods if (one[0].namespace, one[0].name) in named], True
    return pods, len(pods) == 1 and pods[0][0].gpus >= count


# -- rows --------------------------------------------------------------------------------------------------------------


def row(gpu: Gpu, now: datetime) -> Row:
    """One GPU as data; what is unknown is null."""
    device, sample, values = gpu.device, gpu.sample, gpu.values
    return {
        "cluster": gpu.cluster,
        "node": gpu.node,
        "index": gpu.index,
        "uuid": gpu.uuid,
        "pool": gpu.pool or None,
        "gpuShape": gpu.shape or None,
        "product": _product(device, sample) or None,
        "memoryMib": None if device is None else device.memory_mib,
        **card(device),
        "healthy": None if device is None else device.healthy,
        "reasons": [] if device is None else list(device.reasons),
        "watched": [] if device is None else list(device.watched),
        "action": None if device is None or device.action is None else str(device.action),
        "slice": None if gpu.held is None else gpu.held.slice,
        "request": None if gpu.held is None else gpu.held.request,
        "workloads": [
            {"id": one.key.id, "kind": one.key.kind, "name": one.key.name} for one in gpu.workloads
        ],
        "pods": [pod.key for pod in gpu.pods],
        "podsCertain": gpu.is_pod_certain,
        "at": None if sample is None else format_instant(sample.at),
        "stale": None if sample is None else sample.is_stale(now),
        **{name: _number(values.get(metric)) for name, metric in VALUES.items()},
        "slowedBy": list(slowdowns(values.get(Metric.THROTTLE))),
        "limits": {
            "tempC": gpu.limits.temp_c,
            "memoryTempC": gpu.limits.memory_temp_c,
            "powerW": gpu.limits.power_w,
        },
        "closeness": gpu.closeness,
        "hot": gpu.is_hot,
        "idle": gpu.is_idle,
    }


VALUES: Mapping[str, Metric] = {
    "utilisationPercent": Metric.UTILISATION,
    "memoryActivityPercent": Metric.MEMORY_ACTIVITY,
    "memoryUsedMib": Metric.MEMORY_USED,
    "tempC": Metric.TEMPERATURE,
    "memoryTempC": Metric.MEMORY_TEMPERATURE,
    "powerW": Metric.POWER,
    "powerLimitW": Metric.POWER_LIMIT,
    "smClockMhz": Metric.SM_CLOCK,
    "xid": Metric.XID,
    "eccUncorrectable": Metric.ECC_UNCORRECTABLE,
}
"""Fields of a row with a value of telemetry each."""


def _number(value: float | None) -> float | int | None:
    """Whole numbers without a point."""
    if value is None:
        return None
    return int(value) if value == int(value) else round(value, 2)


def card(device: GpuReport | None) -> Row:
    """What the card is, as its agent reports it; null: not reported."""
    if device is None:
        return dict.fromkeys(CARD)
    known = (
        *(device.serial, device.board_part, device.vbios, device.driver),
        *(
            device.mig_enabled,
            device.mig_devices,
            device.links,
            None if device.links is None else device.links_up,
        ),
    )
    return dict(zip(CARD, known, strict=True))


CARD = ("serial", "boardPart", "vbios", "driver", "migEnabled", "migDevices", "links", "linksUp")
"""Fields of a card."""


def matches(found: Row, text: str) -> bool:
    """Whether any of its names has the text; case is ignored."""
    names = [
        found[name]
        for name in ("cluster", "node", "uuid", "serial", "product", "gpuShape", "request", "pool")
    ]
    names += [*found["pods"], *found["slowedBy"], *found["reasons"]]
    names += [word for one in found["workloads"] for word in (one["name"], one["kind"], one["id"])]
    return any(text.lower() in str(name).lower() for name in names if name)
