"""What a command says is over is over: also where the controller hands nodes over between its look and its push."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reconciler.changes import publish
from tests.reconciler.cli.rig import (
    ADA,
    BO,
    Answer,
    Control,
    egs,
    fleet,
    main_file,
    minutes,
    repository,
    request,
)
from tests.support.repos import commit, git

KEY, FILE = "a/mine", "slices/a/gprs/mine.yaml"
STAGES = {"Queued": 0.5, "Provisioning": 7, "Provisioned": 9}
SOON = {"notBefore": "2026-11-21T08:08:00Z", "duration": "0d0h30m"}


@pytest.fixture
def world(tmp_path: Path) -> tuple[Path, Control]:
    """A request that waits until the eighth minute."""
    repo = repository(
        tmp_path / "r.git",
        fleet(**request(KEY, **SOON), **request("b/other", notBefore="2026-11-21T09:00:00Z")),
    )
    control = Control(repo, tmp_path / "state")
    control.run(minutes(STAGES["Queued"]))
    return repo, control


def _while(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], None]) -> None:
    """Between a command's look at the status and its push."""
    read = publish.read_state

    def read_then(*args: Any) -> Any:
        found = read(*args)
        happens()
        return found

    monkeypatch.setattr(publish, "read_state", read_then)


def _gpr(repo: Path, *words: object) -> Answer:
    return egs("gpr", *words, "--repo", repo, "--author", BO)


def _phase(repo: Path) -> str:
    text = git(repo, "show", f"egs/status:{FILE}")
    return next(line.split()[1] for line in text.splitlines() if line.startswith("  phase: "))


@pytest.mark.parametrize("word", ["cancel", "release"])
@pytest.mark.parametrize("true", list(STAGES))
def test_what_waited_a_moment_ago_ends(
    world: tuple[Path, Control], monkeypatch: pytest.MonkeyPatch, word: str, true: str
) -> None:
    repo, control = world
    _while(monkeypatch, lambda: control.run(minutes(STAGES[true])))
    done = _gpr(repo, word, KEY)
    assert done.code == 0, done.err
    control.run(control.now)
    assert _phase(repo) in {"Cancelled", "Releasing"}


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        pytest.param(("priority", KEY, 7), 1, "keeps its terms (priority)", id="a priority does not count any more"),
        pytest.param(("edit", KEY, "nodes=2"), 1, "keeps its terms (nodes)", id="nor does a size"),
        pytest.param(("extend", KEY, "0d0h5m"), 0, "committed to main", id="grace is asked for"),
        pytest.param(("rename", KEY, "Second try"), 0, "committed to main", id="a shown name is another"),
        pytest.param(("move", KEY, "--last"), 1, "got its nodes while", id="a move moves nothing"),
    ],
)  # fmt: skip
def test_an_edit_that_crosses_the_hand_over_says_what_became_of_it(
    world: tuple[Path, Control],
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[object, ...],
    code: int,
    said: str,
) -> None:
    repo, control = world
    with monkeypatch.context() as patch:
        _while(patch, lambda: control.run(minutes(STAGES["Provisioning"])))
        done = egs("gpr", *words, "--repo", repo, "--author", ADA if words[0] == "move" else BO)
    assert (done.code, said in done.err) == (code, True), done.err
    control.run(control.now)
    # What lies in the file and does not count is in nobody's way.
    assert _gpr(repo, "edit", KEY, "idleTimeout=0d0h10m").code == 0
    if words[0] in ("priority", "edit"):
        assert _gpr(repo, "restore", KEY).code == 0
    assert "has the content that counts already" in _gpr(repo, "restore", KEY).err
    assert _gpr(repo, "release", KEY).code == 0


@pytest.mark.parametrize("how", ["deleted", "broken"])
def test_a_lease_is_ended_extended_and_restored_whatever_its_file_became(
    world: tuple[Path, Control], how: str
) -> None:
    repo, control = world
    control.run(minutes(STAGES["Provisioned"]))
    before, text = main_file(repo, FILE), None if how == "deleted" else "kind: ["
    commit(repo, {FILE: text}, "main", "By hand")
    control.run(control.now)
    assert _phase(repo) == "Provisioned"
    why = egs("why", KEY, "--repo", repo).out
    if how == "deleted":
        assert f"`egs gpr release {KEY}`" in why
        assert f"`egs gpr restore {KEY}`" in why
        assert _gpr(repo, "extend", KEY, "0d0h5m").code == 0
        assert "extend: 0d0h5m" in main_file(repo, FILE)
        commit(repo, {FILE: text}, "main", "By hand")
    assert _gpr(repo, "restore", KEY).code == 0
    assert before.splitlines()[-3:] == main_file(repo, FILE).splitlines()[-3:]
    commit(repo, {FILE: text}, "main", "By hand")
    control.run(control.now)
    done = _gpr(repo, "release", KEY)
    assert done.code == 0, done.err
    control.run(control.now)
    assert _phase(repo) == "Releasing"
