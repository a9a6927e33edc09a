"""Schema and model agree on every mutated document, but for the differences listed here."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from schemas.documents.base import Document
from schemas.reading.explain import explain, real_path, validator_of
from schemas.reading.reader import from_json, rule_of
from tests.schemas.build import document, kind_of, name_of
from tests.support.profile import law

SPECS: dict[str, dict[str, Any]] = {
    "project.yaml": {
        "description": "d",
        "admins": [{"email": "ada@example.com", "name": "ada"}],
        "limits": {"nodesPerRequest": 16, "requestsPerSlice": 10, "deletionsAtOnce": 1},
        "maxExtension": "1h",
        "maxRetries": 3,
        "currency": "USD",
        "confirmedDeletions": ["x"],
    },
    "clusters/east.yaml": {
        "driver": "embedded",
        "mode": "manage",
        "prepare": "2m",
        "drain": "5m",
        "pricePerGpuHour": 2.5,
        "pools": [
            {
                "name": "a",
                "gpuShape": "A",
                "gpusPerNode": 8,
                "memoryPerGpu": 80,
                "nodes": 2,
                "instanceType": "p5",
                "rdma": True,
                "secondaryNetwork": False,
                "pricePerGpuHour": 1,
                "maxIsolated": 1,
            },
            {"name": "b", "gpuShape": "B", "gpusPerNode": 1, "memoryPerGpu": 1, "nodes": ["b1", "b2.c"]},
            {"name": "c", "gpuShape": "C", "gpusPerNode": 1, "memoryPerGpu": 1, "selector": {"pool": "c"}},
        ],
        "access": {"inCluster": False, "kubeconfig": "east", "context": "c", "secret": "e.f", "pull": True},
        "shapes": [{"product": "NVIDIA-A100", "gpuShape": "A", "memoryPerGpu": 80}],
        "checks": {
            "image": "ghcr.io/example/checks:1",
            "thresholds": [
                {"gpuShape": "A", "maxNcclLatency": 40.5, "minNcclBandwidth": 400, "minRdmaBandwidth": 300}
            ],
            "storageClass": "fast",
            "timeout": "5m",
            "latencyInterval": "10m",
            "maxLatency": 20,
            "tolerate": ["example.com/gpu"],
        },
        "exit": {"force": True},
        "admission": {"mode": "auto", "failurePolicy": "Ignore"},
        "clientRate": {"qps": 50, "burst": 100},
        "stale": "2m",
        "paused": False,
        "maintenance": [
            {
                "begin": "2026-11-21T08:00:00Z",
                "end": "2026-11-21T10:00:00+01:00",
                "pools": ["a"],
                "nodes": ["b1"],
                "reason": "r",
            }
        ],
        "health": {"maxTemperature": 87, "clearTemperature": 80, "readingsToFail": 3, "readingsToClear": 6},
    },
    "slices/vision/slice.yaml": {
        "description": "d",
        "members": [{"email": "bo@example.com"}],
        "clusters": ["east"],
        "namespaces": ["v"],
        "quota": {"gpus": 8},
        "limits": {"maxDuration": "7d", "maxPriority": 200, "maxNodes": 8, "gpuShapes": ["A"]},
        "weight": 1.5,
        "paused": True,
    },
    "slices/vision/gprs/train.yaml": {
        "slice": "vision",
        "displayName": "n",
        "nodes": 2,
        "gpusPerNode": 8,
        "gpuShape": ["A", "B"],
        "memoryPerGpu": 80,
        "instanceType": "p5",
        "clusters": ["east"],
        "duration": "0d6h0m",
        "priority": 150,
        "notBefore": "2026-11-21T08:00:00Z",
        "start": "asap",
        "sharing": "mig:1g.10gb",
        "preemptible": True,
        "requeueOnFailure": False,
        "idleTimeout": "30m",
        "network": {"rdma": True, "secondary": False},
        "model": {"name": "m", "framework": "f", "parameters": {"k": "v"}},
        "earlyRelease": False,
        "extend": "0m",
        "template": "small",
    },
    "templates/small.yaml": {"nodes": 1, "gpuShape": "any", "duration": "2h", "network": {"rdma": False}},
    "approvals/vision/train/ada.yaml": {
        "slice": "vision",
        "gpr": "train",
        "decision": "approve",
        "specDigest": f"sha256:{'a' * 64}",
        "limit": {"gpus": 1, "nodes": 1},
        "notAfter": "2026-12-01T00:00:00Z",
        "reason": "r",
    },
}
"""Every kind with every field."""

DIFFERENCES: dict[str, Callable[[Any], bool]] = {
    "JSON Schema counts 2.0 among the integers; a count of nodes with a point in it is more likely a mistake": (
        lambda error: error["type"] == "int_type" and isinstance(error["input"], float)
    ),
    "JSON Schema's patterns cannot tell which days and hours exist": (
        lambda error: error["type"] == "value_error" and "no such time" in error["msg"]
    ),
    "JSON Schema cannot add up the nodes of all pools": (
        lambda error: error["type"] == "value_error" and "the pools together" in error["msg"]
    ),
}
"""Documents the schema lets pass and the model refuses, and why. The other way round there are none."""

VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 63, 64, 65, 100, 300, 301, 1000, 1001, 4096, 100_000, 100_001, 2**53),
    *(0.0, 1.0, 1.5, -0.5, 1e9, "", "x", "X", "any", "a b", "a\n", "-a", "a" * 63, "a" * 64, "1", "true"),
    *(
        "0d0h0m",
        "6h",
        "6h\n",
        "1w2d",
        "d",
        "2026-11-21T08:00:00Z",
        "2026-02-30T08:00:00Z",
        "2026-11-21T24:00:00Z",
    ),
    *(
        "1969-12-31T23:59:59Z",
        "2199-12-31T23:59:59Z",
        "2026-11-21",
        "dedicated",
        "mig:",
        "a@b",
        "@",
        "USD",
        "USDX",
    ),
    *([], [1], ["a"], ["a", "a"], [[]], {}, {"a": 1}, {"rdma": True}, {"name": "a"}, {"gpus": 0}),
]

Mutation = tuple[str, Any]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for step, below in inner for place in places(below, (*path, step)))]


def mutated(value: Any, path: tuple[Any, ...], kind: str, new: Any) -> Any:
    """One value replaced, dropped, doubled or given under another name."""
    if not path:
        return new if kind == "set" else value
    value = deepcopy(value)
    inner = value
    for step in path[:-1]:
        inner = inner[step]
    step = path[-1]
    if kind == "set":
        inner[step] = new
    elif kind == "drop":
        del inner[step]
    elif isinstance(inner, list):
        inner.append(inner[step])
    else:
        inner[
            "".join(f"_{c.lower()}" if c.isupper() else c for c in step) if kind == "rename" else "extra"
        ] = inner.pop(step)
    return value


def by_model(path: str, value: Any) -> bool:
    """Whether the model takes it; that names and folders must fit the path no schema can know."""
    got = from_json(path, json.dumps(value).encode())
    return isinstance(got, Document) or {problem.rule for problem in got} <= {
        "NameMismatch",
        "FolderMismatch",
    }


def model_errors(path: str, value: Any) -> list[Any]:
    found = rule_of(path)
    assert found is not None
    try:
        found[0].model.model_validate_json(json.dumps(value), by_alias=True, by_name=False)
    except ValidationError as refusal:
        errors = refusal.errors()
        # An error around another one follows from it: a list is too short without its bad entry.
        return [error for error in errors if not any(_around(error["loc"], other["loc"]) for other in errors)]
    return []


def _around(outer: tuple[Any, ...], inner: tuple[Any, ...]) -> bool:
    return len(outer) < len(inner) and inner[: len(outer)] == outer


@pytest.mark.parametrize("path", SPECS)
@given(draw=st.data())
@law(150)
def test_schema_and_model_agree_on_mutated_documents(path: str, draw: st.DataObject) -> None:
    value: Any = document(kind_of(path), name_of(path), SPECS[path])
    assert by_model(path, value)
    found = rule_of(path)
    assert found is not None
    validator = validator_of(found[0].model)
    assert validator.is_valid(value)
    for _ in range(draw.draw(st.integers(1, 3))):
        place = draw.draw(st.sampled_from(places(value)))
        value = mutated(
            value,
            place,
            draw.draw(st.sampled_from(["set", "set", "drop", "rename", "other", "double"])),
            draw.draw(st.sampled_from(VALUES)),
        )
        if not isinstance(value, dict):
            break
    if validator.is_valid(value) != by_model(path, value):
        assert validator.is_valid(value)
        errors = model_errors(path, value)
        assert errors
        # Every branch of a choice has its say about one value; one listed reason is enough for it.
        listed = {
            real_path(value, error["loc"])
            for error in errors
            if any(known(error) for known in DIFFERENCES.values())
        }
        assert {real_path(value, error["loc"]) for error in errors} == listed


@pytest.mark.parametrize("name", ["a\nb", "a\n", "a\rb", "a\tb", "\x85"], ids=ascii)
@pytest.mark.parametrize("field", ["displayName", "instanceType"])
def test_a_name_is_one_line(field: str, name: str) -> None:
    path = "slices/vision/gprs/train.yaml"
    value = document("GPR", "train", {**SPECS[path], field: name})
    (problem,) = from_json(path, json.dumps(value).encode())
    assert (problem.rule, problem.fix) == ("BadValue", "write text in one line, without control characters")


@pytest.mark.parametrize("path", SPECS)
@given(draw=st.data())
@law(100)
def test_every_refusal_is_explained(path: str, draw: st.DataObject) -> None:
    value: Any = document(kind_of(path), name_of(path), SPECS[path])
    for _ in range(draw.draw(st.integers(1, 4))):
        place = draw.draw(st.sampled_from(places(value)[1:]))
        value = mutated(value, place, "set", draw.draw(st.sampled_from(VALUES)))
    got = from_json(path, json.dumps(value).encode())
    if not isinstance(got, Document):
        assert got
        assert all(problem.message and problem.fix for problem in got)


def test_a_document_with_endless_mistakes_is_explained_in_bounds() -> None:
    found = rule_of("templates/x.yaml")
    assert found is not None
    value = document("GPRTemplate", "x", {f"field-{i}": i for i in range(5000)})
    with pytest.raises(ValidationError) as refusal:
        found[0].model.model_validate_json(json.dumps(value))
    assert len(explain("templates/x.yaml", found[0].model, value, refusal.value)) == 50


@pytest.mark.parametrize("reason", DIFFERENCES)
def test_a_listed_difference_is_real(reason: str) -> None:
    """A difference that is gone has to leave the list."""
    cases: list[tuple[str, str, Any]] = [
        ("templates/small.yaml", "nodes", 2.0),
        ("slices/vision/gprs/train.yaml", "notBefore", "2026-02-30T08:00:00Z"),
        (
            "clusters/east.yaml",
            "pools",
            [
                {**SPECS["clusters/east.yaml"]["pools"][1], "name": f"p{i}", "nodes": 100_000}
                for i in range(2)
            ],
        ),
    ]
    path, field, new = cases[list(DIFFERENCES).index(reason)]
    value = document(kind_of(path), name_of(path), {**SPECS[path], field: new})
    found = rule_of(path)
    assert found is not None
    assert validator_of(found[0].model).is_valid(value)
    errors = model_errors(path, value)
    assert errors
    assert all(DIFFERENCES[reason](error) for error in errors)
