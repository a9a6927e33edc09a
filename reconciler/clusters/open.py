"""Which driver a Cluster manifest asks for."""

from __future__ import annotations

from pathlib import Path

from reconciler.clusters.embedded import EmbeddedCluster
from reconciler.clusters.port import ClusterDriver
from schemas.cluster import ClusterSpec
from schemas.errors import UserError


def open_cluster(name: str, spec: ClusterSpec, state_dir: Path | None) -> ClusterDriver:
    """A driver for the cluster; a simulated one keeps its state in `state_dir`, or only in memory.

    Raises `UserError` (`DriverMissing`) when this release has no such driver.
    """
    if spec.driver == "embedded":
        return EmbeddedCluster(name, spec, None if state_dir is None else state_dir / f"{name}.json")
    raise UserError(
        f"clusters/{name}.yaml: this release drives simulated clusters only, not {spec.driver!r}; "
        "set spec.driver to embedded",
        "DriverMissing",
    )
