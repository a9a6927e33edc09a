"""A person at a prompt: the real app on real folders and real bare repositories, and a real controller beside it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from egs.cli import run
from reconciler.cli import register
from reconciler.compose import controller
from reconciler.cycle import Cycle
from reconciler.settings import Settings
from tests.support.repos import bare, git
from tests.support.world import START, cluster, gpr, project, slice_

NOW = "2026-11-21T08:00:00Z"
ADA = "Ada <ada@example.com>"
BO = "Bo <bo@example.com>"


@dataclass(frozen=True)
class Answer:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Stdout as data."""
        return json.loads(self.out)


def egs(*args: object) -> Answer:
    """Run the app in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run([str(arg) for arg in args], [register])
    return Answer(code, out.getvalue(), err.getvalue())


def fleet(**files: str) -> dict[str, str]:
    """Slices `a` (quota of 16 GPUs) and `b` on a cluster `east` with four nodes of eight H100."""
    base = {
        "project.yaml": project(),
        "clusters/east.yaml": cluster(nodes=4, pricePerGpuHour=2.5),
        "slices/a/slice.yaml": slice_(
            "a", quota={"gpus": 16}, limits={"maxDuration": "7d", "maxPriority": 200}
        ),
        "slices/b/slice.yaml": slice_("b"),
    }
    return base | files


def request(key: str, nodes: int = 1, duration: str = "1h", **spec: object) -> dict[str, str]:
    """The file of a request."""
    slice_name, _, name = key.partition("/")
    return {f"slices/{slice_name}/gprs/{name}.yaml": gpr(slice_name, name, nodes, duration, **spec)}


def folder(path: Path, files: Mapping[str, str]) -> Path:
    """A plain folder with these files."""
    for name, text in files.items():
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return path


def worktree(path: Path, files: Mapping[str, str]) -> Path:
    """A Git work tree whose first commit has these files."""
    folder(path, files)
    git(path, "init", "--quiet", "--initial-branch=main")
    git(path, "add", "-A")
    git(path, "commit", "--quiet", "-m", "Begin")
    return path


def repository(path: Path, files: Mapping[str, str]) -> Path:
    """A bare repository whose main has these files."""
    return bare(path, dict(files))


class Control:
    """A controller of a bare repository, in time that the test sets."""

    def __init__(self, repo: Path, state: Path) -> None:
        settings = Settings(repo=str(repo), state=state, pushes_per_minute=None)
        self._controller = controller(settings, adopt=True)
        self.now = START

    def run(self, until: datetime) -> None:
        """Cycle at every instant that matters until then."""
        for _ in range(500):
            cycle: Cycle = self._controller.cycle(self.now)
            if cycle.wake > self.now and cycle.wake > until:
                self.now = until
                return
            self.now = max(self.now, cycle.wake)
        raise AssertionError(f"no rest at {self.now}")


def minutes(count: float) -> datetime:
    """So many minutes after the beginning."""
    return START + timedelta(minutes=count)


def main_file(repo: Path, path: str) -> str:
    """A file on main."""
    return git(repo, "show", f"main:{path}")


def shell(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """A command of this machine, with nobody's configuration."""
    return subprocess.run(args, cwd=folder, env=os.environ, capture_output=True, text=True, check=False)
