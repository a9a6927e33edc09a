"""A workload's document: what its objects need, and what it refers to (A9, J1)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from schemas.rules.check import check_files
from tests.support.world import cluster, gpr, project, slice_

PATH = "slices/a/workloads/w.yaml"
JOB: dict[str, Any] = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"}, "spec": {}}


def found(*manifests: dict[str, Any], **spec: Any) -> list[str]:
    """Rules that the workload breaks, as `rule` or `rule at line`."""
    told = {"slice": "a", "gpr": "x", "manifests": list(manifests or (JOB,)), **spec}
    document = {"apiVersion": "egs.dev/v1alpha1", "kind": "Workload", "metadata": {"name": "w"}, "spec": told}
    files = {
        "project.yaml": project(),
        "clusters/east.yaml": cluster(),
        "slices/a/slice.yaml": slice_("a"),
        "slices/a/gprs/x.yaml": gpr("a", "x"),
        PATH: json.dumps(document, indent=1),
    }
    result = check_files((path, 0o100644, text.encode()) for path, text in files.items())
    return [problem.rule for problem in result.problems if problem.file == PATH]


def test_a_workload_of_a_request_is_fine() -> None:
    assert found() == []
    assert found(JOB, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "train"}}) == []


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"kind": "Secret", "apiVersion": "v1"}, "KindNotAllowed"),
        ({"kind": "RoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1"}, "KindNotAllowed"),
        ({"kind": "Pod", "apiVersion": "v1"}, "KindNotAllowed"),
        ({"apiVersion": "v1"}, "BadManifest"),
        ({"apiVersion": "batch/../v1"}, "BadManifest"),
        ({"apiVersion": "batch/v1?x=y"}, "BadManifest"),
        ({"kind": 7}, "BadManifest"),
        ({"metadata": {}}, "BadManifest"),
        ({"metadata": {"name": "../x"}}, "BadManifest"),
        ({"metadata": {"generateName": "x-"}}, "BadManifest"),
        ({"metadata": {"name": "x", "namespace": "kube-system"}}, "BadManifest"),
        ({"metadata": {"name": "x", "finalizers": ["a/b"]}}, "BadManifest"),
        ({"metadata": {"name": "x", "ownerReferences": []}}, "BadManifest"),
        ({"metadata": {"name": "x", "labels": {"egs.dev/slice": "b"}}}, "BadManifest"),
        ({"metadata": {"name": "x", "labels": {"a": 1}}}, "BadManifest"),
        ({"status": {"succeeded": 1}}, "BadManifest"),
    ],
)
def test_what_an_object_may_not_be(change: dict[str, Any], rule: str) -> None:
    """B10: neither another namespace nor a path, and nothing that the controller sets."""
    assert set(found({**JOB, **change})) == {rule}


def test_objects_differ() -> None:
    assert found(JOB, JOB) == ["DuplicateObject"]


def test_what_it_refers_to() -> None:
    """The request may come later: a warning."""
    assert found(namespace="elsewhere") == ["NamespaceNotInSlice"]
    assert found(gpr="later") == ["RequestMissing"]


def test_how_long_a_simulation_lets_it_run_is_an_annotation_of_people() -> None:
    labels = {"egs.dev/export": "true"}
    meta = {"name": "x", "annotations": {"egs.dev/simulated-duration": "1h"}, "labels": labels}
    assert found({**JOB, "metadata": meta}) == []
