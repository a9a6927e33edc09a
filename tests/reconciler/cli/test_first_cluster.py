"""`egs init --from-cluster` on a real API server. B3."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.reconciler.cli.rig import egs
from tests.support.kube import Plane, cpu_node, gpu_node


def test_the_first_document_is_what_the_cluster_shows(tmp_path: Path, kube: Plane) -> None:
    """In a new repository with it, in one that is there beside what it has; never twice."""
    for item in (gpu_node("gpu-1"), gpu_node("gpu-2"), cpu_node("cpu-1")):
        kube.api.create("/api/v1/nodes", item)
    own = ("--kubeconfig", kube.kubeconfig)
    done = egs("init", tmp_path / "g", "--admin", "ada@example.com", "--from-cluster", "north", *own)
    assert (done.code, "h100: 2 nodes of 8 × H100-80GB" in done.out) == (0, True)
    assert egs("validate", tmp_path / "g", "-o", "json").json == {"documents": 2, "problems": []}
    assert egs("init", tmp_path / "g", "--from-cluster", "south", *own).code == 0
    again = egs("init", tmp_path / "g", "--from-cluster", "north", *own)
    assert (again.code, "nothing is overwritten" in again.err) == (1, True)
    (pool,) = yaml.safe_load((tmp_path / "g/clusters/south.yaml").read_text())["spec"]["pools"]
    assert pool["selector"] == {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [("North!", 2, "lower-case letters"), ("empty", 1, "no GPU node that could be in a pool")],
)
def test_nothing_is_written_where_there_is_nothing(
    tmp_path: Path, kube: Plane, name: str, code: int, words: str
) -> None:
    done = egs("init", tmp_path / "g", "--from-cluster", name, "--kubeconfig", kube.kubeconfig)
    assert (done.code, words in done.err) == (code, True)
    assert not (tmp_path / "g").exists()
