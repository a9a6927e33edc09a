"""When a waiting request will really start: p10, p50 and p90 beside the promise, learnt from the past.

A promise assumes that every request uses all of its time and that no request of higher rank arrives. Neither holds.
Here some possible futures are drawn, and `scheduler.estimates.drawn_futures` simulates each of them:

* every lease and every waiting request ends like an earlier similar one (see `scheduler.estimates.habits`);
* requests of higher rank arrive as at this time of day on some days of the last week, each for some hours
  (a stationary bootstrap: Politis and Romano, JASA 1994; it preserves busy hours and bursts).

The starts in the futures are summarised as `Drawn`. How far to trust them is learnt by band: see
`scheduler.estimates.calibration`. With fewer than `LEAST` finished requests there is no forecast, and the answer says
so.

Pure and deterministic: randomness is seeded by the instant and the number of the future.

What always holds:
  * if every request uses all of its time and none arrives, no request is expected after its plan;
  * no request is expected before now or before it may start, and p10 <= p50 <= p90.
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
"""Fewest finished requests for a forecast: p10 and p90 of fewer would be two of them."""
MOST_FUTURES = 16
WORK = 24_000
"""Approximate number of requests simulated over all futures: about a second (docs/explain/benchmarks.md)."""
LOOKED_BACK_S = 7 * 86_400
"""Arrivals are drawn from the last week, so that each day of the week is in it."""
BLOCK_S = 12 * 3600
"""Average length of a block of arrivals taken from one day: a day's bursts last for hours."""
_DAY_S = 86_400
_SHORTEST_S = 600
_FURTHER, _FURTHER_S = 2, 6 * 3600
"""How far beyond the last planned start arrivals are drawn: some requests will start later than planned."""
_UNKNOWN = "~"
"""Name prefix of future requests; no file can have such a name."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """A past request as it was filed."""

    filed_at: int
    slice: str
    shape: str
    nodes: int
    duration: int
    priority: int
    pools: tuple[PoolKey, ...]


@dataclass(frozen=True, slots=True)
class Drawn:
    """Quantiles of the starts in the futures."""

    p10: int
    p50: int
    p90: int


@dataclass(frozen=True, slots=True)
class Past:
    """The data to learn from, oldest first."""

    released: tuple[Released, ...] = ()
    arrived: tuple[Arrived, ...] = ()

    @property
    def is_enough(self) -> bool:
        """Whether there is enough data for a forecast."""
        return sum(not one.is_open for one in self.released) >= LEAST


class Learnt:
    """The past, prepared for drawing. O(length), once."""

    def __init__(self, past: Past) -> None:
        self.past = past
        self.uses = Uses(past.released)
        self._filed = [one.filed_at for one in past.arrived]

    def arrivals(self, now: int, horizon: int, chance: random.Random) -> Iterator[tuple[int, Arrived]]:
        """Arrivals within `horizon` seconds, with their times."""
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
    """One possible future: ends of leases, and requests by rank; empty keys are future arrivals."""

    ends: Mapping[str, int]
    keys: tuple[str, ...]
    going: tuple[Going, ...]


def futures(snapshot: Snapshot, learnt: Learnt, horizon: int, count: int) -> Iterator[Future]:
    """`count` futures; each has the arrivals within `horizon` seconds that do not rank behind all waiting requests."""
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
    """Stratified random numbers: over all futures together each lease and request gets every stratum once (McKay,
    Beckman and Conover, Technometrics 1979), so that few futures suffice."""

    def __init__(self, which: tuple[int, int], seed: int) -> None:
        self._number, self._count = which
        self._chance = random.Random(seed)  # noqa: S311 - the same for every future; each takes its own stratum

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
    """Number of futures worth their cost for a queue of that length: 16, 8, 4, 2 or 1."""
    many = MOST_FUTURES
    while many > 1 and many * waiting > WORK:
        many //= 2
    return many


def drawn(
    snapshot: Snapshot, planned: Plan, learnt: Learnt, keys: Collection[str] | None = None
) -> dict[str, Drawn]:
    """Estimates for waiting requests of `keys` (None: all) that have a start in most futures."""
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
    """`plan`: the wanted requests with their planned starts; `reach`: how far to look, and in how many futures."""
    starts: dict[str, list[int]] = {key: [] for key in plan}
    last, count = reach
    horizon = min(LOOKED_BACK_S, (last - snapshot.now) * _FURTHER + _FURTHER_S)
    for future in futures(snapshot, learnt, horizon, count):
        wanted = {i for i, key in enumerate(future.keys) if key in starts}
        found = dispatched(snapshot, future.ends, future.going, wanted)
        first = future.keys.index("") if "" in future.keys else len(future.keys)
        for i in wanted:
            if found[i] < FOREVER:
                # No future arrival ranks before it: then it starts as promised at the latest.
                latest = plan[future.keys[i]] if i < first else FOREVER
                starts[future.keys[i]].append(min(found[i], max(latest, snapshot.now)))
    return {key: quantiles(many) for key, many in starts.items() if 2 * len(many) > count}


def _with_those_before(snapshot: Snapshot, planned: Plan, keys: Collection[str]) -> Snapshot:
    """Without requests that rank behind the last of `keys`: they do not affect them."""
    last = max((place for place, key in enumerate(planned.order) if key in keys), default=-1)
    if last + 1 >= len(snapshot.requests):
        return snapshot
    return replace(snapshot, requests={key: snapshot.requests[key] for key in planned.order[: last + 1]})


def drawn_quotes(snapshot: Snapshot, planned: Plan, learnt: Learnt, request: Request) -> dict[PoolKey, Drawn]:
    """The same for a hypothetical request, in each of its pools alone."""
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
    """p10, p50 and p90; the p-quantile of n values is at position p (n + 1) (Weibull)."""
    ordered = sorted(starts)
    return Drawn(*(round(_quantile(ordered, share)) for share in QUANTILES))


def _quantile(ordered: Sequence[int], share: float) -> float:
    place = min(max(share * (len(ordered) + 1) - 1, 0.0), len(ordered) - 1.0)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
