"""One bad commit, file, cluster or clock stops nobody else: ends stay strict and people are told once."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

import reconciler.documents.read_ahead
from reconciler.acting.actions import Action, Do
from reconciler.acting.apply import Answers
from reconciler.acting.cluster_refusals import Refusals
from reconciler.clusters.open_cluster import DriverOptions
from reconciler.clusters.simulated.embedded import EmbeddedCluster
from reconciler.compose import OpenClusters
from reconciler.documents.in_force import Desired
from reconciler.health.agent_reports import Reports
from reconciler.health.node_health import judge_nodes
from reconciler.model.cluster_port import Refused, SliceTerms, Stamp
from reconciler.model.events import Event, EventReason
from reconciler.status.readme import _table
from reconciler.store.document_cache import DocumentCache
from reconciler.store.memory_store import MemoryStore
from reconciler.telling.news import PendingEvents
from schemas.errors import Fault, UserError
from schemas.reading.reader import READER_VERSION
from schemas.rules.problems import Problem
from schemas.status.gpr_status import Phase
from tests.reconciler.health.test_node_health import NOW, report, seen, spec
from tests.support.world import World, approval, at, cluster, gpr, gpr_path, parsed

STATUS = "egs/status"


def running(**more) -> World:
    """One request that runs until minute 32."""
    world = World(**more)
    world.file("a/x", nodes=1, duration="30m")
    world.run(at(10))
    assert world.status("a/x").phase is Phase.PROVISIONED
    return world


def leases(world: World, name: str = "east") -> list[str]:
    nodes = world.drivers[name].observe(world.now).nodes.values()
    return [node.lease.request for node in nodes if node.lease is not None]


def alarms(world: World) -> list[str]:
    events = [event for cycle in world.log for event in cycle.events]
    return [event.message for event in events if event.reason is EventReason.ALARM]


def test_a_push_of_too_many_files_stops_no_end_and_is_told_once(monkeypatch):
    world = running()
    monkeypatch.setattr(reconciler.documents.read_ahead, "MAX_DOCUMENTS", 5)
    world.commit({gpr_path(f"b/g{i}"): gpr("b", f"g{i}") for i in range(10)})
    world.run(at(50))
    assert world.status("a/x").phase is Phase.COMPLETED
    assert leases(world) == []
    assert ["at most 5 are allowed" in text for text in alarms(world)] == [True]


@pytest.mark.parametrize("broken", ["write", "diff"])
def test_a_store_that_fails_stops_no_end(broken):
    world = running()

    def fail(*_):
        raise Fault("the disk is full", "GitFailed")

    setattr(world.controller._ports.store, broken, fail)
    world.commit({gpr_path("b/y"): gpr("b", "y")})
    world.run(at(40))
    assert leases(world) == []


def test_a_change_that_was_read_and_not_put_in_force_is_caught_up_with():
    world = World()
    store = MemoryStore(world.remote)
    store.fetch(["main"])
    desired = Desired(store, DocumentCache(None, READER_VERSION))
    desired.update(store.tips()["main"])
    first = world.commit({"clusters/west.yaml": cluster("west"), gpr_path("a/x"): gpr("a", "x")})
    store.fetch(["main"])
    good, desired._put_in_force = desired._put_in_force, _failing
    with pytest.raises(Fault):
        desired.update(first)
    desired._put_in_force = good
    second = world.commit({gpr_path("a/x"): None})
    store.fetch(["main"])
    desired.update(second)
    wanted = desired.wanted(world.facts())
    assert (sorted(wanted.clusters), dict(wanted.filed)) == (["east", "west"], {})


def _failing(*_):
    raise Fault("the disk is full", "GitFailed")


@pytest.mark.parametrize("error", [Fault("x"), OSError("x"), None])
def test_one_cluster_in_trouble_stops_no_other(tmp_path, error):
    world = running(files={"clusters/west.yaml": cluster("west")}, state=tmp_path)
    if error is None:
        (tmp_path / "west.json").write_text("{")
    else:

        def fail(*_):
            raise error

        world.drivers["west"].observe = fail
    world.run(at(50))
    assert world.status("a/x").phase is Phase.COMPLETED
    assert leases(world) == []


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(
            UserError("there is no kubeconfig west.yaml; add it", "BadKubeconfig"), id="no kubeconfig"
        ),
        pytest.param(Fault("the API server of cluster west answers 401", "Unauthorized"), id="an old token"),
    ],
)
def test_a_cluster_out_of_reach_says_why(error):
    world = World(files={"clusters/west.yaml": cluster("west")})

    def fail(*_):
        raise error

    world.run(at(1))
    world.drivers["west"].observe = fail
    world.run(at(3))
    told = [e for c in world.log for e in c.events if e.reason is EventReason.CLUSTER_UNREACHABLE]
    assert [str(error) in event.message for event in told] == [True]


def test_a_state_that_nobody_can_read_or_write_is_a_fault_and_the_cluster_comes_back(tmp_path):
    document = parsed("clusters/west.yaml", cluster("west"))
    (tmp_path / "west.json").write_text("{")
    opened = OpenClusters(DriverOptions(tmp_path))
    driver = opened({"west": document.spec})["west"]
    with pytest.raises(Fault):
        driver.observe(at(0))
    (tmp_path / "west.json").unlink()
    assert driver.observe(at(0)).nodes
    (tmp_path / "west.json.new").mkdir()
    with pytest.raises(Fault):
        EmbeddedCluster("west", document.spec, tmp_path / "west.json").ensure_slice(
            SliceTerms("a", ()), Stamp(1, 1), at(1)
        )


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({"slices/a/gprs/x.yaml": "kind: GPR\nspec: 3\n"}, id="a request"),
        pytest.param({"slices/a/gprs/gone.yaml": "kind: GPR\n"}, id="a request that nobody filed"),
        pytest.param({"nodes/east/n.yaml": "a: [\n"}, id="a node"),
        pytest.param({"usage/a.yaml": "[]"}, id="a ledger"),
        pytest.param({"events/2026-11-21/08-0.yaml": "a: [\n"}, id="the newest events"),
        pytest.param({"events/2026-11-21/08-foo.yaml": "x: 1\n"}, id="a strange name among events"),
    ],
)
def test_a_file_of_the_branch_that_somebody_broke_is_no_loss_and_told(files):
    world = running()
    before = world.status("a/x")
    world.commit(files, STATUS)
    world.controller = world.start()
    world.run(at(12))
    after = world.status("a/x")
    assert (after.uid, after.start_time, after.end_time) == (before.uid, before.start_time, before.end_time)
    told = [text for text in alarms(world) if "cannot be read" in text]
    assert len(told) == ("foo" not in next(iter(files)))
    world.log.clear()
    world.controller = world.start()
    world.run(at(14))
    if "events" not in next(iter(files)):
        assert alarms(world) == []


def test_a_branch_that_the_fetch_refuses_is_told_once():
    world = running()
    world.controller._ports.store.alarms = lambda: ("branch main: its objects are broken",)
    world.run(at(20))
    assert alarms(world) == ["branch main: its objects are broken"]


def test_refused_manifests_are_told_at_the_first_start_without_adopt():
    world = World({"templates/t.yaml": "a: [\n"}, adopt=False)
    world.run(at(1))
    assert world.told().count(str(EventReason.MANIFEST_REFUSED)) == 1


def test_a_problem_is_told_again_when_it_comes_back():
    pending, problem = PendingEvents(), Problem("a.yaml", 1, 1, "X", "error", "m", "f")
    for problems in ([problem], [problem], [], [problem]):
        pending.note_problems(problems, at(0))
    assert len(pending.with_notes(())) == 2


def test_no_text_leaves_its_cell():
    text = _table(("a",), [("two\nlines | [x](http://y) <b> `c` \\[z](w)",)])
    assert text.splitlines()[2] == r"| two lines \| \[x\](http://y) \<b\> \`c\` \\\[z\](w) |"


def test_reports_and_faults_of_the_future_do_not_count():
    late = report("h100-1").model_copy(update={"at": NOW + timedelta(hours=1)})
    faults = report("h100-1", 500, 501, 502, healthy=True)
    for found in (late, faults):
        said = replace(seen(4), reports={("east", "h100-1"): found})
        assert judge_nodes({"east": spec(4)}, said, {}, frozenset(), NOW) == {}


def test_a_report_of_the_future_hides_no_other_and_a_large_one_is_not_read():
    world = World()
    branch = "egs/agents/east/"
    world.report("h100-1", True)
    text = world.people.read_path(world.people.fetch([branch + "h100-1"])[branch + "h100-1"], "report.yaml")
    later = text.decode().replace("2026-11-21", "2027-11-21").replace("healthy: true", "healthy: false")
    world.commit({"report.yaml": later}, branch + "other")
    world.commit({"report.yaml": later + "#" * 70_000}, branch + "large")
    store = MemoryStore(world.remote)
    store.fetch(["egs/agents/*/*"])
    reports, sizes = Reports(store), []
    read, store.read = store.read, lambda oids: sizes.extend(map(len, (f := read(oids)).values())) or f
    assert [r.healthy for r in reports.read({"east": None}, at(1)).values()] == [True]
    assert max(sizes) < 70_000


def test_a_refusal_that_passed_is_told_again():
    refusals = Refusals()
    action = Action(Do.ISOLATE, "east", node="h100-1")
    met = Answers(refused=[(action, Refused("NodeGone", "it is gone"))])
    rounds = [met, met, Answers(), met]
    assert [len(refusals.fresh(answers, at(0))) for answers in rounds] == [1, 0, 0, 1]


def test_actions_that_alternate_do_not_stop_the_time(monkeypatch):
    world = World()
    rounds = iter(range(100))

    def alternating(*_):
        return Answers(done=[Action(Do.ISOLATE, "east", node=f"h100-{next(rounds) % 2}")])

    monkeypatch.setattr("reconciler.acting.fleet.apply", alternating)
    wakes = [world.controller.cycle(at(1)).wake for _ in range(4)]
    assert wakes == [at(1), *[at(1) + timedelta(seconds=1)] * 3]


def test_an_incremental_filing_is_what_a_fresh_one_is():
    world = World()
    store = MemoryStore(world.remote)
    kept = Desired(store, DocumentCache(None, READER_VERSION))
    template = "apiVersion: egs.dev/v1alpha1\nkind: GPRTemplate\nmetadata: {name: t}\nspec: {nodes: %d}\n"
    bare = gpr("a", "x").replace("  nodes: 1\n", "") + "  template: t\n"
    changes = [
        {gpr_path("a/x"): bare},
        {"templates/t.yaml": template % 1},
        {"templates/t.yaml": template % 2, gpr_path("b/y"): gpr("b", "y")},
        {gpr_path("a/x"): "a: [\n"},
        {gpr_path("a/x"): bare, "templates/t.yaml": None},
        {gpr_path("b/y"): None, "approvals/b/y/ada.yaml": approval("b", "y", "sha256:0")},
        {"slices/a/slice.yaml": None},
    ]
    for change in changes:
        tip = world.commit(change)
        store.fetch(["main"])
        kept.update(tip)
        fresh = Desired(store, DocumentCache(None, READER_VERSION))
        fresh._force = {path: kept._force[path] for path in kept._force}
        fresh.update(tip)
        assert kept.wanted(world.facts()).filed == fresh.wanted(world.facts()).filed
        assert kept._entries == fresh._entries


def test_documents_in_force_are_resolved_once():
    world = running()
    desired = world.controller._memory.main.desired
    assert desired.wanted(world.facts()) is desired.wanted(world.facts())


def test_a_quiet_cycle_renders_nothing(monkeypatch):
    world = running()
    rendered: list[Event] = []
    monkeypatch.setattr("reconciler.status.rendered_files.render", lambda *_: rendered.append(_) or {})
    world.controller.cycle(world.now + timedelta(seconds=1))
    assert rendered == []


def test_a_follower_reads_only_what_a_commit_changed():
    world = running()
    reader = world.controller._leading.branch
    reader.read(at(10))
    world.file("b/y")
    world.controller = world.start()
    world.run(at(11))
    store = MemoryStore(world.remote)
    store.fetch([STATUS])
    reader._belief._store = MemoryStore(world.remote)  # which lists a stranger's tip once, to see that it can
    reader._belief._store.fetch([STATUS])
    reader._store = reader._trees._store = store
    diffs = []
    diff, store.diff = store.diff, lambda old, new: diffs.append(old) or diff(old, new)
    facts = reader.read(at(11)).facts
    assert None not in diffs
    assert facts.requests == world.facts().requests
