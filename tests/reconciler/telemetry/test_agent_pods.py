"""Agents are asked through a real API server's pod proxy (H5, H16), with no more rights than the portal has."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
import yaml

from agent.port import GpuReading
from agent.telemetry.exporter import Exporter
from agent.telemetry.server import TelemetryServer
from reconciler.clock import ManualClock
from reconciler.clusters.kubernetes.api.api_client import Json, Rejected
from reconciler.clusters.kubernetes.api.connection import from_text
from reconciler.clusters.kubernetes.names import SYSTEM_NAMESPACE
from reconciler.deploying import part_rights
from reconciler.deploying.part_names import Place
from reconciler.telemetry.agent_pods import AgentPods
from reconciler.telemetry.ring_telemetry import RingTelemetry
from reconciler.telemetry.telemetry_port import GpuKey, Metric, Query
from schemas.errors import Fault
from tests.support.kube import Plane, eventually

NOW = datetime(2026, 11, 20, 8, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
A, B, C = ("east", "h100-1"), ("east", "h100-2"), ("east", "h100-3")
PODS = f"/api/v1/namespaces/{SYSTEM_NAMESPACE}/pods"
LABELS = {"app.kubernetes.io/name": "egs", "app.kubernetes.io/component": "agents"}


def own_address() -> str:
    """An API server proxies to no loopback address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            pytest.skip("this machine has no address but loopback")
        return str(probe.getsockname()[0])


@contextmanager
def agent(node: tuple[str, str]) -> Iterator[tuple[str, int]]:
    """A real one's server with ten minutes of one GPU."""
    exporter = Exporter(node)
    for minute in range(11):
        at = NOW + (minute - 10) * MINUTE
        exporter.observe((GpuReading(f"GPU-{node[1]}", 0, "H100", 81_920, power_w=float(minute)),), at)
    address = own_address()
    server = TelemetryServer(f"{address}:0", exporter, node, ManualClock(NOW))
    server.start()
    try:
        yield address, server.port
    finally:
        server.stop()


def pod(plane: Plane, node: str, address: str, port: int, name: str = "telemetry", **labels: str) -> None:
    ports = [{"name": name, "containerPort": port}]
    made: Json = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"egs-agents-{node}", "labels": LABELS | labels},
        "spec": {
            "nodeName": node,
            "automountServiceAccountToken": False,
            "containers": [{"name": "agents", "image": "egs", "ports": ports}],
        },
    }
    plane.api.create(PODS, made)
    found = plane.api.get(f"{PODS}/egs-agents-{node}")
    found["status"] = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}
    plane.api.replace(f"{PODS}/egs-agents-{node}/status", found)


@pytest.fixture
def system(kube: Plane) -> Plane:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE}}

    def made() -> bool | None:
        try:
            kube.api.create("/api/v1/namespaces", namespace)
        except Rejected as no:
            if (
                no.status != 409
                or kube.api.get(f"/api/v1/namespaces/{SYSTEM_NAMESPACE}")["status"]["phase"] != "Active"
            ):
                return None
        return True

    eventually(made, "the namespace")
    return kube


def test_agents_answer_through_the_api_server(system) -> None:
    source = RingTelemetry("east", AgentPods("east", system.api))
    with agent(A) as (address, port), agent(B) as (_, other):
        pod(system, A[1], address, port)
        pod(system, B[1], address, other, name="metrics")  # of another release, which shows nothing
        found = source.latest([A, B, C], NOW)
        query = Query(frozenset({A, C}), (Metric.POWER,), NOW - 5 * MINUTE, NOW, MINUTE)
        ranges = source.range(query, NOW)
    source.close()
    assert [(s.gpu, s.values[Metric.POWER]) for s in found.samples] == [(GpuKey(*A, "GPU-h100-1"), 10.0)]
    assert [(s.node, s.reason) for s in found.silences] == [(B[1], "NoMetrics"), (C[1], "NoMetrics")]
    assert [[p.value for p in s.points] for s in ranges.series] == [[5.0, 6.0, 7.0, 8.0, 9.0, 10.0]]
    assert "agents.telemetry.enabled" in found.silences[0].message


def test_the_rights_of_the_chart_suffice_and_reach_no_further(system) -> None:
    """A11: a portal that asks agents may do that, in that namespace."""
    place, rules = Place("1"), part_rights.asking_agents()
    account = part_rights.account(place, "portal", calls=True)
    for item in (account, *part_rights.granted(place, "portal", rules)):
        group = "/api/v1" if item["kind"] == "ServiceAccount" else f"/apis/{item['apiVersion']}"
        plural = item["kind"].lower() + "s"
        system.api.create(f"{group}/namespaces/{SYSTEM_NAMESPACE}/{plural}", item)
    path = f"/api/v1/namespaces/{SYSTEM_NAMESPACE}/serviceaccounts/egs-portal/token"
    asked = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 600},
    }
    token = system.api.create(path, asked)["status"]["token"]
    config = yaml.safe_load(system.kubeconfig.read_text())
    config["users"] = [{"name": user["name"], "user": {"token": token}} for user in config["users"]]
    portal = from_text("east", yaml.safe_dump(config))
    with agent(A) as (address, port):
        pod(system, A[1], address, port)
        found = RingTelemetry("east", AgentPods("east", portal)).latest([A], NOW)
    assert [s.gpu.at_node for s in found.samples] == [A]
    for beyond in ("/api/v1/namespaces/default/pods", f"/api/v1/namespaces/{SYSTEM_NAMESPACE}/secrets"):
        with pytest.raises(Rejected) as refused:
            portal.get(beyond)
        assert refused.value.status == 403


def test_an_agent_that_is_gone_is_told_and_stops_no_other(system) -> None:
    with agent(A) as (address, port):
        pod(system, A[1], address, port)
        with agent(B) as (_, gone):
            pod(system, B[1], address, gone)
        found = RingTelemetry("east", AgentPods("east", system.api)).latest([A, B], NOW)
    assert [s.gpu.at_node for s in found.samples] == [A]
    assert [(s.node, s.reason) for s in found.silences] == [(B[1], "MetricsUnreachable")]


class Api:
    """Pods as an API server lists them; None: it does not answer."""

    def __init__(self, *pods: Json) -> None:
        self.pods: tuple[Json, ...] | None = pods
        self.listed = 0

    def items(self, path: str, **params: object) -> Iterator[Json]:
        assert (path, params["labelSelector"]) == (PODS, ",".join(f"{k}={v}" for k, v in LABELS.items()))
        self.listed += 1
        if self.pods is None:
            raise Fault("the API server of cluster east did not answer", "ClusterUnreachable")
        yield from self.pods

    def text(self, path: str, **params: object) -> str:
        return json.dumps({"path": path, **params})


def listed(node="h100-1", phase="Running", ports=({"name": "telemetry", "containerPort": 9400},)) -> Json:
    return {
        "metadata": {"name": f"egs-agents-{node}"},
        "spec": {"nodeName": node, "containers": [{"name": "agents", "ports": list(ports)}]},
        "status": {"phase": phase},
    }


def test_the_route_names_pod_and_port() -> None:
    asked = AgentPods("east", Api(listed())).ask("h100-1", "/gpus/range", {"step": "10"})
    assert json.loads(asked) == {"path": f"{PODS}/egs-agents-h100-1:9400/proxy/gpus/range", "step": "10"}


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(listed(node="h100-2"), id="on another node"),
        pytest.param(listed(phase="Pending"), id="that does not run"),
        pytest.param(listed(ports=()), id="without telemetry"),
        pytest.param(listed(node=""), id="without a node"),
    ],
)
def test_an_agent_that_does_not_show_telemetry_is_none(given) -> None:
    with pytest.raises(Fault) as caught:
        AgentPods("east", Api(given)).ask("h100-1", "/gpus/latest", {})
    assert caught.value.reason == "NoMetrics"


def test_pods_are_listed_once_a_minute_and_a_silent_server_is_told() -> None:
    api = Api(listed())
    agents = AgentPods("east", api)
    for _ in range(3):
        agents.ask("h100-1", "/gpus/latest", {})
    assert api.listed == 1
    api.pods = None
    with pytest.raises(Fault) as caught:
        AgentPods("east", api).ask("h100-1", "/gpus/latest", {})
    assert caught.value.reason == "MetricsUnreachable"
