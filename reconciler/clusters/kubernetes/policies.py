"""The objects that have an API server judge pods of slices: its own policies where they are stable, else our webhook.
The same refuse members' Secrets that hold anything (`keys`). Beside them, where GPR objects are served, the one that
names their authors (`authors`).

Pure. Both say what `review` says: the policies carry its rules as CEL, the webhook is asked by name. Changing and
refusing are chosen apart: a server may have the policies that refuse (1.30) and not yet those that change (1.36).

Every field that could narrow an object is written out, also where it is the default: so another's narrowing is seen
as a difference and repaired.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from reconciler.clusters.kubernetes.api import Json
from reconciler.clusters.kubernetes.authors import GUARD, author_policies, author_webhooks
from reconciler.clusters.kubernetes.disruptions import JOBS_PATH, SPARED, SPARING, granting_cel
from reconciler.clusters.kubernetes.features import ADMISSION, Features
from reconciler.clusters.kubernetes.keys import CONCERNS, REFUSAL, REFUSED
from reconciler.clusters.kubernetes.names import MANAGED_BY, MANAGER, NAMESPACE_SLICE, OWNER, SLICE
from reconciler.clusters.kubernetes.review import (
    EFFECT,
    ESCAPED,
    GPUS,
    NOT_PLACED,
    TOLERATED,
    VARIABLES,
    WAYS_AROUND,
    Rule,
)
from schemas.cluster import Admission
from schemas.errors import UserError

FailurePolicy = Literal["Fail", "Ignore"]

AUTHORS_PATH = "/authors"
"""Of our webhook, for GPR objects."""
SECRETS_PATH = "/secrets"
"""Of our webhook, for members' Secrets."""
TIMEOUT_S = 5
"""Longest that a pod waits for our webhook."""
KINDS: Mapping[str, str] = {
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
}
"""Every kind that is made here, with the last part of its path. A policy stands before its binding."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """How the API server reaches our webhook."""

    ca: bytes  # PEM of the authorities that may have signed its certificate
    namespace: str = ""  # of its Service
    service: str = ""
    url: str = ""  # instead of a Service, as https://host:port

    def client_config(self, path: str) -> Json:
        """Of one of its paths."""
        bundle = base64.b64encode(self.ca).decode()
        if self.url:
            return {"url": f"{self.url}{path}", "caBundle": bundle}
        service = {"namespace": self.namespace, "name": self.service, "path": path, "port": 443}
        return {"service": service, "caBundle": bundle}


def rules(failure_policy: FailurePolicy) -> tuple[Rule, ...]:
    """Those that hold; a GPU pod that nobody could give its nodes is refused unless it is to be let in."""
    return (*WAYS_AROUND, NOT_PLACED) if failure_policy == "Fail" else WAYS_AROUND


def needs_webhook(features: Features, admission: Admission) -> bool:
    """Whether anything is left to our webhook."""
    if admission.mode == "none":
        return False
    if admission.mode == "webhook":
        return True
    missing = not (features.mutating_policies and features.validating_policies)
    if missing and admission.mode == "policy":
        raise UserError(
            f"spec.admission.mode is policy, but this API server ({features.version}) has no stable "
            "MutatingAdmissionPolicy; use auto or webhook",
            "PoliciesNotServed",
        )
    return missing


def objects(
    features: Features, admission: Admission, project: str, webhook: Webhook | None, grace_s: int = 0
) -> list[Json]:
    """Everything that this cluster should have; `webhook` is given where it is needed.

    GPU pods get `grace_s` to end, at least.
    """
    if admission.mode == "none":
        return []
    policies = admission.mode != "webhook"
    found: list[Json] = []
    if policies and features.mutating_policies:
        found += mutating_policy(project, grace_s)
        found += jobs_policy(project) if features.failure_policies else []
    elif webhook is not None:
        found.append(mutating_webhook(features, project, webhook, grace_s))
    if policies and features.validating_policies:
        found += validating_policy(features, admission.failure_policy, project)
        found += secrets_policy(admission.failure_policy, project)
    elif webhook is not None:
        found.append(validating_webhook(features, admission.failure_policy, project, webhook))
    return found + _guards(features, webhook)


def _guards(features: Features, webhook: Webhook | None) -> list[Json]:
    """Every project of a cluster wants the same: what the API server can do decides alone, not `admission.mode`."""
    if not features.requests:
        return []
    if features.mutating_policies:
        return list(author_policies())
    return [] if webhook is None else [author_webhooks(webhook.client_config(AUTHORS_PATH))]


def is_shared(item: Json) -> bool:
    """Whether it belongs to all projects of the cluster, whose stamps tell nothing about each other."""
    return bool(item["metadata"]["name"] == GUARD)


def path_of(item: Json) -> str:
    """Where the API server keeps such an object."""
    return f"{ADMISSION}/{KINDS[item['kind']]}/{item['metadata']['name']}"


def mutating_policy(project: str, grace_s: int = 0) -> list[Json]:
    """A MutatingAdmissionPolicy and its binding: GPU pods are given their slice's nodes, and time to end."""
    changes = [PLACING, *([granting_cel(grace_s)] if grace_s else [])]
    spec: Json = {
        "failurePolicy": "Ignore",  # what it could not change is refused by the rule NotPlaced, or repaired
        "reinvocationPolicy": "IfNeeded",
        "matchConstraints": _constraints(project, _on_pods("CREATE")),
        "matchConditions": [{"name": "asks-gpus", "expression": GPUS}],
        "variables": [{"name": "slice", "expression": VARIABLES["slice"]}],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": " + ".join(changes)}}],
    }
    return _changing(f"egs-{project}-placement", project, spec)


def jobs_policy(project: str) -> list[Json]:
    """A MutatingAdmissionPolicy and its binding: GPU Jobs ignore disruptions."""
    spec: Json = {
        "failurePolicy": "Ignore",  # a Job that counts evictions is better than none
        "reinvocationPolicy": "IfNeeded",
        "matchConstraints": _constraints(project, NEW_JOBS),
        "matchConditions": [{"name": "counts-disruptions", "expression": SPARED}],
        "variables": [],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": SPARING}}],
    }
    return _changing(f"egs-{project}-disruptions", project, spec)


def _changing(name: str, project: str, spec: Json) -> list[Json]:
    binding: Json = {"policyName": name}
    return [
        _object("MutatingAdmissionPolicy", name, project, spec=spec),
        _object("MutatingAdmissionPolicyBinding", name, project, spec=binding),
    ]


def validating_policy(features: Features, failure_policy: FailurePolicy, project: str) -> list[Json]:
    """A ValidatingAdmissionPolicy and its binding: ways around are refused."""
    name = f"egs-{project}-isolation"
    spec: Json = {
        "failurePolicy": failure_policy,
        "matchConstraints": _constraints(project, *_judged(features)),
        "matchConditions": [],
        "variables": [{"name": key, "expression": value} for key, value in VARIABLES.items()],
        "validations": [
            {"expression": f"!({rule.cel})", "message": str(rule), "reason": "Forbidden"}
            for rule in rules(failure_policy)
        ],
    }
    return _denying(name, project, spec)


def secrets_policy(failure_policy: FailurePolicy, project: str) -> list[Json]:
    """A ValidatingAdmissionPolicy and its binding: members' Secrets stay empty."""
    spec: Json = {
        "failurePolicy": failure_policy,
        "matchConstraints": _constraints(project, _on("secrets", "CREATE", "UPDATE")),
        "matchConditions": [{"name": "is-a-members", "expression": CONCERNS}],
        "variables": [],
        "validations": [{"expression": f"!({REFUSED})", "message": REFUSAL, "reason": "Forbidden"}],
    }
    return _denying(f"egs-{project}-secrets", project, spec)


def _denying(name: str, project: str, spec: Json) -> list[Json]:
    binding: Json = {"policyName": name, "validationActions": ["Deny"]}
    return [
        _object("ValidatingAdmissionPolicy", name, project, spec=spec),
        _object("ValidatingAdmissionPolicyBinding", name, project, spec=binding),
    ]


def mutating_webhook(features: Features, project: str, webhook: Webhook, grace_s: int = 0) -> Json:
    """Asks our webhook to give GPU pods their slice's nodes and time to end, and to have Jobs ignore disruptions."""
    asked = {"failurePolicy": "Ignore", "reinvocationPolicy": "IfNeeded"}  # as in the policies above
    pods = {
        **_hook("placement.egs.dev", features, project, GPUS),
        "clientConfig": webhook.client_config(f"/mutate/{grace_s}" if grace_s else "/mutate"),
        "rules": [_on_pods("CREATE")],
        **asked,
    }
    jobs = {
        **_hook("disruptions.egs.dev", features, project, SPARED),
        "clientConfig": webhook.client_config(JOBS_PATH),
        "rules": [NEW_JOBS],
        **asked,
    }
    hooks = [pods, jobs] if features.failure_policies else [pods]
    return _object("MutatingWebhookConfiguration", f"egs-{project}-placement", project, webhooks=hooks)


def validating_webhook(
    features: Features, failure_policy: FailurePolicy, project: str, webhook: Webhook
) -> Json:
    """Asks our webhook to refuse ways around, and members' Secrets that hold anything."""
    pods = {
        **_hook("isolation.egs.dev", features, project, SUSPECT),
        "clientConfig": webhook.client_config(
            "/validate" if failure_policy == "Ignore" else "/validate-strictly"
        ),
        "rules": _judged(features),
        "failurePolicy": failure_policy,
    }
    secrets = {
        **_hook("secrets.egs.dev", features, project, CONCERNS),
        "clientConfig": webhook.client_config(SECRETS_PATH),
        "rules": [_on("secrets", "CREATE", "UPDATE")],
        "failurePolicy": failure_policy,
    }
    name = f"egs-{project}-isolation"
    return _object("ValidatingWebhookConfiguration", name, project, webhooks=[pods, secrets])


def differing(found: Json, wanted: Json) -> list[str]:
    """Top fields of `wanted` that `found` does not have so; what others added elsewhere is theirs."""
    labels = (found.get("metadata") or {}).get("labels")
    ours = [] if _covers(labels, wanted["metadata"]["labels"]) else ["metadata.labels"]
    if "webhooks" in wanted:
        return ours + ([] if _covers(found.get("webhooks"), wanted["webhooks"]) else ["webhooks"])
    spec = found.get("spec") or {}
    return ours + [
        f"spec.{key}" for key, value in wanted["spec"].items() if not _same(key, spec.get(key), value)
    ]


def _covers(found: object, wanted: object) -> bool:
    """All of `wanted` is so; an empty wish is met by nothing at all, and a list is met by itself only."""
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
    """A selector with one more line selects something else."""
    if key.endswith("Selector") and wanted:
        return found == wanted
    return _covers(found, wanted)


def _object(kind: str, name: str, project: str, **content: object) -> Json:
    labels = {MANAGED_BY: MANAGER, OWNER: project}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name, "labels": labels},
        **content,
    }


def _hook(name: str, features: Features, project: str, condition: str) -> Json:
    matched = [{"name": "concerns-us", "expression": condition}] if features.match_conditions else []
    return {
        "name": name,
        "matchPolicy": "Equivalent",
        "matchConditions": matched,
        "namespaceSelector": _namespaces(project),
        "objectSelector": {},
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT_S,
        "admissionReviewVersions": ["v1"],
    }


def _constraints(project: str, *on: Json) -> Json:
    return {
        "matchPolicy": "Equivalent",
        "namespaceSelector": _namespaces(project),
        "objectSelector": {},
        "resourceRules": list(on),
        "excludeResourceRules": [],
    }


def _namespaces(project: str) -> Json:
    """Those of slices; the cluster's own namespaces, and ours, are never among them."""
    return {
        "matchLabels": {OWNER: project},
        "matchExpressions": [{"key": NAMESPACE_SLICE, "operator": "Exists"}],
    }


def _judged(features: Features) -> list[Json]:
    """New pods, tolerations that are added to living ones, and containers that are put into living ones."""
    found = [_on_pods("CREATE", "UPDATE")]
    if features.ephemeral_containers:
        found.append({**_on_pods("UPDATE"), "resources": ["pods/ephemeralcontainers"]})
    return found


def _on_pods(*operations: str) -> Json:
    return _on("pods", *operations)


def _on(plural: str, *operations: str) -> Json:
    return {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": list(operations),
        "resources": [plural],
        "scope": "*",
    }


NEW_JOBS: Json = {**_on("jobs", "CREATE"), "apiGroups": ["batch"]}


def _inlined(expression: str) -> str:
    """Without variables, which webhooks' conditions have not; nor do they know the namespace, so nobody's slice."""
    for name, value in reversed(tuple(VARIABLES.items())):
        expression = expression.replace(f"variables.{name}", "''" if name == "slice" else f"({value})")
    return expression


SUSPECT = " || ".join(f"({_inlined(cel)})" for cel in (GPUS, *(rule.cel for rule in WAYS_AROUND)))
"""CEL: the pod asks for GPUs or breaks a rule; any other pod does not depend on our webhook."""

_OURS = f"{{'key': '{SLICE}', 'operator': 'Equal', 'value': variables.slice, 'effect': '{EFFECT}'}}"
PLACING = (
    "(!has(object.spec.nodeSelector)"
    f" ? [JSONPatch{{op: 'add', path: '/spec/nodeSelector', value: {{'{SLICE}': variables.slice}}}}]"
    f" : '{SLICE}' in object.spec.nodeSelector ? []"
    f" : [JSONPatch{{op: 'add', path: '/spec/nodeSelector/{ESCAPED}', value: variables.slice}}])"
    " + (!has(object.spec.tolerations)"
    f" ? [JSONPatch{{op: 'add', path: '/spec/tolerations', value: [{_OURS}]}}]"
    f" : object.spec.tolerations.exists(t, has(t.key) && {TOLERATED}"
    f" && (!has(t.effect) || t.effect in ['', '{EFFECT}'])) ? []"
    f" : [JSONPatch{{op: 'add', path: '/spec/tolerations/-', value: {_OURS}}}])"
)
"""CEL: what `review.placing` answers for a pod that asks for GPUs."""
