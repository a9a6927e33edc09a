"""What is wrong with GPUs now, each with what to do. Pure.

One alert for each GPU and kind, from the agent's verdict and from values of the caller's lease; a stale value raises
none. The rules for Prometheus (`deploy/`) say the same for people who are not looking.

Held by tests/reconciler/workloads/test_alerts.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from reconciler.telemetry.telemetry_port import Metric
from reconciler.workloads.gpu_rows import Gpu
from reconciler.workloads.thresholds import BRAKE_BIT, is_heated
from schemas.reading.units import format_instant
from schemas.status.xids import class_of

Row = dict[str, Any]


class Severity(StrEnum):
    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


class AlertKind(StrEnum):
    """Stable names: machines match on them."""

    GPU_UNHEALTHY = "GpuUnhealthy"
    ECC_ERRORS = "EccErrors"
    REMAP_FAILURE = "RemapFailure"
    XID = "Xid"
    HEAT_SLOWDOWN = "HeatSlowdown"
    TOO_HOT = "TooHot"
    MEMORY_TOO_HOT = "MemoryTooHot"
    POWER_BRAKE = "PowerBrake"
    HIGH_POWER = "HighPower"
    MEMORY_FULL = "MemoryFull"
    IDLE = "IdleGpu"


ADVICE = {
    AlertKind.GPU_UNHEALTHY: "an admin looks at the node; it is replaced inside the running request if a spare is free",
    AlertKind.ECC_ERRORS: "save a checkpoint: results since the error may be wrong; the GPU needs a reset",
    AlertKind.REMAP_FAILURE: "the card must be replaced; an admin quarantines the node",
    AlertKind.XID: "look up the number in the vendor's Xid catalog, and the application's log at that time",
    AlertKind.HEAT_SLOWDOWN: "check the node's cooling; the work on it runs slower until it is cooler",
    AlertKind.TOO_HOT: "check the node's cooling and its neighbours in the rack",
    AlertKind.MEMORY_TOO_HOT: "check the node's cooling; hot memory is refreshed more often and slows down",
    AlertKind.POWER_BRAKE: "an admin checks the machine's power supplies and the rack's budget",
    AlertKind.HIGH_POWER: "usual under full load; set a power limit if the rack's budget is tight",
    AlertKind.MEMORY_FULL: "lower the batch size or the cache of the model before it runs out of memory",
    AlertKind.IDLE: "release the request with `egs gpr release`, or find out with `egs diagnose` why it waits",
}
SEVERITY = {
    AlertKind.GPU_UNHEALTHY: Severity.CRITICAL,
    AlertKind.ECC_ERRORS: Severity.CRITICAL,
    AlertKind.REMAP_FAILURE: Severity.CRITICAL,
    AlertKind.XID: Severity.WARNING,
    AlertKind.HEAT_SLOWDOWN: Severity.WARNING,
    AlertKind.TOO_HOT: Severity.WARNING,
    AlertKind.MEMORY_TOO_HOT: Severity.WARNING,
    AlertKind.POWER_BRAKE: Severity.CRITICAL,
    AlertKind.HIGH_POWER: Severity.INFO,
    AlertKind.MEMORY_FULL: Severity.WARNING,
    AlertKind.IDLE: Severity.INFO,
}
ORDER = {severity: place for place, severity in enumerate(Severity)}
MEMORY_FULL_SHARE = 0.98
"""Share of the memory in use above which the next allocation is likely to fail."""


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert; `value` and `limit` in the unit that the message names."""

    kind: AlertKind
    gpu: Gpu
    message: str
    value: float | None = None
    limit: float | None = None

    @property
    def severity(self) -> Severity:
        return SEVERITY[self.kind]


def alerts_of(gpus: Iterable[Gpu], now: datetime) -> tuple[Alert, ...]:
    """The alerts of all these GPUs, the most severe first, then by kind and place."""
    found = [alert for gpu in gpus for alert in _of_gpu(gpu, now)]
    kinds = list(AlertKind)
    return tuple(
        sorted(
            found,
            key=lambda a: (
                ORDER[a.severity],
                kinds.index(a.kind),
                a.gpu.cluster,
                a.gpu.node,
                a.gpu.index or 0,
                a.gpu.uuid,
            ),
        )
    )


def _of_gpu(gpu: Gpu, now: datetime) -> Iterator[Alert]:
    device = gpu.device
    if device is not None and not device.healthy:
        yield Alert(
            AlertKind.GPU_UNHEALTHY, gpu, f"{gpu.name} is unhealthy: {', '.join(device.reasons) or 'unknown'}"
        )
    if gpu.sample is None or gpu.sample.is_stale(now):
        return
    yield from _errors(gpu)
    yield from _limits(gpu)
    yield from _use(gpu)


def _errors(gpu: Gpu) -> Iterator[Alert]:
    values = gpu.values
    if ecc := values.get(Metric.ECC_UNCORRECTABLE):
        yield Alert(
            AlertKind.ECC_ERRORS,
            gpu,
            f"{gpu.name} has {ecc:g} memory errors that cannot be corrected",
            ecc,
            0,
        )
    if values.get(Metric.REMAP_FAILURE):
        yield Alert(AlertKind.REMAP_FAILURE, gpu, f"{gpu.name} has no spare memory rows left", 1, 0)
    if (xid := values.get(Metric.XID)) and class_of(int(xid)) in gpu.limits.xids:
        yield Alert(AlertKind.XID, gpu, f"{gpu.name} reported error Xid {xid:g}", xid)


def _limits(gpu: Gpu) -> Iterator[Alert]:
    values, limits = gpu.values, gpu.limits
    heat, memory, power = (
        values.get(one) for one in (Metric.TEMPERATURE, Metric.MEMORY_TEMPERATURE, Metric.POWER)
    )
    if is_heated(values) and limits.throttled:
        at = "" if heat is None else f" at {heat:g} °C"
        yield Alert(
            AlertKind.HEAT_SLOWDOWN, gpu, f"{gpu.name} is slowed down by heat{at}", heat, limits.temp_c
        )
    if heat is not None and limits.temp_c is not None and heat >= limits.temp_c:
        text = f"{gpu.name} has {heat:g} °C; its limit is {limits.temp_c:g} °C"
        yield Alert(AlertKind.TOO_HOT, gpu, text, heat, limits.temp_c)
    if memory is not None and limits.memory_temp_c is not None and memory >= limits.memory_temp_c:
        text = f"the memory of {gpu.name} has {memory:g} °C; its limit is {limits.memory_temp_c:g} °C"
        yield Alert(AlertKind.MEMORY_TOO_HOT, gpu, text, memory, limits.memory_temp_c)
    if int(values.get(Metric.THROTTLE, 0)) & BRAKE_BIT and limits.throttled:
        yield Alert(AlertKind.POWER_BRAKE, gpu, f"{gpu.name} is slowed down by the machine's power brake")
    if power is not None and limits.power_w is not None and power >= limits.power_w:
        text = f"{gpu.name} draws {power:g} W; high is {limits.power_w:g} W"
        yield Alert(AlertKind.HIGH_POWER, gpu, text, power, limits.power_w)


def _use(gpu: Gpu) -> Iterator[Alert]:
    share = memory_share(gpu)
    if share is not None and share >= MEMORY_FULL_SHARE:
        text = f"the memory of {gpu.name} is {share:.0%} full"
        yield Alert(AlertKind.MEMORY_FULL, gpu, text, round(100 * share, 1), 100 * MEMORY_FULL_SHARE)
    if gpu.is_idle and gpu.held is not None:
        used = gpu.values[Metric.UTILISATION]
        yield Alert(AlertKind.IDLE, gpu, f"{gpu.name} is allocated to {gpu.held.request} and idle", used)


def memory_share(gpu: Gpu) -> float | None:
    """The share of its memory that is in use; None: unknown."""
    used, free = gpu.values.get(Metric.MEMORY_USED), gpu.values.get(Metric.MEMORY_FREE)
    total = None if gpu.device is None else float(gpu.device.memory_mib)
    if used is None:
        return None
    if free is not None:
        total = used + free
    return used / total if total else None


def row(alert: Alert) -> Row:
    """One alert as data."""
    gpu = alert.gpu
    return {
        "kind": str(alert.kind),
        "severity": str(alert.severity),
        "cluster": gpu.cluster,
        "node": gpu.node,
        "index": gpu.index,
        "uuid": gpu.uuid,
        "slice": None if gpu.held is None else gpu.held.slice,
        "request": None if gpu.held is None else gpu.held.request,
        "workloads": [one.key.id for one in gpu.workloads],
        "message": alert.message,
        "advice": ADVICE[alert.kind],
        "value": alert.value,
        "limit": alert.limit,
        "at": None if gpu.sample is None else format_instant(gpu.sample.at),
    }
