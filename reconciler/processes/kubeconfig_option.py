"""Opens the API server that an option of a command names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from schemas.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path

    from reconciler.clusters.kubernetes.api.api_client import Api


def by_option(cluster: str, kubeconfig: Path | None, option: str) -> Api:
    """By the kubeconfig that was given with an option of a command; without one, the process' own cluster."""
    from reconciler.clusters.kubernetes.api.connection import from_text, in_cluster

    try:
        if kubeconfig is None:
            return in_cluster(cluster)
        return from_text(cluster, kubeconfig.read_text(encoding="utf-8"))
    except (UserError, OSError, ValueError) as error:
        text = f"{option} {kubeconfig} cannot be used ({type(error).__name__}); try it with kubectl"
        if kubeconfig is None:
            text = f"this process does not run inside a cluster; give {option} FILE"
        raise UserError(text, "ClusterAccessMissing") from error
