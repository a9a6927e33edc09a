"""Pull mode: the apply half works inside of each cluster, the centre has no way into it (A2, A14).

The stories of tests/cases/reconciler are played again with every cluster pulled, under the same laws: those
that the commit under test draws, at night all. An applier is killed at its writes, as a controller is in test_crash.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from reconciler.clusters.pulled_cluster import branch_of
from reconciler.clusters.simulated import simulated_writes
from reconciler.clusters.simulated.simulated_world import Job
from reconciler.model.cluster_port import Stamp
from schemas.errors import UserError
from schemas.status.gpr_status import Phase
from tests.reconciler import test_stories
from tests.reconciler.test_crash import unlike
from tests.reconciler.test_stories import Play
from tests.support.profile import drawn
from tests.support.pulled import PulledWitnessed, PulledWorld
from tests.support.world import at, cluster, gpr, gpr_path

MINUTE = timedelta(minutes=1)
OTHERWISE = {
    "a node that somebody else cordoned gets nothing new, keeps what it has, and stays theirs": (
        "its nodes are free again when the applier looks, not at the very minute"
    ),
    "a lease's mark that somebody takes off a node is put back": "told as drift of its slice, see below",
    "by policy a request does not pay for the time in which a node failed, and for half an hour of each replacement": (
        "the failure is known a minute later, when the applier has looked, so that minute is paid"
    ),
    "what a workload says of its checkpoints stands in the status, each ten minutes, and each minute near the end": (
        "its word comes with the applier's next report"
    ),
    "of equally many leases those go that lose the least work since their checkpoints": "the same words come later",
    "the end of a notice that passed while the controller was away is carried out when it is back": (
        "the applier carries it out in time"
    ),
}
"""Stories that pull mode tells otherwise, and why."""


ALWAYS = ("while the repository is down", "a start that passed while the controller was away")
"""Stories in which pull mode is most of its own."""


def stories() -> list[Any]:
    """Every story of clusters, and as many of the others as there is time for."""
    found = []
    for about, told in test_stories.TOLD.items():
        for story in told:
            chosen = about == "clusters" or story["story"].startswith(ALWAYS) or drawn(story["story"], 12)
            if chosen and story["story"] not in OTHERWISE:
                found.append(pytest.param(story, id=story["story"]))
    return found


class PulledPlay(Play):
    """A story in which every cluster is pulled."""

    def _manifests(self, kind: str, changes: Mapping[str, Any]) -> dict[str, str | None]:
        if kind == "cluster":
            changes = {n: c if c is None else {"access": {"pull": True}, **c} for n, c in changes.items()}
        return super()._manifests(kind, changes)

    def do_controller(self, what: str) -> None:
        """While it is away its clusters' appliers go on."""
        assert isinstance(self.world, PulledWorld)
        if not self.runs:
            until, self.world.now = self.world.now, self.stopped
            self.world.leave_alone(until)
        self.stopped = self.world.now
        super().do_controller(what)


@pytest.mark.parametrize("story", stories())
def test_story(story, monkeypatch):
    monkeypatch.setattr(test_stories, "World", PulledWorld)
    PulledPlay(story.get("given", {})).through(story["steps"])


# -- killed --------------------------------------------------------------------------------------------------


def test_an_applier_killed_at_any_write_loses_and_doubles_nothing():
    """Before and after each call to the cluster, each commit and each push; the ends stay strict."""
    whole = PulledWitnessed()
    want = whole.play()
    assert want.broken == []
    assert {status.phase for status in want.last.values()} == {Phase.COMPLETED}
    kinds = whole.points.kinds
    assert {"write", "push", "ensure_slice", "check", "add", "evict", "remove", "isolate"} <= set(kinds)
    broken = {}
    for number in range(len(kinds)):
        for when in (way for way in ("before", "after") if drawn(f"{number} {way}", 50)):
            world = PulledWitnessed()
            world.kill(number, when)
            got = world.play()
            found = got.broken + unlike(got, want) + ([] if world.lives == 2 else ["nobody was killed"])
            if found:
                broken[f"{when} {kinds[number]} ({number})"] = found
    assert broken == {}


# -- alone ---------------------------------------------------------------------------------------------------


def pulled(**spec: object) -> PulledWorld:
    """One request for 20 minutes from minute 2 on, in a pulled cluster."""
    files = {"clusters/east.yaml": cluster(access={"pull": True}, **spec)}
    return PulledWorld({**files, gpr_path("a/x"): gpr("a", "x", duration="20m")})


def held(world: PulledWorld) -> list[str]:
    view = world.drivers["east"].observe(world.now)
    return sorted(name for name, node in view.nodes.items() if node.lease is not None)


def test_without_centre_and_repository_a_committed_start_and_end_come_on_the_second():
    world = pulled()
    world.run(at(1))
    assert held(world) == []
    world.remote.down = True
    world.leave_alone(at(2) - timedelta(seconds=1))
    assert held(world) == []
    world.leave_alone(at(2))
    world.wake_of(world.appliers["east"])
    assert held(world) == ["h100-1"]
    world.leave_alone(at(22))
    world.wake_of(world.appliers["east"])
    assert held(world) == []


def test_a_status_branch_that_is_gone_or_goes_back_is_not_followed(monkeypatch):
    """Nothing is undone by what is older than what was done, also where a cluster would let it happen."""
    monkeypatch.setattr(simulated_writes, "stale", lambda *_: None)
    world = PulledWorld({"clusters/east.yaml": cluster(access={"pull": True})})
    world.run(world.now)
    old = world.remote.tips["egs/status"]  # knows of no request
    world.file("a/x", duration="20m")
    world.run(at(5))
    assert held(world) == ["h100-1"]
    world.remote.tips["egs/status"] = old
    world.leave_alone(at(6))
    assert held(world) == ["h100-1"]
    world.remote.delete("egs/status")
    world.leave_alone(at(7))
    assert held(world) == ["h100-1"]
    world.leave_alone(at(23))
    assert held(world) == [], "its strict end was committed"


def test_a_stranger_s_commit_on_the_status_branch_is_not_followed():
    world = pulled()
    world.run(at(5))
    tip = world.people.fetch(["egs/status"])["egs/status"]
    world.commit({entry.path: None for entry in world.people.diff(None, tip)}, "egs/status")
    world.leave_alone(at(6))
    assert held(world) == ["h100-1"]


def test_every_write_bears_the_stamp_of_the_commit_it_follows_from():
    world = pulled()
    world.run(at(5))
    node = world.drivers["east"].observe(world.now).nodes["h100-1"]
    term = 1
    assert node.stamp is not None
    assert node.stamp.term == term
    assert Stamp(term, 1) < node.stamp


def test_a_cluster_that_says_it_is_reached_otherwise_is_left_alone():
    """Two that drive one cluster would be in each other's way."""
    world = pulled()
    world.run(at(5))
    world.commit({"clusters/east.yaml": cluster()})
    with pytest.raises(UserError) as caught:
        world.appliers["east"].cycle(world.now)
    assert caught.value.reason == "NotPulled"
    with pytest.raises(UserError) as caught:
        world.apply("west").cycle(world.now)
    assert caught.value.reason == "UnknownCluster"


# -- reports -------------------------------------------------------------------------------------------------


def pushes(world: PulledWorld) -> int:
    """Commits of the report branch; none was re-rooted in a test so short."""
    branch = branch_of("east")
    return len(world.people.log(world.people.fetch([branch])[branch], 1000))


def test_a_quiet_cluster_reports_every_five_minutes_and_workloads_alone_are_no_news():
    world = pulled()
    world.run(at(60))
    assert world.status("a/x").phase is Phase.COMPLETED
    before = pushes(world)
    for minute in range(61, 120):
        world.run(at(minute))
        world.drivers["east"].submit(Job(f"job-{minute}", "a", 0), world.now)
    assert 10 <= pushes(world) - before <= 13


def test_an_applier_that_is_gone_is_noticed_when_it_breaks_its_word():
    world = pulled()
    world.run(at(40))
    for applier in world.appliers:
        world.appliers[applier] = Gone()  # type: ignore[assignment]
    world.run(at(44))
    assert world.facts().clusters["east"].reachable
    world.run(at(49))
    assert not world.facts().clusters["east"].reachable


def test_one_that_is_gone_while_something_is_asked_of_it_is_noticed_within_stale():
    world = pulled()
    world.run(at(40))
    world.appliers["east"] = Gone()  # type: ignore[assignment]
    world.file("b/y", duration="20m")
    world.run(at(43))
    assert not world.facts().clusters["east"].reachable


class Gone:
    """An applier that was killed and that nobody starts again."""

    def cycle(self, now: Any) -> Any:
        """Nothing, for a long time."""
        return type("Quiet", (), {"wake": now + timedelta(days=1)})


def test_of_two_appliers_the_later_one_acts_and_the_other_goes_on_when_it_is_silent():
    world = pulled()
    world.run(at(5))
    old, new = world.appliers["east"], world.apply("east")
    assert new.cycle(world.now).leading
    assert not old.cycle(world.now).leading
    world.now = at(11)
    assert not old.cycle(world.now).leading, "the other one's word is good for five minutes, and a grace"
    world.now = at(13)
    assert old.cycle(world.now).leading
    assert not new.cycle(world.now).leading
    world.now = at(22)
    old.cycle(world.now)
    assert held(world) == []


def test_drift_is_told_by_the_centre_also_when_it_was_put_right_before_it_looked():
    world = pulled()
    world.run(at(10))
    node = world.drivers["east"].observe(world.now).nodes["h100-1"]
    assert node.lease is not None
    assert node.stamp is not None
    world.drivers["east"].remove("h100-1", node.lease.uid, node.stamp, world.now)
    world.run(at(15))
    assert held(world) == ["h100-1"]
    told = [event.message for cycle in world.log for event in cycle.events if event.reason == "DriftRepaired"]
    assert told == [
        "east: Node h100-1 of slice a was changed (lost its lease mark of a/x); put right",
    ]


def test_what_is_committed_about_a_request_is_told_in_its_cluster_once():
    world = pulled()
    world.run(at(10))
    world.appliers["east"] = world.apply("east")
    world.run(at(60))
    notes = world.drivers["east"].notes()
    assert len({note.key for note in notes}) == len(notes)
    reasons = [note.reason for note in notes if note.request == "a/x"]
    for reason in ("GPRProvisioned", "GPRDuration25", "GPRDuration50", "GPRDuration75", "GPRCompleted"):
        assert reasons.count(reason) == 1, reason
