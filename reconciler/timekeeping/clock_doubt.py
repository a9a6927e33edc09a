"""Whether our clock can be right, compared with other clocks. Pure; docs/decisions/023 says what counts, and why.

A clock read just now gives the time; a committed fact, or a hand-over, gives a lower bound. Our clock is in doubt
  * if it is behind a fact by more than the tolerance;
  * if it differs by more than that from at least as many clocks as agree with it, our own included.
While it is in doubt no nodes are assigned or released, except for ends that have passed by every clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.model.cluster_port import ClusterView
from reconciler.model.facts import Facts
from reconciler.model.holdings import lease_ref
from reconciler.model.statuses import holders
from schemas.status.gpr_status import Phase


@dataclass(frozen=True, slots=True)
class ClockReading:
    """A statement of one clock, or one fact, about the time."""

    who: str
    says: datetime
    is_least: bool = False  # a lower bound; as time passes it says nothing about a clock that is ahead


@dataclass(frozen=True, slots=True)
class Doubt:
    """Our clock is not trusted; `against` are the contradicting statements."""

    ours: datetime
    against: tuple[ClockReading, ...]

    @property
    def earliest(self) -> datetime:
        """A time that has passed by every clock."""
        return min(self.ours, *(reading.says for reading in self.against))

    @property
    def latest(self) -> datetime:
        return max(self.ours, *(reading.says for reading in self.against))

    @property
    def sentence(self) -> str:
        others = ", ".join(
            f"{reading.who} says {'at least ' if reading.is_least else ''}{reading.says:%Y-%m-%dT%H:%M:%SZ}"
            for reading in self.against
        )
        return (
            f"the controller's clock says {self.ours:%Y-%m-%dT%H:%M:%SZ}, but {others}; no nodes are assigned or "
            "released until they agree, except that leases over by all clocks end; correct the clock of the "
            "controller's machine, or check the others"
        )


def doubt(now: datetime, readings: Iterable[ClockReading], tolerance: timedelta) -> Doubt | None:
    """Why our clock is not trusted; None: it is."""
    said = tuple(readings)
    behind = [reading for reading in said if reading.is_least and reading.says - now > tolerance]
    clocks = [reading for reading in said if not reading.is_least]
    others = [reading for reading in clocks if abs(reading.says - now) > tolerance]
    agree = 1 + len(clocks) - len(others)  # ours is one of them
    against = (*behind, *(others if len(others) >= agree else ()))
    return Doubt(now, against) if against else None


def no_earlier(now: datetime, readings: Iterable[ClockReading]) -> datetime:
    """Our time, but never before a fact: two clocks that differ by seconds must not undo each other's starts."""
    return max([now, *(reading.says for reading in readings if reading.is_least)])


def offsets_s(now: datetime, readings: Iterable[ClockReading]) -> dict[str, float]:
    """Seconds by which each clock is ahead of ours; for a fact, how far we are behind it."""
    found = {reading.who: ((reading.says - now).total_seconds(), reading.is_least) for reading in readings}
    return {who: max(0.0, ahead) if is_least else ahead for who, (ahead, is_least) in found.items()}


def handed_over_readings(facts: Facts, views: Mapping[str, ClusterView]) -> Iterator[ClockReading]:
    """Nodes that have exactly their committed lease: when they were handed over, its start had come."""
    for key, status in holders(facts.requests).items():
        held, lease, start = status.assignment, lease_ref(key, status), status.estimated_start_time
        view = None if held is None else views.get(held.cluster)
        if status.phase is not Phase.PROVISIONING or held is None or view is None or start is None:
            continue
        if any((node := view.nodes.get(name)) is not None and node.lease == lease for name in held.nodes):
            yield ClockReading(f"a hand-over in {held.cluster}", start, is_least=True)
