"""The features of an API server, read once from its discovery documents; Kubernetes 1.20 to the newest.

What is served decides, never the claimed version: vendors backport, administrators switch features off, and
some builds have no version. Beta policies are not used: servers have them off by default.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from reconciler.clusters.kubernetes.api.api_client import Api, Json, Rejected
from schemas.export.crds import GROUP, VERSION

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
DOCUMENTS = ("/version", "/api/v1", "/apis", ADMISSION)
"""Paths read by `features` that every server has."""
BATCH = "/openapi/v3/apis/batch/v1"
"""Path of the Job schema, on servers that publish it: from 1.24 on."""


@dataclass(frozen=True, slots=True)
class Features:
    """How each thing is done on one API server."""

    version: str  # as the server reports it, for messages; may be empty
    eviction: str  # apiVersion of an Eviction
    disruption_budgets: str  # apiVersion of a PodDisruptionBudget
    validating_policies: bool  # ValidatingAdmissionPolicy v1: from 1.30 on
    mutating_policies: bool  # MutatingAdmissionPolicy v1: from 1.36 on
    match_conditions: bool  # webhooks with match conditions: from 1.30 on
    ephemeral_containers: bool  # pods/ephemeralcontainers accepts whole pods: from 1.22 on
    events: bool  # events.k8s.io/v1
    requests: bool  # our custom resource, once its definition was applied
    failure_policies: bool = False  # Jobs with a podFailurePolicy: from 1.26 on


def discover(api: Api) -> Features:
    """Five calls at most; a server is queried again only if it may have been upgraded."""
    documents = {path: api.get(path) for path in DOCUMENTS}
    if "v1" in _groups(documents["/apis"]).get("policy", ()):  # from 1.21 on: older servers do not serve it
        with suppress(Rejected):
            documents[BATCH] = api.find(BATCH) or {}
    return features(documents)


def features(documents: Mapping[str, Json]) -> Features:
    """The features according to the documents at `DOCUMENTS`."""
    groups = _groups(documents["/apis"])
    core = {found["name"]: found for found in documents["/api/v1"].get("resources") or ()}
    admission = {found["name"] for found in documents[ADMISSION].get("resources") or ()}
    validating = "validatingadmissionpolicies" in admission
    policy = "policy/v1" if "v1" in groups.get("policy", ()) else "policy/v1beta1"
    return Features(
        version=str(documents["/version"].get("gitVersion") or ""),
        eviction=_eviction(core.get("pods/eviction", {}), policy),
        disruption_budgets=policy,
        validating_policies=validating,
        mutating_policies="mutatingadmissionpolicies" in admission,
        # No document lists match conditions; they became stable together with these policies.
        match_conditions=validating,
        ephemeral_containers=core.get("pods/ephemeralcontainers", {}).get("kind") == "Pod",
        events="v1" in groups.get("events.k8s.io", ()),
        requests=VERSION in groups.get(GROUP, ()),
        failure_policies=_has_failure_policies(documents.get(BATCH) or {}),
    )


def serves_requests(api: Api) -> bool:
    """True if our custom resource exists now; it may appear and disappear at run time."""
    return VERSION in _groups(api.get("/apis")).get(GROUP, ())


def _has_failure_policies(batch: Json) -> bool:
    schemas = (batch.get("components") or {}).get("schemas") or {}
    return "podFailurePolicy" in (schemas.get("io.k8s.api.batch.v1.JobSpec", {}).get("properties") or {})


def _eviction(resource: Json, budgets: str) -> str:
    """The subresource names the group and version it accepts; 1.22 to 1.24 accept both and name the newer."""
    if "group" not in resource or "version" not in resource:
        return budgets
    return f"{resource['group']}/{resource['version']}"


def _groups(document: Json) -> Mapping[str, tuple[str, ...]]:
    return {group["name"]: _versions(group) for group in document.get("groups") or ()}


def _versions(group: Json) -> tuple[str, ...]:
    return tuple(found["version"] for found in group.get("versions") or ())
