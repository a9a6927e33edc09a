"""Whichever engine plans, the plan is the same (E10)."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler import kernel
from scheduler.kernel import engine, library
from scheduler.kernel.engine import planned
from scheduler.kernel.native import packed
from scheduler.kernel.placements import Placements
from scheduler.kernel.world import Lines, Spots
from scheduler.plan import planned_plainly
from scheduler.promises import with_promises
from scheduler.quote import Quoter
from scheduler.snapshot import Promise, Snapshot, Window, Withheld
from tests.scheduler.crowds import history
from tests.scheduler.play import BENIGN, HARMFUL, happen
from tests.scheduler.worlds import EAST, OUT, WEST, lease, pool, promised_worlds, request, world, worlds
from tests.support.profile import law

pytestmark = pytest.mark.skipif(library.load() is None, reason="the compiled engine is not built")


CHANGING = world(
    request("long", duration=30, promise=Promise(EAST, 0)),
    request("short", promise=Promise(EAST, 0), filed_at=-1),
    pools=[replace(pool(2), windows={"h100-2": (Window(12, 1 << 60),)})],
)
"""A world whose reservations must change nodes."""


@law(1500)
@given(worlds(windows=True))
def test_from_nothing_both_engines_make_the_same_plan(snapshot: Snapshot) -> None:
    assert planned(snapshot) == planned_plainly(snapshot)


@law(2500)
@given(promised_worlds(windows=True))
def test_with_promises_both_engines_make_the_same_plan(snapshot: Snapshot) -> None:
    assert planned(snapshot) == planned_plainly(snapshot)


@law(600)
@given(promised_worlds(windows=True), st.data())
def test_whatever_happens_both_engines_make_the_same_plans(snapshot: Snapshot, data: st.DataObject) -> None:
    for what in data.draw(st.lists(st.sampled_from((*BENIGN, *HARMFUL)), min_size=1, max_size=3)):
        compiled, plain = planned(snapshot), planned_plainly(snapshot)
        assert compiled == plain
        snapshot = happen(data.draw, with_promises(snapshot, compiled), what)


@pytest.mark.parametrize("seed", range(18))
def test_both_engines_make_the_same_plans_of_a_crowd(seed: int) -> None:
    for snapshot, plain in history(seed):
        assert planned(snapshot) == plain


@pytest.mark.parametrize(
    "snapshot",
    [
        pytest.param(world(), id="nothing at all"),
        pytest.param(world(pools=[pool(2)]), id="nobody waits"),
        pytest.param(world(request("a")), id="no pool"),
        pytest.param(world(request("a", pools=()), pools=[pool(2)]), id="a request that may use no pool"),
        pytest.param(world(request("a"), pools=[pool(0)]), id="a pool without nodes"),
        pytest.param(
            world(request("a", pools=(WEST, EAST)), pools=[pool(2), replace(pool(2, WEST), open=False)]),
            id="a closed pool",
        ),
        pytest.param(
            world(request("a", 2), pools=[replace(pool(3), withheld=(Withheld(0, 50, 2),))]), id="a reserve"
        ),
        pytest.param(
            world(
                request("a", 2),
                pools=[replace(pool(1), withheld=(Withheld(0, 50, 2),), windows={"h100-1": OUT})],
            ),
            id="more withheld than there is",
        ),
        pytest.param(
            world(
                request("a", slice="x"),
                pools=[pool(3)],
                leases=[lease("r", ["h100-1"], 9, slice="x"), lease("s", ["h100-2"], 12, slice="x")],
            ),
            id="leases of one slice side by side",
        ),
        pytest.param(
            world(request("a", promise=Promise(("gone", "pool"), 3)), pools=[pool(1)]),
            id="a promise in a pool that is gone",
        ),
        pytest.param(
            CHANGING,
            id="reservations that change nodes",
        ),
    ],
)
def test_corners(snapshot: Snapshot) -> None:
    assert planned(snapshot) == planned_plainly(snapshot)


def test_blocks_of_lines_are_divided_and_nothing_changes() -> None:
    """Hundreds of holds in one pool, with windows and promises, so that lines have several blocks."""
    snapshot = next(iter(history(6)))[0]
    many = {
        f"{key}{i}": replace(one, key=f"{key}{i}", slice=f"{one.slice}{i}", pools=one.pools[:1])
        for i in range(6)
        for key, one in snapshot.requests.items()
    }
    snapshot = replace(snapshot, requests=many)
    first = planned(snapshot)
    assert first == planned_plainly(snapshot)
    promised = with_promises(snapshot, first)
    urgent = request("urgent", 3, 7000, priority=301, pools=tuple(snapshot.pools))
    more = replace(promised, requests={**promised.requests, urgent.key: urgent})
    again = planned(more)
    assert len(again.displaced) > 100
    assert again == planned_plainly(more)


def test_where_too_many_change_nodes_it_is_planned_again_with_more_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The space for steps is known before; it must never be written past."""
    rooms: list[int] = []

    def full_at_first(lines: Lines) -> bool:
        rooms.append(len(lines.at))
        return len(rooms) == 1

    monkeypatch.setattr(engine, "is_half_full", full_at_first)
    assert planned(CHANGING) == planned_plainly(CHANGING)
    assert rooms[1] > rooms[0]


def test_placements_are_made_when_they_are_asked_for() -> None:
    snapshot = world(request("a"), request("b", 9), pools=[pool(2)])
    found = planned(snapshot).placements
    assert isinstance(found, Placements)
    assert (list(found), len(found), "a/r" in found, "b/r" in found, found.get("b/r")) == (
        ["a/r"],
        1,
        True,
        False,
        None,
    )
    assert found["a/r"] is found["a/r"]
    assert repr(found) == repr(dict(found))


@law(150)
@given(promised_worlds(windows=True), st.integers(0, 4))
def test_questions_are_answered_alike_on_the_plans_of_both_engines(snapshot: Snapshot, priority: int) -> None:
    asked = request("asked", 2, priority=priority, slice="x", pools=tuple(snapshot.pools))
    plans = planned(snapshot), planned_plainly(snapshot)
    compiled, plain = (Quoter(snapshot, one).quote(asked) for one in plans)
    assert compiled == plain


def test_a_small_queue_is_planned_plainly() -> None:
    assert kernel.engine_for(world(request("a"), pools=[pool(1)])) is None


def test_a_queue_that_cannot_be_numbered_is_planned_plainly() -> None:
    endless = [request(f"a{i}", duration=1 << 41) for i in range(400)]
    assert kernel.engine_for(world(*endless, pools=[pool(1)])) is None
    assert kernel.engine_for(world(*(replace(r, duration=9) for r in endless), pools=[pool(1)])) is planned


def test_without_a_library_a_long_queue_is_planned_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    many = world(*(request(f"a{i}") for i in range(400)), pools=[pool(1)])
    assert kernel.engine_for(many) is planned
    monkeypatch.setattr(kernel, "load", lambda: None)
    assert kernel.engine_for(many) is None


def test_a_library_is_named_after_its_sources(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What was built of other sources is never loaded."""
    shutil.copytree(library.SOURCES, tmp_path / "native")
    named = library.name.__wrapped__
    monkeypatch.setattr(library, "SOURCES", tmp_path / "native")
    assert named() == library.name()
    (tmp_path / "native" / "engine.c").write_text("int other;")
    assert named() != library.name()


def test_an_array_of_another_type_is_refused() -> None:
    """It would be read as something else."""
    asked = Spots(np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int32))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="an array of int32 where writable rows of int64 are needed"):
        packed(asked)
    with pytest.raises(TypeError, match="int64"):
        packed(Spots(np.zeros(2, dtype=np.int64), np.zeros((4, 4), dtype=np.int64)[:, 0]))
