"""An applier goes by the present too, and by no clock that others contradict."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from schemas.status.gpr_status import Phase
from tests.reconciler.timekeeping.test_clock_doubt import HOUR, MINUTE, SECOND, Hands
from tests.support.pulled import PulledWorld
from tests.support.world import at, cluster, gpr, gpr_path

FILES = {
    "clusters/east.yaml": cluster(access={"pull": True}),
    gpr_path("a/x"): gpr("a", "x", duration="40m"),
}


def holder(world: PulledWorld) -> str:
    lease = world.drivers["east"].observe(world.now).nodes["h100-1"].lease
    return "" if lease is None else lease.request


def go_on(world: PulledWorld, until: datetime) -> None:
    """Controller and applier look every quarter of a minute."""
    while world.now < until:
        world.appliers["east"].cycle(world.now)
        world.log.append(world.controller.cycle(world.now))
        world.now += timedelta(seconds=15)


def restarted(off: timedelta) -> tuple[PulledWorld, Hands]:
    """a/x runs from 08:02 to 08:42; at 08:10 its cluster's applier begins anew, by a clock that is off by so much."""
    world = PulledWorld(FILES)
    world.run(at(10))
    assert holder(world) == "a/x"
    hands = Hands(world, off)  # type: ignore[arg-type]
    world.appliers["east"] = world.apply("east", clock=hands)
    return world, hands


def test_an_applier_whose_clock_is_back_takes_nothing_and_says_why():
    world, hands = restarted(-HOUR)
    go_on(world, at(20))
    assert holder(world) == "a/x"
    assert not world.facts().clusters["east"].reachable
    assert any(
        "clock says" in e.message for c in world.log for e in c.events if e.reason == "ClusterUnreachable"
    )
    hands.off = timedelta()
    go_on(world, at(60))
    assert world.status("a/x").phase is Phase.COMPLETED
    assert world.status("a/x").end_time == at(42)


def test_an_applier_whose_clock_is_back_ends_what_is_over_by_it_all_the_same():
    world, hands = restarted(-5 * MINUTE)
    go_on(world, at(45.5))
    assert holder(world) == "a/x"
    go_on(world, at(48))
    assert holder(world) == ""
    assert hands.off == -5 * MINUTE


def test_an_applier_that_stood_still_while_its_lease_was_extended_leaves_the_nodes(monkeypatch):
    """It fetched before the end and acts after it: the extension came in between."""
    world, _ = restarted(timedelta())
    world.run(at(41.9))
    applier = world.appliers["east"]
    opened = applier._open

    def paused(*args: Any) -> Any:
        monkeypatch.setattr(applier, "_open", opened)
        world.commit({gpr_path("a/x"): gpr("a", "x", duration="40m", extend="0d0h30m")})
        world.controller.cycle(world.now)
        world.now += 30 * SECOND
        return opened(*args)

    monkeypatch.setattr(applier, "_open", paused)
    applier.cycle(world.now)
    assert world.now > at(42)
    assert holder(world) == "a/x"
