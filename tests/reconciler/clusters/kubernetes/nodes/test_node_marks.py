"""Our marks on a node: what they say is what is written, and what others wrote stays (C6, F9, H13)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.clusters.kubernetes import names
from reconciler.clusters.kubernetes.nodes.node_inventory import read_node
from reconciler.clusters.kubernetes.nodes.node_marks import (
    Marks,
    cordoned_by_others,
    differing,
    freed,
    marks_of,
    patch,
    untouched,
)
from reconciler.model.cluster_port import LeaseRef, Stamp
from tests.support.kube import gpu_node

END = datetime(2026, 11, 21, 9, tzinfo=UTC)
LEASE = LeaseRef("gpr-1", "vision/train", "vision", END)
FOREIGN_TAINT = {"key": "example.com/broken", "effect": "NoExecute"}


def node(**changes):
    """An object as the server gives it; dotted keys change what is inside."""
    found = gpu_node("gpu-1")
    found["metadata"] |= {"uid": "u1", "resourceVersion": "7"}
    found["spec"] = {}
    for path, value in changes.items():
        inside = found
        *outer, last = path.split("__")
        for key in outer:
            inside = inside.setdefault(key, {})
        inside[last] = value
    return found


def patched(item, operations):
    """The object after a JSON Patch (RFC 6902), as the server would have it; None when a test does not hold."""
    item = {k: (dict(v) if isinstance(v, dict) else v) for k, v in item.items()}
    item["metadata"] = {k: (dict(v) if isinstance(v, dict) else v) for k, v in item["metadata"].items()}
    for step in operations:
        *outer, last = [p.replace("~1", "/").replace("~0", "~") for p in step["path"].split("/")[1:]]
        inside = item
        for key in outer:
            inside = inside[key]
        if step["op"] == "test":
            if inside.get(last) != step["value"]:
                return None
        elif step["op"] == "remove":
            del inside[last]
        else:
            inside[last] = step["value"]
    return item


def written(item, marks):
    """The object after our marks were written on it."""
    return patched(item, patch(read_node(item), marks))


marks = st.builds(
    Marks,
    project=st.just("default"),
    stamp=st.builds(Stamp, st.integers(0, 9), st.integers(0, 9)),
    lease=st.none() | st.just(LEASE) | st.just(replace(LEASE, mig="1g.10gb", uid="gpr-2", slice="speech")),
    exit_by=st.none() | st.just(END),
    isolated=st.none() | st.just("Xid79"),
    prepared=st.sampled_from(("", "gpr-1")),
).map(lambda found: found if found.lease is not None else replace(found, exit_by=None))
objects = st.builds(
    lambda taints, cordoned, annotations, skip: node(
        spec=({"taints": taints} if taints else {}) | ({"unschedulable": True} if cordoned else {}),
        metadata__annotations=annotations,
        metadata__labels={"example.com/rack": "r1"} | ({names.DRIVER_SKIP: skip} if skip else {}),
    ),
    st.just([])
    | st.just([FOREIGN_TAINT])
    | st.just([{"key": names.SLICE, "value": "x", "effect": "NoSchedule"}]),
    st.booleans(),
    st.just({"example.com/note": "hello"}) | st.just({}),
    st.sampled_from(("", "true", "false")),
)


@given(objects, marks)
def test_what_is_written_is_what_is_read(item, wanted):
    got = marks_of(read_node(written(item, wanted)))
    assert replace(got, cordoned_before=False) == wanted
    assert got.cordoned_before == (wanted.cordons and item["spec"].get("unschedulable", False))


@given(objects, marks, marks)
def test_a_second_patch_of_the_same_marks_is_empty(item, first, second):
    item = written(item, first)
    after = written(item, replace(second, cordoned_before=marks_of(read_node(item)).cordoned_before))
    assert patch(read_node(after), marks_of(read_node(after))) == []
    assert differing(read_node(after), marks_of(read_node(after))) == ()


@given(objects, marks)
def test_what_others_wrote_stays_in_and_out(item, wanted):
    """Their taints, annotations and cordon while we are there; also their label for driver upgrades afterwards."""
    there = written(item, wanted)
    for after in (there, patched(there, untouched(read_node(there)))):
        assert [t for t in after["spec"].get("taints", []) if t["key"] != names.SLICE] == [
            t for t in item["spec"].get("taints", []) if t["key"] != names.SLICE
        ]
        assert after["metadata"]["annotations"].get("example.com/note") == item["metadata"][
            "annotations"
        ].get("example.com/note")
    gone = patched(there, untouched(read_node(there)))
    assert gone["metadata"]["labels"] == item["metadata"]["labels"]
    assert gone["spec"].get("unschedulable", False) == item["spec"].get("unschedulable", False)
    assert not [
        k for k in (*gone["metadata"]["annotations"], *gone["metadata"]["labels"]) if k.startswith("egs.")
    ]


def test_a_patch_holds_for_the_version_that_was_read_only():
    """A paused old leader: the node was written since."""
    item = node()
    steps = patch(read_node(item), Marks(project="default", lease=LEASE))
    assert patched(node(metadata__resourceVersion="8"), steps) is None


@pytest.mark.parametrize(
    ("wanted", "taint"),
    [
        pytest.param(Marks(), "", id="free: nobody's GPU pod may land"),
        pytest.param(Marks(lease=LEASE), "vision", id="leased: its slice's may"),
        pytest.param(Marks(lease=LEASE, exit_by=END), "", id="leaving: nobody's any more"),
    ],
)
def test_the_taint_says_whose_pods_may_land(wanted, taint):
    (found,) = written(node(), wanted)["spec"]["taints"]
    assert (found["key"], found.get("value", ""), found["effect"]) == (names.SLICE, taint, "NoSchedule")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param(f"metadata__annotations__{names.STAMP}", "yesterday", id="a stamp that is none"),
        pytest.param(f"metadata__annotations__{names.LEASE}", "{broken", id="a lease that is no JSON"),
        pytest.param(f"metadata__annotations__{names.EXIT}", "soon", id="an instant that is none"),
    ],
)
def test_a_mark_that_somebody_broke_is_none(path, value):
    prefix, _, key = path.rpartition("__")
    item = node(**{prefix: {key: value}})
    assert marks_of(read_node(item)) == Marks()


def skip_of(item):
    """The label that keeps upgrades of the driver away, and what we remember of it."""
    meta = item["metadata"]
    return meta["labels"].get(names.DRIVER_SKIP), meta.get("annotations", {}).get(names.SKIP_BEFORE)


@pytest.mark.parametrize(
    ("before", "kept"),
    [
        pytest.param({}, "(none)", id="nobody had set it"),
        pytest.param({names.DRIVER_SKIP: "true"}, "true", id="somebody keeps upgrades away for good"),
        pytest.param({names.DRIVER_SKIP: "false"}, "false", id="somebody let them in"),
    ],
)
def test_upgrades_of_the_driver_stay_away_while_a_lease_needs_the_node(before, kept):
    """H14: from its preparation to the end of its cleaning; then the label has its value again."""
    item = node(metadata__labels=dict(before))
    for marks in (
        Marks(prepared="gpr-1"),
        Marks(lease=LEASE),
        Marks(lease=LEASE, exit_by=END),
        freed(Marks(lease=LEASE, exit_by=END), "gpr-1"),
    ):
        item = written(item, marks)
        assert skip_of(item) == ("true", kept)
    assert skip_of(written(item, Marks())) == (before.get(names.DRIVER_SKIP), None)


@pytest.mark.parametrize("found", [None, "false"])
def test_a_label_for_upgrades_that_somebody_took_away_is_a_difference(found):
    item = written(node(), Marks(lease=LEASE))
    labels = item["metadata"]["labels"]
    labels.pop(names.DRIVER_SKIP)
    if found is not None:
        labels[names.DRIVER_SKIP] = found
    seen = read_node(item)
    assert differing(seen, marks_of(seen)) == (f"label {names.DRIVER_SKIP}",)
    assert skip_of(written(item, marks_of(seen))) == ("true", "(none)")


def test_a_lease_of_an_older_release_gets_the_label_too():
    item = written(node(), Marks(lease=LEASE))
    item["metadata"]["annotations"].pop(names.SKIP_BEFORE)
    item["metadata"]["labels"].pop(names.DRIVER_SKIP)
    seen = read_node(item)
    assert differing(seen, marks_of(seen)) == (
        f"label {names.DRIVER_SKIP}",
        f"annotation {names.SKIP_BEFORE}",
    )
    assert skip_of(written(item, marks_of(seen))) == ("true", "(none)")


def test_a_value_that_no_label_can_have_is_not_restored():
    """A kubelet may write its node's annotations; the server would refuse the whole patch."""
    item = written(node(), Marks(lease=LEASE))
    item["metadata"]["annotations"][names.SKIP_BEFORE] = "a b"
    assert skip_of(written(item, Marks())) == (None, None)


def test_our_cordon_is_not_taken_for_a_persons():
    ours = read_node(written(node(), Marks(isolated="Xid79")))
    assert (ours.cordoned, cordoned_by_others(ours, marks_of(ours))) == (True, False)
    both = read_node(written(node(spec__unschedulable=True), Marks(isolated="Xid79")))
    assert cordoned_by_others(both, marks_of(both))
