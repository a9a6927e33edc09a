"""A Lease that lies: two controllers both believe that they lead, and the term in Git and the stamps hold.

Also the other way round: nobody is elected for a while, and strict ends come all the same.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.store.memory_store import MemoryStore
from schemas.status.gpr_status import Phase
from tests.support import witness
from tests.support.crash import BRANCH
from tests.support.profile import law
from tests.support.witnessed import END, Witnessed
from tests.support.world import World, at, gpr, gpr_path

pytestmark = pytest.mark.slow

MINUTE = timedelta(minutes=1)


def yes() -> bool:
    """What a Lease tells that lies."""
    return True


def both_elected() -> tuple[Witnessed, list]:
    """Two processes, each sure that it is the one."""
    world = Witnessed()
    world.controller = world.start(may_lead=yes)
    return world, [world.controller, world.start(may_lead=yes)]


@pytest.mark.parametrize("newest_first", [True, False])
def test_two_that_both_believe_they_lead_do_no_harm(newest_first):
    """No node twice, no older stamp obeyed, every end strict, every request served."""
    world, controllers = both_elected()
    world.play_all(controllers[::-1] if newest_first else controllers, END + 30 * MINUTE)
    verdict = world.verdict(slack=3 * timedelta(seconds=1))
    assert verdict.broken == []
    assert {status.phase for status in verdict.last.values()} == {Phase.COMPLETED}


@law(8)
@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.integers(0, 90), st.booleans(), st.booleans()),
        min_size=5,
        max_size=60,
    )
)
def test_whatever_the_lease_says_to_whom(turns):
    """Elected, both, none, and back, in any order, at any pace."""
    world = Witnessed()
    words = [True, True]
    controllers = [world.start(may_lead=lambda n=n: words[n]) for n in range(2)]
    steps, world.steps = world.steps, ()
    for who, pause, first, second in turns:
        words[:] = [first, second]
        world.now += timedelta(seconds=pause)
        controllers[who].cycle(world.now)
    words[:] = [True, True]
    world.play_all(controllers, world.now + 10 * MINUTE)
    for _, act in steps:
        act(world)
        world.play_all(controllers, world.now + MINUTE)
    world.play_all(controllers, world.now + 120 * MINUTE)
    assert world.verdict(slack=200 * MINUTE).broken == []


@pytest.mark.parametrize("kind", ["push", "check", "add", "evict", "remove"])
def test_one_that_stands_still_before_a_write_and_still_believes_it_leads_is_refused(kind):
    """For twelve minutes, while the other one goes on; then both are awake, and both are sure."""
    world, (first, second) = both_elected()
    awake = [first]

    def visit(_: int, what: str, __: object) -> None:
        if what == kind and world.now > at(1):
            world.points.visit = lambda *_: None
            world.play_all([second], world.now + 12 * MINUTE)
            awake.append(second)

    world.points.visit = visit
    world.play_all(awake, END + 30 * MINUTE)
    assert len(awake) == 2
    assert world.verdict(slack=3 * timedelta(seconds=1)).broken == []


def test_each_has_a_term_of_its_own():
    world, controllers = both_elected()
    world.play_all(controllers, END)
    steps = witness.history(MemoryStore(world.remote), BRANCH)
    by_term = {(step.term, step.writer) for step in steps}
    assert len(by_term) == len({term for term, _ in by_term})


def test_while_nobody_is_elected_strict_ends_come_two_minutes_late_at_most():
    """An election that cannot be held must not keep nodes from anybody."""
    world = World({gpr_path("a/x"): gpr("a", "x", duration="20m")})
    word = [True]
    world.controller = world.start(may_lead=lambda: word[0])
    world.run(at(5))
    word[0] = False
    world.run(at(40))
    assert world.status("a/x").phase is Phase.COMPLETED
    assert world.status("a/x").end_time == at(22)
