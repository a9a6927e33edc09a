"""A model in a few figures (H2)."""

from __future__ import annotations

from datetime import timedelta

from reconciler.telemetry.telemetry_port import GpuKey, Metric, Point, Series
from reconciler.workloads.gpu_rows import gpus_of
from reconciler.workloads.summary import summary, time_lost
from tests.reconciler.workloads.gpus import NOW, fleet, sample

MINUTE = timedelta(minutes=1)


def test_the_figures_of_some_gpus() -> None:
    gpus = gpus_of(
        fleet(
            sample("h100-1", 0, use=90, temp=70, power=600),
            sample("h100-1", 1, use=98, temp=88, power=500),
            sample("h100-2", 0, use=0, temp=40, power=70),
            sample("h100-2", 1),
        )
    )
    found = summary(gpus, 16)
    assert (found["gpus"], found["measuredGpus"], found["idleGpus"], found["hotGpus"]) == (16, 3, 1, 1)
    assert found["averageUtilisationPercent"] == 62.7
    assert (found["hottest"]["index"], found["hottest"]["tempC"]) == (1, 88)
    assert (found["mostPower"]["index"], found["mostPower"]["powerW"]) == (0, 600)
    assert found["powerW"] == 1170


def test_nothing_measured_is_unknown_and_not_idle() -> None:
    found = summary(gpus_of(fleet(sample("h100-1", 0))), 8)
    assert found["gpus"] == 8
    assert [
        found[name] for name in ("idleGpus", "hotGpus", "averageUtilisationPercent", "hottest", "powerW")
    ] == [None] * 5


def series(metric: Metric, *values: float) -> Series:
    key = GpuKey("east", "h100-1", "GPU-1")
    return Series(
        key, metric, MINUTE, tuple(Point(NOW + n * MINUTE, value) for n, value in enumerate(values))
    )


def test_lost_time_is_that_of_idle_and_of_slowed_gpus() -> None:
    lost = time_lost(
        [series(Metric.UTILISATION, 0, 4, 5, 90), series(Metric.THROTTLE, 0, 0x20, 0x80, 0x04)], MINUTE
    )
    assert lost == {"idleGpuSeconds": 120, "slowedGpuSeconds": 120}
    assert time_lost([], MINUTE) == {"idleGpuSeconds": None, "slowedGpuSeconds": None}
