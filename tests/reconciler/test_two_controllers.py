"""Two controllers on one repository: one leads, the other only reads (D6, D7, F1, F2; H10; design section 5).

Whoever starts last leads. Cycles are interleaved in every order; a leader stands still before each call that writes,
for a moment or for long, while another one plays on, and then goes on as if nothing had happened: its pushes are
refused by compare-and-swap, its cluster writes by their stamps.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.clusters.simulated import simulated_writes
from reconciler.leadership import next_due
from reconciler.loop import Reconciler
from reconciler.model.cluster_port import Refused, Stamp
from reconciler.store.memory_store import MemoryStore
from schemas.status.gpr_status import Phase
from tests.support import witness
from tests.support.crash import BRANCH
from tests.support.memory_remote import Fate
from tests.support.profile import drawn, law
from tests.support.witnessed import END, Witnessed
from tests.support.world import World, at, gpr, gpr_path

pytestmark = pytest.mark.slow

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


def writers(world: World) -> list[str]:
    """Who made each commit of the status branch, oldest first."""
    return [step.writer for step in witness.history(MemoryStore(world.remote), BRANCH)]


# -- interleaved ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("newest_first", [True, False])
def test_of_two_awake_at_every_instant_one_only_reads(newest_first):
    world = Witnessed()
    old = world.controller
    old.cycle(world.now)
    new = world.start()
    new.cycle(world.now)
    world.play_all([new, old] if newest_first else [old, new])
    assert world.verdict().broken == []
    taken = writers(world).index("controller-2")
    assert set(writers(world)[taken:]) == {"controller-2"}


def test_the_one_that_reads_touches_no_cluster():
    world = Witnessed()
    old = world.controller
    old.cycle(world.now)
    world.start().cycle(world.now)
    world.now = at(3)
    written = len(world.points.kinds)
    assert not old.cycle(world.now).leading
    assert len(world.points.kinds) == written


TURNS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 90)), min_size=5, max_size=60)


@law(40)
@given(
    TURNS,
    st.dictionaries(st.integers(1, 30), st.sampled_from([Fate.LOSE, Fate.DELAY, Fate.HIDE]), max_size=4),
)
def test_in_whatever_order_they_wake_no_node_has_two_leases(turns, fates):
    """Three processes, the later ones started on the way, cycle at any time; pushes get lost or land late."""
    world = Witnessed()
    world.fates, steps, world.steps = fates, world.steps, ()
    controllers = [world.controller, world.start(), world.start()]
    for who, pause in turns:
        world.now += timedelta(seconds=pause)
        controllers[who].cycle(world.now)
        if pause > 60:
            world.remote.land()
    world.remote.hook = lambda _: Fate.PASS
    world.play_all(controllers, world.now + 10 * MINUTE)
    for _, act in steps:
        act(world)
        world.play_all(controllers, world.now + MINUTE)
    world.play_all(controllers, world.now + 120 * MINUTE)
    verdict = world.verdict(slack=200 * MINUTE)
    assert verdict.broken == []
    assert verdict.terms[-1] >= 1


# -- paused --------------------------------------------------------------------------------------------------


def paused_at(point: int, pause: timedelta) -> Witnessed:
    """The story with a leader that stands still before its n-th call that writes, and wakes up after the pause."""
    world = Witnessed()
    controllers = [world.controller]

    def visit(number: int, _: str, __: Callable[[], object]) -> None:
        if number == point:
            world.points.visit = lambda *_: None
            new = world.start()
            world.play_all([new], world.now + pause)
            controllers.append(new)

    world.points.visit = visit
    world.play_all(controllers, END + 30 * MINUTE)
    return world


def points_of_the_story(*kinds: str) -> list[int]:
    """Numbers of its calls that write: those of these kinds, or all."""
    world = Witnessed()
    world.play_all([world.controller])
    return [number for number, kind in enumerate(world.points.kinds) if not kinds or kind in kinds]


@pytest.mark.parametrize(
    "pause", [pytest.param(SECOND, id="a moment"), pytest.param(12 * MINUTE, id="minutes")]
)
def test_a_paused_leader_that_wakes_up_does_no_harm(pause):
    """Whatever it was about to write, a commit or a node, the one that leads meanwhile has the say."""
    for point in (point for point in points_of_the_story() if drawn(f"{point} {pause}", 8)):
        world = paused_at(point, pause)
        verdict = world.verdict(slack=3 * SECOND)
        assert verdict.broken == [], point
        assert {s.phase for s in verdict.last.values()} == {Phase.COMPLETED}, point


def test_planted_a_cluster_that_forgets_the_stamp_is_noticed(monkeypatch):
    """Without the check of stamps a paused leader gives a node away that is not its to give."""
    monkeypatch.setattr(simulated_writes, "stale", lambda *_: None)
    found = (
        paused_at(point, 12 * MINUTE).verdict(slack=3 * SECOND).broken for point in points_of_the_story("add")
    )
    assert any("obeyed" in sentence for sentences in found for sentence in sentences)


def test_a_leader_that_stood_still_before_a_hand_over_is_refused_by_the_newer_stamp(monkeypatch):
    refused: list[str] = []
    stale = simulated_writes.stale

    def watched(what: str, have: Stamp | None, stamp: Stamp) -> Refused | None:
        answer = stale(what, have, stamp)
        refused.extend([] if answer is None else [answer.reason])
        return answer

    monkeypatch.setattr(simulated_writes, "stale", watched)
    for point in points_of_the_story("add"):
        refused.clear()
        paused_at(point, SECOND)
        assert "StaleStamp" in refused, point


# -- taking over again ---------------------------------------------------------------------------------------


def late_world(minutes: int) -> tuple[World, Reconciler]:
    """A leader that died at 08:01 with a start at 08:02 and an end at 08:22, and one that it had superseded."""
    world = World({gpr_path("a/x"): gpr("a", "x", duration="20m")})
    old = world.controller
    old.cycle(world.now)
    world.controller = world.start()
    world.run(at(minutes))
    return world, old


@pytest.mark.parametrize(
    ("dies", "looks", "leads"),
    [
        pytest.param(1, 3.9, False, id="a start that is not two minutes overdue is the leader's"),
        pytest.param(1, 4, True, id="a start that is two minutes overdue is anybody's"),
        pytest.param(5, 23.9, False, id="an end that is not two minutes overdue is the leader's"),
        pytest.param(5, 24, True, id="an end that is two minutes overdue is anybody's"),
    ],
)
def test_the_one_that_reads_takes_over_when_something_is_overdue(dies, looks, leads):
    world, old = late_world(dies)
    assert not old.cycle(at(dies)).leading
    cycle = old.cycle(at(looks))
    assert cycle.leading == leads
    if leads:
        assert "ControllerTookOver" in [event.reason for event in cycle.events]
        assert witness.history(MemoryStore(world.remote), BRANCH)[-1].term == 3


def test_nodes_that_drain_long_after_their_end_are_no_reason_to_take_over():
    """Else two controllers would take the branch from each other for as long as a drain hangs."""
    world, old = late_world(22)
    releasing = world.status("a/x")
    assert releasing.phase is Phase.RELEASING
    assert next_due(releasing) is None
    assert not old.cycle(at(22)).leading


def test_a_stranger_on_the_branch_is_an_alarm_and_ends_no_lead():
    world = World({gpr_path("a/x"): gpr("a", "x", duration="20m")})
    world.run(at(5))
    world.commit({"README.md": "edited by hand"}, BRANCH)
    world.run(at(30))
    assert world.status("a/x").phase is Phase.COMPLETED
    assert "RepositoryAlarm" in world.told()
    assert "edited by hand" not in (world.text("README.md") or "")


def test_one_that_takes_over_again_with_a_push_that_lands_late_reads_what_is_there():
    """It was superseded, and others wrote since: the facts that it had when it led before are not those it acts on."""
    world, old = late_world(1)
    world.file("b/y", duration="10m")
    world.run(at(23.5))
    assert world.status("b/y").phase is Phase.COMPLETED
    world.file("b/z", duration="10m")
    world.run(at(24))
    fates = iter([Fate.DELAY])
    world.remote.hook = lambda op: (
        next(fates, Fate.PASS) if (op.kind, op.when) == ("push", "before") else Fate.PASS
    )
    assert not old.cycle(at(40)).leading
    world.remote.land()
    assert old.cycle(at(41)).leading
    requests = world.facts().requests
    assert set(requests) == {"a/x", "b/y", "b/z"}
    assert requests["b/y"].phase is Phase.COMPLETED


def test_two_that_start_at_the_same_instant_end_with_one_leader():
    world = World({gpr_path("a/x"): gpr("a", "x")})
    slow, fast = world.start(), world.start()

    def race(operation):
        if operation.kind == "push" and operation.when == "before":
            world.remote.hook = lambda _: Fate.PASS
            assert fast.cycle(world.now).leading
        return Fate.PASS

    world.remote.hook = race
    cycle = slow.cycle(world.now)
    assert not cycle.leading
    assert cycle.wake - world.now <= SECOND, "whoever was faster may be dead: it asks again at once"
    assert slow.cycle(cycle.wake).leading
    assert not fast.cycle(cycle.wake).leading


def test_one_that_reads_reads_the_branch_once_a_commit(monkeypatch):
    world, old = late_world(5)
    old.cycle(world.now)
    read: list[datetime] = []
    store = old._ports.store
    monkeypatch.setattr(store, "diff", lambda *args: read.append(world.now) or MemoryStore.diff(store, *args))
    for _ in range(3):
        assert not old.cycle(world.now).leading
    assert read == []
