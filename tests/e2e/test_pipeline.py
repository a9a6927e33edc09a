"""A pipeline asks for a quote, files a request, waits for its nodes, watches it to its end and reads what it cost.

A7, D2, D14, H11, H17: SDK calls alone, in a program of its own, over HTTP, while the controller and the simulated
clusters run by a fast clock; then the same with `egs-client` from its wheel in an empty environment.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from datetime import datetime
from pathlib import Path

import pytest

from tests.support.living import living
from tests.support.portal import KEYS
from tests.support.wheels import built, empty_environment

ROOT = Path(__file__).parents[2]


def _lived(python, url, cwd):
    """What the pipeline printed, run by that Python."""
    ran = subprocess.run(
        [str(python), "-W", "error", str(ROOT / "tests" / "e2e" / "pipeline.py")],
        env={"PATH": os.environ["PATH"], "EGS_SERVER": url, "EGS_API_KEY": KEYS["bo-editor"]},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def _check(lived):
    started, completed = (datetime.fromisoformat(lived[name]) for name in ("started", "completed"))
    assert lived["quoted"] <= lived["started"]
    assert 30 * 60 <= (completed - started).total_seconds() < 40 * 60
    assert len(lived["nodes"]) == 1
    assert lived["seen"][-1] == "Completed"
    assert lived["status"] == "Complete"
    assert lived["cost"] == "10.00 USD"  # 8 GPUs for half an hour at 2.50
    for reason in (
        "GPRCreated",
        "GPRProvisioned",
        "GPRDuration25",
        "GPRDuration50",
        "GPRDuration75",
        "GPRCompleted",
    ):
        assert lived["events"].count(reason) == 1, reason


def test_a_pipeline(tmp_path):
    with living(tmp_path / "site") as url:
        _check(_lived(sys.executable, url, tmp_path))


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """The programs of an environment that has `egs-client` and what it needs, and nothing else."""
    folder = tmp_path_factory.mktemp("client")
    return empty_environment(folder, built(ROOT / "deploy" / "client", folder / "own"))


def test_the_same_through_the_wheel(programs, tmp_path):
    with living(tmp_path / "site") as url:
        lived = _lived(programs / "python", url, tmp_path)
    _check(lived)
    assert lived["client"].startswith(str(programs.parent))


OURS = ("egs", "schemas", "reconciler", "scheduler", "portal", "agent", "demo", "git", "kubernetes", "numpy")
LOOK = f"""
import importlib.util, pathlib
print([name for name in {OURS} if importlib.util.find_spec(name)])
import egs
print(pathlib.Path(egs.__file__).with_name("py.typed").exists())
"""


def test_the_wheel_has_the_client_alone(programs, tmp_path):
    def ran(*command):
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    assert ran(programs / "python", "-c", LOOK).splitlines() == ["['egs']", "True"]
    assert "plan" in ran(programs / "egs", "--help")


def test_it_has_the_version_and_the_bounds_of_the_whole():
    whole, client = (
        tomllib.loads((ROOT / path / "pyproject.toml").read_text())["project"]
        for path in (".", "deploy/client")
    )
    assert client["version"] == whole["version"]
    bounds = {text.split(" ")[0] for text in whole["dependencies"]}
    assert set(client["dependencies"]) <= bounds
