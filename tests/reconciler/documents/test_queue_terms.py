"""What a slice's queue shall be, minute by minute: the lease, its nodes, its end (A9, J1, J4, D7, H15)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

import pytest

from reconciler.clusters.simulated.scripted_faults import NodeDies
from reconciler.documents.queue_terms import partitions, queue_in
from reconciler.model.cluster_port import ClusterView, LeaseRef, NodeView, QueueTerms
from reconciler.model.events import EventReason
from reconciler.status.parse import facts_of, record_from
from schemas.status.gpr_status import GPRStatus, Phase
from schemas.status.inventory import Inventory, SliceQueue
from tests.reconciler.acting.test_actions import request
from tests.reconciler.documents.test_slice_terms import wanted
from tests.support.world import World, at, cluster, slice_

STARTED = request("a/x", Phase.PROVISIONED, ("h100-1", "h100-2"), 0)
EAST = {"warning": "0d0h10m", "notice": "0d0h5m", "topology": ["example.com/rack"]}


def queue(
    when: datetime, status: GPRStatus = STARTED, nodes: Mapping[str, dict[str, object]] | None = None
) -> QueueTerms:
    view = ClusterView(
        when, nodes={n: node(n, status, **more) for n, more in (nodes or WELL).items()}, slices={}
    )
    return queue_in("east", "a", wanted({}, **EAST), {"a/x": status}, view)


def node(name: str, status: GPRStatus, **more: object) -> NodeView:
    lease = LeaseRef(status.uid, "a/x", "a", at(60))
    return NodeView(name, "h100", **{"ready": True, "lease": lease, **more})  # type: ignore[arg-type]


WELL: Mapping[str, dict[str, object]] = {"h100-1": {}, "h100-2": {}}


@pytest.mark.parametrize(
    ("minute", "gpus", "stop"),
    [
        pytest.param(0, 16, "None", id="it begins"),
        pytest.param(44, 16, "None", id="before the warning"),
        pytest.param(45, 16, "Hold", id="at the warning nothing more is admitted"),
        pytest.param(55, 16, "HoldAndDrain", id="at the notice the admitted are suspended"),
        pytest.param(60, 0, "HoldAndDrain", id="after the end there is nothing"),
    ],
)
def test_the_queue_follows_the_clock(minute: float, gpus: int, stop: str) -> None:
    """D7, J4."""
    assert STARTED.end_time == at(60)
    found = queue(at(minute))
    assert (found.gpus, found.stop, found.topology) == (gpus, stop, ("example.com/rack",))


def test_an_extension_opens_it_again() -> None:
    """D10."""
    assert queue(at(56)).stop == "HoldAndDrain"
    assert queue(at(56), STARTED.model_copy(update={"end_time": at(120)})).stop == "None"


@pytest.mark.parametrize(
    ("nodes", "gpus"),
    [
        pytest.param({"h100-1": {}, "h100-2": {"ready": False}}, 8, id="one is not ready"),
        pytest.param({"h100-1": {}, "h100-2": {"isolated": True}}, 8, id="one is closed by us"),
        pytest.param({"h100-1": {}, "h100-2": {"cordoned": True}}, 8, id="one is closed by others"),
        pytest.param({"h100-1": {}, "h100-2": {"lease": None}}, 8, id="one is not handed over yet"),
        pytest.param({"h100-1": {}}, 8, id="one is gone"),
        pytest.param({**WELL, "h100-3": {}}, 16, id="a node that was replaced, and has its mark still"),
        pytest.param({**WELL, "h100-2": {"draining": True}}, 16, id="pods that leave count until the end"),
    ],
)
def test_only_nodes_on_which_pods_can_start_count(nodes: dict[str, dict[str, object]], gpus: int) -> None:
    """H15."""
    assert queue(at(1), nodes=nodes).gpus == gpus


@pytest.mark.parametrize("phase", [Phase.PROVISIONING, Phase.RELEASING])
def test_a_lease_that_is_not_there_yet_or_no_more_has_none(phase: Phase) -> None:
    assert queue(at(1), STARTED.model_copy(update={"phase": phase})) == QueueTerms(
        0, "HoldAndDrain", topology=("example.com/rack",)
    )


def test_partitions_are_counted_where_nodes_are_cut() -> None:
    """D17, F12: 16 GPUs of 80 GB."""
    spec = STARTED.accepted_spec.model_copy(update={"sharing": "mig:3g.40gb"})
    found = queue(at(1), STARTED.model_copy(update={"accepted_spec": spec}))
    assert (found.gpus, found.mig) == (32, "3g.40gb")


@pytest.mark.parametrize(
    ("profile", "memory", "want"),
    [
        *[("1g.10gb", 80, 7), ("1g.20gb", 80, 4), ("2g.20gb", 80, 3), ("3g.40gb", 80, 2), ("7g.80gb", 80, 1)],
        *[("1g.5gb", 40, 7), ("1g.6gb", 24, 4), ("1g.35gb", 141, 4), ("1g.10gb+me", 80, 7), ("odd", 80, 1)],
    ],
)
def test_a_gpu_is_cut_as_nvidias_tables_say(profile: str, memory: int, want: int) -> None:
    assert partitions(profile, memory) == want


# --- in the loop ---

LIVELY = {
    "clusters/east.yaml": cluster("east", 3, **{k: v for k, v in EAST.items() if k != "topology"}),
    "slices/a/slice.yaml": slice_("a", queues={"kueue": True}),
}


def told(world: World) -> tuple[SliceQueue, ...]:
    return world.facts().queues.get("east", ())


def shown(world: World) -> tuple[int, str]:
    """In the cluster, and so in the status."""
    view = world.drivers["east"].observe(world.now).queues["a"]
    (row,) = told(world)
    assert (row.slice, row.gpus, row.stop, row.state) == ("a", view.gpus, view.stop, "Kept")
    return view.gpus, view.stop


def test_a_lease_from_start_to_end() -> None:
    """A9: the cluster's queue and the status follow, with no drift told."""
    world = World(LIVELY)
    world.run(at(1))
    assert shown(world) == (0, "HoldAndDrain")
    world.file("a/x", nodes=2, duration="1h")
    world.run(at(10))
    start = world.status("a/x").start_time
    assert start is not None
    assert shown(world) == (16, "None")
    base = (start - at(0)).total_seconds() / 60
    for minute, want in ((46, (16, "Hold")), (56, (16, "HoldAndDrain")), (62, (0, "HoldAndDrain"))):
        world.run(at(base + minute))
        assert shown(world) == want
    assert not {EventReason.DRIFT, EventReason.DRIFT_SEEN} & set(world.told())


def test_a_dead_node_takes_its_gpus_away_and_its_replacement_brings_them_back() -> None:
    """H15."""
    world = World(LIVELY)
    world.file("a/x", nodes=2, duration="4h")
    world.run(at(10))
    lost = world.status("a/x").assignment
    assert lost is not None
    world.drivers["east"].inject(NodeDies(node=lost.nodes[0], at=at(12)))
    world.run(at(13))
    assert shown(world)[0] == 8
    world.run(at(60))
    now = world.status("a/x").assignment
    assert now is not None
    assert lost.nodes[0] not in now.nodes
    assert shown(world) == (16, "None")


def test_a_slice_that_wants_it_no_more_loses_it() -> None:
    world = World(LIVELY)
    world.run(at(1))
    world.commit({"slices/a/slice.yaml": slice_("a")})
    world.run(at(5))
    assert told(world) == ()
    assert world.drivers["east"].observe(world.now).queues == {}


def test_an_observed_cluster_is_not_written_and_shows_what_would_be() -> None:
    """A12."""
    world = World({**LIVELY, "clusters/east.yaml": cluster("east", 3, mode="observe")})
    world.run(at(5))
    (row,) = told(world)
    assert (row.gpus, row.stop, row.state) == (0, "HoldAndDrain", "Observed")
    assert row.message == "nothing is written while the cluster is only observed"
    assert world.drivers["east"].observe(world.now).queues == {}


def test_a_foreign_change_is_told_and_repaired() -> None:
    """H13."""
    world = World(LIVELY)
    world.run(at(5))
    driver = world.drivers["east"]
    with driver._state.locked() as now:
        state = now.slices["a"]
        driver._state.save(now.with_slice("a", replace(state, queue=QueueTerms(99))))
    world.run(at(10))
    assert shown(world) == (0, "HoldAndDrain")
    assert EventReason.DRIFT in world.told()


def test_a_queue_that_cannot_be_is_told_and_read_back() -> None:
    """The sentence of the cluster, in the inventory's file."""
    world = World(LIVELY)
    world.run(at(5))
    text = world.text("clusters/east/inventory.yaml")
    assert text is not None
    record = record_from("clusters/east/inventory.yaml", text.encode())
    assert isinstance(record, Inventory)
    missing = SliceQueue(slice="a", state="Missing", message="no Kueue")
    kept = record.edited(queues=(missing,))
    assert facts_of({"clusters/east/inventory.yaml": kept}, at(5), "").queues == {"east": (missing,)}
