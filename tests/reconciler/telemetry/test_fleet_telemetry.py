"""One page asks many clusters: slow ones are silent, broken ones stop no other, answers are shared (H5, H16)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Event

import pytest

from reconciler.telemetry.fleet_telemetry import AGAIN, FleetTelemetry
from reconciler.telemetry.shared_answers import AT_ONCE, MOST_RANGES
from reconciler.telemetry.telemetry_port import (
    SHARED,
    GpuKey,
    GpuSample,
    Latest,
    Metric,
    NodeKey,
    Point,
    Query,
    Ranges,
    Series,
    Silence,
)
from schemas.documents.cluster import ClusterSpec
from schemas.errors import Fault, UserError

NOW = datetime(2026, 11, 20, 8, tzinfo=UTC)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
A, B, C = ("east", "n1"), ("east", "n2"), ("west", "n1")
SPEC = ClusterSpec.model_validate(
    {
        "driver": "embedded",
        "pools": ({"name": "n", "gpuShape": "H100", "gpusPerNode": 1, "memoryPerGpu": 80, "nodes": 2},),
    }
)


class Source:
    """One GPU a node; asked questions are counted, and may wait or break."""

    def __init__(self) -> None:
        self.asked: list[Collection[NodeKey] | Query] = []
        self.closed = 0
        self.goes_on = Event()
        self.goes_on.set()
        self.breaks: Exception | None = None
        self.silences: tuple[Silence, ...] = ()

    def latest(self, nodes: Collection[NodeKey], now: datetime) -> Latest:
        self._took(nodes)
        return Latest(
            tuple(GpuSample(GpuKey(*node, "GPU"), now, {}) for node in sorted(nodes)), self.silences
        )

    def range(self, query: Query, now: datetime) -> Ranges:
        self._took(query)
        points = tuple(Point(at, 1.0) for at in query.instants())
        return Ranges(
            tuple(Series(GpuKey(*n, "GPU"), Metric.POWER, query.window, points) for n in sorted(query.nodes)),
            self.silences,
        )

    def close(self) -> None:
        self.closed += 1

    def _took(self, question: Collection[NodeKey] | Query) -> None:
        self.asked.append(question)
        assert self.goes_on.wait(60)
        if self.breaks is not None:
            raise self.breaks


class World:
    def __init__(self, deadline_s: float = 5) -> None:
        self.sources = {"east": Source(), "west": Source()}
        self.opened: list[str] = []
        self.refuses: Exception | None = None
        self.fleet = FleetTelemetry(self._open, timedelta(seconds=deadline_s))
        self.follow()

    def follow(self, now: datetime = NOW, *names: str, spec: ClusterSpec = SPEC) -> None:
        self.fleet.follow(dict.fromkeys(names or self.sources, spec), now)

    def _open(self, name: str, spec: ClusterSpec) -> Source:
        self.opened.append(name)
        if self.refuses is not None:
            raise self.refuses
        return self.sources[name]

    def nodes(self, *nodes: NodeKey, now: datetime = NOW) -> list[NodeKey]:
        return [s.gpu.at_node for s in self.fleet.latest(nodes, now).samples]


@pytest.fixture
def world():
    made = World()
    yield made
    for source in made.sources.values():
        source.goes_on.set()
    made.fleet.close()


def query(*nodes: NodeKey, minutes: float = 5, now: datetime = NOW) -> Query:
    return Query(frozenset(nodes), (Metric.POWER,), now - minutes * MINUTE, now, MINUTE)


def reasons(found: Latest | Ranges) -> list[tuple[str, str]]:
    return [(s.cluster, s.reason) for s in found.silences]


def test_each_cluster_is_asked_for_its_own_nodes(world) -> None:
    assert world.nodes(A, B, C, ("north", "n1")) == [A, B, C]
    assert [set(nodes) for nodes in world.sources["east"].asked] == [{A, B}]
    assert [set(nodes) for nodes in world.sources["west"].asked] == [{C}]
    found = world.fleet.range(query(A, C), NOW)
    assert [s.gpu.at_node for s in found.series] == [A, C]


def test_answers_are_shared_between_callers_with_other_nodes(world) -> None:
    assert world.nodes(A) == [A]
    assert world.nodes(A, B, now=NOW + 10 * SECOND) == [A, B]
    assert world.nodes(B, now=NOW + 20 * SECOND) == [B]
    assert [set(nodes) for nodes in world.sources["east"].asked] == [{A}, {B}]


def test_after_fifteen_seconds_it_is_asked_again(world) -> None:
    for second in (0, 14, 15):
        world.nodes(A, now=NOW + second * SECOND)
        world.fleet.range(query(A), NOW + second * SECOND)
    assert len(world.sources["east"].asked) == 2 * 2


def test_a_clock_that_was_set_back_asks_again(world) -> None:
    world.nodes(A)
    world.nodes(A, now=NOW - MINUTE)
    assert len(world.sources["east"].asked) == 2


def test_ranges_with_the_same_points_are_shared(world) -> None:
    later = NOW + 5 * SECOND
    world.fleet.range(query(A, now=later), later)
    world.fleet.range(query(A, now=later + SECOND), later + SECOND)  # a little later: the same points
    assert len(world.sources["east"].asked) == 1
    world.fleet.range(query(A, minutes=6), later)
    world.fleet.range(query(B), later)
    assert len(world.sources["east"].asked) == 3


def test_few_ranges_are_kept(world) -> None:
    for minutes in range(MOST_RANGES + 1):
        world.fleet.range(query(A, minutes=minutes), NOW)
    asked = len(world.sources["east"].asked)
    world.fleet.range(query(A, minutes=MOST_RANGES), NOW)
    assert len(world.sources["east"].asked) == asked
    world.fleet.range(query(A, minutes=0), NOW)
    assert len(world.sources["east"].asked) == asked + 1


def test_a_slow_source_is_silent_and_its_late_answer_serves_the_next() -> None:
    world = World(deadline_s=0.05)
    east = world.sources["east"]
    east.goes_on.clear()
    for found, got in (
        (world.fleet.latest([A, C], NOW), lambda f: [s.gpu.at_node for s in f.samples]),
        (world.fleet.range(query(A, C), NOW), lambda f: [s.gpu.at_node for s in f.series]),
    ):
        assert got(found) == [C]
        assert reasons(found) == [("east", "MetricsSlow")]
    east.goes_on.set()
    _until(lambda: world.nodes(A, C) == [A, C])
    assert len(east.asked) == 2
    world.fleet.close()


def test_a_source_that_hangs_costs_few_threads() -> None:
    world = World(deadline_s=0.01)
    east = world.sources["east"]
    east.goes_on.clear()
    for number in range(3 * AT_ONCE):
        assert reasons(world.fleet.latest([("east", f"n{number}")], NOW)) == [("east", "MetricsSlow")]
    assert reasons(world.fleet.range(query(A), NOW)) == [("east", "MetricsSlow")]
    assert len(east.asked) == AT_ONCE
    east.goes_on.set()
    world.fleet.close()


def test_callers_at_once_ask_once(world) -> None:
    east = world.sources["east"]
    east.goes_on.clear()
    with ThreadPoolExecutor(8) as callers:
        futures = [callers.submit(world.nodes, A) for _ in range(8)]
        _until(lambda: bool(east.asked))
        east.goes_on.set()
        assert [f.result() for f in futures] == [[A]] * 8
    assert len(east.asked) == 1


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        pytest.param(Fault("no answer", "MetricsUnreachable"), "MetricsUnreachable", id="a fault"),
        pytest.param(
            UserError("add the file", "MetricsAuthMissing"), "MetricsAuthMissing", id="a missing file"
        ),
        pytest.param(ZeroDivisionError("secret"), "MetricsUnreadable", id="a mistake of ours"),
    ],
)
def test_a_broken_source_takes_nothing_from_others(world, broken, reason) -> None:
    world.sources["east"].breaks = broken
    for found in (world.fleet.latest([A, C], NOW), world.fleet.range(query(A, C), NOW)):
        assert reasons(found) == [("east", reason)]
        assert all("secret" not in s.message for s in found.silences)
    assert world.nodes(A, C) == [C]


def test_silences_of_nodes_reach_those_who_asked_for_them(world) -> None:
    world.sources["east"].silences = (
        Silence("east", "NoMetrics", "no agent", "n1"),
        Silence("east", "MetricsUnreachable", "no answer", "n2"),
    )
    world.nodes(A, B)
    assert [s.node for s in world.fleet.latest([A], NOW).silences] == ["n1"]
    assert [s.node for s in world.fleet.latest([A, B], NOW).silences] == ["n1", "n2"]


def test_a_cluster_without_a_source_says_so_and_is_tried_again_after_a_minute(world) -> None:
    world.refuses = Fault("no source", "NoMetrics")
    other = SPEC.edited(paused=True)
    world.follow(NOW, spec=other)
    assert reasons(world.fleet.latest([A], NOW)) == [("east", "NoMetrics")]
    assert reasons(world.fleet.range(query(A), NOW)) == [("east", "NoMetrics")]
    world.refuses = None
    world.follow(NOW + AGAIN / 2, spec=other)
    assert world.nodes(A) == []
    world.follow(NOW + AGAIN, spec=other)
    assert world.nodes(A) == [A]


def test_sources_follow_the_manifests(world) -> None:
    east, west = world.sources["east"], world.sources["west"]
    world.follow()
    assert (world.opened, east.closed) == (["east", "west"], 0)
    world.follow(NOW, "east", spec=SPEC.edited(paused=True))
    assert (world.opened, east.closed, west.closed) == (["east", "west", "east"], 1, 1)
    assert world.nodes(A, C) == [A]


def test_a_shared_answer_serves_for_the_time_that_the_port_says() -> None:
    assert timedelta(seconds=15) == SHARED


def _until(holds: Callable[[], bool]) -> None:
    """Polls what other threads do; bounded by the test's own patience."""
    ticking = Event()
    for _ in range(1000):
        if holds():
            return
        ticking.wait(0.01)
    raise AssertionError("it does not happen")
