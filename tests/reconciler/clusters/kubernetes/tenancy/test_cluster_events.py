"""Events in the cluster: each note once, where the people concerned look (H10, H11)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from reconciler.clusters.kubernetes.api.api_client import Rejected
from reconciler.clusters.kubernetes.tenancy.cluster_events import (
    LONGEST_NOTE,
    MOST_HEARD,
    Heard,
    announce,
    event,
    shortened,
)
from reconciler.model.cluster_port import Note
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
    announce(spaces.api, [STARTED], SLICES, Heard())
    announce(spaces.connect(), [STARTED, replace(STARTED, key="another")], SLICES, Heard())
    found = [e for e in events(spaces) if e["reason"] == "GPRProvisioned"]
    assert len(found) == 2


def test_it_is_about_the_request_and_of_the_slices_first_namespace(spaces):
    """H10: `kubectl get events` of the tenant shows it."""
    announce(spaces.api, [replace(STARTED, node="h100-1")], SLICES, Heard())
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


def test_a_note_for_everywhere_is_in_each_of_the_slices_namespaces_once(spaces):
    """J4: each of them shows that the lease ends."""
    warned = replace(STARTED, key="warned", reason="GPRWarned", everywhere=True, warning=True)
    for _ in range(2):
        announce(spaces.api, [warned], SLICES, Heard())
    for namespace in SLICES["vision"]:
        (found,) = events(spaces, namespace)
        assert (found["reason"], found["regarding"]["namespace"]) == ("GPRWarned", namespace)


def test_a_note_for_everywhere_that_one_namespace_refused_is_tried_again(caplog):
    """J4: a server in trouble with one of them."""
    warned, server, heard = replace(STARTED, key="x", everywhere=True), Server(), Heard()
    server.answers["GPRProvisioned"] = Rejected("broken", 500)
    with pytest.raises(Rejected):
        announce(server, [warned], SLICES, heard)
    server.answers.clear()
    announce(server, [warned], SLICES, heard)
    assert server.asked == ["GPRProvisioned"] * 4


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
    announce(spaces.api, [note], SLICES, Heard())
    (found,) = [e for e in events(spaces, namespace) if e["reason"] == note.reason]
    assert found["regarding"]["kind"] == kind
    assert found["type"] == ("Warning" if note.warning else "Normal")


@pytest.mark.parametrize("text", ["x" * 2000, "ä" * 2000, "short", "€" * 341, "€" * 342])
def test_long_texts_are_cut_to_what_the_server_takes(spaces, text):
    assert len(shortened(text).encode()) <= LONGEST_NOTE
    announce(spaces.api, [replace(STARTED, text=text)], SLICES, Heard())
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
        announce(spaces.api, notes, slices, Heard())
        assert len(events(spaces)) == 1
    finally:
        spaces.api.patch(f"{path}/stuck", [{"op": "remove", "path": "/metadata/finalizers"}])


def test_a_note_that_the_server_always_refuses_is_dropped_and_told_once(spaces, caplog):
    """It must not make all others be sent again in each cycle."""
    bad, heard = replace(STARTED, key="bad", reason="r" * 200), Heard()
    for _ in range(3):
        announce(spaces.api, [bad, STARTED], SLICES, heard)
    assert [e["reason"] for e in events(spaces)] == ["GPRProvisioned"]
    assert sum("note dropped key=bad" in r.message for r in caplog.records) == 1


class Server:
    """Takes events but for those of which `answers` has a refusal, by reason."""

    def __init__(self, **answers):
        self.answers, self.asked = answers, []

    def create(self, path, body):
        self.asked.append(body["reason"])
        if (no := self.answers.get(body["reason"])) is not None:
            raise no
        return body


RBAC = 'cluster east refused POST …: events is forbidden: User "egs" cannot create resource "events"'
NOTES = [replace(STARTED, key=key, reason=key) for key in ("a", "b", "c")]


@pytest.mark.parametrize(
    ("no", "first", "then"),
    [
        pytest.param(Rejected(RBAC, 403), "ab", "b", id="no right: it stops, and begins there again"),
        pytest.param(Rejected("who?", 401), "ab", "b", id="unknown to it: the same"),
        pytest.param(Rejected("busy", 429), "ab", "b", id="busy: the same"),
        pytest.param(Rejected("broken", 500), "abc", "b", id="in trouble with one: the others first"),
    ],
)
def test_trouble_of_the_server_is_raised_and_what_was_told_is_not_told_again(no, first, then):
    server, heard = Server(b=no), Heard()
    for asked in (first, then, then):
        server.asked.clear()
        with pytest.raises(Rejected):
            announce(server, NOTES, SLICES, heard)
        assert "".join(server.asked) == asked
    server.answers.clear()
    announce(server, NOTES, SLICES, heard)
    server.asked.clear()
    announce(server, NOTES, SLICES, heard)
    assert server.asked == []


@pytest.mark.parametrize(
    "no",
    [
        pytest.param(Rejected("invalid", 422), id="not as it should be"),
        pytest.param(Rejected("exceeded quota: events", 403), id="against a quota"),
        pytest.param(Rejected("denied by policy", 403), id="against a policy"),
        pytest.param(Rejected("there already", 409), id="told before"),
    ],
)
def test_what_is_refused_for_itself_holds_up_no_other_and_is_not_tried_again(no):
    server, heard = Server(b=no), Heard()
    for asked in ("abc", ""):
        announce(server, NOTES, SLICES, heard)
        assert "".join(server.asked) == asked
        server.asked.clear()


def test_what_is_remembered_is_bounded():
    heard = Heard()
    for i in range(MOST_HEARD + 3):
        heard.add(str(i))
    assert ("2" in heard, "3" in heard, str(MOST_HEARD + 2) in heard) == (False, True, True)


def test_the_name_follows_from_the_key_alone():
    """H11: whatever the text says by then."""
    other = replace(STARTED, text="other words", warning=True)
    assert event(STARTED, "vision-train", "a")["metadata"] == event(other, "vision-train", "b")["metadata"]


def _terminating(kube, name):
    return kube.api.get(f"/api/v1/namespaces/{name}")["status"]["phase"] == "Terminating"
