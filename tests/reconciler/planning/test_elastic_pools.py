"""Sizes of elastic pools: what came, what is asked for and what goes (F13, F16)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.acting.actions import Do, actions
from reconciler.model.cluster_port import ClusterView, NodeView, WorkloadView
from reconciler.model.facts import Facts, Seen, Wanted
from reconciler.model.pools import manifest_pools
from reconciler.model.selected_nodes import with_found
from reconciler.planning.elastic_pools import came, rescaled
from reconciler.planning.snapshot import build_snapshot
from reconciler.status.render import render
from scheduler.calendars.elastic import existing
from scheduler.plan import plan
from schemas.documents.cluster import Cluster
from schemas.documents.elastic import ScaleTarget
from schemas.documents.gpr import RequestSpec
from schemas.status.gpr_status import Assignment, GPRStatus, Phase
from schemas.status.inventory import Ask, PoolScale
from schemas.status.node_status import NodeMetadata, NodeRecord, NodeState
from tests.reconciler.acting.test_actions import wanted as of_test
from tests.support.readback import facts_from
from tests.support.world import at, cluster, parsed

KEY = ("east", "h100")
NOW = at(100)
POOL = {"name": "h100", "gpuShape": "H100-80GB", "gpusPerNode": 8, "memoryPerGpu": 80}


def wanted(there: int = 0, mode: str = "manage", **elastic: object) -> Wanted:
    """A cluster with one elastic pool, of which so many nodes are there."""
    terms = {"max": 4, "scaleUp": "10m", "letGo": "30m", **elastic}
    document = parsed("clusters/east.yaml", cluster(mode=mode, pools=[{**POOL, "elastic": terms}]))
    assert isinstance(document, Cluster)
    made = {"east": document.spec}
    plain = replace(of_test(), clusters=made, manifests=made, pools=manifest_pools(made))
    return with_found(plain, {KEY: tuple(f"h100-{i}" for i in range(1, there + 1))} if there else {})


def seen(size: int = 0) -> Seen:
    return Seen({"east": ClusterView(NOW, {}, {}, sizes={"h100": size})})


def scale(size: int, *asks: tuple[int, int], leaving: tuple[str, ...] = ()) -> PoolScale:
    """Asks as (minute, nodes)."""
    return PoolScale(wanted=size, asks=tuple(Ask(at=at(m), nodes=n) for m, n in asks), leaving=leaving)


@pytest.mark.parametrize(
    ("before", "there", "want"),
    [
        pytest.param(scale(2, (95, 2)), 0, scale(2, (95, 2)), id="nothing came yet"),
        pytest.param(scale(2, (95, 2)), 1, scale(2, (95, 1)), id="one of two came"),
        pytest.param(
            scale(3, (95, 1), (98, 2)), 1, scale(3, (98, 2)), id="who was asked for first comes first"
        ),
        pytest.param(scale(2, (95, 2)), 2, scale(2), id="all came"),
        pytest.param(scale(2), 1, scale(2, (100, 1)), id="one that is gone is on its way again"),
        pytest.param(scale(1, leaving=("h100-2",)), 2, scale(1, leaving=("h100-2",)), id="one still leaves"),
        pytest.param(
            scale(1, leaving=("h100-2",)), 1, scale(1), id="it has left, or another went in its place"
        ),
        pytest.param(scale(2, leaving=("h100-2",)), 2, scale(2), id="it is needed again before it went"),
        pytest.param(scale(2), 4, scale(4), id="more than were asked for are wanted, until they are let go"),
        pytest.param(
            scale(1, leaving=("h100-3",)),
            3,
            scale(2, leaving=("h100-3",)),
            id="one leaves, another is too many",
        ),
        pytest.param(None, 0, scale(1, (100, 1)), id="what the cluster was told before us counts"),
    ],
)
def test_what_came(before: PoolScale | None, there: int, want: PoolScale) -> None:
    facts = Facts(NOW, scales={} if before is None else {KEY: before})
    assert came(facts, wanted(there), seen(1), NOW).scales == {KEY: want}


def test_nodes_that_are_late_are_told_once_for_each_time() -> None:
    facts, told = Facts(NOW, scales={KEY: scale(1, (100, 1))}), []
    for minute in range(100, 200):
        found = came(facts, wanted(), seen(1), at(minute))
        facts = replace(facts, scales=found.scales)
        told += [minute for _ in found.events]
        assert bool(found.late) == bool(found.events)
    assert told == [110, 120, 140, 180]


def test_a_hundred_nodes_that_are_late_are_one_event_each_time() -> None:
    """Asked for one by one, a minute after the other: the first that is late stands for all."""
    asks = scale(100, *((minute, 1) for minute in range(100, 200)))
    facts, told, late = Facts(NOW, scales={KEY: asks}), [], 0
    for minute in range(100, 420):
        found = came(facts, wanted(max=100), seen(100), at(minute))
        facts = replace(facts, scales=found.scales)
        told += [(minute, event.message.partition(" requested")[0]) for event in found.events]
        late += bool(found.late)
    assert told == [
        (110, "1 of 100 nodes"),
        (120, "11 of 100 nodes"),
        (140, "31 of 100 nodes"),
        (180, "71 of 100 nodes"),
        (260, "100 nodes"),
    ]
    assert late > 100  # promises of each move by their own


def test_of_a_cluster_out_of_reach_all_stands() -> None:
    facts = Facts(NOW, scales={KEY: scale(2, (80, 2))})
    assert came(facts, wanted(), Seen({}), NOW).scales == facts.scales


def test_a_cluster_that_is_only_observed_has_no_size() -> None:
    assert came(Facts(NOW), wanted(mode="observe"), seen(), NOW).scales == {}


def shrunk(there: int, before: PoolScale, facts: Facts, **elastic: object) -> PoolScale:
    """With nobody waiting and nobody running."""
    main = wanted(there, **elastic)
    facts = replace(facts, at=NOW, scales={KEY: before})
    world = build_snapshot(main, facts, None)
    return rescaled(facts, world, plan(world), main)[0].scales[KEY]


def test_nodes_that_failed_go_first() -> None:
    facts = Facts(NOW, faults={("east", "h100-2"): (at(1),)})
    assert shrunk(3, scale(3), facts, min=2) == scale(2, leaving=("h100-2",))


def test_a_node_that_is_out_is_left_to_people_and_another_takes_its_place() -> None:
    record = NodeRecord(
        metadata=NodeMetadata(name="h100-1"),
        cluster="east",
        pool="h100",
        state=NodeState.UNHEALTHY,
        since=NOW,
    )
    facts = Facts(NOW, nodes={("east", "h100-1"): record})
    assert shrunk(1, scale(1), facts, min=1) == scale(2, (100, 1))
    assert shrunk(3, scale(3), facts, min=1).leaving in {("h100-2",), ("h100-3",)}


def test_asks_that_nobody_needs_any_more_are_dropped_first() -> None:
    assert shrunk(1, scale(3, (95, 1), (98, 1)), Facts(NOW), min=1) == scale(1)
    assert shrunk(1, scale(3, (95, 1), (98, 1)), Facts(NOW), min=2) == scale(2, (95, 1))


def test_sizes_are_facts() -> None:
    facts = Facts(NOW, scales={KEY: scale(3, (95, 1), leaving=("h100-1",))})
    assert facts_from(render(facts, wanted(), (), ()), NOW, "").scales == facts.scales


@given(
    st.integers(0, 4),
    st.integers(0, 4),
    st.lists(st.tuples(st.integers(60, 100), st.integers(1, 3)), max_size=3),
    st.tuples(st.integers(0, 2), st.integers(0, 3)),
)
def test_a_pool_settles_between_its_bounds(
    there: int, size: int, asks: list[tuple[int, int]], bounds: tuple[int, int]
) -> None:
    """Whatever it was told before; and with nothing to do nothing is written."""
    main = wanted(there, min=bounds[0], warm=bounds[1])
    facts = Facts(NOW, scales={KEY: scale(size, *sorted(asks))})
    for _ in range(2):
        facts, before = _decided(facts, main, NOW), facts
    found = facts.scales[KEY]
    assert facts.scales == before.scales
    assert bounds[0] <= found.wanted <= max(4, there)
    assert sum(ask.nodes for ask in found.asks) == max(0, found.wanted - (there - len(found.leaving)))
    assert set(found.leaving) <= {f"h100-{i}" for i in range(1, there + 1)}
    usable = existing(build_snapshot(main, facts, None).pools[KEY])
    assert not set(found.leaving) & set(usable)


def _decided(facts: Facts, main: Wanted, now: datetime) -> Facts:
    facts = replace(facts, at=now + timedelta(), scales=came(facts, main, seen(), now).scales)
    world = build_snapshot(main, facts, None)
    return rescaled(facts, world, plan(world), main)[0]


# -- what a cluster is told --------------------------------------------------------------------------------------------

TARGET = ScaleTarget(api_version="x.example.com/v1", resource="groups", name="h100")


def _serving(*nodes: str) -> dict[str, GPRStatus]:
    spec = RequestSpec(slice="a", nodes=max(1, len(nodes)), duration=timedelta(hours=9))
    held = Assignment(cluster="east", pool="h100", nodes=nodes)
    status = GPRStatus(
        phase=Phase.PROVISIONED,
        uid="x",
        filed_at=at(0),
        accepted_spec=spec,
        spec_digest="d",
        assignment=held,
        held_from=at(0),
        start_time=at(2),
        end_time=at(542),
    )
    return {"a/x": status} if nodes else {}


def told(of: PoolScale, there: int, size: int, shut: int, serving: tuple[str, ...], is_real: bool) -> int:
    """The size that a cluster is told in which `there` nodes are; of those that leave the first `shut` are shut."""
    main = wanted(there)
    if is_real:
        pools = tuple(
            pool.model_copy(update={"elastic": pool.elastic.model_copy(update={"target": TARGET})})
            for pool in main.clusters["east"].pools
            if pool.elastic is not None
        )
        main = replace(main, clusters={"east": main.clusters["east"].model_copy(update={"pools": pools})})
    nodes = {
        name: NodeView(name, "h100", True, isolated=name in of.leaving[:shut])
        for name in (f"h100-{i}" for i in range(1, there + 1))
    }
    views = {"east": ClusterView(NOW, nodes, {}, sizes={"h100": size})}
    facts = Facts(NOW, requests=_serving(*serving), scales={KEY: of})
    found = actions(main, facts, Seen(views), NOW, timedelta(minutes=1))
    return next((a.count for a in found if a.do is Do.SCALE), size)


@pytest.mark.parametrize(
    ("of", "there", "size", "shut", "want"),
    [
        pytest.param(scale(3), 2, 2, 0, 3, id="growing is told at once"),
        pytest.param(scale(1, leaving=("h100-2",)), 2, 2, 0, 2, id="it shrinks once who leaves is shut"),
        pytest.param(scale(1, leaving=("h100-2",)), 2, 2, 1, 1, id="and then by exactly those"),
        pytest.param(scale(1, leaving=("h100-2", "h100-3")), 3, 3, 1, 2, id="those that are shut go first"),
        pytest.param(scale(1), 1, 3, 0, 3, id="nodes on their way are not called off beside one that serves"),
        pytest.param(scale(1), 3, 3, 0, 3, id="nodes that nobody let go stay, whatever the size"),
        pytest.param(scale(2, leaving=("h100-3",)), 3, 2, 0, 2, id="what was told already stays told"),
    ],
)
def test_no_size_costs_a_node_that_serves(of: PoolScale, there: int, size: int, shut: int, want: int) -> None:
    assert told(of, there, size, shut, ("h100-1",), is_real=True) == want


@pytest.mark.parametrize(
    ("serving", "is_real"),
    [
        pytest.param((), True, id="where none serves"),
        pytest.param(("h100-1",), False, id="in a simulation, where they go first"),
    ],
)
def test_nodes_on_their_way_are_called_off(serving: tuple[str, ...], is_real: bool) -> None:
    assert told(scale(1), 1, 3, 0, serving, is_real) == 1


def karpenter(used: tuple[str, ...]) -> tuple[int, ...]:
    """What Karpenter is told where two of three nodes are held, one is let go, and pods run on those of `used`."""
    target = ScaleTarget(api_version="karpenter.sh/v1", resource="nodepools", name="h100")
    main = wanted(3, min=0)
    pools = tuple(
        p.model_copy(update={"elastic": p.elastic.model_copy(update={"target": target})})
        for p in main.clusters["east"].pools
        if p.elastic is not None
    )
    main = replace(main, clusters={"east": main.clusters["east"].model_copy(update={"pools": pools})})
    nodes = {
        name: NodeView(name, "h100", ready=True, isolated=name == "h100-3")
        for name in ("h100-1", "h100-2", "h100-3")
    }
    works = tuple(WorkloadView(f"w-{name}", "vision", "vision", 8, "Running", name) for name in used)
    view = ClusterView(NOW, nodes, {}, works, sizes={"h100": 3})
    spec = RequestSpec(slice="vision", nodes=2, gpus_per_node=8, duration=timedelta(hours=1))
    status = GPRStatus(
        phase=Phase.PROVISIONED,
        uid="gpr-1",
        filed_at=at(0),
        accepted_spec=spec,
        spec_digest="sha256:1",
        assignment=Assignment(cluster="east", pool="h100", nodes=("h100-1", "h100-2")),
        start_time=at(0),
        end_time=at(600),
    )
    facts = Facts(NOW, requests={"vision/x": status}, scales={KEY: scale(2, leaving=("h100-3",))})
    done = actions(main, facts, Seen({"east": view}), NOW, timedelta(minutes=1))
    return tuple(action.count for action in done if action.do is Do.SCALE)


@pytest.mark.parametrize(
    ("used", "told"),
    [
        pytest.param((), (), id="no pod runs yet: any held node may be taken"),
        pytest.param(("h100-1",), (), id="one held node is without a pod"),
        pytest.param(("h100-1", "h100-2"), (2,), id="only the node that is let go is without a pod"),
    ],
)
def test_karpenter_never_shrinks_a_pool_while_a_held_node_has_no_pod(
    used: tuple[str, ...], told: tuple[int, ...]
) -> None:
    assert karpenter(used) == told
