"""Whatever goes wrong with one node, pod or namespace while a cluster is driven harms nobody else (issue 3 §2)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.clusters.kubernetes.api import api_client as api_module
from reconciler.clusters.kubernetes.driver import KubernetesCluster
from reconciler.clusters.kubernetes.names import EXIT, LEASE, SLICE, STAMP
from reconciler.clusters.kubernetes.nodes.node_marks import Marks, marks_of
from reconciler.model.cluster_port import Busy, Done, Refused, SliceTerms
from schemas.errors import Fault
from tests.reconciler.clusters.kubernetes.living import (
    HOME,
    MINUTE,
    NODES,
    OBSERVED,
    SPEECH,
    TERMS,
    VISION,
    A,
    B,
    h100,
)
from tests.reconciler.clusters.kubernetes.tenants import FIRST, NOW, OFFERED, namespace, pod
from tests.reconciler.clusters.rig import placed
from tests.support.faulty import Canned, lost
from tests.support.kube import eventually, gpu_node

LONGER = replace(VISION, end=VISION.end + MINUTE)


# --- a node that others write, too ---


def test_a_node_that_changes_once_is_written_all_the_same(site):
    site.wire.rule("PATCH", f"{NODES}/{A}", times=2, before=lambda: site.touch(A))
    assert site.driver.add(A, VISION, FIRST, NOW) == Done()


def test_a_node_that_never_rests_is_refused_and_others_go_on(site):
    site.wire.rule("PATCH", f"{NODES}/{A}", before=lambda: site.touch(A))
    answer = site.driver.add(A, VISION, FIRST, NOW)
    assert isinstance(answer, Refused)
    assert (answer.reason, "h100-1 changed during 5 writes" in answer.message) == ("NodeContended", True)
    assert site.driver.add(B, SPEECH, FIRST, NOW) == Done()


@pytest.mark.parametrize(
    ("call", "want"),
    [
        pytest.param(lambda d: d.add(A, LONGER, FIRST, NOW), "NodeGone", id="add"),
        pytest.param(lambda d: d.isolate(A, "Xid79", FIRST, NOW), "NodeGone", id="isolate"),
        pytest.param(lambda d: d.evict(A, VISION.uid, NOW, FIRST, NOW), "NodeGone", id="evict"),
        pytest.param(lambda d: d.remove(A, VISION.uid, FIRST, NOW), Done(), id="remove"),
    ],
)
def test_a_node_deleted_under_a_write(site, call, want):
    """What is gone serves nobody."""
    site.driver.add(A, VISION, FIRST, NOW)
    site.wire.rule("PATCH", NODES, times=1, before=lambda: site.plane.api.delete(f"{NODES}/{A}"))
    answer = call(site.driver)
    assert getattr(answer, "reason", answer) == want


def test_a_node_deleted_under_its_checks_fails_them(site):
    assert isinstance(site.driver.check(A, "pre", VISION, FIRST, NOW), Busy)
    site.plane.api.delete(f"{NODES}/{A}")
    eventually(lambda: A not in site.driver._nodes.items(), "it is gone")
    results = site.driver.check(A, "pre", VISION, FIRST, NOW + MINUTE)
    assert isinstance(results, tuple)
    assert not any(result.passed for result in results)


# --- answers that never came ---


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda d: d.add(A, VISION, FIRST, NOW), id="add"),
        pytest.param(lambda d: d.isolate(A, "Xid79", FIRST, NOW), id="isolate"),
        pytest.param(lambda d: d.ensure_slice(TERMS, FIRST, NOW), id="ensure_slice"),
        pytest.param(lambda d: d.ensure_fleet(FIRST, NOW), id="ensure_fleet"),
    ],
)
def test_a_lost_answer_is_a_fault_and_a_repeat_settles_it(site, call):
    """Each first write of its kind was done although nobody heard of it."""
    rules = [site.wire.rule(method, "", times=1, after=lost) for method in ("PATCH", "POST", "PUT")]
    told: list[object] = []
    for _ in range(4):
        told.append(answered(call, site.driver))
        if told[-1] == Done():
            break
    assert told[-1] == Done()
    assert {getattr(fault, "reason", "") for fault in told[:-1]} == {"ClusterUnreachable"}
    assert all("no answer in time" in str(fault) for fault in told[:-1])
    assert any(rule.met for rule in rules)


def answered(call, driver: KubernetesCluster) -> object:
    """Its answer, or the fault that it met."""
    try:
        return call(driver)
    except Fault as fault:
        return fault


def test_a_lost_answer_to_an_eviction_asks_no_pod_twice(site):
    site.driver.ensure_slice(TERMS, FIRST, NOW)
    space = "/api/v1/namespaces/speech"
    eventually(lambda: site.plane.api.find(f"{space}/serviceaccounts/default"), "an account for pods")
    site.driver.add(A, SPEECH, FIRST, NOW)
    site.plane.api.create(f"{space}/pods", pod("train", 8, nodeName=A, **placed("speech")))
    eventually(lambda: site.driver._gpu_pods(A), "the pod")
    rule = site.wire.rule("POST", "/eviction", times=1, after=lost)
    with pytest.raises(Fault):
        site.driver.evict(A, SPEECH.uid, NOW + MINUTE, FIRST, NOW)
    eventually(lambda: site.driver._gpu_pods(A)[0].ends, "it was told to stop")
    assert site.driver.evict(A, SPEECH.uid, NOW + MINUTE, FIRST, NOW) == Done()
    assert rule.met == 1


def test_an_eviction_that_is_denied_stops_neither_the_others_nor_other_nodes(site):
    """Somebody's webhook may say no to one pod."""
    site.driver.ensure_slice(TERMS, FIRST, NOW)
    space = "/api/v1/namespaces/speech"
    eventually(lambda: site.plane.api.find(f"{space}/serviceaccounts/default"), "an account for pods")
    site.driver.add(A, SPEECH, FIRST, NOW)
    for name in ("one", "two"):
        site.plane.api.create(f"{space}/pods", pod(name, 4, nodeName=A, **placed("speech")))
    eventually(lambda: len(site.driver._gpu_pods(A)) == 2, "the pods")
    site.wire.rule("POST", "/one/eviction", instead=Canned.refusal(403, "admission webhook x denied it"))
    answer = site.driver.evict(A, SPEECH.uid, NOW + MINUTE, FIRST, NOW)
    assert isinstance(answer, Refused)
    assert "admission webhook x denied it" in answer.message
    two = site.plane.api.get(f"{space}/pods/two")
    assert two["metadata"].get("deletionTimestamp")


def test_a_watch_that_is_silent_makes_the_cluster_unreachable(site, monkeypatch):
    """The server answers, and yet what we know grows old: nothing new starts there."""
    later = api_module.monotonic_s() + 600
    monkeypatch.setattr("reconciler.clusters.kubernetes.api.informer.monotonic_s", lambda: later)
    with pytest.raises(Fault) as caught:
        site.driver.observe(NOW)
    assert caught.value.reason == "ClusterUnreachable"
    assert "a watch has been silent for" in str(caught.value)


# --- namespaces ---


def test_a_namespace_stuck_in_terminating_says_why_and_others_go_on(site):
    meta = {"finalizers": ["example.com/keeps"], "annotations": OFFERED}
    namespace(site.plane, "stuck", **meta)
    eventually(lambda: site.driver._slices.slices._spaces.find("stuck"), "the namespace")
    site.plane.api.delete("/api/v1/namespaces/stuck")
    eventually(lambda: site.driver._slices.slices._spaces.find("stuck").is_leaving, "it is leaving")
    answer = site.driver.ensure_slice(SliceTerms("odd", ("stuck",)), FIRST, NOW)
    others = site.driver.ensure_slice(TERMS, FIRST, NOW)
    site.plane.api.merge("/api/v1/namespaces/stuck", {"metadata": {"finalizers": None}})
    assert isinstance(answer, Busy)
    assert "namespace stuck is Terminating: " in answer.message
    assert "finalizer example.com/keeps" in answer.message
    assert others == Done()


# --- hostile objects ---


@pytest.mark.parametrize(
    "notes",
    [
        pytest.param({LEASE: '{"uid": '}, id="a lease that is no JSON"),
        pytest.param({LEASE: "[" * 100_000}, id="a lease that is bottomless"),
        pytest.param({LEASE: '["uid"]'}, id="a lease that is a list"),
        pytest.param(
            {LEASE: '{"uid": "u", "request": "a/b", "slice": "A_B!", "end": "2026-11-21T09:00:00Z"}'},
            id="a slice that is no name",
        ),
        pytest.param(
            {LEASE: '{"uid": "u", "request": "a/b", "slice": "a", "end": 5}'}, id="an end that is a number"
        ),
        pytest.param({STAMP: "9" * 5000 + ".1"}, id="a stamp of 5000 digits"),
        pytest.param({EXIT: "9999-99-99"}, id="an exit that is no time"),
        pytest.param({EXIT: "2026-11-21T09:00:00Z"}, id="an exit of nobody"),
        pytest.param({"x": "y" * 200_000}, id="a gigantic annotation"),
    ],
)
def test_marks_that_somebody_made_unreadable_are_none(kube, notes):
    item = h100(A)
    item["metadata"]["annotations"] = notes
    kube.api.create(NODES, item)
    namespace(kube, "egs-system")
    driver = KubernetesCluster("east", OBSERVED, kube.connect(), HOME)
    try:
        assert marks_of(driver._known().nodes[A]) == Marks()
        assert driver.observe(NOW).nodes[A].lease is None
        assert driver.add(A, VISION, FIRST, NOW) == Done()
        assert driver.observe(NOW).nodes[A].lease == VISION
    finally:
        driver.close()


def test_labels_that_look_like_ours_on_foreign_nodes_are_left_alone(kube):
    kube.api.create(NODES, gpu_node("foreign", **{SLICE.replace("/", "__"): "vision"}))
    kube.api.create(NODES, h100(A))
    namespace(kube, "egs-system")
    driver = KubernetesCluster("east", OBSERVED, kube.connect(), HOME)
    try:
        before = kube.api.get(f"{NODES}/foreign")["metadata"]["labels"]
        view = driver.observe(NOW)
        assert "foreign" not in view.nodes
        driver.ensure_fleet(FIRST, NOW)
        assert kube.api.get(f"{NODES}/foreign")["metadata"]["labels"] == before
    finally:
        driver.close()
