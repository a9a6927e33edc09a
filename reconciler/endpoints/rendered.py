"""An endpoint as Kubernetes objects: what serves each version, its Service, what scales it, and the route. Pure.

The same document, weights and Gateway give the same objects in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from reconciler.endpoints.server_pods import LOADED_WITHIN, SCRAPED, labels_of, pod_spec, pod_template
from reconciler.model.workload_port import ENDPOINT_LABEL, LEAST_REPLICAS, SERVER_PORT
from schemas.documents.endpoint import EndpointSpec, Gateway, Route, Scaling, Version

SERVICE_PORT = 80
SPARE = timedelta(minutes=10)
"""Beyond the drain of an old replica and the load of the new one: images are pulled."""
HPA_METRIC = "vllm:num_requests_running"
"""What a HorizontalPodAutoscaler asks the cluster's adapter for metrics of pods."""

Json = dict[str, Any]


def objects_of(
    key: str,
    spec: EndpointSpec,
    weights: Mapping[str, int],
    gateway: Gateway | None,
    portal: str | None = None,
) -> tuple[Json, ...]:
    """All objects of endpoint `key` (slice/name) with these weights.

    Without a Gateway there is no route, and without the portal's address KEDA scales nothing.
    """
    name = key.partition("/")[2]
    found: list[Json] = []
    for version in spec.versions:
        found += (
            _of_kserve(name, spec, version, portal)
            if spec.backend == "kserve"
            else _of_vllm(name, spec, version, portal)
        )
        if _scales(spec, version, portal) and spec.scaling is not None:
            found += _scaler(key, spec.scaling, version, (spec, portal or ""))
    if spec.route is not None and gateway is not None:
        found.append(_route(name, spec, spec.route, weights, gateway))
    return tuple(found)


def version_name(endpoint: str, version: str) -> str:
    """The name of a version's Deployment or InferenceService."""
    return f"{endpoint}-{version}"


def service_name(endpoint: str, spec: EndpointSpec, version: str) -> str:
    """The name of a version's Service: KServe makes its own."""
    name = version_name(endpoint, version)
    return f"{name}-predictor" if spec.backend == "kserve" else name


def _scales(spec: EndpointSpec, version: Version, portal: str | None) -> bool:
    """True if something else than the document sets the number of replicas."""
    scaling = spec.scaling
    is_asked = scaling is not None and (scaling.by == "hpa" or portal is not None)
    return is_asked and version.replicas.max > version.replicas.min


def _of_vllm(endpoint: str, spec: EndpointSpec, version: Version, portal: str | None) -> Iterator[Json]:
    name, selected = version_name(endpoint, version.name), labels_of(endpoint, version.name)
    port = {"name": "http", "port": SERVICE_PORT, "targetPort": SERVER_PORT, "protocol": "TCP"}
    yield _object("v1", "Service", name, selected, {"selector": selected, "ports": [port]})
    deployment: Json = {
        "strategy": {"type": "RollingUpdate", "rollingUpdate": _surge(spec)},
        "progressDeadlineSeconds": int((LOADED_WITHIN + SPARE + spec.drain).total_seconds()),
        "selector": {"matchLabels": selected},
        "template": pod_template(endpoint, spec, version),
    }
    made = _object("apps/v1", "Deployment", name, selected, deployment)
    if _scales(spec, version, portal):  # the number is the scaler's, from here on
        made["metadata"]["annotations"] = {LEAST_REPLICAS: str(version.replicas.min)}
    else:
        deployment["replicas"] = version.replicas.min
    yield made


def _of_kserve(endpoint: str, spec: EndpointSpec, version: Version, portal: str | None) -> Iterator[Json]:
    """The same container as a predictor. KServe makes its Deployment and Service, but neither scales nor routes."""
    name, selected = version_name(endpoint, version.name), labels_of(endpoint, version.name)
    scales = _scales(spec, version, portal)
    notes = {
        "serving.kserve.io/deploymentMode": "Standard",
        # `external`: KServe makes no scaler of its own, and keeps its hands off the number of replicas.
        "serving.kserve.io/autoscalerClass": "external" if scales else "none",
    }
    predictor: Json = {
        **pod_spec(endpoint, spec, version, container="kserve-container"),
        "labels": selected,
        "annotations": dict(SCRAPED),
        "minReplicas": version.replicas.min,
        "maxReplicas": version.replicas.max if scales else version.replicas.min,
        "deploymentStrategy": {"type": "RollingUpdate", "rollingUpdate": _surge(spec)},
    }
    made = _object("serving.kserve.io/v1beta1", "InferenceService", name, selected, {"predictor": predictor})
    made["metadata"]["annotations"] = notes
    # Else KServe makes a route of its own for it, past the weights.
    made["metadata"]["labels"] |= {"networking.kserve.io/visibility": "cluster-local"}
    yield made


def _surge(spec: EndpointSpec) -> Json:
    """Without a spare GPU an old replica stops before the new one starts."""
    return {"maxSurge": spec.max_surge, "maxUnavailable": 0 if spec.max_surge else 1}


def _scaler(key: str, scaling: Scaling, version: Version, where: tuple[EndpointSpec, str]) -> Iterator[Json]:
    endpoint, (spec, portal) = key.partition("/")[2], where
    name, selected = version_name(endpoint, version.name), labels_of(endpoint, version.name)
    target = f"{name}-predictor" if spec.backend == "kserve" else name
    scaled: Json = {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}
    least, most = version.replicas.min, version.replicas.max
    if scaling.by == "hpa":
        metric = {"name": HPA_METRIC}
        each = {"type": "AverageValue", "averageValue": str(scaling.requests_per_replica)}
        hpa = {
            "scaleTargetRef": scaled,
            "minReplicas": least,
            "maxReplicas": most,
            "metrics": [{"type": "Pods", "pods": {"metric": metric, "target": each}}],
        }
        yield _object("autoscaling/v2", "HorizontalPodAutoscaler", name, selected, hpa)
        return
    asked = f"{portal.rstrip('/')}/api/v1/endpoints/{key}/replicas?version={version.name}"
    trigger: Json = {
        "type": "metrics-api",
        "metricType": "AverageValue",
        "metadata": {"url": asked, "valueLocation": "replicas", "targetValue": "1"},
    }
    if scaling.authentication is not None:
        trigger["metadata"]["authMode"] = "bearer"
        trigger["authenticationRef"] = {"name": scaling.authentication}
    scaled_object = {
        "scaleTargetRef": scaled,
        "minReplicaCount": least,
        "maxReplicaCount": most,
        # If the portal is silent, what is needed is not known: all that the lease pays for serves.
        "fallback": {"failureThreshold": 3, "replicas": most},
        "triggers": [trigger],
    }
    yield _object("keda.sh/v1alpha1", "ScaledObject", name, selected, scaled_object)


def _route(
    endpoint: str, spec: EndpointSpec, route: Route, weights: Mapping[str, int], gateway: Gateway
) -> Json:
    parent: Json = {"name": gateway.name, "namespace": gateway.namespace}
    if gateway.listener is not None:
        parent["sectionName"] = gateway.listener
    backends = [
        {
            "name": service_name(endpoint, spec, version.name),
            "port": SERVICE_PORT,
            "weight": weights.get(version.name, 0),
        }
        for version in spec.versions
    ]
    rule = {"matches": [{"path": {"type": "PathPrefix", "value": route.path}}], "backendRefs": backends}
    made: Json = {"parentRefs": [parent], "rules": [rule]}
    if route.hostnames:
        made["hostnames"] = list(route.hostnames)
    labels = {ENDPOINT_LABEL: endpoint}
    return _object("gateway.networking.k8s.io/v1", "HTTPRoute", endpoint, labels, made)


def _object(api: str, kind: str, name: str, labels: Mapping[str, str], spec: Json) -> Json:
    return {
        "apiVersion": api,
        "kind": kind,
        "metadata": {"name": name, "labels": dict(labels)},
        "spec": spec,
    }
