"""`/slice-workspace/kube-config` and `/kube-config`: access to a workspace's namespaces for its members."""

from __future__ import annotations

from fastapi import APIRouter

from portal.http.context import Asking, Envelope, Looking, Of, ok
from portal.openapi.refusals import refusals
from portal.vendor.kubeconfig_tokens import KubeConfig, given, way_of
from portal.vendor.workspace_models import ClusterNamed

router = APIRouter(tags=["workspaces"])

_REFUSALS = refusals(403, 404, 422, "CrossSite", "NoKubeconfig", "WorkspaceNotReady")


@router.post("/slice-workspace/kube-config", summary="A kubeconfig for an hour", responses=_REFUSALS)
@router.post("/kube-config", summary="A kubeconfig for an hour", responses=_REFUSALS)
def kube_config(body: ClusterNamed, view: Looking, caller: Asking, of: Of) -> Envelope[KubeConfig]:
    """Kubeconfig of the caller as a member of the workspace. It is a secret and valid for an hour; then ask again."""
    return ok(given(way_of(view, caller, body), of.settings.base.kubeconfigs))
