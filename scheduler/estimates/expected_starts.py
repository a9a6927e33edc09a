"""When will a waiting request really start? A p10, p50 and p90 beside the promise, learnt from what was.

A promise counts on everybody using all of their time and on nobody of higher rank arriving. Neither is so. Here
some possible futures are drawn, and `scheduler.estimates.drawn_futures` says who starts when in each of them:

* every lease and every waiting request ends when one like it did (see `scheduler.estimates.habits`);
* requests of higher rank arrive as they did at this time of day on some days of the last week, each for some hours
  (a stationary bootstrap: Politis and Romano, JASA 1994; busy hours, and what arrives together, stay so).

What the futures say of each start is `Drawn`. How far to trust it is learnt too, by band: see
`scheduler.estimates.calibration`. Without `LEAST` requests to learn from there is no expectation, and who asks is
told so.

Pure, and the same for the same world: chance is seeded by the instant and the number of the future.

Held by tests/scheduler/estimates/test_expected_starts.py:
  * where everybody uses all of their time and nobody arrives, nobody is expected after the plan;
  * nobody is expected before now, before they may start, nor p10 after p50 after p90.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from scheduler.estimates.drawn_futures import Going, dispatched
from scheduler.estimates.habits import Drawing, Released, Uses
from scheduler.fairness.rank import Rank, RankInputs, rank_key, service_of
from scheduler.snapshot import FOREVER, Lease, Plan, Pool, PoolKey, Request, Snapshot

QUANTILES = (0.1, 0.5, 0.9)
LEAST = 20
"""Requests that ran and ended, below which nothing is expected: p10 and p90 of fewer are two of them."""
MOST_FUTURES = 16
WORK = 24_000
"""Requests looked at in all futures together, about: what a second is for (docs/benchmarks.md)."""
LOOKED_BACK_S = 7 * 86_400
"""Arrivals of the last week are drawn from: they have each day of it."""
BLOCK_S = 12 * 3600
"""Arrivals are taken for so long from one day, on average: bursts of a day go on for hours."""
_DAY_S = 86_400
_SHORTEST_S = 600
_FURTHER, _FURTHER_S = 2, 6 * 3600
"""Arrivals are drawn beyond the last planned start by these: some will start later than that."""
_UNKNOWN = "~"
"""Names of requests that nobody has filed yet; no file can have such a name."""


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
        return sum(not one.is_open for one in self.released) >= LEAST


class Learnt:
    """The past, prepared for drawing. Costs its length once."""

    def __init__(self, past: Past) -> None:
        self.past = past
        self.uses = Uses(past.released)
        self._filed = [one.filed_at for one in past.arrived]

    def arrivals(self, now: int, horizon: int, chance: random.Random) -> Iterator[tuple[int, Arrived]]:
        """Who arrives within `horizon` seconds, and when."""
        first = max(self._filed[0], now - LOOKED_BACK_S) if self._filed else now
        known, at = now - first, 0
        while known > 0 and at < horizon:
            length = max(_SHORTEST_S, round(chance.expovariate(1 / BLOCK_S)))
            if days := known // _DAY_S:
                source = now - _DAY_S * (1 + chance.randrange(days)) + at % _DAY_S
                length = min(length, _DAY_S - at % _DAY_S)
            else:
                length = min(length, known)
                source = first + chance.randrange(known - length + 1)
            length = min(length, horizon - at)
            for i in range(bisect_left(self._filed, source), bisect_left(self._filed, source + length)):
                yield now + at + self._filed[i] - source, self.past.arrived[i]
            at += length


@dataclass(frozen=True, slots=True)
class Future:
    """One way in which things may go: ends of leases, and requests by rank; empty keys are of nobody who waits yet."""

    ends: Mapping[str, int]
    keys: tuple[str, ...]
    going: tuple[Going, ...]


def futures(snapshot: Snapshot, learnt: Learnt, horizon: int, count: int) -> Iterator[Future]:
    """`count` ways; in each, who arrives within `horizon` seconds and is not behind everybody in the rank."""
    for number in range(count):
        yield _future(snapshot, learnt, horizon, (number, count))


def _future(snapshot: Snapshot, learnt: Learnt, horizon: int, which: tuple[int, int]) -> Future:
    chance = random.Random(f"{snapshot.now} {which[0]}")  # noqa: S311 - the same futures for the same world
    lots, used = _Lots(which, snapshot.now), learnt.uses.drawn(chance.random())
    ends = {key: _end(lease, snapshot, used, lots.draw()) for key, lease in sorted(snapshot.leases.items())}
    found = [
        (rank_key(request), key, _as_it_will_be(request, snapshot.pools, used, lots.draw()))
        for key, request in sorted(snapshot.requests.items())
    ]
    found += _coming(snapshot, learnt, horizon, (used, chance))
    found.sort(key=lambda one: one[0])
    return Future(ends, tuple(one[1] for one in found), tuple(one[2] for one in found))


def _coming(
    snapshot: Snapshot, learnt: Learnt, horizon: int, drawing: tuple[Drawing, random.Random]
) -> Iterator[tuple[Rank, str, Going]]:
    used, chance = drawing
    last = max((rank_key(request) for request in snapshot.requests.values()), default=(1, 0, 0, 0, 0, ""))
    shares = {request.slice: request.share for request in snapshot.requests.values()}
    counts = any(request.service for request in snapshot.requests.values())
    for number, (at, one) in enumerate(learnt.arrivals(snapshot.now, horizon, chance)):
        pools = tuple((key, 0) for key in one.pools if key in snapshot.pools)
        if not pools:
            continue
        gpus = snapshot.pools[pools[0][0]].gpus_per_node
        service = service_of(one.nodes * gpus, one.duration) if counts else 0
        share = shares.get(one.slice, 0)
        name = f"{one.slice}/{_UNKNOWN}{number}"
        rank = rank_key(RankInputs(name, one.priority, 0, 0, share, service, at))
        if rank < last:
            share_used = used((one.slice, one.shape, one.duration), 0.0, chance.random())
            length = max(1, round(one.duration * share_used))
            slice_ = one.slice if one.slice in shares else ""
            yield rank, "", Going(one.nodes, one.duration, length, at, slice_, pools)


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


def _end(lease: Lease, snapshot: Snapshot, used: Drawing, luck: float) -> int:
    length = lease.end - lease.start
    if lease.end <= snapshot.now or length <= 0:
        return lease.end
    ran = max(0, snapshot.now - lease.start)
    share = used((lease.slice, _shape(snapshot.pools, lease.pool), length), ran / length, luck)
    return min(lease.end, max(snapshot.now + 1, lease.start + round(share * length)))


def _as_it_will_be(request: Request, pools: Mapping[PoolKey, Pool], used: Drawing, luck: float) -> Going:
    shape = _shape(pools, request.pools[0]) if request.pools else ""
    share = used((request.slice, shape, request.duration), 0.0, luck)
    since = request.not_before
    if request.promise is not None and not request.movable:
        since = max(since, request.promise.start)
    return Going(
        nodes=request.nodes,
        strict=request.duration,
        used=max(1, round(share * request.duration)),
        since=since,
        slice=request.slice,
        pools=tuple((key, request.fallback.get(key, 0)) for key in request.pools),
    )


def _shape(pools: Mapping[PoolKey, Pool], key: PoolKey) -> str:
    pool = pools.get(key)
    return "" if pool is None else pool.gpu_shape


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
    plan = {key: planned.placements[key].start for key in wanted}
    snapshot = _with_those_before(snapshot, planned, plan.keys())
    last = max(plan.values(), default=snapshot.now)
    return _drawn(snapshot, plan, learnt, (last, how_many(len(snapshot.requests))))


def _drawn(
    snapshot: Snapshot, plan: Mapping[str, int], learnt: Learnt, reach: tuple[int, int]
) -> dict[str, Drawn]:
    """`plan`: who is looked for, and when they start at the latest; `reach`: how far to look, in how many futures."""
    starts: dict[str, list[int]] = {key: [] for key in plan}
    last, count = reach
    horizon = min(LOOKED_BACK_S, (last - snapshot.now) * _FURTHER + _FURTHER_S)
    for future in futures(snapshot, learnt, horizon, count):
        wanted = {i for i, key in enumerate(future.keys) if key in starts}
        found = dispatched(snapshot, future.ends, future.going, wanted)
        first = future.keys.index("") if "" in future.keys else len(future.keys)
        for i in wanted:
            if found[i] < FOREVER:
                # Nobody who arrives is before it: then it starts when it was promised at the latest.
                latest = plan[future.keys[i]] if i < first else FOREVER
                starts[future.keys[i]].append(min(found[i], max(latest, snapshot.now)))
    return {key: quantiles(many) for key, many in starts.items() if 2 * len(many) > count}


def _with_those_before(snapshot: Snapshot, planned: Plan, keys: Collection[str]) -> Snapshot:
    """Without those behind the last of `keys` in the rank: they wait for it."""
    last = max((place for place, key in enumerate(planned.order) if key in keys), default=-1)
    if last + 1 >= len(snapshot.requests):
        return snapshot
    return replace(snapshot, requests={key: snapshot.requests[key] for key in planned.order[: last + 1]})


def drawn_quotes(snapshot: Snapshot, planned: Plan, learnt: Learnt, request: Request) -> dict[PoolKey, Drawn]:
    """The same for a request that is not filed yet, in each of its pools alone."""
    if not learnt.past.is_enough:
        return {}
    mine = rank_key(request)
    before = {
        key: one for key, one in snapshot.requests.items() if rank_key(one) < mine and key != request.key
    }
    last = max((place.start for place in planned.placements.values()), default=snapshot.now)
    found: dict[PoolKey, Drawn] = {}
    for pool in request.pools:
        alone = {**before, request.key: replace(request, pools=(pool,))}
        count = how_many(len(alone) * len(request.pools))
        soonest = replace(snapshot, requests=alone)
        answers = _drawn(soonest, {request.key: FOREVER}, learnt, (last, count))
        if request.key in answers:
            found[pool] = answers[request.key]
    return found


def quantiles(starts: Sequence[int]) -> Drawn:
    """p10, p50 and p90 of these; the p-quantile of n values lies at place p (n + 1) (Weibull's positions)."""
    ordered = sorted(starts)
    return Drawn(*(round(_quantile(ordered, share)) for share in QUANTILES))


def _quantile(ordered: Sequence[int], share: float) -> float:
    place = min(max(share * (len(ordered) + 1) - 1, 0.0), len(ordered) - 1.0)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
