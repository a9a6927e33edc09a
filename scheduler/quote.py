"""When would it start? For a request that is not filed, one answer for each pool it could use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from scheduler.binding import Held, wanted_shares
from scheduler.board import Board, spot
from scheduler.plan import plan
from scheduler.rank import rank_key
from scheduler.reasons import no_place
from scheduler.snapshot import Plan, PoolKey, Request, Snapshot


@dataclass(frozen=True, slots=True)
class Quote:
    """One pool's answer; `start` is None when there is none, for `reason`."""

    pool: PoolKey
    gpu_shape: str
    gpus_per_node: int
    memory_per_gpu: int
    free_nodes: int
    price_per_gpu_hour: float
    start: int | None = None
    wait_s: int | None = None
    needs_approval: bool = False
    reason: str | None = None
    message: str | None = None


def quote(
    snapshot: Snapshot,
    request: Request,
    needs_approval: Mapping[PoolKey, bool] | None = None,
    planned: Plan | None = None,
) -> tuple[Quote, ...]:
    """Start in each of `request.pools` alone if `request` were filed now, the earliest first.

    Standing promises are respected as far as they would be: those of lower rank may have to give way. One plan
    for all pools, then one search each. `needs_approval` by pool (see `scheduler.fit`) is passed on: such a
    start holds only if an admin approves at once. `planned` is the snapshot's plan, where the caller has it.
    """
    needs = needs_approval or {}
    leased, ahead = Board(snapshot), _taken_by_higher_ranks(snapshot, request, planned or plan(snapshot))
    pools = [key for key in request.pools if key in snapshot.pools]
    quotes = [_answer(snapshot, (leased, ahead), request, key) for key in pools]
    marked = [replace(answer, needs_approval=needs.get(answer.pool, False)) for answer in quotes]
    return tuple(sorted(marked, key=lambda answer: (answer.start is None, answer.start or 0)))


def _taken_by_higher_ranks(snapshot: Snapshot, request: Request, planned: Plan) -> Board:
    board = Board(snapshot)
    for key in planned.order:
        other, placement = snapshot.requests[key], planned.placements.get(key)
        if rank_key(other) > rank_key(request):
            break
        if placement is not None:
            pool = snapshot.pools[placement.pool]
            place = spot(pool, other, placement.start, snapshot.now)
            held = Held(key, other.nodes, place.hold)
            board.put(other, place, wanted_shares(board.stretches[pool.key], held, placement.bound))
    return board


def _answer(snapshot: Snapshot, boards: tuple[Board, Board], request: Request, key: PoolKey) -> Quote:
    pool, now, (leased, ahead) = snapshot.pools[key], snapshot.now, boards
    alone = replace(request, pools=(key,))
    answer = Quote(
        pool=key,
        gpu_shape=pool.gpu_shape,
        gpus_per_node=pool.gpus_per_node,
        memory_per_gpu=pool.memory_per_gpu,
        free_nodes=leased.calendars[key].room(now, now + 1),
        price_per_gpu_hour=pool.price_per_gpu_hour,
    )
    found = ahead.earliest(alone)
    if found is not None:
        return replace(answer, start=found.start, wait_s=found.start - now)
    refused = no_place(snapshot, alone)
    return replace(answer, reason=refused.reason, message=refused.message)
