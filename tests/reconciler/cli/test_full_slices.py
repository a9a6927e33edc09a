"""A slice with more requests than it may have by now: what was accepted stays, and can be edited (A5)."""

from __future__ import annotations

from pathlib import Path

from tests.reconciler.cli.rig import BO, Control, egs, fleet, main_file, minutes, repository, request
from tests.support.repos import commit
from tests.support.world import project

MINE = "slices/a/gprs/two.yaml"


def test_an_accepted_request_is_edited_and_a_new_one_is_refused(tmp_path: Path) -> None:
    """As in the API and in the controller: one that came later makes no accepted request too many."""
    files = fleet(**request("a/one"), **request("a/two"))
    repo = repository(tmp_path / "r.git", files | {"project.yaml": project(limits={"requestsPerSlice": 2})})
    Control(repo, tmp_path / "state").run(minutes(1))
    commit(repo, request("a/later"))
    how = ("--repo", repo, "--author", BO)
    done = egs("gpr", "edit", "a/two", "extend=30m", *how)
    assert done.code == 0, done.err
    assert "extend: 30m" in main_file(repo, MINE)
    new = egs("gpr", "create", "a/new", "--nodes", 1, "--duration", "1h", *how)
    assert (new.code, "TooManyRequests" in new.err) == (1, True), new.err
