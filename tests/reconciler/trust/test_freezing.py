"""A main that was rewritten, or brings too much at once, is not followed until it is mended or adopted (D8)."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.model.evidence import Admitted
from reconciler.trust import gate as gates
from reconciler.trust import main_steps
from reconciler.trust.adopted_main import MOST_LISTED, changes, listed
from tests.reconciler.trust.test_policy_matrix import of_slice
from tests.support.landing import Land, rules
from tests.support.world import World, at, gpr, gpr_path, project

QUOTA = {"slices/a/slice.yaml": of_slice(quota={"gpus": 1600})}
NOBODY = "NobodyStandsBehindIt"
NEW, OLD = gpr_path("a/new"), gpr_path("a/old")
SLICE = "slices/a/slice.yaml"


@pytest.fixture
def land(tmp_path: Path) -> Land:
    return Land.begun(tmp_path)


def judged(land: Land, since: str) -> Admitted:
    """Main as somebody judges it who knows that everything up to `since` counts."""
    return land.admit(land.gate(), None, since)


@pytest.mark.parametrize("level", ["none", "signature"])
def test_a_rewritten_main_freezes_until_it_is_pushed_back(land: Land, level: str) -> None:
    gate = land.gate(level)  # type: ignore[arg-type]
    root, base = land.at, land.push({NEW: gpr("a", "new")}, "ada")
    assert land.admit(gate).commit == base
    land.at = root
    land.push(QUOTA, "ada")
    admitted = land.admit(gate)
    assert admitted.commit == base
    assert "main was rewritten" in admitted.alarm
    assert land.admit(gate).alarm == admitted.alarm
    land.at = base
    assert (land.admit(gate).commit, land.admit(gate).alarm) == (base, "")


@pytest.mark.parametrize("level", ["none", "signature"])
def test_a_rewritten_main_freezes_whoever_did_not_see_it(land: Land, level: str) -> None:
    admitted = land.admit(land.gate(level), None, "1" * 40)  # type: ignore[arg-type]
    assert admitted.commit == "1" * 40
    assert "main was rewritten" in admitted.alarm


@pytest.mark.parametrize("level", ["none", "signature"])
def test_an_operator_adopts_a_rewritten_main(land: Land, level: str) -> None:
    gone = land.commit(QUOTA, "eve")
    land.push({NEW: gpr("a", "new")}, "eve")
    admitted = land.admit(land.gate(level, adopt=True), None, gone)  # type: ignore[arg-type]
    assert (admitted.commit, admitted.alarm, admitted.held) == (land.at, "", ())
    assert rules(land.admit(land.gate(level), admitted.record, admitted.commit)) == {}  # type: ignore[arg-type]


def test_adopting_a_main_that_goes_on_lets_nothing_in(land: Land) -> None:
    base = land.at
    land.push(QUOTA, "eve")
    assert rules(land.admit(land.gate(adopt=True), None, base)) == {SLICE: NOBODY}


def rewritten(land: Land, root: str) -> tuple[Admitted, str]:
    """Main with two changes of nobody's that are held: as it was judged, and its commit, which goes then."""
    base = land.at
    land.push({SLICE: QUOTA[SLICE], OLD: None, NEW: gpr("a", "new")}, "eve")
    admitted = judged(land, base)
    assert rules(admitted) == {SLICE: NOBODY, OLD: NOBODY, NEW: NOBODY}
    gone, land.at = land.at, root
    return admitted, gone


def test_adopting_keeps_what_was_held_and_is_there_still(land: Land) -> None:
    """Nobody who rewrites main, or adopts that, means what a stranger had brought before (D8)."""
    root = land.at
    admitted, gone = rewritten(land, root)
    mine = gpr("a", "new", duration="2h")
    land.push({SLICE: QUOTA[SLICE], OLD: None, NEW: mine, gpr_path("b/fresh"): gpr("b", "fresh")}, "ada")
    gate = land.gate(adopt=True)
    after = land.admit(gate, admitted.record, gone)
    assert (after.commit, after.alarm) == (land.at, "")
    assert rules(after) == {SLICE: NOBODY, OLD: NOBODY}, "main has something else at NEW"
    assert set(after.held) <= set(admitted.held), "as it was held before"
    assert gate.adoption is not None
    assert gate.adoption.held == after.held
    assert gate.adoption.changes == (f"new {NEW}", f"new {gpr_path('b/fresh')}")
    assert rules(land.admit(land.gate(), after.record, after.commit)) == {SLICE: NOBODY, OLD: NOBODY}


def test_adopting_a_main_without_what_was_held_ends_the_holds(land: Land) -> None:
    root = land.at
    admitted, gone = rewritten(land, root)
    land.push({"NEWS": "x\n"}, None)
    gate = land.gate(adopt=True)
    assert land.admit(gate, admitted.record, gone).held == ()
    assert gate.adoption is not None
    assert gate.adoption.changes == (), "what counted before counts again"


def test_a_hold_whose_authorised_content_is_nowhere_ends_and_is_listed(land: Land) -> None:
    """Nothing could stand in its place; an operator reads that it comes into force."""
    root = land.at
    admitted, gone = rewritten(land, root)
    assert admitted.record is not None
    lost = [change.model_copy(update={"authorised": "9" * 40}) for change in admitted.held]
    land.push({SLICE: QUOTA[SLICE]}, "ada")
    gate = land.gate(adopt=True)
    after = land.admit(gate, admitted.record.model_copy(update={"held": tuple(lost)}), gone)
    assert after.held == ()
    assert gate.adoption is not None
    assert f"changed {SLICE}" in (gate.adoption.changes or ())


def test_adopting_without_a_memory_of_what_counted_says_so(land: Land) -> None:
    gate = land.gate(adopt=True)
    land.admit(gate, None, "1" * 40)
    assert gate.adoption is not None
    assert gate.adoption.changes is None
    assert "no longer exists" in gate.adoption.sentence


def test_what_comes_into_force_is_listed_and_a_flood_cut_short() -> None:
    one, other = ("1" * 40, 0o100644), ("2" * 40, 0o100644)
    assert changes({"a": one, "b": one, "c": one}, {"b": other, "c": one, "d": one}) == (
        "gone a",
        "changed b",
        "new d",
    )
    assert len(listed([str(n) for n in range(MOST_LISTED)])) == MOST_LISTED
    assert listed([str(n) for n in range(MOST_LISTED + 2)])[-1] == "and 2 more"


def test_that_main_is_followed_again_is_told_once() -> None:
    world = World({NEW: gpr("a", "new")})
    world.run(at(1))
    good = world.remote.tips["main"]
    world.commit({OLD: gpr("a", "old")}, "other")
    world.remote.tips["main"] = world.remote.tips["other"]
    world.run(at(3))
    assert world.told().count("RepositoryAlarm") == 1
    assert "MainFollowedAgain" not in world.told()
    assert "**`main` is frozen" in page(world)
    world.remote.tips["main"] = good
    world.run(at(6))
    assert world.told().count("MainFollowedAgain") == 1
    assert "frozen" not in page(world)


def page(world: World) -> str:
    """The paragraph below the title of the status page."""
    return (world.text("README.md") or "").split("\n\n")[1]


def test_what_an_operator_adopted_is_told_once() -> None:
    world = World({NEW: gpr("a", "new")})
    world.run(at(1))
    world.commit({"project.yaml": project(), OLD: gpr("a", "old")}, "other")
    world.remote.tips["main"] = world.remote.tips["other"]
    world.run(at(2))
    world.controller = world.start()  # each of this world's processes adopts
    world.run(at(4))
    told = [e.message for c in world.log for e in c.events if e.reason == "MainFollowedAgain"]
    assert len(told) == 1
    assert "an operator adopted main" in told[0]


def test_too_many_commits_at_once_freeze_main(land: Land, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main_steps, "MOST_COMMITS", 3)
    base = land.at
    for number in range(5):
        land.push({"NEWS": f"{number}\n"}, None)
    admitted = judged(land, base)
    assert admitted.commit == base
    assert "more than 3 commits" in admitted.alarm


def test_too_many_holds_freeze_main_until_they_are_reverted(
    land: Land, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gates, "MOST_HELD", 3)
    base, gate = land.at, land.gate()
    flood = {gpr_path(f"b/x{number}"): gpr("b", f"x{number}") for number in range(5)}
    land.push(flood, "bo")
    frozen = land.admit(gate, None, base)
    assert (frozen.commit, frozen.held) == (base, ())
    assert "more than 3 changed files" in frozen.alarm
    land.push({gpr_path("b/mine"): gpr("b", "mine")}, "cy")
    assert land.admit(gate, None, base).commit == base
    land.push(dict.fromkeys(flood), "eve")
    assert (land.admit(gate, None, base).commit, judged(land, base).commit) == (land.at, land.at)


def test_a_step_with_too_many_files_freezes_main(land: Land, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "MOST_CHANGED", 3)
    base = land.at
    land.push({f"{number}.md": "x\n" for number in range(5)}, "ada")
    assert "more than 3 changed files" in judged(land, base).alarm
