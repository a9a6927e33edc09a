"""Changes to a waiting request that would start it earlier, each with the start it would give.

Each is tried as an edit of the request's file, with the controller's functions: approvals, limits, the queue
position and other promises are as after the merge. Held by tests/reconciler/cli/test_alternatives.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from reconciler.model.facts import Filed
from reconciler.model.request_files import with_filed
from reconciler.queries.state import State, with_wanted
from scheduler.choices.fit import candidate_pools, limit_violations
from scheduler.kernel import engine_for, plain_seconds
from scheduler.plan import plan
from scheduler.snapshot import Plan, PoolKey
from schemas.documents.gpr import RequestSpec
from schemas.reading.units import format_duration, instant, wire
from schemas.rules.edits import asks_more_or_other
from schemas.status.gpr_status import GPRStatus, Phase

WORK = 100_000
"""Rough number of requests planned for one answer: in a long queue fewer alternatives are tried."""
MOST = 24
GoesOn = Callable[[float], bool]
"""True if there is time for one more trial that takes about this many seconds."""
_BESIDE_S = 0.03
"""Rough cost of a trial besides its plan: judging the request and building the snapshot again."""
_SAVED_S, _SAVED_SHARE = 300, 0.05
"""A gain below five minutes or 5 % of the wait is not worth a change."""
_SHARES = (0.75, 0.5, 0.25)
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Alternative:
    field: str
    value: str | int
    start: int
    saved_s: int | None  # None: unchanged, the request never starts
    pool: PoolKey
    keeps_place: bool

    def json(self) -> dict[str, Any]:
        return {
            "field": self.field,
            "value": self.value,
            "estimatedStartTime": wire(instant(self.start)),
            "savedSeconds": self.saved_s,
            "cluster": self.pool[0],
            "pool": self.pool[1],
            "keepsPlace": self.keeps_place,
        }


@dataclass(frozen=True, slots=True)
class Tried:
    """The alternatives that help, and how many edits were not tried for lack of time."""

    found: tuple[Alternative, ...] = ()
    untried: int = 0


def always(_: float) -> bool:
    return True


def alternatives(state: State, planned: Plan, key: str) -> tuple[Alternative, ...]:
    """All alternatives that help, without a time limit."""
    return tried(state, planned, key, always).found


def tried(state: State, planned: Plan, key: str, goes_on: GoesOn) -> Tried:
    """The edits that start the request earlier; per field the mildest first.

    Empty if it starts as early as possible, is not planned, or waits for its own `notBefore`.
    """
    status, place = state.facts.requests[key], planned.placements.get(key)
    request = state.snapshot.requests.get(key)
    if request is None or status.phase is not Phase.QUEUED or status.remaining is not None:
        return Tried()
    soonest = max(state.snapshot.now, request.not_before)
    if place is not None and place.start - soonest < _SAVED_S:
        return Tried()
    many = max(4, min(MOST, WORK // max(1, len(state.snapshot.requests))))
    now = place.start if place is not None else None
    todo = list(variations(state, status, place.pool if place else None))[:many]
    cost_s = _BESIDE_S + (0.0 if engine_for(state.snapshot) else plain_seconds(state.snapshot))
    found, untried = [], 0
    for change in todo:
        if not goes_on(cost_s):
            untried += 1
            continue
        one = _tried(state, key, change, now)
        if one is not None:
            found.append(one)
    return Tried(tuple(_telling(found)), untried)


def variations(
    state: State, status: GPRStatus, pool: PoolKey | None
) -> Iterator[tuple[str, str | int, RequestSpec]]:
    """Edits that may help, the mildest of each field first."""
    spec = status.accepted_spec
    slice_ = state.wanted.slices[spec.slice]
    for nodes in _fewer(spec.nodes):
        yield "nodes", nodes, spec.edited(nodes=nodes)
    for share in _SHARES:
        shorter = spec.duration * share // _MINUTE * _MINUTE
        if _MINUTE <= shorter < spec.duration:
            yield "duration", format_duration(shorter), spec.edited(duration=shorter)
    here = None if pool is None else state.wanted.pools[pool].gpu_shape
    if spec.gpu_shapes:
        free = candidate_pools(spec.edited(gpu_shapes=()), slice_, state.wanted.pools)
        for shape in dict.fromkeys(state.wanted.pools[key].gpu_shape for key in free):
            if shape not in spec.gpu_shapes and shape != here:
                yield "gpuShape", shape, spec.edited(gpu_shapes=(shape,))
    for cluster in slice_.clusters if spec.clusters else ():
        if cluster not in spec.clusters:
            yield "clusters", cluster, spec.edited(clusters=(cluster,))


def _fewer(nodes: int) -> list[int]:
    shares = {nodes - 1, *(int(nodes * share) for share in _SHARES), 1}
    return sorted((count for count in shares if 1 <= count < nodes), reverse=True)


def _tried(
    state: State, key: str, change: tuple[str, str | int, RequestSpec], was: int | None
) -> Alternative | None:
    field, value, spec = change
    slice_ = state.wanted.slices[spec.slice]
    if limit_violations(spec, slice_, state.wanted.pools):
        return None
    filed = with_filed(state.wanted.filed, {key: Filed(spec)})
    tried = with_wanted(state, replace(state.wanted, filed=filed))
    status = tried.facts.requests.get(key)
    place = None if status is None else plan(tried.snapshot).placements.get(key)
    if place is None or tried.snapshot.pools[place.pool].observed:
        return None  # it would wait for an admin, or fit no pool
    saved = None if was is None else was - place.start
    if was is not None and was - place.start < max(_SAVED_S, _SAVED_SHARE * (was - state.snapshot.now)):
        return None
    keeps = not asks_more_or_other(state.facts.requests[key].accepted_spec, spec)
    return Alternative(field, value, place.start, saved, place.pool, keeps)


def _telling(found: Iterable[Alternative]) -> Iterator[Alternative]:
    """`nodes` and `duration` come mildest first: yield only those that start earlier than the last one yielded."""
    best: dict[str, int] = {}
    for one in found:
        if one.field in ("gpuShape", "clusters") or one.start < best.get(one.field, one.start + 1):
            best[one.field] = one.start
            yield one
