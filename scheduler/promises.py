"""A committed plan becomes the promises of the next snapshot."""

from __future__ import annotations

from dataclasses import replace

from scheduler.snapshot import Placement, Plan, Promise, Request, Snapshot


def with_promises(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """`snapshot` after `plan` is committed: each placement is a promise; a request without one loses its promise.

    A refused request then only gets nodes that no promise holds (`Request.may_displace`).
    """
    requests = {
        key: _promised(request, plan.placements.get(key)) for key, request in snapshot.requests.items()
    }
    return replace(snapshot, requests=requests)


def _promised(request: Request, placement: Placement | None) -> Request:
    promise = None if placement is None else Promise(placement.pool, placement.start, placement.bound)
    if promise == request.promise and request.may_displace == (promise is not None):
        return request  # the same object, so that results cached for it stay valid
    return replace(request, promise=promise, may_displace=promise is not None)
