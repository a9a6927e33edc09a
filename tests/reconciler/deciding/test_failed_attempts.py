"""A quiet cycle makes one plan at most, whatever was asked for in vain; what changes is tried at once (D17, E7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import pytest

from reconciler.deciding import decide, favour_delays
from reconciler.deciding import preemption as sending_away
from reconciler.deciding.failed_attempts import LOOK_AGAIN_S
from reconciler.planning import queue_place
from reconciler.planning import snapshot as building
from scheduler.choices import preemption
from scheduler.choices.preemption import preempted
from scheduler.plan import plan
from scheduler.snapshot import Plan, Snapshot
from tests.support.world import World, at, cluster, gpr_path, project, slice_

PLANNERS = (decide, sending_away, favour_delays, queue_place, preemption, building)


class Counting:
    """Counts the plans that a controller makes."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.plans = 0
        for module in PLANNERS:
            patch.setattr(module, "plan", self._plan)
        patch.setattr(sending_away, "preempted", self._look)

    def _plan(self, snapshot: Snapshot) -> Plan:
        self.plans += 1
        return plan(snapshot)

    def _look(self, *known: Any) -> Any:
        """A look at whom to send away costs about what a plan costs."""
        self.plans += 1
        return preempted(*known)

    def in_a_cycle(self, world: World, minute: float) -> int:
        """Plans of one cycle, alone at that minute."""
        self.plans, world.now = 0, at(minute)
        world.controller.cycle(world.now)
        return self.plans


def refused_extension() -> World:
    """Somebody is promised the node for which a/runs asks again and again."""
    world = World({"project.yaml": project(maxExtension="2h"), "clusters/east.yaml": cluster(nodes=1)})
    world.file("a/runs", duration="5h")
    world.run(at(5))
    world.file("b/waits", duration="1h")
    world.run(at(6))
    world.file("a/runs", duration="5h", extend="1h")
    world.run(at(10))
    return world


def nobody_may_go() -> World:
    """b/high waits, and the gain is less than is asked for."""
    terms = {"guaranteed": "0m", "leastGain": "10h"}
    files = {
        "project.yaml": project(scheduling={"preemption": terms}),
        "clusters/east.yaml": cluster(nodes=1),
    }
    world = World(files)
    world.file("a/low", duration="8h", priority=50)
    world.run(at(5))
    world.file("b/high", duration="1h", priority=250)
    world.run(at(10))
    return world


def not_called_off() -> World:
    """The one for whom a/low goes is gone; somebody else was promised the room since."""
    files = {"project.yaml": project(scheduling={"preemption": {"notice": "2h", "guaranteed": "0m"}})}
    world = World({**files, "clusters/east.yaml": cluster(nodes=1), "slices/c/slice.yaml": slice_("c")})
    world.file("a/low", duration="10h", priority=50)
    world.run(at(5))
    world.file("b/high", duration="1h", priority=250)
    world.file("c/mid", duration="30m", priority=150)
    world.run(at(6))
    world.file("b/high", duration="1h", priority=250, earlyRelease=True)
    world.run(at(10))
    return world


@pytest.mark.parametrize(
    "begun",
    [
        pytest.param(refused_extension, id="an extension that would hurt somebody"),
        pytest.param(nobody_may_go, id="a preemption that is not worth it"),
        pytest.param(not_called_off, id="an eviction that somebody else needs now"),
    ],
)
def test_a_quiet_cycle_makes_one_plan_at_most(
    begun: Callable[[], World], monkeypatch: pytest.MonkeyPatch
) -> None:
    counting, world = Counting(monkeypatch), begun()
    counting.in_a_cycle(world, 20)
    assert counting.in_a_cycle(world, 20.5) <= 1
    again = counting.in_a_cycle(world, 20 + LOOK_AGAIN_S / 60)
    assert again > 1, "what time alone may change is tried again now and then"


def test_a_long_queue_that_stands_is_not_planned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World({"clusters/east.yaml": cluster(nodes=1)})
    world.file("a/runs", duration="5h")
    world.file("b/waits", duration="1h")
    world.run(at(10))
    counting = Counting(monkeypatch)
    counting.in_a_cycle(world, 20)
    assert [counting.in_a_cycle(world, minute) for minute in (20.5, 40, 100)] == [0, 0, 0]
    world.file("a/comes", duration="1h", priority=290)
    assert counting.in_a_cycle(world, 101) >= 1


def test_an_extension_is_granted_as_soon_as_nobody_is_hurt(monkeypatch: pytest.MonkeyPatch) -> None:
    world = refused_extension()
    assert world.status("a/runs").extended_by == timedelta()
    world.commit({gpr_path("b/waits"): None})
    world.run(at(11))
    assert world.status("a/runs").extended_by == timedelta(hours=1)


def test_who_may_go_from_an_instant_on_is_sent_then() -> None:
    """Nothing but the time is another; the minimum that a/low is guaranteed is over 92 minutes after the beginning."""
    policy = {"preemption": {"guaranteed": "100m", "notice": "10m"}}
    world = World(
        {"project.yaml": project(scheduling=policy), "clusters/east.yaml": cluster(nodes=1)},
        poll=timedelta(seconds=30),
    )
    world.file("a/low", duration="10h", priority=50)
    world.run(at(20))
    world.file("b/high", duration="1h", priority=250)
    world.run(at(91.9))
    assert world.status("a/low").eviction is None
    world.run(at(92.6))
    assert world.status("a/low").eviction is not None


def burst_files() -> dict[str, str | None]:
    both = ("east", "cloud")
    return {
        "clusters/east.yaml": cluster(nodes=1),
        "clusters/cloud.yaml": cluster("cloud", nodes=1, burst={"after": "9h", "gpuHoursPerMonth": 5}),
        **{f"slices/{name}/slice.yaml": slice_(name, both) for name in "ab"},
    }


def test_a_burst_cluster_costs_nobody_a_second_look(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    request = building._request

    def watched(key: str, *known: Any) -> Any:
        looked.append(key)
        return request(key, *known)

    world = World(burst_files())
    world.file("a/runs", duration="5h", clusters=["east"])
    world.run(at(5))
    world.file("b/waits", duration="1h")
    world.run(at(10))
    counting = Counting(monkeypatch)
    counting.in_a_cycle(world, 20)
    monkeypatch.setattr(building, "_request", watched)
    assert counting.in_a_cycle(world, 20.5) <= 1
    assert looked == []


def test_a_burst_cluster_that_opens_is_seen_at_once() -> None:
    files: Mapping[str, str | None] = burst_files()
    world = World(files)
    world.file("a/runs", duration="20h", clusters=["east"])
    world.run(at(5))
    world.file("b/waits", duration="1h")
    world.run(at(10))
    assert world.status("b/waits").estimated_cluster == "east"
    open_ = cluster("cloud", nodes=1, burst={"after": "9h", "gpuHoursPerMonth": 500})
    world.commit({"clusters/cloud.yaml": open_})
    world.run(at(11))
    assert world.status("b/waits").estimated_cluster == "cloud"
