"""What the network does to pushes, and a remote that is down (D6, D7, F1, F2; H11; design sections 4 and 5).

One push of a whole story is lost, refused, answered never or landed late, one at a time and then several at random: the
branch tells the same story. Without a remote, what is committed is completed and nothing else begins.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.status.gpr_status import Phase
from tests.support.memory_remote import Fate, Operation
from tests.support.profile import drawn, law
from tests.support.witness import ONCE
from tests.support.witnessed import Witnessed
from tests.support.world import START, World, at, gpr, gpr_path

pytestmark = pytest.mark.slow

SECOND = timedelta(seconds=1)


def calm() -> Witnessed:
    """The story without a fault."""
    world = Witnessed()
    world.play_all([world.controller])
    return world


CALM = calm()
PUSHES, WANT = CALM.pushes, CALM.verdict()


def landing(world: Witnessed, kind: str) -> None:
    """Delayed pushes arrive just before the next talk of that kind."""
    meets = world.remote.hook

    def hook(operation: Operation) -> Fate:
        if operation.kind == kind and operation.when == "before":
            world.remote.land()
        return meets(operation)

    world.remote.hook = hook


def once_told(verdict) -> dict[tuple[str, str], int]:
    return {about: times for about, times in verdict.told.items() if about[0] in ONCE}


# -- one push after the other --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fate", "lands"),
    [
        pytest.param(Fate.LOSE, None, id="it is lost on its way"),
        pytest.param(Fate.REFUSE, None, id="the server says no, once"),
        pytest.param(Fate.HIDE, None, id="it lands and its answer is lost"),
        pytest.param(Fate.DELAY, "fetch", id="it lands before the next look"),
        pytest.param(Fate.DELAY, "push", id="it lands between the next look and the next push"),
    ],
)
def test_whatever_one_push_meets_the_story_is_the_same(fate, lands):
    """A promise that was given up and landed after all stands: no uid, start or event is made a second time.

    The log and whoever else is told hear of it once too, in the cycle that finds it.
    """
    for number in (number for number in range(1, PUSHES + 1) if drawn(f"{number} {fate} {lands}", 8)):
        world = Witnessed()
        world.fates = {number: fate}
        if lands is not None:
            landing(world, lands)
        world.play_all([world.controller])
        verdict = world.verdict(slack=3 * SECOND)
        assert verdict.broken == [], number
        assert once_told(verdict) == once_told(WANT), number
        assert sorted(world.told()) == sorted(reason for reason, _ in verdict.told.elements()), number
        assert {k: s.phase for k, s in verdict.last.items()} == {k: s.phase for k, s in WANT.last.items()}, (
            number
        )


FATES = st.sampled_from([Fate.LOSE, Fate.DELAY, Fate.HIDE, Fate.REFUSE])


@law(12)
@given(st.dictionaries(st.integers(1, PUSHES + 8), FATES, max_size=12), st.sampled_from(["fetch", "push"]))
def test_whatever_many_pushes_meet_no_promise_breaks(fates, lands):
    world = Witnessed()
    world.fates = fates
    landing(world, lands)
    world.play_all([world.controller])
    verdict = world.verdict(slack=13 * SECOND)
    assert verdict.broken == []
    assert verdict.last.keys() == WANT.last.keys()


# -- a remote that is down -----------------------------------------------------------------------------------


def test_without_a_remote_a_committed_start_and_its_strict_end_still_happen():
    """Checks, hand-over and end are the clusters' work; the whole lease passes before anybody can commit it."""
    world = World({gpr_path("a/x"): gpr("a", "x", duration="20m")})
    world.run(START)
    assert world.status("a/x").phase is Phase.PROVISIONING
    world.remote.down = True
    world.run(at(10))
    assert holders(world) == {"a/x"}
    world.run(at(22))
    assert holders(world) == set()
    world.run(at(40))
    world.remote.down = False
    world.run(at(45))
    status = world.status("a/x")
    assert (status.phase, status.start_time, status.end_time) == (Phase.COMPLETED, at(2), at(22))
    assert [mark.percent for mark in status.marks] == [25, 50, 75]
    assert status.slips == ()
    told = world.told()
    assert [told.count(r) for r in ("GPRProvisioned", "GPRDuration50", "GPRExiting", "GPRCompleted")] == [
        1
    ] * 4


def holders(world: World) -> set[str]:
    """Requests that have nodes in the cluster now."""
    nodes = world.drivers["east"].observe(world.now).nodes.values()
    return {node.lease.request for node in nodes if node.lease is not None}


def test_without_a_remote_nothing_new_starts_and_afterwards_everything_is_committed():
    world = World({gpr_path("a/x"): gpr("a", "x", duration="20m"), gpr_path("b/y"): gpr("b", "y", nodes=2)})
    world.run(at(5))
    promised = world.status("b/y").estimated_start_time
    assert promised is not None
    world.remote.down = True
    world.run(promised + timedelta(minutes=10))
    assert holders(world) == set()
    world.remote.down = False
    world.run(promised + timedelta(minutes=20))
    assert world.status("a/x").phase is Phase.COMPLETED
    late = world.status("b/y")
    assert late.phase is Phase.PROVISIONED
    assert [slip.cause for slip in late.slips] == ["ControllerAbsent"]


def test_a_process_that_is_started_without_a_remote_waits():
    world = World({gpr_path("a/x"): gpr("a", "x")})
    world.remote.down = True
    cycles = world.run(at(5))
    assert not any(cycle.leading for cycle in cycles)
    assert world.drivers == {}
    world.remote.down = False
    world.run(at(10))
    assert world.status("a/x").phase is Phase.PROVISIONED


def test_a_controller_that_follows_does_not_begin_to_act_when_the_remote_goes_down():
    world = World({gpr_path("a/x"): gpr("a", "x", duration="20m")})
    old = world.controller
    world.run(at(1))
    assert len(world.status("a/x").checks) > 0, "all is ready for the hand-over"
    world.controller = world.start()
    world.run(at(1))
    assert not old.cycle(world.now).leading
    world.remote.down = True
    assert not old.cycle(at(2)).leading
    assert holders(world) == set()
    world.run(at(2))
    assert holders(world) == {"a/x"}
