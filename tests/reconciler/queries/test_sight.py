"""What one person may see of what runs: laws over random fleets, leases and callers (A5)."""

from __future__ import annotations

from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.facts import Facts, Wanted
from reconciler.model.pod_port import Pod, PodsSeen
from reconciler.model.statuses import records
from reconciler.queries.running.sight import EVERYTHING, Sight, Sources, Viewer, sight
from reconciler.telemetry.telemetry_port import Latest, Query, Ranges, Silence
from schemas.documents.base import Person
from schemas.documents.project import ProjectSpec
from schemas.documents.slice import SliceSpec
from schemas.status.gpr_status import GPRStatus
from tests.reconciler.workloads.gpus import CLUSTER, HOUR, NOW, sample, status

SLICES = ("vision", "nlp", "robotics")
NODES = tuple(f"h100-{number}" for number in range(1, 5))


class Everything:
    """A source that tells every GPU of every node, whoever asks, and pods in every namespace."""

    def __init__(self, at: datetime) -> None:
        self.at = at

    def latest(self, nodes: Any, now: datetime) -> Latest:
        return Latest(
            tuple(sample(node, index, at=self.at, use=index) for node in NODES for index in range(2)),
            tuple(Silence("east", "NoMetrics", f"{node} is silent", node) for node in NODES),
        )

    def range(self, query: Query, now: datetime) -> Ranges:
        return Ranges()

    def attributes(self, *_: object) -> dict[str, dict[str, str]]:
        return {}

    def look(self, cluster: str, spec: object, namespaces: Any, now: datetime) -> PodsSeen:
        return PodsSeen(
            tuple(
                Pod(cluster, f"{name}-train", f"{name}-pod", node=node, gpus=8)
                for name in SLICES
                for node in NODES
            )
        )


def world(requests: dict[str, GPRStatus]) -> tuple[Wanted, Facts, datetime]:
    people = (Person(email="bo@example.com"),)
    slices = {
        name: SliceSpec(members=people, clusters=("east",), namespaces=(f"{name}-train",)) for name in SLICES
    }
    pools = cast("Any", {("east", "h100"): SimpleNamespace(nodes=NODES)})
    project = ProjectSpec(admins=people)
    return (
        Wanted("c", project, {"east": CLUSTER}, slices, {}, {}, pools),
        Facts(NOW, requests=records(requests)),
        NOW,
    )


def seen(requests: dict[str, GPRStatus], viewer: Viewer, at: datetime = NOW) -> Sight:
    source = Everything(at)
    return sight(Sources(source, source, lambda *_: {}), world(requests), viewer)


def viewer(*slices: str) -> Viewer:
    return Viewer(lambda name: name in slices, sees_all=False)


leases = st.lists(
    st.tuples(st.sampled_from(SLICES), st.sampled_from(NODES), st.integers(-120, 60), st.integers(1, 120)),
    max_size=4,
    unique_by=(lambda lease: lease[0], lambda lease: lease[1]),
)


@given(leases, st.sets(st.sampled_from(SLICES)), st.integers(0, 90))
def test_a_member_sees_their_own_leases_and_nothing_else(drawn: Any, own: set[str], age: int) -> None:
    requests = {
        f"{name}/train": status(
            NOW + start * timedelta(minutes=1), NOW + (start + length) * timedelta(minutes=1), node
        )
        for name, node, start, length in drawn
    }
    at = NOW - age * timedelta(minutes=1)
    found = seen(requests, viewer(*own), at)
    running = {
        node: (name, start, length)
        for name, node, start, length in drawn
        if name in own and start <= 0 < start + length
    }
    assert {gpu.node for gpu in found.gpus if gpu.sample is not None} <= set(running)
    for gpu in found.gpus:
        assert gpu.held is not None
        assert gpu.held.slice in own
        if gpu.sample is not None:
            assert running[gpu.node][1] <= -age, "measured before the lease"
    assert {one.slice for one in found.workloads} <= own
    assert {one.node for one in found.latest.silences} <= set(running)
    assert {key.partition("/")[0] for key in found.requests} <= own


def test_an_admin_sees_free_nodes_and_old_values() -> None:
    found = seen({"vision/train": status(NOW - HOUR, NOW + HOUR, "h100-1")}, EVERYTHING, NOW - 2 * HOUR)
    assert {gpu.node for gpu in found.gpus} == set(NODES)
    assert {gpu.node for gpu in found.gpus if gpu.held} == {"h100-1"}


def test_pods_are_looked_for_where_slices_hold_nodes() -> None:
    requests = {"vision/train": status(NOW - HOUR, NOW + HOUR, "h100-1")}
    assert set(seen(requests, viewer("vision")).pods) == {"east"}
    assert seen({}, viewer("vision")).pods == {}
    source = Everything(NOW)
    waiting = sight(Sources(source, source, lambda *_: {}), world({}), viewer("vision"), waiting_too=True)
    assert {one.slice for one in waiting.workloads} == {"vision"}
