"""`egs-reconciler door` and `egs-reconciler admission` as processes, at real API servers (A8, F6; issue 3 §1)."""

from __future__ import annotations

import base64
import http.client
import signal
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from reconciler.clusters.kubernetes.api.api_client import Rejected
from tests.support import repos
from tests.support.door import FILES, SPEC
from tests.support.kube import Plane, eventually
from tests.support.ready_python import ready_python
from tests.support.requests import Objects, install, namespace

CODE = "from reconciler.main import main; main()"
SYSTEM = "egs-system"


@contextmanager
def process(log: Path, *words: object) -> Iterator[subprocess.Popen[bytes]]:
    """One that runs, and that ends by itself within seconds of being told to."""
    command = [ready_python("reconciler.main"), "-c", CODE, *map(str, words)]
    with log.open("wb") as to, subprocess.Popen(command, stderr=to) as running:
        try:
            yield running
            running.send_signal(signal.SIGTERM)
            assert running.wait(20) == 0, log.read_text()
        finally:
            running.kill()
    assert "Traceback" not in log.read_text()


def told(log: Path, word: str) -> str:
    """The line of the log that says so."""

    def look() -> str:
        return next((line for line in log.read_text().splitlines() if word in line), "")

    return eventually(look, f"{word} in {log.name}")


def admission(kube: Plane, log: Path) -> tuple[object, ...]:
    """Its command line."""
    at = ("--listen", "127.0.0.1:0", "--host", "127.0.0.1")
    return (log, "admission", *at, "--kubeconfig", kube.kubeconfig, "--namespace", SYSTEM)


def test_the_webhook_answers_with_the_certificate_that_it_keeps_in_the_cluster(kube, tmp_path):
    namespace(kube, SYSTEM, None)
    log = tmp_path / "admission.log"
    with process(*admission(kube, log)):
        port = int(told(log, "admission answers").rpartition("port=")[2].split()[0])
        secret = kube.api.get(f"/api/v1/namespaces/{SYSTEM}/secrets/egs-admission")
        tls = ssl.create_default_context(cadata=base64.b64decode(secret["data"]["ca.crt"]).decode())
        peer = http.client.HTTPSConnection("127.0.0.1", port, timeout=60, context=tls)
        peer.request("GET", "/healthz")
        assert peer.getresponse().status == 200
        peer.close()


def test_a_second_webhook_shows_the_same_certificate(kube, tmp_path):
    """Replicas share it: whichever an API server meets, it believes."""
    namespace(kube, SYSTEM, None)
    shown = []
    logs = (tmp_path / "one.log", tmp_path / "two.log")
    with process(*admission(kube, logs[0])), process(*admission(kube, logs[1])):
        for log in logs:
            port = int(told(log, "admission answers").rpartition("port=")[2].split()[0])
            shown.append(ssl.get_server_certificate(("127.0.0.1", port)))
    assert len(set(shown)) == 1


def door(kube: Plane, folder: Path, *more: object) -> tuple[object, ...]:
    """Its command line, beside a repository of its own."""
    repo = repos.bare(folder / "fleet.git", FILES)
    places = ("--repo", repo, "--state", folder / "state", "--kubeconfig", kube.kubeconfig)
    return (folder / "door.log", "door", "--cluster", "east", *places, *more)


def test_the_door_turns_an_object_into_a_branch(new_kube, tmp_path):
    """By default for people to merge."""
    install(new_kube)
    namespace(new_kube, "vision-train", "vision")
    with process(*door(new_kube, tmp_path)):
        made: list[object] = []

        def applied() -> bool:
            with suppress(Rejected):  # a namespace made this moment
                made.append(Objects(new_kube.api, "vision-train").apply("train", **SPEC))
            return bool(made)

        eventually(applied, "the object")
        eventually(
            lambda: "egs/gpr/east/vision/train" in repos.git(tmp_path / "fleet.git", "branch", "--list"),
            "its branch",
        )


def test_the_door_waits_where_there_is_no_custom_resource(kube, tmp_path):
    """It says what to do, tries again, and still ends when it is told to."""
    line = door(kube, tmp_path, "--via", "commit")
    with process(*line):
        assert "apply deploy/crds" in told(tmp_path / "door.log", "reason=ResourceMissing")


@pytest.mark.parametrize(
    ("words", "status", "part"),
    [
        pytest.param(
            ("door", "--cluster", "east", "--repo", "r", "--via", "mail"),
            2,
            "'commit', 'branch'",
            id="no way",
        ),
        pytest.param(("door", "--repo", "r"), 2, "--cluster", id="no cluster"),
        pytest.param(("admission",), 2, "--listen", id="no address"),
        pytest.param(("admission", "--listen", ":0"), 1, "give --kubeconfig FILE", id="outside of a cluster"),
        pytest.param(
            ("door", "--cluster", "east", "--repo", "r", "--kubeconfig", "/nowhere"),
            1,
            "try it with kubectl",
            id="no such kubeconfig",
        ),
    ],
)
def test_wrong_use_is_told(words, status, part):
    command = [ready_python("reconciler.main"), "-c", CODE, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, part in done.stderr) == (status, True), done.stderr


@pytest.mark.parametrize("name", ["door", "admission"])
def test_each_explains_itself(name):
    command = [ready_python("reconciler.main"), "-c", CODE, name, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert f"Example: egs-reconciler {name} --" in done.stdout
