"""Who may push to the status branch and is no controller gets nothing: no node, no end, no lead (A6, B10).

Each attack happens while a controller runs, and between two of its lives.
"""

from __future__ import annotations

import pytest

from reconciler.status.render import request_path
from reconciler.trust.machines import signing
from schemas.errors import UserError
from schemas.status.gpr_status import Phase
from tests.support.machinekeys import key, line
from tests.support.signed import HIGHER, STATUS, SignedWorld
from tests.support.world import World, at, cluster, gpr_path

pytestmark = pytest.mark.slow


def running(kind: type[World] = SignedWorld) -> World:
    """a/x holds the only node from 08:02 to 08:42; b/y waits for it."""
    world = kind({"clusters/east.yaml": cluster(nodes=1)})
    world.run(world.now)
    world.file("a/x", duration="40m")
    world.run(at(5))
    world.file("b/y", duration="20m")
    world.run(at(6))
    assert world.status("a/x").phase is Phase.PROVISIONED
    return world


def forged(world: SignedWorld) -> dict[str, bytes | None]:
    """Status files in which b/y has the node of a/x, and a/x is over."""
    x, y = world.text(request_path("a/x")), world.text(request_path("b/y"))
    assert x is not None
    assert y is not None
    theirs = x.replace("a/x", "b/y").replace("slice: a", "slice: b").replace("name: x", "name: y")
    return {request_path("a/x"): None, request_path("b/y"): theirs.encode()}


ATTACKS = {
    "unsigned": lambda world: world.push(forged(world), stamp=None),
    "unsigned, with a higher term and a copied writer": lambda world: world.push(forged(world)),
    "signed by another key": lambda world: world.push(forged(world), signing(key("eve"))),
    "signed by an agent's key": lambda world: world.push(forged(world), signing(key("agents"))),
    "with the signature of an honest commit": lambda world: world.push(forged(world), honest(world)),
    "an unrelated history": lambda world: world.push(forged(world), root=True),
    "everything deleted": lambda world: world.push(dict.fromkeys(paths(world))),
    "too large to be read": lambda world: world.remote.too_large.add(world.push(forged(world))),
    "ten forgeries one after the other": lambda world: [
        world.push({"README.md": b"%d" % number}) for number in range(10)
    ],
}


def honest(world: SignedWorld):
    commit = world.remote.commits[world.remote.tips[STATUS]].commit
    return lambda _: commit.signature


def paths(world: SignedWorld) -> list[str]:
    tip = world.people.fetch([STATUS])[STATUS]
    return [entry.path for entry in world.people.diff(None, tip)]


def goes_on(world: SignedWorld) -> None:
    """Everything happens as if nothing had: nobody else gets the node, a/x ends on the minute, then b/y has it."""
    assert world.status("a/x").phase is Phase.PROVISIONED
    assert leaseholder(world) == "a/x"
    world.run(at(41.9))
    assert leaseholder(world) == "a/x"
    world.run(at(55))
    assert world.status("a/x").phase is Phase.COMPLETED
    assert world.status("a/x").end_time == at(42)
    assert leaseholder(world) == "b/y"


def leaseholder(world: SignedWorld) -> str | None:
    lease = world.drivers["east"].observe(world.now).nodes["h100-1"].lease
    return None if lease is None else lease.request


def alarmed(world: SignedWorld) -> list[str]:
    return [e.message for cycle in world.log for e in cycle.events if e.reason == "RepositoryAlarm"]


@pytest.mark.parametrize("attack", [pytest.param(attack, id=name) for name, attack in ATTACKS.items()])
def test_a_running_controller_goes_on_as_if_nothing_had_happened(attack):
    world = running()
    attack(world)
    world.run(at(8))
    assert any("egs/status" in text for text in alarmed(world))
    goes_on(world)


@pytest.mark.parametrize(
    "attack", [pytest.param(attack, id=name) for name, attack in ATTACKS.items() if "unrelated" not in name]
)
def test_a_controller_that_starts_afterwards_finds_what_was_true(attack):
    world = running()
    attack(world)
    world.controller = world.start()
    world.run(at(8))
    assert any("egs/status" in text for text in alarmed(world))
    goes_on(world)


def test_a_controller_that_finds_nothing_signed_refuses_to_guess():
    """Where the history is gone and no mirror remembers it, a person has to say what counts."""
    world = running()
    world.push(forged(world), root=True)
    world.controller = world.start()
    with pytest.raises(UserError) as caught:
        world.run(at(8))
    assert caught.value.reason == "StatusNotTrusted"
    assert leaseholder(world) == "a/x"


def test_a_branch_that_is_set_back_while_a_controller_runs_goes_on_where_it_was():
    world = running()
    tip = world.remote.tips[STATUS]
    earlier = [c.oid for c in world.people.log(world.people.fetch([STATUS])[STATUS], 100)]
    world.remote.tips[STATUS] = earlier[-2]  # before anything was filed
    world.run(at(8))
    assert world.remote.tips[STATUS] != tip
    assert any("egs/status" in text for text in alarmed(world))
    goes_on(world)


def test_a_branch_that_is_removed_while_a_controller_runs_is_there_again():
    world = running()
    world.remote.delete(STATUS)
    world.run(at(8))
    assert any("gone" in text for text in alarmed(world))
    goes_on(world)


def test_a_branch_that_others_keep_away_stops_no_end():
    """The status branch removed, and one below it pushed: nothing new is decided, what was committed goes on."""
    world = running()
    tip = world.remote.tips[STATUS]
    world.remote.delete(STATUS)
    world.remote.tips[f"{STATUS}/x"] = tip
    world.run(at(41.9))
    assert leaseholder(world) == "a/x"
    world.run(at(50))
    assert leaseholder(world) is None
    world.remote.delete(f"{STATUS}/x")
    world.run(at(55))
    assert any(f"{STATUS}/x" in text for text in alarmed(world))
    assert world.status("a/x").phase is Phase.COMPLETED
    assert leaseholder(world) == "b/y"


@pytest.mark.parametrize("restarted", [False, True], ids=["while it runs", "while it restarts"])
def test_where_nobody_signs_a_status_that_cannot_be_read_changes_nothing(restarted):
    world = running(World)
    world.remote.too_large.add(SignedWorld.push(world, forged_nothing()))
    world.controller = world.start() if restarted else world.controller
    world.run(at(8))
    assert any("cannot be read" in text for text in alarmed(world))
    goes_on(world)


def forged_nothing() -> dict[str, bytes | None]:
    return {"README.md": b"by hand"}


def test_a_forged_term_takes_no_controller_in():
    """One that leads goes on, one that only reads goes on reading, and does not take the forgery for its leader."""
    world = running()
    follower, leader = world.controller, world.start()
    assert leader.cycle(world.now).leading
    assert not follower.cycle(world.now).leading
    world.push(forged(world))
    assert not follower.cycle(world.now).leading
    assert follower._leading.branch.superseded
    world.controller = leader
    world.run(at(8))
    assert not follower.cycle(world.now).leading
    goes_on(world)


def test_a_stranger_who_keeps_pushing_stops_nothing():
    world = running()
    for minute in range(7, 55):
        world.push({"README.md": b"again"}, stamp=HIGHER)
        world.run(at(minute))
    assert world.status("a/x").end_time == at(42)
    assert leaseholder(world) == "b/y"


def test_the_first_signed_status_of_a_repository_that_never_signed_needs_a_person():
    world = SignedWorld()
    world.lines = ()
    world.key = "old"
    world.controller = world.start()
    world.run(world.now)
    world.file("a/x", duration="40m")
    world.run(at(5))
    world.lines, world.key = (line("controller"),), "controller"
    world.controller = world.start()
    with pytest.raises(UserError) as caught:
        world.controller.cycle(world.now)
    assert caught.value.reason == "StatusNotTrusted"
    world.adopt = True
    world.controller = world.start()
    world.run(at(6))
    assert world.status("a/x").phase is Phase.PROVISIONED
    world.adopt = False
    world.controller = world.start()
    world.run(at(7))
    assert world.status("a/x").phase is Phase.PROVISIONED
    assert gpr_path("a/x") in {e.path for e in world.people.diff(None, world.people.fetch(["main"])["main"])}
