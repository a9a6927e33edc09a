"""Events in the cluster: each note once, where the people concerned look (H10, H11)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from reconciler.clusters.kubernetes.api import Rejected
from reconciler.clusters.kubernetes.notes import LONGEST_NOTE, announce, event, shortened
from reconciler.clusters.port import Note
from tests.support.kube import eventually

NOW = datetime(2026, 11, 21, 8, 0, 0, tzinfo=UTC)
STARTED = Note("vision/train/start", "GPRProvisioned", "vision/train runs", NOW, "vision", "vision/train")
SLICES = {"vision": ("vision-train", "vision-dev")}
LOST = Note("node/h100-1", "NodeOut", "h100-1 is out: Xid79", NOW, node="h100-1", warning=True)


def events(kube, namespace="vision-train"):
    return list(kube.api.items(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"))


@pytest.fixture
def spaces(kube):
    for name in SLICES["vision"]:
        kube.api.create(
            "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        )
    return kube


def test_a_note_is_told_once_however_often_it_is_given(spaces):
    """H11: also by another controller."""
    announce(spaces.api, [STARTED], SLICES)
    announce(spaces.connect(), [STARTED, replace(STARTED, key="another")], SLICES)
    found = [e for e in events(spaces) if e["reason"] == "GPRProvisioned"]
    assert len(found) == 2


def test_it_is_about_the_request_and_of_the_slices_first_namespace(spaces):
    """H10: `kubectl get events` of the tenant shows it."""
    announce(spaces.api, [replace(STARTED, node="h100-1")], SLICES)
    (found,) = events(spaces)
    assert found["regarding"] == {
        "apiVersion": "egs.dev/v1alpha1",
        "kind": "GPR",
        "namespace": "vision-train",
        "name": "train",
    }
    assert (found["type"], found["note"], found["related"]["name"]) == (
        "Normal",
        "vision/train runs",
        "h100-1",
    )
    assert found["eventTime"] == "2026-11-21T08:00:00.000000Z"
    assert found["reportingController"] == "egs.dev/reconciler"


@pytest.mark.parametrize(
    ("note", "kind", "namespace"),
    [
        pytest.param(LOST, "Node", "default", id="a node's, where the kubelet's are"),
        pytest.param(replace(STARTED, request=""), "Namespace", "vision-train", id="a slice's"),
        pytest.param(
            replace(STARTED, slice="", request="gone/x"), "GPR", "default", id="a slice not in this cluster"
        ),
        pytest.param(replace(STARTED, slice="", request=""), "Namespace", "default", id="everybody's"),
    ],
)
def test_every_kind_of_note_is_taken_by_the_server(spaces, note, kind, namespace):
    announce(spaces.api, [note], SLICES)
    (found,) = [e for e in events(spaces, namespace) if e["reason"] == note.reason]
    assert found["regarding"]["kind"] == kind
    assert found["type"] == ("Warning" if note.warning else "Normal")


@pytest.mark.parametrize("text", ["x" * 2000, "ä" * 2000, "short", "€" * 341, "€" * 342])
def test_long_texts_are_cut_to_what_the_server_takes(spaces, text):
    assert len(shortened(text).encode()) <= LONGEST_NOTE
    announce(spaces.api, [replace(STARTED, text=text)], SLICES)
    (found,) = events(spaces)
    assert found["note"] == shortened(text)


def test_a_namespace_that_is_gone_or_goes_stops_no_other_note(spaces):
    """Its people are gone with it."""
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "stuck", "finalizers": ["example.com/x"]},
    }
    path = "/api/v1/namespaces/vision-dev/configmaps"
    spaces.api.create(path, body)
    spaces.api.delete("/api/v1/namespaces/vision-dev")
    slices = {"gone": ("nowhere",), "going": ("vision-dev",), **SLICES}
    notes = [replace(STARTED, key=s, request=f"{s}/x", slice=s) for s in ("gone", "going", "vision")]
    eventually(lambda: _terminating(spaces, "vision-dev"), "a namespace in Terminating")
    try:
        announce(spaces.api, notes, slices)
        assert len(events(spaces)) == 1
    finally:
        spaces.api.patch(f"{path}/stuck", [{"op": "remove", "path": "/metadata/finalizers"}])


def test_what_the_server_refuses_is_raised_after_all_others_were_told(spaces):
    bad = replace(STARTED, key="bad", reason="r" * 200)
    with pytest.raises(Rejected):
        announce(spaces.api, [bad, STARTED], SLICES)
    assert [e["reason"] for e in events(spaces)] == ["GPRProvisioned"]


def test_the_name_follows_from_the_key_alone():
    """H11: whatever the text says by then."""
    other = replace(STARTED, text="other words", warning=True)
    assert event(STARTED, SLICES, "a")["metadata"] == event(other, SLICES, "b")["metadata"]


def _terminating(kube, name):
    return kube.api.get(f"/api/v1/namespaces/{name}")["status"]["phase"] == "Terminating"
