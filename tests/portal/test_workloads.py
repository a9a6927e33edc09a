"""`POST workloads`, `DELETE workloads` (A9, J1, K1): request and workload in one change, or a refusal that says why."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.support import repos
from tests.support.portal import Site

API = "/api/v1/workloads"
OF_JSON = {"Content-Type": "application/json"}
TEXT = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {epochs: "3"}
---
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: example.com/train}]}}}
"""
OBJECTS = [*yaml.safe_load_all(TEXT)]
DETAILS = {"numberOfGPUNodes": 1, "numberOfGPUs": 8, "exitDuration": "1h"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("site"))
    made.settle()
    made.file("vision/mine", nodes=1, duration="4h", notBefore="2027-06-01T00:00:00Z")
    made.file("nlp/theirs", nodes=1, duration="4h")
    made.settle()
    yield made
    made.close()


def ask(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "sliceName": "vision", "manifests": OBJECTS, **more}


def changed_files(site: Site) -> list[str]:
    """Of the latest commit of main."""
    return repos.git(site.repo, "diff", "--name-only", "main~1", "main").split()


def spec(site: Site, path: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(site.main(path) or "")["spec"]
    return found


def test_request_and_workload_come_in_one_change_and_once_per_key(site: Site) -> None:
    client, key = site.client("bo-editor"), {"Idempotency-Key": "first"}
    body = ask("finetune", gprDetails={**DETAILS, "gprName": "Fine-tuning"})
    first = client.post(API, json=body, headers=key)
    assert first.status_code == 200, first.text
    done = first.json()
    assert (done["data"]["name"], done["data"]["gprName"]) == ("vision/finetune", "vision/finetune")
    request, workload = "slices/vision/gprs/finetune.yaml", "slices/vision/workloads/finetune.yaml"
    assert changed_files(site) == [request, workload]
    assert site.log()[0].endswith("Run vision/finetune")
    assert (spec(site, request)["displayName"], spec(site, request)["nodes"]) == ("Fine-tuning", 1)
    assert spec(site, workload) == {"slice": "vision", "gpr": "finetune", "manifests": OBJECTS}
    tip = repos.tip(site.repo)
    assert client.post(API, json=body, headers=key).json() == done
    assert repos.tip(site.repo) == tip
    site.settle()
    told = client.get("/api/v1/gpr", params={"gprId": done["data"]["gprId"]}).json()["data"]
    assert told["name"] == "vision/finetune", "the id is valid from the start"
    site.pass_time(10)
    rows = client.get("/api/v1/tables/jobs").json()["data"]["items"]
    assert [(row["name"], row["phase"]) for row in rows] == [("finetune", "Running")]


def test_a_request_that_exists_is_used_and_a_text_is_read(site: Site) -> None:
    client = site.client("bo-editor")
    body = {**ask("on-mine", gprId="vision/mine", namespace="vision"), "manifests": TEXT}
    done = client.post(API, json=body, headers={"Idempotency-Key": "second"})
    assert done.status_code == 200, done.text
    assert changed_files(site) == ["slices/vision/workloads/on-mine.yaml"]
    assert spec(site, changed_files(site)[0]) == {
        "slice": "vision",
        "gpr": "mine",
        "namespace": "vision",
        "manifests": OBJECTS,
    }
    site.commit({changed_files(site)[0]: None})
    again = client.post(API, json=body, headers={"Idempotency-Key": "second"})
    assert (again.status_code, again.json()) == (200, done.json()), "the first answer, whatever came since"


def test_the_bound_template_fills_what_is_left_out(site: Site) -> None:
    bound = {"cluster": "east", "default": "small", "templates": ["small"]}
    head = {"apiVersion": "egs.dev/v1alpha1", "kind": "GPRTemplateBinding", "metadata": {"name": "vision"}}
    path = "bindings/vision.yaml"
    assert "numberOfGPUNodes" in site.client("bo-editor").post(API, json=ask("bare")).json()["message"]
    site.commit({path: yaml.safe_dump({**head, "spec": {"clusters": [bound]}})})
    done = site.client("bo-editor").post(API, json=ask("bare", dryRun=True))
    site.commit({path: None})
    assert done.status_code == 200, done.text
    assert "template: small" in done.json()["data"]["text"]


def test_a_dry_run_gives_the_files_and_writes_nothing(site: Site) -> None:
    tip = repos.tip(site.repo)
    done = (
        site.client("bo-editor")
        .post(API, json=ask("dry", gprDetails={**DETAILS, "priority": 400}, dryRun=True))
        .json()
    )
    assert done["message"] == "priority 400 is above the maximum and was set to 300"
    found = [*yaml.safe_load_all(done["data"]["text"])]
    assert [each["kind"] for each in found] == ["GPR", "Workload"]
    assert done["data"].get("change") is None
    refused = site.client("bo-editor").post(
        API, json=ask("dry", gprDetails=DETAILS, dryRun=True, namespace="far")
    )
    assert (refused.status_code, "has no namespace far" in refused.text) == (422, True)
    assert repos.tip(site.repo) == tip


JOB = OBJECTS[1]


def new(**more: Any) -> dict[str, Any]:
    """With a new request."""
    return ask("a", gprDetails=DETAILS, **more)


REFUSED = [
    pytest.param(ask("mine", gprDetails=DETAILS), 409, "mine exists already", id="the name of a request"),
    pytest.param({**new(), "name": "Bad"}, 422, "not a valid name", id="no name"),
    pytest.param(new(gprId="vision/mine"), 422, "leave gprDetails", id="a new request and one that exists"),
    pytest.param(ask("a", gprId="vision/none"), 404, "no request", id="no such request"),
    pytest.param(ask("a", gprId="nlp/theirs"), 404, "no request", id="another workspace's request"),
    pytest.param({**new(), "sliceName": "nlp"}, 404, "workspace nlp", id="another workspace"),
    pytest.param(new(namespace="far"), 422, "no namespace far", id="a namespace that does not exist"),
    pytest.param({**new(), "manifests": [{**JOB, "kind": "Secret"}]}, 422, "Secret", id="a kind"),
    pytest.param({**new(), "manifests": "a: [b"}, 422, "not YAML", id="no YAML"),
    pytest.param({**new(), "manifests": [{**JOB, "x": "\ud800"}]}, 422, "U+D800", id="half a letter"),
    pytest.param(
        ask("a", gprDetails={**DETAILS, "numberOfGPUNodes": 99_999}), 422, "nodes", id="beyond the limits"
    ),
]


@pytest.mark.parametrize(("body", "status", "said"), REFUSED)
def test_what_is_refused_changes_nothing(site: Site, body: dict[str, Any], status: int, said: str) -> None:
    tip = repos.tip(site.repo)
    answer = site.client("bo-editor").post(API, content=json.dumps(body), headers=OF_JSON)
    assert answer.status_code == status, answer.text
    assert said in answer.json()["message"]
    assert repos.tip(site.repo) == tip


def test_a_workload_is_deleted_and_its_request_stays(site: Site) -> None:
    client = site.client("bo-editor")
    made = client.post(API, json=ask("gone", gprId="vision/mine"))
    assert made.status_code == 200, made.text
    taken = client.post(API, json=ask("gone", gprId="vision/mine")).json()
    assert taken["error"]["errorKey"] == "WorkloadAlreadyExists"
    first = client.request("DELETE", API, params={"name": "vision/gone"}, headers={"Idempotency-Key": "d"})
    assert first.status_code == 200, first.text
    assert site.main("slices/vision/gprs/mine.yaml") is not None
    again = client.request("DELETE", API, params={"name": "vision/gone"}, headers={"Idempotency-Key": "d"})
    assert (again.status_code, again.json()) == (200, first.json())
    assert client.request("DELETE", API, json={"name": "vision/gone"}).status_code == 404
    assert client.request("DELETE", API, json={"name": "gone"}).status_code == 422
