"""The time that one process uses for decisions: read again after slow steps, and compared with other clocks.

In a simulation only facts can contradict the time given to each cycle.

Held by tests/reconciler/timekeeping/test_clock_doubt.py.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from reconciler.clock import Timepiece
from reconciler.model.clock_reading import Heard
from reconciler.model.cluster_port import ClusterView
from reconciler.model.facts import Facts
from reconciler.settings import Settings
from reconciler.timekeeping.clock_doubt import (
    ClockReading,
    Doubt,
    doubt,
    handed_over_readings,
    no_earlier,
    offsets_s,
)

log = logging.getLogger(__name__)

OWN = "the monotonic clock of the same machine"
STEP_COUNTS = timedelta(minutes=10)
"""A clock that was set, without another clock to compare, is trusted after this: it may have been corrected."""
Others = Callable[[], Mapping[str, Heard]]
"""Clocks besides those of clusters, by name."""


@dataclass(frozen=True, slots=True)
class Moment:
    """The time, and what contradicts it."""

    now: datetime
    doubt: Doubt | None = None
    offsets_s: Mapping[str, float] = field(default_factory=dict)


class Timekeeper:
    """One owner."""

    def __init__(self, settings: Settings, clock: Timepiece | None = None, others: Others = dict) -> None:
        """`clock` None: time stands still in a cycle, and no other clock is used."""
        self._settings, self._clock, self._others = settings, clock, others
        self._base: tuple[datetime, float] | None = None  # when our clock was last trusted
        self._heard: dict[str, Heard] = {}  # of clusters, at their last look
        self._since: datetime | float | None = None  # start of the present doubt: seconds, or simulated time
        self._marked_s = 0.0
        self.standing: Doubt | None = None
        """The present doubt, as it began."""

    def read(self, now: datetime) -> datetime:
        """The present; in a simulation `now`."""
        return now if self._clock is None else self._clock.now()

    def read_on(self, now: datetime) -> datetime:
        """The present, if `now` was trusted: never before that."""
        return max(now, self.read(now))

    def mark(self) -> None:
        """What is acted on is known from here on."""
        self._marked_s = 0.0 if self._clock is None else self._clock.steady_s()

    def has_paused(self) -> bool:
        """True if so much time has passed since the mark that other controllers may have acted."""
        if self._clock is None:
            return False
        return self._clock.steady_s() - self._marked_s > self._settings.pause.total_seconds()

    def look(self, now: datetime, facts: Iterable[ClockReading], views: Mapping[str, ClusterView]) -> Moment:
        """The present, compared with these facts and the clusters' clocks in these views, or the last ones."""
        now, least = self.read(now), () if self._settings.believe_clock else tuple(facts)
        self._heard |= {name: view.clock for name, view in views.items() if view.clock is not None}
        readings = (*least, *self._clocks())
        found = doubt(now, readings, self._settings.clock_tolerance)
        if found is not None and self._is_only_a_step(found, readings):
            found = None
        offsets = offsets_s(now, readings)
        return Moment(no_earlier(now, least) if found is None else now, found, offsets)

    def note(self, moment: Moment) -> None:
        """The result of a whole cycle: our clock is trusted from here on, or the doubt continues."""
        if moment.doubt is not None:
            if self.standing is None:
                log.warning("clock doubted message=%s", moment.doubt.sentence)
                self._since, self.standing = self._age(moment.now), moment.doubt
            return
        self._since = self.standing = None
        if self._clock is not None:
            self._base = (moment.now, self._clock.steady_s())

    def doubted_for(self, now: datetime) -> timedelta:
        """How long the doubt has lasted, by a monotonic clock if there is one."""
        if self._since is None:
            return timedelta()
        age = self._age(now)
        if isinstance(age, datetime):
            assert isinstance(self._since, datetime)
            return age - self._since
        assert isinstance(self._since, float)
        return timedelta(seconds=age - self._since)

    def _age(self, now: datetime) -> datetime | float:
        return now if self._clock is None else self._clock.steady_s()

    def _clocks(self) -> Iterator[ClockReading]:
        if self._clock is None:
            return
        steady_s = self._clock.steady_s()
        if self._base is not None:
            yield ClockReading(OWN, self._base[0] + timedelta(seconds=steady_s - self._base[1]))
        for name, heard in self._others().items():
            yield ClockReading(name, heard.at(steady_s))
        for name, heard in self._heard.items():
            yield ClockReading(f"the API server of {name}", heard.at(steady_s))

    def _is_only_a_step(self, found: Doubt, readings: Iterable[ClockReading]) -> bool:
        """Only this machine contradicts itself, no other clock is available, and people had time to act."""
        alone = all(reading.who == OWN for reading in found.against)
        asked = any(not reading.is_least and reading.who != OWN for reading in readings)
        return alone and not asked and self.doubted_for(found.ours) >= STEP_COUNTS


def readings_of(
    decided: datetime | None, facts: Facts | None, views: Mapping[str, ClusterView]
) -> list[ClockReading]:
    """The time according to the status branch and to nodes that were handed over."""
    readings = [] if decided is None else [ClockReading("the status branch", decided, is_least=True)]
    return readings + ([] if facts is None else list(handed_over_readings(facts, views)))
