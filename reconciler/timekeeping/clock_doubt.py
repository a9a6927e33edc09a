"""Whether our clock can be right, by what other clocks say. Pure; docs/decisions/023 says what counts, and why.

Two kinds of words count. A clock that was asked just now says what time it is. A fact that somebody committed, or
handed over, says that it is at least so late. Our clock is in doubt
  * when it is behind a fact by more than the tolerance;
  * when it is no nearer than that to at least as many clocks as agree with it, our own among these.
While it is in doubt nothing is given or taken; an end that has passed by every clock is carried out.

Held by tests/reconciler/timekeeping/test_clock_doubt.py.
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
    """What one clock, or one fact, says of the present."""

    who: str
    says: datetime
    is_least: bool = (
        False  # it is at least so late; as time goes on that says nothing of a clock that is ahead
    )


@dataclass(frozen=True, slots=True)
class Doubt:
    """Our clock is not to be believed; `against` are those that say otherwise."""

    ours: datetime
    against: tuple[ClockReading, ...]

    @property
    def earliest(self) -> datetime:
        """What has passed by then has passed by every clock."""
        return min(self.ours, *(reading.says for reading in self.against))

    @property
    def latest(self) -> datetime:
        """Nothing that was said of the present is later."""
        return max(self.ours, *(reading.says for reading in self.against))

    @property
    def sentence(self) -> str:
        """What the clocks say, for people."""
        others = ", ".join(
            f"{reading.who} says {'at least ' if reading.is_least else ''}{reading.says:%Y-%m-%dT%H:%M:%SZ}"
            for reading in self.against
        )
        return (
            f"the controller's clock says {self.ours:%Y-%m-%dT%H:%M:%SZ}, but {others}; nothing is given or taken "
            "until they agree, but what is over by all of them ends; set the clock of the controller's machine, or "
            "look at the others"
        )


def doubt(now: datetime, readings: Iterable[ClockReading], tolerance: timedelta) -> Doubt | None:
    """Why our clock is not to be believed; None: it is."""
    said = tuple(readings)
    behind = [reading for reading in said if reading.is_least and reading.says - now > tolerance]
    clocks = [reading for reading in said if not reading.is_least]
    others = [reading for reading in clocks if abs(reading.says - now) > tolerance]
    agree = 1 + len(clocks) - len(others)  # ours is one
    against = (*behind, *(others if len(others) >= agree else ()))
    return Doubt(now, against) if against else None


def no_earlier(now: datetime, readings: Iterable[ClockReading]) -> datetime:
    """Our time, but never before a fact: two clocks that differ by seconds must not undo each other's starts."""
    return max([now, *(reading.says for reading in readings if reading.is_least)])


def offsets_s(now: datetime, readings: Iterable[ClockReading]) -> dict[str, float]:
    """Seconds by which each clock is ahead of ours; of a fact, how far we are behind it."""
    found = {reading.who: ((reading.says - now).total_seconds(), reading.is_least) for reading in readings}
    return {who: max(0.0, ahead) if is_least else ahead for who, (ahead, is_least) in found.items()}


def handed_over_readings(facts: Facts, views: Mapping[str, ClusterView]) -> Iterator[ClockReading]:
    """Nodes that bear a committed lease: whoever handed them over knew its start to have come.

    One whose start was moved since bears another end.
    """
    for key, status in holders(facts.requests).items():
        held, lease, start = status.assignment, lease_ref(key, status), status.estimated_start_time
        view = None if held is None else views.get(held.cluster)
        if status.phase is not Phase.PROVISIONING or held is None or view is None or start is None:
            continue
        if any((node := view.nodes.get(name)) is not None and node.lease == lease for name in held.nodes):
            yield ClockReading(f"a hand-over in {held.cluster}", start, is_least=True)
