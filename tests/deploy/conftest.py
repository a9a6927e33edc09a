"""Helm, and a control plane without what an installation leaves where a test ends in the middle of one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.deploy.helm import NAMESPACE, helm
from tests.support.kube import Plane

__all__ = ["helm"]

SERVICES = f"/api/v1/namespaces/{NAMESPACE}/services"


@pytest.fixture
def kube(plane: Plane) -> Iterator[Plane]:
    """That control plane, empty before and after."""
    _wipe(plane)
    yield plane
    _wipe(plane)


def _wipe(plane: Plane) -> None:
    for item in list(plane.api.items(SERVICES)):  # cannot be deleted as a whole
        plane.api.delete(f"{SERVICES}/{item['metadata']['name']}")
    for kind in ("clusterroles", "clusterrolebindings"):
        base = f"/apis/rbac.authorization.k8s.io/v1/{kind}"
        for item in list(plane.api.items(base, labelSelector="app.kubernetes.io/part-of=egs")):
            plane.api.delete(f"{base}/{item['metadata']['name']}")
    plane.wipe()
