"""Alerts about GPUs: each says what to do, and healthy ones are silent (H6, H8)."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from reconciler.telemetry.telemetry_port import GpuSample
from reconciler.workloads.alerts import ADVICE, SEVERITY, AlertKind, alerts_of, row
from reconciler.workloads.gpu_rows import gpus_of
from schemas.documents.thresholds import Alerts
from tests.reconciler.workloads.gpus import CLUSTER, NOW, device, fleet, sample


def kinds(*samples: GpuSample, **more: object) -> list[str]:
    return [str(alert.kind) for alert in alerts_of(gpus_of(fleet(*samples, **more)), NOW)]


@pytest.mark.parametrize(
    ("one", "want"),
    [
        pytest.param(
            sample("h100-1", 0, use=97, temp=70, power=520, used=60000, free=20000), [], id="at work"
        ),
        pytest.param(sample("h100-1", 0, temp=87), ["TooHot"], id="at its limit"),
        pytest.param(sample("h100-1", 0, temp=86), [], id="below it"),
        pytest.param(sample("h100-1", 0, temp=80, throttle=0x20), ["HeatSlowdown"], id="slowed down by heat"),
        pytest.param(sample("h100-1", 0, mem_temp=96), ["MemoryTooHot"], id="its memory is hot"),
        pytest.param(sample("h100-1", 0, power=640), ["HighPower"], id="much power"),
        pytest.param(
            sample("h100-1", 0, throttle=0x80 | 0x08), ["PowerBrake"], id="power brake, bit among others"
        ),
        pytest.param(sample("h100-1", 0, throttle=0x04), [], id="the power cap is usual"),
        pytest.param(sample("h100-1", 0, xid=79), ["Xid"], id="an Xid"),
        pytest.param(sample("h100-1", 0, xid=0, ecc=0, remap=0), [], id="no error"),
        pytest.param(sample("h100-1", 0, ecc=2), ["EccErrors"], id="memory errors"),
        pytest.param(sample("h100-1", 0, remap=1), ["RemapFailure"], id="no spare rows"),
        pytest.param(sample("h100-1", 0, used=80500, free=900), ["MemoryFull"], id="memory is full"),
        pytest.param(sample("h100-1", 0, use=1), ["IdleGpu"], id="allocated and idle"),
        pytest.param(
            sample("h100-1", 0, at=NOW - timedelta(minutes=2), temp=99), [], id="a stale value says nothing"
        ),
    ],
)
def test_a_value_raises_what_it_means(one: GpuSample, want: list[str]) -> None:
    assert kinds(one) == want


@pytest.mark.parametrize(
    ("own", "one", "want"),
    [
        pytest.param({"temperature": 80}, sample("h100-1", 0, temp=80), ["TooHot"], id="the cluster's heat"),
        pytest.param({"temperature": 90}, sample("h100-1", 0, temp=88), [], id="which goes first"),
        pytest.param({"powerPercent": 95}, sample("h100-1", 0, power=640), [], id="a share of power"),
        pytest.param(
            {"throttled": False}, sample("h100-1", 0, throttle=0xA0), [], id="throttling does not count"
        ),
        pytest.param({"idleBelow": 30}, sample("h100-1", 0, use=29), ["IdleGpu"], id="little use"),
        pytest.param({}, sample("h100-1", 0, xid=43), [], id="an informational error"),
        pytest.param(
            {"xids": ["Informational"]}, sample("h100-1", 0, xid=43), ["Xid"], id="a class of errors"
        ),
        pytest.param({"xids": []}, sample("h100-1", 0, xid=79), ["Xid"], id="faults always count"),
    ],
)
def test_thresholds_are_the_clusters(own: dict[str, object], one: GpuSample, want: list[str]) -> None:
    """H6: for the cluster and for the node's shape alike."""
    for given in (own, {"shapes": [{"gpuShape": "H100-80GB", **own}]}):
        clusters = {"east": CLUSTER.edited(alerts=Alerts.model_validate_json(json.dumps(given)))}
        assert kinds(one, clusters=clusters) == want


def test_an_idle_gpu_of_nobody_is_no_alert() -> None:
    assert kinds(sample("h100-1", 0, use=0), held={}) == []


def test_the_agents_verdict_needs_no_telemetry() -> None:
    assert kinds(devices={("east", "h100-1"): (device("h100-1", 0, "RemapFailure"),)}) == ["GpuUnhealthy"]


def test_the_most_severe_come_first_and_say_what_to_do() -> None:
    found = alerts_of(
        gpus_of(fleet(sample("h100-2", 1, use=0), sample("h100-1", 3, temp=90, xid=31, ecc=1))), NOW
    )
    assert [alert.kind for alert in found] == ["EccErrors", "Xid", "TooHot", "IdleGpu"]
    shown = row(found[2])
    assert shown["message"] == "GPU 3 on h100-1 has 90 °C; its limit is 87 °C"
    assert (shown["value"], shown["limit"]) == (90, 87)
    assert shown["advice"]


def test_every_kind_has_advice_and_a_severity() -> None:
    assert set(ADVICE) == set(SEVERITY) == set(AlertKind)
