"""The recipes of `examples/workloads/` (J4): their objects on a real API server, their helper as a process."""

from __future__ import annotations

import base64
import json
import os
import py_compile
import runpy
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

import egs
from reconciler.clock import SystemClock
from reconciler.clusters.kubernetes.names import CHECKPOINTED_AT, ENDS_AT
from schemas.documents.cluster import ClusterSpec
from schemas.reading.units import format_instant, parse_instant
from tests.support.kube import Plane, eventually
from tests.support.living import living
from tests.support.portal import KEYS

FOLDER = Path(__file__).parents[2] / "examples" / "workloads"
HELPER = FOLDER / "egs_ends.py"
PLURALS = {
    "Job": "/apis/batch/v1/namespaces/{}/jobs",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "Service": "/api/v1/namespaces/{}/services",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
}
RECIPES = sorted(path.name for path in FOLDER.glob("*.yaml"))
WORKLOADS = [name for name in RECIPES if name != "checkpoint-rights.yaml"]


def objects(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / name).read_text(encoding="utf-8")))


# -- manifests -------------------------------------------------------------------------------------------------------


def pods(name: str) -> dict[str, Any]:
    """The pod template of a recipe's only workload."""
    (found,) = [each for each in objects(name) if each["kind"] in {"Job", "Deployment"}]
    return found["spec"]["template"]


@pytest.mark.parametrize("name", RECIPES)
def test_an_api_server_takes_each_object_as_it_is(name: str, new_kube: Plane) -> None:
    """With strict validation: no field is unknown."""
    new_kube.api.create("/api/v1/namespaces", {"metadata": {"name": "vision"}})
    for found in objects(name):
        path = PLURALS[found["kind"]].format("vision")
        new_kube.api._json("POST", path, {"fieldValidation": "Strict", "dryRun": "All"}, found)


@pytest.mark.parametrize("name", WORKLOADS)
def test_pods_have_no_more_grace_than_the_least_notice_and_follow_the_end(name: str) -> None:
    """More grace than the notice would be cut at the strict end; the file shows the annotation."""
    template = pods(name)
    notice = ClusterSpec.model_fields["notice"].default
    assert template["spec"]["terminationGracePeriodSeconds"] <= notice.total_seconds()
    assert template["metadata"]["annotations"] == {ENDS_AT: ""}
    (volume,) = [v for v in template["spec"]["volumes"] if "downwardAPI" in v]
    (item,) = volume["downwardAPI"]["items"]
    assert item == {"path": "ends-at", "fieldRef": {"fieldPath": f"metadata.annotations['{ENDS_AT}']"}}
    (mounted,) = [m for m in template["spec"]["containers"][0]["volumeMounts"] if m["name"] == volume["name"]]
    assert mounted["mountPath"] == "/etc/egs"


@pytest.mark.parametrize("name", [n for n in WORKLOADS if n != "vllm.yaml"])
def test_an_evicted_pod_is_no_failure_of_its_job(name: str) -> None:
    (job,) = [each for each in objects(name) if each["kind"] == "Job"]
    (rule,) = job["spec"]["podFailurePolicy"]["rules"]
    assert rule == {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}


@pytest.mark.parametrize("script", sorted(path.name for path in FOLDER.glob("*.py")))
def test_each_script_compiles(script: str, tmp_path: Path) -> None:
    py_compile.compile(str(FOLDER / script), str(tmp_path / "x.pyc"), doraise=True)


# -- the helper as a process -------------------------------------------------------------------------------------------

LOOP = """
import json, sys, time
from pathlib import Path
from egs_ends import saving
kept = Path(sys.argv[1])
first = json.loads(kept.read_text())["step"] + 1 if kept.exists() else 0
def save(step):
    draft = kept.with_suffix(".new"); draft.write_text(json.dumps({"step": step, "from": first})); draft.replace(kept)
for step in saving(range(first, 10**9), save, lead_s=600, last_every_s=0.05):
    time.sleep(0.005)
"""


class Pod:
    """A folder as the kubelet makes it: the file is replaced by moving a link."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.turn, self.made = folder, 0, list[subprocess.Popen[str]]()

    def shows(self, text: str) -> None:
        self.turn += 1
        data = self.folder / f"..{self.turn}"
        data.mkdir()
        (data / "ends-at").write_text(text)
        draft = self.folder / "..draft"
        draft.symlink_to(data.name)
        draft.replace(self.folder / "..data")
        if self.turn == 1:
            (self.folder / "ends-at").symlink_to("..data/ends-at")

    def shows_in(self, minutes: float) -> None:
        self.shows(format_instant(SystemClock().now() + timedelta(minutes=minutes)))

    def env(self, **more: str) -> dict[str, str]:
        return {**os.environ, "EGS_ENDS_AT": str(self.folder / "ends-at"), "PYTHONPATH": str(FOLDER), **more}

    def run(self, *words: str, **more: str) -> int:
        command = [sys.executable, str(HELPER), *words]
        return subprocess.run(command, env=self.env(**more), timeout=60, check=False).returncode

    def start(self, *words: str, **more: str) -> subprocess.Popen[str]:
        made = subprocess.Popen([sys.executable, *words], env=self.env(**more), text=True)
        self.made.append(made)
        return made


@pytest.fixture
def pod(tmp_path: Path) -> Iterator[Pod]:
    folder = tmp_path / "etc"
    folder.mkdir()
    made = Pod(folder)
    yield made
    for process in made.made:
        process.kill()
        process.wait()


def test_a_loop_saves_when_the_end_comes_near_and_continues_from_there(pod: Pod, tmp_path: Path) -> None:
    """Nothing is written while the end is far; an eviction that brings it near is enough."""
    kept = tmp_path / "kept.json"
    pod.shows_in(60)
    first = pod.start("-c", LOOP, str(kept))
    eventually(lambda: first.poll() is None, "it trains")
    assert not kept.exists()
    pod.shows_in(9)
    eventually(kept.exists, "it saved")
    first.kill()
    first.wait()
    saved = json.loads(kept.read_text())
    pod.start("-c", LOOP, str(kept))
    eventually(lambda: json.loads(kept.read_text())["from"] == saved["step"] + 1, "the next one continued")


@pytest.mark.parametrize(
    ("shown", "due"),
    [
        pytest.param("", 1, id="outside of a lease nothing is due"),
        pytest.param("soon", 1, id="nonsense is no end"),
        pytest.param("2020-01-01T00:00:00Z", 0, id="an end that has passed is due"),
        pytest.param("2190-01-01T00:00:00Z", 1, id="an end that is far is not"),
    ],
)
def test_commands_answer_by_their_exit_status(pod: Pod, shown: str, due: int) -> None:
    pod.shows(shown)
    assert (pod.run("due", "--lead", "600"), pod.run("open", "--lead", "600")) == (due, 1 - due)


def test_waiting_ends_when_the_file_changes(pod: Pod) -> None:
    pod.shows_in(60)
    waits = pod.start(str(HELPER), "wait", "--lead", "600")
    assert waits.poll() is None
    pod.shows_in(5)
    assert waits.wait(30) == 0


class Gauges(BaseHTTPRequestHandler):
    """A vLLM server's metrics; each look finds one request less."""

    left = 3

    def do_GET(self) -> None:
        text = f'vllm:num_requests_running{{model="m"}} {float(max(0, Gauges.left))}\nother 5.0\n'
        Gauges.left -= 1
        self.send_response(200)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: Any) -> None:
        """Nothing is logged."""


@pytest.fixture
def metrics() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Gauges)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/metrics"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("left", "within", "status"),
    [
        pytest.param(3, "50", 0, id="it waits for the last request"),
        pytest.param(10**6, "0.1", 1, id="but not for longer than it may"),
    ],
)
def test_a_server_is_drained(pod: Pod, metrics: str, left: int, within: str, status: int) -> None:
    Gauges.left = left
    assert pod.run("drain", "--metrics", metrics, "--within", within) == status


def test_a_server_that_does_not_answer_has_nothing_to_drain(pod: Pod) -> None:
    assert pod.run("drain", "--metrics", "http://127.0.0.1:1/metrics", "--within", "50") == 0


def test_a_pod_says_with_its_own_rights_when_it_saved(pod: Pod, tmp_path: Path, new_kube: Plane) -> None:
    """The rights of checkpoint-rights.yaml are enough, and without them nothing happens."""
    api = new_kube.api
    api.create("/api/v1/namespaces", {"metadata": {"name": "vision"}})
    for found in objects("checkpoint-rights.yaml"):
        api.create(PLURALS[found["kind"]].format("vision"), found)
    eventually(lambda: api.find("/api/v1/namespaces/vision/serviceaccounts/default"), "an account")
    spec = {"containers": [{"name": "main", "image": "example.com/x"}], "automountServiceAccountToken": False}
    api.create("/api/v1/namespaces/vision/pods", {"metadata": {"name": "train"}, "spec": spec})
    given = yaml.safe_load(new_kube.kubeconfig.read_text())["clusters"][0]["cluster"]
    where = urlsplit(given["server"])

    def account(name: str) -> dict[str, str]:
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token = api.create(f"/api/v1/namespaces/vision/serviceaccounts/{name}/token", asked)["status"][
            "token"
        ]
        folder = tmp_path / name
        folder.mkdir()
        (folder / "token").write_text(token)
        (folder / "ca.crt").write_bytes(_authority(given))
        names = {"POD_NAME": "train", "POD_NAMESPACE": "vision"}
        server = {"KUBERNETES_SERVICE_HOST": str(where.hostname), "KUBERNETES_SERVICE_PORT": str(where.port)}
        return {"EGS_SERVICE_ACCOUNT": str(folder), **names, **server}

    def said() -> str | None:
        meta = api.get("/api/v1/namespaces/vision/pods/train")["metadata"]
        return (meta.get("annotations") or {}).get(CHECKPOINTED_AT)

    assert pod.run("saved", **account("default")) == 1
    assert said() is None
    assert pod.run("saved", **account("checkpoint")) == 0
    assert abs(parse_instant(said()) - SystemClock().now()) < timedelta(minutes=5)


def _authority(given: dict[str, Any]) -> bytes:
    if "certificate-authority" in given:
        return Path(given["certificate-authority"]).read_bytes()
    return base64.b64decode(given["certificate-authority-data"])


@pytest.mark.slow
def test_a_recipe_is_deployed_by_the_sdk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A9: request and objects in one change, until they run in a simulated cluster."""
    main = runpy.run_path(str(FOLDER / "deploy_job.py"))["main"]
    with living(tmp_path / "site") as url:
        monkeypatch.setenv("EGS_SERVER", url)
        monkeypatch.setenv("EGS_API_KEY", KEYS["bo-editor"])
        main("vision")
        egs.update_global_session(None)
    first, has, *objects = capsys.readouterr().out.splitlines()
    assert first.startswith("vision/pytorch is filed (pushed), its request is gpr-")
    assert has.startswith("it has ")
    assert objects == ["Job train-pytorch is Running in east/vision"]
