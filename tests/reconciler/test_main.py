"""`egs-reconciler` as a process: adopt, once, run, and what stops it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import pytest

from demo.system import example_files
from tests.support import repos
from tests.support.ready_python import ready_python
from tests.support.world import cluster, gpr, project, slice_

pytestmark = pytest.mark.slow

LONG_CYCLE = """
import sys
from threading import Event
from reconciler import loop, main
def endless(*_, **__):
    print("plans", flush=True)
    Event().wait()
loop.decide = endless
main.Tending.stop.__defaults__ = (0.2,)  # seconds; eight would show no more
main.main()
"""
CODE = "from reconciler.main import main; main()"


def start(words: list[str], python: str | None = None) -> subprocess.Popen[str]:
    """The console script in a process of its own."""
    command = [python or ready_python("reconciler.main"), "-c", CODE, *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


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


def test_a_cluster_that_cannot_be_reached_stops_nobody_else(tmp_path: Path) -> None:
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
    assert "reason=ClusterAccessMissing" in err
    assert "GPRProvisioning request=a/one cluster=east" in err


@pytest.mark.parametrize("repo", ["/no/such/place", "http://127.0.0.1:9/fleet.git"])
def test_a_repository_that_does_not_answer_is_one_sentence_and_exit_3(repo: str, tmp_path: Path) -> None:
    """Design §7: 3 something broke; nothing that looks like success."""
    words = ["once"] if repo.startswith("/") else ["once", "--verify", "none"]
    status, out, err = done(Path(repo) if repo.startswith("/") else repo, tmp_path, *words)  # type: ignore[arg-type]
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
    words = ["run", "--repo", str(repo), "--state", str(tmp_path / "state"), "--poll", "1"]
    process = start(words, sys.executable)
    assert process.stderr is not None
    for line in process.stderr:
        if "GPR" in line or "took over" in line:
            break
    os.kill(process.pid, number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert repos.tip(repo, "egs/status")


def test_run_ends_on_a_signal_in_the_midst_of_a_cycle(tmp_path: Path) -> None:
    """A plan may take minutes, and who asks a process to end often kills it after ten seconds."""
    repo = fleet(tmp_path, {p: d for p, d in example_files().items() if "/gprs/" not in p})
    words = ["run", "--repo", str(repo), "--state", str(tmp_path / "state")]
    process = subprocess.Popen(
        [ready_python("reconciler.main"), "-c", LONG_CYCLE, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "plans\n"
    process.terminate()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "stopped during a cycle" in err


def test_a_push_is_seen_at_once_when_the_forge_tells_of_it(tmp_path: Path) -> None:
    """Issue §4: a webhook (HMAC) that wakes the loop; the next look by itself would be an hour away."""
    files = {"project.yaml": project(), "clusters/east.yaml": cluster(), "slices/a/slice.yaml": slice_("a")}
    repo = fleet(tmp_path, {path: text.encode() for path, text in files.items()})
    secrets = tmp_path / "secrets"
    secrets.write_text("a secret of ours\n")
    words = ["run", "--repo", f"lab={repo}", "--state", str(tmp_path / "state"), "--poll", "3600"]
    process = start([*words, "--listen", "127.0.0.1:0", "--hook-secrets", str(secrets)])
    assert process.stderr is not None
    port, filed = "", ""
    for line in process.stderr:
        port = port or "".join(re.findall(r"listening host=127.0.0.1 port=(\d+)", line))
        if "ControllerTookOver" in line:
            repos.commit(repo, {"slices/a/gprs/x.yaml": gpr("a", "x").encode()})
            url = f"http://127.0.0.1:{port}/hooks/push/lab"
            hook = urllib.request.Request(url, b"{}", {"X-Gitlab-Token": "a secret of ours"})
            assert urllib.request.urlopen(hook, timeout=60).status == 202
        if "GPRCreated request=a/x" in line:
            filed = line
            break
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        assert 'egs_leading{repo="lab"} 1.0' in answer.read().decode()
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert filed


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        pytest.param(["--listen", "everywhere"], "WrongUse", id="an address that is none"),
        pytest.param(["--listen", "192.0.2.1:80"], "ListenFailed", id="an address of another machine"),
        pytest.param(["--hook-secrets", "no-such"], "WrongUse", id="secrets without a server"),
        pytest.param(["--listen", ":0", "--hook-secrets", "no-such"], "HookSecretMissing", id="no such file"),
        pytest.param(["--repo", "elsewhere/fleet.git"], "WrongUse", id="two repositories of one name"),
    ],
)
def test_options_of_the_server_that_cannot_be_are_one_sentence(
    tmp_path: Path, words: list[str], reason: str
) -> None:
    status, out, err = done(fleet(tmp_path, {"project.yaml": project().encode()}), tmp_path, "run", *words)
    assert (status, out) == (2 if reason == "WrongUse" else 1, "")
    assert f"({reason})" in err.splitlines()[-1]


def test_with_several_repositories_each_line_of_the_log_names_the_repository(tmp_path: Path) -> None:
    repo = fleet(tmp_path, {p: d for p, d in example_files().items() if "/gprs/" not in p})
    words = ["run", "--repo", str(repo), "--repo", "gone=/no/such/place", "--state", str(tmp_path / "state")]
    process = start(words)
    assert process.stderr is not None
    missing = {"WARNING gone_0 ", "INFO fleet_0 "}
    for line in process.stderr:
        missing = {text for text in missing if text not in line}
        if not missing:
            break
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 0


def test_a_folder_of_kubeconfigs_that_is_not_there_is_told_at_once(tmp_path: Path) -> None:
    repo = fleet(tmp_path, example_files())
    status, _, err = done(repo, tmp_path, "once", "--kubeconfigs", str(tmp_path / "nowhere"))
    assert status == 2
    assert "nowhere" in err
    assert "is not a folder" in err
