"""What an API server can do, read once from its discovery documents; Kubernetes 1.20 to the newest.

What is served decides, never the version that a server claims: vendors backport, administrators switch features off,
and some builds bear no version at all. Beta versions of policies are not used: their servers have them off by default.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from reconciler.clusters.kubernetes.api.api_client import Api, Json, Rejected
from schemas.export.crds import GROUP, VERSION

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
DOCUMENTS = ("/version", "/api/v1", "/apis", ADMISSION)
"""Paths of all that `features` reads and that every server has."""
BATCH = "/openapi/v3/apis/batch/v1"
"""Path of what Jobs are made of, on servers that say so: 1.24 on."""


@dataclass(frozen=True, slots=True)
class Features:
    """Which way each thing is done on one API server."""

    version: str  # as the server calls itself, for people; may be empty
    eviction: str  # apiVersion of an Eviction
    disruption_budgets: str  # apiVersion of a PodDisruptionBudget
    validating_policies: bool  # ValidatingAdmissionPolicy v1: 1.30 on
    mutating_policies: bool  # MutatingAdmissionPolicy v1: 1.36 on
    match_conditions: bool  # webhooks that are called for some objects only: 1.30 on
    ephemeral_containers: bool  # pods/ephemeralcontainers takes whole pods: 1.22 on
    events: bool  # events.k8s.io/v1
    requests: bool  # our custom resource, once somebody has applied its definition
    failure_policies: bool = False  # Jobs may say which ends of pods do not count as failures: 1.26 on


def discover(api: Api) -> Features:
    """Five calls at most; a server is asked again only when it may have been upgraded."""
    documents = {path: api.get(path) for path in DOCUMENTS}
    if "v1" in _groups(documents["/apis"]).get("policy", ()):  # 1.21 on: older ones have nothing to say of it
        with suppress(Rejected):
            documents[BATCH] = api.find(BATCH) or {}
    return features(documents)


def features(documents: Mapping[str, Json]) -> Features:
    """What the documents at `DOCUMENTS` say."""
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
        # No document lists them; they became stable in the release that made these policies stable.
        match_conditions=validating,
        ephemeral_containers=core.get("pods/ephemeralcontainers", {}).get("kind") == "Pod",
        events="v1" in groups.get("events.k8s.io", ()),
        requests=VERSION in groups.get(GROUP, ()),
        failure_policies=_has_failure_policies(documents.get(BATCH) or {}),
    )


def serves_requests(api: Api) -> bool:
    """Whether our custom resource is there by now; it may come and go while we run."""
    return VERSION in _groups(api.get("/apis")).get(GROUP, ())


def _has_failure_policies(batch: Json) -> bool:
    schemas = (batch.get("components") or {}).get("schemas") or {}
    return "podFailurePolicy" in (schemas.get("io.k8s.api.batch.v1.JobSpec", {}).get("properties") or {})


def _eviction(resource: Json, budgets: str) -> str:
    """The subresource names the group and version that it takes; 1.22 to 1.24 take both and name the newer."""
    if "group" not in resource or "version" not in resource:
        return budgets
    return f"{resource['group']}/{resource['version']}"


def _groups(document: Json) -> Mapping[str, tuple[str, ...]]:
    return {group["name"]: _versions(group) for group in document.get("groups") or ()}


def _versions(group: Json) -> tuple[str, ...]:
    return tuple(found["version"] for found in group.get("versions") or ())
