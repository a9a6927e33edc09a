"""`egs-reconciler` as a process: adopt, once, run, and what stops it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from demo.system import example_files
from tests.support import repos
from tests.support.world import cluster, gpr, project, slice_

COMMAND = (sys.executable, "-c", "from reconciler.main import main; main()")


def start(words: list[str], **more: object) -> subprocess.Popen[str]:
    """The console script in a process of its own."""
    return subprocess.Popen(
        [*COMMAND, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **more,  # type: ignore[call-overload]
    )


def done(repo: Path, tmp_path: Path, *words: str) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of one command on a repository."""
    process = start([*words, "--repo", str(repo), "--state", str(tmp_path / "state")])
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def fleet(tmp_path: Path, files: Mapping[str, bytes]) -> Path:
    """A bare repository with these files on main."""
    return repos.bare(tmp_path / "fleet.git", files)


def test_a_repository_with_requests_has_to_be_adopted_first(tmp_path: Path) -> None:
    """Design §5: a main with GPRs whose status branch is missing is not taken over by accident."""
    repo = fleet(tmp_path, example_files())
    status, _, err = done(repo, tmp_path, "once")
    assert status == 1
    assert "NotAdopted" in err
    assert "egs-reconciler adopt" in err
    status, out, _ = done(repo, tmp_path, "adopt")
    assert (status, out) == (0, "adopted 6 requests\n")
    status, out, _ = done(repo, tmp_path, "once")
    assert status == 0, out


def test_a_cluster_without_a_driver_stops_nobody_else(tmp_path: Path) -> None:
    """Principle 6: one bad cluster never stops the others."""
    files = {
        "project.yaml": project(),
        "clusters/east.yaml": cluster(),
        "clusters/real.yaml": cluster("real", driver="kubernetes"),
        "slices/a/slice.yaml": slice_("a", ("real", "east")),
        "slices/a/gprs/one.yaml": gpr("a", "one"),
    }
    repo = fleet(tmp_path, {path: text.encode() for path, text in files.items()})
    status, _, err = done(repo, tmp_path, "adopt")
    assert status == 0, err
    assert "DriverMissing" in err
    assert "GPRProvisioning request=a/one cluster=east" in err


@pytest.mark.parametrize("repo", ["/no/such/place", "http://127.0.0.1:9/fleet.git"])
def test_a_repository_that_does_not_answer_is_one_sentence_and_exit_3(repo: str, tmp_path: Path) -> None:
    """Design §7: 3 something broke; nothing that looks like success."""
    status, out, err = done(Path(repo) if repo.startswith("/") else repo, tmp_path, "once")  # type: ignore[arg-type]
    assert (status, out) == (3, "")
    assert err.splitlines()[-1].startswith("egs-reconciler: ")


def test_once_goes_on_until_nothing_is_left_to_do_at_once(tmp_path: Path) -> None:
    """Hand-overs take several steps; `once` now and then is enough to run a fleet."""
    repo = fleet(tmp_path, example_files())
    done(repo, tmp_path, "adopt")
    status, out, _ = done(repo, tmp_path, "once")
    assert status == 0
    assert out.startswith("events: ")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_run_ends_well_on_a_signal(tmp_path: Path, number: int) -> None:
    """A controller is stopped by a signal and exits 0; what it decided is committed."""
    repo = fleet(tmp_path, {p: d for p, d in example_files().items() if "/gprs/" not in p})
    process = start(["run", "--repo", str(repo), "--state", str(tmp_path / "state"), "--poll", "1"])
    assert process.stderr is not None
    for line in process.stderr:
        if "GPR" in line or "took over" in line:
            break
    os.kill(process.pid, number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert repos.tip(repo, "egs/status")
