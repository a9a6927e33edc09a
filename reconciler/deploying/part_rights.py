"""Each part's permissions in a cluster, as objects. Pure.

The rules come from `reconciler.clusters.kubernetes.rbac`; here are those that depend on the installation. An
agent has no permissions and no token.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconciler.clusters.kubernetes.api.api_client import Json
from reconciler.clusters.kubernetes.rbac import Rule
from reconciler.deploying.part_names import RBAC, Place, about
from schemas.documents.elastic import CLUSTER_API, KARPENTER, ScaleTarget


def written(rules: Iterable[Rule]) -> list[Json]:
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
    rows, name = tuple(rules), place.named(part)
    for kind, system in (("ClusterRole", False), ("Role", True)):
        own = written(rule for rule in rows if rule.system == system)
        if not own:
            continue
        head: Json = {"apiVersion": f"{RBAC}/v1", "metadata": about(place, part, namespaced=system)}
        yield {**head, "kind": kind, "rules": own}
        yield {
            **head,
            "kind": f"{kind}Binding",
            "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": place.namespace}],
        }


def election(place: Place, part: str) -> tuple[Rule, ...]:
    """Rules for a part with an election."""
    group, own = "coordination.k8s.io", (place.named(part),)
    return (
        Rule(group, "leases", ("create",), "create the Lease of the election", system=True),
        Rule(group, "leases", ("get", "update"), "hold the Lease", names=own, system=True),
    )


def scaling(targets: Iterable[ScaleTarget]) -> tuple[Rule, ...]:
    """Rules to scale these targets, and to name the nodes that go: by Machines or NodeClaims; no others."""
    targets, verbs = tuple(targets), ("get", "patch")
    rows = [
        Rule(target.group, resource, verbs, "set the size of a pool", names=(target.name,))
        for target in targets
        for resource in (target.resource, f"{target.resource}/scale")
    ]
    if any(target.is_cluster_api for target in targets):
        rows.append(Rule(CLUSTER_API.rstrip("/"), "machines", verbs, "select the Machines to delete"))
    if any(target.is_karpenter for target in targets):
        why = "remove the nodes that leave a pool"
        rows += [
            Rule("", "nodes", ("delete",), why),
            Rule(KARPENTER.rstrip("/"), "nodeclaims", ("delete",), why),
        ]
    return tuple(rows)


def asking_agents() -> tuple[Rule, ...]:
    """Rules to ask agents for telemetry."""
    return (
        Rule("", "pods", ("list",), "which agent is on which node", system=True),
        Rule("", "pods/proxy", ("get",), "what an agent remembers of its GPUs", system=True),
    )


def kubeconfigs(secrets: tuple[str, ...]) -> tuple[Rule, ...]:
    """Rules to read the Secrets with other clusters' kubeconfigs."""
    if not secrets:
        return ()
    return (Rule("", "secrets", ("get",), "kubeconfigs of other clusters", names=secrets, system=True),)
