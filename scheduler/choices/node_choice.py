"""Which nodes a request gets, when its start is decided. Until then only their number is promised.

If starts are decided in the order in which their holds begin, and with the names bound by the plan, there are always
enough nodes for the whole plan.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from scheduler.calendars.elastic import is_placeholder
from scheduler.calendars.stretches import free_stretches, free_throughout
from scheduler.choices.topology import TraitsOf, plain, together
from scheduler.snapshot import FOREVER, Lease, Placement, Plan, Pool, Request, Snapshot, Window


@dataclass(frozen=True, slots=True)
class Need:
    """Nodes for this hold. `bound` are the names given by the plan, `beside` nodes that they work with."""

    nodes: int
    hold: Window
    bound: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()


def need(pool: Pool, request: Request, placement: Placement, now: int) -> Need:
    """What `placement` needs; a start nearer than the preparation time is held from now on."""
    begin = max(now, placement.start - pool.prepare)
    return Need(request.nodes, Window(begin, placement.end + pool.drain), placement.bound)


def choose_nodes(
    pool: Pool, leases: Iterable[Lease], wanted: Need, avoid: Collection[str] = (), traits: TraitsOf = plain
) -> tuple[str, ...] | None:
    """Names free for the whole hold, in the pool's order; None if there are too few.

    First the names bound by the plan, then nodes that stay free for ever, then those whose free time ends soonest:
    nodes with their own calendars may be needed by another planned request. Among equally free ones, those that are
    close together and have not failed before (see `scheduler.choices.topology`). Nodes in `avoid` (they failed checks)
    and nodes that do not exist yet are skipped. Call in order of `wanted.hold.begin`.
    """
    stretches = free_stretches(pool, leases, wanted.hold.begin)
    free = {
        name: window.end
        for name, windows in stretches.items()
        if name not in avoid
        and not is_placeholder(name)
        and (window := free_throughout(windows, wanted.hold)) is not None
    }
    if len(free) < wanted.nodes:
        return None
    alike: dict[tuple[bool, bool, int], list[str]] = {}
    for name, end in free.items():
        alike.setdefault((name not in wanted.bound, end < FOREVER, end), []).append(name)
    chosen: list[str] = []
    for _, names in sorted(alike.items()):
        count = min(len(names), wanted.nodes - len(chosen))
        if count:
            chosen += together(names, count, traits, (*wanted.beside, *chosen))
    taken = set(chosen)
    return tuple(name for name in free if name in taken)


def in_order_of_begin(snapshot: Snapshot, plan: Plan) -> list[Placement]:
    """Placements in the order in which their nodes are to be chosen."""
    rank = {key: place for place, key in enumerate(plan.order)}

    def begin(placement: Placement) -> tuple[int, int]:
        prepare = snapshot.pools[placement.pool].prepare
        return (max(snapshot.now, placement.start - prepare), rank[placement.key])

    return sorted(plan.placements.values(), key=begin)
