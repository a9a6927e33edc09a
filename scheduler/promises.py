"""A plan that was committed becomes the promises of the next snapshot."""

from __future__ import annotations

from dataclasses import replace

from scheduler.snapshot import Plan, Promise, Snapshot


def with_promises(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """`snapshot` as it stands once `plan` is committed: each placement is a promise, who has none loses theirs.

    Who was refused waits from then on for room that nobody was promised (`Request.may_displace`).
    """
    requests = {}
    for key, request in snapshot.requests.items():
        placement = plan.placements.get(key)
        promise = None if placement is None else Promise(placement.pool, placement.start, placement.bound)
        requests[key] = replace(request, promise=promise, may_displace=promise is not None)
    return replace(snapshot, requests=requests)
