"""A node is free when nothing of its lease can still run there, and never before (D7, D12). On the real API server."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from reconciler.clusters.kubernetes.driver import KubernetesCluster
from reconciler.clusters.kubernetes.names import FORCED
from reconciler.model.cluster_port import Answer, Busy, Done, SliceTerms
from schemas.documents.cluster import Exit
from tests.reconciler.clusters.kubernetes.test_driver import LEASE, MINUTE, NOW, SECOND, STAMP, Place, spec
from tests.reconciler.clusters.rig import placed
from tests.support.kube import eventually

END = NOW + MINUTE
POD = "/api/v1/namespaces/vision/pods/train-0"


@pytest.fixture
def place(kube):
    made = Place(kube)
    yield made
    for driver in made.opened:
        driver.close()


def leaving(place: Place, exit_: Exit, *finalizers: str) -> KubernetesCluster:
    """A node that serves a pod whose kubelet does not stop it, told to be left by `END`."""
    driver = place.open(spec("a", exit=exit_))
    driver.ensure_slice(SliceTerms("vision", ("vision",)), STAMP, NOW)
    driver.ensure_fleet(STAMP, NOW)
    driver.add("a", LEASE, STAMP, NOW)
    place.submit("train", 8, **placed("vision"))
    place.api.merge(POD, {"metadata": {"finalizers": list(finalizers)}})
    place.kubelets.hang("a", NOW, NOW + 60 * MINUTE)
    place.settle()
    first = driver.remove("a", LEASE.uid, STAMP, NOW)
    assert isinstance(first, Busy)
    assert first.until == END  # the notice
    return driver


def told(place: Place, driver: KubernetesCluster, now: datetime) -> Answer:
    """The cluster at rest, and then the call."""
    place.settle(now)
    return driver.remove("a", LEASE.uid, STAMP, now)


def deletes(place: Place) -> int | None:
    """The grace with which the pod is being deleted; None: it is gone."""
    found = place.api.find(POD)
    return None if found is None else found["metadata"].get("deletionGracePeriodSeconds")


def test_a_pod_that_stays_is_given_a_second_then_deleted_and_its_kubelet_gets_its_time(place):
    """A pod that is out of the API may run on for all of the grace it asked for: a kubelet is told before."""
    driver = leaving(place, Exit(settle=timedelta(minutes=3)))
    assert isinstance(told(place, driver, END), Busy)
    assert deletes(place) == 1
    forced = END + 2 * SECOND
    assert isinstance(told(place, driver, forced), Busy)
    assert deletes(place) is None
    assert told(place, driver, forced + MINUTE) == Busy(
        forced + 3 * MINUTE, "node a is draining: deleted pods may still run there until then"
    )
    assert driver.observe(NOW).nodes["a"].lease == LEASE
    assert told(place, driver, forced + 3 * MINUTE) == Done()
    assert driver.observe(NOW).nodes["a"].lease is None
    assert FORCED not in place.node("a")["metadata"]["annotations"]


def test_a_node_whose_kubelet_ends_the_pod_itself_is_free_at_once(place):
    """It takes a pod out of the API when no container of it is left."""
    driver = leaving(place, Exit(settle=timedelta(hours=1)))
    assert isinstance(told(place, driver, END), Busy)
    place.kubelets._hung.clear()
    assert told(place, driver, END + SECOND) == Done()


def test_a_new_controller_knows_that_pods_were_deleted(place):
    """The instant is on the node before the pod goes."""
    driver = leaving(place, Exit())
    told(place, driver, END)
    told(place, driver, END + 2 * SECOND)
    after = place.open(spec("a"))
    after.observe(NOW)
    assert isinstance(told(place, after, END + MINUTE), Busy)
    assert told(place, after, END + MINUTE + 2 * SECOND) == Done()


def test_where_the_manifest_says_so_a_pod_that_stays_is_waited_for(place):
    driver = leaving(place, Exit(force=False))
    for later in (0, 2, 600):
        assert isinstance(told(place, driver, END + later * SECOND), Busy)
    assert deletes(place) == 60
    assert driver.observe(NOW).nodes["a"].staying == ("vision/train-0 (its kubelet has not ended it)",)


def test_a_pod_that_a_finalizer_keeps_is_named_with_it_and_frees_the_node_when_it_goes(place):
    driver = leaving(place, Exit(), "example.com/upload")
    for later in (0, 2, 600):
        busy = told(place, driver, END + later * SECOND)
        assert isinstance(busy, Busy)
    who = "vision/train-0 (blocked by its finalizer example.com/upload)"
    assert who in busy.message
    assert driver.observe(NOW).nodes["a"].staying == (who,)
    place.api.merge(POD, {"metadata": {"finalizers": []}})
    assert told(place, driver, END + 602 * SECOND) == Done()


def test_a_pod_whose_kubelet_says_that_no_container_is_left_needs_no_more_time(place):
    """Only its object is still there: a kubelet that is slow to say so, or a finalizer, keeps nothing running."""
    driver = leaving(place, Exit(settle=timedelta(hours=1)), "example.com/upload")
    ended = {"name": "main", "image": "i", "imageID": "", "ready": False, "restartCount": 0}
    ended["state"] = {"terminated": {"exitCode": 0}}
    place.api.merge(f"{POD}/status", {"status": {"containerStatuses": [ended]}}, "strategic-merge-patch")
    eventually(lambda: driver._gpu_pods("a")[0].stopped, "the kubelet's word")
    assert isinstance(told(place, driver, END), Busy)
    place.api.merge(POD, {"metadata": {"finalizers": []}})
    assert told(place, driver, END + SECOND) == Done()


def runs(place: Place, state: str) -> None:
    """What the kubelet says of the pod's container."""
    shown = {"name": "main", "image": "i", "imageID": "", "ready": False, "restartCount": 0}
    shown["state"] = {"running": {}} if state == "running" else {"terminated": {"exitCode": 0}}
    place.api.merge(f"{POD}/status", {"status": {"containerStatuses": [shown]}}, "strategic-merge-patch")


@pytest.mark.parametrize("state", ["running", "terminated"])
def test_a_pod_that_others_deleted_without_grace_may_still_run(place, state):
    """Its kubelet had not ended it; one that it had ended keeps nothing."""
    driver = leaving(place, Exit())
    runs(place, state)
    place.api.delete("/apis/apps/v1/namespaces/vision/statefulsets/train")
    place.api.delete(POD, grace_s=0)
    eventually(lambda: not driver._gpu_pods("a"), "the pod is gone")
    answer = told(place, driver, END)
    if state == "terminated":
        assert answer == Done()
        return
    assert isinstance(answer, Busy)
    assert answer.until == END + MINUTE
    assert told(place, driver, END + MINUTE) == Done()
