"""What the machines learn from requests that are over: how long people wait, what they use, how good estimates were.

`Forecast` and `FirstEstimate` stand in a request's status; `Insights` is rolled up, `EndedRecord` is what forecasts
are learnt from.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from schemas.documents.base import Document, Model
from schemas.reading.units import Duration, Instant


class Forecast(Model):
    """When a waiting request will likely start; beside the promise, which says by when at the latest."""

    p10: Instant = Field(description="One in ten starts earlier.")
    p50: Instant = Field(description="Half start earlier, half later.")
    p90: Instant = Field(description="One in ten starts later.")
    learnt_from: int = Field(ge=0, description="Number of finished requests behind it.")


class FirstEstimate(Model):
    """A request's estimate when it took its place; estimates are measured by it."""

    filed_at: Instant = Field(description="The place in the queue that it was made for.")
    start: Instant = Field(description="The first promise.")
    drawn: tuple[Instant, ...] = Field(
        (),
        max_length=3,
        description="p10, p50 and p90 of the simulated futures before calibration; empty: there was too little "
        "data.",
    )
    told: tuple[Instant, ...] = Field(
        (), max_length=3, description="p10, p50 and p90 as published; empty: none were."
    )
    served: Duration | None = Field(
        None, description="Of a request that returns after an eviction: time served before; absent: none."
    )


class Tally(Model):
    """Sums over finished requests. Waits count from filing, or from the wanted start, to the first start."""

    requests: int = Field(0, description="Number of finished requests, including those that never ran.")
    ran: int = Field(0, description="Number of those that ran.")
    asked_gpu_hours: float = Field(0.0, description="GPU-hours asked for: all GPUs of the nodes.")
    used_gpu_hours: float = Field(0.0, description="GPU-hours held until the nodes were given back.")
    wait_s: int = Field(0, description="Seconds waited, summed over those that ran.")
    waits: tuple[int, ...] = Field(
        (0,) * 9,
        max_length=10,
        description="Number that waited at most 1 and 10 minutes, 1, 4 and 12 hours, 1, 3 and 7 days, and longer.",
    )
    promised: int = Field(0, description="Number of those that ran and had a first promise.")
    error_s: int = Field(0, description="Seconds between first promise and start, earlier or later.")
    within_10min: int = Field(0, description="Starts within ten minutes of the first promise.")
    within_1h: int = Field(0, description="Starts within an hour of the first promise.")
    expected: int = Field(0, description="Number of those that ran and had a forecast.")
    expected_error_s: int = Field(0, description="Seconds between its p50 and the start.")
    covered: int = Field(0, description="Starts between p10 and p90 of the first forecast.")
    slipped: int = Field(0, description="Requests whose promise ever moved later.")


class DayTally(Tally):
    """Requests finished on one day (UTC), and the use of the fleet on that day."""

    gpus: int = Field(0, description="GPUs of all managed pools, when the day was last written.")
    held_gpu_hours: float = Field(0.0, description="GPU-hours that leases held on this day.")


class Insights(Document):
    """`insights.yaml`: statistics of finished requests; it outlives their files."""

    kind: Literal["Insights"] = Field("Insights", description="Kind of document.")
    total: Tally = Field(Tally(), description="All finished requests.")
    shapes: dict[str, Tally] = Field(default_factory=dict, description="By GPU shape; `-`: never ran.")
    slices: dict[str, Tally] = Field(default_factory=dict, description="By slice.")
    hours: dict[str, Tally] = Field(
        default_factory=dict, description="By hour of day (UTC) of filing, 00 to 23."
    )
    days: dict[str, DayTally] = Field(
        default_factory=dict, description="By day (UTC) on which they finished."
    )
    causes: dict[str, int] = Field(default_factory=dict, description="Promises moved to later, by cause.")


class EndedRecord(Document):
    """`insights/<day>.yaml`: one line for each request that finished on a day; forecasts learn from them."""

    kind: Literal["Ended"] = Field("Ended", description="Kind of document.")
    rows: tuple[str, ...] = Field(
        (),
        description="filed, start, slice, shape, nodes, duration, used, priority, pools, planned, p10, p50, p90: "
        "comma-separated; seconds since 1970 or seconds; start and the last four may be empty.",
    )
