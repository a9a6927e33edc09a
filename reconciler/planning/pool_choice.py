"""Which pools serve a waiting request now, and which only if the wait elsewhere is too long. Pure.

Besides fit and permission: monthly limits that exclude pools, a request's preference, and burst clusters with
a monthly GPU-hour limit shared by all slices. Held by tests/cases/reconciler/burst.yaml: usage plus promises in
a burst cluster never exceed its hours of a month.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import MappingProxyType

from reconciler.accounts.gpu_hours import SLACK, hours, month_of, rest_under_way, spent_in, under_way
from reconciler.accounts.monthly_limits import barred_pools
from reconciler.lifecycle.requeue import as_queued
from reconciler.model.facts import Facts, Wanted
from reconciler.model.status_edits import lease_duration, waits_since
from reconciler.model.statuses import changed, live
from scheduler.choices.fit import Pools, candidate_pools, usable_pools
from scheduler.choices.pool_choice import Bursts, Choice, Choosing, choice, is_short, is_timely
from scheduler.snapshot import Placement, PoolKey, Promise
from schemas.documents.gpr import RequestSpec
from schemas.reading.units import seconds
from schemas.status.gpr_status import GPRStatus, Phase


@dataclass(frozen=True, slots=True)
class Offering:
    """What all choices at one time share. `shut` has the burst clusters without remaining hours, by request."""

    wanted: Wanted
    pools: Pools  # with their nodes' health
    now: int
    bursts: Bursts
    shut: Mapping[str, frozenset[str]]

    def of(self, key: str, status: GPRStatus, promise: Promise | None) -> Choice:
        """The pools that serve a request of an existing slice; managed ones before observed ones."""
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
        """The same for any pools; without a status as if filed now."""
        managed = tuple(key for key in usable if not self.wanted.pools[key].observed)
        left = None if status is None else lease_duration(status)
        asks = Choosing(spec, since(spec, status, self.now), promise, left)
        return choice(asks, managed or usable, self.pools, self.bursts)


def open_pools(status: GPRStatus, wanted: Wanted) -> tuple[PoolKey, ...]:
    """Pools a waiting request may use, with or without an approval, if its slice has hours left there."""
    spec = status.accepted_spec
    limit = None if status.approval is None else status.approval.limit
    usable = usable_pools(spec, wanted.slices[spec.slice], wanted.project, wanted.pools, limit)
    barred = barred_pools(status)
    return tuple(key for key in usable if key not in barred) if barred else usable


def since(spec: RequestSpec, status: GPRStatus | None, now: int) -> int:
    """The start of its wait (see `waits_since`); `now` if its filing time is not recorded."""
    if status is not None and seconds(status.filed_at) > 0:
        return seconds(waits_since(status))
    return max(now, 0 if spec.not_before is None else seconds(spec.not_before))


NOBODY: Mapping[str, Placement] = MappingProxyType({})
PASSES = 4
"""Plans made to find who would be served in a burst cluster short of hours; after these the last one counts."""


def offering(
    wanted: Wanted, facts: Facts, pools: Pools, placed: Mapping[str, Placement] = NOBODY
) -> Offering:
    """What choices at `facts.at` share. O(waiting requests) if a burst cluster has limited hours.

    Its hours go first to requests promised nodes there, then to those `placed` there, then to others.
    """
    bursts = {name: spec.burst for name, spec in wanted.clusters.items() if spec.burst is not None}
    shut: dict[str, frozenset[str]] = {}
    for cluster, burst in sorted(bursts.items()):
        if burst.gpu_hours_per_month is not None:
            for key in _shut_out(burst.gpu_hours_per_month, _asking(cluster, wanted, facts, placed)):
                shut[key] = shut.get(key, frozenset()) | {cluster}
    return Offering(wanted, pools, seconds(facts.at), bursts, shut)


def contended(
    everyone: Offering, facts: Facts, planned: Callable[[Offering], Mapping[str, Placement]]
) -> Offering:
    """If hours are short: the same, with requests first that would be served there.

    `planned` gives the placements of a plan with that offering. Costs one or two plans, none if hours suffice.
    """
    found, shut = everyone, dict[str, frozenset[str]]()
    for _ in range(PASSES if everyone.shut else 0):
        placed = planned(replace(everyone, shut=shut))
        found = offering(everyone.wanted, facts, everyone.pools, placed)
        beyond = {
            key: place.pool[0] for key, place in placed.items() if place.pool[0] in found.shut.get(key, ())
        }
        if not beyond:
            break
        shut |= {key: shut.get(key, frozenset()) | {cluster} for key, cluster in beyond.items()}
    return found


def remembered(
    everyone: Offering, facts: Facts, planned: Callable[[Offering], Mapping[str, Placement]]
) -> Offering:
    """As `contended`, but costs no plan if only the clock changed since the last result.

    Worth it by `benchmarks.cycle`: without it, cycles cost 2.7 times as much while a burst cluster is short of hours.
    """
    memory = everyone.wanted.worked_out
    known = memory.get(_SHORT)
    if isinstance(known, _Found) and known.holds(everyone, facts):
        return replace(everyone, shut=known.shut)
    found = contended(everyone, facts, planned)
    if everyone.shut:
        memory[_SHORT] = _Found(everyone, facts, found.shut)
    return found


_SHORT = ""
"""The key in `Wanted.worked_out` of the last result; no request has this key."""


def without_short_hours(worked_out: Mapping[str, object]) -> dict[str, object]:
    """What was worked out, without who is served where hours are short: that follows from a plan."""
    return {key: known for key, known in worked_out.items() if key != _SHORT}


LOOK_AGAIN = timedelta(minutes=5)
"""Time alone slightly changes who is served where: as in `reconciler.deciding.failed_attempts`."""


@dataclass(frozen=True, slots=True)
class _Found:
    """The result for short hours, and its inputs."""

    everyone: Offering
    facts: Facts
    shut: Mapping[str, frozenset[str]]

    def holds(self, everyone: Offering, facts: Facts) -> bool:
        """True if only the clock changed. O(requests)."""
        old, was, wanted = self.facts, self.everyone.wanted, everyone.wanted
        return (
            abs(facts.at - old.at) < LOOK_AGAIN
            and month_of(facts.at) == month_of(old.at)
            and (was.pools, was.slices, was.project) == (wanted.pools, wanted.slices, wanted.project)
            and self.everyone.shut == everyone.shut
            and (old.nodes, old.usage, old.scales) == (facts.nodes, facts.usage, facts.scales)
            and not changed(old.requests, facts.requests)
        )


def shut_now(
    spec: RequestSpec, wanted: Wanted, facts: Facts, placed: Mapping[str, Placement]
) -> frozenset[str]:
    """Burst clusters closed to a request filed now: it is too long, or their hours are used up by `placed` requests."""
    found = set()
    for name, cluster in wanted.clusters.items():
        burst = cluster.burst
        if burst is None:
            continue
        most, slice_ = burst.gpu_hours_per_month, wanted.slices[spec.slice]
        if not is_short(spec.duration, burst):
            found.add(name)
        elif most is not None:
            keys = [key for key in candidate_pools(spec, slice_, wanted.pools) if key[0] == name]
            asks = _most_hours(keys, spec, spec.duration, wanted)
            others = _asking(name, wanted, facts, placed)
            if others.taken + sum(one.hours for one in others.waiting if one.is_placed) + asks > most + SLACK:
                found.add(name)
    return frozenset(found)


def has_bounded_hours(wanted: Wanted) -> bool:
    """True if some burst cluster has a monthly limit of hours."""
    bursts = (spec.burst for spec in wanted.clusters.values())
    return any(burst is not None and burst.gpu_hours_per_month is not None for burst in bursts)


@dataclass(frozen=True, slots=True)
class _Asks:
    """A waiting request without a promise that may use a burst cluster; `hours` is the most it would add."""

    is_placed: bool
    has_other: bool  # it has a start elsewhere within the burst wait
    filed_at: datetime
    key: str
    hours: float

    def turn(self) -> tuple[bool, bool, datetime, str]:
        """Requests that would be served there first, then those that need it, then by filing time."""
        return (not self.is_placed, self.has_other, self.filed_at, self.key)


@dataclass(frozen=True, slots=True)
class _Asking:
    """Hours of this month used or promised in a burst cluster, and the requests for more."""

    taken: float
    waiting: tuple[_Asks, ...]


def _asking(cluster: str, wanted: Wanted, facts: Facts, placed: Mapping[str, Placement]) -> _Asking:
    burst = wanted.clusters[cluster].burst
    assert burst is not None
    taken, waiting = _taken(cluster, wanted, facts), list[_Asks]()
    for key, status in _waiting(wanted, facts):
        keys = [pool for pool in open_pools(status, wanted) if pool[0] == cluster]
        left = lease_duration(status)
        counted = _counted(facts.requests[key], left, cluster, (wanted, facts))
        more = max(0.0, _most_hours(keys, status.accepted_spec, left, wanted) - counted)
        start, place = status.estimated_start_time, placed.get(key)
        if status.estimated_cluster == cluster:
            taken += more
        elif keys and is_short(left, burst):
            begin = since(status.accepted_spec, status, seconds(facts.at))
            has_other = start is not None and is_timely(seconds(start), begin, burst)
            is_placed = place is not None and place.pool[0] == cluster
            waiting.append(_Asks(is_placed, has_other, status.filed_at, key, more))
    return _Asking(taken, tuple(waiting))


def _waiting(wanted: Wanted, facts: Facts) -> Iterator[tuple[str, GPRStatus]]:
    """The planned requests: the queued ones, and the evicted ones that return."""
    for key, status in live(facts.requests).items():
        if status.accepted_spec.slice not in wanted.slices:
            continue
        if status.phase is Phase.QUEUED:
            yield key, status
        elif (back := as_queued(status, timedelta())) is not None:
            yield key, back[0]


def _shut_out(most: int, asking: _Asking) -> list[str]:
    """The requests that find no hours left there."""
    taken, out = asking.taken, []
    for one in sorted(asking.waiting, key=_Asks.turn):
        if taken + one.hours > most + SLACK:
            out.append(one.key)
        else:
            taken += one.hours
    return out


def _taken(cluster: str, wanted: Wanted, facts: Facts) -> float:
    month = month_of(facts.at)
    spent = [row for record in facts.usage.values() for row in spent_in(record, month)]
    held = [row for s in live(facts.requests).values() if (row := under_way(s, month, wanted)) is not None]
    return sum(row.gpu_hours for row in (*spent, *held) if row.cluster == cluster)


def _counted(status: GPRStatus, rest: timedelta, cluster: str, known: tuple[Wanted, Facts]) -> float:
    """The hours already counted there for the remaining time of an evicted request."""
    wanted, facts = known
    found = rest_under_way(status, rest, month_of(facts.at), wanted)
    return found.gpu_hours if found is not None and found.cluster == cluster else 0.0


def _most_hours(keys: Iterable[PoolKey], spec: RequestSpec, duration: timedelta, wanted: Wanted) -> float:
    """The hours of a lease in the one of these pools where it uses most; 0 without pools."""
    return hours(spec.nodes, max((wanted.pools[key].gpus_per_node for key in keys), default=0), duration)
