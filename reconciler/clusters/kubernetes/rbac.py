"""The controller's permissions in a cluster: the minimum. Data for the chart and for `egs install`."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.clusters.kubernetes.admission.object_authors import GUARD
from reconciler.clusters.kubernetes.admission.object_shapes import KINDS
from reconciler.clusters.kubernetes.admission.webhook_certificates import SECRET
from reconciler.clusters.kubernetes.names import WORKLOAD_ACCOUNT
from reconciler.clusters.kubernetes.nodes import drain_requests
from reconciler.clusters.kubernetes.nodes.gpu_resets import NVSENTINEL
from reconciler.clusters.kubernetes.queues import queue_objects
from reconciler.clusters.kubernetes.services import export_objects
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
_ADMISSION = "admissionregistration.k8s.io"
_READ = ("get", "list", "watch")
_OWNED = (*_READ, "create", "patch", "delete")

RULES: tuple[Rule, ...] = (
    # Nodes change hands, and GPU pods leave them.
    Rule("", "nodes", (*_READ, "patch"), "the slice a node serves: label, taint, annotations and cordon"),
    Rule("", "pods", ("list", "watch"), "which pods use GPUs, and where"),
    Rule("", "pods/eviction", ("create",), "evict GPU pods, within disruption budgets"),
    Rule("", "pods", ("delete",), "delete GPU pods that are still there at the strict end"),
    # Slices: namespaces, network policies, quota, rights. No Secrets or tokens: those are the members' own.
    Rule("", "namespaces", _OWNED, "slices' namespaces, created or adopted"),
    Rule("networking.k8s.io", "networkpolicies", (*_OWNED, "update"), "network isolation between slices"),
    Rule("", "resourcequotas", _OWNED, "a slice's GPU limit"),
    Rule("", "serviceaccounts", _OWNED, "one per member; deleting it ends all the member's tokens"),
    Rule(
        "",
        "serviceaccounts",
        ("impersonate",),
        "apply workloads with the rights of the slice's members, and no others",
        names=(WORKLOAD_ACCOUNT,),
    ),
    Rule(_RBAC, "rolebindings", _OWNED, "a slice's members"),
    Rule(
        _RBAC,
        "roles",
        (*_OWNED, "bind", "escalate"),
        "each member's right to tokens of their own ServiceAccount, which the controller does not have itself",
    ),
    Rule(_RBAC, "clusterroles", ("list", "watch"), "check the members' role"),
    Rule(
        _RBAC,
        "clusterroles",
        ("create", "patch", "bind", "escalate"),
        "the members' only role",
        names=("egs-slice-member",),
    ),
    Rule(
        "",
        "configmaps",
        (*_READ, "create", "update"),
        "what was created for each slice and workload, with its stamp; which nodes our webhook closes",
        system=True,
    ),
    Rule(
        "",
        "configmaps",
        ("delete",),
        "remove the list of closed nodes once it is empty, and records of workloads that are over",
        system=True,
    ),
    # Checks: one Job per node and stage, its volume, and its output. Their pods are watched with all others.
    Rule(
        "batch",
        "jobs",
        (*_READ, "create", "delete"),
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
    Rule("", "pods/log", ("get",), "a check's output if its termination message is empty", system=True),
    Rule("storage.k8s.io", "storageclasses", ("list", "watch"), "storage classes for a check's volume"),
    # Resets and reboots, where a cluster's document allows them; a reset without NVSentinel is a Job as above.
    Rule(
        NVSENTINEL, "gpuresets", ("get", "create"), "reset GPUs of a free node, where NVSentinel is installed"
    ),
    Rule(NVSENTINEL, "rebootnodes", ("get", "create"), "reboot a free node, where NVSentinel is installed"),
    Rule("events.k8s.io", "events", ("create",), "events for a slice's users"),
    # Placement: what makes the API server judge pods of slices, and pods that were admitted unjudged.
    *(
        Rule(
            _ADMISSION, plural, (*_READ, "create", "update", "delete"), "restrict slices' pods to their nodes"
        )
        for plural in KINDS.values()
    ),
    Rule("", "secrets", ("get",), "the webhook's certificate authority", names=(SECRET,), system=True),
    Rule(
        "",
        "pods",
        ("patch",),
        "show pods the end of their lease; add the toleration to GPU pods admitted while the webhook was down; ask an "
        "agent to let go of its GPUs",
    ),
)

DRAIN_RULES: tuple[Rule, ...] = (
    Rule(drain_requests.GROUP, drain_requests.PLURAL, ("list",), "which nodes NVSentinel wants drained"),
    Rule(
        drain_requests.GROUP, f"{drain_requests.PLURAL}/status", ("patch",), "tell it that a node is drained"
    ),
)
"""For the controller where `spec.remediation.nvsentinel` allows it."""

QUEUE_RULES: tuple[Rule, ...] = tuple(
    Rule(queue_objects.GROUP, plural, _OWNED, why)
    for plural, why in (
        ("topologies", "where the nodes of a slice's queue are"),
        ("resourceflavors", "the nodes of a slice's queue"),
        ("clusterqueues", "a slice's queue: its GPUs, and when it admits workloads"),
        ("localqueues", "the queue's doors in the slice's namespaces"),
    )
)
"""For the controller where slices have Kueue queues (`spec.queues.kueue`)."""

EXPORT_RULES: tuple[Rule, ...] = (
    Rule("", "services", ("list", "watch"), "which Services of slices have the label of exports"),
    Rule(export_objects.GROUP, export_objects.EXPORTS, _OWNED, "exported Services of slices"),
    Rule(
        export_objects.CILIUM,
        export_objects.CILIUM_POLICIES,
        (*_OWNED, "update"),
        "let a slice's pods of its other clusters in, where Cilium is",
    ),
)
"""For the controller where slices export Services (`spec.services.across`)."""

ADMISSION_RULES: tuple[Rule, ...] = (
    Rule("", "namespaces", _READ, "which slice a namespace belongs to"),
    Rule(
        "",
        "configmaps",
        ("list", "watch"),
        "which nodes are managed, and which other pods are admitted there",
        system=True,
    ),
    Rule("", "secrets", ("create",), "the certificate shared by all replicas", system=True),
    Rule("", "secrets", ("get", "update"), "read and renew the certificate", names=(SECRET,), system=True),
)
"""For the admission webhook, which has an account of its own."""

DOOR_RULES: tuple[Rule, ...] = (
    Rule(GROUP, PLURAL, _READ, "read requests, and confirm deletions"),
    Rule(GROUP, f"{PLURAL}/status", ("patch",), "write a request's status"),
    Rule("", "namespaces", ("list", "watch"), "which slice a namespace belongs to"),
    *(
        Rule(_ADMISSION, plural, ("get",), "check that authors cannot be forged", names=(GUARD,))
        for plural in KINDS.values()
        if plural.startswith("mutating")
    ),
)
"""For the door of custom resources (`egs-reconciler door`), which has an account of its own."""
