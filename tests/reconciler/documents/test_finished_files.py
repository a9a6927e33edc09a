"""The file of a request that never runs again breaks nothing, however tight the rules are by now (D1, E5)."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.documents.finished_files import brought, standing
from schemas.rules.problems import Problem
from schemas.status.gpr_status import GPRStatus, Phase
from tests.reconciler.cli.rig import Control, egs, fleet, minutes, repository, request
from tests.support.asked import status
from tests.support.repos import commit, git
from tests.support.world import slice_


def problem(file: str, message: str = "too long", line: int = 1) -> Problem:
    return Problem(file, line, 1, "TooLong", "error", message, "ask for less")


OVER, LIVE, SLICE, WORD = (
    problem("slices/a/gprs/over.yaml"),
    problem("slices/a/gprs/live.yaml"),
    problem("slices/a/slice.yaml"),
    problem("approvals/a/over/ada.yaml"),
)
KNOWN: dict[str, GPRStatus] = {"a/over": status(Phase.COMPLETED), "a/live": status(Phase.QUEUED)}


def test_what_is_over_has_no_problems_and_all_else_has() -> None:
    assert standing([OVER, LIVE, SLICE, WORD], KNOWN) == (LIVE, SLICE)


@pytest.mark.parametrize(
    ("now", "kept"),
    [
        pytest.param(problem(OVER.file, line=9), False, id="what was so before, further down"),
        pytest.param(problem(OVER.file, "too many nodes"), True, id="what is new"),
    ],
)
def test_in_a_file_that_is_changed_only_what_is_new_counts(now: Problem, kept: bool) -> None:
    assert brought([now], KNOWN, [OVER], {now.file}) == ((now,) if kept else ())
    assert brought([now], KNOWN, [OVER], {SLICE.file}) == ()


@pytest.fixture
def tightened(tmp_path: Path) -> tuple[Path, Control]:
    """A request of an hour is over; on the branch `change` its slice allows ten minutes."""
    repo = repository(tmp_path / "r.git", fleet(**request("a/over", duration="1h")))
    control = Control(repo, tmp_path / "state")
    control.run(minutes(90))
    git(repo, "branch", "change", "main")
    commit(repo, {"slices/a/slice.yaml": slice_("a", limits={"maxDuration": "10m"})}, "change")
    return repo, control


def test_a_limit_is_tightened_under_a_request_that_is_over(tightened: tuple[Path, Control]) -> None:
    """Neither the check before the merge, nor the documents after it, nor the controller mind its file."""
    repo, control = tightened
    assert egs("check-pr", "--repo", repo, "--head", "change").code == 0
    done = egs("validate", "--repo", repo, "--ref", "change", "--against", "main", "-o", "json")
    assert (done.code, done.json["problems"]) == (0, [])
    git(repo, "update-ref", "refs/heads/main", "refs/heads/change")
    control.run(minutes(95))
    assert egs("validate", "--repo", repo).code == 0
    assert egs("get", "problems", "--repo", repo, "-o", "json").json == []
    told = git(repo, "show", "egs/status:problems.yaml") + git(repo, "log", "--format=%B", "egs/status")
    assert "over.yaml" not in told


def test_the_same_limit_under_a_request_that_waits_is_a_problem(tightened: tuple[Path, Control]) -> None:
    repo, control = tightened
    commit(repo, request("a/next", duration="1h", notBefore="2030-01-01T00:00:00Z"), "change")
    git(repo, "update-ref", "refs/heads/main", "refs/heads/change")
    control.run(minutes(95))
    done = egs("validate", "--repo", repo, "-o", "json")
    assert [(p["file"], p["rule"]) for p in done.json["problems"]] == [
        ("slices/a/gprs/next.yaml", "DurationTooLong")
    ]
