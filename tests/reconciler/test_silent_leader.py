"""Without an election one that reads takes over from a leader that owes something and keeps silent."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.settings import Settings
from reconciler.silent_leader import Silence
from reconciler.store.memory_store import MemoryStore
from schemas.status.gpr_status import Phase
from tests.support import witness
from tests.support.crash import BRANCH
from tests.support.world import START, World, at, gpr, gpr_path, project

POLL, SECOND = timedelta(seconds=30), timedelta(seconds=1)


def beside(minutes: float = 5) -> tuple[World, list]:
    """The one that leads, and one that it superseded and that reads; a/x runs from 08:02 to 09:02."""
    world = World({gpr_path("a/x"): gpr("a", "x")})
    world.run(at(0.1))
    reading, world.controller = world.controller, world.start()
    world.run(at(minutes))
    assert not reading.cycle(world.now).leading
    return world, [world.controller, reading]


def taken(world: World) -> int:
    """How often the branch was taken."""
    return max(step.term for step in witness.history(MemoryStore(world.remote), BRANCH))


def released() -> dict[str, str | None]:
    return {gpr_path("a/x"): gpr("a", "x", earlyRelease=True)}


def filed() -> dict[str, str | None]:
    return {gpr_path("b/y"): gpr("b", "y")}


@pytest.mark.parametrize(
    ("change", "branch"),
    [
        pytest.param(released(), "main", id="a release"),
        pytest.param(filed(), "main", id="a new request"),
        pytest.param(
            {gpr_path("b/y"): "spec: broken"}, "main", id="a file that cannot be read, which is told"
        ),
    ],
)
def test_what_is_owed_is_answered_within_two_polls(change, branch):
    world, (_, reading) = beside()
    world.commit(change, branch)
    for polls in range(3):
        assert reading.cycle(world.now).leading == (polls == 2)
        world.now += POLL
    assert taken(world) == 3


def test_an_agent_that_calls_its_node_bad_is_owed_an_answer():
    world, (_, reading) = beside()
    world.report("h100-1", healthy=False)
    for polls in range(3):
        assert reading.cycle(world.now).leading == (polls == 2)
        world.now += POLL
    assert ("east", "h100-1") in world.facts().nodes


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({gpr_path("a/x"): "# a comment\n" + gpr("a", "x")}, id="a comment"),
        pytest.param({"README.md": "read me"}, id="a file that is no document"),
        pytest.param({"project.yaml": "# ours\n" + project()}, id="a policy that says the same"),
        pytest.param({}, id="nothing at all"),
    ],
)
def test_a_leader_that_owes_nothing_may_keep_silent(change):
    world, (_, reading) = beside()
    if change:
        world.commit(change)
    for _ in range(6):
        assert not reading.cycle(world.now).leading
        world.now += POLL
    assert taken(world) == 2


def test_a_leader_that_answers_keeps_the_branch():
    world, (leading, reading) = beside()
    for number in range(6):
        world.file(f"b/r{number}")
        for _ in range(2):
            world.now += 29 * SECOND
            assert not reading.cycle(world.now).leading
        assert leading.cycle(world.now).leading
    assert taken(world) == 2


def test_of_two_that_read_one_takes_over_and_they_do_not_take_it_from_each_other():
    world, (_, first) = beside()
    world.controller, second = first, world.start()
    second.cycle(world.now)
    third = world.start()
    third.cycle(world.now)  # leads, and stops
    before = taken(world)
    world.commit(released())
    for _ in range(40):
        for one in (first, second):
            one.cycle(world.now)
        world.now += POLL
    assert taken(world) == before + 1
    assert world.status("a/x").phase is Phase.COMPLETED


def test_one_that_took_the_branch_in_vain_waits_longer_each_time():
    """Two that both plan for minutes must not take it from each other for ever."""
    silence = Silence(Settings("", START, poll=POLL, pushes_per_minute=None))  # type: ignore[arg-type]
    now, waited = START, []
    for number in range(3):
        begun = now
        while not silence.lasts({"a"}, f"tip {number}", now):
            now += SECOND
        waited.append(now - begun)
        silence.took()
    assert waited == [2 * POLL, 4 * POLL, 8 * POLL]
    silence.decided()
    assert not silence.lasts({"a"}, "tip 3", now + 100 * POLL), "what we found to be nothing is not owed"


def test_where_controllers_are_elected_the_election_says_who_goes_on():
    world = World({gpr_path("a/x"): gpr("a", "x")})
    world.controller = world.start(lambda: True)
    world.run(at(5))
    waiting = world.start(lambda: False)
    world.commit(released())
    for _ in range(6):
        assert not waiting.cycle(world.now).leading
        world.now += POLL
