"""A pod that does not go is named with its namespace to whoever asks about its request or its node (D7)."""

from __future__ import annotations

from pathlib import Path

from reconciler.clusters.simulated.embedded import EmbeddedCluster
from reconciler.clusters.simulated.scripted_faults import DrainHangs
from reconciler.clusters.simulated.simulated_world import Job
from schemas.documents.cluster import Cluster
from tests.reconciler.cli.rig import Control, egs, fleet, minutes, repository, request
from tests.support.world import parsed


def test_why_and_the_node_name_the_pod(tmp_path: Path) -> None:
    files = fleet(**request("a/run", nodes=1, duration="10m"))
    repo = repository(tmp_path / "r.git", files)
    control = Control(repo, tmp_path / "state")
    control.run(minutes(3))
    document = parsed("clusters/east.yaml", files["clusters/east.yaml"])
    assert isinstance(document, Cluster)
    east = EmbeddedCluster("east", document.spec, tmp_path / "state" / "clusters" / "east.json")
    east.inject(DrainHangs(node="h100-1", at=minutes(0), until=minutes(300)))
    east.submit(Job("stubborn", "a", 8), control.now)
    control.run(minutes(20))
    now = ("--now", "2026-11-21T08:20:00Z")
    said = egs("why", "a/run", "--repo", repo, *now).out
    assert "h100-1 is Dirty: its lease is over but GPU pods are still running: a/stubborn" in said
    rows = egs("get", "nodes", "--repo", repo, "-o", "json", *now).json
    assert "a/stubborn" in next(row["message"] for row in rows if row["name"] == "h100-1")
