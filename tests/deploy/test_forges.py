"""What we ship for forges: least rights, pinned, nothing of the pull request is run. A1, A6."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = (ROOT / ".github/workflows/validate.yml", ROOT / "deploy/forges/gitea-actions.yml")


def read(file: Path) -> dict[Any, Any]:
    found: dict[Any, Any] = yaml.safe_load(file.read_text())
    return found


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_workflows_have_the_least_rights(file: Path) -> None:
    content = read(file)
    assert content["permissions"] == {"contents": "read"}
    for job in content["jobs"].values():
        assert job.get("permissions", {"contents": "read"}) == {"contents": "read"}
    triggers = content[True]  # YAML 1.1 reads `on` so
    assert set(triggers) <= {"pull_request", "workflow_call"}
    code = "\n".join(
        line.partition(" #")[0] for line in file.read_text().splitlines() if not line.startswith("#")
    )
    assert "secrets." not in code
    assert "pull_request_target" not in code


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_actions_are_pinned_and_keep_no_credentials(file: Path) -> None:
    for job in read(file)["jobs"].values():
        for step in job["steps"]:
            if "uses" in step:
                assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", step["uses"])
            if "checkout" in step.get("uses", ""):
                assert step["with"] == {"fetch-depth": 0, "persist-credentials": False}


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_no_input_is_put_into_a_script(file: Path) -> None:
    for job in read(file)["jobs"].values():
        for step in job["steps"]:
            assert "${{" not in step.get("run", ""), "an expression in a script runs whatever it holds"


def test_gitlab_checks_merge_requests() -> None:
    job = read(ROOT / "deploy/forges/gitlab-ci.yml")["egs"]
    assert job["rules"] == [{"if": '$CI_PIPELINE_SOURCE == "merge_request_event"'}]
    assert job["variables"]["GIT_DEPTH"] == "0"
    assert job["script"][-1].endswith("egs check-pr")


def test_hooks_of_pre_commit_call_what_there_is() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert [hook["entry"] for hook in hooks] == ["egs validate", "egs check-pr"]
    validate = re.compile(hooks[0]["files"])
    assert validate.search("slices/a/gprs/x.yaml")
    assert not validate.search("README.md")


def test_the_hook_of_a_git_server_is_a_shell_script() -> None:
    file = ROOT / "deploy/forges/pre-receive"
    assert file.stat().st_mode & 0o111
    done = subprocess.run(["sh", "-n", str(file)], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    scripts = (ROOT / "pyproject.toml").read_text()
    assert 'egs-pre-receive = "reconciler.prereceive:main"' in scripts
