"""The pod of one replica of a version. Pure.

A pod that is told to stop answers what it has before it gets SIGTERM; until the model is loaded it gets no traffic.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from reconciler.model.workload_port import ENDPOINT_LABEL, SERVER_PORT, VERSION_LABEL
from schemas.documents.endpoint import EndpointSpec, Version

GPU = "nvidia.com/gpu"
LOADED_WITHIN = timedelta(minutes=30)
"""A model of hundreds of gigabytes takes this long to download and load."""
MARGIN = timedelta(seconds=10)
"""Between the longest drain and the kill: what is running then ends at SIGTERM."""
CACHE = "/var/cache/models"
"""Where `cache` is mounted. The server is told, so that an image of any user finds its models there."""
SHARED_MEMORY = "/dev/shm"  # noqa: S108  # a mount point in the pod, no file of ours

DRAIN = """\
import sys, time, urllib.request
end = time.time() + float(sys.argv[1])
time.sleep(float(sys.argv[2]))
while time.time() < end:
    try:
        text = urllib.request.urlopen(sys.argv[3], timeout=5).read().decode()
    except OSError:
        break
    names = ("vllm:num_requests_running", "vllm:num_requests_waiting")
    if not sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(names)):
        break
    time.sleep(1)
"""
"""Waits until the server has no requests left: argv has the most seconds, those before the first look, the address.

The first look comes late: Gateways need a moment to learn that the pod is going.
"""
LEARNT_S = 5
SCRAPED = {
    "prometheus.io/scrape": "true",
    "prometheus.io/port": str(SERVER_PORT),
    "prometheus.io/path": "/metrics",
}
"""Annotations by which a Prometheus finds the server's metrics."""

Json = dict[str, Any]


def labels_of(endpoint: str, version: str) -> dict[str, str]:
    """What Services and Deployments select the version's pods by."""
    return {ENDPOINT_LABEL: endpoint, VERSION_LABEL: version}


def pod_template(endpoint: str, spec: EndpointSpec, version: Version) -> Json:
    """Labels, notes for Prometheus, and the pod itself."""
    return {
        "metadata": {"labels": labels_of(endpoint, version.name), "annotations": dict(SCRAPED)},
        "spec": pod_spec(endpoint, spec, version),
    }


def pod_spec(endpoint: str, spec: EndpointSpec, version: Version, container: str = "server") -> Json:
    """One container with the server, called `container`; its volumes."""
    volumes: list[Json] = []
    mounts: list[Json] = []
    if version.cache is not None:
        volumes.append({"name": "weights", "persistentVolumeClaim": {"claimName": version.cache}})
        mounts.append({"name": "weights", "mountPath": CACHE})
    if version.gpus_per_replica > 1:  # processes of one replica exchange tensors there
        volumes.append({"name": "shm", "emptyDir": {"medium": "Memory"}})
        mounts.append({"name": "shm", "mountPath": SHARED_MEMORY})
    pod: Json = {
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": _seconds(spec.drain + MARGIN),
        "containers": [_container(endpoint, spec, version, container, mounts)],
    }
    return pod | ({"volumes": volumes} if volumes else {})


def _container(endpoint: str, spec: EndpointSpec, version: Version, name: str, mounts: list[Json]) -> Json:
    found: Json = {
        "name": name,
        "image": version.image,
        "args": _arguments(endpoint, version),
        "ports": [{"name": "http1", "containerPort": SERVER_PORT, "protocol": "TCP"}],
        "resources": {
            "limits": {GPU: str(version.gpus_per_replica)},
            "requests": {GPU: str(version.gpus_per_replica)},
        },
        "startupProbe": _probe(10, _seconds(LOADED_WITHIN) // 10),
        "readinessProbe": _probe(5, 3),
        "livenessProbe": _probe(10, 6),
        "lifecycle": {"preStop": {"exec": {"command": _drain(spec)}}},
    }
    if version.cache is not None:
        found["env"] = [{"name": "HF_HOME", "value": CACHE}]
    if version.secret is not None:
        found["envFrom"] = [{"secretRef": {"name": version.secret}}]
    return found | ({"volumeMounts": mounts} if mounts else {})


def _arguments(endpoint: str, version: Version) -> list[str]:
    """Clients name the endpoint, whatever version answers. The document's own arguments come last and so win."""
    own = ["--model", version.model, "--served-model-name", endpoint, "--port", str(SERVER_PORT)]
    if version.gpus_per_replica > 1:
        own += ["--tensor-parallel-size", str(version.gpus_per_replica)]
    return [*own, *version.args]


def _probe(every_s: int, failures: int) -> Json:
    get = {"path": "/health", "port": SERVER_PORT}
    return {"httpGet": get, "periodSeconds": every_s, "timeoutSeconds": 5, "failureThreshold": failures}


def _drain(spec: EndpointSpec) -> list[str]:
    metrics = f"http://127.0.0.1:{SERVER_PORT}/metrics"
    return ["python3", "-c", DRAIN, str(_seconds(spec.drain)), str(LEARNT_S), metrics]


def _seconds(duration: timedelta) -> int:
    return int(duration.total_seconds())
