"""Slices on a real API server: what tests of them share."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from reconciler.clusters.kubernetes.api.api_client import Api, Json, Rejected
from reconciler.clusters.kubernetes.tenancy.slice_writer import Slices
from reconciler.model.cluster_port import Answer, Busy, Difference, Done, SliceTerms, Stamp
from tests.support.kube import Plane, eventually

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
SECOND = timedelta(seconds=1)
OLD, FIRST, NEWER = Stamp(1, 1), Stamp(1, 2), Stamp(2, 1)
BO, CY = "bo@example.com", "cy@example.com"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
NET = "/apis/networking.k8s.io/v1"
CLAIM = "/api/v1/namespaces/egs-system/configmaps/slice-vision"
DENY = f"{NET}/namespaces/vision/networkpolicies/egs-default-deny"
QUOTA = "/api/v1/namespaces/vision/resourcequotas/egs-gpus"


def terms(name: str = "vision", *namespaces: str, **more: Any) -> SliceTerms:
    """A slice of two members and 16 GPUs; its namespace has its name where none is given."""
    given = {"members": (BO, CY), "gpus": 16} | more
    return SliceTerms(name, namespaces or (name,), **given)


def opened(api: Api, project: str = "default") -> Slices:
    """One controller's view, synced."""
    slices = Slices(api, project)
    slices.start()
    slices.namespaces()
    return slices


def finished(call: Callable[[datetime], Answer], now: datetime = NOW) -> Answer:
    """The answer when it is Busy no more."""
    found: list[Answer] = []

    def look() -> bool:
        found[:] = [call(now)]
        return not isinstance(found[0], Busy)

    eventually(look, "an answer other than Busy")
    return found[0]


def ensured(slices: Slices, wanted: SliceTerms, stamp: Stamp = FIRST) -> None:
    """It is so."""
    assert slices.ensure(wanted, stamp, NOW) == Done()


def objects_of(api: Api, namespace: str) -> dict[str, Json]:
    """Everything in a namespace that bears our label."""
    found: dict[str, Json] = {}
    for path in (
        f"/api/v1/namespaces/{namespace}/serviceaccounts",
        f"/api/v1/namespaces/{namespace}/resourcequotas",
        f"/api/v1/namespaces/{namespace}/secrets",
        f"{NET}/namespaces/{namespace}/networkpolicies",
        f"{RBAC}/namespaces/{namespace}/roles",
        f"{RBAC}/namespaces/{namespace}/rolebindings",
    ):
        for item in api.items(path, labelSelector="app.kubernetes.io/managed-by=egs"):
            found[f"{path.rsplit('/', 1)[1]}/{item['metadata']['name']}"] = item
    return found


def namespace(plane: Plane, name: str, **meta: Any) -> Json:
    """Somebody makes one."""
    return plane.api.create(
        "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, **meta}}
    )


OFFERED = {"egs.dev/adopt": "default"}
"""Annotations of a namespace that the cluster's admin lets a slice of that project have."""


def meta_of(plane: Plane, name: str) -> Json:
    """Metadata of a namespace; empty where there is none."""
    return (plane.api.find(f"/api/v1/namespaces/{name}") or {}).get("metadata", {})


def as_user(plane: Plane, user: str) -> Api:
    """The API as somebody whom the cluster knows by that name."""
    api = plane.connect()
    sign_in = api._client.update_params_for_auth

    def sign_in_as(headers: dict[str, str], *rest: Any) -> None:
        sign_in(headers, *rest)
        headers["Impersonate-User"] = user

    api._client.update_params_for_auth = sign_in_as  # type: ignore[method-assign]
    return api


def refused(call: Callable[[], object]) -> int:
    """The HTTP status with which the server refuses."""
    try:
        call()
    except Rejected as no:
        return no.status
    raise AssertionError("the server did it")


def pod(name: str, gpus: int = 0, **spec: Any) -> Json:
    """A pod."""
    resources = {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
    container = {"name": "main", "image": "example.com/train", "resources": resources}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        # A server of 1.20 refuses a pod whose account has no token yet.
        "spec": {"containers": [container], "automountServiceAccountToken": False, **spec},
    }


def seen(slices: Slices, wanted: SliceTerms, *expected: Difference) -> None:
    """The informers know exactly these differences."""
    eventually(
        lambda: set(slices.differences((wanted,), NOW)) == set(expected), f"the differences {expected}"
    )


def is_alive(kube: Plane, name: str) -> bool:
    """The namespace is there, and stays."""
    meta = meta_of(kube, name)
    return bool(meta) and "deletionTimestamp" not in meta
