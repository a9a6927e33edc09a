"""What every cluster driver must do with workloads (A9, J1): simulated, and with real Jobs and Deployments."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from reconciler.model.cluster_port import Busy, Done, LeaseRef, Refused, Stamp
from reconciler.model.workload_port import (
    PlacedWorkload,
    WorkloadObject,
    WorkloadRun,
    WorkloadTerms,
    in_order,
)
from schemas.status.workload_status import ObjectState
from tests.reconciler.clusters.rig import FIRST, NOW, Rig, placed
from tests.support.kube import eventually

A = "h100-1"
KEY = "vision/finetune"
LEASE = LeaseRef("gpr-00000001-aaaa", "vision/train", "vision", NOW + timedelta(hours=1))
RUN = WorkloadRun(LEASE.uid, NOW)
LOOK = timedelta(seconds=11)


def job(name: str = "train", gpus: int = 8, pods: int = 1) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "example.com/train",
        "resources": {"limits": {"nvidia.com/gpu": str(gpus)}},
    }
    pod = {"restartPolicy": "Never", "containers": [container], **placed("vision")}
    spec = {"parallelism": pods, "completions": pods, "template": {"spec": pod}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def settings(**data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": data}


def terms(*manifests: dict[str, Any], run: WorkloadRun = RUN, **more: Any) -> WorkloadTerms:
    objects = [WorkloadObject(m["kind"], m["metadata"]["name"], json.dumps(m)) for m in manifests]
    digest = f"sha256:{abs(hash(json.dumps(manifests)))}"
    return WorkloadTerms(KEY, "vision-train", run, digest, in_order(objects), **more)


class Hours:
    """Time goes on with each look: a driver may know objects as they were a moment ago."""

    def __init__(self) -> None:
        self.now = NOW

    def later(self) -> datetime:
        self.now += LOOK
        return self.now


def seen(rig: Rig, clock: Hours) -> PlacedWorkload | None:
    return rig.driver.observe(clock.later()).placed.get(KEY)


def states(rig: Rig, clock: Hours, *wanted: tuple[str, ObjectState]) -> PlacedWorkload:
    """The workload once its objects are in these states."""

    def look() -> PlacedWorkload | None:
        found = seen(rig, clock)
        have = () if found is None else tuple((each.id, each.state) for each in found.objects)
        return found if have == wanted else None

    found = eventually(look, f"{KEY} as {wanted}")
    assert found is not None
    return found


def test_objects_are_applied_in_order_and_shown_with_their_states(rig: Rig) -> None:
    """A9: a job that was deployed runs on the nodes of its request."""
    clock = Hours()
    assert rig.driver.add(A, LEASE, FIRST, NOW) == Done()
    wanted = terms(job(), settings(epochs="3"))
    assert rig.driver.run_workload(wanted, FIRST, clock.later()) == Done()
    found = states(rig, clock, ("ConfigMap/settings", ObjectState.READY), ("Job/train", ObjectState.RUNNING))
    assert (found.namespace, found.run, found.digest) == ("vision-train", RUN, wanted.digest)
    assert not found.differs(wanted)
    gpu = [w for w in rig.driver.observe(clock.now).workloads if w.gpus]
    assert [(w.slice, w.node, w.gpus) for w in gpu] == [("vision", A, 8)]


def test_a_second_application_changes_nothing(rig: Rig) -> None:
    """J1: any step may run twice."""
    clock, wanted = Hours(), terms(settings(epochs="3"))
    for _ in range(2):
        assert rig.driver.run_workload(wanted, FIRST, clock.later()) == Done()
    states(rig, clock, ("ConfigMap/settings", ObjectState.READY))


def test_objects_that_left_the_document_are_removed(rig: Rig) -> None:
    """J1: an edit of the document is the edit of what runs."""
    clock = Hours()
    rig.driver.add(A, LEASE, FIRST, NOW)
    rig.driver.run_workload(terms(job(), settings()), FIRST, clock.later())
    states(rig, clock, ("ConfigMap/settings", ObjectState.READY), ("Job/train", ObjectState.RUNNING))
    wanted = terms(settings(epochs="4"))
    found = seen(rig, clock)
    assert found is not None
    assert found.differs(wanted)
    assert rig.driver.run_workload(wanted, FIRST, clock.later()) == Done()
    states(rig, clock, ("ConfigMap/settings", ObjectState.READY))
    eventually(lambda: not rig.driver.observe(clock.later()).workloads, "the end of its pods")


def test_at_the_end_nothing_of_it_is_left(rig: Rig) -> None:
    """J1: a workload lives as long as the lease."""
    clock = Hours()
    rig.driver.add(A, LEASE, FIRST, NOW)
    rig.driver.run_workload(terms(job(), settings()), FIRST, clock.later())
    assert rig.driver.end_workload(KEY, FIRST, clock.later()) == Done()
    eventually(lambda: not rig.driver.observe(clock.later()).workloads, "the end of its pods")
    assert seen(rig, clock) is None
    assert rig.driver.end_workload(KEY, FIRST, clock.later()) == Done(), "any number of times"


def test_another_run_waits_for_the_end_of_the_last_one(rig: Rig) -> None:
    """J1: a request that starts anew runs its workload anew."""
    clock = Hours()
    again = WorkloadRun(LEASE.uid, NOW + timedelta(hours=2))
    rig.driver.run_workload(terms(settings()), FIRST, clock.later())
    assert isinstance(rig.driver.run_workload(terms(settings(), run=again), FIRST, clock.later()), Busy)
    rig.driver.end_workload(KEY, FIRST, clock.later())
    assert rig.driver.run_workload(terms(settings(), run=again), FIRST, clock.later()) == Done()
    found = seen(rig, clock)
    assert found is not None
    assert found.run == again


def test_an_object_that_has_ended_is_not_applied_again(rig: Rig) -> None:
    """A Job that its cluster removed after it succeeded does not start over."""
    clock = Hours()
    rig.driver.add(A, LEASE, FIRST, NOW)
    wanted = terms(job(), settings(), ended=("Job/train",))
    assert rig.driver.run_workload(wanted, FIRST, clock.later()) == Done()
    found = states(rig, clock, ("ConfigMap/settings", ObjectState.READY), ("Job/train", ObjectState.MISSING))
    assert not found.differs(wanted)
    assert not rig.driver.observe(clock.later()).workloads


def test_what_others_delete_is_missing_and_comes_back(rig: Rig) -> None:
    """J1: drift of a workload is shown, and put right."""
    clock, wanted = Hours(), terms(job(gpus=0))
    rig.driver.run_workload(wanted, FIRST, clock.later())
    states(rig, clock, ("Job/train", ObjectState.RUNNING))
    rig.withdraw("vision-train", "train", clock.later())
    found = states(rig, clock, ("Job/train", ObjectState.MISSING))
    assert found.differs(wanted)
    clock.now += timedelta(minutes=1)
    assert rig.driver.run_workload(wanted, FIRST, clock.later()) == Done()
    states(rig, clock, ("Job/train", ObjectState.RUNNING))


def test_an_older_controller_applies_and_removes_nothing(rig: Rig) -> None:
    """A paused old controller does no harm."""
    clock, newer = Hours(), Stamp(2, 1)
    rig.driver.run_workload(terms(settings()), newer, clock.later())
    for answer in (
        rig.driver.run_workload(terms(settings(epochs="9")), FIRST, clock.later()),
        rig.driver.end_workload(KEY, FIRST, clock.later()),
    ):
        assert isinstance(answer, Refused)
        assert answer.reason == "StaleStamp"
    rig.driver.end_workload(KEY, newer, clock.later())
    answer = rig.driver.run_workload(terms(settings()), FIRST, clock.later())
    assert isinstance(answer, Refused), "not even when nothing is left of it"


def test_it_survives_a_restart_of_the_controller(rig: Rig) -> None:
    """What was applied is known to the next process, and can be removed by it."""
    clock, wanted = Hours(), terms(job(gpus=0), settings())
    rig.driver.run_workload(wanted, FIRST, clock.later())
    rig.restart()
    found = states(rig, clock, ("ConfigMap/settings", ObjectState.READY), ("Job/train", ObjectState.RUNNING))
    assert not found.differs(wanted)
    assert rig.driver.end_workload(KEY, FIRST, clock.later()) == Done()
    assert seen(rig, clock) is None


def test_a_namespace_of_another_slice_is_not_reached(rig: Rig) -> None:
    """B10, C6: a workload of one slice does nothing in another's namespace."""
    clock = Hours()
    there = terms(settings())
    elsewhere = WorkloadTerms(KEY, "kube-system", RUN, there.digest, there.objects)
    answer = rig.driver.run_workload(elsewhere, FIRST, clock.later())
    assert isinstance(answer, Refused)
