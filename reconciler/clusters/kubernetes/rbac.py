"""The controller's permissions in a cluster: the minimum. Data for the chart and for `egs install`."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.clusters.kubernetes.admission.object_authors import GUARD
from reconciler.clusters.kubernetes.admission.webhook_certificates import SECRET
from schemas.export.crds import GROUP, PLURAL


@dataclass(frozen=True, slots=True)
class Rule:
    """Verbs on one resource. `names`: only these objects. `system`: only in the system namespace."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    why: str
    names: tuple[str, ...] = ()
    system: bool = False


_RBAC = "rbac.authorization.k8s.io"
_OWNED = ("get", "list", "watch", "create", "patch", "delete")

RULES: tuple[Rule, ...] = (
    # Nodes change hands, and GPU pods leave them.
    Rule(
        "",
        "nodes",
        ("get", "list", "watch", "patch"),
        "whom a node serves: its label, taint, annotations and cordon",
    ),
    Rule("", "pods", ("list", "watch"), "which pods use GPUs, and where"),
    Rule("", "pods/eviction", ("create",), "GPU pods are asked to leave, as disruption budgets allow"),
    Rule("", "pods", ("delete",), "GPU pods that have not left by the strict end"),
    # Slices: namespaces, network policies, quota, rights. No Secrets or tokens: those are the members' own.
    Rule(
        "",
        "namespaces",
        ("get", "list", "watch", "create", "patch", "delete"),
        "slices' namespaces, made or adopted",
    ),
    Rule("networking.k8s.io", "networkpolicies", (*_OWNED, "update"), "walls between slices"),
    Rule("", "resourcequotas", _OWNED, "a slice's most GPUs"),
    Rule("", "serviceaccounts", _OWNED, "one for each member; with it go all tokens of that member"),
    Rule(_RBAC, "rolebindings", _OWNED, "who a slice's members are"),
    Rule(
        _RBAC,
        "roles",
        (*_OWNED, "bind", "escalate"),
        "each member's right to tokens of their own ServiceAccount, which the controller does not have itself",
    ),
    Rule(_RBAC, "clusterroles", ("list", "watch"), "whether the members' role is as it should be"),
    Rule(
        _RBAC,
        "clusterroles",
        ("create", "patch", "bind", "escalate"),
        "the members' one role, and no other",
        names=("egs-slice-member",),
    ),
    Rule(
        "",
        "configmaps",
        ("get", "list", "watch", "create", "update"),
        "what was made for each slice, and by whose word; which nodes our webhook closes",
        system=True,
    ),
    Rule("", "configmaps", ("delete",), "which nodes our webhook closes, once it closes none", system=True),
    # Checks: one Job per node and stage, its volume, and its output. Their pods are watched with all others.
    Rule(
        "batch",
        "jobs",
        ("get", "list", "watch", "create", "delete"),
        "checks of a node before a start, between running nodes, after an end",
        system=True,
    ),
    Rule(
        "",
        "persistentvolumeclaims",
        ("create",),
        "the volume that a check writes to and reads from",
        system=True,
    ),
    Rule(
        "", "pods/log", ("get",), "what a check said where its termination message says nothing", system=True
    ),
    Rule("storage.k8s.io", "storageclasses", ("list", "watch"), "which class a check's volume can have"),
    Rule("events.k8s.io", "events", ("create",), "what people of a slice should see in their cluster too"),
    # Placement: what makes the API server judge pods of slices, and pods that were admitted unjudged.
    *(
        Rule(
            "admissionregistration.k8s.io",
            resource,
            ("get", "list", "watch", "create", "update", "delete"),
            "pods of slices get their nodes and no others",
        )
        for resource in (
            "mutatingadmissionpolicies",
            "mutatingadmissionpolicybindings",
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
            "mutatingwebhookconfigurations",
            "validatingwebhookconfigurations",
        )
    ),
    Rule(
        "",
        "secrets",
        ("get",),
        "who vouches for the webhook",
        names=(SECRET,),
        system=True,
    ),
    Rule("", "pods", ("patch",), "the toleration of a GPU pod that came in while the webhook was down"),
)

ADMISSION_RULES: tuple[Rule, ...] = (
    Rule("", "namespaces", ("get", "list", "watch"), "which namespace is whose slice's"),
    Rule(
        "",
        "configmaps",
        ("list", "watch"),
        "which nodes are managed, and whose pods are let in there all the same",
        system=True,
    ),
    Rule("", "secrets", ("create",), "the certificate that all replicas show", system=True),
    Rule(
        "",
        "secrets",
        ("get", "update"),
        "the same, and its renewal",
        names=(SECRET,),
        system=True,
    ),
)
"""For the admission webhook, which has an account of its own."""

DOOR_RULES: tuple[Rule, ...] = (
    Rule(GROUP, PLURAL, ("get", "list", "watch"), "what is asked for, and whether it is really gone"),
    Rule(GROUP, f"{PLURAL}/status", ("patch",), "what became of it"),
    Rule("", "namespaces", ("list", "watch"), "which namespace is whose slice's"),
    *(
        Rule(
            "admissionregistration.k8s.io",
            resource,
            ("get",),
            "whether anybody could have written another's name as the author",
            names=(GUARD,),
        )
        for resource in (
            "mutatingadmissionpolicies",
            "mutatingadmissionpolicybindings",
            "mutatingwebhookconfigurations",
        )
    ),
)
"""For the door of custom resources (`egs-reconciler door`), which has an account of its own."""
