"""Whether any request may start later than committed: only then is the previous snapshot needed. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from scheduler.causes.causes import HasTime, always
from scheduler.snapshot import Plan, Snapshot
from schemas.status.gpr_status import GPRStatus, Phase


@dataclass(frozen=True, slots=True)
class CommittedWorld:
    """The last committed requests and, computed when one is late, their snapshot (None: not known)."""

    requests: Mapping[str, GPRStatus]
    world: Callable[[], Snapshot | None]
    has_time: HasTime = always


def may_be_late(committed: Mapping[str, GPRStatus], world: Snapshot, planned: Plan) -> bool:
    """False only if no request starts later than committed: then there is no cause to look for."""
    for key, request in world.requests.items():
        place, promise = planned.placements.get(key), request.promise
        if promise is None:
            if _may_have_had_one(committed.get(key)):
                return True
        elif place is None or place.start > promise.start:
            return True
    return False


def _may_have_had_one(status: GPRStatus | None) -> bool:
    """True if it had a promised start before; a request that releases nodes to wait again counts."""
    return status is not None and (
        status.phase is not Phase.QUEUED or status.estimated_start_time is not None
    )
