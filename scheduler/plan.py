"""When and where each waiting request starts.

A plan keeps the standing promises and moves them later only if a request of higher rank needs their nodes or if they
cannot hold any more. Three steps, each in rank order:

1. every committed start becomes a reservation; one that cannot hold is taken out;
2. every request without a reservation gets the earliest start that leases and reservations of higher rank
   leave; as few as needed of the lowest ranks in its way are taken out, and placed when their turn comes;
3. every reservation is lifted and put back at its earliest start among all others: never later.

Held by tests/scheduler/test_plan_properties.py and test_brute_force.py:
  * a node serves at most one request at any instant, and so does a slice;
  * from nothing, each request has the earliest start that higher ranks leave;
  * with standing promises no request moves later unless a change took nodes away.
"""

from __future__ import annotations

from scheduler.calendars.board import Board, Spot, floor, held_back_until, spot
from scheduler.calendars.calendar import Share
from scheduler.calendars.node_binding import Held, name_nodes, rebind, wanted_shares
from scheduler.calendars.overlaps import Overlaps
from scheduler.choices.displacement import who_gives_way
from scheduler.fairness.rank import in_rank_order
from scheduler.fairness.wait_bounds import within_bounds
from scheduler.kernel import engine_for
from scheduler.reasons import no_place
from scheduler.snapshot import Displaced, Placement, Plan, PoolKey, Refusal, Request, Snapshot


def plan(snapshot: Snapshot) -> Plan:
    """The plan of `snapshot`. Costs about (requests x steps of a pool's calendar).

    With bounded waits, once more for each round of requests that would exceed their bound.
    """
    return within_bounds(snapshot, _planned)


def _planned(snapshot: Snapshot) -> Plan:
    return (engine_for(snapshot) or planned_plainly)(snapshot)


def planned_plainly(snapshot: Snapshot) -> Plan:
    """The plan of the plain engine, which every other engine must reproduce."""
    planning = _Planning(snapshot)
    planning.stand()
    planning.place()
    planning.compress()
    return planning.result()


class _Planning:
    """One run. Requests are numbered by rank, so 'of lower rank' reads as 'with a higher number'."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.requests = in_rank_order(snapshot.requests.values())
        self.spots: list[Spot | None] = [None] * len(self.requests)
        self.board = Board(snapshot)
        self.standing = any(request.promise is not None for request in self.requests)
        # What leases and higher ranks leave. From nothing no lower rank is placed yet: the same board.
        self.above = self.board.copy() if self.standing else self.board
        self.counted = 0  # number of the highest ranks on `above`
        self.overlaps = Overlaps(self.requests)
        self.displaced: list[Displaced] = []
        self.refusals: dict[str, Refusal] = {}

    def stand(self) -> None:
        """Step 1, in rank order, so that of two promises that exclude each other the higher rank keeps its own."""
        for i, request in enumerate(self.requests):
            if request.promise is not None and not self._stands(i, request):
                self.displaced.append(Displaced(request.key, ""))

    def place(self) -> None:
        """Step 2."""
        for i, request in enumerate(self.requests):
            if self.spots[i] is None:
                self._count_higher_ranks(i)
                displaces = request.may_displace or request.promise is not None
                wish = (self.above if displaces else self.board).earliest(request)
                if wish is None:
                    self.refusals[request.key] = no_place(self.snapshot, request)
                else:
                    self._put(i, self._with_room(i, wish))

    def compress(self) -> None:
        """Step 3. From nothing no reservation was taken out, so there is no gap to move into."""
        if not self.standing:
            return
        for i, request in enumerate(self.requests):
            place = self.spots[i]
            if place is not None:
                self._note(i, self.board.advance(request, place))

    def result(self) -> Plan:
        bound = self._bound()
        placements = {
            request.key: Placement(
                request.key, place.pool, place.start, place.end, bound.get(request.key, ())
            )
            for request, place in zip(self.requests, self.spots, strict=True)
            if place is not None
        }
        order = tuple(request.key for request in self.requests)
        return Plan(order, placements, self.refusals, tuple(self.displaced))

    def _stands(self, i: int, request: Request) -> bool:
        place = self._promised(request)
        if place is None or not self.board.slice_free(request, place):
            return False
        if self.board.nodes_free(request, place):
            self._put(i, place, self._bound_before(request, place))
            return True
        return self._rebind_to_fit(i, place)

    def _promised(self, request: Request) -> Spot | None:
        """The spot of the promise, if it is allowed."""
        promise, now = request.promise, self.snapshot.now
        assert promise is not None
        pool = self.snapshot.pools.get(promise.pool)
        if pool is None or not pool.open or pool.key not in request.pools:
            return None
        if promise.start < max(now, request.not_before):
            return None
        return spot(pool, request, promise.start, now)

    def _bound_before(self, request: Request, place: Spot) -> tuple[tuple[int, int], ...]:
        if request.promise is None or self.board.calendars[place.pool].uniform:
            return ()
        held = Held(request.key, request.nodes, place.hold)
        return wanted_shares(self.board.stretches[place.pool], held, request.promise.bound)

    def _rebind_to_fit(self, i: int, place: Spot) -> bool:
        """With unequal nodes, reservations may swap nodes, but not times, to let one more hold."""
        if self.board.calendars[place.pool].uniform:
            return False
        there = [*self._held_in(place.pool), (i, place)]
        found = rebind(
            self.above.calendars[place.pool],
            [Held(self.requests[j].key, self.requests[j].nodes, other.hold) for j, other in there],
        )
        if found is None:
            return False
        for j, other in there[:-1]:
            self.board.lift(self.requests[j], other)
        for (j, other), shares in zip(there, found, strict=True):
            self._put(j, other, shares)
        return True

    def _held_in(self, pool: PoolKey) -> list[tuple[int, Spot]]:
        return [(j, place) for j, place in enumerate(self.spots) if place is not None and place.pool == pool]

    def _count_higher_ranks(self, i: int) -> None:
        if self.above is self.board:
            return
        for j in range(self.counted, i):
            place = self.spots[j]
            if place is not None:
                self.above.put_back(self.requests[j], place)
        self.counted = i

    def _with_room(self, i: int, wish: Spot) -> Spot:
        """The spot for request `i`, cleared."""
        request = self.requests[i]
        if self.above is self.board or self.board.fits(request, wish):
            return wish
        elsewhere = self._undisturbing(request, wish)
        if elsewhere is None:
            self._make_room(i, wish)
        return elsewhere or wish

    def _undisturbing(self, request: Request, wish: Spot) -> Spot | None:
        """The first other pool with the same start that displaces no request.

        A pool that is held back longer than the pool of `wish` does not count if `wish` is in time.
        """
        reached = max(held_back_until(request, wish.pool), wish.start - 1)
        for key in request.pools:
            pool = None if key == wish.pool else self.snapshot.pools.get(key)
            if held_back_until(request, key) > reached:
                continue
            if pool is not None and pool.open and floor(pool, request, self.snapshot.now) <= wish.start:
                same = spot(pool, request, wish.start, self.snapshot.now)
                if self.board.fits(request, same):
                    return same
        return None

    def _make_room(self, i: int, wish: Spot) -> None:
        """Take out the requests in the way of `wish`: all of its slice at that time, and as few others as needed."""
        request = self.requests[i]
        out = self.overlaps.of_slice(i, wish.start, wish.end)
        for j in out:
            self._take_out(j)
        out += self._lowest_in_the_way(i, wish)
        self.displaced.extend(Displaced(self.requests[j].key, request.key) for j in sorted(out))

    def _lowest_in_the_way(self, i: int, wish: Spot) -> list[int]:
        """Take out the lowest ranks that hold the nodes needed for `wish`."""
        hold = wish.hold
        others = self.overlaps.of_pool(i, wish.pool, hold.begin, hold.end)
        section = self.board.calendars[wish.pool].section(hold.begin, hold.end)
        out = who_gives_way(section, self.requests[i].nodes, others, self._shares)
        for j in out:
            self._take_out(j)
        return out

    def _shares(self, j: int) -> tuple[Share, ...]:
        place = self.spots[j]
        return () if place is None else place.shares

    def _take_out(self, j: int) -> None:
        place = self.spots[j]
        assert place is not None
        self.board.lift(self.requests[j], place)
        self._note(j, None)

    def _put(self, i: int, place: Spot, wanted: tuple[tuple[int, int], ...] = ()) -> None:
        self._note(i, self.board.put(self.requests[i], place, wanted))

    def _note(self, i: int, place: Spot | None) -> None:
        self.spots[i] = place
        self.overlaps.note(i, place)

    def _bound(self) -> dict[str, tuple[str, ...]]:
        bound: dict[str, tuple[str, ...]] = {}
        for pool, calendar in self.board.calendars.items():
            if not calendar.uniform:
                held = [
                    Held(self.requests[j].key, self.requests[j].nodes, place.hold, place.shares)
                    for j, place in self._held_in(pool)
                ]
                bound |= name_nodes(self.board.stretches[pool], held)
        return bound
