"""Names for a whole plan: the same as choosing for each request among all nodes again (G3)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.queries.tables import tentative_leases
from scheduler.calendars.stretches import leases_by_pool
from scheduler.choices.node_choice import choose_nodes, in_order_of_begin, need
from scheduler.plan import plan
from scheduler.snapshot import Lease, Plan, Snapshot, Window
from tests.scheduler.worlds import lease, pool, promised_worlds, request, world
from tests.support.profile import law


def one_by_one(snapshot: Snapshot, planned: Plan) -> list[Lease]:
    """What each request gets, asked of `choose_nodes` with everything that stands or was chosen before."""
    busy, found = leases_by_pool(snapshot.leases), list[Lease]()
    for place in in_order_of_begin(snapshot, planned):
        pool, request = snapshot.pools[place.pool], snapshot.requests[place.key]
        wanted = need(pool, request, place, snapshot.now)
        names = choose_nodes(pool, busy.get(pool.key, ()), wanted)
        if names is not None:
            hold = wanted.hold
            found.append(
                Lease(place.key, request.slice, pool.key, names, hold.begin, place.start, place.end, hold.end)
            )
            busy.setdefault(pool.key, []).append(found[-1])
    return found


@pytest.mark.parametrize(("bound", "want"), [
    pytest.param((), ("h100-2",), id="a node that stays free before one with maintenance"),
    pytest.param(("h100-3",), ("h100-3",), id="a bound name first"),
    pytest.param(("h100-1",), ("h100-2",), id="a bound name that is held is left out"),
])  # fmt: skip
def test_names(bound: tuple[str, ...], want: tuple[str, ...]) -> None:
    """One node is held, one has maintenance later."""
    east = pool(3, windows={"h100-3": (Window(50, 60),)})
    snapshot = world(request("a"), pools=[east], leases=[lease("b", ["h100-1"], 100)])
    planned = plan(snapshot)
    placements = {key: replace(place, bound=bound) for key, place in planned.placements.items()}
    planned = replace(planned, placements=placements)
    assert [found.nodes for found in tentative_leases(snapshot, planned)] == [want]
    assert [found.nodes for found in one_by_one(snapshot, planned)] == [want]


@law(400)
@given(promised_worlds(windows=True), st.data())
def test_the_same_names_as_one_by_one(snapshot: Snapshot, data: st.DataObject) -> None:
    """Also with leases that begin later or share a node, and with placements bound to nodes of any kind."""
    leases = {
        key: replace(
            standing,
            held_from=data.draw(st.sampled_from([0, 0, standing.held_from + 2, standing.held_until])),
        )
        for key, standing in snapshot.leases.items()
    }
    snapshot = replace(snapshot, leases=leases)
    planned = plan(snapshot)
    placements = {
        key: replace(
            place,
            bound=tuple(data.draw(st.lists(st.sampled_from(snapshot.pools[place.pool].nodes), unique=True))),
        )
        for key, place in planned.placements.items()
    }
    planned = replace(planned, placements=placements)
    assert tentative_leases(snapshot, planned) == one_by_one(snapshot, planned)
