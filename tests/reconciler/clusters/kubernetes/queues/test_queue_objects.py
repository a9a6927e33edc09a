"""A slice's Kueue objects, as values: their names, what they refer to, and what is read back (A9, J1)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.clusters.kubernetes.api.api_client import Json
from reconciler.clusters.kubernetes.queues.queue_objects import (
    CLUSTER_QUEUE,
    FLAVOR,
    LOCAL_QUEUE,
    TOPOLOGY,
    Served,
    base_name,
    queue_objects,
    shown,
)
from reconciler.model.cluster_port import QueueTerms, QueueView, SliceTerms

NEW = Served("v1beta2")
RACKS = ("example.com/block", "example.com/rack")
TERMS = SliceTerms("vision", ("vision", "vision-dev"), queue=QueueTerms(16, topology=RACKS))


def of(kind: str, terms: SliceTerms = TERMS, served: Served = NEW) -> list[Json]:
    return [found for found in queue_objects(terms, "default", served) if found["kind"] == kind]


def with_queue(**changes: object) -> SliceTerms:
    assert TERMS.queue is not None
    return replace(TERMS, queue=replace(TERMS.queue, **changes))  # type: ignore[arg-type]


def test_a_slice_that_wants_none_has_none() -> None:
    assert queue_objects(replace(TERMS, queue=None), "default", NEW) == ()


def test_each_object_refers_to_one_that_comes_before_it() -> None:
    made = queue_objects(TERMS, "default", NEW)
    names = [(found["kind"], found["metadata"]["name"]) for found in made]
    for place, found in enumerate(made):
        spec = found["spec"]
        told = {(TOPOLOGY, spec.get("topologyName")), (CLUSTER_QUEUE, spec.get("clusterQueue"))}
        told |= {
            (FLAVOR, flavor["name"])
            for group in spec.get("resourceGroups", ())
            for flavor in group["flavors"]
        }
        assert {t for t in told if t[1] is not None} <= set(names[:place])


def test_the_flavor_is_the_slices_nodes_whichever_these_are() -> None:
    flavor = of(FLAVOR)[0]["spec"]
    key = "egs.node-restriction.kubernetes.io/slice"
    assert flavor["nodeLabels"] == {key: "vision"}
    assert flavor["tolerations"] == [
        {"key": key, "operator": "Equal", "value": "vision", "effect": "NoSchedule"}
    ]
    assert flavor["topologyName"] == of(TOPOLOGY)[0]["metadata"]["name"]
    assert of(TOPOLOGY)[0]["spec"] == {"levels": [{"nodeLabel": label} for label in RACKS]}


@pytest.mark.parametrize(
    "changes", [{"gpus": 8}, {"stop": "HoldAndDrain"}, {"mig": "1g.10gb"}], ids=["gpus", "stop", "mig"]
)
def test_no_change_of_a_lease_changes_a_flavor(changes: dict[str, object]) -> None:
    """F11, H15: topology-aware scheduling would ignore it."""
    then = with_queue(**changes)
    assert (of(FLAVOR, then), of(TOPOLOGY, then)) == (of(FLAVOR), of(TOPOLOGY))
    assert of(CLUSTER_QUEUE, then) != of(CLUSTER_QUEUE)


def test_another_topology_is_another_flavor() -> None:
    then = with_queue(topology=RACKS[:1])
    assert of(FLAVOR, then)[0]["metadata"]["name"] != of(FLAVOR)[0]["metadata"]["name"]
    assert of(TOPOLOGY, then)[0]["metadata"]["name"] != of(TOPOLOGY)[0]["metadata"]["name"]


def test_without_the_resource_or_labels_there_is_no_topology() -> None:
    for terms, served in ((with_queue(topology=()), NEW), (TERMS, Served("v1beta1", has_topologies=False))):
        assert of(TOPOLOGY, terms, served) == []
        assert "topologyName" not in of(FLAVOR, terms, served)[0]["spec"]


def test_a_queue_is_open_to_its_slices_namespaces_only() -> None:
    """B10."""
    for queue in of(CLUSTER_QUEUE):
        assert queue["spec"]["namespaceSelector"] == {
            "matchLabels": {"egs.dev/slice": "vision", "egs.dev/project": "default"}
        }


def test_work_without_gpus_has_a_queue_that_is_never_held() -> None:
    """C3."""
    gpu, cpu = of(CLUSTER_QUEUE, with_queue(gpus=0, stop="HoldAndDrain"))
    assert (gpu["spec"]["stopPolicy"], cpu["spec"]["stopPolicy"]) == ("HoldAndDrain", "None")
    assert "nvidia.com/gpu" not in cpu["spec"]["resourceGroups"][0]["coveredResources"]
    doors = {(d["metadata"]["namespace"], d["metadata"]["name"]): d["spec"] for d in of(LOCAL_QUEUE)}
    assert sorted(doors) == [
        *[("vision", "default"), ("vision", "egs-cpu")],
        *[("vision-dev", "default"), ("vision-dev", "egs-cpu")],
    ]
    assert doors["vision", "egs-cpu"] == {"clusterQueue": cpu["metadata"]["name"]}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(("default", "vision"), ("research", "vision"), id="of two projects"),
        pytest.param(("a-b", "c"), ("a", "b-c"), id="however their words are cut"),
        pytest.param(("p", "x" * 40 + "a"), ("p", "x" * 40 + "b"), id="of long names"),
    ],
)
def test_no_two_slices_share_a_name(one: tuple[str, str], other: tuple[str, str]) -> None:
    """B3."""
    assert base_name(*one) != base_name(*other)
    assert all(len(f"{base_name(*found)}-00000000") <= 63 for found in (one, other))


@pytest.mark.parametrize(
    ("queue", "want"),
    [
        pytest.param(QueueTerms(0, "HoldAndDrain"), QueueView(0, "HoldAndDrain"), id="without a lease"),
        pytest.param(QueueTerms(3000, "Hold"), QueueView(3000, "Hold"), id="3k"),
        pytest.param(QueueTerms(14, "None", "1g.10gb"), QueueView(14, "None", "1g.10gb"), id="partitions"),
    ],
)
def test_what_was_written_is_read_back(queue: QueueTerms, want: QueueView) -> None:
    assert shown(of(CLUSTER_QUEUE, replace(TERMS, queue=queue))[0]["spec"]) == want


def test_an_empty_queue_is_read_as_nothing() -> None:
    assert shown({}) == QueueView(0, "None")
