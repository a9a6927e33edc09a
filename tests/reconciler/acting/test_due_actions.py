"""Committed starts and strict ends are carried out in time, however long a cycle takes.

The long cycle is scripted: while it plans (or fetches, or pushes) the injected clock moves on, and the rounds that
another thread would call are called at those instants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from reconciler import loop
from reconciler.acting.due_actions import BUSY
from reconciler.clock import ManualClock
from reconciler.cycle import Cycle
from reconciler.model.status_edits import ENDED_LATE
from reconciler.store.memory_store import MemoryStore
from schemas.status.gpr_status import Phase
from tests.support.pulled import PulledWorld
from tests.support.world import World, at, cluster

SECOND = timedelta(seconds=1)


class Watch(ManualClock):
    """Goes with the world between cycles, and by itself within one."""

    def __init__(self, world: World) -> None:
        super().__init__(world.now)
        self._world = world

    def now(self) -> datetime:
        return max(super().now(), self._world.now)

    def steady_s(self) -> float:
        return self.now().timestamp()


class Slow:
    """A world whose next cycle may take long."""

    def __init__(
        self, patch: pytest.MonkeyPatch, may_lead: Callable[[], bool] | None = None, **spec: Any
    ) -> None:
        files = {"clusters/east.yaml": cluster(**({"prepare": "1m", "drain": "0m", "notice": "0m"} | spec))}
        self.world, self.patch, self.may_lead = World(files), patch, may_lead
        self.clock = Watch(self.world)
        self.world.controller = self.world.start(may_lead, clock=self.clock)
        self.log: list[tuple[str, str, datetime]] = []

    def run(self, minute: float) -> None:
        """Cycles that take no time."""
        self.world.run(at(minute))
        self.world.controller.cycle(self.world.now)

    def waits(self, until: datetime) -> None:
        """Time passes between cycles: the thread of the rounds asks all along."""
        while self.clock.now() < until:
            self.clock.set(min(until, self.clock.now() + 5 * SECOND))
            self.world.controller.hands.round(self.clock.now())
        self.world.now = until

    def passes(self, until: datetime) -> None:
        """Time passes within a cycle: rounds are called each second."""
        while self.clock.now() < until:
            self.clock.set(self.clock.now() + SECOND)
            self.world.controller.hands.round(self.clock.now())
            self.log += [(node, self.holder(node), self.clock.now()) for node in ("h100-1", "h100-2")]

    def cycle(self, minute: float, long_step: str, until: float) -> Cycle:
        """One cycle that begins at that minute and whose step takes until another."""
        self.waits(at(minute))
        target, name = STEPS[long_step]
        inner = getattr(target, name)

        def slowly(*args: Any, **kwargs: Any) -> Any:
            self.patch.setattr(target, name, inner)
            self.passes(at(until))
            return inner(*args, **kwargs)

        self.patch.setattr(target, name, slowly)
        done = self.world.controller.cycle(at(minute))
        assert self.clock.now() >= at(until), "the step was made"
        return done

    def holder(self, node: str) -> str:
        """Whose the node is, in the cluster itself."""
        lease = self.world.drivers["east"].observe(self.clock.now()).nodes[node].lease
        return "" if lease is None else lease.request

    def first(self, node: str, holder: str) -> datetime:
        """When it was so first."""
        return next(when for what, who, when in self.log if (what, who) == (node, holder))


STEPS: Mapping[str, tuple[Any, str]] = {
    "fetch": (MemoryStore, "fetch"),
    "plan": (loop, "decide"),
    "push": (MemoryStore, "push"),
}


@pytest.mark.parametrize("step", STEPS)
def test_a_strict_end_within_a_long_step_is_carried_out_at_its_time(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Slow(monkeypatch)
    slow.world.file("a/runs", nodes=2, duration="10m")
    slow.run(5)
    end = slow.world.status("a/runs").end_time
    assert end is not None
    slow.world.file("b/comes")  # so that there is something to commit
    slow.cycle(6, step, until=20)
    assert slow.first("h100-1", "") - end <= 2 * SECOND
    slow.run(21)
    status = slow.world.status("a/runs")
    assert (status.phase, status.end_time) == (Phase.COMPLETED, end)
    assert all(condition.type != ENDED_LATE for condition in status.conditions), "the controller was there"


@pytest.mark.parametrize("step", STEPS)
def test_a_decided_start_within_a_long_step_is_handed_over_at_its_instant(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Slow(monkeypatch)
    slow.world.file("b/waits", nodes=2, duration="1h", notBefore="2026-11-21T08:10:00Z")
    slow.run(9.9)
    start = slow.world.status("b/waits").estimated_start_time
    assert start == at(10)
    assert slow.world.status("b/waits").phase is Phase.PROVISIONING
    slow.world.file("a/comes")
    slow.cycle(9.95, step, until=15)
    assert timedelta() <= slow.first("h100-1", "b/waits") - start <= 2 * SECOND
    slow.run(16)
    status = slow.world.status("b/waits")
    assert (status.phase, status.start_time, status.slips) == (Phase.PROVISIONED, start, ())


def test_a_lease_that_begins_and_ends_within_one_cycle_is_known_as_such(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slow = Slow(monkeypatch)
    slow.world.file("b/short", nodes=2, duration="5m", notBefore="2026-11-21T08:10:00Z")
    slow.run(9.9)
    slow.cycle(9.95, "plan", until=30)
    slow.run(31)
    status = slow.world.status("b/short")
    assert (status.phase, status.start_time, status.end_time) == (Phase.COMPLETED, at(10), at(15))
    assert status.slips == ()


def test_while_a_push_is_under_way_only_that_happens_which_both_facts_want(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The push that grants the extension may have landed: the old end counts no more."""
    slow = Slow(monkeypatch)
    slow.world.file("a/runs", nodes=1, duration="10m")
    slow.world.file("b/runs", nodes=1, duration="10m")
    slow.run(5)
    slow.world.file("a/runs", nodes=1, duration="10m", extend="30m")
    slow.cycle(6, "push", until=20)
    kept = slow.world.status("a/runs").assignment
    assert kept is not None
    assert {who for node, who, _ in slow.log if node == kept.nodes[0]} == {"a/runs"}
    (other,) = {"h100-1", "h100-2"} - set(kept.nodes)
    assert slow.first(other, "") - at(11) <= 2 * SECOND, "b/runs ends by both"
    assert slow.world.status("b/runs").end_time == at(11)


def test_nothing_is_begun_that_is_not_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(monkeypatch)
    slow.run(1)
    slow.world.file("a/runs")
    slow.cycle(2, "plan", until=10)
    assert {who for _, who, _ in slow.log} == {""}


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"elected": False}, id="this process is not elected any more"),
        pytest.param({"back": timedelta(hours=1)}, id="the clock is behind what is committed"),
        pytest.param({"soon": True}, id="the cycle has just begun"),
        pytest.param({"rests": True}, id="no cycle runs: what is due wakes the loop"),
    ],
)
def test_no_round_is_made(given: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    elected = [True]
    slow = Slow(monkeypatch, lambda: elected[0])
    slow.world.file("a/runs", nodes=2, duration="10m")
    slow.run(5)
    hands, now = slow.world.controller.hands, at(20)
    elected[0] = given.get("elected", True)
    if not given.get("rests"):
        hands.begin(
            now if given.get("soon") else now - given.get("back", timedelta()) - timedelta(minutes=14)
        )
    now -= given.get("back", timedelta())
    hands.round(now + BUSY / 2 if given.get("soon") else now)
    slow.clock.set(at(5))
    assert slow.holder("h100-1") == "a/runs"


def test_a_controller_that_reads_has_nothing_to_carry_out(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(monkeypatch)
    slow.world.file("a/runs", nodes=2, duration="10m")
    slow.run(5)
    old = slow.world.controller
    slow.world.start(clock=slow.clock).cycle(at(6))
    assert not old.cycle(at(7)).leading
    old.hands.begin(at(7))
    old.hands.round(at(20))
    assert slow.holder("h100-1") == "a/runs"


def test_starts_are_decided_sooner_where_cycles_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A start that falls due within the next cycle is committed in this one."""
    slow = Slow(monkeypatch)
    slow.world.file("b/waits", nodes=2, duration="1h", notBefore="2026-11-21T08:10:00Z")
    slow.run(5)
    slow.cycle(6, "plan", until=7)
    slow.world.controller.cycle(at(7.1))
    assert slow.world.status("b/waits").phase is Phase.PROVISIONING, "else it were decided at 8:08:50"
    slow.cycle(7.2, "plan", until=12)
    assert slow.first("h100-1", "b/waits") - at(10) <= 2 * SECOND


def test_cycles_that_fail_hold_up_no_strict_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """After each of them the loop rests longer, and what is committed goes on meanwhile."""
    slow = Slow(monkeypatch)
    slow.world.file("a/runs", nodes=2, duration="10m")
    slow.run(5)
    end = slow.world.status("a/runs").end_time
    assert end is not None

    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(loop, "decide", broken)
    slow.clock.set(at(6))
    with pytest.raises(RuntimeError, match="a bug"):
        slow.world.controller.cycle(at(6))
    slow.passes(at(20))
    assert slow.first("h100-1", "") - end <= 2 * SECOND


def test_an_applier_takes_nodes_back_while_its_fetch_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    world = PulledWorld({"clusters/east.yaml": cluster(access={"pull": True}, notice="0m")})
    world.file("a/runs", duration="10m")
    world.run(at(5))
    end, applier = world.status("a/runs").end_time, world.appliers["east"]
    assert end is not None
    looks: list[set[str]] = []
    fetch = MemoryStore.fetch

    def slowly(self: MemoryStore, patterns: Sequence[str]) -> Mapping[str, str]:
        for now in (end - SECOND, end + SECOND):
            applier.hands.round(now)
            nodes = world.drivers["east"].observe(now).nodes.values()
            looks.append({node.lease.request for node in nodes if node.lease is not None})
        return fetch(self, patterns)

    monkeypatch.setattr(MemoryStore, "fetch", slowly)
    applier.cycle(end - 10 * SECOND)
    assert looks[:2] == [{"a/runs"}, set()]
