"""A slice's objects in a cluster, and how existing ones differ from them.

Pure. Each namespace gets the same objects. Permissions have two parts: one fixed ClusterRole says what
members may do, one RoleBinding who they are; so a manifest can never grant more. Workloads are applied as a
ServiceAccount with the same rights. Every member has a ServiceAccount of their own: deleting it ends all its tokens,
whatever they are bound to.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from reconciler.clusters.kubernetes.api.api_client import Json
from reconciler.clusters.kubernetes.names import (
    EXPORTED,
    GPU_RESOURCE,
    MANAGED_BY,
    MANAGER,
    MEMBER_ACCOUNT,
    MEMBER_KEY,
    MIG_RESOURCE_PREFIX,
    NAMESPACE_SLICE,
    OWNER,
    WORKLOAD_ACCOUNT,
)
from reconciler.model.cluster_port import SliceTerms
from reconciler.model.service_port import Peer
from reconciler.model.workload_port import ENDPOINT_LABEL, SERVER_PORT
from schemas.export.crds import GROUP, PLURAL

RBAC = "rbac.authorization.k8s.io"
MEMBER_ROLE = "egs-slice-member"
"""The ClusterRole of every slice's members in the slice's namespaces only."""
MEMBERS, RENDERED, QUOTA_NAME = "egs-members", "egs-workloads", "egs-gpus"
PEERS_IN = "egs-peers-in"
MEMBER_EMAIL = "egs.dev/member"
"""Annotation of a member's objects: their address, for people."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of object that a slice has."""

    name: str
    api: str
    plural: str
    content: tuple[str, ...]
    """The fields that are ours, besides our labels."""
    is_namespaced: bool = True
    is_shared: bool = False
    """Fields inside the content that we do not set belong to others: they are no difference, and stay."""

    is_exact: bool = False
    """Foreign additions inside the content are removed: in a network policy they are holes."""
    shown: tuple[str, ...] = ()
    """Fields of others that are read too, and never compared."""

    def path(self, namespace: str = "", name: str = "") -> str:
        """Path of one object, or of all without a name."""
        group = f"/api/{self.api}" if "/" not in self.api else f"/apis/{self.api}"
        place = f"/namespaces/{namespace}" if namespace and self.is_namespaced else ""
        return f"{group}{place}/{self.plural}" + (f"/{name}" if name else "")


ACCOUNT = Kind("ServiceAccount", "v1", "serviceaccounts", ("automountServiceAccountToken",))
ROLE = Kind("Role", f"{RBAC}/v1", "roles", ("rules",))
BINDING = Kind("RoleBinding", f"{RBAC}/v1", "rolebindings", ("roleRef", "subjects"))
QUOTA = Kind("ResourceQuota", "v1", "resourcequotas", ("spec",))
POLICY = Kind("NetworkPolicy", "networking.k8s.io/v1", "networkpolicies", ("spec",), is_exact=True)
KINDS = {kind.name: kind for kind in (POLICY, QUOTA, ACCOUNT, ROLE, BINDING)}
"""Kinds of the objects in a slice's namespaces."""
CLUSTER_ROLE = Kind("ClusterRole", f"{RBAC}/v1", "clusterroles", ("rules",), is_namespaced=False)

_READ = ("get", "list", "watch")
_WRITE = (*_READ, "create", "update", "patch", "delete", "deletecollection")
_RIGHTS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("", ("pods", "services", "configmaps", "persistentvolumeclaims"), _WRITE),
    ("", ("pods/log", "pods/status", "events", "resourcequotas", "namespaces"), _READ),
    ("", ("pods/exec", "pods/attach", "pods/portforward"), ("get", "create")),
    ("apps", ("deployments", "statefulsets"), _WRITE),
    ("apps", ("deployments/scale", "statefulsets/scale"), ("get", "update", "patch")),
    ("apps", ("replicasets",), _READ),
    ("autoscaling", ("horizontalpodautoscalers",), _WRITE),
    ("batch", ("jobs", "cronjobs"), _WRITE),
    ("gateway.networking.k8s.io", ("httproutes",), _READ),
    ("jobset.x-k8s.io", ("jobsets",), _WRITE),
    ("keda.sh", ("scaledobjects",), _READ),
    ("kubeflow.org", ("pytorchjobs",), _WRITE),
    ("leaderworkerset.x-k8s.io", ("leaderworkersets",), _WRITE),
    ("ray.io", ("rayjobs",), _WRITE),
    ("serving.kserve.io", ("inferenceservices",), _READ),
    ("trainer.kubeflow.org", ("trainjobs",), _WRITE),
    ("policy", ("poddisruptionbudgets",), _WRITE),
    (GROUP, (PLURAL,), (*_READ, "create", "update", "patch", "delete")),
    ("events.k8s.io", ("events",), _READ),
    ("networking.k8s.io", ("networkpolicies",), _READ),
    ("kueue.x-k8s.io", ("localqueues", "workloads"), _READ),
    ("multicluster.x-k8s.io", ("serviceexports", "serviceimports"), _READ),
)
"""What a member may do. Not included: Secrets, ServiceAccounts and their tokens; writing quotas, routes, scalers,
InferenceServices, network policies or permissions; changing the namespace; binding pods to nodes; evictions.
"""

_RENDERED = (
    ("gateway.networking.k8s.io", "httproutes"),
    ("keda.sh", "scaledobjects"),
    ("serving.kserve.io", "inferenceservices"),
)
"""Only endpoints' documents make these, which the check judges: a member's own ScaledObject would send the key of any
TriggerAuthentication of the namespace wherever it says, and a route would take any name of the Gateway. KServe makes
ScaledObjects and routes of InferenceServices, with the address and the TriggerAuthentication that these name.
"""

_PRIVATE_V4 = ("10.0.0.0/8", "100.64.0.0/10", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16")
_PRIVATE_V6 = ("fc00::/7", "fe80::/10")
"""Addresses of pods, services, nodes and the cloud's metadata service; all others are outside."""

NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""Label that API servers give every namespace, from Kubernetes 1.21 on."""

_MIG_SLICES = 7
_MIG_PROFILES = (
    *("1g.6gb", "2g.12gb", "4g.24gb"),  # A30
    *("1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"),  # A100 of 40 GB
    *("1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"),  # A100 and H100 of 80 GB
    *("1g.12gb", "1g.24gb", "2g.24gb", "3g.48gb", "4g.48gb", "7g.96gb"),  # GH200, H100 of 96 GB
    *("1g.18gb", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb"),  # H200
    *("1g.23gb", "1g.45gb", "2g.45gb", "3g.90gb", "4g.90gb", "7g.180gb"),  # B200
)
"""All MIG profiles, as the device plugin names its resources."""


def member_id(email: str) -> str:
    """Stands for a member in object names, where an address does not fit."""
    return hashlib.sha256(email.strip().lower().encode()).hexdigest()[:16]


def account_name(email: str) -> str:
    return MEMBER_ACCOUNT + member_id(email)


def secret_name(email: str) -> str:
    """The empty Secret that a member's kubeconfig is bound to: the kubeconfig is valid while it exists."""
    return MEMBER_KEY + member_id(email)


def labels(slice_: str, project: str) -> dict[str, str]:
    return {MANAGED_BY: MANAGER, NAMESPACE_SLICE: slice_, OWNER: project}


def member_role() -> Json:
    """The fixed ClusterRole; shared by all slices and projects of a cluster."""
    rules = [{"apiGroups": [g], "resources": list(r), "verbs": list(v)} for g, r, v in _RIGHTS]
    meta = {"name": MEMBER_ROLE, "labels": {MANAGED_BY: MANAGER}}
    return {"apiVersion": CLUSTER_ROLE.api, "kind": CLUSTER_ROLE.name, "metadata": meta, "rules": rules}


def objects(terms: SliceTerms, project: str, namespace: str) -> tuple[Json, ...]:
    """All objects of this namespace of the slice; network policies come before permissions."""
    own = labels(terms.name, project)
    members = sorted(set(terms.members))
    walls = (_policies(terms.name, project), _peer_policies(terms.peers or ()), _served(terms.callers))
    found = [*(policy for policies in walls for policy in policies), *_quota(terms.gpus)]
    for email in {account_name(email): email for email in members}.values():
        found += _member(email)
    found.append(_made(ACCOUNT, WORKLOAD_ACCOUNT, automountServiceAccountToken=False))
    found += _workload_rights(namespace)
    found.append(_members(members, namespace))
    return tuple(_placed(body, own, namespace) for body in found)


def identity(body: Json) -> str:
    """`Kind/name`, as listed in an inventory."""
    return f"{body['kind']}/{body['metadata']['name']}"


def _placed(body: Json, own: Mapping[str, str], namespace: str) -> Json:
    meta = {**body["metadata"], "namespace": namespace, "labels": dict(own)}
    return {**body, "metadata": meta}


def _made(kind: Kind, name: str, **content: object) -> Json:
    return {"apiVersion": kind.api, "kind": kind.name, "metadata": {"name": name}, **content}


def _policies(slice_: str, project: str) -> list[Json]:
    """Deny by default; then allow the slice itself, DNS, and addresses outside the cluster."""
    mates = [{"namespaceSelector": {"matchLabels": {NAMESPACE_SLICE: slice_, OWNER: project}}}]
    dns = [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")]
    world = [
        {"ipBlock": {"cidr": "0.0.0.0/0", "except": list(_PRIVATE_V4)}},
        {"ipBlock": {"cidr": "::/0", "except": list(_PRIVATE_V6)}},
    ]
    return [
        _policy("egs-default-deny", policyTypes=["Ingress", "Egress"]),
        _policy(
            "egs-same-slice",
            policyTypes=["Ingress", "Egress"],
            ingress=[{"from": mates}],
            egress=[{"to": mates}],
        ),
        _policy("egs-dns", policyTypes=["Egress"], egress=[{"ports": dns}]),
        _policy("egs-world", policyTypes=["Egress"], egress=[{"to": world}]),
    ]


def _peer_policies(peers: Iterable[Peer]) -> list[Json]:
    """Exported pods are open to the peers' addresses, of whichever slice; none where Cilium names clusters."""
    blocks = [
        {"ipBlock": {"cidr": cidr}} for cidr in sorted({cidr for peer in peers for cidr in peer.addresses})
    ]
    if not blocks:
        return []
    exported = {"matchLabels": {EXPORTED: "true"}}
    return [
        _policy(PEERS_IN, podSelector=exported, policyTypes=["Ingress"], ingress=[{"from": blocks}]),
        _policy("egs-peers-out", policyTypes=["Egress"], egress=[{"to": blocks}]),
    ]


def _served(callers: Iterable[str]) -> list[Json]:
    """Servers of endpoints answer the cluster's Gateway and what reads their metrics; none without such."""
    peers = [{"namespaceSelector": {"matchLabels": {NAMESPACE_NAME: name}}} for name in callers]
    if not peers:
        return []
    served = {"matchExpressions": [{"key": ENDPOINT_LABEL, "operator": "Exists"}]}
    rule = {"from": peers, "ports": [{"protocol": "TCP", "port": SERVER_PORT}]}
    return [_policy("egs-endpoints", podSelector=served, policyTypes=["Ingress"], ingress=[rule])]


def _policy(name: str, **spec: object) -> Json:
    return _made(POLICY, name, spec={"podSelector": {}, **spec})


def _quota(gpus: int | None) -> list[Json]:
    """None without a limit. A limit of 0 would refuse pods that should stay Pending, so it means none too."""
    if not gpus:
        return []
    hard = {f"requests.{GPU_RESOURCE}": quantity(gpus)}
    for profile in _MIG_PROFILES:
        per_gpu = _MIG_SLICES // int(profile.partition("g.")[0])
        hard[f"requests.{MIG_RESOURCE_PREFIX}{profile}"] = quantity(gpus * per_gpu)
    return [_made(QUOTA, QUOTA_NAME, spec={"hard": dict(sorted(hard.items()))})]


def quantity(count: int) -> str:
    """A number as the API server writes it: 3000 becomes 3k."""
    for zeros, letter in ((9, "G"), (6, "M"), (3, "k")):
        if count and count % 10**zeros == 0:
            return f"{count // 10**zeros}{letter}"
    return str(count)


def _user(email: str) -> Json:
    return {"apiGroup": RBAC, "kind": "User", "name": email}


def _member(email: str) -> list[Json]:
    """One member's ServiceAccount, and this person's exclusive right to get its tokens."""
    name, own = f"egs-kubeconfig-{member_id(email)}", {MEMBER_EMAIL: email}
    account, secret = account_name(email), secret_name(email)
    rules = [
        _rule("serviceaccounts", account, "get"),
        _rule("serviceaccounts/token", account, "create"),
        # `create` restricted by name works because the Secret is applied, so that its name is in the request's path.
        _rule("secrets", secret, "get", "create", "patch", "delete"),
    ]
    bodies = [
        _made(ACCOUNT, account, automountServiceAccountToken=False),
        _made(ROLE, name, rules=rules),
        _made(
            BINDING, name, roleRef={"apiGroup": RBAC, "kind": "Role", "name": name}, subjects=[_user(email)]
        ),
    ]
    return [{**body, "metadata": {**body["metadata"], "annotations": own}} for body in bodies]


def _rule(resource: str, name: str, *verbs: str) -> Json:
    return {"apiGroups": [""], "resources": [resource], "resourceNames": [name], "verbs": list(verbs)}


def _workload_rights(namespace: str) -> list[Json]:
    """What the ServiceAccount of workloads may do beyond what members may."""
    rules = [
        {"apiGroups": [group], "resources": [plural], "verbs": list(_WRITE)} for group, plural in _RENDERED
    ]
    account = {"kind": "ServiceAccount", "name": WORKLOAD_ACCOUNT, "namespace": namespace}
    role = {"apiGroup": RBAC, "kind": "Role", "name": RENDERED}
    return [_made(ROLE, RENDERED, rules=rules), _made(BINDING, RENDERED, roleRef=role, subjects=[account])]


def _members(members: list[str], namespace: str) -> Json:
    accounts: list[Json] = [
        {"kind": "ServiceAccount", "name": name, "namespace": namespace}
        for name in sorted({WORKLOAD_ACCOUNT, *(account_name(email) for email in members)})
    ]
    role = {"apiGroup": RBAC, "kind": CLUSTER_ROLE.name, "name": MEMBER_ROLE}
    return _made(BINDING, MEMBERS, roleRef=role, subjects=[*map(_user, members), *accounts])


def differing(kind: Kind, want: Json, have: Json) -> tuple[str, ...]:
    """The fields of `have` that differ from `want`; foreign labels and annotations are ignored.

    Network policies and permissions are compared as a whole: an additional rule makes another policy. Our
    quota may have foreign lines.
    """
    found = [f"metadata.labels[{k}]" for k, v in _labels(want).items() if _labels(have).get(k) != v]
    for field in kind.content:
        if kind is QUOTA:
            hard = (have.get("spec") or {}).get("hard") or {}
            found += [f"spec.hard[{k}]" for k, v in want["spec"]["hard"].items() if hard.get(k) != v]
            continue
        there = have.get(field)
        if kind.is_shared:
            there = {key: value for key, value in (there or {}).items() if key in want[field]}
        if (want[field] or None) != (there or None):  # the server drops an empty list
            found += _inside(field, want[field], there)
    return tuple(found)


def _inside(field: str, want: object, have: object) -> Iterable[str]:
    """The keys of a map that differ, for messages; the field itself if it is not a map."""
    if isinstance(want, dict) and isinstance(have, dict):
        return sorted(f"{field}.{k}" for k in {*want, *have} if want.get(k) != have.get(k))
    return [field]


def _labels(body: Json) -> Mapping[str, str]:
    return body["metadata"].get("labels") or {}
