"""`egs-reconciler apply` and `--elect` as processes, on a real bare repository (A2, A14)."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import repos
from tests.support.kube import eventually
from tests.support.ready_python import ready_python
from tests.support.world import cluster, gpr, gpr_path, project, slice_

CODE = "from reconciler.main import main; main()"
FILES = {
    "project.yaml": project(),
    "clusters/east.yaml": cluster(access={"pull": True}, prepare="0d0h0m"),
    "slices/a/slice.yaml": slice_("a"),
    gpr_path("a/x"): gpr("a", "x", duration="20m"),
}


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ready_python("reconciler.main"), "-c", CODE, *words], capture_output=True, text=True, timeout=120
    )


def test_centre_and_applier_meet_in_the_repository_alone(tmp_path: Path):
    """The one has no state of the cluster, the other no say in what is decided."""
    repo = repos.bare(tmp_path / "fleet.git", FILES)
    centre = ["--repo", str(repo), "--state", str(tmp_path / "centre")]
    adopted = command("adopt", *centre)
    assert adopted.returncode == 0, adopted.stderr
    words = [
        "apply",
        "--cluster",
        "east",
        "--repo",
        str(repo),
        "--state",
        str(tmp_path / "inside"),
        "--poll",
        "1",
    ]
    applier = subprocess.Popen([sys.executable, "-c", CODE, *words], stderr=subprocess.PIPE, text=True)
    try:
        eventually(lambda: "egs/clusters/east" in branches(repo), "the first report")
        eventually(lambda: "slices/000.yaml" in files(repo), "the slice's namespaces")
    finally:
        applier.send_signal(signal.SIGTERM)
        _, err = applier.communicate(timeout=60)
    assert applier.returncode == 0, err
    assert "Traceback" not in err
    state = json.loads((tmp_path / "inside" / "clusters" / "east.json").read_text())
    assert state["world"]["slices"]["a"]["present"]
    assert not (tmp_path / "centre" / "clusters").exists()


def branches(repo: Path) -> str:
    return repos.git(repo, "branch", "--list")


def files(repo: Path) -> str:
    return repos.git(repo, "ls-tree", "-r", "--name-only", "egs/clusters/east")


@pytest.mark.parametrize(
    ("words", "status", "part"),
    [
        pytest.param(["--elect", "nowhere"], 2, "give NAMESPACE/NAME", id="no namespace"),
        pytest.param(["--elect", "egs-system/x"], 1, "give --elect-kubeconfig", id="outside of a cluster"),
        pytest.param(["--elect-kubeconfig", "x"], 2, "give --elect NAMESPACE/NAME", id="no election"),
        pytest.param(
            ["--elect", "egs-system/x", "--elect-kubeconfig", "/nowhere"],
            1,
            "try it with kubectl",
            id="no such file",
        ),
    ],
)
def test_a_wrong_election_is_refused_before_anything_begins(tmp_path: Path, words, status, part):
    done = command("run", "--repo", str(tmp_path), "--state", str(tmp_path / "s"), *words)
    assert done.returncode == status
    assert part in done.stderr
    assert "Traceback" not in done.stderr


def test_a_second_controller_leads_within_fifteen_seconds_of_a_kill(kube, tmp_path: Path):
    """Two processes and a real API server; the first is killed, not told."""
    kube.api.create("/api/v1/namespaces", {"metadata": {"name": "egs-system"}})
    repo = repos.bare(tmp_path / "fleet.git", {"project.yaml": project(), "clusters/east.yaml": cluster()})
    first, second = (started(tmp_path, repo, kube.kubeconfig, n) for n in ("first", "second"))
    try:
        eventually(lambda: taken(repo) == 1, "a first leader")
        holder = kube.api.get(LEASE)["spec"]["holderIdentity"]
        leader = next(p for p in (first, second) if f"-{p.pid}-" in holder)
        leader.kill()
        # By injected time it is 13 s (test_election.py); here two cores may be busy with other tests.
        eventually(lambda: taken(repo) == 2, "the other one leads", 20)
    finally:
        for process in (first, second):
            process.terminate()
            process.wait(60)
    assert kube.api.get(LEASE)["spec"]["holderIdentity"] == "", "who is told to end gives it back"


LEASE = "/apis/coordination.k8s.io/v1/namespaces/egs-system/leases/controller"


def started(folder: Path, repo: Path, kubeconfig: Path, name: str) -> subprocess.Popen[str]:
    words = ["run", "--repo", str(repo), "--state", str(folder / name), "--elect", "egs-system/controller"]
    with (folder / f"{name}.log").open("w") as log:
        return subprocess.Popen(
            [sys.executable, "-c", CODE, *words, "--elect-kubeconfig", str(kubeconfig)], stderr=log, text=True
        )


def taken(repo: Path) -> int:
    """Terms on the status branch."""
    if "egs/status" not in branches(repo):
        return 0
    log = repos.git(repo, "log", "--format=%(trailers:key=Term,valueonly)", "egs/status")
    return len({line for line in log.split() if line})
