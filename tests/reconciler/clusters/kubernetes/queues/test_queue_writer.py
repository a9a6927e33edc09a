"""Slices' queues on a real API server with Kueue's real resources: made, kept, repaired, removed (A9, J1, H13)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.clusters.kubernetes.api.api_client import Json, Rejected
from reconciler.clusters.kubernetes.rbac import QUEUE_RULES, RULES
from reconciler.clusters.kubernetes.tenancy.optional_objects import LOOK, OptionalObjects
from reconciler.clusters.kubernetes.whole_slices import WholeSlices
from reconciler.model.cluster_port import Busy, Done, QueueTerms, QueueView, Refused, SliceTerms
from schemas.errors import Fault
from tests.reconciler.clusters.kubernetes.tenants import (
    FIRST,
    NEWER,
    NOW,
    OLD,
    as_user,
    finished,
    namespace,
    terms,
)
from tests.reconciler.clusters.kubernetes.test_slices_rights import CONTROLLER, granted, may
from tests.support import crds, kueue
from tests.support.kube import Plane, eventually

QUEUE = QueueTerms(16, topology=("example.com/rack",))
TERMS = replace(terms("vision", "vision", "vision-dev"), queue=QUEUE)
API = f"{kueue.GROUP}/v1beta2"
LATER = NOW + LOOK


@pytest.fixture
def cluster(new_kube: Plane) -> Plane:
    kueue.served(new_kube.api, *kueue.OURS)
    return new_kube


@pytest.fixture
def slices(new_kube: Plane) -> Iterator[WholeSlices]:
    found = opened(new_kube)
    yield found
    found.stop()


def opened(plane: Plane) -> WholeSlices:
    made = WholeSlices(plane.api, "default", "egs-system", "east")
    made.start()
    made.namespaces()
    return made


def ensured(slices: WholeSlices, wanted: SliceTerms = TERMS) -> None:
    assert slices.ensure(wanted, FIRST, NOW) == Done()


def ours(plane: Plane, plural: str, version: str = "v1beta2") -> dict[str, Json]:
    items = plane.api.items(f"{kueue.GROUP}/{version}/{plural}", labelSelector="egs.dev/slice=vision")
    found = {(i["metadata"].get("namespace", ""), i["metadata"]["name"]): i for i in items}
    return {f"{space}/{name}" if space else name: item for (space, name), item in sorted(found.items())}


def main_queue(plane: Plane) -> Json:
    return next(q for name, q in ours(plane, "clusterqueues").items() if not name.endswith("-cpu"))


def test_a_slice_gets_its_queue(cluster: Plane, slices: WholeSlices) -> None:
    """A9: with our labels and the stamp, and nothing differs then."""
    ensured(slices)
    made = {plural: ours(cluster, plural) for plural in kueue.OURS}
    assert {plural: len(found) for plural, found in made.items()} == {
        "topologies": 1,
        "resourceflavors": 2,
        "clusterqueues": 2,
        "localqueues": 4,
    }
    for item in (item for found in made.values() for item in found.values()):
        assert item["metadata"]["labels"]["egs.dev/project"] == "default"
        assert item["metadata"]["annotations"]["egs.dev/stamp"] == "1.2"
    assert slices.differences((TERMS,), NOW) == ()
    assert slices.queues() == {"vision": QueueView(16)}


def test_what_is_so_already_costs_no_call(cluster: Plane, slices: WholeSlices) -> None:
    ensured(slices)
    before = cluster.api.calls
    ensured(slices)
    slices.differences((TERMS,), NOW)
    assert cluster.api.calls == before


@pytest.mark.parametrize(
    "then",
    [
        pytest.param(replace(QUEUE, gpus=8), id="a node is not ready"),
        pytest.param(replace(QUEUE, stop="Hold"), id="warned"),
        pytest.param(replace(QUEUE, gpus=0, stop="HoldAndDrain"), id="over"),
        pytest.param(replace(QUEUE, gpus=14, mig="1g.10gb"), id="with partitions"),
    ],
)
def test_the_queue_follows_its_lease(cluster: Plane, slices: WholeSlices, then: QueueTerms) -> None:
    """D10, H15: the queue is changed, and nothing else is."""
    ensured(slices)
    flavors = ours(cluster, "resourceflavors")
    wanted = replace(TERMS, queue=then)
    (difference,) = slices.differences((wanted,), NOW)
    assert difference.object == f"ClusterQueue {main_queue(cluster)['metadata']['name']}"
    ensured(slices, wanted)
    assert slices.queues() == {"vision": QueueView(then.gpus, then.stop, then.mig)}
    assert main_queue(cluster)["spec"]["stopPolicy"] == then.stop
    assert ours(cluster, "resourceflavors") == flavors
    assert slices.differences((wanted,), NOW) == ()


def test_foreign_changes_are_shown_and_repaired_and_additions_stay(
    cluster: Plane, slices: WholeSlices
) -> None:
    """H13: what we do not set belongs to the cluster's admin."""
    ensured(slices)
    name = main_queue(cluster)["metadata"]["name"]
    path = f"{API}/clusterqueues/{name}"
    change = {"stopPolicy": "Hold", "preemption": {"withinClusterQueue": "LowerPriority"}}
    cluster.api.merge(path, {"spec": change})
    cluster.api.delete(f"{API}/namespaces/vision/localqueues/default")
    eventually(lambda: len(slices.differences((TERMS,), NOW)) == 2, "both are seen")
    found = {d.object: (d.found, d.detail.partition(" ")[0]) for d in slices.differences((TERMS,), NOW)}
    assert found == {
        f"ClusterQueue {name}": ("changed", "spec.stopPolicy"),
        "LocalQueue vision/default": ("missing", ""),
    }
    ensured(slices)
    spec = cluster.api.get(path)["spec"]
    assert (spec["stopPolicy"], spec["preemption"]["withinClusterQueue"]) == ("None", "LowerPriority")
    assert slices.differences((TERMS,), NOW) == ()


def test_peoples_own_queues_are_left_alone(cluster: Plane, slices: WholeSlices) -> None:
    """One of their own, and one that has the name that we need."""
    ensured(slices, replace(TERMS, queue=None))
    queues = f"{API}/namespaces/vision/localqueues"
    for name in ("mine", "default"):
        body = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue", "metadata": {"name": name}}
        cluster.api.create(queues, {**body, "spec": {"clusterQueue": "theirs"}}, patient=False)
    answer = slices.ensure(TERMS, FIRST, NOW)
    assert isinstance(answer, Refused)
    assert answer.message.startswith("LocalQueue/default in namespace vision is not ours")
    assert slices.queues() == {"vision": QueueView(16)}, "all else is there"
    ensured(slices, replace(TERMS, queue=None))
    assert {i["metadata"]["name"]: i["spec"]["clusterQueue"] for i in cluster.api.items(queues)} == {
        "default": "theirs",
        "mine": "theirs",
    }


@pytest.mark.parametrize("restarted", [False, True], ids=["at once", "after a restart"])
def test_a_queue_that_is_wanted_no_more_goes(cluster: Plane, slices: WholeSlices, restarted: bool) -> None:
    ensured(slices)
    if restarted:
        slices.stop()
        slices = opened(cluster)
    wanted = replace(TERMS, queue=None)
    assert {d.found for d in slices.differences((wanted,), NOW)} == {"extra"}
    ensured(slices, wanted)
    assert [ours(cluster, plural) for plural in kueue.OURS] == [{}, {}, {}, {}]
    assert slices.queues() == {}
    assert slices.differences((wanted,), NOW) == ()
    slices.stop()


def test_a_namespace_that_leaves_loses_its_doors(cluster: Plane, slices: WholeSlices) -> None:
    """C2."""
    ensured(slices)
    ensured(slices, replace(TERMS, namespaces=("vision",)))
    assert list(ours(cluster, "localqueues")) == ["vision/default", "vision/egs-cpu"]


def test_the_queue_goes_with_its_slice(cluster: Plane, slices: WholeSlices) -> None:
    """C2: also if it was left over by a controller that died meanwhile."""
    ensured(slices)
    finished(lambda now: slices.slices.remove("vision", False, FIRST, now))
    assert dict(slices.namespaces()) == {"vision": ()}
    assert slices.remove("vision", False, FIRST, NOW) == Done()
    assert slices.namespaces() == {}
    assert [ours(cluster, plural) for plural in kueue.OURS[:3]] == [{}, {}, {}]


def test_a_queue_that_kueue_holds_back_is_waited_for(cluster: Plane, slices: WholeSlices) -> None:
    ensured(slices)
    name = main_queue(cluster)["metadata"]["name"]
    path = f"{API}/clusterqueues/{name}"
    cluster.api.merge(path, {"metadata": {"finalizers": ["kueue.x-k8s.io/resource-in-use"]}})
    ensured(slices, replace(TERMS, queue=None))
    eventually(
        lambda: any(d.detail == "it is being deleted" for d in slices.differences((TERMS,), NOW)), "its end"
    )
    assert slices.differences((replace(TERMS, queue=None),), NOW) == ()
    answer = slices.ensure(TERMS, FIRST, NOW)
    assert isinstance(answer, Busy)
    assert f"ClusterQueue/{name} is being deleted" in answer.message
    cluster.api.merge(path, {"metadata": {"finalizers": None}})
    assert finished(lambda now: slices.ensure(TERMS, FIRST, now)) == Done()


def test_an_older_controller_changes_no_queue(cluster: Plane, slices: WholeSlices) -> None:
    assert slices.ensure(TERMS, NEWER, NOW) == Done()
    for answer in (
        slices.ensure(replace(TERMS, queue=replace(QUEUE, gpus=8)), OLD, NOW),
        slices.remove("vision", False, OLD, NOW),
    ):
        assert isinstance(answer, Refused)
        assert answer.reason == "StaleStamp"
    assert slices.queues() == {"vision": QueueView(16)}


def test_two_projects_share_a_cluster(cluster: Plane, slices: WholeSlices) -> None:
    """B3: a slice's name is taken in a cluster, but never its queue's."""
    ensured(slices)
    other = WholeSlices(cluster.api, "research", "egs-system", "east")
    other.start()
    other.namespaces()
    try:
        assert other.ensure(replace(TERMS, name="speech", namespaces=("speech",)), FIRST, NOW) == Done()
        assert (
            other.ensure(replace(TERMS, name="speech", namespaces=("speech",), queue=None), FIRST, NOW)
            == Done()
        )
    finally:
        other.stop()
    assert slices.differences((TERMS,), NOW) == ()


# --- clusters without it, and older ones ---


def test_without_kueue_the_slice_is_made_and_says_so(new_kube: Plane, slices: WholeSlices) -> None:
    ensured(slices)
    assert slices.differences((TERMS,), NOW) == ()
    assert slices.queues()["vision"].problem == (
        "cluster east serves kueue.x-k8s.io neither as v1beta2 nor v1beta1, so the slice has no queue there; install "
        "Kueue in the cluster, or set spec.queues.kueue of the slice to false"
    )


def test_kueue_may_be_installed_later_and_removed_again(new_kube: Plane, slices: WholeSlices) -> None:
    ensured(slices)
    kueue.served(new_kube.api, *kueue.OURS)
    assert slices.differences((TERMS,), NOW) == (), "not looked for in every cycle"
    assert {d.found for d in slices.differences((TERMS,), LATER)} == {"missing"}
    assert slices.ensure(TERMS, FIRST, LATER) == Done()
    assert slices.queues() == {"vision": QueueView(16)}
    for plural in kueue.OURS:
        new_kube.api.delete(f"{crds.PATH}/{plural}.kueue.x-k8s.io")
    again = LATER + LOOK

    def is_missed() -> bool:
        slices.differences((TERMS,), again + timedelta(seconds=1))
        return bool(slices.queues()["vision"].problem) if slices.queues() else False

    eventually(lambda: new_kube.api.find(kueue.GROUP) is None, "it is gone")
    slices.differences((TERMS,), again)
    eventually(is_missed, "the slice says so")
    assert slices.differences((TERMS,), again) == ()


def test_an_older_kueue_is_written_in_its_own_version(new_kube: Plane, slices: WholeSlices) -> None:
    kueue.served(new_kube.api, *kueue.OURS[1:], version="v1beta1")
    ensured(slices)
    assert slices.differences((TERMS,), NOW) == ()
    (flavor, _) = ours(new_kube, "resourceflavors", "v1beta1").values()
    assert "topologyName" not in flavor["spec"], "it has no Topology to refer to"
    assert slices.queues() == {"vision": QueueView(16)}


# --- trouble ---

DOWN = 'Internal error occurred: failed calling webhook "mclusterqueue.kb.io": connection refused'


def test_kueues_webhook_that_is_down_is_the_queues_trouble_alone(
    cluster: Plane, slices: WholeSlices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slice is made, and no other slice waits."""

    def down(*_: object, **__: object) -> None:
        raise Rejected(DOWN, 500, "InternalError")

    monkeypatch.setattr(OptionalObjects, "_put", down)
    answer = slices.ensure(TERMS, FIRST, NOW)
    assert isinstance(answer, Refused)
    assert DOWN in answer.message
    assert slices.namespaces()["vision"] == TERMS.namespaces


def test_queues_that_cannot_be_read_are_the_queues_trouble_alone(
    cluster: Plane, slices: WholeSlices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A definition whose conversion is down is listed by no one: slices go on, and it is looked at again."""

    def down(*_: object) -> None:
        raise Fault("GET clusterqueues: conversion webhook failed")

    with monkeypatch.context() as broken:
        broken.setattr(OptionalObjects, "_watched", down)
        ensured(slices)
        assert "cannot be read" in slices.queues()["vision"].problem
        assert "conversion webhook failed" in slices.queues()["vision"].problem
    assert slices.ensure(TERMS, FIRST, LATER) == Done()
    assert slices.queues() == {"vision": QueueView(16)}


# --- rights ---


@pytest.mark.parametrize("rules", [(), QUEUE_RULES], ids=["without the rules", "with them"])
def test_the_rules_for_queues_are_needed_and_enough(cluster: Plane, rules: tuple[object, ...]) -> None:
    """Without them the slice says what to grant, and is made all the same."""
    namespace(cluster, "egs-system")
    granted(cluster, [*RULES, *(QUEUE_RULES if rules else ())])
    eventually(lambda: may(cluster, "watch", "namespaces"), "the rights")
    slices = WholeSlices(as_user(cluster, CONTROLLER), "default", "egs-system", "east")
    slices.start()
    try:
        ensured(slices)
        if not rules:
            assert "the controller may not keep queues in cluster east" in slices.queues()["vision"].problem
            assert "set `kueue: true`" in slices.queues()["vision"].problem
            return
        assert slices.queues() == {"vision": QueueView(16)}
        ensured(slices, replace(TERMS, queue=replace(QUEUE, gpus=8)))
        ensured(slices, replace(TERMS, queue=None))
        assert [ours(cluster, plural) for plural in kueue.OURS] == [{}, {}, {}, {}]
    finally:
        slices.stop()
