"""Events of crossings: told once, with the request that has the node, and over once (H6)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from reconciler.health.gpu_alerts import MOST_ALERTS, REASONS, Alerts, alert_events, with_alerts
from reconciler.model.events import Event
from reconciler.model.facts import NodeKey
from reconciler.status.parse import facts_of, record_from
from reconciler.status.render import render
from schemas.documents.cluster import Cluster
from schemas.status.gpu_faults import ALERT_NAMES
from schemas.status.node_status import AgentReport, GpuReport, NodeMetadata
from tests.support.world import World, at, cluster, gpr, gpr_path, parsed

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
EAST = parsed("clusters/east.yaml", cluster("east"))
assert isinstance(EAST, Cluster)
CLUSTERS = {"east": EAST.spec}


def gpus(*watched: tuple[str, ...]) -> tuple[GpuReport, ...]:
    return tuple(
        GpuReport(uuid=f"GPU-{i}", index=i, product="H100", memory_mib=1, healthy=True, watched=reasons)
        for i, reasons in enumerate(watched)
    )


def reports(node: str, *watched: tuple[str, ...]) -> dict[NodeKey, AgentReport]:
    report = AgentReport(
        metadata=NodeMetadata(name=node), cluster="east", node=node, at=NOW, healthy=True, gpus=gpus(*watched)
    )
    return {("east", node): report}


def told(*steps: dict[NodeKey, AgentReport]) -> list[list[tuple[str, str]]]:
    """The events of each step, a minute apart."""
    alerts: Alerts = {}
    found = []
    for number, seen in enumerate(steps):
        now = NOW + number * MINUTE
        after = with_alerts(alerts, seen, CLUSTERS, now)
        found.append([(str(e.reason), e.message) for e in alert_events(alerts, after, {}, now)])
        alerts = after
    return found


def test_a_crossing_is_told_when_it_begins_and_when_it_is_over() -> None:
    hot = reports("h100-1", (), ("GpuHot",))
    (begun,), nothing, (over,) = told(hot, hot, reports("h100-1", (), ()))
    assert begun == (
        "GpuHot",
        "GPU 1 of east/h100-1 is hot; check the node's cooling and its neighbours in the rack",
    )
    assert nothing == []
    assert over == ("GpuAlertOver", "GpuHot is over: GPU 1 of east/h100-1")


def test_gpus_of_a_node_are_told_together_and_further_ones_alone() -> None:
    both = (("GpuHot",), ("GpuHot",), ())
    first, second = told(reports("h100-1", *both), reports("h100-1", ("GpuHot",), (), ("GpuHot",)))
    assert [text.partition(" is ")[0] for _, text in first] == ["each of GPUs 0, 1 of east/h100-1"]
    assert [text.partition(" is ")[0] for _, text in second] == ["GPU 2 of east/h100-1", "GpuHot"]


@pytest.mark.parametrize(
    ("reason", "event"),
    [
        ("GpuHot", "GpuHot"),
        ("MemoryHot", "GpuMemoryHot"),
        ("Throttled", "GpuThrottled"),
        ("PowerHigh", "GpuPowerHigh"),
        ("Xid31", "GpuXid"),
    ],
)
def test_each_kind_has_its_event(reason: str, event: str) -> None:
    assert [[told for told, _ in step] for step in told(reports("h100-1", (reason,)))] == [[event]]


def test_every_kind_that_agents_notice_is_told_and_others_are_shown_only() -> None:
    assert {*ALERT_NAMES, "Xid"} == set(REASONS)
    assert told(reports("h100-1", ("RemapPending", "PcieNarrow"))) == [[]]


def test_a_cluster_that_is_gone_has_no_alerts() -> None:
    assert with_alerts({}, reports("h100-1", ("GpuHot",)), {}, NOW) == {}


def test_without_news_nothing_changes() -> None:
    seen = reports("h100-1", ("GpuHot",))
    before = with_alerts({}, seen, CLUSTERS, NOW)
    assert with_alerts(before, seen, CLUSTERS, NOW + MINUTE) is before


def test_a_flood_is_bounded_and_what_was_told_stays() -> None:
    last = reports("z", ("GpuHot",))
    before = with_alerts({}, last, CLUSTERS, NOW)
    flood = {key: one for i in range(MOST_ALERTS + 5) for key, one in reports(f"n{i}", ("GpuHot",)).items()}
    after = with_alerts(before, flood | last, CLUSTERS, NOW)
    assert len(after["east"]) == MOST_ALERTS
    assert "z" in {one.node for one in after["east"]}


def events_of(world: World, reason: str) -> list[Event]:
    return [event for cycle in world.log for event in cycle.events if event.reason == reason]


def test_the_members_of_the_slice_that_has_the_node_are_told() -> None:
    """The event names the request, so it goes the way of the slice's notifications; the node stays in service."""
    world = World({gpr_path("a/x"): gpr("a", "x")})
    world.run(at(5))
    status = world.status("a/x")
    assert status.assignment is not None
    node = status.assignment.nodes[0]
    world.report(node, healthy=True, gpus=gpus(("GpuHot", "GpuIdle"), ()))
    world.run(at(8))
    (hot,), (idle,) = events_of(world, "GpuHot"), events_of(world, "GpuIdle")
    assert (hot.request, hot.node, hot.warning) == ("a/x", node, True)
    assert idle.request == "a/x"
    world.start()  # a new controller tells nothing twice
    world.run(at(12))
    assert len(events_of(world, "GpuHot")) == 1
    world.report(node, healthy=True, gpus=gpus((), ()))
    world.run(at(15))
    assert {event.message for event in events_of(world, "GpuAlertOver")} == {
        f"GpuHot is over: GPU 0 of east/{node}",
        f"GpuIdle is over: GPU 0 of east/{node}",
    }
    after = world.status("a/x")
    assert after.assignment is not None
    assert after.assignment.nodes == (node,)


def test_an_idle_gpu_that_no_request_has_is_not_told() -> None:
    world = World({})
    world.run(at(1))
    world.report("h100-1", healthy=True, gpus=gpus(("GpuIdle",)))
    world.run(at(5))
    assert events_of(world, "GpuIdle") == []


def test_alerts_are_written_and_read_back() -> None:
    world = World({})
    world.run(at(1))
    world.report("h100-1", healthy=True, gpus=gpus(("Throttled",), ("Throttled",)))
    world.run(at(5))
    facts, wanted = world.log[-1].facts, world.log[-1].wanted
    assert facts is not None
    assert wanted is not None
    files = render(facts, wanted, (), ())
    assert "alerts/east.yaml" in files
    records = {p: r for p, data in files.items() if (r := record_from(p, data)) is not None}
    assert facts_of(records, facts.at, facts.intent).alerts == facts.alerts
    assert [(one.node, one.reason, one.gpus) for one in facts.alerts["east"]] == [
        ("h100-1", "Throttled", (0, 1))
    ]
