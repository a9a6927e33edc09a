"""NVSentinel's drain plugin contract: the custom resource by which its node drainer hands a drain over.

The shape is that of its example plugin (api/v1alpha1, namespaced, with a status subresource).
"""

from __future__ import annotations

from typing import Any

from reconciler.clusters.kubernetes.api.api_client import Api, Json
from tests.support.kube import eventually

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ROOT = "/apis/nvsentinel.nvidia.com/v1alpha1"
HOME = f"{ROOT}/namespaces/nvsentinel/drainrequests"
TEXT: Json = {"type": "string"}
TEXTS: Json = {"type": "array", "items": TEXT}
CONDITION: Json = {
    "type": "object",
    "required": ["lastTransitionTime", "message", "reason", "status", "type"],
    "properties": {
        "lastTransitionTime": {"type": "string", "format": "date-time"},
        "message": {"type": "string", "maxLength": 32768},
        "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
        "reason": {
            "type": "string",
            "minLength": 1,
            "maxLength": 1024,
            "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        },
        "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
        "type": {"type": "string", "maxLength": 316},
    },
}
DRAIN_REQUEST: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "drainrequests.nvsentinel.nvidia.com"},
    "spec": {
        "group": "nvsentinel.nvidia.com",
        "scope": "Namespaced",
        "names": {
            "kind": "DrainRequest",
            "listKind": "DrainRequestList",
            "plural": "drainrequests",
            "singular": "drainrequest",
        },
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "apiVersion": TEXT,
                            "kind": TEXT,
                            "metadata": {"type": "object"},
                            "spec": {
                                "type": "object",
                                "required": ["nodeName"],
                                "properties": {
                                    "nodeName": TEXT,
                                    "checkName": TEXT,
                                    "recommendedAction": TEXT,
                                    "errorCode": TEXTS,
                                    "healthEventID": TEXT,
                                    "entitiesImpacted": {
                                        "type": "array",
                                        "items": {
                                            "type": "object",
                                            "properties": {"type": TEXT, "value": TEXT},
                                        },
                                    },
                                    "metadata": {"type": "object", "additionalProperties": TEXT},
                                    "reason": TEXT,
                                    "podsToDrain": {"type": "object", "additionalProperties": TEXTS},
                                },
                            },
                            "status": {
                                "type": "object",
                                "properties": {"conditions": {"type": "array", "items": CONDITION}},
                            },
                        },
                    }
                },
            }
        ],
    },
}


def served(api: Api) -> None:
    """The API server has the resource, and NVSentinel its namespace."""
    api.create(CRDS, DRAIN_REQUEST)
    eventually(lambda: api.find(f"{ROOT}/drainrequests"), "drain requests are served")
    head = {"apiVersion": "v1", "kind": "Namespace"}
    api.create("/api/v1/namespaces", {**head, "metadata": {"name": "nvsentinel"}})


def ask(api: Api, node: str, name: str = "event-1", **spec: Any) -> None:
    """Its node drainer asks for the node."""
    api.create(
        HOME,
        {
            "apiVersion": "nvsentinel.nvidia.com/v1alpha1",
            "kind": "DrainRequest",
            "metadata": {"name": name},
            "spec": {"nodeName": node, "recommendedAction": "COMPONENT_RESET", **spec},
        },
    )


def conditions(api: Api, name: str = "event-1") -> dict[str, Json]:
    """The request's conditions, by type."""
    found = api.get(f"{HOME}/{name}").get("status") or {}
    return {condition["type"]: condition for condition in found.get("conditions") or ()}
