"""Two real controllers on one cluster: the second is stopped (SIGSTOP) in its first cycle, across a start."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from reconciler.clock import monotonic_s
from tests.reconciler.test_main import start
from tests.support import repos
from tests.support.kube import eventually
from tests.support.profile import NIGHT
from tests.support.world import cluster, gpr, gpr_path, project, slice_

FILES = {
    "project.yaml": project(),
    "clusters/east.yaml": cluster(prepare="0d0h0m"),
    "slices/a/slice.yaml": slice_("a"),
}
GIT = """#!/bin/sh
case " $* " in *" fetch "*) touch {mark} ;; esac
exec {git} "$@"
"""


@contextmanager
def running(repo: Path, state: Path, **more: object) -> Iterator[subprocess.Popen[str]]:
    """A controller until the block is left."""
    words = ["run", "--repo", str(repo), "--state", str(state), "--poll", "1"]
    process = start(words, **more)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.communicate()


def holders(state: Path) -> set[str]:
    """Whose nodes they are, by the cluster's own word."""
    file = state / "clusters" / "east.json"
    world = json.loads(file.read_text())["world"] if file.exists() else {"nodes": {}}
    return {held["lease"]["request"] for held in world["nodes"].values() if held["lease"] is not None}


@pytest.mark.skipif(
    not NIGHT, reason="three quarters of a minute; test_clocks.py has the same in one process"
)
def test_a_controller_stopped_in_its_first_cycle_gives_no_node_back(tmp_path: Path) -> None:
    repo, old, new = repos.bare(tmp_path / "fleet.git", FILES), tmp_path / "old", tmp_path / "new"
    mark, programs = tmp_path / "fetching", tmp_path / "bin"
    for folder in (old / "clusters", new, programs):
        folder.mkdir(parents=True)
    (new / "clusters").symlink_to(old / "clusters")
    (programs / "git").write_text(GIT.format(mark=mark, git=shutil.which("git")))
    (programs / "git").chmod(0o755)
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    with running(repo, old):
        eventually(term_of(repo), "its branch")
        repos.commit(repo, {gpr_path("a/x"): gpr("a", "x")})
        with running(repo, new, env=environment) as stopped:
            eventually(mark.exists, "its first fetch")
            stopped.send_signal(signal.SIGSTOP)
            eventually(lambda: holders(old) == {"a/x"}, "the hand-over")
            stopped.send_signal(signal.SIGCONT)
            eventually(lambda: term_of(repo)() == 2, "the take-over")
            until_s = monotonic_s() + 3
            while monotonic_s() < until_s:
                assert holders(old) == {"a/x"}


def term_of(repo: Path) -> Callable[[], int]:
    """How often the status branch was taken."""

    def term() -> int:
        has = repos.git(repo, "for-each-ref", "refs/heads/egs/status")
        words = ["log", "-1", "--format=%(trailers:key=Term,valueonly)", "egs/status"]
        return int(repos.git(repo, *words) or 0) if has else 0

    return term
