"""Whether our clock can be right, compared with other clocks. Pure; docs/decisions/023 says what counts, and why.

There are two kinds of statements. A clock read just now gives the time. A committed fact, or a hand-over, gives a lower
bound. Our clock is in doubt
  * if it is behind a fact by more than the tolerance;
  * if it differs by more than that from at least as many clocks as agree with it, our own included.
While it is in doubt no nodes are assigned or released, except for ends that have passed by every clock.

Held by tests/reconciler/timekeeping/test_clock_doubt.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.acting.actions import Action, Do, actions, lease_ref
from reconciler.model.cluster_port import ClusterView
from reconciler.model.facts import Facts, Seen, Wanted
from reconciler.model.statuses import holders
from schemas.status.gpr_status import Phase


@dataclass(frozen=True, slots=True)
class Word:
    """A statement of one clock, or one fact, about the time."""

    who: str
    says: datetime
    is_least: bool = False  # a lower bound; as time passes it says nothing about a clock that is ahead


@dataclass(frozen=True, slots=True)
class Doubt:
    """Our clock is not trusted; `against` are the contradicting statements."""

    ours: datetime
    against: tuple[Word, ...]

    @property
    def earliest(self) -> datetime:
        """A time that has passed by every clock."""
        return min(self.ours, *(word.says for word in self.against))

    @property
    def latest(self) -> datetime:
        """The latest time by any clock."""
        return max(self.ours, *(word.says for word in self.against))

    @property
    def sentence(self) -> str:
        """The clocks' statements, for people."""
        others = ", ".join(
            f"{word.who} says {'at least ' if word.is_least else ''}{word.says:%Y-%m-%dT%H:%M:%SZ}"
            for word in self.against
        )
        return (
            f"the controller's clock says {self.ours:%Y-%m-%dT%H:%M:%SZ}, but {others}; no nodes are "
            "assigned or released "
            "until they agree, except that leases over by all clocks end; correct the clock of the "
            "controller's machine, or "
            "check the others"
        )


def doubt(now: datetime, words: Iterable[Word], tolerance: timedelta) -> Doubt | None:
    """Why our clock is not trusted; None: it is."""
    said = tuple(words)
    behind = [word for word in said if word.is_least and word.says - now > tolerance]
    clocks = [word for word in said if not word.is_least]
    others = [word for word in clocks if abs(word.says - now) > tolerance]
    agree = 1 + len(clocks) - len(others)  # ours is one of them
    against = (*behind, *(others if len(others) >= agree else ()))
    return Doubt(now, against) if against else None


def no_earlier(now: datetime, words: Iterable[Word]) -> datetime:
    """Our time, but never before a fact: two clocks that differ by seconds must not undo each other's starts."""
    return max([now, *(word.says for word in words if word.is_least)])


def offsets_s(now: datetime, words: Iterable[Word]) -> dict[str, float]:
    """Seconds by which each clock is ahead of ours; for a fact, how far we are behind it."""
    found = {word.who: ((word.says - now).total_seconds(), word.is_least) for word in words}
    return {who: max(0.0, ahead) if is_least else ahead for who, (ahead, is_least) in found.items()}


def handed_over_words(facts: Facts, views: Mapping[str, ClusterView]) -> Iterator[Word]:
    """Nodes with a committed lease: the process that handed them over knew that its start had come.

    After a move of the start the end differs.
    """
    for key, status in holders(facts.requests).items():
        held, lease, start = status.assignment, lease_ref(key, status), status.estimated_start_time
        view = None if held is None else views.get(held.cluster)
        if status.phase is not Phase.PROVISIONING or held is None or view is None or start is None:
            continue
        if any((node := view.nodes.get(name)) is not None and node.lease == lease for name in held.nodes):
            yield Word(f"a hand-over in {held.cluster}", start, is_least=True)


def agreed_ends(
    wanted: Wanted, facts: Facts, seen: Seen, earliest: datetime, tolerance: timedelta
) -> tuple[Action, ...]:
    """Releases and notices whose time has come by every clock; nothing else."""
    over = set()
    for key, status in holders(facts.requests).items():
        lease = lease_ref(key, status)
        if lease is not None and lease.end <= earliest:
            over.add(status.uid)
    return tuple(
        action
        for action in actions(wanted, facts, seen, earliest, tolerance)
        if action.lease is not None
        and (action.do is Do.EVICT or (action.do is Do.REMOVE and action.lease.uid in over))
    )


def next_end(facts: Facts, earliest: datetime) -> timedelta | None:
    """Time until the next end by the slowest clock."""
    leases = (lease_ref(key, status) for key, status in holders(facts.requests).items())
    left = [lease.end - earliest for lease in leases if lease is not None and lease.end > earliest]
    return min(left, default=None)
