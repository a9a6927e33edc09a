"""An endpoint as Kubernetes objects (J2)."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from reconciler.endpoints.rendered import objects_of
from reconciler.endpoints.server_pods import CACHE, DRAIN
from reconciler.model.workload_port import LEAST_REPLICAS
from schemas.documents.endpoint import Gateway
from tests.support.crds import KSERVE, definitions
from tests.support.endpoints import spec_of, version

GATEWAY = Gateway(name="public", namespace="gateways")
SCALED = version(replicas={"min": 1, "max": 4})
KEDA = {"by": "keda", "authentication": "egs"}
PORTAL = "https://egs.example.com/"


def rendered(
    gateway: Gateway | None = GATEWAY,
    weights: dict[str, int] | None = None,
    portal: str | None = PORTAL,
    **spec: Any,
) -> Any:
    """By Kind/name."""
    told = spec_of(**spec)
    made = objects_of("a/chat", told, told.weights if weights is None else weights, gateway, portal)
    return {f"{each['kind']}/{each['metadata']['name']}": each for each in made}


def test_each_version_has_a_deployment_and_a_service_and_the_route_shares_the_traffic() -> None:
    both = {"versions": [version("v1"), version("v2")], "weights": {"v1": 90, "v2": 10}}
    found = rendered(**both, route={"hostnames": ["chat.example.com"], "path": "/v1"})
    assert list(found) == [
        "Service/chat-v1",
        "Deployment/chat-v1",
        "Service/chat-v2",
        "Deployment/chat-v2",
        "HTTPRoute/chat",
    ]
    route = found["HTTPRoute/chat"]["spec"]
    assert route["parentRefs"] == [{"name": "public", "namespace": "gateways"}]
    assert route["hostnames"] == ["chat.example.com"]
    (rule,) = route["rules"]
    assert rule["matches"] == [{"path": {"type": "PathPrefix", "value": "/v1"}}]
    assert [(b["name"], b["port"], b["weight"]) for b in rule["backendRefs"]] == [
        ("chat-v1", 80, 90),
        ("chat-v2", 80, 10),
    ]


def test_without_a_gateway_or_a_route_nothing_leads_in() -> None:
    assert "HTTPRoute/chat" not in rendered(None, route={})
    assert "HTTPRoute/chat" not in rendered()


def test_a_version_without_a_weight_gets_none() -> None:
    found = rendered(weights={"v1": 100}, versions=[version("v1"), version("v2")], route={})
    (rule,) = found["HTTPRoute/chat"]["spec"]["rules"]
    assert [each["weight"] for each in rule["backendRefs"]] == [100, 0]


def test_a_service_finds_the_pods_of_its_version_only() -> None:
    found = rendered(versions=[version("v1"), version("v2")], weights={"v1": 100})
    selected = {"egs.dev/endpoint": "chat", "egs.dev/version": "v2"}
    deployment = found["Deployment/chat-v2"]["spec"]
    assert found["Service/chat-v2"]["spec"]["selector"] == selected
    assert deployment["selector"]["matchLabels"] == selected
    assert deployment["template"]["metadata"]["labels"] == selected


def test_a_pod_drains_before_it_is_killed_and_gets_no_traffic_before_it_has_loaded() -> None:
    deployment = rendered(drain="5m")["Deployment/chat-v1"]["spec"]
    assert deployment["progressDeadlineSeconds"] == 60 * (5 + 30 + 10), "the old one may drain all that time"
    pod = deployment["template"]["spec"]
    (container,) = pod["containers"]
    assert container["lifecycle"]["preStop"]["exec"]["command"][3:] == [
        "300",
        "5",
        "http://127.0.0.1:8000/metrics",
    ]
    assert pod["terminationGracePeriodSeconds"] == 310
    start = container["startupProbe"]
    assert start["periodSeconds"] * start["failureThreshold"] == 1800
    assert {probe["httpGet"]["path"] for probe in (start, container["readinessProbe"])} == {"/health"}


@pytest.mark.parametrize(
    ("surge", "most"),
    [
        pytest.param(0, {"maxSurge": 0, "maxUnavailable": 1}, id="no spare GPU: an old one stops first"),
        pytest.param(1, {"maxSurge": 1, "maxUnavailable": 0}, id="a spare GPU: the new one starts first"),
    ],
)
def test_how_replicas_are_replaced(surge: int, most: dict[str, int]) -> None:
    assert rendered(maxSurge=surge)["Deployment/chat-v1"]["spec"]["strategy"]["rollingUpdate"] == most


def test_several_gpus_share_memory_and_the_document_has_the_last_word() -> None:
    two = version(gpusPerReplica=2, args=["--max-model-len", "8192"], secret="hub", cache="weights")
    pod = rendered(versions=[two])["Deployment/chat-v1"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["args"] == [
        *("--model", "acme/small", "--served-model-name", "chat", "--port", "8000"),
        *("--tensor-parallel-size", "2", "--max-model-len", "8192"),
    ]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "2"}
    assert container["envFrom"] == [{"secretRef": {"name": "hub"}}]
    assert container["env"] == [{"name": "HF_HOME", "value": CACHE}]
    assert {m["mountPath"] for m in container["volumeMounts"]} == {CACHE, "/dev/shm"}


def test_keda_asks_how_many_replicas_and_the_number_is_not_ours() -> None:
    found = rendered(versions=[SCALED], scaling=KEDA)
    scaled = found["ScaledObject/chat-v1"]["spec"]
    (trigger,) = scaled["triggers"]
    assert trigger["metadata"]["url"] == "https://egs.example.com/api/v1/endpoints/a/chat/replicas?version=v1"
    assert (scaled["minReplicaCount"], scaled["maxReplicaCount"]) == (1, 4)
    assert scaled["fallback"]["replicas"] == 4, "of what is paid for nothing idles while the portal is silent"
    served = found["Deployment/chat-v1"]
    assert ("replicas" in served["spec"], served["metadata"]["annotations"]) == (False, {LEAST_REPLICAS: "1"})
    assert rendered()["Deployment/chat-v1"]["spec"]["replicas"] == 1
    alone = rendered(portal=None, versions=[SCALED], scaling=KEDA)
    assert "ScaledObject/chat-v1" not in alone, "where KEDA has no one to ask"
    assert alone["Deployment/chat-v1"]["spec"]["replicas"] == 1


def test_an_autoscaler_counts_requests() -> None:
    found = rendered(versions=[SCALED], scaling={"by": "hpa", "requestsPerReplica": 8})
    hpa = found["HorizontalPodAutoscaler/chat-v1"]["spec"]
    assert (hpa["minReplicas"], hpa["maxReplicas"]) == (1, 4)
    assert hpa["metrics"][0]["pods"]["target"] == {"type": "AverageValue", "averageValue": "8"}


def test_kserve_serves_the_same_container_and_routes_to_its_own_service() -> None:
    """Every field is one of the published definition, of the published type."""
    found = rendered(backend="kserve", versions=[SCALED], scaling=KEDA, route={})
    service = found["InferenceService/chat-v1"]
    (definition,) = definitions(KSERVE)
    (served,) = [each for each in definition["spec"]["versions"] if each["name"] == "v1beta1"]
    assert [*misfits(service["spec"], served["schema"]["openAPIV3Schema"]["properties"]["spec"])] == []
    assert service["metadata"]["labels"]["networking.kserve.io/visibility"] == "cluster-local"
    assert service["spec"]["predictor"]["annotations"]["prometheus.io/port"] == "8000"
    (rule,) = found["HTTPRoute/chat"]["spec"]["rules"]
    assert rule["backendRefs"][0]["name"] == "chat-v1-predictor"
    assert found["ScaledObject/chat-v1"]["spec"]["scaleTargetRef"]["name"] == "chat-v1-predictor"
    assert [*misfits({"predictor": {"replicas": 1}}, {"properties": {"predictor": {"properties": {}}}})]


TYPES = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool}


def misfits(value: Any, schema: Any, path: str = "spec") -> Iterator[str]:
    """Fields that the schema does not have, and values of other types than it has."""
    wanted = TYPES.get(schema.get("type", ""))
    if wanted is not None and not isinstance(value, wanted) and not schema.get("x-kubernetes-int-or-string"):
        yield f"{path} is {type(value).__name__}, not {schema['type']}"
    elif isinstance(value, dict) and "properties" in schema:
        for name in value:
            if name in schema["properties"]:
                yield from misfits(value[name], schema["properties"][name], f"{path}.{name}")
            else:
                yield f"{path}.{name} is unknown"
    elif isinstance(value, list):
        for each in value:
            yield from misfits(each, schema.get("items", {}), f"{path}[]")


class Gauges(BaseHTTPRequestHandler):
    """A vLLM server's metrics; each look finds one request less."""

    left = 2

    def do_GET(self) -> None:
        text = f'vllm:num_requests_running{{m="m"}} {float(Gauges.left)}\nvllm:num_requests_waiting{{m="m"}} 0.0\n'
        Gauges.left -= 1
        self.send_response(200)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: Any) -> None:
        """Nothing is logged."""


def test_the_drain_ends_with_the_last_request_and_without_a_server_at_once() -> None:
    server = HTTPServer(("127.0.0.1", 0), Gauges)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/metrics"
    try:
        done = subprocess.run([sys.executable, "-c", DRAIN, "50", "0", address], timeout=60, check=False)
    finally:
        server.shutdown()
        server.server_close()
    assert (done.returncode, Gauges.left) == (0, -1)
    gone = subprocess.run([sys.executable, "-c", DRAIN, "50", "0", address], timeout=60, check=False)
    assert gone.returncode == 0
