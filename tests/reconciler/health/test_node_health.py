"""What a node is to the planner: the isolation limit, quarantine and its end, and who counts for what (F10, H14)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.health.node_health import judge_nodes
from reconciler.model.cluster_port import ClusterView, NodeView
from reconciler.model.facts import Facts, Seen
from reconciler.status.render import render
from schemas.documents.cluster import Cluster, ClusterSpec
from schemas.status.node_status import AgentReport, NodeMetadata, NodeRecord, NodeState
from tests.reconciler.acting.test_actions import wanted
from tests.support.readback import facts_from
from tests.support.world import at, cluster, parsed

NOW = at(100)


def spec(nodes: int, **more: object) -> ClusterSpec:
    document = parsed("clusters/east.yaml", cluster("east", nodes, **more))
    assert isinstance(document, Cluster)
    return document.spec


def seen(nodes: int, bad: int = 0, silent: int = 0, cordoned: int = 0) -> Seen:
    """`bad` nodes from the first on are reported, `silent` from the last on do not answer, then come cordoned ones."""
    names = [f"h100-{i}" for i in range(1, nodes + 1)]
    quiet, shut = names[nodes - silent :], names[nodes - silent - cordoned : nodes - silent]
    views = {n: NodeView(n, "h100", ready=n not in quiet, cordoned=n in shut) for n in names}
    reports = {("east", n): report(n) for n in names[:bad]}
    return Seen({"east": ClusterView(NOW, views, {})}, reports)


def report(node: str, *faults: int, healthy: bool = False) -> AgentReport:
    times = tuple(at(minute) for minute in faults)
    return AgentReport(
        metadata=NodeMetadata(name=node),
        cluster="east",
        node=node,
        at=NOW,
        healthy=healthy,
        reason="TooHot",
        faults=times,
    )


def states(records: dict[tuple[str, str], NodeRecord]) -> dict[NodeState, int]:
    found = [record.state for record in records.values()]
    return {state: found.count(state) for state in NodeState if state in found}


@pytest.mark.parametrize(
    ("nodes", "bad", "want_out"),
    [
        pytest.param(1, 1, 1, id="a pool of one may lose its one"),
        pytest.param(2, 2, 1, id="a small pool loses one at most"),
        pytest.param(19, 5, 1, id="a tenth is rounded down"),
        pytest.param(20, 5, 2, id="two of twenty"),
        pytest.param(100, 60, 10, id="ten of a hundred"),
        pytest.param(100, 3, 3, id="fewer than the limit are all out"),
    ],
)
def test_never_more_than_a_tenth_of_a_pool_is_isolated(nodes: int, bad: int, want_out: int) -> None:
    records = judge_nodes({"east": spec(nodes)}, seen(nodes, bad), {}, frozenset(), NOW)
    got = states(records)
    assert got.get(NodeState.UNHEALTHY, 0) == want_out
    assert got.get(NodeState.SUSPECT, 0) == bad - want_out


@pytest.mark.parametrize(
    ("begin", "nodes", "want"),
    [
        pytest.param(101, None, {}, id="before its time"),
        pytest.param(100, None, {NodeState.LOST: 3}, id="at its begin"),
        pytest.param(99, 2, {NodeState.LOST: 2}, id="two of three"),
    ],
)
def test_a_node_that_is_not_reserved_is_not_missed(
    begin: int, nodes: int | None, want: dict[NodeState, int]
) -> None:
    """F13: silent ones are not, either: a provider takes them back at the end."""
    few = {} if nodes is None else {"nodes": nodes}
    held = {"begin": at(begin).isoformat(), "end": at(begin + 60).isoformat(), **few}
    pool = {"name": "h100", "gpuShape": "H100-80GB", "gpusPerNode": 8, "memoryPerGpu": 80, "nodes": 3}
    there = Seen({"east": ClusterView(NOW, {"h100-1": NodeView("h100-1", "h100", ready=False)}, {})}, {})
    records = judge_nodes({"east": spec(3, pools=[pool | {"reserved": [held]}])}, there, {}, frozenset(), NOW)
    assert states(records) == want


def test_silent_and_cordoned_nodes_do_not_count_towards_the_limit() -> None:
    records = judge_nodes({"east": spec(10)}, seen(10, bad=1, silent=3, cordoned=2), {}, frozenset(), NOW)
    assert states(records) == {NodeState.UNHEALTHY: 1, NodeState.CORDONED: 2, NodeState.LOST: 3}


@pytest.mark.parametrize(
    ("view", "want"),
    [
        pytest.param({}, "Ready", id="a sound node"),
        pytest.param({"foreign": ("ml/a",)}, "Occupied ForeignPods: GPU pods outside of slices run there: ml/a; it is",
                     id="a pod of nobody's slice"),
        pytest.param({"foreign": tuple(f"ml/{i}" for i in range(5))},
                     "Occupied ForeignPods: GPU pods outside of slices run there: ml/0, ml/1, ml/2 and 2 more;",
                     id="many pods"),
        pytest.param({"unfit": "4 GPUs, not 8"}, "Unfit DoesNotFitPool: it does not match its pool: 4 GPUs, not 8;",
                     id="other GPUs than its pool says"),
        pytest.param({"taint": "team=ml:NoSchedule"}, "Unfit ForeignTaint: it has the taint team=ml:NoSchedule",
                     id="somebody's taint that keeps new pods off"),
        pytest.param({"taint": "x=:NoExecute"}, "Unfit EvictingTaint: it has the taint x=:NoExecute, which",
                     id="one that sends pods away"),
        pytest.param({"unfit": "4 GPUs, not 8", "cordoned": True}, "Cordoned Cordoned: it was cordoned by someone else",
                     id="a cordon is named first"),
        pytest.param({"foreign": ("ml/a",), "ready": False}, "Lost NodeNotReady", id="a silent node is silent first"),
    ],
)  # fmt: skip
def test_what_keeps_a_sound_node_from_serving(view: dict[str, object], want: str) -> None:
    """A12, G2: neither counts towards the pool's isolation limit."""
    node = NodeView(**{"name": "h100-1", "pool": "h100", "ready": True, **view})  # type: ignore[arg-type]
    looked = Seen({"east": ClusterView(NOW, {"h100-1": node}, {})})
    records = judge_nodes({"east": spec(1)}, looked, {}, frozenset(), NOW)
    found = [f"{r.state} {r.reason}: {r.message}" for r in records.values()] or ["Ready"]
    assert [text[: len(want)] for text in found] == [want]


def test_a_node_may_have_any_name_that_kubernetes_allows() -> None:
    name = "ip-10-0-0-1.eu-west-1.compute.internal"
    pool = {"name": "h100", "gpuShape": "H100-80GB", "gpusPerNode": 8, "memoryPerGpu": 80, "nodes": [name]}
    records = judge_nodes(
        {"east": spec(1, pools=[pool])}, Seen({"east": ClusterView(NOW, {}, {})}), {}, frozenset(), NOW
    )
    facts = Facts(NOW, nodes=records)
    files = {
        path: data for path, data in render(facts, wanted(), (), ()).items() if path.startswith("nodes/")
    }
    assert list(files) == [f"nodes/east/{name}.yaml"]
    assert facts_from(files, NOW, "").nodes == records


def test_who_was_out_first_stays_out() -> None:
    first = judge_nodes(
        {"east": spec(4)}, Seen(seen(4).views, {("east", "h100-4"): report("h100-4")}), {}, frozenset(), NOW
    )
    later = judge_nodes({"east": spec(4)}, seen(4, bad=4), first, frozenset(), NOW + timedelta(minutes=1))
    assert [key[1] for key, record in later.items() if record.state is NodeState.UNHEALTHY] == ["h100-4"]


def test_a_cluster_out_of_reach_keeps_its_records() -> None:
    before = judge_nodes({"east": spec(4)}, seen(4, bad=1), {}, frozenset(), NOW)
    assert judge_nodes({"east": spec(4)}, Seen({}), before, frozenset(), at(5000)) == before


@pytest.mark.parametrize(
    ("reports", "before", "cleared", "want"),
    [
        pytest.param(report("h100-1", 10, 20), None, None, "Unhealthy TooHot", id="two faults are no trend"),
        pytest.param(
            report("h100-1", 10, 20, 30), None, None, "Quarantined FaultTrend", id="three faults are"
        ),
        pytest.param(
            report("h100-1", -1400, 20, 30),
            None,
            None,
            "Unhealthy TooHot",
            id="faults of the day before do not count",
        ),
        pytest.param(
            report("h100-1", 10, 20, 30, healthy=True),
            None,
            None,
            "Quarantined FaultTrend",
            id="well again is not mended",
        ),
        pytest.param(
            report("h100-1", 10, 20, 30, healthy=True),
            None,
            40,
            "Ready",
            id="cleared after its faults it is back",
        ),
        pytest.param(
            report("h100-1", 10, 20, 60),
            None,
            40,
            "Unhealthy TooHot",
            id="clearing counts what came before it only",
        ),
        pytest.param(
            None,
            "PostCheckFailed",
            None,
            "Quarantined PostCheckFailed",
            id="an unclean node waits for people",
        ),
        pytest.param(None, "PostCheckFailed", 90, "Ready", id="until they say that it is clean"),
        pytest.param(
            None, "PostCheckFailed", 60, "Quarantined PostCheckFailed", id="a word from before does not count"
        ),
    ],
)
def test_quarantine_and_its_end(
    reports: AgentReport | None, before: str | None, cleared: int | None, want: str
) -> None:
    known = {}
    if before is not None:
        known[("east", "h100-1")] = NodeRecord(
            metadata=NodeMetadata(name="h100-1"), cluster="east", pool="h100", state=NodeState.QUARANTINED,
            reason=before, message="so", since=at(80),
        )  # fmt: skip
    words = [] if cleared is None else [{"node": "h100-1", "at": f"{at(cleared):%Y-%m-%dT%H:%M:%SZ}"}]
    said = {} if reports is None else {("east", "h100-1"): reports}
    records = judge_nodes(
        {"east": spec(4, cleared=words)}, Seen(seen(4).views, said), known, frozenset(), NOW
    )
    record = records.get(("east", "h100-1"))
    assert ("Ready" if record is None else f"{record.state} {record.reason}") == want


def test_an_overdue_node_is_dirty_and_a_bad_one_stays_bad() -> None:
    overdue = frozenset({("east", "h100-1"), ("east", "h100-2")})
    records = judge_nodes({"east": spec(4)}, seen(4, bad=1), {}, overdue, NOW)
    assert [records[("east", f"h100-{i}")].state for i in (1, 2)] == [NodeState.UNHEALTHY, NodeState.DIRTY]


def left(pods: tuple[str, ...], minute: int, before: dict[tuple[str, str], NodeRecord]) -> NodeRecord:
    """The record of a node whose lease is over, with these pods on it, at that minute."""
    now = at(minute)
    views = {"h100-1": NodeView("h100-1", "h100", ready=True, staying=pods)}
    seen = Seen({"east": ClusterView(now, views, {})})
    clusters = {"east": spec(1, exit={"quarantineAfter": "30m"})}
    return judge_nodes(clusters, seen, before, frozenset({("east", "h100-1")}), now)["east", "h100-1"]


def test_pods_that_do_not_leave_are_named_and_their_node_is_quarantined_after_a_bound():
    key = ("east", "h100-1")
    pods = ("vision/train-0 (blocked by its finalizer example.com/upload)",)
    dirty = left(pods, 100, {})
    assert (dirty.state, dirty.reason) == (NodeState.DIRTY, "NotClean")
    assert "vision/train-0 (blocked by its finalizer example.com/upload)" in (dirty.message or "")
    assert left(pods, 129, {key: dirty}).state is NodeState.DIRTY
    shut = left(pods, 130, {key: dirty})
    assert (shut.state, shut.reason) == (NodeState.QUARANTINED, "PodsStay")
    assert "vision/train-0" in (shut.message or "")
    # Nobody has said that it is mended, so it stays; also when the pool may lose no more nodes.
    assert left((), 200, {key: shut}).state is NodeState.QUARANTINED


def test_a_node_without_pods_that_is_not_clean_is_not_quarantined():
    dirty = left((), 100, {})
    assert left((), 1000, {("east", "h100-1"): dirty}).state is NodeState.DIRTY


def test_a_lemon_that_fails_again_is_out_until_an_admin_clears_it():
    """H14: another reset would not help; the message is what the vendor asks for."""
    why = {("east", "h100-1"): "card 1652 fails again"}
    first = judge_nodes({"east": spec(4)}, seen(4, bad=1), {}, frozenset(), NOW, why)
    assert {key: (record.state, record.reason) for key, record in first.items()} == {
        ("east", "h100-1"): (NodeState.QUARANTINED, "LemonCard")
    }
    later = judge_nodes({"east": spec(4)}, seen(4), first, frozenset(), NOW + timedelta(days=1))
    assert later["east", "h100-1"].reason == "LemonCard"
