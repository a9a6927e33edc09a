"""A simulated cluster tells what its GPUs do and did: who used them, until when, and what was silent (H1, H5)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from reconciler.clusters.simulated.embedded import EmbeddedCluster
from reconciler.clusters.simulated.scripted_faults import ApiFails, GpuFails, NodeDies
from reconciler.clusters.simulated.simulated_world import Job
from reconciler.model.cluster_port import LeaseRef, SliceTerms, Stamp
from reconciler.telemetry.simulated_telemetry import SimulatedTelemetry
from reconciler.telemetry.telemetry_port import Metric, PodRef, Query
from schemas.documents.cluster import ClusterSpec

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
STAMP = Stamp(1, 1)
A, B = ("east", "h100-1"), ("east", "h100-2")
POOL = {"name": "h100", "gpuShape": "H100-80GB", "gpusPerNode": 4, "memoryPerGpu": 80, "nodes": 2}


def at(minute: float) -> datetime:
    return NOW + minute * MINUTE


def cluster(*faults, state=None) -> EmbeddedCluster:
    made = EmbeddedCluster(
        "east", ClusterSpec.model_validate({"driver": "embedded", "pools": (POOL,)}), state, faults
    )
    made.ensure_slice(SliceTerms("vision", ("vision-train",)), STAMP, NOW)
    made.add("h100-1", LeaseRef("uid", "vision/train", "vision", at(600)), STAMP, NOW)
    return made


def submit(c: EmbeddedCluster, name: str, gpus: int, minute: float, lasts: float | None = None) -> None:
    c.submit(Job(name, "vision-train", gpus, None if lasts is None else lasts * MINUTE), at(minute))


def busy_minutes(c: EmbeddedCluster, index: int, until: float, step=MINUTE) -> list[int]:
    """Minutes after whose windows the GPU had done some work."""
    query = Query(frozenset({A}), (Metric.UTILISATION,), NOW, at(until), step)
    source = SimulatedTelemetry("east", c)
    uuid = next(s.gpu.uuid for s in source.latest([A], at(until)).samples if s.index == index)
    series = next(s for s in source.range(query, at(until)).series if s.gpu.uuid == uuid)
    return [(p.at - NOW) // MINUTE for p in series.points if p.value > 0]


def pods(c: EmbeddedCluster, minute: float) -> list[list[str]]:
    samples = SimulatedTelemetry("east", c).latest([A], at(minute)).samples
    return [[pod.pod for pod in s.pods] for s in sorted(samples, key=lambda s: s.index or 0)]


def test_the_past_of_a_job_is_remembered_after_it_ended(tmp_path) -> None:
    c = cluster(state=tmp_path / "east.json")
    submit(c, "first", 4, 2, lasts=5)
    c.observe(at(12))
    again = cluster(state=tmp_path / "east.json")  # another process
    assert busy_minutes(again, 0, 20) == [2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("how", ["withdrawn", "its lease ends"])
def test_a_job_that_did_not_end_by_itself_left_its_gpus_too(how) -> None:
    c = cluster()
    submit(c, "serve", 1, 0)
    if how == "withdrawn":
        c.withdraw("vision-train", "serve", at(5))
    else:
        c.evict("h100-1", "uid", at(5), Stamp(1, 2), at(4))
        c.remove("h100-1", "uid", Stamp(1, 3), at(5))
    c.observe(at(9))
    assert busy_minutes(c, 0, 9)[-1] in (5, 6)


def test_a_job_keeps_its_gpus_when_an_earlier_one_ends() -> None:
    c = cluster()
    submit(c, "first", 1, 0, lasts=5)
    submit(c, "second", 2, 1)
    assert pods(c, 2) == [["first"], ["second"], ["second"], []]
    assert pods(c, 6) == [[], ["second"], ["second"], []]
    submit(c, "third", 2, 7)
    assert pods(c, 8) == [["third"], ["second"], ["second"], ["third"]]


def test_pods_have_their_namespace() -> None:
    c = cluster()
    submit(c, "first", 1, 0)
    first = next(s for s in SimulatedTelemetry("east", c).latest([A], at(1)).samples if s.index == 0)
    assert first.pods == (PodRef("vision-train", "first"),)


def test_a_dead_node_is_stale_then_absent_and_its_charts_have_a_gap() -> None:
    c = cluster(NodeDies(node="h100-1", at=at(10), until=at(20)))
    source = SimulatedTelemetry("east", c)
    stale = source.latest([A, B], at(12)).samples
    assert {s.gpu.node: s.is_stale(at(12)) for s in stale} == {"h100-1": True, "h100-2": False}
    assert {s.gpu.node for s in source.latest([A, B], at(16)).samples} == {"h100-2"}
    query = Query(frozenset({A}), (Metric.POWER, Metric.TEMPERATURE, Metric.XID), NOW, at(30), MINUTE)
    for series in source.range(query, at(30)).series:
        assert [(p.at - NOW) // MINUTE for p in series.points] == [*range(11), *range(20, 31)]


def test_a_lost_gpu_has_no_values_and_no_zeros() -> None:
    c = cluster(GpuFails(node="h100-1", gpu=2, at=at(10), xid=79, lost=True))
    source = SimulatedTelemetry("east", c)
    assert sorted(s.index for s in source.latest([A], at(16)).samples) == [0, 1, 3]
    query = Query(frozenset({A}), (Metric.POWER,), at(12), at(16), MINUTE)
    assert len(source.range(query, at(16)).series) == 3


def test_the_last_xid_stays() -> None:
    c = cluster(GpuFails(node="h100-1", gpu=0, at=at(10), until=at(11), xid=31))
    query = Query(frozenset({A}), (Metric.XID,), at(8), at(14), MINUTE)
    series = SimulatedTelemetry("east", c).range(query, at(14)).series
    assert sorted(sorted(p.value for p in s.points)[-1] for s in series) == [0, 0, 0, 31]


def test_a_silent_api_is_told_and_raises_nothing() -> None:
    source = SimulatedTelemetry("east", cluster(ApiFails(at=at(5), until=at(6))))
    query = Query(frozenset({A}), (Metric.POWER,), NOW, at(5), MINUTE)
    for found in (source.latest([A], at(5)), source.range(query, at(5))):
        assert [(s.cluster, s.reason) for s in found.silences] == [("east", "MetricsUnreachable")]


def test_nodes_of_other_clusters_and_unknown_ones_have_no_values() -> None:
    source = SimulatedTelemetry("east", cluster())
    assert source.latest([("west", "h100-1"), ("east", "gone")], NOW).samples == ()


def test_points_of_the_future_do_not_exist() -> None:
    query = Query(frozenset({A}), (Metric.POWER,), NOW, at(10), MINUTE)
    series = SimulatedTelemetry("east", cluster()).range(query, at(3)).series
    assert {s.points[-1].at for s in series} == {at(3)}
