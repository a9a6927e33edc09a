"""Whether a plan still is the plan when nothing but time has passed. Pure.

A plan that leaves every request where it was promised to be has nothing left to move: time takes early starts away and
gives none. So a long queue is not planned again in each quiet cycle.

Held by tests/scheduler/test_standing.py: what is said to stand is what planning again would give.
"""

from __future__ import annotations

from scheduler.snapshot import Plan, Request, Snapshot


def is_settled(snapshot: Snapshot, plan: Plan) -> bool:
    """Whether everybody is where they were promised to be, or has no place at all.

    False where nodes have calendars of their own: which of them serve whom may follow from the time.
    """
    if plan.displaced or any(pool.windows for pool in snapshot.pools.values()):
        return False
    return all(_is_kept(request, plan) for request in snapshot.requests.values())


def _is_kept(request: Request, plan: Plan) -> bool:
    place, promise = plan.placements.get(request.key), request.promise
    if place is None or promise is None:
        return place is None and promise is None
    return (place.pool, place.start, place.bound) == (promise.pool, promise.start, promise.bound)


def stands(was: Snapshot, plan: Plan, now: Snapshot) -> bool:
    """Whether the plan of `was`, which is settled, is that of `now`. Costs a glance at each request."""
    if now.now < was.now or now.leases != was.leases or now.pools != was.pools:
        return False
    if now.requests.keys() != was.requests.keys():
        return False
    same = all(
        request is was.requests[key] or request == was.requests[key] for key, request in now.requests.items()
    )
    return same and all(place.start >= now.now for place in plan.placements.values())
