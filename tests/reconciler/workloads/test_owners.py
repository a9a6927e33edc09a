"""From pods to workloads and models, on objects as clusters give them (H1): `objects/` has one file for each kind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.clusters.kubernetes.workloads.pod_objects import read_owner, read_pod
from reconciler.model.pod_port import OwnerObject, OwnerRef, Pod, PodsSeen, unread_owners
from reconciler.workloads.owners import MOST_STEPS, workload_of
from reconciler.workloads.workload import Homes, Workload, workloads_in
from schemas.documents.gpr import ModelInfo

FOLDER = Path(__file__).parent / "objects"
FILES = sorted(FOLDER.glob("*.yaml"))
HOMES = Homes({("east", "vision-train"): "vision"}, {})


def seen_in(content: dict[str, Any]) -> PodsSeen:
    owners = [read_owner(item) for item in content.get("owners") or ()]
    pods = tuple(read_pod(item, "east") for item in content["pods"])
    # As a source reads them: a pod that owns others is an owner too.
    owners += [read_owner({"kind": "Pod", "apiVersion": "v1", **item}) for item in content["pods"]]
    return PodsSeen(pods, {owner.ref.uid: owner for owner in owners})


def only(seen: PodsSeen, homes: Homes = HOMES) -> Workload:
    (found,) = workloads_in({"east": seen}, homes)
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_pod_belongs_to_the_workload_that_people_made(file: Path) -> None:
    content = yaml.safe_load(file.read_text())
    want, found = content["want"], only(seen_in(content))
    assert (found.key.kind, found.key.name, found.via) == (want["kind"], want["name"], want["via"])
    assert found.slice == "vision"
    assert len(found.pods) == len(content["pods"])
    model = found.model
    assert (model.name and model.name.value) == want.get("model")
    assert (model.name and model.name.source) == want.get("modelSource")
    assert (model.framework and model.framework.value) == want.get("framework")
    if "parameters" in want:
        assert {name: said.value for name, said in model.parameters.items()} == want["parameters"]
    shown = repr(model)
    assert "hf_do_not_show" not in shown
    assert "secret" not in shown


def test_every_kind_of_the_promise_has_an_object() -> None:
    kinds = {yaml.safe_load(file.read_text())["want"]["kind"] for file in FILES}
    assert kinds >= {
        *("Job", "CronJob", "Deployment", "StatefulSet", "JobSet", "LeaderWorkerSet", "InferenceService"),
        *("RayService", "RayJob", "PyTorchJob", "TrainJob", "VolcanoJob", "Pod"),
    }


def test_the_request_says_first_which_model_it_is() -> None:
    seen = seen_in(yaml.safe_load((FOLDER / "leaderworkerset.yaml").read_text()))
    asked = ModelInfo(name="ours", framework="custom", parameters={"lora": "true", "tensorParallel": "2"})
    model = only(seen, Homes(HOMES.slices, {"vision": asked})).model
    assert model.name is not None
    assert (model.name.value, model.name.source) == ("ours", "request")
    assert model.parameters["tensorParallel"].source == "request"
    assert model.parameters["maxModelLength"].source == "--context-length"


def test_owners_in_a_circle_end() -> None:
    one = OwnerRef("x", "A", "a", "1")
    two = OwnerRef("x", "B", "b", "2")
    owners = {"1": OwnerObject(one, "n", (two,)), "2": OwnerObject(two, "n", (one,))}
    assert workload_of(Pod("east", "n", "p", owners=(one,)), owners).key.kind == "B"
    tower = {
        str(i): OwnerObject(
            OwnerRef("x", "K", str(i), str(i)), "n", (OwnerRef("x", "K", str(i + 1), str(i + 1)),)
        )
        for i in range(99)
    }
    assert workload_of(Pod("east", "n", "p", owners=(OwnerRef("x", "K", "0", "0"),)), tower).key.name == str(
        MOST_STEPS - 1
    )


def test_a_source_reads_what_is_named_and_unread() -> None:
    seen = seen_in(yaml.safe_load((FOLDER / "jobset_unread.yaml").read_text()))
    assert [ref.name for _, ref in unread_owners(seen.pods, seen.owners)] == ["network-jobset-leader-0"]


def test_pods_of_foreign_namespaces_and_without_gpus_are_no_workloads() -> None:
    seen = seen_in(yaml.safe_load((FOLDER / "bare_pod.yaml").read_text()))
    assert workloads_in({"east": seen}, Homes({}, {})) == ()
    assert workloads_in({"west": seen}, HOMES) == ()
    without = replace(seen, pods=tuple(replace(pod, gpus=0) for pod in seen.pods))
    assert workloads_in({"east": without}, HOMES) == ()


def test_an_id_is_the_same_everywhere_and_differs_between_namespaces() -> None:
    seen = seen_in(yaml.safe_load((FOLDER / "bare_pod.yaml").read_text()))
    key = only(seen).key
    assert key.id == "wl-" + key.id[3:]
    assert len(key.id) == 15
    assert replace(key, namespace="other").id != key.id
