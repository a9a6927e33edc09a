"""`/slice-workspace/kube-config` and `/kube-config`: a member's way into a workspace's namespaces (B6)."""

from __future__ import annotations

from fastapi import APIRouter

from portal.documenting import refusals
from portal.kubeconfigs import KubeConfig, given, way_of
from portal.serving import Asking, Envelope, Looking, Of, ok
from portal.workspaces import ClusterNamed

router = APIRouter(tags=["workspaces"])

_REFUSALS = refusals(403, 404, 422, "CrossSite", "NoKubeconfig", "WorkspaceNotReady")


@router.post("/slice-workspace/kube-config", summary="A kubeconfig for an hour", responses=_REFUSALS)
@router.post("/kube-config", summary="A kubeconfig for an hour", responses=_REFUSALS)
def kube_config(body: ClusterNamed, view: Looking, caller: Asking, of: Of) -> Envelope[KubeConfig]:
    """For the caller as a member of the workspace. It is a secret; whoever needs it longer asks again."""
    return ok(given(way_of(view, caller, body), of.settings.base.kubeconfigs))
