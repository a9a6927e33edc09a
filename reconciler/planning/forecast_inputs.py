"""What forecasts learn from: finished, running and waiting requests. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from reconciler.accounts.insights import MOST_LEARNT, Ended, drawn_of, ended_of, first_of
from reconciler.model.facts import Facts
from reconciler.model.statuses import live
from scheduler.estimates.calibration import Habit, Outcome, habits
from scheduler.estimates.expected_starts import LEAST, Arrived, Learnt, Past
from scheduler.estimates.habits import Released
from scheduler.fairness.rank import band
from scheduler.snapshot import Snapshot
from schemas.reading.units import seconds
from schemas.status.gpr_status import HOLDING, Phase


@dataclass(frozen=True, slots=True)
class Lesson:
    """Statistics of the past, ready to use."""

    learnt: Learnt
    habits: Mapping[int, Habit]

    @property
    def requests(self) -> int:
        """Number of completed requests it was learned from."""
        return sum(not one.is_open for one in self.learnt.past.released)


def is_enough(facts: Facts) -> bool:
    """True if enough requests have completed for a forecast. Reads the rows of the last days once."""
    ended = (one for record in facts.ended.values() for one in _read(record.rows))
    return sum(one.start is not None for one in ended) >= LEAST


def lesson(facts: Facts, world: Snapshot) -> Lesson:
    """The statistics from committed facts. Reads the rows of the last days once, live requests each time."""
    rows = tuple(_read(record.rows) for _, record in sorted(facts.ended.items()))
    ended = [one for day in rows for one in day][-MOST_LEARNT:]
    released = (
        *(
            Released(one.slice, one.shape, one.duration, one.used, one.filed)
            for one in ended
            if one.start is not None
        ),
        *_running(facts, world),
    )
    arrived = [*(_arrived(one) for one in ended), *_living(facts, world)]
    arrived.sort(key=lambda one: (one.filed_at, one.slice, one.nodes, one.duration))
    outcomes = [*(one for row in ended if (one := _outcome(row)) is not None), *_living_outcomes(facts)]
    return Lesson(Learnt(Past(released, tuple(arrived))), habits(outcomes))


@lru_cache(maxsize=64)
def _read(rows: tuple[str, ...]) -> tuple[Ended, ...]:
    """The rows of one day, without unreadable ones."""
    return tuple(one for row in rows if (one := ended_of(row)) is not None)


def _arrived(one: Ended) -> Arrived:
    return Arrived(one.filed, one.slice, one.shape, one.nodes, one.duration, one.priority, one.pools)


def _running(facts: Facts, world: Snapshot) -> Iterator[Released]:
    """Running requests: each will use more of its time than it has by now."""
    for key, status in live(facts.requests).items():
        lease = world.leases.get(key)
        pool = None if lease is None else world.pools.get(lease.pool)
        if lease is not None and pool is not None and lease.start < world.now < lease.end:
            ran, length = world.now - lease.start, lease.end - lease.start
            filed_at = seconds(status.filed_at)
            slice_ = status.accepted_spec.slice
            yield Released(slice_, pool.gpu_shape, length, ran, filed_at, is_open=True)


def _living(facts: Facts, world: Snapshot) -> list[Arrived]:
    """Waiting and running requests also count as arrivals."""
    found = []
    for key, status in live(facts.requests).items():
        request, lease = world.requests.get(key), world.leases.get(key)
        pools = request.pools if request is not None else (lease.pool,) if lease is not None else ()
        known = next((world.pools[pool] for pool in pools if pool in world.pools), None)
        if known is not None:
            spec = status.accepted_spec
            length = int(spec.duration.total_seconds())
            filed = seconds(status.filed_at)
            shape = known.gpu_shape
            found.append(Arrived(filed, spec.slice, shape, spec.nodes, length, spec.priority, pools))
    return found


def _outcome(one: Ended) -> Outcome | None:
    if one.start is None or one.drawn is None or one.planned is None:
        return None
    return Outcome(band(one.priority), one.filed, one.planned, one.drawn, one.start)


def _living_outcomes(facts: Facts) -> list[Outcome]:
    """Outcomes of running requests, and of those still waiting."""
    found = []
    for status in live(facts.requests).values():
        first = first_of(status)
        drawn = None if first is None else drawn_of(first)
        if (
            first is not None
            and drawn is not None
            and (status.phase in HOLDING or status.phase is Phase.QUEUED)
        ):
            start = status.start_time
            found.append(
                Outcome(
                    band=band(status.accepted_spec.priority),
                    filed_at=seconds(status.filed_at),
                    planned=seconds(first.start),
                    drawn=drawn,
                    start=seconds(facts.at if start is None else start),
                    is_open=start is None,
                )
            )
    return found
