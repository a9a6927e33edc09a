"""A controller acts by the present, and a wrong clock takes no nodes away (docs/decisions/023)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from reconciler.cycle import Cycle
from reconciler.loop import Reconciler
from reconciler.model.clock_reading import Heard
from reconciler.model.cluster_port import ClusterDriver, ClusterView
from reconciler.status.parse import events_from
from reconciler.timekeeping.clock_doubt import ClockReading, doubt
from schemas.documents.cluster import ClusterSpec
from schemas.status.gpr_status import Phase
from tests.support.crash import BRANCH
from tests.support.memory_remote import Fate, Operation
from tests.support.world import START, World, at, gpr, gpr_path

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)


@dataclass(slots=True)
class Hands:
    """A process's clock: the world's time, `off` by so much since it was set."""

    world: World
    off: timedelta = timedelta()

    def now(self) -> datetime:
        """The instant."""
        return self.world.now + self.off

    def steady_s(self) -> float:
        """Nobody sets it."""
        return (self.world.now - START).total_seconds()


class Dated:
    """A cluster whose server tells the right time with each look."""

    def __init__(self, driver: ClusterDriver, world: World) -> None:
        self._driver, self._world = driver, world

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)

    def observe(self, now: datetime) -> ClusterView:
        """With the server's clock."""
        right = Hands(self._world)
        return replace(self._driver.observe(now), clock=Heard(right.now(), right.steady_s()))


class Timed(World):
    """A world whose controllers read clocks; `dated`: its clusters tell the time."""

    dated = False

    def _open(self, specs: Mapping[str, ClusterSpec]) -> Mapping[str, ClusterDriver]:
        found = super()._open(specs)
        return {name: Dated(driver, self) for name, driver in found.items()} if self.dated else found  # type: ignore[misc]

    def holder(self, node: str = "h100-1") -> str:
        """Whose node it is."""
        lease = self.drivers["east"].observe(self.now).nodes[node].lease
        return "" if lease is None else lease.request

    def live(self, controller: Reconciler, hands: Hands, until: datetime) -> list[Cycle]:
        """That controller alone goes on by its own clock, at the instants that it names."""
        done: list[Cycle] = []
        while self.now < until:
            done.append(controller.cycle(hands.now()))
            pause = done[-1].wake - hands.now()
            self.now = min(until, self.now + max(SECOND, pause))
        self.log += done
        return done


def running(minutes: float = 10, **settings: object) -> Timed:
    """a/x runs from 08:02 to 08:42 on one of two nodes; b/y waits for both of them."""
    files = {gpr_path("a/x"): gpr("a", "x", duration="40m"), gpr_path("b/y"): gpr("b", "y", 2, "20m")}
    world = Timed(files, **settings)
    world.run(at(minutes))
    return world


# -- the present ---------------------------------------------------------------------------------------------


def pausing(world: World, kind: str, when: str, meanwhile: Callable[[], object]) -> None:
    """The next such operation on the remote stands still while `meanwhile` happens."""

    def hook(operation: Operation) -> Fate:
        if (operation.kind, operation.when) == (kind, when):
            world.remote.hook = lambda _: Fate.PASS
            meanwhile()
        return Fate.PASS

    world.remote.hook = hook


@pytest.mark.parametrize(
    ("kind", "when", "is_given"),
    [
        pytest.param("fetch", "before", True, id="before its first fetch"),
        pytest.param("fetch", "after", True, id="as its first fetch ends"),
        pytest.param("push", "before", True, id="before it takes the branch"),
        pytest.param("push", "after", False, id="after it took the branch, so that the start is its own"),
    ],
)
def test_one_that_stands_still_across_a_start_gives_no_node_back(kind, when, is_given):
    world = Timed({gpr_path("a/x"): gpr("a", "x", duration="20m")})
    world.run(at(1.9))
    new = world.start(clock=Hands(world))
    old, began = world.controller, world.now
    pausing(world, kind, when, lambda: world.run(at(2.3)))
    new.cycle(began)
    assert world.now == at(2.3)
    assert not is_given or world.holder() == "a/x"
    for number in range(60):
        for one in (new, old):
            one.cycle(world.now)
        assert world.holder() == "a/x", number
        world.now += 15 * SECOND


def test_what_was_decided_before_a_pause_is_not_carried_out_by_one_that_does_not_lead_any_more(monkeypatch):
    world = running(1.5)
    world.controller = old = world.start(clock=Hands(world))
    commit = old._commit

    def paused(*args: Any, **more: Any) -> datetime | None:
        held = commit(*args, **more)
        new = world.start(clock=Hands(world))
        world.now += 20 * SECOND
        assert new.cycle(world.now).leading
        return held

    monkeypatch.setattr(old, "_commit", paused)
    cycle = old.cycle(world.now)
    assert not cycle.leading
    assert cycle.acted == {}


def test_an_end_that_comes_while_a_decision_is_made_is_carried_out_with_it(monkeypatch):
    world = running(41.9)
    world.controller = old = world.start(clock=Hands(world))
    commit = old._commit

    def slow(*args: Any, **more: Any) -> datetime | None:
        world.now = at(42) + 3 * SECOND
        return commit(*args, **more)

    monkeypatch.setattr(old, "_commit", slow)
    old.cycle(world.now)
    assert world.holder() == ""


# -- a clock that is behind ----------------------------------------------------------------------------------


def test_a_restart_with_the_clock_an_hour_back_takes_and_gives_nothing_and_tells_it_once():
    world = running()
    before = world.facts()
    hands = Hands(world, -HOUR)
    new = world.start(clock=hands)
    done = world.live(new, hands, at(30))
    assert world.holder() == "a/x"
    assert world.holder("h100-2") == ""
    assert world.facts().requests == before.requests
    assert world.told().count("ClockDoubted") == 1
    assert done[-1].clocks["the status branch"] > 30 * 60
    hands.off = timedelta()
    world.live(new, hands, at(41.9))
    assert world.holder() == "a/x"
    assert world.told().count("ClockBelieved") == 1
    world.live(new, hands, at(70))
    assert world.status("a/x").end_time == at(42)
    assert world.status("b/y").start_time is not None
    assert [slip.cause for slip in world.status("b/y").slips] == []


def test_a_clock_that_is_set_back_while_it_leads_takes_and_gives_nothing():
    world = running()
    hands = Hands(world)
    one = world.start(clock=hands)
    world.live(one, hands, at(12))
    hands.off = -HOUR
    world.live(one, hands, at(30))
    assert (world.holder(), world.holder("h100-2")) == ("a/x", "")
    assert world.told().count("ClockDoubted") == 1
    hands.off = timedelta()
    world.live(one, hands, at(45))
    assert world.status("a/x").end_time == at(42)


@pytest.mark.parametrize("believes", [pytest.param(False, id="doubted"), pytest.param(True, id="believed")])
def test_a_clock_that_is_back_writes_over_no_event_of_a_later_hour(believes):
    world = running(130)
    rows = event_rows(world)
    world.settings = replace(world.settings, believe_clock=believes)
    hands = Hands(world, -2 * HOUR)
    new = world.start(clock=hands)
    world.live(new, hands, at(135))
    hands.off = timedelta()
    world.file("a/z", duration="10m")
    world.live(new, hands, at(160))
    after = event_rows(world)
    assert [row for row in rows if row not in after] == []
    assert len(after) == len([dict(t) for t in {tuple(sorted(row.items())) for row in after}])


def event_rows(world: World) -> list[dict[str, str]]:
    """Every event of the branch, by file."""
    tip = world.people.fetch([BRANCH])[BRANCH]
    paths = sorted(e.path for e in world.people.diff(None, tip) if e.path.startswith("events/"))
    found = (world.people.read_path(tip, path) for path in paths)
    return [row for data in found if data is not None for row in events_from(data)]


def test_what_is_over_by_a_clock_that_is_behind_ends_all_the_same(monkeypatch):
    """Ten minutes back, and in doubt for longer: the end is ten minutes late."""
    world = running(41)
    world.controller = new = world.start(clock=(hands := Hands(world, -10 * MINUTE)))
    monkeypatch.setattr(new._branch, "decided_at", lambda: at(90))
    world.live(new, hands, at(51.9))
    assert world.holder() == "a/x"
    world.live(new, hands, at(52.1))
    assert world.holder() == ""
    assert world.status("a/x").phase is Phase.PROVISIONED, "nothing is decided by that clock"


def test_clocks_that_differ_by_seconds_hand_over_and_take_back_in_peace():
    world = running(1.5)
    hands = Hands(world, -40 * SECOND)
    new = world.start(clock=hands)
    world.live(new, hands, at(30))
    assert world.holder() == "a/x"
    assert "ClockDoubted" not in world.told()
    assert world.status("a/x").slips == ()


def test_a_node_that_bears_a_lease_of_the_future_shows_that_our_clock_is_behind():
    """The branch says no more than 08:00; the other one handed over at 08:02 and died before it could commit that."""
    world = Timed({gpr_path("a/x"): gpr("a", "x", duration="20m")}, clock_tolerance=30 * SECOND)
    world.run(at(1.9))
    world.now = at(2)
    pausing(world, "push", "before", lambda: None)
    world.remote.hook = lambda op: Fate.LOSE if op.kind == "push" else Fate.PASS
    world.controller.cycle(world.now)
    world.remote.hook = lambda _: Fate.PASS
    assert world.holder() == "a/x"
    hands = Hands(world, -45 * SECOND)
    world.now += 5 * SECOND
    world.live(world.start(clock=hands), hands, at(2.5))
    assert world.holder() == "a/x"
    assert "ClockDoubted" in world.told()


def test_one_that_reads_does_not_take_the_branch_while_its_clock_is_in_doubt():
    world = running()
    hands, old = Hands(world, -HOUR), world.controller
    new = world.start(clock=hands)
    for _ in range(4):
        assert not new.cycle(hands.now()).leading
        assert old.cycle(world.now).leading
        world.now += 20 * SECOND


def test_a_person_may_say_that_the_clock_is_right():
    world = running()
    hands = Hands(world, -5 * MINUTE)
    world.settings = replace(world.settings, believe_clock=True)
    assert world.start(clock=hands).cycle(hands.now()).facts is not None
    assert "ClockDoubted" not in world.told()


# -- a clock that is ahead -----------------------------------------------------------------------------------


def ahead(**more: bool) -> tuple[Timed, Hands, Reconciler]:
    """A controller that led until its clock was set an hour ahead."""
    world = Timed({gpr_path("a/x"): gpr("a", "x", duration="40m")})
    world.dated = more.get("dated", False)
    hands = Hands(world)
    one = world.start(clock=hands)
    world.live(one, hands, at(10))
    assert world.holder() == "a/x"
    hands.off = HOUR
    return world, hands, one


@pytest.mark.parametrize("restarts", [False, True])
def test_a_clock_that_an_api_server_contradicts_ends_no_lease_early(restarts):
    world, hands, one = ahead(dated=True)
    if restarts:
        one = world.start(clock=hands)
    world.live(one, hands, at(41))
    assert world.holder() == "a/x"
    assert world.told().count("ClockDoubted") == 1
    world.live(one, hands, at(42.6))
    assert world.holder() == "", "at its end by the clock that is behind"
    hands.off = timedelta()
    world.live(one, hands, at(60))
    assert world.status("a/x").phase is Phase.COMPLETED
    assert world.status("a/x").end_time == at(42)


def test_a_clock_that_was_set_while_it_ran_is_not_believed_at_once_where_no_other_can_be_asked():
    world, hands, one = ahead()
    world.live(one, hands, at(19))
    assert world.holder() == "a/x"
    assert world.told().count("ClockDoubted") == 1
    hands.off = timedelta()
    world.live(one, hands, at(60))
    assert world.status("a/x").end_time == at(42)


def test_a_clock_that_was_set_right_is_believed_where_an_api_server_agrees():
    """It was an hour back from the start: nothing was committed before."""
    world = Timed({gpr_path("a/x"): gpr("a", "x", duration="40m")})
    hands = Hands(world, -HOUR)
    one = world.start(clock=hands)
    world.live(one, hands, at(1))
    world.dated, hands.off = True, timedelta()
    world.live(one, hands, at(10))
    assert world.holder() == "a/x"
    assert "ClockDoubted" not in world.told()


# -- whom to believe -----------------------------------------------------------------------------------------


def said(minutes: float, who: str = "the API server of east") -> ClockReading:
    return ClockReading(who, at(minutes))


def fact(minutes: float) -> ClockReading:
    return ClockReading("the status branch", at(minutes), is_least=True)


@pytest.mark.parametrize(
    ("words", "doubted"),
    [
        pytest.param([], False, id="nobody says otherwise"),
        pytest.param(
            [fact(-60)], False, id="a decision of an hour ago says nothing of a clock that is ahead"
        ),
        pytest.param([fact(1)], False, id="a decision a minute ahead is within what clocks may differ by"),
        pytest.param([fact(1.1)], True, id="a decision further ahead is proof"),
        pytest.param(
            [fact(60), said(0), said(0, "b")], True, id="also where other clocks are behind as well"
        ),
        pytest.param([said(-60)], True, id="one clock against ours"),
        pytest.param([said(60)], True, id="one clock ahead of ours"),
        pytest.param([said(-60), said(0, "b")], False, id="two against one"),
        pytest.param(
            [said(-60), said(60, "b"), said(0, "c")], True, id="two that err differently against two"
        ),
        pytest.param([said(-60), said(-60, "b"), said(0, "c"), said(0, "d")], False, id="three against two"),
    ],
)
def test_a_clock_is_in_doubt(words, doubted):
    assert (doubt(START, words, MINUTE) is not None) == doubted


def test_what_is_over_by_every_clock_is_over_by_the_earliest():
    found = doubt(START, [fact(60), said(-60)], MINUTE)
    assert found is not None
    assert found.earliest == at(-60)
    assert "2026-11-21T09:00:00Z" in found.sentence
