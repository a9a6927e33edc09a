"""A cluster with one GPU node and the checks of it, and what its kubelet would do."""

from __future__ import annotations

import json
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from threading import Thread

from reconciler.clusters.kubernetes.api.api_client import Json
from reconciler.clusters.kubernetes.api.informer import Informer
from reconciler.clusters.kubernetes.checks.check_verdicts import Subject
from reconciler.clusters.kubernetes.checks.node_checks import Checks
from reconciler.clusters.kubernetes.names import SYSTEM_NAMESPACE
from reconciler.clusters.kubernetes.nodes.node_inventory import Node, named_pools, pool_of, read_node
from reconciler.clusters.kubernetes.nodes.node_writer import NODES, NodeWriter
from reconciler.model.cluster_port import Busy, CheckResult, LeaseRef, Refused, Stage, Stamp
from schemas.documents.cluster import ClusterSpec
from tests.support.kube import Plane, eventually, gpu_node

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
FIRST, LATER = Stamp(1, 1), Stamp(2, 1)
VISION = LeaseRef("gpr-00000001-aaaa", "vision/train", "vision", NOW + HOUR)
SPEECH = LeaseRef("gpr-00000002-bbbb", "speech/tune", "speech", NOW + HOUR)
NUMBERS = count()
IMAGE = "ghcr.io/example/checks:1"


def spec(**checks: object) -> ClusterSpec:
    """A cluster of H100 nodes with RDMA and of single L4s, with these fields of `spec.checks`."""
    pool = {"gpuShape": "H100-80GB", "gpusPerNode": 8, "memoryPerGpu": 80}
    return ClusterSpec.model_validate_json(
        json.dumps(
            {
                "driver": "kubernetes",
                "pools": [
                    {"name": "h100", **pool, "rdma": True, "nodes": 3},
                    {
                        "name": "l4",
                        "gpuShape": "L4-24GB",
                        "gpusPerNode": 1,
                        "memoryPerGpu": 24,
                        "nodes": ["small"],
                    },
                ],
                "checks": checks,
            }
        )
    )


@dataclass
class Bench:
    """Checks of a running control plane; `restart` is a new process.

    Each has its own namespace: a Job of one name soon after another one of that name may wait for minutes, until
    the Job controller forgets which pods it meant to make for the first.
    """

    plane: Plane
    spec: ClusterSpec
    nodes: Informer[Node] = field(init=False)
    checks: Checks = field(init=False)
    namespace: str = field(default_factory=lambda: f"{SYSTEM_NAMESPACE}-{next(NUMBERS)}")

    def __post_init__(self) -> None:
        path = f"/api/v1/namespaces/{self.namespace}"
        self.plane.api.apply(path, named("Namespace", self.namespace))
        eventually(lambda: self.plane.api.find(f"{path}/serviceaccounts/default"), "what every pod needs")
        self._start()

    @property
    def jobs(self) -> str:
        return f"/apis/batch/v1/namespaces/{self.namespace}/jobs"

    @property
    def pods(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"

    @property
    def claims(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/persistentvolumeclaims"

    @property
    def records(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/configmaps"

    def restart(self) -> None:
        """The process ends and another one begins."""
        self.stop()
        self._start()

    def _start(self) -> None:
        self.nodes = Informer(self.plane.api, NODES, read_node)
        self.nodes.start()
        self.nodes.wait_synced(10)
        writer = NodeWriter(self.plane.api, self.nodes, "default")
        self.checks = Checks(self.plane.api, self.spec, writer, self.namespace)
        self.checks.start()

    def stop(self) -> None:
        self.checks.stop()
        self.nodes.stop()

    def add(self, *nodes: Json) -> None:
        """Nodes join the cluster."""
        for node in nodes:
            self.nodes.learn(self.plane.api.create(NODES, node))

    def fleet(self) -> list[Node]:
        """All nodes as they are known now."""
        return list(self.nodes.items().values())

    def label(self, node: str, **labels: str | None) -> None:
        """Somebody else labels a node; None takes a label away."""
        self.nodes.learn(self.plane.api.merge(f"{NODES}/{node}", {"metadata": {"labels": labels}}))

    def status(self, node: str, status: Json) -> None:
        """The kubelet reports."""
        merged = self.plane.api.merge(f"{NODES}/{node}/status", {"status": status}, "strategic-merge-patch")
        self.nodes.learn(merged)

    def subject(self, node: str = "h100-1", lease: LeaseRef = VISION, **more: object) -> Subject:
        """The node as it is known now."""
        found = self.nodes.items()[node]
        return Subject(found, pool_of(found, self.spec, named_pools(self.spec)), lease, **more)

    def ask(
        self,
        now: datetime = NOW,
        stage: Stage = "pre",
        node: str = "h100-1",
        stamp: Stamp = FIRST,
        **more: object,
    ) -> Busy | Refused | tuple[CheckResult, ...]:
        """One question."""
        return self.checks.run(self.subject(node, **more), stage, stamp, now)

    def answer(
        self, now: datetime = NOW, stage: Stage = "pre", node: str = "h100-1", **more: object
    ) -> tuple[tuple[CheckResult, ...], datetime]:
        """Asked again whenever it is Busy, for checks that need no kubelet."""
        for _ in range(10):
            found = self.ask(now, stage, node, **more)
            if not isinstance(found, Busy):
                assert not isinstance(found, Refused), found
                return found, now
            assert found.until > now
            now = found.until
        raise AssertionError(f"still Busy: {found}")

    def pod(self) -> Json:
        """The one pod of the one Job, once the Job controller made it."""
        return eventually(self._pod, "the Job's pod")

    def _pod(self) -> Json | None:
        return next(self.plane.api.items(self.pods), None)

    def bound(self) -> Json:
        """The same when the scheduler has placed it."""
        return eventually(lambda: (p := self.pod())["spec"].get("nodeName") and p, "the pod on a node")

    def finish(self, *lines: Json | str, phase: str = "Succeeded", **terminated: object) -> None:
        """The kubelet reports that the pod ended and printed this."""
        text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
        state = {"exitCode": 0, "reason": "Completed", "message": text, **terminated}
        self.report(phase, {"terminated": state})
        eventually(self._knows_the_end, "the pod's end")

    def report(self, phase: str, state: Json) -> None:
        """The kubelet reports of the pod."""
        name = self.pod()["metadata"]["name"]
        status = {"phase": phase, "containerStatuses": [container(state)]}
        self.plane.api.merge(f"{self.pods}/{name}/status", {"status": status}, "strategic-merge-patch")

    def _knows_the_end(self) -> bool:
        return any(pod.ended for pod in self.checks._pods.items().values())

    def waits(self, text: str, now: datetime) -> None:
        """Its Busy says so, once the informers have heard of it."""
        eventually(lambda: text in getattr(self.ask(now), "message", ""), f"Busy with {text!r}")

    def names(self, path: str) -> list[str]:
        """Of everything under a path."""
        return [item["metadata"]["name"] for item in self.plane.api.items(path)]


@contextmanager
def kubelet(folder: Path, log: str) -> Iterator[Json]:
    """A node's kubelet as far as the API server asks it for logs; yields the status by which it finds it."""
    key, cert = folder / "key.pem", folder / "cert.pem"
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=kubelet"]
    subprocess.run([*make, "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if "/containerLogs/" in self.path else 404)
            self.end_headers()
            self.wfile.write(log.encode())

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": server.server_port}},
        }
    finally:
        server.shutdown()
        server.server_close()


def container(state: Json) -> Json:
    return {
        "name": "checks",
        "image": IMAGE,
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": state,
    }


def named(kind: str, name: str) -> Json:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}


def node(name: str = "h100-1", **labels: str) -> Json:
    """A good node of the pool h100."""
    return gpu_node(name, **labels)
