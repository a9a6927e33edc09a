"""All objects of a cluster, so that before and after can be compared."""

from __future__ import annotations

from typing import Any

from reconciler.clusters.kubernetes.api.api_client import Api, Json, Rejected

PASSING = {
    "events",
    "componentstatuses",
    "endpoints",
    "endpointslices",
    "servicecidrs",
    "apiservices",
}
"""Those that come and go by themselves, and that are shadows of others."""
NOISE = ("resourceVersion", "managedFields", "generation")
GIVEN = {("configmaps", "kube-root-ca.crt"), ("serviceaccounts", "default")}
"""What every namespace is given by the controller manager, in its own time."""
TTL = "node.alpha.kubernetes.io/ttl"
"""Annotation that it gives to nodes."""


def everything(api: Api) -> dict[str, Json]:
    """Objects by path; what a server notes for itself on each is left out."""
    found: dict[str, Json] = {}
    for base in _groups(api):
        try:
            resources = api.get(base).get("resources") or ()
        except Rejected:
            continue
        for kind in resources:
            if "/" in kind["name"] or "list" not in kind.get("verbs", ()) or kind["name"] in PASSING:
                continue
            for item in api.items(f"{base}/{kind['name']}"):
                meta = item["metadata"]
                tokens = item.get("type") == "kubernetes.io/service-account-token"
                beats = kind["name"] == "leases" and meta["namespace"].startswith("kube-")
                if beats or tokens or (kind["name"], meta["name"]) in GIVEN:
                    continue
                place = f"/namespaces/{meta['namespace']}" if "namespace" in meta else ""
                found[f"{base}{place}/{kind['name']}/{meta['name']}"] = _quiet(item)
    return found


def _groups(api: Api) -> list[str]:
    groups = api.get("/apis").get("groups") or ()
    return ["/api/v1", *(f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups)]


def _quiet(item: Json) -> Json:
    meta: dict[str, Any] = {key: value for key, value in item["metadata"].items() if key not in NOISE}
    meta["annotations"] = {key: value for key, value in meta.get("annotations", {}).items() if key != TTL}
    # An empty map is no map.
    meta = {key: value for key, value in meta.items() if value not in ({}, [])}
    rest = {key: value for key, value in item.items() if key not in {"metadata", "status", "secrets"}}
    return {**rest, "metadata": meta}
