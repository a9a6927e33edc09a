"""Which nodes a request gets, when its start is decided. Until then only their number is promised.

Held by tests/scheduler/choices/test_node_choice.py: as long as starts are decided in order of their holds' begins
and with the names that the plan has bound, there are always enough nodes for everything the plan says.
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
    """So many nodes for this hold. `bound` are the names the plan gave already, `beside` nodes they work with."""

    nodes: int
    hold: Window
    bound: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()


def need(pool: Pool, request: Request, placement: Placement, now: int) -> Need:
    """What `placement` needs; a start that is nearer than preparation takes is held from now on."""
    begin = max(now, placement.start - pool.prepare)
    return Need(request.nodes, Window(begin, placement.end + pool.drain), placement.bound)


def choose_nodes(
    pool: Pool,
    leases: Iterable[Lease],
    wanted: Need,
    avoid: Collection[str] = (),
    traits: TraitsOf = plain,
) -> tuple[str, ...] | None:
    """Names free for the whole hold, in the pool's order; None when there are too few.

    The names bound by the plan first, then nodes that stay free for ever, then those whose time ends soonest:
    nodes with calendars of their own may be what another request was planned on. Among those that are free alike,
    such as stand together and did not fail before (see `scheduler.choices.topology`). Nodes of `avoid` (they have
    failed checks) are passed over, and so are nodes that do not exist yet. Call in order of `wanted.hold.begin`.
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
    """Placements in the order in which nodes are to be chosen for them."""
    rank = {key: place for place, key in enumerate(plan.order)}

    def begin(placement: Placement) -> tuple[int, int]:
        prepare = snapshot.pools[placement.pool].prepare
        return (max(snapshot.now, placement.start - prepare), rank[placement.key])

    return sorted(plan.placements.values(), key=begin)
