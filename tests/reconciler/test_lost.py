"""The status branch is removed or set back: no lease is lost, every node is freed at its end, and it is told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.clusters.simulated.scripted_faults import ApiFails
from reconciler.loop import Reconciler
from reconciler.status.render import request_path
from reconciler.store.memory_store import MemoryStore
from schemas.errors import UserError
from schemas.status.gpr_status import GPRStatus, Phase
from tests.support.laws import Laws
from tests.support.world import World, at, cluster, gpr, gpr_path, project, slice_

STATUS = "egs/status"


def lived() -> World:
    """a/x holds h100-1 from 08:02 to 08:42, b/y waits for it; the term is the seventh."""
    world = World({"clusters/east.yaml": cluster(nodes=1)}, adopt=False)
    for _ in range(6):
        world.controller = world.start()
        world.run(world.now)
    world.file("a/x", duration="40m")
    world.run(at(5))
    world.file("b/y", duration="20m")
    world.run(at(6))
    assert world.status("a/x").phase is Phase.PROVISIONED
    return world


def holder(world: World, node: str = "h100-1") -> str | None:
    lease = world.drivers["east"].observe(world.now).nodes[node].lease
    return None if lease is None else lease.request


def told(world: World, reason: str) -> list[str]:
    return [e.message for cycle in world.log for e in cycle.events if e.reason == reason]


def adopts(world: World) -> None:
    """A process on another machine, with no mirror, is told that it may begin."""
    world.adopt = True
    world.controller = world.start()


def terms(status: GPRStatus) -> tuple[object, ...]:
    held = status.assignment
    assert held is not None
    return status.uid, status.start_time, status.end_time, held.cluster, held.pool, held.nodes


def test_adopting_goes_on_with_the_leases_that_clusters_bear():
    world = lived()
    before = world.status("a/x")
    world.remote.delete(STATUS)
    adopts(world)
    laws = Laws(world)
    world.run(at(7))
    assert terms(world.status("a/x")) == terms(before)
    assert world.controller._branch.stamp.term == 7
    assert holder(world) == "a/x"
    world.run(at(41.9))
    assert holder(world) == "a/x"
    world.run(at(70))
    assert world.status("a/x").phase is Phase.COMPLETED
    assert world.status("a/x").end_time == at(42)
    assert world.status("b/y").phase is Phase.COMPLETED
    assert len(told(world, "GPRRecognised")) == 1
    assert told(world, "ActionRefused") == []
    assert laws.broken == []


def test_a_lease_whose_file_is_gone_keeps_its_nodes_until_its_end():
    world = lived()
    world.commit({gpr_path("a/x"): None})
    world.remote.delete(STATUS)
    adopts(world)
    world.run(at(41.9))
    assert holder(world) == "a/x"
    assert told(world, "GPRFileMissing") != []
    world.run(at(45))
    assert world.facts().requests.get("a/x") is None
    assert holder(world) == "b/y"


def test_nodes_of_a_lease_that_ended_meanwhile_are_taken_back_and_that_is_told():
    """Five hours later they were still held: every write bore an older term."""
    world = lived()
    world.remote.delete(STATUS)
    world.now = at(300)
    adopts(world)
    world.run(at(310))
    assert holder(world) != "a/x" or world.status("a/x").start_time >= at(300)
    assert any("ended at" in text for text in told(world, "LeaseNotRecognised"))
    assert told(world, "ActionRefused") == []


def test_a_lease_that_was_extended_keeps_what_was_granted():
    world = lived()
    world.remote.delete(STATUS)
    with world.drivers["east"]._state.locked() as state:
        held = state.held("h100-1")
        lease = replace(held.lease, end=at(50))
        world.drivers["east"]._state.save(state.with_node("h100-1", replace(held, lease=lease)))
    adopts(world)
    world.run(at(7))
    assert world.status("a/x").end_time == at(50)
    assert world.status("a/x").extended_by == at(8) - at(0)


def test_a_cluster_that_is_silent_while_a_controller_adopts_loses_no_lease():
    """Its marks are older than what others bear by then, and are believed all the same."""
    world = World({
        "clusters/east.yaml": cluster(nodes=1),
        "clusters/west.yaml": cluster("west", nodes=1),
        "slices/b/slice.yaml": slice_("b", ("west",)),
    })  # fmt: skip
    world.file("a/x", duration="40m")
    world.file("b/y", duration="3h")
    world.run(at(5))
    before = world.status("b/y")
    for _ in range(3):
        world.controller = world.start()
        world.run(world.now)
        world.file("a/x", duration="40m", displayName=f"{world.controller._branch.stamp.term}")
        world.run(world.now)
    world.drivers["west"].inject(ApiFails(at=at(5), until=at(15)))
    world.remote.delete(STATUS)
    world.commit({gpr_path("b/y"): None})  # so that it does not begin anew elsewhere
    adopts(world)
    world.run(at(10))
    assert world.facts().unread == {"west"}
    assert any("west" in text for text in told(world, "LeaseNotRecognised"))
    world.controller = world.start()
    world.run(at(20))
    assert world.facts().unread == frozenset()
    assert terms(world.status("b/y")) == terms(before)


def test_nothing_is_taken_back_by_a_process_that_dies_before_it_has_read_the_marks():
    world = lived()
    world.remote.delete(STATUS)
    adopts(world)
    world.controller._leading.leads(world.now, world.controller._fetch())  # takes a term, and dies
    world.adopt = False
    world.controller = world.start()
    world.run(at(7))
    assert holder(world) == "a/x"
    assert world.status("a/x").phase is Phase.PROVISIONED


# -- what a controller that lives knows ----------------------------------------------------------------------


def earlier(world: World, back: int) -> str:
    tip = world.people.fetch([STATUS])[STATUS]
    return world.people.log(tip, back + 1)[back].oid


LOSSES = [
    pytest.param(lambda world: world.remote.delete(STATUS), id="removed"),
    pytest.param(lambda world: world.remote.tips.update({STATUS: earlier(world, 5)}), id="set back"),
]


@pytest.mark.parametrize("loss", LOSSES)
def test_a_controller_that_leads_puts_the_branch_back(loss):
    world = lived()
    before = world.facts()
    loss(world)
    world.run(at(7))
    assert world.facts().requests == before.requests
    assert [text for text in told(world, "StatusPutBack") if STATUS in text] != []
    assert len(told(world, "StatusPutBack")) == 1
    world.run(at(50))
    assert world.status("a/x").end_time == at(42)
    assert holder(world) == "b/y"


@pytest.mark.parametrize("loss", LOSSES)
def test_one_that_stands_by_puts_it_back_where_the_leader_is_dead(loss):
    """Both hold the facts; who is first makes the branch, and the others follow."""
    world = lived()
    standing = [world.start(), world.start()]
    leader = world.controller = world.start()
    for controller in standing:
        controller._leading._called = False
        controller._leading._elected = True
    world.run(at(7))
    for controller in standing:
        assert not controller.cycle(world.now).leading
    loss(world)
    del leader
    world.now = at(44.5)
    cycles = [controller.cycle(world.now) for controller in standing]
    assert [cycle.leading for cycle in cycles] == [True, False]
    assert world.status("a/x").end_time == at(42)
    assert world.status("a/x").phase is Phase.RELEASING


def restarted(world: World) -> Reconciler:
    """The next process with the same mirror."""
    before = world.controller._ports.store
    world.controller = world.start()
    after = world.controller._ports.store
    assert isinstance(before, MemoryStore)
    assert isinstance(after, MemoryStore)
    after._remembered, after._known = dict(before._remembered), set(before._known)
    return world.controller


@pytest.mark.parametrize("loss", LOSSES)
def test_what_the_mirror_remembers_is_put_back_after_a_restart(loss):
    world = lived()
    before = world.facts()
    loss(world)
    restarted(world)
    world.run(at(7))
    assert world.facts().requests == before.requests
    assert len(told(world, "StatusPutBack")) == 1


def test_what_others_did_after_the_mirror_s_last_look_is_read_from_the_marks():
    world = lived()
    old = world.controller
    world.controller = world.start()
    world.run(at(50))
    assert holder(world) == "b/y"
    was = world.status("b/y")
    world.remote.delete(STATUS)
    world.controller = old
    restarted(world)
    world.run(at(52))
    assert terms(world.status("b/y")) == terms(was)
    assert world.status("a/x").phase is Phase.COMPLETED


def test_what_is_remembered_of_another_main_is_not_put_back_by_itself():
    world = lived()
    world.remote.delete(STATUS)
    world.remote.delete("main")
    world.commit({
        "project.yaml": project(), "clusters/east.yaml": cluster(),
        "slices/a/slice.yaml": slice_("a"), gpr_path("a/z"): gpr("a", "z"),
    })  # fmt: skip
    restarted(world)
    with pytest.raises(UserError) as caught:
        world.controller.cycle(world.now)
    assert caught.value.reason == "StatusOfAnotherMain"


# -- what a controller without a memory notices ---------------------------------------------------------------


def test_marks_newer_than_the_branch_are_told_and_their_leases_stand():
    world = World({"clusters/east.yaml": cluster(nodes=1)}, adopt=False)
    world.run(world.now)
    old = world.remote.tips[STATUS]
    for _ in range(3):
        world.controller = world.start()
        world.run(world.now)
    world.file("a/x", duration="40m")
    world.run(at(5))
    before = world.status("a/x")
    world.remote.tips[STATUS] = old
    world.controller = world.start()
    world.run(at(8))
    assert any("newer than" in text and "adopt" in text for text in told(world, "RepositoryAlarm"))
    assert holder(world) == "a/x"
    adopts(world)
    world.run(at(10))
    assert terms(world.status("a/x")) == terms(before)
    world.run(at(43))
    assert holder(world) is None


def test_a_mark_that_no_controller_wrote_becomes_no_request():
    """A kubelet may write what it likes on its own node."""
    world = lived()
    world.remote.delete(STATUS)
    with world.drivers["east"]._state.locked() as state:
        held = state.held("h100-1")
        lease = replace(held.lease, request="a/../../project")
        world.drivers["east"]._state.save(state.with_node("h100-1", replace(held, lease=lease)))
    adopts(world)
    world.run(at(7))
    assert any("no controller wrote" in text for text in told(world, "LeaseNotRecognised"))
    assert world.text(request_path("a/x")) is not None
