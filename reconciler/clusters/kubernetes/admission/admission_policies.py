"""The objects that make an API server judge pods of slices: its own policies where they are stable, else our
webhook. They also refuse members' Secrets with content (`token_secrets`); and where GPR objects are served,
one records their authors (`object_authors`).

Pure. Both apply the rules of `pod_review`: policies contain them as CEL, the webhook runs them. Mutation and
validation are chosen separately: a server may have the validating policies (1.30) and not yet the mutating
ones (1.36).

Every field that could narrow an object is written explicitly, even at its default: so a foreign change that
narrows it shows as a difference and is repaired.
"""

from __future__ import annotations

from typing import Literal

from reconciler.clusters.kubernetes.admission.closed_nodes import ClosedNodes
from reconciler.clusters.kubernetes.admission.closing_objects import (
    bindings_policy,
    closed_nodes_map,
    nodes_policy,
    outside_hook,
)
from reconciler.clusters.kubernetes.admission.object_authors import GUARD, author_policies, author_webhooks
from reconciler.clusters.kubernetes.admission.object_shapes import (
    Webhook,
    constraints,
    denying,
    hook,
    made,
    on,
    on_pods,
)
from reconciler.clusters.kubernetes.admission.pod_review import (
    EFFECT,
    ESCAPED,
    GPUS,
    NOT_PLACED,
    TOLERATED,
    VARIABLES,
    WAYS_AROUND,
    Rule,
    Subject,
)
from reconciler.clusters.kubernetes.api.api_client import Json
from reconciler.clusters.kubernetes.api.api_features import Features
from reconciler.clusters.kubernetes.names import NAMESPACE_SLICE, OWNER, SLICE
from reconciler.clusters.kubernetes.tenancy.disruptions import JOBS_PATH, SPARED, SPARING, granting_cel
from reconciler.clusters.kubernetes.tenancy.token_secrets import CONCERNS, REFUSAL, REFUSED
from schemas.documents.cluster import Admission
from schemas.errors import UserError

FailurePolicy = Literal["Fail", "Ignore"]

AUTHORS_PATH = "/authors"
"""Path of our webhook for GPR objects."""
SECRETS_PATH = "/secrets"
"""Path of our webhook for members' Secrets."""
TIMEOUT_S = 5
"""Timeout of our webhook for a slice's pod."""


def rules(failure_policy: FailurePolicy) -> tuple[Rule[Subject], ...]:
    """The rules that apply; with failure policy Fail, a GPU pod that could not be mutated is refused."""
    return (*WAYS_AROUND, NOT_PLACED) if failure_policy == "Fail" else WAYS_AROUND


def needs_webhook(features: Features, admission: Admission) -> bool:
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
    features: Features,
    admission: Admission,
    project: str,
    webhook: Webhook | None,
    known: ClosedNodes,
    grace_s: int = 0,
) -> list[Json]:
    """All objects this cluster needs; `webhook` is given if it is needed.

    GPU pods get a termination grace period of at least `grace_s`. `known` is what is closed to outside pods.
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
        found += [*nodes_policy(project, known), *bindings_policy(project, known)]
    elif webhook is not None:
        found.append(closed_nodes_map(project, webhook.namespace, known))
        found.append(validating_webhook(features, admission.failure_policy, project, webhook))
    return found + _guards(features, webhook)


def _guards(features: Features, webhook: Webhook | None) -> list[Json]:
    """The same for every project of a cluster: only the API server's features decide, not `admission.mode`."""
    if not features.requests:
        return []
    if features.mutating_policies:
        return list(author_policies())
    return [] if webhook is None else [author_webhooks(webhook.client_config(AUTHORS_PATH))]


def is_shared(item: Json) -> bool:
    """True if it is shared by all projects of the cluster, whose stamps cannot be compared."""
    return bool(item["metadata"]["name"] == GUARD)


def mutating_policy(project: str, grace_s: int = 0) -> list[Json]:
    """A MutatingAdmissionPolicy and its binding: gives GPU pods their slice's nodes and a grace period."""
    changes = [PLACING, *([granting_cel(grace_s)] if grace_s else [])]
    spec: Json = {
        "failurePolicy": "Ignore",  # a pod it could not change is refused by the rule NotPlaced, or repaired
        "reinvocationPolicy": "IfNeeded",
        "matchConstraints": constraints(_namespaces(project), on_pods("CREATE")),
        "matchConditions": [{"name": "asks-gpus", "expression": GPUS}],
        "variables": [{"name": "slice", "expression": VARIABLES["slice"]}],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": " + ".join(changes)}}],
    }
    return _changing(f"egs-{project}-placement", project, spec)


def jobs_policy(project: str) -> list[Json]:
    """A MutatingAdmissionPolicy and its binding: GPU Jobs ignore disruptions."""
    spec: Json = {
        "failurePolicy": "Ignore",  # a Job that counts evictions as failures is better than none
        "reinvocationPolicy": "IfNeeded",
        "matchConstraints": constraints(_namespaces(project), NEW_JOBS),
        "matchConditions": [{"name": "counts-disruptions", "expression": SPARED}],
        "variables": [],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": SPARING}}],
    }
    return _changing(f"egs-{project}-disruptions", project, spec)


def _changing(name: str, project: str, spec: Json) -> list[Json]:
    binding: Json = {"policyName": name}
    return [
        made("MutatingAdmissionPolicy", name, project, spec=spec),
        made("MutatingAdmissionPolicyBinding", name, project, spec=binding),
    ]


def validating_policy(features: Features, failure_policy: FailurePolicy, project: str) -> list[Json]:
    """A ValidatingAdmissionPolicy and its binding: refuses ways around the isolation."""
    spec: Json = {
        "failurePolicy": failure_policy,
        "matchConstraints": constraints(_namespaces(project), *_judged(features)),
        "matchConditions": [],
        "variables": [{"name": key, "expression": value} for key, value in VARIABLES.items()],
        "validations": [
            {"expression": f"!({rule.cel})", "message": str(rule), "reason": "Forbidden"}
            for rule in rules(failure_policy)
        ],
    }
    return denying(f"egs-{project}-isolation", project, spec)


def secrets_policy(failure_policy: FailurePolicy, project: str) -> list[Json]:
    """A ValidatingAdmissionPolicy and its binding: members' Secrets stay empty."""
    spec: Json = {
        "failurePolicy": failure_policy,
        "matchConstraints": constraints(_namespaces(project), on("secrets", "CREATE", "UPDATE")),
        "matchConditions": [{"name": "is-a-members", "expression": CONCERNS}],
        "variables": [],
        "validations": [{"expression": f"!({REFUSED})", "message": REFUSAL, "reason": "Forbidden"}],
    }
    return denying(f"egs-{project}-secrets", project, spec)


def mutating_webhook(features: Features, project: str, webhook: Webhook, grace_s: int = 0) -> Json:
    """Calls our webhook to give GPU pods their nodes and grace period, and to make Jobs ignore disruptions."""
    asked = {"failurePolicy": "Ignore", "reinvocationPolicy": "IfNeeded"}  # as in the policies above
    pods = {
        **_hook("placement.egs.dev", features, project, GPUS),
        "clientConfig": webhook.client_config(f"/mutate/{grace_s}" if grace_s else "/mutate"),
        "rules": [on_pods("CREATE")],
        **asked,
    }
    jobs = {
        **_hook("disruptions.egs.dev", features, project, SPARED),
        "clientConfig": webhook.client_config(JOBS_PATH),
        "rules": [NEW_JOBS],
        **asked,
    }
    hooks = [pods, jobs] if features.failure_policies else [pods]
    return made("MutatingWebhookConfiguration", f"egs-{project}-placement", project, webhooks=hooks)


def validating_webhook(
    features: Features, failure_policy: FailurePolicy, project: str, webhook: Webhook
) -> Json:
    """Calls our webhook to refuse ways around the isolation, and members' Secrets with content."""
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
        "rules": [on("secrets", "CREATE", "UPDATE")],
        "failurePolicy": failure_policy,
    }
    hooks = [pods, secrets, outside_hook(features, webhook)]
    return made("ValidatingWebhookConfiguration", f"egs-{project}-isolation", project, webhooks=hooks)


def _hook(name: str, features: Features, project: str, cel: str) -> Json:
    return hook(name, features, {"name": "concerns-us", "expression": cel}, _namespaces(project), TIMEOUT_S)


def _namespaces(project: str) -> Json:
    """The namespaces of slices; never the cluster's own namespaces, nor ours."""
    return {
        "matchLabels": {OWNER: project},
        "matchExpressions": [{"key": NAMESPACE_SLICE, "operator": "Exists"}],
    }


def _judged(features: Features) -> list[Json]:
    """New pods, tolerations added to existing ones, and ephemeral containers."""
    found = [on_pods("CREATE", "UPDATE")]
    if features.ephemeral_containers:
        found.append({**on_pods("UPDATE"), "resources": ["pods/ephemeralcontainers"]})
    return found


NEW_JOBS: Json = {**on("jobs", "CREATE"), "apiGroups": ["batch"]}


def _inlined(expression: str) -> str:
    """Without variables: webhook conditions have none. They cannot read the namespace, so the slice is empty."""
    for name, value in reversed(tuple(VARIABLES.items())):
        expression = expression.replace(f"variables.{name}", "''" if name == "slice" else f"({value})")
    return expression


SUSPECT = " || ".join(f"({_inlined(cel)})" for cel in (GPUS, *(rule.cel for rule in WAYS_AROUND)))
"""CEL: the pod asks for GPUs or violates a rule; other pods do not depend on our webhook."""

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
"""CEL: the result of `pod_review.placing` for a pod that asks for GPUs."""
