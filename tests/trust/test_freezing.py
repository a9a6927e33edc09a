"""A main that was rewritten, or brings too much at once, is not followed until it is mended or adopted (D8)."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.trust import gate as gates
from reconciler.trust import steps
from reconciler.trust.model import Admitted
from tests.support.landing import Land, rules
from tests.support.world import gpr, gpr_path
from tests.trust.test_policy_matrix import of_slice

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


def test_too_many_commits_at_once_freeze_main(land: Land, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "MOST_COMMITS", 3)
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
    assert "more than 3 files" in frozen.alarm
    land.push({gpr_path("b/mine"): gpr("b", "mine")}, "cy")
    assert land.admit(gate, None, base).commit == base
    land.push(dict.fromkeys(flood), "eve")
    assert (land.admit(gate, None, base).commit, judged(land, base).commit) == (land.at, land.at)


def test_a_step_with_too_many_files_freezes_main(land: Land, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "MOST_CHANGED", 3)
    base = land.at
    land.push({f"{number}.md": "x\n" for number in range(5)}, "ada")
    assert "more than 3 files" in judged(land, base).alarm
