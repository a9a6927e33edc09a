"""What the machines learn from requests that are over: how long people wait, what they use, how good estimates were.

`Forecast` and `FirstEstimate` stand in a request's status; `Insights` is rolled up, `EndedRecord` is what forecasts
are learnt from.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from schemas.documents.base import Document, Model
from schemas.reading.units import Instant


class Forecast(Model):
    """When a waiting request will likely start; beside the promise, which says by when at the latest."""

    p10: Annotated[Instant, Field(description="One in ten starts earlier.")]
    p50: Annotated[Instant, Field(description="Half start earlier, half later.")]
    p90: Annotated[Instant, Field(description="One in ten starts later.")]
    learnt_from: Annotated[int, Field(ge=0, description="Number of finished requests behind it.")]


class FirstEstimate(Model):
    """A request's estimate when it took its place; estimates are measured by it."""

    filed_at: Annotated[Instant, Field(description="The place in the queue that it was made for.")]
    start: Annotated[Instant, Field(description="The first promise.")]
    drawn: Annotated[
        tuple[Instant, ...],
        Field(
            max_length=3,
            description="p10, p50 and p90 of the simulated futures before calibration; empty: there was too little "
            "data.",
        ),
    ] = ()
    told: Annotated[
        tuple[Instant, ...],
        Field(max_length=3, description="p10, p50 and p90 as published; empty: none were."),
    ] = ()


class Tally(Model):
    """Sums over finished requests. Waits count from filing, or from the wanted start, to the first start."""

    requests: Annotated[
        int, Field(description="Number of finished requests, including those that never ran.")
    ] = 0
    ran: Annotated[int, Field(description="Number of those that ran.")] = 0
    asked_gpu_hours: Annotated[float, Field(description="GPU-hours asked for: all GPUs of the nodes.")] = 0.0
    used_gpu_hours: Annotated[float, Field(description="GPU-hours held until the nodes were given back.")] = (
        0.0
    )
    wait_s: Annotated[int, Field(description="Seconds waited, summed over those that ran.")] = 0
    waits: Annotated[
        tuple[int, ...],
        Field(
            max_length=10,
            description="Number that waited at most 1 and 10 minutes, 1, 4 and 12 hours, 1, 3 and 7 days, and longer.",
        ),
    ] = (0,) * 9
    promised: Annotated[int, Field(description="Number of those that ran and had a first promise.")] = 0
    error_s: Annotated[
        int, Field(description="Seconds between first promise and start, earlier or later.")
    ] = 0
    within_10min: Annotated[int, Field(description="Starts within ten minutes of the first promise.")] = 0
    within_1h: Annotated[int, Field(description="Starts within an hour of the first promise.")] = 0
    expected: Annotated[int, Field(description="Number of those that ran and had a forecast.")] = 0
    expected_error_s: Annotated[int, Field(description="Seconds between its p50 and the start.")] = 0
    covered: Annotated[int, Field(description="Starts between p10 and p90 of the first forecast.")] = 0
    slipped: Annotated[int, Field(description="Requests whose promise ever moved later.")] = 0


class DayTally(Tally):
    """Requests finished on one day (UTC), and the use of the fleet on that day."""

    gpus: Annotated[int, Field(description="GPUs of all managed pools, when the day was last written.")] = 0
    held_gpu_hours: Annotated[float, Field(description="GPU-hours that leases held on this day.")] = 0.0


class Insights(Document):
    """`insights.yaml`: statistics of finished requests; it outlives their files."""

    kind: Annotated[Literal["Insights"], Field(description="Kind of document.")] = "Insights"
    total: Annotated[Tally, Field(description="All finished requests.")] = Tally()
    shapes: Annotated[dict[str, Tally], Field(description="By GPU shape; `-`: never ran.")] = Field(
        default_factory=dict
    )
    slices: Annotated[dict[str, Tally], Field(description="By slice.")] = Field(default_factory=dict)
    hours: Annotated[dict[str, Tally], Field(description="By hour of day (UTC) of filing, 00 to 23.")] = (
        Field(default_factory=dict)
    )
    days: Annotated[dict[str, DayTally], Field(description="By day (UTC) on which they finished.")] = Field(
        default_factory=dict
    )
    causes: Annotated[dict[str, int], Field(description="Promises moved to later, by cause.")] = Field(
        default_factory=dict
    )


class EndedRecord(Document):
    """`insights/<day>.yaml`: one line for each request that finished on a day; forecasts learn from them."""

    kind: Annotated[Literal["Ended"], Field(description="Kind of document.")] = "Ended"
    rows: Annotated[
        tuple[str, ...],
        Field(
            description="filed, start, slice, shape, nodes, duration, used, priority, pools, planned, p10, p50, p90: "
            "comma-separated; seconds since 1970 or seconds; start and the last four may be empty."
        ),
    ] = ()
