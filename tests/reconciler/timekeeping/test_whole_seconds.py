"""Clocks have fractions of seconds, documents do not: a controller goes by what it wrote (design section 7)."""

from __future__ import annotations

from datetime import timedelta

from reconciler.clusters.simulated.scripted_faults import ApiFails
from tests.support.laws import Laws
from tests.support.world import World, at

PART = timedelta(seconds=0.6)


def test_facts_between_two_seconds_are_those_that_others_read() -> None:
    world = World()
    laws = Laws(world)
    world.now = at(0) + PART
    world.file("a/x", duration="10m")
    world.run(at(1) + PART)
    world.now = at(20) + PART  # no cycle ran when it was to start
    world.run(world.now)
    laws.reads_back()
    assert laws.broken == []
    slips = world.status("a/x").slips
    assert [slip.now for slip in slips] == [world.log[-1].facts.requests["a/x"].estimated_start_time]  # type: ignore[union-attr]


def test_a_start_that_waits_for_a_cluster_is_put_off_to_a_whole_second() -> None:
    """Its checks end between two seconds, because they began there."""
    world = World()
    laws = Laws(world)
    world.file("a/x", duration="10m")
    world.run(at(0))
    world.drivers["east"].inject(ApiFails(at=at(0), until=at(3) + PART))
    world.now = at(3.2) + PART
    world.run(at(5))
    laws.reads_back()
    assert laws.broken == []
    assert all(slip.now is None or not slip.now.microsecond for slip in world.status("a/x").slips)
