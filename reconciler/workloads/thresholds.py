"""How near a GPU is to its own limits, and what slows it down. Pure.

A limit of one product is a good day of another: temperature by the cluster's manifest, power by the board's own
maximum. A value that is not known takes part in nothing; it is never 0.

Held by tests/reconciler/workloads/test_gpu_rows.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reconciler.telemetry.telemetry_port import Metric
from schemas.documents.cluster import Health

POWER_SHARE = 0.87
"""Share of the board's maximum above which power counts as high: 348 W of an A100, 609 W of an H100."""
BOARD_POWER_W: tuple[tuple[str, float], ...] = (
    ("GB200", 1200),
    ("B300", 1400),
    ("B200", 1000),
    ("H200", 700),
    ("H100-PCIE", 350),
    ("H100-NVL", 400),
    ("H100", 700),
    ("A100", 400),
    ("A10G", 300),
    ("A100-PCIE", 300),
    ("L40S", 350),
    ("L40", 300),
    ("L4", 72),
    ("A40", 300),
    ("A30", 165),
    ("V100", 300),
    ("T4", 70),
)
"""Boards' maxima by the start of their shape, for sources that do not tell the limit; the longest that fits counts."""
HIGH_POWER_W: Mapping[str, float] = {"A10": 140.0}
"""Boards that run at their maximum by design have a bound of their own."""
HOT_C = 87.0
"""The vendor's alarm; 85 °C was seen day by day on healthy cards."""
HOT_BY_PRODUCT: tuple[tuple[str, float], ...] = (("V100", 82.0),)
"""Products that slow down earlier than others: five degrees below where they do."""
MEMORY_MAX_C = 95.0
"""High-bandwidth memory is specified up to 95 °C, where the card does not tell its own maximum."""

HEAT_BITS = 0x20 | 0x40
"""Slowed down by heat: the driver (nvmlClocksEventReasonSwThermalSlowdown) or the hardware."""
BRAKE_BIT = 0x80
"""Slowed down by the machine's power brake."""
HARDWARE_BIT = 0x08
"""Slowed down by the hardware: heat, brake, or too fast a rise of power."""
CAP_BIT = 0x04
"""Held at the board's power limit: usual under full load."""
REASONS: tuple[tuple[int, str], ...] = (
    (0x40, "HardwareHeat"),
    (0x20, "DriverHeat"),
    (0x80, "PowerBrake"),
    (0x08, "Hardware"),
    (0x04, "PowerCap"),
    (0x10, "SyncBoost"),
    (0x02, "ApplicationClocks"),
    (0x100, "DisplayClocks"),
)
"""Bits of what slows a GPU down, worst first; an idle GPU's low clocks (0x1) are no slowdown."""


@dataclass(frozen=True, slots=True)
class Limits:
    """At these values a GPU counts as hot, or its power as high; None: no limit is known."""

    temp_c: float | None = None
    memory_temp_c: float | None = None
    power_w: float | None = None


def limits_of(shape: str, health: Health | None, values: Mapping[Metric, float]) -> Limits:
    """The limits of one GPU: its cluster's and its shape's temperatures, its board's power."""
    own = None if health is None else health.of_shape(shape)
    return Limits(
        temp_c=None if own is None else float(own.max_temperature),
        memory_temp_c=MEMORY_MAX_C if own is None else float(own.max_memory_temperature or MEMORY_MAX_C),
        power_w=_power(shape, values.get(Metric.POWER_LIMIT)),
    )


def _power(shape: str, limit_w: float | None) -> float | None:
    name = shape.upper().removeprefix("NVIDIA-")
    own = HIGH_POWER_W.get(name.partition("-")[0])
    if own is not None:
        return own
    known = sorted((row for row in BOARD_POWER_W if name.startswith(row[0])), key=lambda row: -len(row[0]))
    board_w = known[0][1] if known else limit_w
    return None if board_w is None else round(POWER_SHARE * board_w, 1)


def closeness(values: Mapping[Metric, float], limits: Limits) -> float | None:
    """The largest share of a limit that is reached; 1: at the limit. None: nothing is known."""
    pairs = (
        (Metric.TEMPERATURE, limits.temp_c),
        (Metric.MEMORY_TEMPERATURE, limits.memory_temp_c),
        (Metric.POWER, limits.power_w),
    )
    shares = [values[metric] / limit for metric, limit in pairs if limit and metric in values]
    return round(max(shares), 3) if shares else None


def slowdowns(bits: float | None) -> tuple[str, ...]:
    """What slows it down, worst first; nothing for an unknown bitmask."""
    if bits is None:
        return ()
    mask = int(bits)
    return tuple(name for bit, name in REASONS if mask & bit)


def is_heated(values: Mapping[Metric, float]) -> bool:
    """Whether heat slows it down."""
    return bool(int(values.get(Metric.THROTTLE, 0)) & HEAT_BITS)
