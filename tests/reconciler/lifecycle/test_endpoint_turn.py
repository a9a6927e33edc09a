"""What becomes of an endpoint, with its request and in its clusters (J2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from reconciler.clusters.simulated.embedded import EmbeddedCluster
from reconciler.model.cluster_port import ClusterView
from reconciler.model.observation import Asked, Observation, Observed
from schemas.status.endpoint_status import EndpointPhase, EndpointStatus
from schemas.status.workload_status import ObjectState, WorkloadPhase
from tests.support.endpoints import document, version
from tests.support.world import World, at, cluster, gpr, gpr_path, slice_

PATH = "slices/a/endpoints/chat.yaml"
FIRST = "Deployment/chat-v1"
GATEWAY = {"name": "public", "namespace": "gateways"}
BOTH: dict[str, Any] = {"versions": [version("v1"), version("v2")], "weights": {"v1": 90, "v2": 10}}


@pytest.fixture
def world() -> World:
    """East needs no time before a start, and gives a minute's notice."""
    return World({"clusters/east.yaml": cluster(prepare="0d0h0m", notice="0d0h1m", gateway=GATEWAY)})


def state(world: World) -> EndpointStatus:
    """Its committed status, as a stranger reads it."""
    return world.facts().endpoints["a/chat"]


def pods(world: World, name: str = "east") -> list[str]:
    view = world.drivers[name].observe(world.now)
    return sorted(w.name for w in view.workloads if w.phase == "Running")


def routed(world: World) -> dict[str, int]:
    """Weights by version, as the status tells."""
    return {each.name: each.weight for each in state(world).versions}


def test_it_waits_serves_drains_before_the_strict_end_and_is_removed(world: World) -> None:
    world.commit({PATH: document(**BOTH, drain="2m", route={})})
    world.run(at(1))
    assert (state(world).phase, state(world).reason) == (EndpointPhase.PENDING, "RequestMissing")
    world.commit({gpr_path("a/x"): gpr("a", "x")})
    world.run(at(4))
    assert (state(world).phase, routed(world)) == (EndpointPhase.SERVING, {"v1": 90, "v2": 10})
    assert [each.ready for each in state(world).versions] == [1, 1]
    assert pods(world) == ["chat-v1-0", "chat-v2-0"]
    end = world.status("a/x").end_time
    assert end is not None
    world.run(end - (at(2) - at(0)))  # the notice is at one minute, the drain begins two before that
    assert (state(world).phase, routed(world)) == (EndpointPhase.DRAINING, {"v1": 0, "v2": 0})
    assert pods(world) == ["chat-v1-0", "chat-v2-0"], "running answers are finished"
    world.run(at(90))
    assert (state(world).phase, pods(world)) == (EndpointPhase.REMOVED, [])
    told = [line for line in world.told() if line.startswith("Endpoint")]
    assert told == ["EndpointServing", "EndpointDraining", "EndpointRemoved"]


def test_new_weights_wait_for_a_ready_replica(world: World) -> None:
    """Without a roll-out they come about at once, but never on a version that cannot answer."""
    world.commit({PATH: document(), gpr_path("a/x"): gpr("a", "x", gpusPerNode=8)})
    world.run(at(3))
    world.commit({PATH: document(versions=[version("v1"), version("v2")], weights={"v2": 100})})
    world.run(at(4))
    assert routed(world) == {"v1": 0, "v2": 100}
    assert state(world).rollout.before == {"v1": 100}
    assert "EndpointWeightsMoved" in world.told()


def test_one_failed_object_freezes_no_other_version(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Traffic leaves a version that failed, and all of it stops before the strict end."""
    files = {PATH: document(**BOTH, drain="2m"), gpr_path("a/x"): gpr("a", "x", gpusPerNode=8)}
    world.commit(files)
    world.run(at(4))
    look = EmbeddedCluster.observe

    def with_failure(cluster: EmbeddedCluster, now: datetime) -> ClusterView:
        view, (key,) = look(cluster, now), look(cluster, now).placed
        placed = view.placed[key]
        objects = [replace(o, state=ObjectState.FAILED) if o.id == FIRST else o for o in placed.objects]
        return replace(view, placed={key: replace(placed, objects=tuple(objects))})

    monkeypatch.setattr(EmbeddedCluster, "observe", with_failure)
    world.commit({PATH: document(**{**BOTH, "weights": {"v2": 100}}, drain="2m")})
    world.run(at(8))
    assert (state(world).run.phase, routed(world)) == (WorkloadPhase.FAILED, {"v1": 0, "v2": 100})
    end = world.status("a/x").end_time
    assert end is not None
    world.run(end - (at(2) - at(0)))
    assert (state(world).phase, routed(world)) == (EndpointPhase.DRAINING, {"v1": 0, "v2": 0})


def test_it_follows_its_request_to_another_cluster(world: World) -> None:
    world.commit(
        {
            "clusters/west.yaml": cluster("west", prepare="0d0h0m"),
            "slices/a/slice.yaml": slice_("a", ("east", "west")),
            PATH: document(),
            gpr_path("a/x"): gpr("a", "x", clusters=["east"], stopped=False),
        }
    )
    world.run(at(10))
    assert (pods(world), pods(world, "west")) == (["chat-v1-0"], [])
    world.commit({gpr_path("a/x"): gpr("a", "x", clusters=["east"], stopped=True)})
    world.run(at(20))
    assert state(world).phase is EndpointPhase.PENDING
    world.commit({gpr_path("a/x"): gpr("a", "x", clusters=["west"], stopped=False)})
    world.run(at(30))
    assert (pods(world), pods(world, "west")) == ([], ["chat-v1-0"])
    assert (state(world).phase, state(world).run.cluster) == (EndpointPhase.SERVING, "west")


def test_a_roll_out_is_observed_anew_in_another_run(world: World) -> None:
    """Its lease may end in the middle of a step."""
    slowly = {"rollout": {"step": 20, "interval": "5m", "bounds": {"errorRate": 0.02}}, **BOTH}
    request = {"gpusPerNode": 8, "clusters": ["east"]}
    first = document(**{**slowly, "weights": {"v1": 100}})
    world.commit({PATH: first, gpr_path("a/x"): gpr("a", "x", **request, stopped=False)})
    world.run(at(5))
    world.commit({PATH: document(**{**slowly, "weights": {"v2": 100}})})
    world.run(at(10))
    assert routed(world) == {"v1": 80, "v2": 20}
    world.commit({gpr_path("a/x"): gpr("a", "x", **request, stopped=True)})
    world.run(at(20))
    world.commit({gpr_path("a/x"): gpr("a", "x", **request, stopped=False)})
    world.run(at(30))
    found = state(world)
    assert (found.phase, found.rollout.state, routed(world)) == ("Serving", "Moving", {"v1": 80, "v2": 20})
    assert found.run.start_time is not None
    assert found.rollout.at >= found.run.start_time


def test_a_deleted_document_removes_its_objects_and_its_status(world: World) -> None:
    world.commit({PATH: document(), gpr_path("a/x"): gpr("a", "x")})
    world.run(at(5))
    world.commit({PATH: None})
    world.run(at(10))
    assert pods(world) == []
    assert world.text(PATH) is None


def test_a_workload_of_the_same_name_is_another_thing(world: World) -> None:
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "chat"},
        "spec": {"template": {"spec": {"containers": [{"name": "main", "image": "i"}]}}},
    }
    workload = document().replace("kind: Endpoint", "kind: Workload").partition("  versions:")[0]
    workload += f"  manifests: [{job}]\n".replace("'", '"')
    files = {PATH: document(), "slices/a/workloads/chat.yaml": workload, gpr_path("a/x"): gpr("a", "x")}
    world.commit(files)
    world.run(at(5))
    assert pods(world) == ["chat-0", "chat-v1-0"]


def test_another_process_knows_what_serves(world: World) -> None:
    world.commit({PATH: document(), gpr_path("a/x"): gpr("a", "x")})
    world.run(at(5))
    before = state(world)
    world.controller = world.start()
    world.run(at(6))
    assert state(world) == before


def test_a_version_that_breaks_its_bound_loses_its_traffic_again(world: World) -> None:
    """Main keeps what people wrote: the effective weights stand in the status and in the route."""
    seen: dict[str, Observation] = {}

    def watch(asked: Sequence[Asked], _: datetime) -> Observed:
        return {each.endpoint: dict(seen) for each in asked}

    prometheus = {"prometheus": {"url": "https://prometheus.example.com"}}
    east = cluster(prepare="0d0h0m", gateway=GATEWAY, metrics=prometheus)
    world.controller = world.start(watch=watch)
    slowly = {"rollout": {"step": 20, "interval": "5m", "bounds": {"errorRate": 0.02}}, "route": {}}
    both = {**slowly, "versions": BOTH["versions"]}
    first = document(**both, weights={"v1": 100})
    world.commit({"clusters/east.yaml": east, PATH: first, gpr_path("a/x"): gpr("a", "x", gpusPerNode=8)})
    world.run(at(5))
    world.commit({PATH: document(**both, weights={"v2": 100})})
    seen["v2"] = Observation(1000, 0.001)
    world.run(at(12))
    assert routed(world) == {"v1": 60, "v2": 40}
    assert (state(world).phase, state(world).reason) == (EndpointPhase.SERVING, "RolloutMoving")
    seen["v2"] = Observation(1000, 0.1)
    world.run(at(14))
    assert routed(world) == {"v1": 100, "v2": 0}
    assert (state(world).reason, world.told().count("EndpointWeightsReturned")) == ("RolloutReturned", 1)
    seen["v2"] = Observation(1000, 0.0)
    world.run(at(40))
    assert routed(world) == {"v1": 100, "v2": 0}
