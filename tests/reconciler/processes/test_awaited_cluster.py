"""An applier that starts before its merge says so, and is there as soon as it is merged (A2)."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest

from reconciler.clock import SystemClock
from reconciler.clusters.pulled_cluster import branch_of
from reconciler.processes.awaited_cluster import Awaiting
from reconciler.processes.probes import ready
from reconciler.processes.wake import Waking
from schemas.errors import UserError
from tests.support.kube import eventually
from tests.support.pulled import PulledWorld
from tests.support.world import at, cluster

POLL = timedelta(seconds=15)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        pytest.param("west", "UnknownCluster", id="no document of the cluster"),
        pytest.param("east", "NotPulled", id="one that is not pulled"),
    ],
)
def test_it_waits_for_the_merge_at_each_poll_and_begins_with_it(
    name: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    world = PulledWorld({"clusters/east.yaml": cluster()})
    world.controller.cycle(at(0))
    applier = Awaiting(world.apply(name), name, POLL)
    caplog.set_level(logging.INFO, "reconciler.processes.awaited_cluster")
    for minute in range(10):
        cycle = applier.cycle(at(minute))
        assert (cycle.waits, cycle.wake, cycle.leading) == (reason, at(minute) + POLL, False)
    own = [record for record in caplog.records if record.name == "reconciler.processes.awaited_cluster"]
    assert [record.levelname for record in own] == ["WARNING"]
    assert reason in caplog.text
    world.commit({f"clusters/{name}.yaml": cluster(name, access={"pull": True})})
    cycle = applier.cycle(at(10))
    assert (cycle.waits, cycle.leading) == ("", True)
    assert branch_of(name) in world.remote.tips
    assert "cluster is on main now" in caplog.text


def test_what_no_merge_ends_is_raised() -> None:
    class Refusing:
        def cycle(self, now: object) -> None:
            raise UserError("no such key", "KeyMissing")

    with pytest.raises(UserError):
        Awaiting(Refusing(), "east", POLL).cycle(at(0))  # type: ignore[arg-type]


def test_a_process_that_waits_is_alive_and_not_ready() -> None:
    """Who installs it sees by its readiness what it waits for."""
    world = PulledWorld({"clusters/east.yaml": cluster()})
    world.controller.cycle(at(0))
    loop = Waking(Awaiting(world.apply("west"), "west", POLL), SystemClock(), fatal=())
    loop.start()
    try:
        eventually(lambda: loop.progress.failing, "a first look")
    finally:
        loop.stop()
    found = ready({"west": loop.progress})
    assert (found.ok, found.repositories["west"][0]) == (False, "UnknownCluster")
