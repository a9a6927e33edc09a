"""Which source a Cluster document means (H5)."""

from __future__ import annotations

import pytest

from reconciler.clusters.simulated.embedded import EmbeddedCluster
from reconciler.telemetry.open_telemetry import TelemetryOptions, open_telemetry
from reconciler.telemetry.prometheus_telemetry import PrometheusTelemetry
from reconciler.telemetry.simulated_telemetry import SimulatedTelemetry
from schemas.documents.cluster import ClusterSpec
from schemas.errors import EgsError, Fault, UserError

POOL = {"name": "n", "gpuShape": "H100", "gpusPerNode": 1, "memoryPerGpu": 80, "nodes": 2}


def spec(driver: str = "embedded", **more: object) -> ClusterSpec:
    return ClusterSpec.model_validate({"driver": driver, "pools": [POOL], **more}, strict=False)


def simulating(name: str) -> EmbeddedCluster | None:
    return EmbeddedCluster(name, spec()) if name == "east" else None


PROMETHEUS = {"prometheus": {"url": "https://prometheus.example.com"}}


@pytest.mark.parametrize("driver", ["embedded", "kubernetes"])
def test_a_prometheus_that_is_named_counts_for_every_driver(driver) -> None:
    source = open_telemetry("east", spec(driver, metrics=PROMETHEUS), TelemetryOptions())
    assert isinstance(source, PrometheusTelemetry)
    source.close()


def test_a_simulated_cluster_of_this_process_shows_itself() -> None:
    options = TelemetryOptions(simulated=simulating)
    assert isinstance(open_telemetry("east", spec(), options), SimulatedTelemetry)
    with pytest.raises(Fault) as none:
        open_telemetry("west", spec(), options)
    assert none.value.reason == "NoMetrics"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        pytest.param({"access": {"pull": True}}, "NoMetrics", id="only its own applier reaches it"),
        pytest.param({"access": {"kubeconfig": "east"}}, "ClusterAccessMissing", id="no such kubeconfig"),
    ],
)
def test_a_cluster_that_cannot_be_reached_says_why(given, reason) -> None:
    with pytest.raises(EgsError) as refused:
        open_telemetry("east", spec("kubernetes", **given), TelemetryOptions())
    assert refused.value.reason == reason


def test_a_missing_file_of_credentials_is_told() -> None:
    metrics = {"prometheus": {**PROMETHEUS["prometheus"], "auth": {"file": "east"}}}
    with pytest.raises(UserError) as refused:
        open_telemetry("east", spec(metrics=metrics), TelemetryOptions())
    assert refused.value.reason == "MetricsAuthMissing"
