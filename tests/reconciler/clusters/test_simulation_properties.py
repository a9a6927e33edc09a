"""Laws of the simulated cluster, on histories nobody would write."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from reconciler.clusters.simulated.embedded import EmbeddedCluster
from reconciler.clusters.simulated.scripted_faults import DrainHangs, NodeCordoned, NodeDies
from reconciler.clusters.simulated.simulated_world import Job
from reconciler.model.cluster_port import ClusterView, LeaseRef, SliceTerms, Stamp
from schemas.documents.cluster import ClusterSpec
from tests.support.profile import law

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
NODES = ("n-1", "n-2", "n-3")
SLICES = ("red", "blue")
SPEC = ClusterSpec.model_validate(
    {
        "driver": "embedded",
        "pools": ({"name": "n", "gpuShape": "H100", "gpusPerNode": 8, "memoryPerGpu": 80, "nodes": 3},),
    }
)

Step = Callable[[EmbeddedCluster, datetime, int], None]


def lease(slice_: str) -> LeaseRef:
    return LeaseRef(f"uid-{slice_}", f"{slice_}/train", slice_, NOW)


STEPS: st.SearchStrategy[Step] = st.one_of(
    st.builds(
        lambda slice_, gpus, minutes: lambda c, now, n: c.submit(
            Job(f"job-{n}", slice_, gpus, minutes * MINUTE), now
        ),
        st.sampled_from(SLICES), st.integers(0, 8), st.integers(1, 40),
    ),
    st.builds(
        lambda node, slice_: lambda c, now, n: c.add(node, lease(slice_), Stamp(1, n), now),
        st.sampled_from(NODES), st.sampled_from(SLICES),
    ),
    st.builds(
        lambda node, slice_: lambda c, now, n: c.remove(node, lease(slice_).uid, Stamp(1, n), now),
        st.sampled_from(NODES), st.sampled_from(SLICES),
    ),
    st.builds(
        lambda node, slice_, minutes: lambda c, now, n: c.evict(
            node, lease(slice_).uid, now + minutes * MINUTE, Stamp(1, n), now
        ),
        st.sampled_from(NODES), st.sampled_from(SLICES), st.integers(-5, 20),
    ),
    st.builds(
        lambda node: lambda c, now, n: c.isolate(node, "Xid79", Stamp(1, n), now), st.sampled_from(NODES)
    ),
    st.builds(lambda node: lambda c, now, n: c.restore(node, Stamp(1, n), now), st.sampled_from(NODES)),
)  # fmt: skip

INSTANTS = st.integers(0, 120).map(lambda m: NOW + m * MINUTE)
FAULTS = st.one_of(
    st.builds(
        lambda node, at, m: NodeDies(node=node, at=at, until=at + m * MINUTE),
        st.sampled_from(NODES), INSTANTS, st.integers(1, 30),
    ),
    st.builds(
        lambda node, at, m: NodeCordoned(node=node, at=at, until=at + m * MINUTE),
        st.sampled_from(NODES), INSTANTS, st.integers(1, 30),
    ),
    st.builds(
        lambda node, at, m: DrainHangs(node=node, at=at, until=at + m * MINUTE),
        st.sampled_from(NODES), INSTANTS, st.integers(1, 30),
    ),
)  # fmt: skip
HISTORIES = st.lists(st.tuples(st.integers(0, 20), STEPS), max_size=25)
SCRIPTS = st.lists(FAULTS, max_size=4)


def new(faults=(), state: Path | None = None) -> EmbeddedCluster:
    """A cluster with two slices whose namespaces are named as they are."""
    cluster = EmbeddedCluster("east", SPEC, state, faults)
    for slice_ in SLICES:
        cluster.ensure_slice(SliceTerms(slice_, (slice_,)), Stamp(0, 0), NOW)
    return cluster


def play(cluster: EmbeddedCluster, history, between=lambda cluster, now: cluster) -> list[ClusterView]:
    """What is seen after every step; `between` may look, or hand over another process' driver."""
    now, views = NOW, []
    for n, (minutes, step) in enumerate(history):
        for _ in range(minutes):
            now += MINUTE
            cluster = between(cluster, now)
        step(cluster, now, n)
        views.append(cluster.observe(now))
    return [*views, cluster.observe(now + 200 * MINUTE)]


@given(HISTORIES, SCRIPTS)
def test_gpus_are_used_by_the_slice_of_their_lease_alone_and_once(history, faults):
    """C6, C11: at no instant does a workload use GPUs that are not its slice's, or that another one uses."""
    for view in play(new(faults), history):
        used: Counter[str] = Counter()
        for w in view.workloads:
            if w.gpus and w.phase == "Running":
                assert w.node is not None
                holder = view.nodes[w.node].lease
                assert holder is not None
                assert holder.slice == w.slice
                assert view.nodes[w.node].ready
                used[w.node] += w.gpus
        assert all(gpus <= 8 for gpus in used.values())


@given(HISTORIES, SCRIPTS)
def test_cpu_workloads_never_wait(history, faults):
    """C3, D12: whatever happens to nodes and leases."""
    for view in play(new(faults), history):
        assert all(w.phase != "Pending" for w in view.workloads if w.gpus == 0)


@given(HISTORIES, SCRIPTS)
def test_looking_changes_nothing(history, faults):
    """The world is the same whether it is looked at every minute or only when something is done."""

    def look(cluster, now):
        cluster.observe(now)
        return cluster

    assert play(new(faults), history, look) == play(new(faults), history)


@law(25)
@given(HISTORIES, SCRIPTS)
def test_a_restart_at_any_instant_changes_nothing(history, faults):
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "east.json"

        def restart(cluster, now):
            return EmbeddedCluster("east", SPEC, state, faults)

        assert play(new(faults, state), history, restart) == play(new(faults), history)
