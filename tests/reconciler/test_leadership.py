"""Controllers that elect one of themselves: the election says who should lead, the branch says who does.

A gate stands for the election's word about one process. It may lie: two may believe to be elected, or nobody may be.
Terms and stamps hold all the same.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.loop import Reconciler
from reconciler.store.memory_store import MemoryStore
from schemas.status.gpr_status import Phase
from tests.support import witness
from tests.support.crash import BRANCH
from tests.support.memory_remote import Fate
from tests.support.profile import drawn, law
from tests.support.witnessed import END, Witnessed
from tests.support.world import World, at, gpr, gpr_path

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


class Gate:
    """What the election says of one process."""

    def __init__(self, open_: bool = True) -> None:
        self.open = open_

    def __call__(self) -> bool:
        return self.open


def terms(world: World) -> list[tuple[str, int]]:
    """Who took which term, in order."""
    steps = witness.history(MemoryStore(world.remote), BRANCH)
    return list(dict.fromkeys((step.writer, step.term) for step in steps))


def elected_world() -> tuple[World, Gate, Gate, Reconciler]:
    """A leader that is elected (controller-2, term 1) and one that waits; a/x runs from 08:02 to 08:22."""
    world = World({gpr_path("a/x"): gpr("a", "x", duration="20m")})
    first, second = Gate(), Gate(False)
    world.controller = world.start(first)
    waiting = world.start(second)
    world.run(at(1))
    return world, first, second, waiting


def test_who_is_not_elected_only_reads():
    world, _, _, waiting = elected_world()
    tip = world.remote.tips[BRANCH]
    cycle = waiting.cycle(world.now)
    assert not cycle.leading
    assert cycle.facts is None
    assert world.remote.tips[BRANCH] == tip


def test_whoever_is_elected_takes_the_next_term_at_once():
    """Design §5: a superseded controller takes over again when, in a cluster, it gets the Lease."""
    world, first, second, waiting = elected_world()
    first.open, second.open = False, True
    cycle = waiting.cycle(world.now)
    assert cycle.leading
    assert "ControllerTookOver" in [event.reason for event in cycle.events]
    assert terms(world)[-1] == ("controller-3", 2)
    assert not world.controller.cycle(world.now).leading


def test_who_is_not_elected_any_more_stands_down_before_anybody_else_comes():
    world, first, _, _ = elected_world()
    first.open = False
    world.file("b/y")
    tip = world.remote.tips[BRANCH]
    assert not world.controller.cycle(world.now).leading
    assert world.remote.tips[BRANCH] == tip


def test_a_turn_that_begins_anew_begins_with_a_term_of_its_own():
    world, first, _, _ = elected_world()
    first.open = False
    world.controller.cycle(world.now)
    first.open = True
    assert world.controller.cycle(world.now).leading
    assert terms(world)[-1] == ("controller-2", 2)


def test_a_turn_that_begins_anew_while_the_remote_is_down_completes_what_is_committed():
    """Section 4 of the design: strict ends happen whatever is down."""
    world, first, _, _ = elected_world()
    world.run(at(5))
    first.open = False
    world.controller.cycle(world.now)
    first.open = True
    world.remote.hook = lambda _: Fate.LOSE
    assert world.drivers["east"].observe(world.now).nodes["h100-1"].lease is not None
    world.run(at(30))
    assert world.drivers["east"].observe(world.now).nodes["h100-1"].lease is None
    world.remote.hook = lambda _: Fate.PASS
    assert terms(world)[-1] == ("controller-2", 1)


def test_a_take_over_that_lands_late_is_the_new_term():
    world, first, _, _ = elected_world()
    first.open = False
    world.controller.cycle(world.now)
    first.open = True
    fates = iter([Fate.DELAY])
    world.remote.hook = lambda op: (
        next(fates, Fate.PASS) if (op.kind, op.when) == ("push", "before") else Fate.PASS
    )
    assert not world.controller.cycle(world.now).leading
    world.remote.land()
    assert world.controller.cycle(world.now + SECOND).leading
    assert terms(world)[-1] == ("controller-2", 2)


def test_one_that_was_elected_before_and_after_a_shorter_turn_of_another_leads_again_within_two_minutes():
    """Its cycle was too long to see the turn between; nothing need be overdue."""
    world, _, second, waiting = elected_world()
    second.open = True
    assert waiting.cycle(world.now).leading
    second.open = False
    assert not world.controller.cycle(at(1)).leading
    assert not world.controller.cycle(at(2.9)).leading
    assert world.controller.cycle(at(3)).leading


@pytest.mark.parametrize(
    ("minutes", "phase"),
    [
        pytest.param(
            23.9, Phase.PROVISIONED, id="an end that is not two minutes overdue waits for the elected"
        ),
        pytest.param(24, Phase.RELEASING, id="an end that is two minutes overdue is anybody's"),
    ],
)
def test_strict_ends_happen_while_nobody_can_be_elected(minutes, phase):
    """The API server that holds the election may be down for long; other clusters are not."""
    world, first, _, waiting = elected_world()
    world.run(at(5))
    first.open = False
    world.controller.cycle(world.now)
    waiting.cycle(at(minutes))
    assert world.status("a/x").phase is phase
    assert waiting.cycle(at(minutes) + SECOND).leading == (phase is Phase.RELEASING)


def test_a_repository_without_a_status_branch_waits_for_the_elected():
    world = World(adopt=False)
    world.controller = world.start(Gate(False))
    assert not world.controller.cycle(world.now).leading
    assert BRANCH not in world.remote.tips


# -- elections that lie --------------------------------------------------------------------------------------


def test_two_that_both_believe_to_be_elected_play_the_story_without_harm():
    world = Witnessed()
    world.play_all([world.start(Gate()), world.start(Gate())])
    verdict = world.verdict(slack=3 * SECOND)
    assert verdict.broken == []
    assert {s.phase for s in verdict.last.values()} == {Phase.COMPLETED}
    assert len(terms(world)) <= 2 + (END - at(0)) / (2 * MINUTE), "a turn lasts two minutes at least"


def test_two_that_both_believe_it_and_stand_still_before_a_write_do_no_harm():
    """Before a hand-over or a push one stops, the other goes on under a later term, then the first wakes up."""
    for point in [point for point in range(60) if drawn(f"{point} stands still", 12)] or [30]:
        world = Witnessed()
        controllers = [world.start(Gate()), world.start(Gate())]

        def visit(number, _, __, world=world, controllers=controllers, point=point):
            if number == point:
                world.points.visit = lambda *_: None
                world.play_all([world.start(Gate())], world.now + 3 * MINUTE)

        world.points.visit = visit
        world.play_all(controllers, END + 30 * MINUTE)
        # The one that came between dies: what it left waits for two minutes and for the next look, ten minutes away.
        verdict = world.verdict(slack=12 * MINUTE)
        assert verdict.broken == [], point
        assert {s.phase for s in verdict.last.values()} == {Phase.COMPLETED}, point


TURNS = st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.integers(0, 90)), min_size=5, max_size=60)


@law(30)
@given(TURNS)
def test_however_elections_go_no_node_has_two_leases(turns):
    world = Witnessed()
    steps, world.steps = world.steps, ()
    gates = [Gate(), Gate(False), Gate(False)]
    controllers = [world.start(gate) for gate in gates]
    for who, elected, pause in turns:
        world.now += timedelta(seconds=pause)
        gates[who].open = elected
        controllers[who].cycle(world.now)
    for gate in gates:
        gate.open = gate is gates[0]
    world.play_all(controllers, world.now + 10 * MINUTE)
    for _, act in steps:
        act(world)
        world.play_all(controllers, world.now + MINUTE)
    world.play_all(controllers, world.now + 120 * MINUTE)
    verdict = world.verdict(slack=200 * MINUTE)
    assert verdict.broken == []
    assert {s.phase for s in verdict.last.values()} == {Phase.COMPLETED}
