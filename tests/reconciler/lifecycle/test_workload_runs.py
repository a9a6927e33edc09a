"""What becomes of a workload, with its request and in its clusters (A9, J1, D13)."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from schemas.status.workload_status import ObjectState, WorkloadPhase, WorkloadStatus
from tests.support.world import World, at, cluster, gpr, gpr_path, slice_

PATH = "slices/a/workloads/w.yaml"
REQUEST = {"slice": "a", "gpr": "x"}


def job(name: str = "train", lasts: str | None = None, gpus: int = 8) -> dict[str, Any]:
    notes = {} if lasts is None else {"annotations": {"egs.dev/simulated-duration": lasts}}
    container = {"name": "main", "image": "i", "resources": {"limits": {"nvidia.com/gpu": gpus}}}
    spec = {"template": {"spec": {"containers": [container]}}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, **notes}, "spec": spec}


def workload(*manifests: dict[str, Any], **spec: Any) -> str:
    told = {**REQUEST, "manifests": list(manifests), **spec}
    head = {"apiVersion": "egs.dev/v1alpha1", "kind": "Workload", "metadata": {"name": "w"}}
    return yaml.safe_dump({**head, "spec": told}, sort_keys=False)


@pytest.fixture
def world() -> World:
    """East needs no time before a start."""
    return World({"clusters/east.yaml": cluster(prepare="0d0h0m")})


def state(world: World) -> WorkloadStatus:
    """Its committed status, as a stranger reads it."""
    return world.facts().workloads["a/w"]


def states(world: World) -> list[tuple[str, ObjectState]]:
    return [(each.name, each.state) for each in state(world).objects]


def pods(world: World, name: str = "east") -> list[str]:
    view = world.drivers[name].observe(world.now)
    return sorted(w.name for w in view.workloads if w.phase == "Running")


def test_it_waits_for_its_request_runs_with_it_and_is_removed_after_it(world: World) -> None:
    world.commit({PATH: workload(job())})
    world.run(at(1))
    assert (state(world).phase, state(world).reason) == (WorkloadPhase.PENDING, "RequestMissing")
    world.commit({gpr_path("a/x"): gpr("a", "x")})
    world.run(at(3))
    assert state(world).phase is WorkloadPhase.RUNNING
    assert states(world) == [("train", ObjectState.RUNNING)]
    assert (state(world).cluster, pods(world)) == ("east", ["train-0"])
    world.run(at(90))
    assert (state(world).phase, state(world).reason) == (WorkloadPhase.REMOVED, "LeaseOver")
    assert pods(world) == []
    assert world.drivers["east"].observe(world.now).placed == {}
    told = [line for line in world.told() if line.startswith("Workload")]
    assert told == ["WorkloadRunning", "WorkloadRemoved"]


def test_a_job_that_ends_makes_it_succeed_and_it_stays_so(world: World) -> None:
    world.commit({PATH: workload(job(lasts="10m")), gpr_path("a/x"): gpr("a", "x")})
    world.run(at(20))
    assert state(world).phase is WorkloadPhase.SUCCEEDED
    world.run(at(90))
    assert state(world).phase is WorkloadPhase.SUCCEEDED
    assert "WorkloadSucceeded" in world.told()
    assert world.drivers["east"].observe(world.now).placed == {}


def test_an_edit_replaces_its_objects(world: World) -> None:
    world.commit({PATH: workload(job("one")), gpr_path("a/x"): gpr("a", "x")})
    world.run(at(5))
    assert pods(world) == ["one-0"]
    world.commit({PATH: workload(job("two"))})
    world.run(at(10))
    assert pods(world) == ["two-0"]
    assert states(world) == [("two", ObjectState.RUNNING)]


def test_a_deleted_document_removes_its_objects_and_its_status(world: World) -> None:
    world.commit({PATH: workload(job()), gpr_path("a/x"): gpr("a", "x")})
    world.run(at(5))
    world.commit({PATH: None})
    world.run(at(10))
    assert pods(world) == []
    assert world.text(PATH) is None


def test_a_broken_edit_leaves_what_runs(world: World) -> None:
    world.commit({PATH: workload(job()), gpr_path("a/x"): gpr("a", "x")})
    world.run(at(5))
    world.commit({PATH: "kind: Workload\n"})
    world.run(at(10))
    assert pods(world) == ["train-0"]


def test_it_comes_again_with_a_request_that_was_stopped_and_started(world: World) -> None:
    """D13."""
    world.commit({PATH: workload(job()), gpr_path("a/x"): gpr("a", "x", stopped=False)})
    world.run(at(10))
    first = state(world).start_time
    world.commit({gpr_path("a/x"): gpr("a", "x", stopped=True)})
    world.run(at(20))
    assert state(world).phase is WorkloadPhase.PENDING
    assert pods(world) == []
    world.commit({gpr_path("a/x"): gpr("a", "x", stopped=False)})
    world.run(at(30))
    assert state(world).phase is WorkloadPhase.RUNNING
    assert state(world).start_time != first
    assert pods(world) == ["train-0"]


def test_it_follows_its_request_to_another_cluster(world: World) -> None:
    world.commit(
        {
            "clusters/west.yaml": cluster("west", prepare="0d0h0m"),
            "slices/a/slice.yaml": slice_("a", ("east", "west")),
            PATH: workload(job()),
            gpr_path("a/x"): gpr("a", "x", clusters=["east"], stopped=False),
        }
    )
    world.run(at(10))
    assert (pods(world), pods(world, "west")) == (["train-0"], [])
    world.commit({gpr_path("a/x"): gpr("a", "x", clusters=["east"], stopped=True)})
    world.run(at(20))
    world.commit({gpr_path("a/x"): gpr("a", "x", clusters=["west"], stopped=False)})
    world.run(at(30))
    assert (pods(world), pods(world, "west")) == ([], ["train-0"])
    assert state(world).cluster == "west"


def test_what_others_take_away_comes_back(world: World) -> None:
    """J1: drift."""
    world.commit({PATH: workload(job()), gpr_path("a/x"): gpr("a", "x")})
    world.run(at(5))
    east = world.drivers["east"]
    east.withdraw("a", "train-0", world.now)
    world.run(at(10))
    assert pods(world) == ["train-0"]


def test_a_paused_slice_shows_what_is_missing_and_repairs_nothing(world: World) -> None:
    world.commit({PATH: workload(job()), gpr_path("a/x"): gpr("a", "x")})
    world.run(at(5))
    world.commit({"slices/a/slice.yaml": slice_("a", paused=True)})
    world.run(at(6))
    east = world.drivers["east"]
    east.withdraw("a", "train-0", world.now)
    world.run(at(10))
    assert pods(world) == []
    assert states(world) == [("train", ObjectState.MISSING)]


def test_two_workloads_may_share_a_request(world: World) -> None:
    other = workload(job("other", gpus=0)).replace("name: w\n", "name: v\n")
    files = {PATH: workload(job()), "slices/a/workloads/v.yaml": other, gpr_path("a/x"): gpr("a", "x")}
    world.commit(files)
    world.run(at(5))
    assert pods(world) == ["other-0", "train-0"]


def test_of_two_workloads_with_the_same_object_one_is_refused(world: World) -> None:
    other = workload(job()).replace("name: w\n", "name: v\n")
    files = {PATH: workload(job()), "slices/a/workloads/v.yaml": other, gpr_path("a/x"): gpr("a", "x")}
    world.commit(files)
    world.run(at(5))
    first, second = world.facts().workloads["a/v"], state(world)
    assert (first.phase, second.phase) == (WorkloadPhase.RUNNING, WorkloadPhase.FAILED)
    assert second.reason == "ObjectTaken"
    assert world.told().count("ActionRefused") == 1


def test_another_process_knows_what_runs(world: World) -> None:
    """A crash loses nothing: the status is read back, and nothing is applied twice."""
    world.commit({PATH: workload(job(lasts="10m")), gpr_path("a/x"): gpr("a", "x")})
    world.run(at(5))
    before = state(world)
    world.controller = world.start()
    world.run(at(6))
    assert state(world) == before
    world.run(at(30))
    assert state(world).phase is WorkloadPhase.SUCCEEDED
