"""Thresholds of GPUs in a Cluster document: what is accepted, and whose value counts (H6)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from schemas.documents.cluster import Cluster
from schemas.reading.reader import read_document

PATH = "clusters/east.yaml"
TEXT = """apiVersion: egs.dev/v1alpha1
kind: Cluster
metadata: {name: east}
spec:
  driver: embedded
  pools: [{name: h100, gpuShape: H100-80GB, gpusPerNode: 8, memoryPerGpu: 80, nodes: 2}]
  alerts: %s
"""


def test_a_shapes_threshold_goes_before_the_clusters() -> None:
    own = "{gpuShape: A, idleFor: 1h, throttled: false, xids: [Depends]}"
    given = f"{{temperature: 80, throttled: true, shapes: [{own}]}}"
    document = read_document(PATH, (TEXT % given).encode())
    assert isinstance(document, Cluster)
    shape, other = document.spec.alerts.of_shape("A"), document.spec.alerts.of_shape("B")
    assert (shape.temperature, shape.idle_for, shape.throttled) == (80, timedelta(hours=1), False)
    assert [str(name) for name in shape.xids or ()] == ["Depends"]
    assert (other.temperature, other.idle_for, other.throttled, other.xids) == (80, None, True, None)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param("{temperature: 200}", id="hotter than any GPU"),
        pytest.param("{powerPercent: 0}", id="no power at all"),
        pytest.param("{idleFor: 0m}", id="no time at all"),
        pytest.param("{xids: [Terrible]}", id="a class that is none"),
        pytest.param("{shapes: [{temperature: 80}]}", id="a shape without a name"),
        pytest.param("{heat: 80}", id="a word that is none"),
    ],
)
def test_what_makes_no_sense_is_refused(given: str) -> None:
    assert not isinstance(read_document(PATH, (TEXT % given).encode()), Cluster)
