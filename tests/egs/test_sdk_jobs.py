"""Workloads through the SDK (A9, J1, K1): filed with their request, listed, deleted; also under the vendor's names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from egs import exceptions
from tests.support.portal import KEYS, Site
from tests.support.sdk import FACES

TEXT = """\
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: example.com/train}]}}}
"""
JOB = yaml.safe_load(TEXT)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    bound = {"cluster": "east", "default": "small", "templates": ["small"]}
    head = {"apiVersion": "egs.dev/v1alpha1", "kind": "GPRTemplateBinding", "metadata": {"name": "vision"}}
    binding = yaml.safe_dump({**head, "spec": {"clusters": [bound]}})
    made = Site(tmp_path_factory.mktemp("site"), {"bindings/vision.yaml": binding})
    made.settle()
    yield made
    made.close()


@pytest.fixture(scope="module")
def url(site: Site) -> Iterator[str]:
    with site.server() as address:
        yield address


@pytest.fixture(params=FACES)
def face(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def do(face: str, url: str) -> Any:
    call = FACES[face]
    session = call("authenticate", url, KEYS["bo-editor"])
    return lambda name, *args, **kwargs: call(name, *args, authenticated_session=session, **kwargs)


@pytest.fixture
def own(face: str) -> str:
    """A name for what this face files."""
    return face.replace(".", "-")


def test_a_job_is_deployed_with_its_request(do: Any, own: str, site: Site, tmp_path: Path) -> None:
    file = tmp_path / "train.yaml"
    file.write_text(TEXT)
    terms = {"node_count": 1, "gpu_per_node_count": 8, "exit_duration": "1h", "request_name": "Try"}
    tried = do("deploy_job", own, "vision", file, dry_run=True, **terms)
    assert (tried.change.way, [each["kind"] for each in yaml.safe_load_all(tried.text)]) == (
        "",
        ["GPR", "Workload"],
    )
    done = do("deploy_job", own, "vision", file, **terms)
    assert (done.name, done.request_name, done.change.way) == (f"vision/{own}", f"vision/{own}", "pushed")
    site.settle()
    assert do("gpu_request_status", done.request_id).request_id == done.request_id
    more = do("deploy_job", f"{own}-more", "vision", JOB, request_id=done.request_id, namespace="vision")
    assert more.request_id == done.request_id
    names = [job.name for job in do("jobs", "vision")]
    assert {own, f"{own}-more"} <= set(names)
    site.settle()
    found = do("job", done.name)
    assert (found.workspace_name, found.request_name, found.phase) == ("vision", own, "Pending")
    assert [(each.kind, each.name) for each in found.objects] == [("Job", "train")]
    assert do("delete_job", done.name).way == "pushed"
    with pytest.raises(exceptions.ResourceNotFound):
        do("delete_job", done.name)


def test_arguments_are_refused_before_anything_is_sent(do: Any) -> None:
    for wrong in ({"nodes": 1}, {"node_count": "1"}):
        with pytest.raises(TypeError):
            do("deploy_job", "a", "vision", [JOB], **wrong)
    with pytest.raises(TypeError, match="manifests"):
        do("deploy_job", "a", "vision", 3)
    with pytest.raises(exceptions.BadParameters, match="gprId"):
        do("deploy_job", "a", "vision", [JOB], request_id="vision/a", node_count=1)


def test_the_vendors_names(do: Any, own: str, site: Site) -> None:
    own = f"{own}-placed"
    name = do("create_workload_placement_from_manifest", "vision", own, ["east"], TEXT)
    assert (name, name.change.way) == (f"vision/{own}", "pushed")
    filed = yaml.safe_load(site.main(f"slices/vision/gprs/{own}.yaml") or "")["spec"]
    assert (filed["template"], filed["clusters"]) == ("small", ["east"])
    assert own in [job.name for job in do("list_workload_placements")]
    assert own in [job.name for job in do("list_workload_placements_by_workspace", "vision")]
    assert do("get_workload_placement", own) == do("get_workload_placement", name)
    assert do("delete_workload_placement", own).way == "pushed"
    with pytest.raises(exceptions.ResourceNotFound, match="no workload none"):
        do("get_workload_placement", "none")
