"""Evictions during a replay, by the controller's own choice.

The rules are those of `scheduler.choices.preemption`; here is only their input: which leases are evictable, and how
many each slice lost within a day.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from scheduler.choices.preemption import Terms
from scheduler.snapshot import Lease, Request
from schemas.documents.scheduling import Preemption

_DAY_S = 24 * 3600


def terms(policy: Preemption) -> Terms:
    """The policy in seconds."""
    return Terms(
        notice=int(policy.notice.total_seconds()),
        guaranteed=int(policy.guaranteed.total_seconds()),
        spare_last=int(policy.spare_last.total_seconds()),
        least_gain=int(policy.least_gain.total_seconds()),
    )


class Evicted:
    """What each slice lost, and which leases are already leaving."""

    def __init__(self, preemptible: Iterable[str], most_a_day: int) -> None:
        self._preemptible, self._most = frozenset(preemptible), most_a_day
        self._lost: dict[str, list[int]] = {}
        self._going = set[str]()

    def may_go(self, now: int, running: Mapping[str, Request], leases: Mapping[str, Lease]) -> dict[str, int]:
        """Priorities of the leases that are evictable now."""
        return {
            key: request.priority
            for key, request in running.items()
            if key in self._preemptible
            and key not in self._going
            and leases[key].start <= now
            and self._has_left(request.slice, now)
        }

    def sent(self, now: int, request: Request) -> None:
        """It was notified of its eviction."""
        self._going.add(request.key)
        if request.slice:
            self._lost.setdefault(request.slice, []).append(now)

    def gone(self, key: str) -> None:
        """It has released its nodes, and may be evicted again when it has others."""
        self._going.discard(key)

    def _has_left(self, slice_: str, now: int) -> bool:
        lost = self._lost.get(slice_, [])
        return sum(at > now - _DAY_S for at in lost) < self._most
