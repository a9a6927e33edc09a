"""Facts as numbers: what stands at an instant, and what one commit added (Prometheus metrics)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.model.facts import Facts, Wanted
from reconciler.processes import gauges
from schemas.status.gpr_status import Cause
from tests.support.world import World, at, cluster, gpr, gpr_path

FILES = {
    gpr_path("a/x"): gpr("a", "x", duration="20m"),
    gpr_path("a/y"): gpr("a", "y", duration="20m"),
    gpr_path("b/z"): gpr("b", "z", nodes=2, duration="20m"),
}


def known(world: World) -> tuple[Facts, Wanted]:
    """What the last cycle led to."""
    cycle = world.log[-1]
    assert cycle.facts is not None
    assert cycle.wanted is not None
    return cycle.facts, cycle.wanted


@pytest.fixture
def running() -> World:
    """At 08:05: a/x runs, a/y and b/z wait; one node of two is leased."""
    world = World(FILES)
    world.run(at(5))
    return world


def test_requests_by_slice_and_phase(running):
    facts, _ = known(running)
    assert gauges.requests(facts) == {("a", "Provisioned"): 1, ("a", "Queued"): 1, ("b", "Queued"): 1}


def test_leases_and_leased_nodes_by_pool_zero_too():
    world = World(FILES | {"clusters/west.yaml": cluster("west")})
    world.run(at(5))
    facts, wanted = known(world)
    assert gauges.leases(facts, wanted) == {("east", "h100"): 1, ("west", "h100"): 0}
    assert gauges.leased_nodes(facts, wanted) == {("east", "h100"): 1, ("west", "h100"): 0}


def test_nodes_by_state_zero_too(running):
    running.report("h100-2", healthy=False, reason="GpuLost", message="gone")
    running.run(at(7))
    found = gauges.nodes(*known(running))
    assert found["east", "h100", "Ready"] == 1
    assert found["east", "h100", "Unhealthy"] == 1
    assert found["east", "h100", "Quarantined"] == 0
    assert sum(found.values()) == 2


def test_a_cluster_that_is_silent_is_0(running, monkeypatch):
    assert gauges.clusters_reachable(*known(running)) == {("east",): 1}
    monkeypatch.setattr(running.drivers["east"], "observe", lambda _: (_ for _ in ()).throw(OSError("down")))
    running.run(at(8))
    assert gauges.clusters_reachable(*known(running)) == {("east",): 0}


@pytest.mark.parametrize(
    ("minutes", "want"),
    [
        pytest.param(22, 0, id="the end"),
        pytest.param(23, 0, id="a minute is what an end may take"),
        pytest.param(23.1, 1, id="past its strict end and still served"),
    ],
)
def test_an_end_is_overdue_when_its_lease_still_stands(running, minutes, want):
    """The scrape's own time counts: a loop that hangs shows it."""
    facts, wanted = known(running)
    assert gauges.ends_overdue(facts, wanted, at(minutes)) == {("east",): want}


@pytest.mark.parametrize(("minutes", "want"), [(27.9, 0), (28.1, 1)])
def test_an_end_is_overdue_when_its_nodes_are_not_clean_after_the_drain(running, minutes, want):
    running.run(at(22))
    facts, wanted = known(running)
    assert gauges.ends_overdue(facts, wanted, at(minutes)) == {("east",): want}


@pytest.mark.parametrize(("minutes", "want"), [(3, 0), (3.1, 1), (23, 1), (23.1, 2)])
def test_a_start_is_overdue_when_nothing_was_handed_over(minutes, want):
    world = World({path: FILES[path] for path in (gpr_path("a/x"), gpr_path("a/y"))})
    world.run(at(1))
    facts, _ = known(world)
    assert gauges.starts_overdue(facts, at(minutes)) == {(): want}


def test_slips_are_counted_once_by_their_cause(running):
    before, _ = known(running)
    running.file("b/urgent", nodes=2, priority=290, duration="30m")
    running.run(at(6))
    after, _ = known(running)
    assert gauges.slipped(before, after) == {Cause.HIGHER_RANK_ARRIVED: 2}
    assert gauges.slipped(after, after) == {}
    assert gauges.slipped(None, after) == {}, "a controller that takes over counts nothing twice"


def test_the_delay_of_a_start_is_from_the_committed_instant_to_the_hand_over(running):
    delays = [d for c in running.log for d in gauges.start_delays_s(c.facts or Facts(c.at), c.events)]
    assert len(delays) == 1
    assert timedelta() <= timedelta(seconds=delays[0]) <= timedelta(seconds=2)
