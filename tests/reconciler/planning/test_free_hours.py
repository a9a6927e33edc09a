"""Free nodes by shape and hour (G6): of the plan, and if requests end when their kind usually does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.facts import Facts
from reconciler.planning import free_hours as module
from reconciler.planning.free_hours import HOUR, FreeHour, free_hours, needs_of
from scheduler.estimates.habits import Released
from scheduler.plan import plan
from scheduler.snapshot import FOREVER, Lease, Pool, Request, Snapshot, Window, Withheld
from tests.reconciler.workloads.gpus import NOW

KEY = ("east", "h100")
POOL = Pool(KEY, "H100-80GB", 8, 80, ("n1", "n2", "n3", "n4"), prepare=120, drain=300)
NONE = Facts(NOW)


def lease(key: str, start: int, end: int, *nodes: str) -> Lease:
    return Lease(key, key.partition("/")[0], KEY, nodes, start - 120, start, end, end + 300)


def world(*leases: Lease, pool: Pool = POOL, requests: tuple[Request, ...] = (), now: int = 0) -> Snapshot:
    return Snapshot(now, {KEY: pool}, {one.key: one for one in leases}, {one.key: one for one in requests})


def frees(snapshot: Snapshot, hours: int = 4) -> list[int]:
    return [row.free for row in free_hours(snapshot, needs_of(NONE, snapshot, plan(snapshot)), hours, [KEY])]


@pytest.mark.parametrize(
    ("snapshot", "want"),
    [
        pytest.param(world(), [4, 4, 4, 4], id="nothing runs"),
        pytest.param(
            world(lease("a/x", 0, 2 * HOUR, "n1", "n2")), [2, 2, 2, 4], id="cleaning takes its hour too"
        ),
        pytest.param(
            world(lease("a/x", 0, HOUR, "n1"), lease("b/y", HOUR, 2 * HOUR, "n2")),
            [2, 2, 3, 4],
            id="leases of different nodes in a row",
        ),
        pytest.param(
            world(requests=(Request("a/x", "a", 3, HOUR, (KEY,)),)),
            [1, 1, 4, 4],
            id="what is planned is needed",
        ),
        pytest.param(
            world(pool=replace(POOL, windows={"n1": (Window(0, FOREVER),), "n2": (Window(HOUR, 2 * HOUR),)})),
            [3, 2, 3, 3],
            id="nodes that are out",
        ),
        pytest.param(
            world(lease("a/x", 0, HOUR, "n1"), pool=replace(POOL, windows={"n1": (Window(0, FOREVER),)})),
            [3, 3, 3, 3],
            id="a leased node that is lost counts once",
        ),
        pytest.param(
            world(pool=replace(POOL, withheld=(Withheld(0, 2 * HOUR, 2, reserve=True),))),
            [2, 2, 4, 4],
            id="a reserve",
        ),
        pytest.param(
            world(pool=replace(POOL, open=False)), [0, 0, 0, 0], id="an unreachable cluster gives none"
        ),
    ],
)
def test_free_by_the_plan(snapshot: Snapshot, want: list[int]) -> None:
    assert frees(snapshot) == want


def test_nodes_are_those_that_are_not_out_for_good() -> None:
    gone = replace(POOL, windows={"n1": (Window(0, FOREVER),)})
    snapshot = world(pool=gone)
    (row,) = free_hours(snapshot, needs_of(NONE, snapshot, plan(snapshot)), 1, [KEY])
    assert row == FreeHour("H100-80GB", 0, 3, 3, None)


def test_likely_ends_free_nodes_earlier(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests of this kind use half of their time."""
    learnt: Any = type("Lesson", (), {})()
    learnt.learnt = type("Learnt", (), {})()
    past = [Released("a", "H100-80GB", 4 * HOUR, 2 * HOUR, filed) for filed in range(60)]
    learnt.learnt.past = type("Past", (), {"released": past})()
    monkeypatch.setattr(module, "is_enough", lambda _: True)
    monkeypatch.setattr(module, "lesson", lambda *_: learnt)
    snapshot = world(lease("a/x", 0, 4 * HOUR, "n1", "n2"), now=HOUR // 2)
    rows = free_hours(snapshot, needs_of(NONE, snapshot, plan(snapshot)), 5, [KEY])
    assert [row.free for row in rows] == [2, 2, 2, 2, 4]
    assert [row.likely for row in rows] == [2, 2, 4, 4, 4]


@given(
    st.lists(
        st.tuples(st.integers(-5, 30), st.integers(1, 20), st.sampled_from(["n1", "n2", "n3", "n4"])),
        max_size=6,
    )
)
def test_a_free_node_is_one_that_no_lease_touches(drawn: list[tuple[int, int, str]]) -> None:
    """Against counting minute by minute."""
    leases = [
        lease(f"a/{n}", start * 600, (start + long) * 600, node)
        for n, (start, long, node) in enumerate(drawn)
    ]
    rows = frees(world(*leases), 6)
    for hour, free in enumerate(rows):
        begin, end = hour * HOUR, (hour + 1) * HOUR
        busy = max(
            sum(one.held_from <= at < one.held_until for one in leases) for at in range(begin, end, 60)
        )
        assert free == max(0, 4 - busy)
