"""An empty control plane for each test: what the last one left goes away.

A control plane that the tests started is emptied in its store (`tests.support.etcd`), another one through its API
server. Namespaces that every cluster has stay, with what is in them, except workloads and events.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from reconciler.clusters.kubernetes.api.api_client import Api, Rejected
from tests.support.etcd import REGISTRY, Etcd, prefix_of

KEPT = {"default", "kube-system", "kube-public", "kube-node-lease"}
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
JUDGING = [
    f"{_ADMISSION}/mutatingwebhookconfigurations",
    f"{_ADMISSION}/validatingwebhookconfigurations",
    f"{_ADMISSION}/mutatingadmissionpolicybindings",
    f"{_ADMISSION}/mutatingadmissionpolicies",
    f"{_ADMISSION}/validatingadmissionpolicybindings",
    f"{_ADMISSION}/validatingadmissionpolicies",
]
EVERYWHERE = [
    *JUDGING,
    "/api/v1/nodes",
    "/apis/storage.k8s.io/v1/storageclasses",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
]
"""Collections outside of namespaces, what judges others first."""
ROLES = [f"{_RBAC}/clusterroles", f"{_RBAC}/clusterrolebindings"]
NAMESPACED = [
    "/apis/events.k8s.io/v1/events",
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/statefulsets",
    "/apis/apps/v1/replicasets",
    "/apis/apps/v1/daemonsets",
    "/apis/batch/v1/jobs",
    "/api/v1/pods",
    "/api/v1/persistentvolumeclaims",
    "/api/v1/configmaps",
    "/api/v1/secrets",
    "/api/v1/serviceaccounts",
    "/api/v1/resourcequotas",
    "/apis/policy/v1beta1/poddisruptionbudgets",
    "/apis/policy/v1/poddisruptionbudgets",
    "/apis/networking.k8s.io/v1/networkpolicies",
    f"{_RBAC}/roles",
    f"{_RBAC}/rolebindings",
    "/apis/coordination.k8s.io/v1/leases",
]
"""Collections of namespaces, those that make others first."""
WORK = NAMESPACED[:7]
"""Those that a test may fill in a namespace that stays."""
NAMESPACES = "/api/v1/namespaces"
_OURS = ("apiextensions.k8s.io", "apiregistration.k8s.io")
"""Groups of the API server itself; keys of other groups with a dot are custom resources."""
_OUTSIDE = tuple(prefix_of(path) for path in [*EVERYWHERE, *ROLES, NAMESPACES])
_IN_KEPT = tuple(prefix_of(path) for path in WORK)
_MAKING = (*_OUTSIDE, *_IN_KEPT[1:-2], f"{REGISTRY}cronjobs/")
"""They go first, and their controllers know it before what they have made goes: else it would be made again."""
_SERVICES = f"{REGISTRY}services/specs/"
_HEEDED = {
    prefix_of(path): path
    for path in [
        *JUDGING,
        EVERYWHERE[-1],
        NAMESPACES,
        *ROLES,
        "/api/v1/resourcequotas",
        f"{_RBAC}/roles",
        f"{_RBAC}/rolebindings",
    ]
}
"""The API server judges requests by its caches of these."""
ROUNDS = 20


class Emptied:
    """A control plane's store; what is there now stays."""

    def __init__(self, api: Api, store: Etcd) -> None:
        self._api, self._store = api, store
        found = store.changed()
        self._first, self._revision = frozenset(found.keys), found.revision

    def wipe(self) -> None:
        """Until nothing is left: a controller may write once more before it learns of the end."""
        for _ in range(ROUNDS):
            left = [key for key in self._store.changed(self._revision).keys if self._goes(key)]
            if not left:
                return
            for key in (key for key in left if key.startswith(_SERVICES)):
                namespace, name = key.removeprefix(_SERVICES).split("/")
                self._api.delete(f"{NAMESPACES}/{namespace}/services/{name}")  # takes the address back
            self._end([key for key in left if key.startswith(_MAKING)])
            self._end([key for key in left if not key.startswith(_MAKING)])
        raise AssertionError(f"they come back again and again: {left}")

    def _goes(self, key: str) -> bool:
        if key in self._first:
            return False
        group, namespace, name = _parts(key)
        if "." in group and group not in _OURS:  # nobody deletes them when their definition is gone
            return True
        if namespace:
            return namespace not in KEPT or key.startswith(_IN_KEPT)
        return name not in KEPT and key.startswith(_OUTSIDE)

    def _end(self, keys: Sequence[str]) -> None:
        if not keys:
            return
        at = self._store.delete(keys)
        for prefix, path in _HEEDED.items():
            if any(key.startswith(prefix) for key in keys):
                self._api.get(
                    path, resourceVersion=str(at)
                )  # answered as soon as the cache is as new as that


def _parts(key: str) -> tuple[str, str, str]:
    """The group or kind that the key begins with, the namespace, which may be empty, and the name."""
    first, *rest = key.removeprefix(REGISTRY).split("/")
    inside = rest[1:] if "." in first or first == "services" else rest
    return first, inside[0] if len(inside) == 2 else "", inside[-1] if inside else ""


def wipe_by_requests(api: Api) -> None:
    """The same, kind by kind."""
    for path in EVERYWHERE:
        with contextlib.suppress(Rejected):  # an old server has no policies
            for item in list(api.items(path)):
                api.delete(f"{path}/{item['metadata']['name']}")
    for kind in NAMESPACED:
        _wipe_kind(api, kind)
    for item in list(api.items(NAMESPACES)):
        _wipe_namespace(api, item["metadata"]["name"])
    for path in ROLES:
        for item in list(api.items(path, labelSelector="app.kubernetes.io/managed-by=egs")):
            api.delete(f"{path}/{item['metadata']['name']}")


def _wipe_kind(api: Api, kind: str) -> None:
    """One listing for all namespaces: most of them have no object of most kinds."""
    group, _, plural = kind.rpartition("/")
    with contextlib.suppress(Rejected):  # an old server does not know every group
        found = {item["metadata"]["namespace"] for item in api.items(kind)}
        for name in found if kind in WORK else found - KEPT:
            api.delete(f"{group}/namespaces/{name}/{plural}", grace_s=0)


def _wipe_namespace(api: Api, name: str) -> None:
    if name in KEPT:
        return
    with contextlib.suppress(Rejected):
        api.delete(f"{NAMESPACES}/{name}")
        found = api.find(f"{NAMESPACES}/{name}")
        if found is not None:
            found["spec"]["finalizers"] = []
            api.replace(f"{NAMESPACES}/{name}/finalize", found)
