"""Admission objects: their paths, and how they are compared with what is wanted. Pure."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass

from reconciler.clusters.kubernetes.api.api_client import Json
from reconciler.clusters.kubernetes.api.api_features import ADMISSION, Features
from reconciler.clusters.kubernetes.names import MANAGED_BY, MANAGER, OWNER

KINDS: Mapping[str, str] = {
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
}
"""Every kind of admission object, with the last part of its path. A policy comes before its binding."""
CONFIG_MAP = "ConfigMap"
"""The kind with our webhook's data about managed nodes, in our own namespace."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """How the API server reaches our webhook."""

    ca: bytes  # PEM of the authorities that may have signed its certificate
    namespace: str = ""  # of its Service
    service: str = ""
    url: str = ""  # instead of a Service, as https://host:port

    def client_config(self, path: str) -> Json:
        bundle = base64.b64encode(self.ca).decode()
        if self.url:
            return {"url": f"{self.url}{path}", "caBundle": bundle}
        service = {"namespace": self.namespace, "name": self.service, "path": path, "port": 443}
        return {"service": service, "caBundle": bundle}


def path_of(item: Json) -> str:
    if item["kind"] == CONFIG_MAP:
        return f"/api/v1/namespaces/{item['metadata']['namespace']}/configmaps/{item['metadata']['name']}"
    return f"{ADMISSION}/{KINDS[item['kind']]}/{item['metadata']['name']}"


def denying(name: str, project: str, spec: Json) -> list[Json]:
    binding: Json = {"policyName": name, "validationActions": ["Deny"]}
    return [
        made("ValidatingAdmissionPolicy", name, project, spec=spec),
        made("ValidatingAdmissionPolicyBinding", name, project, spec=binding),
    ]


def on_pods(*operations: str) -> Json:
    return on("pods", *operations)


def constraints(namespaces: Json, *rules: Json) -> Json:
    """The `matchConstraints` of a policy."""
    return {
        "matchPolicy": "Equivalent",
        "namespaceSelector": namespaces,
        "objectSelector": {},
        "resourceRules": list(rules),
        "excludeResourceRules": [],
    }


def hook(name: str, features: Features, condition: Json, namespaces: Json, timeout_s: int) -> Json:
    """What our webhooks for pods, Jobs and Secrets have in common; `condition` holds where servers support it."""
    return {
        "name": name,
        "matchPolicy": "Equivalent",
        "matchConditions": [condition] if features.match_conditions else [],
        "namespaceSelector": namespaces,
        "objectSelector": {},
        "sideEffects": "None",
        "timeoutSeconds": timeout_s,
        "admissionReviewVersions": ["v1"],
    }


def on(plural: str, *operations: str) -> Json:
    return {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": list(operations),
        "resources": [plural],
        "scope": "*",
    }


def differing(found: Json, wanted: Json) -> list[str]:
    """Top-level fields of `wanted` that differ in `found`; fields added by others are ignored."""
    labels = (found.get("metadata") or {}).get("labels")
    ours = [] if _covers(labels, wanted["metadata"]["labels"]) else ["metadata.labels"]
    if "webhooks" in wanted:
        return ours + ([] if _covers(found.get("webhooks"), wanted["webhooks"]) else ["webhooks"])
    if "data" in wanted:
        return ours + ([] if found.get("data") == wanted["data"] else ["data"])
    spec = found.get("spec") or {}
    return ours + [
        f"spec.{key}" for key, value in wanted["spec"].items() if not _same(key, spec.get(key), value)
    ]


def _covers(found: object, wanted: object) -> bool:
    """True if `found` contains all of `wanted`; empty values match absent ones, lists only equal lists."""
    if wanted in ({}, []):
        return not found
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(_same(k, found.get(k), v) for k, v in wanted.items())
    if isinstance(wanted, list):
        return (
            isinstance(found, list)
            and len(found) == len(wanted)
            and all(_covers(f, w) for f, w in zip(found, wanted, strict=True))
        )
    return found == wanted


def _same(key: str, found: object, wanted: object) -> bool:
    """A selector with an additional line selects something else."""
    if key.endswith("Selector") and wanted:
        return found == wanted
    return _covers(found, wanted)


def made(kind: str, name: str, project: str, **content: object) -> Json:
    labels = {MANAGED_BY: MANAGER, OWNER: project}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name, "labels": labels},
        **content,
    }
