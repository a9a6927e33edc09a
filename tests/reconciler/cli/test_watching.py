"""`egs watch` (design §7): what changes on the status branch, told once, in the order in which it happened."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from egs.commands.watch import as_text
from reconciler.queries.event_search import Filter
from reconciler.queries.status_changes import follow
from reconciler.signals import looks
from schemas.errors import Fault
from tests.reconciler.cli.rig import Control, egs, fleet, folder, minutes, repository, request, worktree
from tests.support.processes import awaited
from tests.support.repos import commit, git

Act = Callable[[], object]


def watched(repo: object, *acts: Act, is_json: bool = True, **wanted: str) -> tuple[list[Any], str]:
    """What is printed when these things happen between looks; and what is said beside it."""

    def steps() -> Iterator[None]:
        yield
        for act in acts:
            with contextlib.redirect_stdout(io.StringIO()):
                act()
            yield

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        lines = [line for line in follow(str(repo), Filter(**wanted), steps()) if line is not None]
    return lines if is_json else [as_text(line) for line in lines], err.getvalue()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(tmp_path / "r.git", fleet(**request("a/x"), **request("b/y", nodes=4)))


@pytest.fixture
def control(repo: Path, tmp_path: Path) -> Control:
    """A controller whose first cycle is over."""
    begun = Control(repo, tmp_path / "state")
    begun.run(minutes(0))
    return begun


def test_events_are_told_once_as_they_come_and_none_from_before(repo: Path, control: Control) -> None:
    told, _ = watched(repo, lambda: control.run(minutes(3)), lambda: None, lambda: control.run(minutes(64)))
    assert {line["kind"] for line in told} == {"event"}
    of_x = [line["reason"] for line in told if line["request"] == "a/x"]
    assert of_x.count("GPRProvisioned") == of_x.count("GPRCompleted") == 1
    assert "GPRCreated" not in of_x
    assert [line["at"] for line in told] == sorted(line["at"] for line in told)
    newest = egs("get", "events", "--repo", repo, "--limit", 1, "-o", "json").json[0]
    assert told[-1] == {"kind": "event"} | newest


def test_a_followed_request_shows_where_it_stands_and_every_move(repo: Path, control: Control) -> None:
    told, _ = watched(repo, lambda: control.run(minutes(3)), lambda: control.run(minutes(70)), gpr="b/y")
    stands = [line for line in told if line["kind"] == "request"]
    assert stands[0]["was"] is None
    assert list(stands[0]) == [
        "kind", "at", "slice", "name", "phase", "reason", "estimatedStartTime", "estimatedEndTime", "was",
    ]  # fmt: skip
    for before, after in itertools.pairwise(stands):
        assert after["was"] == {key: before[key] for key in after["was"]}
    assert {line["slice"] + "/" + line["name"] for line in stands} == {"b/y"}
    assert {line["request"] for line in told if line["kind"] == "event"} == {"b/y"}
    assert stands[-1]["phase"] in {"Provisioned", "Provisioning"}


def test_a_slice_is_followed_without_the_others(repo: Path, control: Control) -> None:
    def file_more() -> None:
        commit(repo, request("a/new") | request("b/new"))
        control.run(minutes(1))

    told, _ = watched(repo, file_more, slice="a")
    assert {line.get("slice", (line.get("request") or "").split("/")[0]) for line in told} == {"a"}
    assert [
        (line["name"], line["was"]) for line in told if line["kind"] == "request" and line["name"] == "new"
    ] == [("new", None)]


def test_a_request_whose_status_goes_is_told_as_gone(repo: Path, control: Control) -> None:
    def gone() -> None:
        tree = git(repo, "rev-parse", "egs/status")
        commit(repo, {"slices/a/gprs/x.yaml": None}, "egs/status")
        assert tree != git(repo, "rev-parse", "egs/status")

    told, _ = watched(repo, gone, gpr="x")
    assert (told[-1]["phase"], told[-1]["was"]["phase"]) == (None, told[0]["phase"])
    text, _ = watched(repo, lambda: control.run(minutes(1)), gpr="y", is_json=False)
    assert "b/y" in text[0]


def test_a_history_that_is_replaced_tells_nothing_twice(repo: Path, control: Control) -> None:
    """The controller begins its history anew now and then; the tree stays."""

    def re_root() -> None:
        oid = git(repo, "commit-tree", "egs/status^{tree}", "-m", "Anew")
        git(repo, "update-ref", "refs/heads/egs/status", oid)

    assert watched(repo, re_root, gpr="a/x")[0][1:] == []


def test_people_read_lines_with_local_times(repo: Path, control: Control) -> None:
    lines, _ = watched(repo, lambda: control.run(minutes(3)), gpr="a/x", is_json=False)
    assert lines[0].startswith("2026-11-21 08:00:00+0000  a/x  ")
    assert any("  GPRProvisioned  a/x  " in line for line in lines)
    assert any(" → Provisioned" in line for line in lines)


def test_a_repository_that_is_away_for_a_while_is_waited_for(repo: Path, control: Control) -> None:
    away = repo.with_name("away.git")

    def back() -> None:
        away.rename(repo)
        control.run(minutes(3))

    # A URL: a path that is not there would be wrong use.
    told, said = watched(f"file://{repo}", lambda: repo.rename(away), lambda: None, back)
    assert said.count("trying again") == 1
    assert "GPRProvisioned" in {line["reason"] for line in told}


def test_a_repository_that_never_answered_is_no_reason_to_wait(tmp_path: Path) -> None:
    with pytest.raises(Fault):
        watched(f"file://{tmp_path}/none.git")


def test_a_first_controller_is_waited_for(repo: Path, tmp_path: Path) -> None:
    def begin() -> None:
        Control(repo, tmp_path / "state").run(minutes(0))

    told, said = watched(repo, begin)
    assert "waiting for one" in said
    assert "GPRCreated" in {line["reason"] for line in told}


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["--gpr", "a/B"], 2, "--gpr B is not a valid name"),
        (["--slice", "A_"], 2, "--slice A_ is not a valid name"),
        (["--every", "0"], 2, "--every"),
        ([], 1, "no status to follow"),
    ],
)
def test_what_cannot_be_followed_is_said(args: list[str], code: int, words: str, tmp_path: Path) -> None:
    done = egs("watch", "--repo", folder(tmp_path / "f", fleet()), *args)
    assert (done.code, words in done.err) == (code, True)


def test_a_work_tree_follows_its_origin(repo: Path, control: Control, tmp_path: Path) -> None:
    tree = worktree(tmp_path / "tree", fleet())
    git(tree, "remote", "add", "origin", str(repo))
    assert watched(tree, gpr="a/x")[0][0]["name"] == "x"


def test_looks_end_with_the_signal_and_not_a_pause_later() -> None:
    ended = threading.Event()
    seen = 0
    for _ in looks(3600, ended):
        seen += 1
        ended.set()
    assert seen == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_sigterm_end_it_well(number: signal.Signals, repo: Path, control: Control) -> None:
    command = [sys.executable, "-m", "egs.cli", "watch", "--repo", str(repo), "--slice", "a", "-o", "json"]
    started = subprocess.Popen(command, env=os.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with awaited(started) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["name"] == "x"
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        pytest.param(
            {"gpr": "a/nope"}, "request a/nope does not exist yet; waiting for it", id="no such request"
        ),
        pytest.param({"slice": "nope"}, "slice nope has no request yet; waiting for one", id="no such slice"),
        pytest.param({"gpr": "a/x"}, "", id="one that is there"),
    ],
)
def test_a_name_that_is_not_there_is_said_at_once(
    repo: Path, control: Control, wanted: dict[str, str], says: str
) -> None:
    _, said = watched(repo, **wanted)
    assert (says in said) if says else not said
