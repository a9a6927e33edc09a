"""Which pools serve a waiting request now, and which only when the wait elsewhere is too long. Pure.

Beside what fits and what is allowed: bounds per month that bar pools, what a request prefers, and clusters marked
burst with their own GPU-hours of a month, for all slices together.

Held by tests/reconciler/test_offering.py: what is used of a burst cluster, and promised there, is never beyond its
hours of a month.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reconciler.charging import barred_pools
from reconciler.conditions import lease_duration
from reconciler.facts import Facts, Wanted
from reconciler.hours import hours, month_of, spent_in, under_way
from reconciler.records import live
from scheduler.choosing import Bursts, Choice, Choosing, choice, is_short, is_timely
from scheduler.fit import Pools, candidate_pools, usable_pools
from scheduler.snapshot import PoolKey, Promise
from schemas.elastic import Burst
from schemas.gpr import RequestSpec
from schemas.status import GPRStatus, Phase
from schemas.units import seconds


@dataclass(frozen=True, slots=True)
class Offering:
    """What all choices of one instant share. `shut` has the burst clusters without hours left, by request."""

    wanted: Wanted
    pools: Pools  # with the health of their nodes
    now: int
    bursts: Bursts
    shut: Mapping[str, frozenset[str]]

    def of(self, key: str, status: GPRStatus, promise: Promise | None) -> Choice:
        """The pools that serve a request of a slice that is there; managed ones before those only observed."""
        open_ = open_pools(status, self.wanted)
        shut = self.shut.get(key, frozenset())
        return self.among(status.accepted_spec, tuple(k for k in open_ if k[0] not in shut), promise, status)

    def among(
        self,
        spec: RequestSpec,
        usable: tuple[PoolKey, ...],
        promise: Promise | None = None,
        status: GPRStatus | None = None,
    ) -> Choice:
        """The same of any pools; without a status as if it were filed now."""
        managed = tuple(key for key in usable if not self.wanted.pools[key].observed)
        asks = Choosing(spec, since(spec, status, self.now), promise)
        return choice(asks, managed or usable, self.pools, self.bursts)


def open_pools(status: GPRStatus, wanted: Wanted) -> tuple[PoolKey, ...]:
    """Pools that a waiting request may use, by its approval or without, and whose hours its slice has not taken."""
    spec = status.accepted_spec
    limit = None if status.approval is None else status.approval.limit
    usable = usable_pools(spec, wanted.slices[spec.slice], wanted.project, wanted.pools, limit)
    barred = barred_pools(status)
    return tuple(key for key in usable if key not in barred) if barred else usable


def since(spec: RequestSpec, status: GPRStatus | None, now: int) -> int:
    """From when a wait counts: filing, or the earliest wanted start; now where nobody recorded when it was filed."""
    filed = now if status is None else seconds(status.filed_at) or now
    return max(filed, 0 if spec.not_before is None else seconds(spec.not_before))


def offering(wanted: Wanted, facts: Facts, pools: Pools) -> Offering:
    """What choices at `facts.at` share. Costs the requests that wait, where a burst cluster's hours are bounded."""
    bursts = {name: spec.burst for name, spec in wanted.clusters.items() if spec.burst is not None}
    shut: dict[str, frozenset[str]] = {}
    for cluster, burst in sorted(bursts.items()):
        if burst.gpu_hours_per_month is not None:
            for key in _shut_out(cluster, burst, burst.gpu_hours_per_month, (wanted, facts))[0]:
                shut[key] = shut.get(key, frozenset()) | {cluster}
    return Offering(wanted, pools, seconds(facts.at), bursts, shut)


def shut_now(spec: RequestSpec, wanted: Wanted, facts: Facts) -> frozenset[str]:
    """Burst clusters that a request which is filed now would not get: it is too long, or their hours are taken."""
    found = set()
    for name, cluster in wanted.clusters.items():
        burst = cluster.burst
        if burst is None:
            continue
        most, slice_ = burst.gpu_hours_per_month, wanted.slices[spec.slice]
        if not is_short(spec, burst):
            found.add(name)
        elif most is not None:
            there = [
                wanted.pools[k].gpus_per_node
                for k in candidate_pools(spec, slice_, wanted.pools)
                if k[0] == name
            ]
            asks = hours(spec.nodes, max(there, default=0), spec.duration)
            if asks > _shut_out(name, burst, most, (wanted, facts))[1]:
                found.add(name)
    return frozenset(found)


def _shut_out(cluster: str, burst: Burst, most: int, known: tuple[Wanted, Facts]) -> tuple[list[str], float]:
    """Who waits and finds no hours left there. Promised ones have them; the others in order of need and of filing.

    And how many hours are left after that.
    """
    wanted, facts = known
    taken, asking, out = _taken(cluster, wanted, facts), [], []
    for key, status in live(facts.requests).items():
        if status.phase is not Phase.QUEUED or status.accepted_spec.slice not in wanted.slices:
            continue
        asks = _hours_there(cluster, status, wanted)
        if asks is None:
            continue
        if status.estimated_cluster == cluster:
            taken += asks
        else:
            start = status.estimated_start_time
            begin = since(status.accepted_spec, status, seconds(facts.at))
            has_other = start is not None and is_timely(seconds(start), begin, burst)
            asking.append((has_other, status.filed_at, key, asks))
    for *_, key, asks in sorted(asking):
        if taken + asks > most:
            out.append(key)
        else:
            taken += asks
    return out, most - taken


def _taken(cluster: str, wanted: Wanted, facts: Facts) -> float:
    month = month_of(facts.at)
    spent = [row for record in facts.usage.values() for row in spent_in(record, month)]
    held = [row for s in live(facts.requests).values() if (row := under_way(s, month, wanted)) is not None]
    return sum(row.gpu_hours for row in (*spent, *held) if row.cluster == cluster)


def _hours_there(cluster: str, status: GPRStatus, wanted: Wanted) -> float | None:
    """The most that it would take in that cluster; None where it does not go."""
    there = [wanted.pools[key].gpus_per_node for key in open_pools(status, wanted) if key[0] == cluster]
    return hours(status.accepted_spec.nodes, max(there), lease_duration(status)) if there else None
