"""Builders for GPUs, leases and samples of tests in this room."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from reconciler.telemetry.telemetry_port import GpuKey, GpuSample, Metric, PodRef
from reconciler.workloads.gpu_rows import Fleet
from reconciler.workloads.leases import Held
from schemas.documents.cluster import ClusterSpec
from schemas.documents.gpr import RequestSpec
from schemas.status.gpr_status import Assignment, Check, GPRStatus, Phase
from schemas.status.node_status import GpuReport

NOW = datetime(2026, 11, 23, 14, 30, tzinfo=UTC)
HOUR = timedelta(hours=1)
H100 = {"name": "h100", "gpuShape": "H100-80GB", "gpusPerNode": 8, "memoryPerGpu": 80, "nodes": 4}
A10 = {"name": "a10", "gpuShape": "A10-24GB", "gpusPerNode": 4, "memoryPerGpu": 24, "nodes": 2}
CLUSTER = ClusterSpec.model_validate({"driver": "embedded", "pools": (H100, A10)})
HELD = Held("vision/train", "gpr-1", NOW - 2 * HOUR, NOW + HOUR)

SHORT = {
    "use": Metric.UTILISATION,
    "temp": Metric.TEMPERATURE,
    "mem_temp": Metric.MEMORY_TEMPERATURE,
    "power": Metric.POWER,
    "limit": Metric.POWER_LIMIT,
    "used": Metric.MEMORY_USED,
    "free": Metric.MEMORY_FREE,
    "clock": Metric.SM_CLOCK,
    "throttle": Metric.THROTTLE,
    "xid": Metric.XID,
    "ecc": Metric.ECC_UNCORRECTABLE,
    "remap": Metric.REMAP_FAILURE,
}
"""Short names of metrics."""


def sample(
    node: str, index: int, at: datetime = NOW, pods: tuple[PodRef, ...] = (), **values: float
) -> GpuSample:
    key = GpuKey("east", node, f"GPU-{node}-{index}")
    return GpuSample(
        key, at, {SHORT[name]: float(value) for name, value in values.items()}, index, "NVIDIA H100", pods
    )


def device(node: str, index: int, *reasons: str, **more: Any) -> GpuReport:
    return GpuReport(
        uuid=f"GPU-{node}-{index}",
        index=index,
        product="NVIDIA H100 80GB HBM3",
        memory_mib=81559,
        healthy=not reasons,
        reasons=reasons,
        **more,
    )


def fleet(*samples: GpuSample, **more: Any) -> Fleet:
    """Nodes h100-1, h100-2 and a10-1, all held by vision/train."""
    nodes = {("east", "h100-1"): "h100", ("east", "h100-2"): "h100", ("east", "a10-1"): "a10"}
    given = {
        "clusters": {"east": CLUSTER},
        "nodes": nodes,
        "held": dict.fromkeys(nodes, HELD),
        "samples": samples,
    }
    return Fleet(**(given | more))


def status(start: datetime, end: datetime, *nodes: str, **more: Any) -> GPRStatus:
    """A provisioned request."""
    spec = RequestSpec.model_validate(
        {"slice": "vision", "nodes": 1, "gpusPerNode": 8, "duration": timedelta(hours=1), "priority": 101}
    )
    given = {
        "phase": Phase.PROVISIONED,
        "uid": "gpr-1",
        "filed_at": start,
        "assignment": Assignment(cluster="east", pool="h100", nodes=nodes),
        "start_time": start,
        "end_time": end,
        "accepted_spec": spec,
        "spec_digest": "sha256:0",
    }
    return GPRStatus(**(given | more))


def check(node: str, at: datetime) -> Check:
    return Check(stage="pre", node=node, name="ready", passed=True, at=at)
