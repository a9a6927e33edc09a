"""What every source of telemetry must show (H5, H16): simulated clusters, agents' rings, and a real Prometheus.

All three watch one half hour of one cluster (tests/support/watched.py), so they must tell the same of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta

import pytest

from agent.telemetry.exporter import Exporter
from reconciler.clusters.simulated.scripted_faults import ApiFails
from reconciler.telemetry.prometheus_telemetry import PrometheusTelemetry
from reconciler.telemetry.ring_format import LATEST, asked
from reconciler.telemetry.ring_telemetry import RingTelemetry
from reconciler.telemetry.simulated_telemetry import SimulatedTelemetry
from reconciler.telemetry.telemetry_port import GpuSample, Metric, PodRef, Query, Series, Telemetry
from schemas.documents.metrics import Prometheus
from schemas.errors import Fault
from tests.support.prometheus import prometheus
from tests.support.watched import CHANGE, DEATH, LOSS, LOST, MINUTE, NODES, SECOND, A, B, Watched, at, cluster

Opens = Callable[[datetime], Telemetry]
"""The source at an instant."""
GAUGES = (Metric.UTILISATION, Metric.TEMPERATURE, Metric.POWER, Metric.MEMORY_USED, Metric.THROTTLE)


class Agents:
    """Answers like agents of nodes that live."""

    def __init__(self, exporters: Mapping[tuple[str, str], Exporter], now: datetime) -> None:
        self._exporters, self._now = exporters, now

    def ask(self, node: str, path: str, parameters: Mapping[str, str]) -> bytes:
        key = ("east", node)
        if key not in self._exporters:
            raise Fault(f"node {node} has no agent that shows telemetry", "NoMetrics")
        exporter = self._exporters[key]
        return exporter.latest(self._now) if path == LATEST else exporter.range(asked(dict(parameters), key))


@pytest.fixture(scope="module")
def watched() -> Watched:
    return Watched()


@pytest.fixture(scope="module", params=["simulated", "rings", "prometheus"])
def opens(request, watched, tmp_path_factory) -> Iterator[Opens]:
    if request.param == "simulated":
        yield lambda now: SimulatedTelemetry("east", cluster(now))
    elif request.param == "rings":
        yield lambda now: RingTelemetry("east", Agents(watched.exporters(now), now))
    else:
        with prometheus(tmp_path_factory.mktemp("prometheus"), watched.pages()) as url:
            source = PrometheusTelemetry("east", Prometheus(url=url), None)
            yield lambda _: source


def sample(source: Telemetry, node: tuple[str, str], index: int, now: datetime) -> GpuSample | None:
    return next((s for s in source.latest([node], now).samples if s.index == index), None)


def series(
    source: Telemetry, until: float, *metrics: Metric, step=MINUTE, since=1.0, nodes=NODES
) -> list[Series]:
    query = Query(frozenset(nodes), metrics, at(since), at(until), step)
    return list(source.range(query, at(until)).series)


def minutes(of: Series) -> list[float]:
    return [(point.at - at(0)) / MINUTE for point in of.points]


def test_the_newest_values_are_those_that_were_read(opens, watched) -> None:
    source, now = opens(at(8)), at(8)
    for index in range(4):
        found = sample(source, A, index, now)
        assert found is not None
        assert found.product == "H100-80GB"
        assert now - found.at <= 15 * SECOND
        for metric in Metric:
            assert found.values[metric] == pytest.approx(watched.value(A, index, metric, now), rel=1e-3), (
                metric
            )


def test_nodes_that_were_not_asked_for_are_not_answered(opens) -> None:
    source = opens(at(8))
    assert {s.gpu.at_node for s in source.latest([B], at(8)).samples} == {B}
    assert {s.gpu.at_node for s in series(source, 8, Metric.POWER, nodes=[B])} == {B}
    for nowhere in ([], [("west", "h100-1")]):
        assert source.latest(nowhere, at(8)).samples == ()
        assert series(source, 8, Metric.POWER, nodes=nowhere) == []


def test_samples_and_series_come_in_order(opens) -> None:
    source = opens(at(8))
    samples = [s.gpu for s in source.latest(NODES, at(8)).samples]
    assert samples == sorted(samples)
    found = [s.gpu for s in series(source, 8, Metric.POWER, Metric.TEMPERATURE)]
    assert found == sorted(found)
    assert [s.metric for s in series(source, 8, Metric.POWER, Metric.TEMPERATURE)][:2] == [
        Metric.POWER,
        Metric.TEMPERATURE,
    ]


def test_pods_are_those_of_now(opens) -> None:
    for minute, pod in ((CHANGE - 1, "train"), (CHANGE + 0.5, "tune")):
        found = sample(opens(at(minute)), A, 0, at(minute))
        assert found is not None
        assert found.pods == (PodRef("vision-train", pod),)
    free = sample(opens(at(5)), B, 0, at(5))
    assert free is not None
    assert free.pods == ()


def test_a_lost_gpu_grows_stale_and_is_gone_and_never_zero(opens) -> None:
    soon = sample(opens(at(LOSS + 2)), A, LOST, at(LOSS + 2))
    assert soon is None or (soon.is_stale(at(LOSS + 2)) and soon.values[Metric.POWER] > 0)
    assert sample(opens(at(LOSS + 6)), A, LOST, at(LOSS + 6)) is None
    assert sample(opens(at(LOSS + 6)), A, 0, at(LOSS + 6)) is not None


def test_a_dead_node_grows_stale_or_silent_and_is_gone(opens) -> None:
    now = at(DEATH + 2)
    found = opens(now).latest(NODES, now)
    of_dead = [s for s in found.samples if s.gpu.at_node == B]
    silent = {s.node for s in found.silences}
    assert all(s.is_stale(now) for s in of_dead)
    assert of_dead or silent == {B[1]}
    assert not any(s.is_stale(now) for s in found.samples if s.gpu.at_node == A and s.index != LOST)
    later = at(DEATH + 6)
    assert {s.gpu.at_node for s in opens(later).latest(NODES, later).samples} == {A}


def test_points_lie_on_the_grid_with_the_windows_of_the_question(opens) -> None:
    for step, want in ((MINUTE, 1.0), (30 * SECOND, 0.5)):
        for found in series(opens(at(9)), 9, *GAUGES, step=step, since=2):
            assert minutes(found) == [2 + want * number for number in range(int(7 / want) + 1)]
            assert found.window == MINUTE


@pytest.mark.parametrize("metric", GAUGES)
def test_a_point_summarises_its_minute(opens, watched, metric) -> None:
    """The same for all, as near as differing samples allow."""
    found = [s for s in series(opens(at(9)), 9, metric, since=4) if s.gpu.at_node == A]
    assert len(found) == 4
    uuids = sorted({r.uuid: r.index for r in watched.read[at(0)][A]}.items())
    for (_, index), of_gpu in zip(uuids, found, strict=True):
        for point in of_gpu.points:
            read = [watched.value(A, index, metric, point.at - n * 10 * SECOND) for n in range(6)]
            want = {"mean": sum(read) / 6, "highest": max(read), "last": read[0]}[metric.summary]
            assert point.value == pytest.approx(want, rel=0.06, abs=1), metric


def test_what_was_not_measured_has_no_points(opens) -> None:
    """A dead node's charts end, and so do a lost GPU's; the window before still knows them."""
    found = series(opens(at(29)), 29, Metric.POWER, Metric.XID)
    ends = {(s.gpu.at_node, s.metric): minutes(s)[-1] for s in found if s.gpu.at_node == B}
    assert ends == {} or set(ends.values()) <= {DEATH, DEATH + 0.0, DEATH + 1.0}
    of_a = sorted(minutes(s)[-1] for s in found if s.gpu.at_node == A and s.metric is Metric.POWER)
    assert of_a[1:] == [29, 29, 29]
    assert LOSS <= of_a[0] <= LOSS + 1


def test_two_sources_of_one_gpu_are_one_series(opens) -> None:
    """Its pod changed in the middle: in Prometheus that is another series."""
    found = series(opens(at(14)), 14, Metric.UTILISATION, Metric.ENERGY)
    assert len(found) == 2 * 2 * 4
    for of_gpu in found:
        assert minutes(of_gpu) == [float(minute) for minute in range(1, 15)]


def test_an_empty_time_has_no_series(opens) -> None:
    now = at(20)
    query = Query(frozenset(NODES), (Metric.POWER,), now + MINUTE, now + 5 * MINUTE, MINUTE)
    assert opens(now).range(query, now).series == ()


def test_energy_is_in_joules(opens, watched) -> None:
    """Millijoules pass every bound that blanks are cut by."""
    found = sample(opens(at(8)), A, 0, at(8))
    assert found is not None
    assert found.values[Metric.ENERGY] > 1e8
    assert found.values[Metric.ENERGY] == pytest.approx(watched.value(A, 0, Metric.ENERGY, at(8)))


def test_a_silent_source_is_told_and_raises_nothing(opens, request) -> None:
    """Each in its way, at once."""
    kind = request.node.callspec.params["opens"]
    now = at(8)
    source: Telemetry
    if kind == "prometheus":
        source = PrometheusTelemetry("east", Prometheus(url="http://127.0.0.1:9"), None)
    elif kind == "rings":
        source = RingTelemetry("east", Agents({}, now))
    else:
        broken = cluster(now)
        broken.inject(ApiFails(at=now, until=now + timedelta(hours=1)))
        source = SimulatedTelemetry("east", broken)
    query = Query(frozenset(NODES), (Metric.POWER,), at(1), now, MINUTE)
    for found in (source.latest(NODES, now), source.range(query, now)):
        assert {s.cluster for s in found.silences} == {"east"}
        assert {s.reason for s in found.silences} <= {"MetricsUnreachable", "NoMetrics"}
        assert all(s.message for s in found.silences)
