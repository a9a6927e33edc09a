"""How near a GPU is to its own limits, and what slows it down. Pure.

A limit of one product is a good day of another: a cluster's manifest may set limits by shape, else the card's own words
count, else its product. A value that is not known takes part in nothing; it is never 0.

Held by tests/reconciler/workloads/test_gpu_rows.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from reconciler.telemetry.telemetry_port import Metric
from schemas.documents.cluster import ClusterSpec
from schemas.documents.thresholds import Thresholds
from schemas.status.xids import XidClass

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
MARGIN_C = 5.0
"""A GPU is hot so many degrees before it slows down or is taken out of service."""
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


IDLE_PERCENT = 5.0
"""Use below which a GPU counts as idle."""
XIDS_TOLD = frozenset(XidClass) - {XidClass.INFORMATIONAL}
"""Classes of Xids that count unless a cluster names others; Reset and Service always do."""


@dataclass(frozen=True, slots=True)
class Limits:
    """From these values on a GPU deserves attention; None: no limit is known."""

    temp_c: float | None = None
    memory_temp_c: float | None = None
    power_w: float | None = None
    idle_percent: float = IDLE_PERCENT
    throttled: bool = True  # whether being slowed down counts
    xids: frozenset[XidClass] = XIDS_TOLD


@dataclass(frozen=True, slots=True)
class Card:
    """What a card says of itself."""

    slowdown_c: float | None = None
    max_memory_c: float | None = None
    power_limit_w: float | None = None


def limits_of(shape: str, spec: ClusterSpec | None, values: Mapping[Metric, float]) -> Limits:
    """The limits of one GPU whose node is in that cluster; never hotter than where it is taken out of service."""
    if spec is None:
        return limits_by(Thresholds(), shape, Card(power_limit_w=values.get(Metric.POWER_LIMIT)))
    out = spec.health.of_shape(shape)
    card = Card(out.max_temperature + MARGIN_C, out.max_memory_temperature, values.get(Metric.POWER_LIMIT))
    return limits_by(spec.alerts.of_shape(shape), shape, card)


def limits_by(own: Thresholds, product: str, card: Card) -> Limits:
    """The limits by a cluster's thresholds, else by what the card says, else by the product."""
    name = product.upper().replace(" ", "-").removeprefix("NVIDIA-").removeprefix("TESLA-")
    hot = _by_product(name, HOT_BY_PRODUCT) or HOT_C
    if card.slowdown_c is not None:
        hot = min(hot, card.slowdown_c - MARGIN_C)
    memory = MEMORY_MAX_C if card.max_memory_c is None else card.max_memory_c
    return Limits(
        temp_c=hot if own.temperature is None else float(own.temperature),
        memory_temp_c=memory if own.memory_temperature is None else float(own.memory_temperature),
        power_w=_power(name, own.power_percent, card.power_limit_w),
        idle_percent=IDLE_PERCENT if own.idle_below is None else float(own.idle_below),
        throttled=own.throttled is not False,
        xids=XIDS_TOLD if own.xids is None else frozenset(own.xids) | {XidClass.RESET, XidClass.SERVICE},
    )


def _power(name: str, percent: int | None, limit_w: float | None) -> float | None:
    high = HIGH_POWER_W.get(name.partition("-")[0])
    if high is not None and percent is None:
        return high
    board_w = _by_product(name, BOARD_POWER_W) or limit_w
    share = POWER_SHARE if percent is None else percent / 100
    return None if board_w is None else round(share * board_w, 1)


def _by_product(name: str, rows: Iterable[tuple[str, float]]) -> float | None:
    """The row with the longest name that the product's begins with."""
    known = [row for row in rows if name.startswith(row[0])]
    return max(known, key=lambda row: len(row[0]))[1] if known else None


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
