"""When will a waiting request really start? A p10, p50 and p90 beside the promise, learnt from what was.

A promise counts on everybody using all of their time and on nobody of higher rank arriving. Neither is so. Here
some possible futures are drawn and planned by the planner itself; in each of them

* every lease and every waiting request ends when one like it did: the share of its time that it uses is drawn from
  requests that are over, of the same slice, shape and length where there are enough, and for a lease among those
  that used more than it has used by now (the bootstrap: Efron, Annals of Statistics 1979);
* requests of higher rank arrive as they did some days ago from this time of day on (a block bootstrap: Künsch,
  Annals of Statistics 1989, so that busy hours, and what arrives together, stay so).

What the futures say of each start is `Drawn`. How far to trust it is learnt too, by band: see
`scheduler.calibrating`. Without `LEAST` requests to learn from there is no expectation, and who asks is told so.

Pure, and the same for the same world: chance is seeded by the instant and the number of the future.

Held by tests/scheduler/test_expecting.py:
  * where everybody uses all of their time and nobody arrives, the expectation is the plan;
  * nobody is expected before now, nor p10 after p50 after p90.
"""

from __future__ import annotations

import random
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from scheduler.plan import plan
from scheduler.quote import quote
from scheduler.snapshot import Lease, Plan, Pool, PoolKey, Request, Snapshot

QUANTILES = (0.1, 0.5, 0.9)
LEAST = 20
"""Requests that ran and ended, below which nothing is expected: p10 and p90 of fewer are two of them."""
ENOUGH = 10
"""Requests of one kind, below which a wider kind is looked at."""
MOST_FUTURES = 16
WORK = 12_000
"""Requests planned at most for one look into the futures, about; a long queue is looked at in fewer of them."""
LOOKED_BACK_S = 7 * 86_400
"""Arrivals of the last week are drawn from: they have each day of it."""
_DAY_S = 86_400
_FURTHER = 1.5
"""Arrivals are drawn beyond the last planned start by this: some will start later than that."""
_UNKNOWN = "~"
"""Names of requests that nobody has filed yet; no file can have such a name."""


@dataclass(frozen=True, slots=True)
class Released:
    """A request that ran: seconds it was given, and those after which its nodes came back."""

    slice: str
    shape: str
    duration: int
    used: int


@dataclass(frozen=True, slots=True)
class Arrived:
    """A request as it was filed."""

    filed_at: int
    slice: str
    shape: str
    nodes: int
    duration: int
    priority: int
    pools: tuple[PoolKey, ...]


@dataclass(frozen=True, slots=True)
class Drawn:
    """Starts in the futures: one in ten is before `p10`, half before `p50`, one in ten after `p90`."""

    p10: int
    p50: int
    p90: int


@dataclass(frozen=True, slots=True)
class Past:
    """What is learnt from, oldest first."""

    released: tuple[Released, ...] = ()
    arrived: tuple[Arrived, ...] = ()

    @property
    def is_enough(self) -> bool:
        """Whether anything can be expected at all."""
        return len(self.released) >= LEAST


class Learnt:
    """The past, prepared for drawing. Costs its length once."""

    def __init__(self, past: Past) -> None:
        self.past = past
        groups: dict[tuple[object, ...], list[float]] = {}
        for one in past.released:
            share = min(1.0, one.used / max(1, one.duration))
            for kind in _kinds(one.slice, one.shape, one.duration):
                groups.setdefault(kind, []).append(share)
        self._shares = {kind: sorted(shares) for kind, shares in groups.items()}
        self._filed = [one.filed_at for one in past.arrived]

    def used(self, kind: tuple[str, str, int], after: float, luck: float) -> float:
        """The share of its time that one of this (slice, shape, duration) uses, above `after`; `luck` in 0 to 1."""
        for wider in _kinds(*kind):
            shares = self._shares.get(wider, ())
            first = bisect_right(shares, after)
            if len(shares) >= ENOUGH and first < len(shares):
                return shares[first + int(luck * (len(shares) - first))]
        return after + (1.0 - after) * luck if self._shares else 1.0

    def arrivals(self, now: int, horizon: int, luck: float) -> Iterator[tuple[int, Arrived]]:
        """Who arrives within `horizon` seconds, and when, were it as it was some whole days ago."""
        known = now - max(self._filed[0], now - LOOKED_BACK_S) if self._filed else 0
        if known <= 0:
            return
        days = known // _DAY_S
        back = (1 + int(luck * days)) * _DAY_S if days else known
        for later in range(0, horizon, back):
            begin = bisect_left(self._filed, now - back)
            end = bisect_left(self._filed, min(now, now - back + horizon - later))
            for one in self.past.arrived[begin:end]:
                yield one.filed_at + back + later, one


def _kinds(slice_: str, shape: str, duration: int) -> Iterator[tuple[object, ...]]:
    """Kinds of requests, the narrowest first. Lengths within a factor of two are alike: short ones end otherwise."""
    length = (max(0, duration) // 60).bit_length()
    yield (slice_, shape, length)
    yield (shape, length)
    yield (length,)
    yield (slice_, shape)
    yield ()


def futures(snapshot: Snapshot, planned: Plan, learnt: Learnt, count: int) -> Iterator[Snapshot]:
    """`count` worlds as they may come to be; `planned` says how far they have to reach."""
    last = max((place.start for place in planned.placements.values()), default=snapshot.now)
    horizon = min(LOOKED_BACK_S, int((last - snapshot.now) * _FURTHER) + 3600)
    for number in range(count):
        yield _future(snapshot, learnt, horizon, (number, count))


def _future(snapshot: Snapshot, learnt: Learnt, horizon: int, which: tuple[int, int]) -> Snapshot:
    chance = random.Random(f"{snapshot.now} {which[0]}")  # noqa: S311 - the same futures for the same world
    lots = _Lots(which, snapshot.now)
    leases = {key: _as_used(lease, snapshot, learnt, lots) for key, lease in sorted(snapshot.leases.items())}
    requests = {
        key: _as_it_will_be(request, snapshot, learnt, lots)
        for key, request in sorted(snapshot.requests.items())
    }
    least = min((request.priority for request in requests.values()), default=0)
    shares = {request.slice: request.share for request in requests.values()}
    coming = learnt.arrivals(snapshot.now, horizon, chance.random())
    above = (one for one in coming if one[1].priority >= least and _known(one[1], snapshot.pools))
    for number, (at, one) in zip(range(len(requests) * 2 + 200), above, strict=False):
        key = f"{one.slice}/{_UNKNOWN}{number}"
        used = learnt.used((one.slice, one.shape, one.duration), 0.0, chance.random())
        requests[key] = Request(
            key=key,
            slice=one.slice if one.slice in shares else "",
            nodes=one.nodes,
            duration=max(1, round(one.duration * used)),
            pools=_known(one, snapshot.pools),
            priority=one.priority,
            share=shares.get(one.slice, 0),
            filed_at=at,
            not_before=at,
        )
    return replace(snapshot, leases=leases, requests=requests)


class _Lots:
    """Evenly spread luck: over all futures together each lease and request has every part of it once (strata:
    McKay, Beckman and Conover, Technometrics 1979), so that few futures are enough."""

    def __init__(self, which: tuple[int, int], seed: int) -> None:
        self._number, self._count = which
        self._chance = random.Random(seed)  # noqa: S311 - the same for every future, which then each take their part

    def draw(self) -> float:
        turn = self._chance.randrange(self._count)
        step = 1 + 2 * self._chance.randrange(self._count)  # odd: a permutation of 1, 2, 4, 8 or 16 parts
        part = (turn + step * self._number) % self._count
        return (part + 0.5) / self._count


def _as_used(lease: Lease, snapshot: Snapshot, learnt: Learnt, lots: _Lots) -> Lease:
    luck, length = lots.draw(), lease.end - lease.start
    if lease.end <= snapshot.now or length <= 0:
        return lease
    ran = max(0, snapshot.now - lease.start)
    share = learnt.used((lease.slice, _shape(snapshot.pools, lease.pool), length), ran / length, luck)
    end = min(lease.end, max(snapshot.now + 1, lease.start + round(share * length)))
    return replace(lease, end=end, held_until=end + lease.held_until - lease.end)


def _as_it_will_be(request: Request, snapshot: Snapshot, learnt: Learnt, lots: _Lots) -> Request:
    shape = _shape(snapshot.pools, request.pools[0]) if request.pools else ""
    share = learnt.used((request.slice, shape, request.duration), 0.0, lots.draw())
    begin = request.not_before
    if request.promise is not None and not request.movable:
        begin = max(begin, request.promise.start)
    return replace(
        request,
        duration=max(1, round(share * request.duration)),
        not_before=begin,
        promise=None,
        movable=True,
        may_displace=True,
    )


def _shape(pools: Mapping[PoolKey, Pool], key: PoolKey) -> str:
    pool = pools.get(key)
    return "" if pool is None else pool.gpu_shape


def _known(one: Arrived, pools: Mapping[PoolKey, Pool]) -> tuple[PoolKey, ...]:
    return tuple(key for key in one.pools if key in pools)


def how_many(waiting: int) -> int:
    """Futures that are worth their cost with so many in the queue: 16, 8, 4, 2 or 1."""
    many = MOST_FUTURES
    while many > 1 and many * waiting > WORK:
        many //= 2
    return many


def drawn(
    snapshot: Snapshot, planned: Plan, learnt: Learnt, keys: Collection[str] | None = None
) -> dict[str, Drawn]:
    """What the futures say of each waiting request of `keys` (None: of all) that has a start in most of them."""
    if not learnt.past.is_enough:
        return {}
    wanted = sorted(planned.placements.keys() if keys is None else planned.placements.keys() & set(keys))
    starts: dict[str, list[int]] = {key: [] for key in wanted}
    snapshot = _with_those_before(snapshot, planned, starts.keys())
    count = how_many(len(snapshot.requests))
    for world in futures(snapshot, planned, learnt, count):
        found = plan(world).placements
        for key in wanted:
            place = found.get(key)
            if place is not None:
                starts[key].append(place.start)
    return {key: quantiles(many) for key, many in starts.items() if 2 * len(many) > count}


def _with_those_before(snapshot: Snapshot, planned: Plan, keys: Collection[str]) -> Snapshot:
    """Without those behind the last of `keys` in the rank: from nothing they take no room of anybody before them."""
    last = max((place for place, key in enumerate(planned.order) if key in keys), default=-1)
    if last + 1 >= len(snapshot.requests):
        return snapshot
    return replace(snapshot, requests={key: snapshot.requests[key] for key in planned.order[: last + 1]})


def drawn_quotes(snapshot: Snapshot, planned: Plan, learnt: Learnt, request: Request) -> dict[PoolKey, Drawn]:
    """The same for a request that is not filed yet, in each of its pools alone."""
    if not learnt.past.is_enough:
        return {}
    starts: dict[PoolKey, list[int]] = {}
    count = how_many(len(snapshot.requests))
    for world in futures(snapshot, planned, learnt, count):
        for answer in quote(world, request):
            if answer.start is not None:
                starts.setdefault(answer.pool, []).append(answer.start)
    return {pool: quantiles(many) for pool, many in starts.items() if 2 * len(many) > count}


def quantiles(starts: Sequence[int]) -> Drawn:
    """p10, p50 and p90 of these; the p-quantile of n values lies at place p (n + 1) (Weibull's positions)."""
    ordered = sorted(starts)
    return Drawn(*(round(_quantile(ordered, share)) for share in QUANTILES))


def _quantile(ordered: Sequence[int], share: float) -> float:
    place = min(max(share * (len(ordered) + 1) - 1, 0.0), len(ordered) - 1.0)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
