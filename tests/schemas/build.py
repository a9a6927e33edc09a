"""Small valid documents, by path; a test names only what matters to it."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from schemas.reading.reader import REGULAR, read_document
from schemas.reading.yaml_text import dump
from schemas.rules.check import check_files
from schemas.rules.check_result import CheckResult
from schemas.rules.repository import Outcome, Repository

GONE = object()
"""As a change: the field, or the file, is not there."""


def document(kind: str, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    head = {"apiVersion": "egs.dev/v1alpha1", "kind": kind, "metadata": {"name": name}}
    return {**head, "spec": deepcopy(dict(spec))}


POOL = {
    "name": "h100",
    "gpuShape": "H100-80GB",
    "gpusPerNode": 8,
    "memoryPerGpu": 80,
    "rdma": True,
    "nodes": 4,
}
SPECS: dict[str, dict[str, Any]] = {
    "project.yaml": {"admins": [{"email": "ada@example.com"}], "limits": {"nodesPerRequest": 16}},
    "clusters/east.yaml": {"driver": "embedded", "pools": [POOL]},
    "clusters/west.yaml": {
        "driver": "embedded",
        "pools": [
            {"name": "a100", "gpuShape": "A100-80GB", "gpusPerNode": 8, "memoryPerGpu": 80, "nodes": 6}
        ],
    },
    "templates/small.yaml": {"nodes": 1, "duration": "2h"},
    "slices/vision/slice.yaml": {
        "members": [{"email": "bo@example.com"}],
        "clusters": ["east"],
        "namespaces": ["vision"],
        "limits": {"maxDuration": "2d", "maxPriority": 200, "maxNodes": 8},
    },
    "slices/nlp/slice.yaml": {
        "members": [{"email": "cy@example.com"}],
        "clusters": ["east", "west"],
        "namespaces": ["nlp"],
    },
    "slices/vision/gprs/train.yaml": {"slice": "vision", "nodes": 2, "duration": "6h"},
    "slices/nlp/gprs/tune.yaml": {"slice": "nlp", "template": "small"},
}
KINDS = {
    "project.yaml": "Project",
    "clusters": "Cluster",
    "templates": "GPRTemplate",
    "approvals": "Approval",
    "requests": "WorkspaceRequest",
    "bindings": "GPRTemplateBinding",
    "keys": "ApiKey",
    "people": "Profile",
}

TRAIN = "slices/vision/gprs/train.yaml"
SLICE = "slices/vision/slice.yaml"
EAST = "clusters/east.yaml"
APPROVAL = "approvals/vision/train/ada.yaml"


def kind_of(path: str) -> str:
    if path.startswith("slices/"):
        return "Slice" if path.endswith("/slice.yaml") else "GPR"
    return KINDS[path.split("/")[0]]


def name_of(path: str) -> str:
    parts = path.removesuffix(".yaml").split("/")
    return parts[1] if parts[-1] == "slice" else parts[-1]


def with_fields(spec: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`{"limits.maxNodes": 2}` sets inside; GONE removes."""
    new = deepcopy(dict(spec))
    for dotted, value in changes.items():
        *above, last = dotted.split(".")
        inner = new
        for step in above:
            inner = inner.setdefault(step, {})
        if value is GONE:
            inner.pop(last, None)
        else:
            inner[last] = value
    return new


def file_of(path: str, changes: Mapping[str, Any] | None = None) -> bytes:
    """The file at `path` as text, some fields of its spec changed."""
    spec = with_fields(SPECS.get(path, {}), changes or {})
    return dump(document(kind_of(path), name_of(path), spec)).encode()


def files(changes: Mapping[str, Any] | None = None) -> dict[str, bytes]:
    """The small repository, files changed by fields, replaced by bytes, or GONE."""
    changed = {path: file_of(path) for path in SPECS}
    for path, change in (changes or {}).items():
        if change is GONE:
            changed.pop(path, None)
        else:
            changed[path] = change if isinstance(change, bytes) else file_of(path, change)
    return changed


def check(changes: Mapping[str, Any] | None = None, **against: Any) -> CheckResult:
    return check_files([(path, REGULAR, data) for path, data in files(changes).items()], **against)


def outcomes(changes: Mapping[str, Any] | None = None) -> dict[str, Outcome]:
    return {path: read_document(path, data) for path, data in files(changes).items()}


def repository(changes: Mapping[str, Any] | None = None) -> Repository:
    made = Repository()
    made.update(outcomes(changes))
    return made
