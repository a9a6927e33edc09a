"""Kueue's real manager beside a control plane, for Jobs only, with those of its webhooks that Jobs and queues need."""

from __future__ import annotations

import base64
import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.support.crds import KUEUE
from tests.support.kube import Plane, eventually
from tests.support.kueue import served

WHY = "needs Kueue's manager: set EGS_TEST_KUEUE to what tests/support/kueue/build prints (it takes minutes)"
ASKED = {"batch", "kueue.x-k8s.io"}
"""Groups whose webhooks the manager serves when it manages Jobs only."""

CONFIG = """\
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
namespace: kueue-system
leaderElection: {{leaderElect: false}}
health: {{healthProbeBindAddress: "127.0.0.1:{health}"}}
metrics: {{bindAddress: "0"}}
webhook: {{host: 127.0.0.1, port: {webhook}, certDir: {certs}}}
internalCertManagement: {{enable: false}}
integrations: {{frameworks: [batch/job]}}
"""


@contextlib.contextmanager
def running(plane: Plane, place: Path) -> Iterator[Path]:
    """The manager at work; yields its log's path. Skips the test if it was not built."""
    program = _manager()
    served(plane.api)
    head = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kueue-system"}}
    plane.api.create("/api/v1/namespaces", head)
    certs, config, log = place / "certs", place / "config.yaml", place / "manager.log"
    _certificate(certs)
    health, port, gates = _free_port(), _free_port(), "VisibilityOnDemand=false"
    config.write_text(CONFIG.format(health=health, webhook=port, certs=certs))
    command = [str(program), f"--config={config}", f"--feature-gates={gates}"]
    with log.open("w") as out:
        process = subprocess.Popen(
            command,
            env={**os.environ, "KUBECONFIG": str(plane.kubeconfig), "KUEUE_METRICS_CERTS": str(certs)},
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        try:
            eventually(lambda: process.poll() is not None or _answers(port), "Kueue's manager")
            assert process.poll() is None, log.read_text()[-2000:]
            _call_back(plane, port, (certs / "tls.crt").read_bytes())
            yield log
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _manager() -> Path:
    """The program; skips the test if it was not built."""
    given = os.environ.get("EGS_TEST_KUEUE")
    if not given:
        pytest.skip(WHY)
    return Path(given)


def _certificate(place: Path) -> None:
    place.mkdir()
    names = ("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1")
    files = ("-keyout", str(place / "tls.key"), "-out", str(place / "tls.crt"))
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    subprocess.run(["openssl", "req", "-x509", *curve, *names, *files], check=True, capture_output=True)


def _call_back(plane: Plane, port: int, certificate: bytes) -> None:
    """The API server asks the manager about Jobs and Kueue's own objects."""
    bundle = base64.b64encode(certificate).decode()
    (webhooks,) = KUEUE.files("config/components/webhook/manifests")
    for found in yaml.safe_load_all(webhooks):
        kept = [
            hook for hook in found["webhooks"] if {g for r in hook["rules"] for g in r["apiGroups"]} <= ASKED
        ]
        for hook in kept:
            path = hook["clientConfig"]["service"]["path"]
            hook["clientConfig"] = {"url": f"https://127.0.0.1:{port}{path}", "caBundle": bundle}
        body = {**found, "metadata": {"name": f"kueue-{found['metadata']['name']}"}, "webhooks": kept}
        plural = found["kind"].lower() + "s"
        plane.api.create(f"/apis/admissionregistration.k8s.io/v1/{plural}", body)
    eventually(lambda: _suspends(plane), "the API server asks Kueue")


def _suspends(plane: Plane) -> bool:
    """A Job that names a queue waits for it from its first instant."""
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    pods = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "example.com/none"}]}
    meta = {"name": "probe", "labels": {"kueue.x-k8s.io/queue-name": "none"}}
    made = plane.api.create(jobs, {"metadata": meta, "spec": {"template": {"spec": pods}}})
    plane.api.delete(f"{jobs}/probe", grace_s=0)
    eventually(lambda: plane.api.find(f"{jobs}/probe") is None, "its end")
    return bool(made["spec"].get("suspend"))


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False
