"""The rows of `egs get capacity`: free nodes by shape and hour. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from reconciler.planning.free_hours import MOST_HOURS, Needs, free_hours, needs_of
from reconciler.queries.state import State
from reconciler.sources.command_errors import NotFound
from scheduler.plan import plan
from scheduler.snapshot import PoolKey
from schemas.reading.units import instant, wire

Row = dict[str, Any]
USUAL_HOURS = 24


def needs_in(state: State) -> Needs:
    """Which nodes are needed when. Costs two plans."""
    return needs_of(state.facts, state.snapshot, plan(state.snapshot))


def rows(
    state: State, needs: Needs, pools: Iterable[PoolKey], hours: int, shape: str | None = None
) -> list[Row]:
    """Free nodes of these pools. Raises NotFound for a shape that none of them has."""
    chosen = [key for key in pools if key in state.snapshot.pools]
    known = {state.snapshot.pools[key].gpu_shape for key in chosen}
    if shape is not None and shape not in known:
        raise NotFound("shape", shape, known)
    own = [key for key in chosen if shape in (None, state.snapshot.pools[key].gpu_shape)]
    return [
        {
            "gpuShape": one.shape,
            "begin": wire(instant(one.begin)),
            "nodes": one.nodes,
            "free": one.free,
            "likelyFree": one.likely,
        }
        for one in free_hours(state.snapshot, needs, min(hours, MOST_HOURS), own)
    ]
