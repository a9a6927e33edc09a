"""What is done in a cluster follows from what is committed, in the order that does least harm (design §4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from reconciler.acting.actions import Action, Do, actions, drifted
from reconciler.model.cluster_port import ClusterView, Difference, LeaseRef, NodeView, WorkloadView
from reconciler.model.facts import Facts, Outcomes, Seen, Wanted
from reconciler.model.pools import manifest_pools
from schemas.documents.cluster import Checks, Cluster
from schemas.documents.gpr import RequestSpec
from schemas.documents.project import Project
from schemas.documents.slice import Slice
from schemas.reading.units import format_instant
from schemas.status.gpr_status import Assignment, Check, GPRStatus, Phase
from tests.support.world import at, cluster, parsed, project, slice_

TOLERANCE = timedelta(minutes=1)


def wanted(mode: str = "manage", **slices: str) -> Wanted:
    east, admin = (
        parsed("clusters/east.yaml", cluster("east", 4, mode=mode)),
        parsed("project.yaml", project()),
    )
    assert isinstance(east, Cluster)
    assert isinstance(admin, Project)
    specs = {}
    for name in ("a", "b"):
        document = parsed(f"slices/{name}/slice.yaml", slice_(name))
        assert isinstance(document, Slice)
        specs[name] = document.spec
    clusters = {"east": east.spec}
    return Wanted("c0", admin.spec, clusters, specs, {}, {}, manifest_pools(clusters))


def request(
    key: str, phase: Phase, nodes: tuple[str, ...], start: int, checked: bool = True, **more: object
) -> GPRStatus:
    """One hour from minute `start` on; its nodes have passed their checks unless told otherwise."""
    begin, end = at(start), at(start + 60)
    checks = tuple(
        Check(stage="pre", node=n, name="NodeHealth", passed=True, at=begin) for n in nodes if checked
    )
    runs = phase is not Phase.PROVISIONING
    return GPRStatus(
        phase=phase, uid=f"uid-{key}", filed_at=at(0), estimated_start_time=begin, estimated_end_time=end,
        start_time=begin if runs else None, end_time=end if runs else None, held_from=begin,
        assignment=Assignment(cluster="east", pool="h100", nodes=nodes), checks=checks,
        accepted_spec=RequestSpec(slice=key[0], nodes=len(nodes), duration=timedelta(hours=1)), spec_digest="sha256:0",
        **more,  # type: ignore[arg-type]
    )  # fmt: skip


def view(held: dict[str, str], isolated: tuple[str, ...] = ()) -> Seen:
    """Four nodes; `held` says whose lease is on which."""
    nodes = {}
    for name in (f"h100-{i}" for i in range(1, 5)):
        key = held.get(name)
        lease = None if key is None else LeaseRef(f"uid-{key}", key, key[0], at(60), start=at(0))
        nodes[name] = NodeView(name, "h100", ready=True, isolated=name in isolated, lease=lease)
    return Seen({"east": ClusterView(at(0), nodes, {"a": ("a",), "b": ("b",)})})


def done(requests: dict[str, GPRStatus], seen: Seen, now: datetime, mode: str = "manage") -> list[str]:
    found: tuple[Action, ...] = actions(wanted(mode), Facts(now, "c0", requests), seen, now, TOLERANCE)
    return [f"{a.do.name} {a.node or a.slice}" for a in found]


@pytest.mark.parametrize(
    ("requests", "held", "minute", "want"),
    [
        pytest.param({}, {}, 0, [], id="nothing to do"),
        pytest.param(
            {"a/x": request("a/x", Phase.PROVISIONING, ("h100-1",), 2, checked=False)}, {}, 0, ["CHECK h100-1"],
            id="nodes are checked before the start",
        ),
        pytest.param(
            {"a/x": request("a/x", Phase.PROVISIONING, ("h100-1",), 2)}, {}, 1, [], id="and wait for the second"
        ),
        pytest.param(
            {"a/x": request("a/x", Phase.PROVISIONING, ("h100-1", "h100-2"), 2)}, {}, 2, ["ADD h100-1", "ADD h100-2"],
            id="at the start they are handed over",
        ),
        pytest.param(
            {"a/x": request("a/x", Phase.PROVISIONING, ("h100-1", "h100-2"), 2)}, {}, 4, [],
            id="but not much later: then a later start is committed first",
        ),
        pytest.param(
            {"a/x": request("a/x", Phase.PROVISIONING, ("h100-1", "h100-2"), 0)}, {"h100-1": "a/x"}, 2, ["ADD h100-2"],
            id="a hand-over that began is finished, however late",
        ),
        pytest.param(
            {"a/x": request("a/x", Phase.PROVISIONED, ("h100-1",), 0)}, {"h100-1": "a/x"}, 59.5, ["EVICT h100-1"],
            id="notice is given before the end",
        ),
        pytest.param(
            {"a/x": request("a/x", Phase.PROVISIONED, ("h100-1",), 0)}, {"h100-1": "a/x"}, 60, ["REMOVE h100-1"],
            id="the end needs no commit",
        ),
        pytest.param(
            {"a/x": request("a/x", Phase.RELEASING, ("h100-1",), 0)}, {}, 61, ["CHECK h100-1"],
            id="a node that is back is checked",
        ),
        pytest.param({}, {"h100-3": "b/gone"}, 0, ["REMOVE h100-3"], id="a lease that nobody has is taken back"),
        pytest.param(
            {
                "a/x": request("a/x", Phase.PROVISIONED, ("h100-1",), 0),
                "b/y": request("b/y", Phase.PROVISIONING, ("h100-2",), 60),
            },
            {"h100-1": "a/x"}, 60, ["REMOVE h100-1", "ADD h100-2"],
            id="nodes come back before nodes go out",
        ),
    ],
)  # fmt: skip
def test_what_is_done(
    requests: dict[str, GPRStatus], held: dict[str, str], minute: float, want: list[str]
) -> None:
    assert done(requests, view(held), at(minute)) == want


@pytest.mark.parametrize(
    ("requests", "held", "minute", "want"),
    [
        pytest.param({"a/x": request("a/x", Phase.PROVISIONING, ("h100-1",), 2)}, {}, 2, [], id="nothing starts"),
        pytest.param(
            {"a/x": request("a/x", Phase.PROVISIONED, ("h100-1",), 0)}, {"h100-1": "a/x"}, 59.5, ["EVICT h100-1"],
            id="who runs gets notice",
        ),
        pytest.param(
            {"a/x": request("a/x", Phase.PROVISIONED, ("h100-1",), 0)}, {"h100-1": "a/x"}, 60, ["REMOVE h100-1"],
            id="and ends on time",
        ),
        pytest.param(
            {"a/x": request("a/x", Phase.RELEASING, ("h100-1",), 0)}, {}, 61, ["CHECK h100-1"],
            id="and its node is checked",
        ),
        pytest.param(
            {"a/x": request("a/x", Phase.PROVISIONED, ("h100-1",), 0)}, {}, 10, [], id="what was taken stays so"
        ),
        pytest.param({}, {"h100-3": "b/gone"}, 0, [], id="a lease that we do not know is not ours to end"),
    ],
)  # fmt: skip
def test_a_cluster_that_is_only_observed_finishes_what_is_ours(
    requests: dict[str, GPRStatus], held: dict[str, str], minute: float, want: list[str]
) -> None:
    assert done(requests, view(held), at(minute), mode="observe") == want


def test_nodes_whose_lease_ends_later_now_are_added_again_and_that_is_no_drift() -> None:
    longer = request("a/x", Phase.PROVISIONED, ("h100-1",), 0).model_copy(update={"end_time": at(120)})
    seen = view({"h100-1": "a/x"})
    planned = actions(wanted(), Facts(at(59.5), "c0", {"a/x": longer}), seen, at(59.5), TOLERANCE)
    assert [(a.do, a.node, a.lease and a.lease.end) for a in planned] == [(Do.ADD, "h100-1", at(120))]
    assert drifted(planned, seen.views) == ()


def test_a_replaced_node_belongs_to_whoever_has_it_now() -> None:
    waiting = request("b/z", Phase.PROVISIONED, ("h100-2",), 0, checked=False, replaced_nodes=("h100-1",))
    other = request("a/x", Phase.PROVISIONED, ("h100-1",), 0)
    assert done({"a/x": other, "b/z": waiting}, view({"h100-1": "a/x"}), at(10)) == ["CHECK h100-2"]


def test_the_time_it_takes_grows_with_the_nodes_and_not_with_their_cube() -> None:
    """Counted, not timed: how often the checks of a large request are looked at."""
    nodes = tuple(f"h100-{i}" for i in range(600))
    big, looks = request("a/x", Phase.PROVISIONING, nodes, 0), 0

    class Counted(tuple[Check, ...]):
        def __iter__(self) -> Iterator[Check]:
            nonlocal looks
            looks += 1
            return super().__iter__()

    big = big.model_copy(update={"checks": Counted(big.checks)})
    views = {n: NodeView(n, "h100", ready=True) for n in nodes}
    seen = Seen({"east": ClusterView(at(0), views, {"a": ("a",), "b": ("b",)})})
    assert len(done({"a/x": big}, seen, at(1))) == len(nodes)
    assert looks < 10


@pytest.mark.parametrize(
    ("held", "checked", "want"),
    [
        pytest.param(
            {"h100-1": "a/x"}, False, ["CHECK h100-2"], id="the bad node stays while its spare is checked"
        ),
        pytest.param({"h100-1": "a/x"}, True, ["ADD h100-2"], id="and while its spare is added"),
        pytest.param(
            {"h100-1": "a/x", "h100-2": "a/x"},
            True,
            ["REMOVE h100-1"],
            id="it leaves when the spare is there",
        ),
    ],
)
def test_the_spare_is_there_before_the_bad_node_leaves(
    held: dict[str, str], checked: bool, want: list[str]
) -> None:
    moved = request("a/x", Phase.PROVISIONED, ("h100-2",), 0, checked=checked, replaced_nodes=("h100-1",))
    assert done({"a/x": moved}, view(held), at(10)) == want


def fleet(*found: Difference, resting: bool = False) -> Seen:
    rest = frozenset({("east", ""), ("east", "a")}) if resting else frozenset[tuple[str, str]]()
    return replace(view({}), differences={"east": found}, outcomes=Outcomes(resting=rest))


@pytest.mark.parametrize(
    ("seen", "want"),
    [
        pytest.param(fleet(), [], id="nothing differs"),
        pytest.param(fleet(Difference("a", "Role a/egs", "missing")), ["ENSURE_SLICE a"], id="something of a slice"),
        pytest.param(fleet(Difference("", "Node h100-1", "changed")), ["ENSURE_FLEET "], id="something of no slice"),
        pytest.param(
            fleet(Difference("", "Node h100-1", "changed"), Difference("a", "Role a/egs", "missing"), resting=True), [],
            id="but not in a quarrel",
        ),
    ],
)  # fmt: skip
def test_what_differs_is_put_right(seen: Seen, want: list[str]) -> None:
    assert done({}, seen, at(0)) == want
    assert done({}, seen, at(0), "observe") == []


@pytest.mark.parametrize(
    ("begun", "notice", "nodes", "want"),
    [
        pytest.param(0, 10, 2, ["CHECK h100-1", "CHECK h100-2"], id="while it runs"),
        pytest.param(0, 59.5, 2, ["EVICT h100-1", "EVICT h100-2"], id="not when its time is over"),
        pytest.param(0, 10, 1, [], id="not on one node"),
    ],
)
def test_nodes_of_a_running_request_are_measured(
    begun: int, notice: float, nodes: int, want: list[str]
) -> None:
    """F6."""
    names = tuple(f"h100-{i}" for i in range(1, nodes + 1))
    running = {"a/x": request("a/x", Phase.PROVISIONED, names, begun)}
    manifests = wanted()
    checks = Checks(latency_interval=timedelta(minutes=5))
    east = manifests.clusters["east"].model_copy(update={"checks": checks})
    manifests = replace(manifests, clusters={"east": east})
    found = actions(
        manifests, Facts(at(notice), "c0", running), view(dict.fromkeys(names, "a/x")), at(notice), TOLERANCE
    )
    assert [f"{a.do.name} {a.node}" for a in found] == want
    assert {a.stage for a in found if a.do is Do.CHECK} <= {"run"}


@pytest.mark.parametrize(
    ("ends_at", "draining", "want"),
    [
        pytest.param(None, False, True, id="nothing yet"),
        pytest.param(at(60), False, False, id="the end"),
        pytest.param(at(30), False, True, id="an earlier end on a node that stays"),
        pytest.param(at(30), True, False, id="an earlier end on a node that leaves earlier"),
        pytest.param(at(90), True, True, id="a later end on a node that leaves"),
        pytest.param(None, True, True, id="nothing yet on a node that leaves"),
    ],
)
def test_pods_show_when_they_must_have_stopped(ends_at: datetime | None, draining: bool, want: bool) -> None:
    """J4: a pod that was told an earlier end, because its node leaves, is not told the later one of the others."""
    shown = None if ends_at is None else format_instant(ends_at)
    pod = WorkloadView("train-0", "a", "a", 8, "Running", "h100-1", ends_at=shown)
    seen = view({"h100-1": "a/x"})
    east = seen.views["east"]
    nodes = {**east.nodes, "h100-1": replace(east.nodes["h100-1"], draining=draining)}
    seen = replace(seen, views={"east": replace(east, nodes=nodes, workloads=(pod,))})
    found = done({"a/x": request("a/x", Phase.PROVISIONED, ("h100-1",), 0)}, seen, at(10))
    assert ("SHOW_END " in found) is want, found


def test_the_order_of_kinds_is_the_order_of_work() -> None:
    assert sorted(Do) == [
        Do.END_WORKLOAD, Do.REMOVE, Do.RESTORE, Do.ISOLATE, Do.EVICT, Do.ENSURE_FLEET, Do.ENSURE_SLICE, Do.CHECK,
        Do.ADD, Do.REMOVE_SLICE, Do.SCALE, Do.DRAINED, Do.REMEDIATE, Do.RUN_WORKLOAD, Do.SHOW_END,
    ]  # fmt: skip
