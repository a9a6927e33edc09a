"""A cluster's agents behind its API server: which pod is on which node, and questions through the pod proxy.

An agent takes part if its pod has a port named `telemetry`, as the chart's do. The list of pods is kept for a minute.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import Any, NamedTuple

from reconciler.clock import monotonic_s
from reconciler.clusters.kubernetes.api.api_client import Api
from reconciler.clusters.kubernetes.names import SYSTEM_NAMESPACE
from schemas.errors import Fault

KEPT_S = 60.0
"""Agents are a DaemonSet: their pods rarely change."""
PORT = "telemetry"
SELECTOR = "app.kubernetes.io/name=egs,app.kubernetes.io/component=agents"


class AgentPod(NamedTuple):
    name: str
    port: int


class AgentPods:
    """`reconciler.telemetry.ring_telemetry.Agents`; thread-safe."""

    def __init__(self, cluster: str, api: Api, namespace: str = SYSTEM_NAMESPACE) -> None:
        self._cluster, self._api, self._namespace = cluster, api, namespace
        self._lock = Lock()
        self._pods: Mapping[str, AgentPod] = {}
        self._listed_s: float | None = None

    def ask(self, node: str, path: str, parameters: Mapping[str, str]) -> bytes:
        pod = self._by_node().get(node)
        if pod is None:
            text = (
                f"node {node} of cluster {self._cluster} has no agent that shows telemetry; "
                "install the chart with agents.telemetry.enabled, or give spec.metrics.prometheus"
            )
            raise Fault(text, "NoMetrics")
        route = f"/api/v1/namespaces/{self._namespace}/pods/{pod.name}:{pod.port}/proxy{path}"
        try:
            return self._api.text(route, **parameters).encode()
        except Fault as fault:
            text = f"the agent of node {node} in cluster {self._cluster} did not answer: {fault}"
            raise Fault(text, "MetricsUnreachable") from fault

    def _by_node(self) -> Mapping[str, AgentPod]:
        with self._lock:
            now_s = monotonic_s()
            if self._listed_s is None or now_s - self._listed_s >= KEPT_S:
                self._pods = self._listed()
                self._listed_s = now_s
            return self._pods

    def _listed(self) -> Mapping[str, AgentPod]:
        path = f"/api/v1/namespaces/{self._namespace}/pods"
        try:
            pods = list(self._api.items(path, labelSelector=SELECTOR))
        except Fault as fault:
            text = f"the agents of cluster {self._cluster} cannot be listed: {fault}"
            raise Fault(text, "MetricsUnreachable") from fault
        return dict(found for pod in pods if (found := _agent(pod)) is not None)


def _agent(pod: Mapping[str, Any]) -> tuple[str, AgentPod] | None:
    """Node and agent of a pod that runs and shows telemetry."""
    spec = pod.get("spec", {})
    ports = [port for container in spec.get("containers", ()) for port in container.get("ports") or ()]
    number = next((port["containerPort"] for port in ports if port.get("name") == PORT), None)
    if number is None or not spec.get("nodeName") or pod.get("status", {}).get("phase") != "Running":
        return None
    return spec["nodeName"], AgentPod(pod["metadata"]["name"], number)
