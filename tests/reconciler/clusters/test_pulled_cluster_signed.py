"""Pull mode where everybody signs: forged decisions move no node, forged reports deceive nobody (A6, B10)."""

from __future__ import annotations

import pytest

from reconciler.clusters.pulled_cluster import ReportBranches
from reconciler.loop import Reconciler
from reconciler.ports import Ports
from reconciler.processes.applier import Applier
from reconciler.status.render import request_path
from reconciler.status.yaml_rows import document as document
from reconciler.store.document_cache import DocumentCache
from reconciler.store.memory_store import MemoryStore
from reconciler.store.trailers import Stamp
from reconciler.trust.machines import Machines, signing
from schemas.documents.base import Metadata
from schemas.reading.reader import READER_VERSION
from schemas.status.gpr_status import Phase
from schemas.status.judgements import TrustRecord
from tests.support.machinekeys import key, line, machines
from tests.support.pulled import PulledWorld, pulled_drivers
from tests.support.signed import STATUS, SignedWorld
from tests.support.world import at, cluster

REPORTS = "egs/clusters/east"
LINES = (line("controller"), line("applier:west"), line("agent:east/*", "agents"))


class Pulled(PulledWorld):
    """The trust folder names the controller; the manifest, the key of the cluster's applier."""

    push = SignedWorld.push

    def __init__(self, **spec: object) -> None:
        own = {"applierKeys": [key("applier").public], "access": {"pull": True}, "nodes": 1}
        super().__init__({"clusters/east.yaml": cluster(**{**own, **spec})}, adopt=False)
        self.run(self.now)
        self.file("a/x", duration="40m")
        self.run(at(5))
        assert self.status("a/x").phase is Phase.PROVISIONED

    def machines(self) -> Machines:
        return machines(*LINES, level="none")

    def start(self, may_lead: object = None) -> Reconciler:
        self._count += 1
        if self._count == 1:
            self.appliers = {}
        store = MemoryStore(self.remote, signing(key("controller")))
        reports = ReportBranches(store, self.machines())
        return Reconciler(
            Ports(
                store,
                DocumentCache(None, READER_VERSION),
                pulled_drivers(reports),
                settled=reports.settled,
                machines=self.machines(),
            ),
            self.settings,
            f"controller-{self._count}",
            adopt=self.adopt,
        )

    def apply(self, cluster: str, store: object = None) -> Applier:
        self.lives += 1
        return Applier(
            MemoryStore(self.remote, signing(key("applier"))),
            DocumentCache(None, READER_VERSION),
            cluster,
            lambda spec: self.inside(cluster, spec),
            self.settings,
            f"applier-{self.lives}",
            machines=self.machines(),
        )

    def holder(self) -> str | None:
        """Who has the node, as the cluster itself says."""
        lease = self.drivers["east"].observe(self.now).nodes["h100-1"].lease
        return None if lease is None else lease.request

    def said(self) -> dict[str, bytes | None]:
        """What the applier reported last."""
        tip = self.people.fetch([REPORTS])[REPORTS]
        return {e.path: self.people.read([e.oid])[e.oid] for e in self.people.diff(None, tip) if e.oid}


def decided_otherwise(world: Pulled) -> dict[str, bytes | None]:
    """a/x ends now."""
    text = world.text(request_path("a/x"))
    assert text is not None
    return {request_path("a/x"): text.replace("08:42:00", "08:06:00").encode()}


STATUS_ATTACKS = {
    "an unsigned decision": lambda w: w.push(decided_otherwise(w)),
    "one signed by a stranger": lambda w: w.push(decided_otherwise(w), signing(key("eve"))),
    "one signed by the applier itself": lambda w: w.push(decided_otherwise(w), signing(key("applier"))),
    "a history of their own": lambda w: w.push(decided_otherwise(w), root=True),
    "no branch at all": lambda w: w.remote.delete(STATUS),
}


@pytest.mark.parametrize("attack", [pytest.param(attack, id=name) for name, attack in STATUS_ATTACKS.items()])
def test_an_applier_acts_on_signed_decisions_alone(attack, caplog):
    """While no controller is there to put it right: strict ends still happen as they were committed."""
    world = Pulled()
    attack(world)
    world.leave_alone(at(41))
    assert world.holder() == "a/x"
    assert "status not followed" in caplog.text
    world.leave_alone(at(43))
    assert world.holder() is None


@pytest.mark.parametrize(
    "attack",
    [
        pytest.param(a, id=n)
        for n, a in STATUS_ATTACKS.items()
        if n not in ("no branch at all", "a history of their own")
    ],
)
def test_an_applier_that_starts_below_a_forgery_acts_on_what_was_signed(attack):
    world = Pulled()
    attack(world)
    world.appliers["east"] = world.apply("east")
    world.leave_alone(at(41))
    assert world.holder() == "a/x"
    world.leave_alone(at(43))
    assert world.holder() is None


def freed(world: Pulled) -> dict[str, bytes | None]:
    """A report in which the node is nobody's."""
    said = world.said()
    path = next(
        path for path, text in said.items() if path.startswith("nodes/") and b"lease" in (text or b"")
    )
    return {path: b"- name: h100-1\n  pool: h100\n  ready: true\n"}


REPORT_ATTACKS = {
    "unsigned": lambda w: w.push(freed(w), branch=REPORTS, stamp=None),
    "with a copied stamp and a higher term": lambda w: w.push(freed(w), branch=REPORTS),
    "signed by another cluster's applier": lambda w: w.push(
        freed(w), signing(key("applier:west")), branch=REPORTS
    ),
    "signed by the controller": lambda w: w.push(freed(w), signing(key("controller")), branch=REPORTS),
    "signed by an agent": lambda w: w.push(freed(w), signing(key("agents")), branch=REPORTS),
}


@pytest.mark.parametrize("attack", [pytest.param(attack, id=name) for name, attack in REPORT_ATTACKS.items()])
@pytest.mark.parametrize("restarted", [False, True], ids=["while it runs", "while it restarts"])
def test_a_forged_report_is_not_believed_and_its_applier_goes_on(attack, restarted):
    world = Pulled()
    world.file("b/y", duration="10m")
    world.run(at(6))
    attack(world)
    if restarted:
        world.controller = world.start()
        world.appliers["east"] = world.apply("east")
    world.controller.cycle(world.now)
    assert world.status("a/x").phase is Phase.PROVISIONED
    world.run(at(41))
    assert world.holder() == "a/x"
    assert world.status("a/x").assignment is not None
    world.run(at(50))
    assert world.holder() == "b/y"
    assert "DriftRepaired" not in world.told(), "nobody thought that the node was free"
    assert world.remote.commits[world.remote.tips[REPORTS]].commit.author.email == "applier@egs.dev"


def test_an_old_report_that_is_shown_again_does_not_count():
    world = Pulled()
    old = [c.oid for c in world.people.log(world.people.fetch([REPORTS])[REPORTS], 100)][-1]
    world.remote.tips[REPORTS] = old
    world.controller.cycle(world.now)
    assert world.status("a/x").phase is Phase.PROVISIONED
    world.run(at(41))
    assert world.holder() == "a/x"


def test_a_cluster_whose_applier_has_another_key_counts_as_out_of_reach():
    world = Pulled()
    world.commit(
        {"clusters/east.yaml": cluster(nodes=1, access={"pull": True}, applierKeys=[key("new").public])}
    )
    world.run(at(20))
    assert world.facts().clusters["east"].reachable is False
    assert world.status("a/x").phase is Phase.PROVISIONED


def test_a_forged_term_makes_no_applier_stand_down():
    world = Pulled()
    for term in (99, 9_999, 999_999):
        world.push({"report.yaml": b"kind: Other\n"}, branch=REPORTS, stamp=Stamp("applier-9", term, 1))
        world.wake_of(world.appliers["east"])
        tip = world.remote.commits[world.remote.tips[REPORTS]].commit
        assert tip.author.email == "applier@egs.dev", "at once, not when it counts as silent"


def test_an_applier_that_met_a_forgery_follows_what_is_decided_afterwards():
    """Else one forged stamp would make every honest decision look old."""
    world = Pulled()
    world.push(decided_otherwise(world))
    world.leave_alone(at(6))
    world.file("a/x", duration="40m", earlyRelease=True)
    world.run(at(15))
    assert world.holder() is None
    assert world.status("a/x").phase is Phase.COMPLETED


# -- main ----------------------------------------------------------------------------------------------------


UNPULLED = {"clusters/east.yaml": cluster(nodes=1)}
"""A manifest by which an applier would leave the cluster alone, and a/x its node for ever."""


def ends_in_time(world: Pulled) -> None:
    world.leave_alone(at(41))
    assert world.holder() == "a/x"
    world.leave_alone(at(43))
    assert world.holder() is None


def test_an_applier_does_not_follow_a_main_that_was_rewritten():
    world = Pulled()
    changes = {path: text.encode() for path, text in UNPULLED.items()}
    world.push(changes, branch="main", stamp=None, root=True)
    ends_in_time(world)


def test_an_applier_follows_main_no_further_than_it_was_judged():
    """What nobody had the right to is on main and acted on by nobody: the status says how far main counts."""
    world = Pulled()
    judged = TrustRecord(metadata=Metadata(name="trust"), main=world.remote.tips["main"])
    controller = signing(key("controller"))
    world.push({"trust.yaml": document(judged)}, controller, stamp=Stamp("controller-1", 50, 1))
    world.commit(UNPULLED)
    ends_in_time(world)
