"""Policies of planning for the whole project: who comes first, who may be sent away, what is kept."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field

from schemas.documents.base import Model
from schemas.reading.units import Duration, Lasting, Name


class Fairness(Model):
    """Among requests of one priority, slices that used less of their share come first."""

    half_life: Annotated[
        Lasting, Field(description="GPU-hours that were used count half after this long.")
    ] = timedelta(days=7)
    step: Annotated[
        int,
        Field(
            ge=1,
            le=1_000_000,
            description="GPU-hours, over the slice's weight, of one step: less than a step apart is equal.",
        ),
    ] = 50


class Ageing(Model):
    """Whoever waits long comes earlier among the requests of their band, and never above it."""

    every: Annotated[Lasting, Field(description="How long a request waits for one step.")] = timedelta(days=1)
    step: Annotated[int, Field(ge=1, le=99, description="Priority gained with each step.")] = 10


class Preemption(Model):
    """Requests of a higher band may send preemptible ones of a lower band back into the queue."""

    guaranteed: Annotated[Duration, Field(description="Nobody is sent away before having run this long.")] = (
        timedelta(hours=1)
    )
    notice: Annotated[
        Lasting, Field(description="Time between the decision and the eviction: jobs save their work in it.")
    ] = timedelta(minutes=10)
    spare_last: Annotated[Duration, Field(description="Nobody is sent away whose own end is so near.")] = (
        timedelta(minutes=30)
    )
    least_gain: Annotated[
        Lasting, Field(description="The request has to start earlier by at least this.")
    ] = timedelta(minutes=30)
    per_slice_and_day: Annotated[
        int, Field(ge=1, le=1000, description="Requests that one slice may lose within 24 hours.")
    ] = 2


class IdleReclaim(Model):
    """Nodes that are held and not used come back."""

    max_timeout: Annotated[
        Lasting | None,
        Field(
            description="Cap of every request's idleTimeout, and its default; absent: who names none keeps."
        ),
    ] = None
    below: Annotated[
        int,
        Field(ge=0, le=50, description="A GPU whose utilisation stays at or below this is idle, percent."),
    ] = 3
    notice: Annotated[
        Lasting, Field(description="People are told this long before the nodes are released.")
    ] = timedelta(minutes=10)


class Reserve(Model):
    """Nodes of a pool that no request is planned on: extensions and replacements are served from them."""

    cluster: Annotated[Name, Field(description="Cluster of the pool.")]
    pool: Annotated[Name, Field(description="The pool.")]
    nodes: Annotated[int, Field(ge=1, le=100_000, description="How many.")]


class Scheduling(Model):
    """How waiting requests are ordered, and what planning may do for them."""

    fairness: Annotated[
        Fairness | None, Field(description="Between slices; null: among equals only the order counts.")
    ] = Fairness()
    order: Annotated[
        Literal["first-filed", "shortest-service"],
        Field(description="Among requests of equal priority and share: by time of filing, or by GPU-hours."),
    ] = "first-filed"
    ageing: Annotated[Ageing | None, Field(description="null: waiting gains nothing.")] = Ageing()
    max_displacements: Annotated[
        int,
        Field(ge=1, le=1000, description="A promise displaced so often is not displaced again in its band."),
    ] = 5
    max_wait_multiple: Annotated[
        float | None,
        Field(
            ge=1,
            le=100,
            description="Nobody waits longer than so many times what first come, first served in their band would "
            "have given them when they filed; absent: no bound.",
        ),
    ] = None
    preemption: Annotated[Preemption | None, Field(description="Absent: nobody is sent away.")] = None
    idle: Annotated[IdleReclaim, Field(description="What becomes of nodes that nobody uses.")] = IdleReclaim()
    reserve: Annotated[
        tuple[Reserve, ...], Field(max_length=1000, description="Nodes kept for extensions and replacements.")
    ] = ()
