"""What we ship for forges: least rights, pinned, nothing of the pull request is run. A1, A6."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support import repos
from tests.support.world import cluster, project, slice_

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


IN_A_PYTHON_IMAGE = ROOT / "deploy/forges/gitea-actions.yml"
"""Its job runs in an image without Node.js."""


def test_a_job_in_an_image_of_python_has_shell_steps_alone() -> None:
    for job in read(IN_A_PYTHON_IMAGE)["jobs"].values():
        assert job["container"]["image"].startswith("python:")
        assert [step for step in job["steps"] if "uses" in step] == []


TEMPLATES = (*WORKFLOWS, ROOT / "deploy/forges/gitlab-ci.yml", ROOT / "deploy/forges/install")


@pytest.mark.parametrize("file", TEMPLATES, ids=lambda file: file.name)
def test_the_project_s_name_is_asked_of_no_index(file: Path) -> None:
    code = "\n".join(line for line in file.read_text().splitlines() if not line.lstrip().startswith("#"))
    assert not re.search(r"egs-gitops *[=<>~@]", code)
    assert all(
        "--require-hashes" in line or "--no-index" in line for line in code.splitlines() if "/pip" in line
    )


def test_what_ci_installs_is_pinned_by_hash_and_as_the_tests_have_it() -> None:
    locked = re.findall(
        r"^([\w.-]+)==([\w.]+)[^\n]*\n((?: +--hash=sha256:[0-9a-f]{64}[ \\]*\n)+)",
        (ROOT / "deploy/forges/requirements.txt").read_text() + "\n",
        re.MULTILINE,
    )
    pinned = {name.lower(): version for name, version, _ in locked}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    assert {canonicalize_name(Requirement(each).name) for each in wanted} <= pinned.keys()
    ours = dict(line.lower().split("==") for line in (ROOT / "constraints.txt").read_text().split())
    assert {name: version for name, version in pinned.items() if ours.get(name, version) != version} == {}


class Job:
    """The shell steps of the template for Gitea, run where there is git and a Python, and no Node.js."""

    def __init__(self, tmp_path: Path, fleet: Path, head: str) -> None:
        self.tmp, self.bin = tmp_path / "tmp", tmp_path / "bin"
        source = repos.bare(tmp_path / "source.git", {"deploy/forges/install": INSTALL.read_bytes()})
        repos.git(source, "config", "uploadpack.allowAnySHA1InWant", "true")
        (self.tmp / "work").mkdir(parents=True)
        self.bin.mkdir()
        script(self.bin / "python", PYTHON.format(egs=Path(sys.executable).with_name("egs")))
        event = tmp_path / "event.json"
        pull = {"number": 7, "head": {"sha": head}, "base": {"ref": "main"}, "user": {"id": 5, "login": "bo"}}
        event.write_text(json.dumps({"pull_request": pull}))
        self.values = {
            "${{ github.token }}": "a-token",
            "${{ github.event.pull_request.number }}": "7",
            "https://forge.example.com/tools/egs-gitops.git": str(source),
            "0" * 40: repos.tip(source),
        }
        owner = fleet.parent
        self.env = {
            "PATH": f"{self.bin}:/usr/bin:/bin",
            "HOME": str(tmp_path),
            "GITHUB_EVENT_PATH": str(event),
        }
        self.env |= {
            "GITHUB_SERVER_URL": f"file://{owner.parent}",
            "GITHUB_REPOSITORY": f"{owner.name}/fleet",
        }

    def run(self) -> subprocess.CompletedProcess[str]:
        """All steps, as a runner does; the first that fails ends it."""
        for step in read(IN_A_PYTHON_IMAGE)["jobs"]["check"]["steps"]:
            env = {name: self.values.get(value, value) for name, value in step.get("env", {}).items()}
            text = step["run"].replace("/tmp", str(self.tmp))
            env = {**self.env, **env, "LOG": str(self.tmp / "pip")}
            done = subprocess.run(
                ["sh", "-ec", text],
                env=env,
                cwd=self.tmp / "work",
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                break
        return done


BO = {"email": "bo@example.com", "forge": {"login": "bo", "id": 5}}
INSTALL = ROOT / "deploy/forges/install"
PYTHON = """#!/bin/sh
mkdir -p "$3/bin" && ln -s {egs} "$3/bin/egs"
printf '#!/bin/sh\\necho "$@" >> "$LOG"\\n' > "$3/bin/pip" && chmod +x "$3/bin/pip"
"""
"""Makes a virtual environment with the `egs` of the tests, and a pip that only writes down what it is asked for."""


def script(file: Path, text: str) -> None:
    file.write_text(text)
    file.chmod(0o755)


@pytest.mark.parametrize(
    ("text", "code"), [("spec: {slice: a, nodes: 1, duration: 1h}", 0), ("spec: {slice: a, nodes: none}", 1)]
)
def test_the_steps_for_gitea_run(tmp_path: Path, text: str, code: int) -> None:
    files = {
        "project.yaml": project(),
        "clusters/east.yaml": cluster(),
        "slices/a/slice.yaml": slice_("a", members=[BO]),
    }
    (tmp_path / "acme").mkdir()
    fleet = repos.bare(tmp_path / "acme" / "fleet.git", files)
    head = f"apiVersion: egs.dev/v1alpha1\nkind: GPR\nmetadata: {{name: x}}\n{text}\n"
    repos.git(fleet, "branch", "ask", "main")
    oid = repos.commit(fleet, {"slices/a/gprs/x.yaml": head}, "ask", "Ask")
    repos.git(fleet, "update-ref", "refs/pull/7/head", oid)
    job = Job(tmp_path, fleet, oid)
    done = job.run()
    assert done.returncode == code, done.stderr
    assert "a/x" in done.stdout + done.stderr
    assert (job.tmp / "pip").read_text().count("install") == 2


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
    assert 'egs-pre-receive = "reconciler.processes.push_hook_process:main"' in scripts
