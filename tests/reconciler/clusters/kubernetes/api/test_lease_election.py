"""Of several controllers one leads, by a Lease of a real API server; who fails is followed within 15 s.

Time is injected: every process has a monotonic clock of its own, and how it reads the other's wall clock never matters.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from reconciler.clock import ManualClock
from reconciler.clusters.kubernetes.api.lease_election import (
    LEASE_S,
    RETRY_S,
    Acquire,
    Election,
    Follow,
    Held,
    Renew,
    decided,
)
from schemas.errors import Fault
from tests.support.kube import eventually

NAMESPACE, NAME = "egs-system", "controller"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{NAME}"


def held(holder: str = "other", lease_s: int = 10) -> Held:
    return Held(holder, lease_s, "2026-11-21T08:00:00.000000Z", 1)


@pytest.mark.parametrize(
    ("lease", "now_s", "want"),
    [
        pytest.param(None, 100, Acquire(), id="a Lease that is not there is taken"),
        pytest.param(held(""), 100, Acquire(), id="one that was given back is taken at once"),
        pytest.param(held("me"), 500, Renew(), id="our own is renewed, however old it is"),
        pytest.param(
            held(), 109.9, Follow(110), id="somebody else's stands while it was seen changing lately"
        ),
        pytest.param(held(), 110, Acquire(), id="one that we saw unchanged for its time is taken"),
        pytest.param(held(lease_s=10**9), 399, Follow(400), id="an absurd time is not respected for ever"),
        pytest.param(held(lease_s=-5), 101, Acquire(), id="nor is a negative one"),
    ],
)
def test_what_is_done_about_a_lease(lease, now_s, want):
    """Judged by what we saw (at 100 s) and our own clock; what is written in it as a time says nothing."""
    assert decided(lease, "me", now_s, 100) == want


class Process:
    """One process that takes part, with clocks of its own; `skew` is how wrong its wall clock is."""

    def __init__(self, api, name: str, world: list[float], skew: timedelta = timedelta()) -> None:
        self.turns = 0
        wall = ManualClock(datetime(2026, 11, 21, 8, tzinfo=UTC) + skew)
        self.election = Election(
            api, NAMESPACE, NAME, name, turned=self._turned, clock=wall, monotonic=lambda: world[0]
        )
        self._wall, self._world, self._due = wall, world, world[0]

    def _turned(self) -> None:
        self.turns += 1

    def tick(self) -> bool:
        """Look if it is time to; whether it leads."""
        self._wall.set(self._wall.now() + timedelta(microseconds=1))
        if self._world[0] >= self._due:
            self._due = self._world[0] + self.election.step()
        return self.election.leads()


@pytest.fixture
def api(kube):
    kube.api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    return kube.api


def leader_after(world: list[float], processes: list[Process], seconds: float) -> list[int]:
    """Who leads (all of them) after that time in steps of a quarter of a second; never two on the way."""
    leads: list[int] = []
    end = world[0] + seconds
    while world[0] < end:
        world[0] += 0.25
        for process in processes:
            process.tick()
        leads = [n for n, p in enumerate(processes) if p.election.leads()]
        assert len(leads) <= 1, world[0]
    return leads


@pytest.mark.parametrize("hours", [-5, 0, 5])
def test_another_one_leads_within_15_s_after_a_crash_whatever_its_clock_says(api, hours):
    world = [1000.0]
    first = Process(api, "first", world)
    second = Process(api, "second", world, timedelta(hours=hours))
    assert leader_after(world, [first, second], 20) == [0]
    begun = world[0]
    while not second.tick():
        world[0] += 0.25
    assert world[0] - begun <= LEASE_S + 2 * RETRY_S < 15
    assert not first.election.leads(), "it knew before that it does not lead any more"
    assert first.tick() is False
    spec = api.get(LEASE)["spec"]
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("second", 1)


def test_one_that_cannot_renew_stops_before_another_one_begins(api, monkeypatch):
    """Its API server is away for it alone; there is no instant at which both lead, and none for long without."""
    world = [1000.0]
    first, second = Process(api, "first", world), Process(api, "second", world)
    leader_after(world, [first, second], 5)
    monkeypatch.setattr(first.election, "step", lambda: 1.5)  # nothing is renewed
    ended = began = 0.0
    while not began:
        world[0] += 0.25
        ended = ended or (0.0 if first.tick() else world[0])
        began = world[0] if second.tick() else 0.0
    assert 0 < ended < began


def test_one_that_stops_gives_the_lease_back(api):
    """A rolling update fails over at once, not when the Lease has run out."""
    world = [1000.0]
    first, second = Process(api, "first", world), Process(api, "second", world)
    assert leader_after(world, [first, second], 5) == [0]
    first.election.stop()
    assert leader_after(world, [second], 2) == [0]
    assert (first.turns, second.turns) == (1, 1)


def test_of_two_that_see_a_free_lease_one_gets_it(api):
    """The write is conditional on what was read: the slower one finds out and follows."""
    world = [1000.0]
    first, second = Process(api, "first", world), Process(api, "second", world)
    real = api.find

    def raced(path):
        api.find = real
        found = real(path)
        second.tick()
        return found

    api.find = raced
    assert not first.tick()
    assert second.election.leads()
    first.election.release()
    assert api.get(LEASE)["spec"]["holderIdentity"] == "second", "what is not ours is not given back"


def test_what_people_wrote_on_the_lease_stays(api):
    world = [1000.0]
    first = Process(api, "first", world)
    first.tick()
    api.merge(LEASE, {"metadata": {"labels": {"team": "infra"}}})
    world[0] += 2
    assert first.tick()
    assert api.get(LEASE)["metadata"]["labels"] == {"team": "infra"}


def test_it_runs_by_itself(api):
    """The thread, with the real clock."""
    first = Election(api, NAMESPACE, NAME, "first")
    second = Election(api, NAMESPACE, NAME, "second")
    first.start()
    eventually(first.leads, "the first leads")
    second.start()
    first.stop()
    eventually(second.leads, "the second leads", 5)
    assert not first.leads()
    second.stop()


def test_trouble_is_told_once_and_ends_the_lead(api, caplog):
    """A namespace that is not there, a verb that is missing, an API server that is away: all the same here."""
    world = [1000.0]
    first = Process(api, "first", world)
    assert first.tick()

    def broken(_):
        raise Fault("no answer", "ClusterUnreachable")

    real, api.find = api.find, broken
    try:
        for _ in range(10):
            world[0] += 1.5
            first.tick()
    finally:
        api.find = real
    assert not first.election.leads()
    assert first.turns == 2
    assert sum("election in trouble" in r.message for r in caplog.records) == 1
    world[0] += 1.5
    assert first.tick()


def test_a_defect_ends_the_lead_and_not_the_taking_part(caplog):
    """Else the process would be a follower for good, and nobody would know why."""

    class Broken:
        def find(self, _):
            raise TypeError("a Lease without metadata")

    world = [1000.0]
    first = Process(Broken(), "first", world)
    for _ in range(3):
        assert not first.tick()
    assert sum("election broke" in r.message for r in caplog.records) == 1


def test_who_listens_may_break_and_the_election_goes_on(api, caplog):
    def breaks():
        raise TypeError

    first = Election(api, NAMESPACE, NAME, "first", turned=breaks)
    first.step()
    assert first.leads()
    first.step()
    assert sum("its listener broke" in r.message for r in caplog.records) == 1
