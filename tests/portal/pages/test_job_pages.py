"""Jobs in the portal (A9, J1): the list, one job with its objects and pods, the form, the deletion; none of others."""

from __future__ import annotations

from collections.abc import Iterator
from html import unescape
from re import findall

import pytest
import yaml

from tests.support import repos
from tests.support.portal import Site

TEXT = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
---
apiVersion: batch/v1
kind: Job
metadata: {name: finetune}
spec:
  template:
    spec:
      containers: [{name: main, image: example.com/train, resources: {limits: {nvidia.com/gpu: 8}}}]
"""


def workload(slice_: str, gpr: str, text: str = TEXT) -> str:
    spec = {"slice": slice_, "gpr": gpr, "manifests": [*yaml.safe_load_all(text)]}
    head = {"apiVersion": "egs.dev/v1alpha1", "kind": "Workload", "metadata": {"name": gpr}}
    return yaml.safe_dump({**head, "spec": spec})


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """vision runs a job and has one that waits; nlp has one that no member of vision may see."""
    files = {
        "slices/vision/workloads/train.yaml": workload("vision", "train"),
        "slices/vision/workloads/later.yaml": workload("vision", "later"),
        "slices/nlp/workloads/secret.yaml": workload(
            "nlp", "secret", TEXT.replace("settings", "hidden-settings")
        ),
    }
    made = Site(tmp_path_factory.mktemp("site"), files)
    made.settle()
    made.file("vision/train", nodes=1, duration="6h", clusters=["east"])
    made.file("nlp/secret", nodes=1, duration="6h", clusters=["east"])
    made.settle()
    made.pass_time(10)
    yield made
    made.close()


def page(site: Site, path: str, key: str = "bo-editor", status: int = 200) -> str:
    answer = site.client(key).get(path, headers={"Accept": "text/html"})
    assert answer.status_code == status, answer.text
    return unescape(answer.text)


def sent(site: Site, path: str, status: int, **form: str) -> str:
    answer = site.client("bo-editor").post(
        path, data=form, headers={"Accept": "text/html"}, follow_redirects=False
    )
    assert answer.status_code == status, unescape(answer.text)
    return answer.headers["location"] if status == 303 else unescape(answer.text)


def test_the_list_has_what_the_caller_may_see(site: Site) -> None:
    whole = page(site, "/jobs")
    assert findall(r'href="/jobs/(\w+/\w+)"', whole) == ["vision/later", "vision/train"]
    assert "Running" in whole
    assert "ConfigMap, Job" in whole
    assert "nlp" not in whole.replace("example.com", "")
    assert findall(r'href="/jobs/(\w+/\w+)"', page(site, "/jobs?phase=Running")) == ["vision/train"]
    assert "0 of 2 jobs match" in page(site, "/jobs?q=nothing")
    assert "No job was filed" in page(site, "/jobs", "eve-editor")
    assert "/jobs/nlp/secret" in page(site, "/jobs", "ada-owner")


def test_one_job_shows_where_it_runs_and_its_objects(site: Site) -> None:
    whole = page(site, "/jobs/vision/train")
    for part in (
        "The lease ends",
        "finetune",
        "settings",
        "Asking the cluster for pods",
        "egs describe job vision/train",
    ):
        assert part in whole
    assert "None of its objects" not in whole
    measured = page(site, "/jobs/vision/train?values=now")
    assert 'data-label="GPUs" class="num">8<' in measured
    waits = page(site, "/jobs/vision/later")
    assert "there is none of this name" in waits
    page(site, "/jobs/nlp/secret", status=404)
    assert "Delete the job" in whole
    assert "Delete the job" not in page(site, "/jobs/vision/train", "bo-viewer")


def test_a_request_and_a_workspace_lead_to_their_jobs(site: Site) -> None:
    whole = page(site, "/requests/vision/train")
    assert 'href="/jobs/vision/train"' in whole
    assert 'href="/jobs/new?gpr=vision%2Ftrain"' in whole
    assert "/jobs?workspace=vision" in page(site, "/workspaces/vision")


def test_a_job_is_checked_filed_once_and_deleted(site: Site) -> None:
    empty = page(site, "/jobs/new?gpr=vision/train")
    assert '<option value="vision/train" selected>' in empty
    assert "nlp/secret" not in empty
    form = {
        "key": "0" * 32,
        "name": "tune",
        "slice": "vision",
        "manifests": TEXT.replace("\n", "\r\n"),
        "nodes": "1",
    }
    before = repos.tip(site.repo)
    tried = sent(site, "/jobs/new", 200, **form, duration="1h", gpus="8", **{"try": "yes"})
    assert "These files would be committed" in tried
    assert "kind: GPR" in tried
    refused = sent(site, "/jobs/new", 422, **{**form, "manifests": "a: [b <script>"}, duration="1h")
    assert "not YAML" in refused
    assert "a: [b <script>" in refused, "what was typed stays"
    assert repos.tip(site.repo) == before
    place = sent(site, "/jobs/new", 303, **form, duration="1h", gpus="8")
    assert place.startswith("/jobs/vision/tune?")
    filed = repos.tip(site.repo)
    assert sent(site, "/jobs/new", 303, **form, duration="1h", gpus="8") == place
    assert repos.tip(site.repo) == filed
    again = sent(site, "/jobs/new", 409, **{**form, "name": "other"}, duration="1h")
    assert "a workload was filed with this form already" in again
    on = sent(site, "/jobs/new", 303, **{**form, "key": "1" * 32, "name": "on-train", "gpr": "vision/train"})
    assert on.startswith("/jobs/vision/on-train?")
    site.settle()
    gone = sent(site, "/jobs/vision/tune/delete", 303, key="2" * 32)
    assert gone.startswith("/jobs?")
    assert "The job is deleted" in page(site, gone)
    assert site.main("slices/vision/workloads/tune.yaml") is None
    sent(site, "/jobs/vision/tune/delete", 404, key="3" * 32)
    sent(site, "/jobs/nlp/secret/delete", 404, key="4" * 32)
