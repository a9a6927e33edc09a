"""Kueue on the newer control plane: its real resources, and its real manager where that was built."""

from __future__ import annotations

from reconciler.clusters.kubernetes.api.api_client import Api
from tests.support.crds import KUEUE, install_crds

GROUP = "/apis/kueue.x-k8s.io"
OURS = ("topologies", "resourceflavors", "clusterqueues", "localqueues")
"""Those that the controller writes."""


def served(api: Api, *plurals: str, version: str | None = None) -> None:
    """The API server has these resources, or all of Kueue's; `version`: only as this one."""
    install_crds(api, KUEUE, *plurals, version=version)
