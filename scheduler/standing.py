"""Whether a plan is still valid after only time has passed. Pure.

If every request is where it was promised to be, nothing is left to move: time removes early starts and adds none. So
a long queue is not planned again in each quiet cycle. A plan that stands equals a new plan.
"""

from __future__ import annotations

from scheduler.snapshot import Plan, Request, Snapshot


def is_settled(snapshot: Snapshot, plan: Plan) -> bool:
    """Whether every request is at its promise, or has none.

    False with nodes that have calendars of their own: their assignment may depend on the time.
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
    """Whether the settled plan of `was` is also the plan of `now`. O(requests)."""
    if now.now < was.now or now.leases != was.leases or now.pools != was.pools:
        return False
    if now.requests.keys() != was.requests.keys():
        return False
    same = all(
        request is was.requests[key] or request == was.requests[key] for key, request in now.requests.items()
    )
    return same and all(place.start >= now.now for place in plan.placements.values())
