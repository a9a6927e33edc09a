"""Pools whose nodes come and go: what is planned on them, asked for and let go (F13, F16)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.calendars.elastic import AHEAD_S, Sizes, expected, grown, is_placeholder, sizes
from scheduler.choices.node_choice import Need, choose_nodes
from scheduler.plan import plan
from scheduler.snapshot import Lease, Pool, Request, Snapshot, Window
from schemas.documents.elastic import Elastic
from schemas.reading.units import instant
from schemas.status.inventory import Ask, PoolScale
from tests.scheduler.worlds import EAST, lease, pool, request, world

UP = 600
TERMS = Elastic(max=4, scale_up=timedelta(seconds=UP), let_go=timedelta(seconds=1800))
NOW = 100_000


def fleet(there: int, scale: PoolScale | None = None, terms: Elastic = TERMS) -> Pool:
    """An elastic pool of which so many nodes are there."""
    names = pool(there).nodes
    return grown(pool(0), names, terms, scale, NOW)


def asked(*batches: tuple[int, int], wanted: int = 0, leaving: tuple[str, ...] = ()) -> PoolScale:
    """Batches of (seconds ago, nodes)."""
    asks = tuple(Ask(at=instant(NOW - ago), nodes=nodes) for ago, nodes in batches)
    return PoolScale(wanted=wanted, asks=asks, leaving=leaving)


@pytest.mark.parametrize(
    ("there", "scale", "nodes", "start"),
    [
        pytest.param(0, asked(), 1, UP, id="a node that nobody asked for takes its whole time from now"),
        pytest.param(0, asked((200, 1)), 1, UP - 200, id="one that was asked for comes that much earlier"),
        pytest.param(0, asked((200, 1)), 2, UP, id="two need one more"),
        pytest.param(1, asked(), 1, 0, id="a node that is there is used at once"),
        pytest.param(1, asked((200, 1)), 2, UP - 200, id="one there and one that comes"),
        pytest.param(2, asked(leaving=("h100-2",)), 2, UP, id="a node that leaves serves nobody"),
        pytest.param(0, asked((UP + 5, 1)), 1, 1, id="one that should be there comes any moment"),
        pytest.param(4, asked(), 4, 0, id="all that there can be"),
        pytest.param(0, asked(), 5, None, id="more than there can be"),
    ],
)
def test_who_waits_for_nodes_that_do_not_exist(
    there: int, scale: PoolScale, nodes: int, start: int | None
) -> None:
    found = plan(world(request("a", nodes=nodes), pools=[fleet(there, scale)], now=NOW))
    place = found.placements.get("a/r")
    assert (None if place is None else place.start - NOW) == start


def test_where_nobody_looked_the_least_number_is_there() -> None:
    terms = TERMS.model_copy(update={"min": 2})
    found = plan(world(request("a", nodes=2), pools=[fleet(0, None, terms)], now=NOW))
    assert found.placements["a/r"].start == NOW


def test_nodes_that_do_not_exist_are_never_given_out() -> None:
    there = fleet(1)
    assert choose_nodes(there, (), Need(2, Window(NOW, NOW + 10))) is None
    assert choose_nodes(there, (), Need(1, Window(NOW, NOW + 10))) == ("h100-1",)


@pytest.mark.parametrize(("late", "want"), [(0, 600), (1, 1200), (2, 2400), (5, 19_200), (9, 19_200)])
def test_nodes_that_do_not_come_are_expected_ever_later(late: int, want: int) -> None:
    assert expected(0, late, UP) == want


@pytest.mark.parametrize(
    ("terms", "leases", "requests", "want"),
    [
        pytest.param({}, [], [], Sizes(0, 0), id="nobody needs any"),
        pytest.param({"min": 1}, [], [], Sizes(1, 1), id="the least number stays"),
        pytest.param({"warm": 2}, [], [], Sizes(2, 2), id="warm ones too"),
        pytest.param({}, [lease("b", ["h100-1"], NOW + 50)], [], Sizes(1, 1), id="a lease"),
        pytest.param({}, [], [request("a", nodes=3)], Sizes(3, 3), id="somebody who waits"),
        pytest.param(
            {},
            [],
            [request("a", nodes=2, not_before=NOW + UP + AHEAD_S)],
            Sizes(0, 2),
            id="not yet asked for, and no longer let go",
        ),
        pytest.param(
            {}, [], [request("a", nodes=2, not_before=NOW + 5000)], Sizes(0, 0), id="needed much later"
        ),
        pytest.param(
            {"warm": 3}, [], [request("a", nodes=2)], Sizes(4, 4), id="never more than the most there can be"
        ),
        pytest.param(
            {},
            [],
            [request("a", duration=50), request("b", duration=50, not_before=NOW + UP + 100)],
            Sizes(1, 1),
            id="one after the other on one node",
        ),
    ],
)
def test_sizes(terms: dict[str, int], leases: list[Lease], requests: list[Request], want: Sizes) -> None:
    elastic = TERMS.model_copy(update=terms)
    there = fleet(1 if leases else 0, asked(), elastic)
    snapshot = world(*requests, pools=[there], leases=leases, now=NOW)
    assert sizes(snapshot, plan(snapshot), {EAST: elastic}) == {EAST: want}


queues = st.lists(
    st.tuples(st.integers(1, 3), st.integers(1, 4000), st.integers(0, 8000)), min_size=1, max_size=6
)


@given(queues, st.integers(0, 2), st.integers(0, 3))
def test_whoever_follows_the_sizes_has_the_nodes_in_time(
    asks: list[tuple[int, int, int]], least: int, warm: int
) -> None:
    """Played forward as the controller takes its steps: nobody slips, and the pool stays within its bounds."""
    terms = TERMS.model_copy(update={"min": least, "warm": warm})
    requests = {
        f"s{i}/r": request(f"s{i}", nodes=nodes, duration=duration, not_before=NOW + later)
        for i, (nodes, duration, later) in enumerate(asks)
    }
    play = _Play(terms, requests)
    promised = {key: place.start for key, place in play.planned().items()}
    for _ in range(400):
        play.step()
        if not play.requests:
            break
    assert {key: start for key, start in play.started.items() if start > promised[key]} == {}
    assert play.started.keys() == promised.keys()
    assert all(least <= size <= terms.max for size in play.sizes)


class _Play:
    """A pool, a queue and a clock; what `reconciler.planning.elastic_pools` does, in counts."""

    def __init__(self, terms: Elastic, requests: dict[str, Request]) -> None:
        self.terms, self.requests, self.now = terms, dict(requests), NOW
        self.there, self.coming = terms.min, list[int]()
        self.leases: list[tuple[int, int]] = []  # (end, nodes)
        self.started: dict[str, int] = {}
        self.sizes: list[int] = []

    def snapshot(self) -> Snapshot:
        batches = tuple(Ask(at=instant(at), nodes=1) for at in self.coming)
        scale = PoolScale(wanted=self.there + len(self.coming), asks=batches)
        there = grown(pool(0), pool(self.there).nodes, self.terms, scale, self.now)
        used, leases = 0, []
        for i, (end, nodes) in enumerate(self.leases):
            leases.append(lease(f"l{i}", list(there.nodes[used : used + nodes]), end))
            used += nodes
        return world(*self.requests.values(), pools=[there], leases=leases, now=self.now)

    def planned(self):  # type: ignore[no-untyped-def]
        return plan(self.snapshot()).placements

    def step(self) -> None:
        """To the next instant that matters, half a minute away at most."""
        self.there += sum(at + UP <= self.now for at in self.coming)
        self.coming = [at for at in self.coming if at + UP > self.now]
        self.leases = [found for found in self.leases if found[0] > self.now]
        snapshot = self.snapshot()
        planned = plan(snapshot)
        wanted = sizes(snapshot, planned, {EAST: self.terms})[EAST]
        free = self.there - sum(nodes for _, nodes in self.leases)
        for key, place in planned.placements.items():
            if place.start <= self.now and self.requests[key].nodes <= free:
                gone = self.requests.pop(key)
                free -= gone.nodes
                self.started[key] = self.now
                self.leases.append((place.end, gone.nodes))
        have = self.there + len(self.coming)
        self.coming += [self.now] * max(0, wanted.least - have)
        surplus = min(max(0, have - wanted.most), free)
        self.there -= surplus
        self.sizes.append(self.there + len(self.coming))
        points = [at + UP for at in self.coming] + [end for end, _ in self.leases]
        points += [place.start for place in plan(self.snapshot()).placements.values()]
        self.now = min([at for at in points if at > self.now] + [self.now + 30])


def test_placeholders_are_no_names() -> None:
    assert [is_placeholder(name) for name in fleet(1).nodes] == [False, True, True, True]
