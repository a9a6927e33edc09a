"""API paths of all installed kinds. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.clusters.kubernetes.api.api_client import Json


@dataclass(frozen=True, slots=True)
class Kind:
    group: str  # as in apiVersion
    plural: str
    namespaced: bool = True

    def path(self, namespace: str, name: str = "") -> str:
        """Path of one object, or of all without a name."""
        root = f"/apis/{self.group}" if "/" in self.group else f"/api/{self.group}"
        place = f"/namespaces/{namespace}" if self.namespaced else ""
        return f"{root}{place}/{self.plural}" + (f"/{name}" if name else "")


_RBAC = "rbac.authorization.k8s.io/v1"

KINDS: dict[str, Kind] = {
    "CustomResourceDefinition": Kind(
        "apiextensions.k8s.io/v1", "customresourcedefinitions", namespaced=False
    ),
    "ServiceAccount": Kind("v1", "serviceaccounts"),
    "ClusterRole": Kind(_RBAC, "clusterroles", namespaced=False),
    "ClusterRoleBinding": Kind(_RBAC, "clusterrolebindings", namespaced=False),
    "Role": Kind(_RBAC, "roles"),
    "RoleBinding": Kind(_RBAC, "rolebindings"),
    "NetworkPolicy": Kind("networking.k8s.io/v1", "networkpolicies"),
    "Service": Kind("v1", "services"),
    "PodDisruptionBudget": Kind("policy/v1", "poddisruptionbudgets"),
    "Deployment": Kind("apps/v1", "deployments"),
    "DaemonSet": Kind("apps/v1", "daemonsets"),
}
"""In the order of creation; deletion is in reverse order."""


def path_of(item: Json, namespace: str) -> str:
    """An object's path; its own apiVersion counts, since a budget's depends on the cluster."""
    kind = KINDS[item["kind"]]
    return Kind(item["apiVersion"], kind.plural, kind.namespaced).path(namespace, item["metadata"]["name"])


def called(item: Json) -> str:
    """Name for messages."""
    return f"{item['kind']} {item['metadata']['name']}"
