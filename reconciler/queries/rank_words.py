"""Why a waiting request has its rank: the ranking criteria in the order in which they count, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from egs.commands.output import counted
from reconciler.planning.queue_place import scale_of
from reconciler.queries.state import State
from scheduler.fairness.usage_share import counted as counted_hours
from scheduler.snapshot import Request
from schemas.documents.scheduling import Fairness
from schemas.reading.units import format_instant, seconds
from schemas.status.gpr_status import GPRStatus


def place_of(state: State, key: str) -> str:
    return f"Its place: {'; '.join(_parts(state, state.snapshot.requests[key], state.facts.requests[key]))}."


def _parts(state: State, request: Request, status: GPRStatus) -> Iterator[str]:
    policy = state.wanted.project.scheduling
    yield f"priority {request.priority}"
    is_kept = status.displaced_count >= policy.max_displacements
    if is_kept:
        times = counted(status.displaced_count, "time")
        top = f", {request.priority + request.boost}" if request.boost else ""
        yield f"it was displaced {times}, so it comes first within its priority band and slice{top}"
    elif request.boost:
        yield f"plus {request.boost} for waiting, so it counts as {request.priority + request.boost}"
    if request.move:
        yield f"an admin moved it {'ahead' if request.move > 0 else 'behind'} by {abs(request.move)}"
    if policy.fairness is not None and status.place is not None and not is_kept:
        yield _share(state, request, status, policy.fairness)
    if request.service:
        yield f"{request.service} GPU-hours of service (less comes first)"
    if request.filed_at > 0:
        yield f"filed {format_instant(status.filed_at)} (among equals, the earlier filed comes first)"
    else:
        yield "its filing time is not recorded, so its name breaks ties"


def _share(state: State, request: Request, status: GPRStatus, fairness: Fairness) -> str:
    """What the slice used, at filing time and as it counts now."""
    place, scale = status.place, scale_of(status.accepted_spec.slice, state.wanted, fairness)
    assert place is not None
    waited = seconds(state.now) - request.filed_at if request.filed_at > 0 else 0
    now = counted_hours(place.used, place.ahead, waited, scale.half_life_s)
    return (
        f"share {request.share} (less comes first): its slice had used or held {place.used:g} GPU-hours and asked "
        f"for {place.ahead:g} before it, which counts as {now:.0f} now, in steps of {scale.step} over its weight "
        f"{scale.weight:g}"
    )
