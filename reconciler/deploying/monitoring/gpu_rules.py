"""Rules for Prometheus about GPUs: what `egs get alerts` says, for people who are not looking. Pure.

The first group makes one series for each GPU and its limits by product, which the alerts of the second compare. A
shape's own thresholds in a Cluster document are the agents' and the portal's: Prometheus does not read Git, so these
rules have the defaults.

Held by tests/deploy/test_gpu_rules.py, which promtool runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from reconciler.deploying.monitoring.promql import EXPORTED, GPU_LABELS, PLAIN, by_gpu, model_pattern
from reconciler.telemetry.dcgm_names import NAMES
from reconciler.telemetry.telemetry_port import Metric
from reconciler.workloads.alerts import ADVICE, AlertKind
from reconciler.workloads.thresholds import (
    BOARD_POWER_W,
    HIGH_POWER_W,
    HOT_BY_PRODUCT,
    HOT_C,
    MEMORY_MAX_C,
    POWER_SHARE,
)
from schemas.status.xids import FATAL, XIDS, XidClass

Json = dict[str, Any]

WHERE = "GPU {{ $labels.gpu }} of {{ $labels.Hostname }}"
IDLE_PERCENT = 5
HEAT, POWER, XID = "gpu:temp_c:max", "gpu:power_w:max", "gpu:xid:last"
MEMORY_HEAT, BITS = "gpu:memory_temp_c:max", "gpu:throttle:bits"
HIGH_HEAT, HIGH_POWER = "gpu:temp_c:high", "gpu:power_w:high"


@dataclass(frozen=True, slots=True)
class Alert:
    """One rule; `meaning` and `advice` are sentences for the person who is told."""

    name: str
    expr: str
    severity: str
    summary: str
    meaning: str
    advice: str
    lasts: str = "1m"

    def rule(self) -> Json:
        return {
            "alert": self.name,
            "expr": self.expr,
            "for": self.lasts,
            "labels": {"severity": self.severity},
            "annotations": {
                "summary": self.summary,
                "description": self.meaning,
                "advice": self.advice,
                "runbook": f"docs/reference/gpu-alerts.md#{self.name.lower()}",
            },
        }


def rules() -> Json:
    """The groups of a file with rules, or of a PrometheusRule."""
    return {
        "groups": [
            {"name": "egs-gpu-values", "rules": list(_values())},
            {"name": "egs-gpus", "rules": [alert.rule() for alert in ALERTS]},
        ]
    }


def _values() -> Iterator[Json]:
    for name, metric in (
        (HEAT, Metric.TEMPERATURE),
        (MEMORY_HEAT, Metric.MEMORY_TEMPERATURE),
        (POWER, Metric.POWER),
        (BITS, Metric.THROTTLE),
        (XID, Metric.XID),
    ):
        yield {"record": name, "expr": by_gpu(metric)}
    yield {"record": HIGH_HEAT, "expr": f"{_by_model(HEAT, HOT_BY_PRODUCT)} or 0 * {HEAT} + {HOT_C:g}"}
    yield {"record": HIGH_POWER, "expr": _high_power()}


def _high_power() -> str:
    """Watts by the board, which the shape's name tells; another board's by the limit that it reports."""
    own = [(name, watts) for name, watts in HIGH_POWER_W.items()]
    boards = [*own, *((name, round(POWER_SHARE * watts, 1)) for name, watts in BOARD_POWER_W)]
    return f"{_by_model(POWER, boards)} or {POWER_SHARE} * {by_gpu(Metric.POWER_LIMIT)}"


def _by_model(series: str, limits: Iterable[tuple[str, float]]) -> str:
    """Each GPU's limit; where several names fit, the longest counts, which is the most special one."""
    ordered = sorted(limits, key=lambda row: (-len(row[0]), row[0]))
    return " or ".join(
        f'0 * {series}{{modelName=~"{model_pattern(name)}"}} + {limit:g}' for name, limit in ordered
    )


def _any_of(numbers: Iterable[int]) -> str:
    return " or ".join(f"{XID} == {number}" for number in sorted(numbers))


def _new(numbers: Iterable[int]) -> str:
    """An error that does not stay: the exporter shows the last one until the driver is loaded again."""
    return f"({_any_of(numbers)}) and changes({XID}[15m]) > 0"


def _idle() -> str:
    """Use of GPUs that a pod has, at its highest within some minutes: pauses between batches are work."""
    name = NAMES[Metric.UTILISATION].names[0]
    parts = (f"max_over_time({name}{{{where}}}[5m])" for where in (EXPORTED, PLAIN))
    return f"max by ({GPU_LABELS}) (({' or '.join(parts)}) < 1e6) < {IDLE_PERCENT}"


ALERTS: tuple[Alert, ...] = (
    Alert(
        "EgsGpuHot",
        f"{HEAT} >= {HIGH_HEAT}",
        "warning",
        f"{WHERE} has {{{{ $value }}}} °C",
        "It is as hot as its product should never be for long; the hardware soon slows it down.",
        ADVICE[AlertKind.TOO_HOT],
        "2m",
    ),
    Alert(
        "EgsGpuMemoryHot",
        f"{MEMORY_HEAT} >= {MEMORY_MAX_C:g}",
        "warning",
        f"The memory of {WHERE} has {{{{ $value }}}} °C",
        "High-bandwidth memory is specified up to this temperature.",
        ADVICE[AlertKind.MEMORY_TOO_HOT],
        "2m",
    ),
    Alert(
        "EgsGpuPowerHigh",
        f"{POWER} >= {HIGH_POWER}",
        "info",
        f"{WHERE} draws {{{{ $value | humanize }}}} W",
        "It draws nearly as much as its board may.",
        ADVICE[AlertKind.HIGH_POWER],
        "10m",
    ),
    Alert(
        "EgsGpuThrottled",
        f"{BITS} % 128 >= 32",  # 0x20 or 0x40: heat, by the driver or by the hardware
        "warning",
        f"{WHERE} is slowed down by heat",
        "Work on it takes longer, and so does every job that waits for it.",
        ADVICE[AlertKind.HEAT_SLOWDOWN],
    ),
    Alert(
        "EgsGpuPowerBrake",
        f"{BITS} % 256 >= 128",
        "critical",
        f"{WHERE} is slowed down by the machine's power brake",
        "The machine asks its GPUs to draw less at once.",
        ADVICE[AlertKind.POWER_BRAKE],
    ),
    Alert(
        "EgsGpuIdle",
        _idle(),
        "info",
        f"{WHERE} is allocated and idle",
        "A pod has had it for half an hour, and it was never used.",
        ADVICE[AlertKind.IDLE],
        "25m",
    ),
    Alert(
        "EgsGpuXidFatal",
        _any_of(FATAL),
        "critical",
        f"{WHERE} reported Xid {{{{ $value }}}}, after which it needs a reset or service",
        "It must not be used until it is repaired; our agents take it out of service.",
        ADVICE[AlertKind.XID],
    ),
    Alert(
        "EgsGpuXidHardware",
        _new(XIDS[XidClass.DEPENDS]),
        "warning",
        f"{WHERE} reported Xid {{{{ $value }}}}, an error of its hardware or links",
        "It goes on working; whether it needs more, the driver says.",
        ADVICE[AlertKind.XID],
        "0s",
    ),
    Alert(
        "EgsGpuXidApplication",
        _new(XIDS[XidClass.APPLICATION]),
        "info",
        f"{WHERE} reported Xid {{{{ $value }}}}, an error of the application",
        "The GPU is fine; the program on it did something wrong.",
        ADVICE[AlertKind.XID],
        "0s",
    ),
    Alert(
        "EgsGpuMemoryErrors",
        f"{by_gpu(Metric.ECC_UNCORRECTABLE)} > 0",
        "critical",
        f"{WHERE} has {{{{ $value }}}} memory errors that cannot be corrected",
        "Results since then may be wrong.",
        ADVICE[AlertKind.ECC_ERRORS],
    ),
    Alert(
        "EgsGpuRemapFailure",
        f"{by_gpu(Metric.REMAP_FAILURE)} > 0",
        "critical",
        f"{WHERE} has no spare memory rows left",
        "The next error of its memory cannot be put right.",
        ADVICE[AlertKind.REMAP_FAILURE],
    ),
    Alert(
        "EgsGpuSilent",
        f"max_over_time({HEAT}[30m]) unless {HEAT}",
        "warning",
        f"{WHERE} is measured no more",
        "Its exporter, its node or the GPU itself does not answer.",
        "look at the node and at the exporter's pod; an admin who took the GPU out need do nothing",
        "5m",
    ),
)
"""What people are told, the most usual first."""
