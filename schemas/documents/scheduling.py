"""Scheduling policies of the project: order, preemption, idle nodes and reserves."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field

from schemas.documents.base import Model
from schemas.reading.units import Duration, Lasting, Name


class Fairness(Model):
    """Among requests of one priority, slices that used less of their share come first."""

    half_life: Annotated[Lasting, Field(description="After this long, used GPU-hours count half.")] = (
        timedelta(days=7)
    )
    step: Annotated[
        int,
        Field(
            ge=1,
            le=1_000_000,
            description="GPU-hours divided by the slice's weight; differences below one step are ignored.",
        ),
    ] = 50


class Ageing(Model):
    """Long-waiting requests move up within their band, never above it."""

    every: Annotated[Lasting, Field(description="Time of waiting per step.")] = timedelta(days=1)
    step: Annotated[int, Field(ge=1, le=99, description="Priority gained per step.")] = 10


class Preemption(Model):
    """Requests of a higher band may send preemptible ones of a lower band back into the queue."""

    guaranteed: Annotated[
        Duration, Field(description="A request is not evicted before it has run this long.")
    ] = timedelta(hours=1)
    notice: Annotated[
        Lasting, Field(description="Time between decision and eviction, for jobs to save their work.")
    ] = timedelta(minutes=10)
    spare_last: Annotated[
        Duration, Field(description="A request this close to its own end is not evicted.")
    ] = timedelta(minutes=30)
    least_gain: Annotated[
        Lasting, Field(description="The preempting request must start earlier by at least this.")
    ] = timedelta(minutes=30)
    per_slice_and_day: Annotated[
        int, Field(ge=1, le=1000, description="Requests that one slice may lose within 24 hours.")
    ] = 2


class IdleReclaim(Model):
    """Held but unused nodes are released."""

    max_timeout: Annotated[
        Lasting | None,
        Field(
            description="Cap and default of every request's idleTimeout; absent: requests without one keep idle nodes."
        ),
    ] = None
    below: Annotated[
        int,
        Field(ge=0, le=50, description="A GPU whose utilisation stays at or below this is idle, percent."),
    ] = 3
    notice: Annotated[
        Lasting, Field(description="People are notified this long before the nodes are released.")
    ] = timedelta(minutes=10)


class Reserve(Model):
    """Nodes of a pool on which no request is planned: they serve extensions and replacements."""

    cluster: Annotated[Name, Field(description="Cluster of the pool.")]
    pool: Annotated[Name, Field(description="The pool.")]
    nodes: Annotated[int, Field(ge=1, le=100_000, description="Number of nodes.")]


class Scheduling(Model):
    """How waiting requests are ordered, and what planning may do for them."""

    fairness: Annotated[Fairness | None, Field(description="Fairness between slices; null: off.")] = (
        Fairness()
    )
    order: Annotated[
        Literal["first-filed", "shortest-service"],
        Field(description="Among requests of equal priority and share: by time of filing, or by GPU-hours."),
    ] = "first-filed"
    ageing: Annotated[Ageing | None, Field(description="null: waiting does not raise the priority.")] = (
        Ageing()
    )
    max_displacements: Annotated[
        int,
        Field(
            ge=1,
            le=1000,
            description="A promise displaced this often is not displaced again within its band.",
        ),
    ] = 5
    max_wait_multiple: Annotated[
        float | None,
        Field(
            ge=1,
            le=100,
            description="Longest wait, as a multiple of the wait that first come, first served in its band "
            "would have given it when it was filed; absent: no bound.",
        ),
    ] = None
    preemption: Annotated[Preemption | None, Field(description="Absent: no preemption.")] = None
    idle: Annotated[IdleReclaim, Field(description="What happens to idle nodes.")] = IdleReclaim()
    reserve: Annotated[
        tuple[Reserve, ...], Field(max_length=1000, description="Nodes kept for extensions and replacements.")
    ] = ()
