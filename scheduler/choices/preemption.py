"""Which requests are evicted so that one of a higher band starts now instead of after their end.

Bands are the hundreds of the priority. A waiting request may start after notice, drain and preparation, on nodes of
running leases of strictly lower bands: the fewest leases, and among those the ones that lose the fewest GPU-hours of
work, counted since their last checkpoint, or since their start if none is known. A lease that has not run long enough,
or is about to end, stays. No waiting request starts later because of it: the nodes given to the one were held by the
evicted ones.

Pure. What always holds:
  * an evicted lease is of a strictly lower band, so that two requests never evict each other;
  * no promise moves later, and the preempting request gains at least what the terms demand;
  * no other choice of leases in that pool makes room with fewer of them, or at lower cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from scheduler.calendars.board import Board, Spot, spot
from scheduler.calendars.node_binding import Held, wanted_shares
from scheduler.choices.victims import Option, cheapest
from scheduler.fairness.rank import band
from scheduler.plan import plan
from scheduler.promises import with_promises
from scheduler.snapshot import FOREVER, Lease, Plan, Pool, PoolKey, Request, Snapshot

MOST_LOOKED_AT = 500
"""Most waiting requests, from the highest rank, examined in one call."""
MOST_TRIED = 20
"""Most plans per call: each choice is tested by planning with it."""
MOST_PLANNED = 50_000
"""Most requests planned in all plans of a call; the rest waits for the next call."""


NOTHING_SAVED: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Terms:
    """The policy, in seconds."""

    notice: int  # between the decision and the eviction
    guaranteed: int  # a lease is not evicted before it has run this long
    spare_last: int  # a lease this close to its own end is not evicted
    least_gain: int  # how much earlier the preempting request must start


@dataclass(frozen=True, slots=True)
class Preemption:
    """These leases end at `at`, so that `by` can start."""

    by: str
    victims: tuple[str, ...]
    at: int


@dataclass(frozen=True, slots=True)
class Preempted:
    """The decision, with the resulting world and plan."""

    preemptions: tuple[Preemption, ...]
    snapshot: Snapshot
    plan: Plan


def preempted(
    snapshot: Snapshot,
    planned: Plan,
    may_go: Mapping[str, int],
    terms: Terms,
    saved: Mapping[str, int] = NOTHING_SAVED,
) -> Preempted:
    """Worthwhile preemptions, highest rank first; `planned` is the plan of `snapshot`.

    `may_go` has the priorities of the evictable leases, by key; `saved` until when the work of some of them is saved.
    """
    done: list[Preemption] = []
    found, tried = _Room(snapshot, planned, may_go, terms, saved), 0
    most = max(1, min(MOST_TRIED, MOST_PLANNED // max(1, len(snapshot.requests))))
    for key in _worth_a_look(snapshot, planned, may_go, terms):
        choice = found.made_for(key)
        if choice is None:
            continue
        after = with_ends(found.snapshot, choice.victims, choice.at)
        replanned, tried = plan(after), tried + 1
        if _gains(found.planned, replanned, key) >= terms.least_gain:
            done.append(choice)
            left = {k: p for k, p in found.may_go.items() if k not in choice.victims}
            found = _Room(after, replanned, left, terms, saved)
        if tried >= most:
            break
    return Preempted(tuple(done), found.snapshot, found.planned)


def with_ends(snapshot: Snapshot, keys: Iterable[str], at: int) -> Snapshot:
    """The world with these leases ending at that instant; cleaning takes as long as before."""
    leases = dict(snapshot.leases)
    for key in keys:
        lease = leases[key]
        leases[key] = replace(lease, end=at, held_until=lease.held_until + at - lease.end)
    return replace(snapshot, leases=leases)


def with_returns(snapshot: Snapshot, planned: Plan, back: Mapping[str, Request]) -> tuple[Snapshot, Plan]:
    """The world and its plan with evicted requests waiting for the rest of their time (`back`).

    They are placed last, so they do not take back the nodes freed for the preempting request.
    """
    given = with_promises(snapshot, planned)
    settled = plan(replace(given, requests={**given.requests, **back}))
    world = replace(snapshot, requests={**snapshot.requests, **back})
    return world, replace(settled, displaced=planned.displaced)


def _worth_a_look(
    snapshot: Snapshot, planned: Plan, may_go: Mapping[str, int], terms: Terms
) -> Iterator[str]:
    """Requests that wait longer than a preemption takes, in a higher band than a lease in one of their pools."""
    lowest: dict[PoolKey, int] = {}
    for key, priority in may_go.items():
        pool = snapshot.leases[key].pool
        lowest[pool] = min(band(priority), lowest.get(pool, band(priority)))
    looked = 0
    for key in planned.order if lowest else ():
        if key in snapshot.leases:
            continue  # it makes room itself
        request, place = snapshot.requests[key], planned.placements.get(key)
        waits = place is not None and place.start - snapshot.now - terms.notice >= terms.least_gain
        pools = (p for p in request.pools if p not in request.fallback)
        if waits and any(lowest.get(p, FOREVER) < band(request.priority) for p in pools):
            yield key
            looked += 1
            if looked >= MOST_LOOKED_AT:
                return


def ripe_at(snapshot: Snapshot, may_go: Mapping[str, int], terms: Terms) -> int:
    """When time alone next makes a lease evictable, or a preemption worthwhile; FOREVER: never."""
    pools = snapshot.pools.values()
    made = terms.notice + max((p.drain + p.prepare for p in pools), default=0)
    goes = (snapshot.leases[key].start + terms.guaranteed - terms.notice for key in may_go)
    wanted = (r.not_before - made for r in snapshot.requests.values() if r.not_before)
    return min((at for at in (*goes, *wanted) if at > snapshot.now), default=FOREVER)


def _gains(before: Plan, after: Plan, key: str) -> int:
    now = after.placements.get(key)
    return -1 if now is None else before.placements[key].start - now.start


@dataclass(slots=True)
class _Room:
    """One plan, and the room that evicted leases would leave in it."""

    snapshot: Snapshot
    planned: Plan
    may_go: Mapping[str, int]
    terms: Terms
    saved: Mapping[str, int]
    at: int = field(init=False)
    _board: Board | None = field(init=False, default=None)
    _spots: dict[str, Spot] = field(init=False, default_factory=dict)
    _of_pool: dict[PoolKey, list[Lease]] = field(init=False, default_factory=dict)
    _of_slice: dict[str, list[Lease]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.at = self.snapshot.now + self.terms.notice
        for key in sorted(self.may_go):
            lease = self.snapshot.leases[key]
            self._of_pool.setdefault(lease.pool, []).append(lease)
        for lease in self.snapshot.leases.values():
            self._of_slice.setdefault(lease.slice, []).append(lease)

    def made_for(self, key: str) -> Preemption | None:
        """The cheapest choice among its pools; None if none suffices, or none is needed."""
        request, board = self.snapshot.requests[key], self._placed()
        board.lift(request, self._spots[key])
        pools = (p for p in request.pools if p not in request.fallback and p in self.snapshot.pools)
        found = [
            (*_cost(chosen), order, chosen)
            for order, pool in enumerate(pools)
            if (chosen := self._in_pool(request, self.snapshot.pools[pool])) is not None
        ]
        board.put_back(request, self._spots[key])
        if not found:
            return None
        victims = min(found, key=lambda entry: entry[:-1])[-1]
        return Preemption(key, tuple(sorted(option.key for option in victims)), self.at)

    def _placed(self) -> Board:
        """All leases and promises on one board."""
        if self._board is None:
            board = Board(self.snapshot)
            for key, place in self.planned.placements.items():
                request, pool = self.snapshot.requests[key], self.snapshot.pools[place.pool]
                there = spot(pool, request, place.start, self.snapshot.now)
                held = Held(key, request.nodes, there.hold)
                shares = wanted_shares(board.stretches[place.pool], held, place.bound)
                self._spots[key] = board.put(request, there, shares)
            self._board = board
        return self._board

    def _in_pool(self, request: Request, pool: Pool) -> tuple[Option, ...] | None:
        place = self._wish(request, pool)
        if place is None:
            return None
        own = self._own_lease(request, place)
        options = {lease.key: option for lease, option in self._options(request, pool, place)}
        if own is not None and own.key not in options and not self._may_go(request, own):
            return None
        if own is not None and own.key not in options:
            options[own.key] = self._option(own, self.snapshot.pools[own.pool], ())
        section = self._placed().calendars[pool.key].section(place.hold.begin, place.hold.end)
        must = () if own is None else (own.key,)
        return cheapest(section, request.nodes, tuple(options.values()), must)

    def _wish(self, request: Request, pool: Pool) -> Spot | None:
        """Where it would start; None if that is no gain, or another waiting request of its slice runs then."""
        if not pool.open or pool.observed:
            return None
        start = self.at + pool.drain + pool.prepare
        place, now = self.planned.placements[request.key], self.snapshot.now
        fixed = request.promise is not None and not request.movable
        # A request wanted later evicts then: nodes must not stand empty in between.
        if fixed or request.not_before > start or place.start - start < self.terms.least_gain:
            return None
        wish = spot(pool, request, start, now)
        board = self._placed()
        own = self._own_lease(request, wish)
        return wish if own is not None or board.slice_free(request, wish) else None

    def _own_lease(self, request: Request, place: Spot) -> Lease | None:
        """The lease of its own slice that runs then: it must be evicted too."""
        own = self._of_slice.get(request.slice, []) if request.slice else []
        return next((x for x in own if x.start < place.end and place.start < x.end), None)

    def _options(self, request: Request, pool: Pool, place: Spot) -> Iterator[tuple[Lease, Option]]:
        for lease in self._of_pool.get(pool.key, ()):
            if self._may_go(request, lease):
                yield lease, self._option(lease, pool, _room_of(lease, pool, place, self.at))

    def _option(self, lease: Lease, pool: Pool, gives: Iterable[tuple[int, int, int]]) -> Option:
        lost_s = lost_work(lease, self.saved.get(lease.key), self.at)
        return Option(
            lease.key,
            len(lease.nodes),
            pool.gpus_per_node * len(lease.nodes) * lost_s,
            -lease.start,
            tuple(gives),
        )

    def _may_go(self, request: Request, lease: Lease) -> bool:
        terms, priority = self.terms, self.may_go.get(lease.key)
        return (
            priority is not None
            and band(priority) < band(request.priority)
            and self.at - lease.start >= terms.guaranteed
            and lease.end - self.at >= max(terms.spare_last, 1)
        )


def lost_work(lease: Lease, saved: int | None, at: int) -> int:
    """Seconds of its work that end with it at `at`: at most its age, at least none; a checkpoint outside counts not."""
    age = max(0, at - lease.start)
    return age if saved is None or not lease.start <= saved <= at else at - saved


def _room_of(lease: Lease, pool: Pool, place: Spot, at: int) -> Iterator[tuple[int, int, int]]:
    """What its nodes add to a hold when it ends at `at`: (group, nodes, instant from which they are free anyway)."""
    hold, free_from = place.hold, lease.held_until + at - lease.end
    found: dict[tuple[int, int], int] = {}
    for node in lease.nodes:
        windows = [w for w in pool.windows.get(node, ()) if w.end > free_from]
        group = min((w.begin for w in windows), default=FOREVER)
        if node in pool.nodes and free_from <= hold.begin and group >= hold.end:
            until = hold.end if lease.held_until >= group else min(hold.end, lease.held_until)
            found[group, until] = found.get((group, until), 0) + 1
    return ((group, nodes, until) for (group, until), nodes in sorted(found.items()))


def _cost(chosen: Sequence[Option]) -> tuple[int, int, int]:
    """Fewest leases first, then the least lost, then those that began last."""
    return (len(chosen), sum(o.lost for o in chosen), sum(o.age for o in chosen))
