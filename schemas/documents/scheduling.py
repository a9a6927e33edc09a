"""Scheduling policies of the project: order, preemption, idle nodes and reserves."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from pydantic import Field

from schemas.documents.base import Model
from schemas.reading.units import Duration, Lasting, Name


class Fairness(Model):
    """Among requests of one priority, slices that used less of their share come first."""

    half_life: Lasting = Field(timedelta(days=7), description="After this long, used GPU-hours count half.")
    step: int = Field(
        50,
        ge=1,
        le=1_000_000,
        description="GPU-hours divided by the slice's weight; differences below one step are ignored.",
    )


class Ageing(Model):
    """Long-waiting requests move up within their band, never above it."""

    every: Lasting = Field(timedelta(days=1), description="Time of waiting per step.")
    step: int = Field(10, ge=1, le=99, description="Priority gained per step.")


class Preemption(Model):
    """Requests of a higher band may send preemptible ones of a lower band back into the queue."""

    guaranteed: Duration = Field(
        timedelta(hours=1), description="A request is not evicted before it has run this long."
    )
    notice: Lasting = Field(
        timedelta(minutes=10), description="Time between decision and eviction, for jobs to save their work."
    )
    spare_last: Duration = Field(
        timedelta(minutes=30), description="A request this close to its own end is not evicted."
    )
    least_gain: Lasting = Field(
        timedelta(minutes=30), description="The preempting request must start earlier by at least this."
    )
    per_slice_and_day: int = Field(
        2, ge=1, le=1000, description="Requests that one slice may lose within 24 hours."
    )


class IdleReclaim(Model):
    """Held but unused nodes are released."""

    max_timeout: Lasting | None = Field(
        None,
        description="Cap and default of every request's idleTimeout; absent: requests without one keep idle nodes.",
    )
    below: int = Field(
        3, ge=0, le=50, description="A GPU whose utilisation stays at or below this is idle, percent."
    )
    notice: Lasting = Field(
        timedelta(minutes=10), description="People are notified this long before the nodes are released."
    )


class Reserve(Model):
    """Nodes of a pool on which no request is planned: they serve extensions and replacements."""

    cluster: Name = Field(description="Cluster of the pool.")
    pool: Name = Field(description="The pool.")
    nodes: int = Field(ge=1, le=100_000, description="Number of nodes.")


class Credit(Model):
    """Time of failed nodes that a request does not pay for."""

    lost_time: bool = Field(
        True,
        description="From a node's fault to its replacement; without one, to its recovery or to the end.",
    )
    each: Duration = Field(
        timedelta(0),
        description="For each replaced node besides: to start again, and for work since the last checkpoint.",
    )


class Scheduling(Model):
    """How waiting requests are ordered, and what planning may do for them."""

    fairness: Fairness | None = Field(Fairness(), description="Fairness between slices; null: off.")
    order: Literal["first-filed", "shortest-service"] = Field(
        "first-filed",
        description="Among requests of equal priority and share: by time of filing, or by GPU-hours.",
    )
    ageing: Ageing | None = Field(Ageing(), description="null: waiting does not raise the priority.")
    max_displacements: int = Field(
        5, ge=1, le=1000, description="A promise displaced this often is not displaced again within its band."
    )
    max_wait_multiple: float | None = Field(
        None,
        ge=1,
        le=100,
        description="Longest wait, as a multiple of the wait that first come, first served in its band "
        "would have given it when it was filed; absent: no bound.",
    )
    preemption: Preemption | None = Field(None, description="Absent: no preemption.")
    idle: IdleReclaim = Field(IdleReclaim(), description="What happens to idle nodes.")
    reserve: tuple[Reserve, ...] = Field(
        (), max_length=1000, description="Nodes kept for extensions and replacements."
    )
    credit: Credit | None = Field(
        None, description="Absent: a request pays for its nodes whatever happens to them."
    )
