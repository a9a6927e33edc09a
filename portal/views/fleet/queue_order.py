"""Who waits for whom, by the calendars of the nodes as the plan would choose them now, and for what else. Pure.

Held by tests/portal/pages/test_queue_page.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from portal.views import table_rows
from portal.views.queues import plan_of
from portal.views.view import View
from scheduler.snapshot import Placement, Plan, Snapshot

SHOWN = 3
"""Most requests named for one that waits."""


@dataclass(frozen=True, slots=True)
class Other:
    """What holds up a request that waits for no node of another one."""

    words: str
    """For the end of "Waits for"."""
    request: str = ""
    """The request of its own workspace that it follows, if that is it."""


def ahead_of(view: View) -> Mapping[str, tuple[str, ...]]:
    """By waiting request, those that have its nodes until it gets them; call it through `View.once`."""
    found: dict[str, dict[str, None]] = {}
    for row in view.once(table_rows.all_nodes):
        before = None
        for entry in row["schedule"]:
            is_next = before is not None and before["end"] == entry["begin"]
            if entry["tentative"] and is_next and before is not None and before["request"]:
                found.setdefault(entry["request"], {})[before["request"]] = None
            before = entry
    return {key: tuple(names)[:SHOWN] for key, names in found.items()}


def others_of(view: View) -> Mapping[str, Other]:
    """By waiting request with a start, what it waits for if no node keeps it; call it through `View.once_planned`."""
    world, planned = view.state.snapshot, view.once_planned(plan_of)
    own = _own_ends(world, planned)
    return {
        key: _other(world, place, own.get(world.requests[key].slice, ()))
        for key, place in planned.placements.items()
        if key in world.requests
    }


def _own_ends(world: Snapshot, planned: Plan) -> Mapping[str, list[tuple[int, str]]]:
    """Ends of everything that a workspace runs or will run."""
    found: dict[str, list[tuple[int, str]]] = {}
    for key, lease in world.leases.items():
        found.setdefault(lease.slice, []).append((lease.end, key))
    for key, place in planned.placements.items():
        if key in world.requests:
            found.setdefault(world.requests[key].slice, []).append((place.end, key))
    return found


def _other(world: Snapshot, place: Placement, own: Iterable[tuple[int, str]]) -> Other:
    request, pool = world.requests[place.key], world.pools[place.pool]
    if place.start <= world.now + pool.prepare:
        return Other("the checks before its start")
    if place.start == request.not_before:
        return Other("the earliest start that it asks for")
    before = max((one for one in own if one[1] != place.key and one[0] <= place.start), default=None)
    if before is not None and place.start - before[0] <= pool.prepare + pool.drain:
        return Other("of its own workspace, which runs one at a time", before[1])
    if request.promise is not None and not request.movable:
        return Other("its promised start, as its start mode says")
    return Other(f"nodes of {'/'.join(place.pool)}")
