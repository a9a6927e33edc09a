"""Commands that end after one look wait for their messages, and leave an empty outbox (H12)."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from reconciler.main import app
from schemas.errors import UserError
from tests.support import repos
from tests.support.receivers import webhook
from tests.support.world import cluster, project, slice_

FILES = {
    "project.yaml": project(notifications=[{"name": "ops", "secret": "ops"}]),
    "clusters/east.yaml": cluster(),
    "slices/a/slice.yaml": slice_("a"),
}


@pytest.mark.parametrize("command", ["once", "adopt"])
def test_it_ends_when_its_messages_have_arrived(tmp_path: Path, command: str) -> None:
    fleet = repos.bare(tmp_path / "fleet.git", FILES)
    with webhook() as hook:
        (tmp_path / "project.ops").write_text(hook.url())
        options = ["--repo", str(fleet), "--state", str(tmp_path / "state"), "--routes", str(tmp_path)]
        done = CliRunner().invoke(app, [command, *options])
        assert done.exit_code == 0, done.output
        assert [call.body["title"] for call in hook.calls] == ["ControllerTookOver"]
    assert repos.git(fleet, "ls-tree", "-r", "--name-only", "egs/status", "outbox/") == ""


def test_a_folder_that_is_none_is_wrong_use(tmp_path: Path) -> None:
    fleet = repos.bare(tmp_path / "fleet.git", FILES)
    done = CliRunner().invoke(
        app, ["once", "--repo", str(fleet), "--state", str(tmp_path), "--routes", str(tmp_path / "no")]
    )
    assert isinstance(done.exception, UserError)
    assert done.exception.reason == "WrongUse"
