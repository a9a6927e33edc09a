"""A plan that was committed becomes the promises of the next snapshot."""

from __future__ import annotations

from dataclasses import replace

from scheduler.snapshot import Placement, Plan, Promise, Request, Snapshot


def with_promises(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """`snapshot` as it stands once `plan` is committed: each placement is a promise, who has none loses theirs.

    Who was refused waits from then on for room that nobody was promised (`Request.may_displace`).
    """
    requests = {
        key: _promised(request, plan.placements.get(key)) for key, request in snapshot.requests.items()
    }
    return replace(snapshot, requests=requests)


def _promised(request: Request, placement: Placement | None) -> Request:
    promise = None if placement is None else Promise(placement.pool, placement.start, placement.bound)
    if promise == request.promise and request.may_displace == (promise is not None):
        return request  # the same object: what was worked out for it still holds
    return replace(request, promise=promise, may_displace=promise is not None)
