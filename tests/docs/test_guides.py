"""Guides that run as they stand: their commands of `egs` in this process, the others in a shell.

A controller cycles before a command that asks, if main has moved: a page needs no loop that waits.
With `EGS_TEST_WRITE_DOCS=1` the page is written again with what was printed.
"""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from egs.cli import run
from reconciler.cli import register
from reconciler.clock import SystemClock
from tests.reconciler.cli.rig import Control
from tests.support.repos import bare, git
from tests.support.walk import ROOT, WRITES, Step, is_said, steps, written

GUIDES = ROOT / "docs" / "guides"
ASKS = ("approve", "describe", "get", "gpr", "whatif", "why")
TEAMS = ROOT / "examples" / "gallery" / "three-teams"


def test_an_admin_does_each_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B3, C1, E5: on the gallery's three teams, in a clone, with a controller."""
    files = {path.relative_to(TEAMS).as_posix(): path.read_text("utf-8") for path in TEAMS.rglob("*.yaml")}
    repo = bare(tmp_path / "fleet.git", files)
    git(tmp_path, "clone", "--quiet", str(repo), "clone")
    monkeypatch.setenv("EGS_REPO", str(repo))
    _at_home(tmp_path, tmp_path / "clone", monkeypatch)
    control = Control(repo, tmp_path / "state")
    seen = ""

    def cycled() -> None:
        nonlocal seen
        main = git(repo, "rev-parse", "main")
        if main != seen:
            control.now = SystemClock().now()
            control.run(control.now)
        seen = main

    _walked(GUIDES / "admin-tasks.md", tmp_path / "clone", cycled)


@pytest.mark.parametrize("name", ["from-slurm.md", "from-kueue.md"])
def test_an_admin_moves_here(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B1, D2: each file that the page makes is valid."""
    monkeypatch.delenv("EGS_REPO", raising=False)
    _at_home(tmp_path, tmp_path, monkeypatch)
    _walked(GUIDES / name, tmp_path)


def _at_home(home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / ".gitconfig").write_text("[user]\nname = Ada\nemail = ada@example.com\n")
    for name, value in {"HOME": str(home), "EGS_CACHE": str(home / "cache"), "COLUMNS": "120"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(folder)


def _walked(page: Path, folder: Path, cycled: Callable[[], None] = lambda: None) -> None:
    printed = []
    for step in steps(page):
        if step.command.startswith(tuple(f"egs {word} " for word in ASKS)):
            cycled()
        printed.append(_ran(step, folder))
    if os.environ.get(WRITES):
        written(page, printed)
        return
    for step, text in zip(steps(page), printed, strict=True):
        assert is_said(step.lines, text), (step.command, text)


def _ran(step: Step, folder: Path) -> str:
    """What stands on a person's screen."""
    if step.command.startswith("egs "):
        screen = io.StringIO()
        with contextlib.redirect_stdout(screen), contextlib.redirect_stderr(screen):
            code = run(shlex.split(step.command)[1:], [register])
        assert code == 0, (step.command, screen.getvalue())
        return screen.getvalue()
    done = subprocess.run(
        ["bash", "-ec", step.command], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (step.command, done.stderr)
    return done.stdout + done.stderr
