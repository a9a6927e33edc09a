"""The compiled engine: a snapshot in, the same plan as `scheduler.plan` out. There must be a library."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scheduler.calendars.calendar import PoolCalendar
from scheduler.calendars.node_binding import Held, rebind
from scheduler.kernel.fleet import Fleet, fleet_of
from scheduler.kernel.native import compress, draw_lines, move_all, place, stand
from scheduler.kernel.placements import Displacements, Placed, Placements
from scheduler.kernel.rows import NO_PROMISE, PROMISED_POOL, Rows, rows_of
from scheduler.kernel.state import world_of, write_shares
from scheduler.kernel.world import Drawn, Outcome, Promises, Scratch, Spots, World, holders, is_half_full
from scheduler.reasons import no_place
from scheduler.snapshot import Plan, Snapshot, Window

Ints = NDArray[np.int64]
NOWHERE = -1


@dataclass(frozen=True, slots=True)
class Prepared:
    """A snapshot as arrays, with lines drawn but no request placed."""

    snapshot: Snapshot
    rows: Rows
    fleet: Fleet
    world: World
    promises: Promises
    outcome: Outcome
    standing: bool


class Crowded(Exception):  # noqa: N818 - no error: it is planned again
    """Too many requests changed nodes for the space that their steps have."""


def planned(snapshot: Snapshot) -> Plan:
    """The plan of `snapshot`."""
    room = 1
    while True:
        prepared = prepare(snapshot, room)
        try:
            place_all(prepared)
        except Crowded:
            room *= 4
        else:
            return _plan(prepared)


def prepare(snapshot: Snapshot, room: int = 1) -> Prepared:
    """`room` is the space for steps, as a multiple of what nearly every plan needs."""
    rows, fleet = rows_of(snapshot), fleet_of(snapshot)
    # Without promises no lower rank is placed yet, so what higher ranks leave is all that is left.
    standing = bool((rows.table[:, PROMISED_POOL] != NO_PROMISE).any())
    world, promises = world_of(snapshot, rows, fleet, 2 if standing else 1, room)
    draw_lines(world.lines, 0, Drawn(fleet.first, fleet.at, fleet.value))
    return Prepared(snapshot, rows, fleet, world, promises, _outcome(len(rows.keys)), standing)


def place_all(prepared: Prepared) -> None:
    world, fleet, standing = prepared.world, prepared.fleet, prepared.standing
    if standing:
        _stand(prepared)
    if (world.spots.pool == NOWHERE).any():
        if standing:
            draw_lines(world.lines, world.pools.width, Drawn(fleet.first, fleet.at, fleet.value))
        size = len(prepared.rows.keys) if standing else 0
        there = holders(len(fleet.keys), size, 3 * size)
        scratch = Scratch(np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64))
        place(world, there, scratch, prepared.outcome, standing)
    if standing:
        compress(world)


def _stand(p: Prepared) -> None:
    i, outcome = stand(p.world, p.promises, p.outcome, 0), p.outcome
    while i < p.promises.pool.size:
        if not _rebind_to_fit(p, i):
            outcome.who[outcome.size[0]], outcome.whom[outcome.size[0]] = i, NOWHERE
            outcome.size[0] += 1
        i = stand(p.world, p.promises, outcome, i + 1)


def _rebind_to_fit(p: Prepared, i: int) -> bool:
    """Reservations may swap nodes, but not times, to let one more hold."""
    pool, spots = int(p.promises.pool[i]), p.world.spots
    there = np.append(np.flatnonzero(spots.pool == pool), i)
    starts = np.append(spots.start[there[:-1]], p.promises.start[i])
    held = [_held(p, pool, j, at) for j, at in zip(there.tolist(), starts.tolist(), strict=True)]
    found = rebind(empty_calendar(p.fleet, pool, p.snapshot.now), held)
    if found is None:
        return False
    lines = p.fleet.group_lines(pool)
    for j, shares in zip(there.tolist(), found, strict=True):
        write_shares(p.world.wanted, j, [(lines[end], count) for end, count in shares])
    if is_half_full(p.world.lines):
        raise Crowded
    move_all(p.world, Spots(there, starts), pool)
    return True


def empty_calendar(fleet: Fleet, pool: int, now: int) -> PoolCalendar:
    """The pool with its leases and withheld nodes, as in the plain engine."""
    calendar = PoolCalendar(fleet.free[pool].stretches().values(), now)
    for kept in fleet.pools[pool].withheld:
        if kept.end > max(kept.begin, now):
            calendar.withhold(kept.nodes, kept.begin, kept.end)
    return calendar


def _held(p: Prepared, pool: int, j: int, start: int) -> Held:
    there, request = p.fleet.pools[pool], p.rows.requests[j]
    begin = max(p.snapshot.now, start - there.prepare)
    return Held(request.key, request.nodes, Window(begin, start + request.duration + there.drain))


def _outcome(size: int) -> Outcome:
    return Outcome(
        np.zeros(size + 1, dtype=np.int64), np.zeros(size + 1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    )


def _plan(p: Prepared) -> Plan:
    rows, spots, count = p.rows, p.world.spots, int(p.outcome.size[0])
    refused = [rows.requests[i] for i in np.flatnonzero(spots.pool == NOWHERE).tolist()]
    refusals = {request.key: no_place(p.snapshot, request) for request in refused}
    placed = Placed(rows, p.fleet, spots.pool, spots.start, p.world.shares, p.snapshot.now)
    displaced = Displacements(rows.keys, p.outcome.who[:count], p.outcome.whom[:count])
    return Plan(tuple(rows.keys), Placements(placed), refusals, displaced)
