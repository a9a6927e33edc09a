"""Reports of agents, and what others put there: only the node's own agent speaks, and never of the past (A6)."""

from __future__ import annotations

import pytest

from reconciler.health.agent_reports import MOST_ALARMS, SEARCHED, Reports
from reconciler.store.memory_store import MemoryStore
from reconciler.trust.machines import Machines
from schemas.status.node_status import NodeMetadata
from tests.support.machinekeys import key, keyring, line
from tests.support.signed import SignedWorld
from tests.support.world import at, cluster, parsed

BRANCH = "egs/agents/east/h100-1"
OWN = {
    "agentKeys": [{"agent": "h100-1", "key": key("n1").public}, {"agent": "h100-2", "key": key("n2").public}]
}


def world_of(**spec) -> SignedWorld:
    """Its manifest lists a key for each agent; the trust folder names none of them."""
    world = SignedWorld({"clusters/east.yaml": cluster(**{**OWN, **spec})})
    world.lines = (line("controller"),)
    return world


def spec_of(world: SignedWorld):
    text = world.people.read_path(world.people.fetch(["main"])["main"], "clusters/east.yaml")
    return parsed("clusters/east.yaml", text.decode()).spec


class Reader:
    """A controller's reading half."""

    def __init__(self, world: SignedWorld) -> None:
        self.world, self.store = world, MemoryStore(world.remote)
        self.reports = Reports(self.store, world.machines())

    def read(self) -> dict[str, bool]:
        """Which nodes are healthy, by their agents."""
        self.store.fetch(["egs/agents/*/*"])
        found = self.reports.read({"east": spec_of(self.world)}, self.world.now)
        return {node: report.healthy for (_, node), report in found.items()}


FORGERIES = {
    "unsigned": lambda w: w.reported("h100-1", True, None),
    "signed by a stranger": lambda w: w.reported("h100-1", True, "eve"),
    "signed by another agent": lambda w: w.reported("h100-1", True, "n2"),
    "signed by the controller": lambda w: w.reported("h100-1", True, "controller"),
    "signed for another purpose": lambda w: w.reported("h100-1", True, "n1", namespace="git"),
    "for another cluster": lambda w: w.reported("h100-1", True, "n1", cluster_name="west"),
    "under another agent's name": lambda w: w.reported(
        "h100-1", True, "n1", metadata=NodeMetadata(name="h100-2")
    ),
    "another node's own, on this branch": lambda w: w.reported("h100-2", True, "n2", branch=BRANCH),
    "no report at all": lambda w: w.commit({"report.yaml": None}, BRANCH),
    "its signature taken away": lambda w: w.commit({"report.yaml.sig": None}, BRANCH),
    "a file that is no report": lambda w: w.commit({"report.yaml": "kind: ["}, BRANCH),
    "a report that is too large": lambda w: w.commit({"report.yaml": "#" * 300_000}, BRANCH),
}


@pytest.mark.parametrize("forge", [pytest.param(forge, id=name) for name, forge in FORGERIES.items()])
@pytest.mark.parametrize("restarted", [False, True], ids=["while it runs", "while it restarts"])
def test_a_forged_report_leaves_the_last_one_in_force(forge, restarted):
    world = world_of()
    reader = Reader(world)
    world.reported("h100-1", False, "n1", reason="TooHot")
    assert reader.read() == {"h100-1": False}
    world.now = at(1)
    forge(world)
    reader = Reader(world) if restarted else reader
    assert reader.read() == {"h100-1": False}
    assert len(reader.reports.alarms) == 1
    world.now = at(2)
    world.reported("h100-1", True, "n1")
    assert reader.read() == {"h100-1": True}
    assert reader.reports.alarms == ()


def test_no_agent_speaks_for_another_node():
    """An agent of a node that was broken into takes no other node out, and heals none."""
    world = world_of()
    world.reported("h100-2", False, "n1", branch=BRANCH, metadata=NodeMetadata(name="h100-1"))
    assert Reader(world).read() == {}
    world.reported("h100-1", False, "n1", branch="egs/agents/east/h100-2")
    assert Reader(world).read() == {}


def test_several_agents_of_a_node_bear_its_name():
    world = world_of(agentKeys=[{"agent": "*", "key": key("all").public}])
    second = {"metadata": NodeMetadata(name="h100-1.nvlink"), "branch": "egs/agents/east/h100-1.nvlink"}
    world.reported("h100-1", False, "all", **second)
    assert Reader(world).read() == {"h100-1": False}


def test_an_old_report_that_is_shown_again_does_not_count():
    """Signed by the right key, once true: a branch set back, or an old report put on top of a new one."""
    world = world_of()
    reader = Reader(world)
    world.reported("h100-1", True, "n1")
    old = world.remote.tips[BRANCH]
    reader.read()
    world.now = at(1)
    world.reported("h100-1", False, "n1", reason="TooHot")
    assert reader.read() == {"h100-1": False}
    new = world.remote.tips[BRANCH]
    world.remote.tips[BRANCH] = old
    assert reader.read() == {"h100-1": False}
    assert any("was reset" in alarm for alarm in reader.reports.alarms)
    world.remote.tips[BRANCH] = new
    world.now = at(0)
    world.reported("h100-1", True, "n1")
    world.now = at(2)
    assert reader.read() == {"h100-1": False}


def test_a_branch_that_is_removed_leaves_its_last_report_in_force():
    world = world_of()
    reader = Reader(world)
    world.reported("h100-1", False, "n1", reason="TooHot")
    reader.read()
    world.remote.delete(BRANCH)
    assert reader.read() == {"h100-1": False}
    assert any("is gone" in alarm for alarm in reader.reports.alarms)


def test_a_key_that_is_taken_off_the_manifest_takes_its_reports_along():
    world = world_of()
    reader = Reader(world)
    world.reported("h100-1", False, "n1", reason="TooHot")
    reader.read()
    world.commit({"clusters/east.yaml": cluster(agentKeys=[{"agent": "h100-1", "key": key("next").public}])})
    assert reader.read() == {}
    world.reported("h100-1", True, "next")
    assert reader.read() == {"h100-1": True}


class Folder:
    """A trust folder whose lines change while a controller runs."""

    def __init__(self, world: SignedWorld) -> None:
        self.keys = keyring(*world.lines)

    def __call__(self):
        return self.keys


@pytest.mark.parametrize("how", ["taken out", "revoked"])
def test_a_key_that_leaves_the_trust_folder_takes_its_reports_along(how):
    world = SignedWorld({"clusters/east.yaml": cluster()})
    others = (line("controller"), line("agent:east/h100-2", "n2"))
    world.lines = (*others, line("agent:east/h100-1", "n1"))
    folder, reader = Folder(world), Reader(world)
    reader.reports = Reports(reader.store, Machines(folder, "none"))
    world.reported("h100-1", False, "n1", reason="TooHot")
    world.reported("h100-2", True, "n2")
    assert reader.read() == {"h100-1": False, "h100-2": True}
    folder.keys = keyring(*others) if how == "taken out" else keyring(*world.lines, revoked=("n1",))
    assert reader.read() == {"h100-2": True}
    folder.keys = keyring(*world.lines)
    assert reader.read() == {"h100-1": False, "h100-2": True}


@pytest.mark.parametrize("signed", [True, False], ids=["signed", "not signed"])
def test_a_report_dated_in_the_future_hides_no_other(signed):
    """By a clock that is wrong, or a stolen key."""
    world = world_of() if signed else SignedWorld()
    world.lines = (line("controller"),)
    by = "n1" if signed else None
    reader = Reader(world)
    world.reported("h100-1", True, by)
    assert reader.read() == {"h100-1": True}
    world.now = at(10)
    world.reported("h100-1", False, by, at=at(5000), reason="TooHot")
    assert reader.read() == {"h100-1": True}, "what was before it counts"
    if signed:
        assert any("is in the future" in alarm for alarm in reader.reports.alarms)
        assert Reader(world).read() == {"h100-1": True}
    world.now = at(4999)
    assert reader.read() == {"h100-1": False}, "its time has come"
    world.now = at(5001)
    world.reported("h100-1", False, by, at=at(90000), reason="TooHot")
    world.reported("h100-1", True, by)
    assert reader.read() == {"h100-1": True}, "what comes after it counts"
    assert reader.reports.alarms == ()


def test_a_commit_that_cannot_be_read_hides_no_report_below_it():
    world = world_of()
    world.reported("h100-1", False, "n1", reason="TooHot")
    world.commit({"report.yaml": None}, BRANCH)
    world.remote.too_large.add(world.remote.tips[BRANCH])
    reader = Reader(world)
    assert reader.read() == {"h100-1": False}
    assert len(reader.reports.alarms) == 1


def test_the_search_below_a_forgery_ends():
    world = world_of()
    world.reported("h100-1", False, "n1", reason="TooHot")
    for number in range(SEARCHED):
        world.commit({"report.yaml": f"# {number}"}, BRANCH)
    assert Reader(world).read() == {}


def test_without_keys_every_report_counts():
    world = SignedWorld()
    world.lines = (line("controller"),)
    world.reported("h100-1", False, None, reason="TooHot")
    assert Reader(world).read() == {"h100-1": False}


def test_a_node_out_of_service_is_not_brought_back_by_a_forged_report():
    """End to end: the planner keeps it out, and people are told."""
    world = SignedWorld({"clusters/east.yaml": cluster(nodes=1)})
    world.run(world.now)
    world.report("h100-1", False, reason="TooHot", message="it is too hot")
    world.run(at(1))
    world.reported("h100-1", True, by="eve")
    world.file("a/x", duration="10m")
    world.run(at(5))
    assert world.status("a/x").assignment is None
    alarms = [e.message for cycle in world.log for e in cycle.events if e.reason == "RepositoryAlarm"]
    assert any(BRANCH in text for text in alarms)
    world.report("h100-1", True)
    world.run(at(10))
    assert world.status("a/x").assignment is not None


def test_many_branches_that_are_nobodys_are_told_in_few_sentences():
    world = world_of()
    reader = Reader(world)
    for number in range(MOST_ALARMS + 5):
        world.reported("h100-1", False, "eve", branch=f"egs/agents/east/junk-{number}")
    assert reader.read() == {}
    assert len(reader.reports.alarms) == MOST_ALARMS + 1
    for branch in [b for b in world.remote.tips if "junk" in b]:
        world.remote.delete(branch)
    reader.read()
    assert reader.reports.alarms == (), "what never counted and is gone is no loss"
