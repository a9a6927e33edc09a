"""The port through which everything else sees values of GPUs over time.

Pure values and one protocol. Sources are Prometheus, the agents' own rings, and simulated clusters; one contract suite
(tests/contract/test_telemetry_contract.py) runs on each.

What always holds:
  * a value that a source does not have is absent, and never 0;
  * a source that does not answer is a `Silence` in the answer and never an exception, so that others still count;
  * an answer has only GPUs of the nodes that were asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Literal, NamedTuple, Protocol

from schemas.errors import UserError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""Points of a series lie on whole multiples of its step from here."""

NodeKey = tuple[str, str]
"""Cluster and node."""

STALE_AFTER = timedelta(seconds=60)
"""An older sample is stale: shown as such, and no basis of a decision."""
KEPT = timedelta(minutes=5)
"""An older sample is absent from `latest`."""
MOST_POINTS = 2000
"""Points of one series: more than a chart has pixels."""

Unit = Literal["%", "°C", "W", "J", "MiB", "MHz", "bits", "Xid", "count", "bool"]
Summary = Literal["mean", "highest", "last"]
"""How several samples become one point."""


class Metric(StrEnum):
    """What is measured on a GPU; the value is its name in answers, mostly that of the agent's reading."""

    UTILISATION = "utilisation_percent"
    MEMORY_ACTIVITY = "memory_activity_percent"  # share of the time in which memory was read or written
    TEMPERATURE = "temp_c"
    MEMORY_TEMPERATURE = "memory_temp_c"
    POWER = "power_w"
    POWER_LIMIT = "power_limit_w"  # enforced now
    ENERGY = "energy_j"  # since the driver was loaded
    MEMORY_USED = "memory_used_mib"
    MEMORY_FREE = "memory_free_mib"
    SM_CLOCK = "sm_clock_mhz"
    MEMORY_CLOCK = "memory_clock_mhz"
    THROTTLE = "throttle"  # bits, nvmlClocksEventReason*; 0: nothing slows it down
    XID = "xid"  # the last one; 0: none since the exporter started
    ECC_CORRECTED = "ecc_corrected"  # since the driver was loaded
    ECC_UNCORRECTABLE = "ecc_uncorrectable"  # since the driver was loaded
    REMAPPED_CORRECTABLE = "remapped_correctable"  # rows, over the card's life
    REMAPPED_UNCORRECTABLE = "remapped_uncorrectable"
    REMAP_FAILURE = "remap_failure"  # 1: no spare rows are left
    PCIE_REPLAYS = "pcie_replays"  # since the driver was loaded

    @property
    def unit(self) -> Unit:
        """What one of it is."""
        return UNITS[self]

    @property
    def summary(self) -> Summary:
        """How the samples of a point's window become its value."""
        return _SUMMARIES.get(self, "mean")


UNITS: Mapping[Metric, Unit] = {
    Metric.UTILISATION: "%",
    Metric.MEMORY_ACTIVITY: "%",
    Metric.TEMPERATURE: "°C",
    Metric.MEMORY_TEMPERATURE: "°C",
    Metric.POWER: "W",
    Metric.POWER_LIMIT: "W",
    Metric.ENERGY: "J",
    Metric.MEMORY_USED: "MiB",
    Metric.MEMORY_FREE: "MiB",
    Metric.SM_CLOCK: "MHz",
    Metric.MEMORY_CLOCK: "MHz",
    Metric.THROTTLE: "bits",
    Metric.XID: "Xid",
    Metric.ECC_CORRECTED: "count",
    Metric.ECC_UNCORRECTABLE: "count",
    Metric.REMAPPED_CORRECTABLE: "count",
    Metric.REMAPPED_UNCORRECTABLE: "count",
    Metric.REMAP_FAILURE: "bool",
    Metric.PCIE_REPLAYS: "count",
}

_SUMMARIES: Mapping[Metric, Summary] = {
    Metric.TEMPERATURE: "highest",  # a peak between two points is what people look for
    Metric.MEMORY_TEMPERATURE: "highest",
    Metric.REMAP_FAILURE: "highest",
    **dict.fromkeys(  # a sum, a set of bits or a number of an error has no mean
        (
            Metric.ENERGY,
            Metric.THROTTLE,
            Metric.XID,
            Metric.ECC_CORRECTED,
            Metric.ECC_UNCORRECTABLE,
            Metric.REMAPPED_CORRECTABLE,
            Metric.REMAPPED_UNCORRECTABLE,
            Metric.PCIE_REPLAYS,
        ),
        "last",
    ),
}


@dataclass(frozen=True, slots=True, order=True)
class GpuKey:
    """One GPU in one node. A card that moved to another node is another key there."""

    cluster: str
    node: str
    uuid: str

    @property
    def at_node(self) -> NodeKey:
        return self.cluster, self.node


@dataclass(frozen=True, slots=True, order=True)
class PodRef:
    """A container that uses a GPU; `container` is empty where the source does not tell it."""

    namespace: str
    pod: str
    container: str = ""


@dataclass(frozen=True, slots=True)
class GpuSample:
    """One GPU at one instant."""

    gpu: GpuKey
    at: datetime  # when it was measured
    values: Mapping[Metric, float]  # what is not here is unknown
    index: int | None = None  # in its node
    product: str = ""  # empty: unknown
    pods: tuple[PodRef, ...] = ()  # sorted; empty also where the source does not know pods

    def is_stale(self, now: datetime) -> bool:
        return now - self.at > STALE_AFTER


class Point(NamedTuple):
    """One value of a series."""

    at: datetime
    value: float


@dataclass(frozen=True, slots=True)
class Series:
    """One metric of one GPU over time. A point at `t` summarises the samples in (t - window, t]."""

    gpu: GpuKey
    metric: Metric
    window: timedelta
    points: tuple[Point, ...]  # by time; where the source has no sample there is no point


@dataclass(frozen=True, slots=True)
class Query:
    """Series of some nodes' GPUs; points lie on whole multiples of `step` in [since, until].

    Raises `UserError` (`BadRange`) if it is empty, too fine, or has too many points.
    """

    nodes: frozenset[NodeKey]
    metrics: tuple[Metric, ...]
    since: datetime
    until: datetime
    step: timedelta

    def __post_init__(self) -> None:
        if self.step < timedelta(seconds=1) or self.step % timedelta(seconds=1):
            raise UserError("a step is a whole number of seconds, at least 1", "BadRange")
        if self.since > self.until:
            raise UserError("a range ends after it begins", "BadRange")
        if (self.until - self.since) / self.step > MOST_POINTS:
            text = f"a range has at most {MOST_POINTS} points; choose a longer step or a shorter range"
            raise UserError(text, "BadRange")

    @property
    def window(self) -> timedelta:
        """What each point summarises: never less than a sample may be old."""
        return max(self.step, STALE_AFTER)

    def instants(self) -> tuple[datetime, ...]:
        """The instants of its points."""
        first = -((EPOCH - self.since) // self.step)  # rounded up
        last = (self.until - EPOCH) // self.step
        return tuple(EPOCH + number * self.step for number in range(first, last + 1))


@dataclass(frozen=True, slots=True)
class Silence:
    """Why there are no values of a cluster, or of one of its nodes."""

    cluster: str
    reason: str  # NoMetrics, MetricsUnreachable, MetricsSlow, MetricsRefused, MetricsUnreadable
    message: str  # a sentence for people
    node: str = ""  # empty: of all its nodes


@dataclass(frozen=True, slots=True)
class Latest:
    """The newest sample of each GPU, by key."""

    samples: tuple[GpuSample, ...] = ()
    silences: tuple[Silence, ...] = ()


@dataclass(frozen=True, slots=True)
class Ranges:
    """Series by GPU, then in the query's order of metrics; a series without points is left out."""

    series: tuple[Series, ...] = ()
    silences: tuple[Silence, ...] = ()


DEADLINE = timedelta(seconds=2)
"""A slower source is silent: a page shows what there is instead of waiting."""
SHARED = timedelta(seconds=15)
"""How long an answer serves other callers: pages of many people ask for the same figures."""


class Telemetry(Protocol):
    """Values of GPUs. Answers within `DEADLINE`; the answers of the last `SHARED` are shared by all callers."""

    def latest(self, nodes: Collection[NodeKey], now: datetime, /) -> Latest:
        """The newest sample of each GPU of these nodes, none older than `KEPT`."""

    def range(self, query: Query, now: datetime, /) -> Ranges:
        """Series of the query, as far back as the source remembers."""
