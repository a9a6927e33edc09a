"""Each part's permissions in a cluster, as objects. Pure.

The rules come from `reconciler.clusters.kubernetes.rbac`; here are those that depend on the installation. An
agent has no permissions and no token.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from reconciler.clusters.kubernetes.rbac import Rule
from reconciler.deploying.part_names import RBAC, Place, about
from schemas.documents.elastic import CLUSTER_API, ScaleTarget

Json = dict[str, Any]


def written(rules: Iterable[Rule]) -> list[Json]:
    """The rules in Kubernetes' format."""
    return [
        {"apiGroups": [rule.group], "resources": [rule.resource], "verbs": list(rule.verbs)}
        | ({"resourceNames": list(rule.names)} if rule.names else {})
        for rule in rules
    ]


def account(place: Place, part: str, *, calls: bool) -> Json:
    """The part's ServiceAccount; without `calls` it gets no token."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": about(place, part),
        "automountServiceAccountToken": calls,
    }


def granted(place: Place, part: str, rules: Iterable[Rule]) -> Iterator[Json]:
    """Roles and bindings that give the part's account exactly these rules."""
    rows = tuple(rules)
    everywhere = [rule for rule in rows if not rule.system]
    here = [rule for rule in rows if rule.system]
    if everywhere:
        yield _role("ClusterRole", about(place, part, namespaced=False), written(everywhere))
        yield _binding(place, part, "ClusterRole", about(place, part, namespaced=False))
    if here:
        yield _role("Role", about(place, part), written(here))
        yield _binding(place, part, "Role", about(place, part))


def _role(kind: str, metadata: Mapping[str, Any], rules: list[Json]) -> Json:
    return {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": metadata, "rules": rules}


def _binding(place: Place, part: str, kind: str, metadata: Mapping[str, Any]) -> Json:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": f"{kind}Binding",
        "metadata": metadata,
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": place.named(part)},
        "subjects": [{"kind": "ServiceAccount", "name": place.named(part), "namespace": place.namespace}],
    }


def election(place: Place, part: str) -> tuple[Rule, ...]:
    """Rules for a part with an election."""
    return (
        Rule(
            "coordination.k8s.io",
            "leases",
            ("create",),
            "create the Lease of the election",
            system=True,
        ),
        Rule(
            "coordination.k8s.io",
            "leases",
            ("get", "update"),
            "hold the Lease",
            names=(place.named(part),),
            system=True,
        ),
    )


def scaling(targets: Iterable[ScaleTarget]) -> tuple[Rule, ...]:
    """Rules to scale these targets, and with Cluster API to select the Machines to delete; no others."""
    targets, verbs = tuple(targets), ("get", "patch")
    rows = [
        Rule(target.group, resource, verbs, "set the size of a pool", names=(target.name,))
        for target in targets
        for resource in (target.resource, f"{target.resource}/scale")
    ]
    if any(target.is_cluster_api for target in targets):
        rows.append(Rule(CLUSTER_API.rstrip("/"), "machines", verbs, "select the Machines to delete"))
    return tuple(rows)


def kubeconfigs(secrets: tuple[str, ...]) -> tuple[Rule, ...]:
    """Rules to read the Secrets with other clusters' kubeconfigs."""
    if not secrets:
        return ()
    return (Rule("", "secrets", ("get",), "kubeconfigs of other clusters", names=secrets, system=True),)
