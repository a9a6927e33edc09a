"""Each rule within and across documents, by the small repository with something changed."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.reading.strict_yaml import locate
from schemas.rules.rule_list import BY_ID
from tests.schemas.build import (
    APPROVAL,
    EAST,
    GONE,
    POOL,
    SLICE,
    TRAIN,
    check,
    files,
    repository,
)

WINDOW = {"begin": "2026-12-01T00:00:00Z", "end": "2026-12-02T00:00:00Z"}
DIGEST = repository().resolved("vision", "train").digest(200)  # type: ignore[union-attr]
WORD = {
    "slice": "vision",
    "gpr": "train",
    "decision": "approve",
    "specDigest": DIGEST,
    "limit": {"gpus": 64, "nodes": 8},
    "notAfter": "2026-12-01T00:00:00Z",
    "signature": "whose it is only the controller can say",
}
SECOND_SLICE = {"members": [{"email": "a@b.c"}], "clusters": ["east"], "namespaces": ["other", "vision"]}


def pools(*changes: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**POOL, **change} for change in changes]


def test_the_small_repository_breaks_no_rule() -> None:
    result = check()
    assert result.problems == ()
    assert result.documents == 8
    assert result.ok


CASES = [
    pytest.param(
        {"project.yaml": {"admins": [{"email": "ada@a.com"}, {"email": "Ada@b.com"}]}},
        "DuplicateAdmin",
        "project.yaml",
        ("spec", "admins", 1),
        id="two admins of one short name",
    ),
    pytest.param({"project.yaml": GONE}, "ProjectMissing", "project.yaml", (), id="no project.yaml"),
    pytest.param(
        {SLICE: GONE}, "UnknownSlice", TRAIN, ("spec", "slice"), id="a request in a folder without slice.yaml"
    ),
    pytest.param(
        {TRAIN: {"template": "huge"}},
        "UnknownTemplate",
        TRAIN,
        ("spec", "template"),
        id="a template that is not there",
    ),
    pytest.param(
        {"templates/small.yaml": {"nodes": GONE}},
        "NothingToAskFor",
        "slices/nlp/gprs/tune.yaml",
        ("spec",),
        id="a template that leaves nodes open, and so does the request",
    ),
    pytest.param(
        {"templates/small.yaml": {"clusters": ["oost"]}, "slices/nlp/gprs/tune.yaml": {"clusters": ["east"]}},
        "UnknownCluster",
        "templates/small.yaml",
        ("spec", "clusters", 0),
        id="a template for a cluster that is not there",
    ),
    pytest.param(
        {"slices/nlp/slice.yaml": {"clusters": ["east", "north", "west"]}, "slices/nlp/gprs/tune.yaml": GONE},
        "UnknownCluster",
        "slices/nlp/slice.yaml",
        ("spec", "clusters", 1),
        id="a slice in a cluster that is not there",
    ),
    pytest.param(
        {"project.yaml": {"scheduling": {"reserve": [{"cluster": "oost", "pool": "h100", "nodes": 1}]}}},
        "UnknownCluster",
        "project.yaml",
        ("spec", "scheduling", "reserve", 0, "cluster"),
        id="a reserve of a cluster that is not there",
    ),
    pytest.param(
        {"project.yaml": {"scheduling": {"reserve": [{"cluster": "east", "pool": "h200", "nodes": 1}]}}},
        "UnknownPool",
        "project.yaml",
        ("spec", "scheduling", "reserve", 0, "pool"),
        id="a reserve of a pool that is not there",
    ),
    pytest.param(
        {TRAIN: {"clusters": ["west"]}},
        "ClusterNotAllowed",
        TRAIN,
        ("spec", "clusters", 0),
        id="a cluster the slice does not span",
    ),
    pytest.param(
        {TRAIN: {"gpuShape": "H200"}},
        "UnknownShape",
        TRAIN,
        ("spec", "gpuShape"),
        id="a shape no allowed cluster has",
    ),
    pytest.param(
        {TRAIN: {"gpuShape": "A100-80GB"}},
        "UnknownShape",
        TRAIN,
        ("spec", "gpuShape"),
        id="a shape only another cluster has",
    ),
    pytest.param(
        {TRAIN: {"nodes": 5}}, "FitsNowhere", TRAIN, ("spec", "nodes"), id="more nodes than any pool has"
    ),
    pytest.param(
        {"slices/nlp/gprs/tune.yaml": {"nodes": 7}},
        "FitsNowhere",
        "slices/nlp/gprs/tune.yaml",
        ("spec", "nodes"),
        id="more nodes than one pool has, though two have them together",
    ),
    pytest.param(
        {TRAIN: {"gpusPerNode": 16}},
        "FitsNowhere",
        TRAIN,
        ("spec", "gpusPerNode"),
        id="larger nodes than there are",
    ),
    pytest.param(
        {TRAIN: {"memoryPerGpu": 141}},
        "FitsNowhere",
        TRAIN,
        ("spec", "memoryPerGpu"),
        id="more memory than there is",
    ),
    pytest.param(
        {TRAIN: {"network": {"secondary": True}}},
        "FitsNowhere",
        TRAIN,
        ("spec", "network", "secondary"),
        id="a network that is not there",
    ),
    pytest.param(
        {TRAIN: {"instanceType": "p5"}},
        "FitsNowhere",
        TRAIN,
        ("spec", "instanceType"),
        id="a machine type that is not there",
    ),
    pytest.param(
        {TRAIN: {"duration": "49h"}},
        "DurationTooLong",
        TRAIN,
        ("spec", "duration"),
        id="longer than the slice allows",
    ),
    pytest.param(
        {TRAIN: {"priority": 201}},
        "PriorityTooHigh",
        TRAIN,
        ("spec", "priority"),
        id="more urgent than the slice allows",
    ),
    pytest.param(
        {TRAIN: {"nodes": 9}, EAST: {"pools": pools({"nodes": 9})}},
        "TooManyNodes",
        TRAIN,
        ("spec", "nodes"),
        id="more nodes than the slice allows",
    ),
    pytest.param(
        {SLICE: {"limits.gpuShapes": ["H100-80GB"]}, TRAIN: {"gpuShape": ["H100-80GB", "L4"]}},
        "ShapeNotAllowed",
        TRAIN,
        ("spec", "gpuShape"),
        id="a shape the slice may not use",
    ),
    pytest.param(
        {SLICE: {"limits.gpuShapes": ["H100-80GB", "L4"]}},
        "UnknownShape",
        SLICE,
        ("spec", "limits", "gpuShapes", 1),
        id="a slice limited to a shape that is not there",
    ),
    pytest.param(
        {TRAIN: {"extend": "2h"}},
        "NeedsApproval",
        TRAIN,
        ("spec", "extend"),
        id="more grace than the project allows",
    ),
    pytest.param(
        {SLICE: {"quota": {"gpus": 15}}},
        "NeedsApproval",
        TRAIN,
        ("spec",),
        id="more GPUs than the quota, counted as whole nodes",
    ),
    pytest.param(
        {"project.yaml": {"limits.nodesPerRequest": 1}},
        "NeedsApproval",
        TRAIN,
        ("spec",),
        id="more nodes than the project's limit",
    ),
    pytest.param(
        {EAST: {"pools": pools({}, {"nodes": ["a"]})}},
        "DuplicatePool",
        EAST,
        ("spec", "pools", 0, "name"),
        id="two pools of one name",
    ),
    pytest.param(
        {EAST: {"pools": pools({}, {"name": "l4", "nodes": ["x", "h100-1"]})}},
        "DuplicateNode",
        EAST,
        ("spec", "pools", 1, "nodes"),
        id="a node in two pools",
    ),
    pytest.param(
        {EAST: {"pools": pools({"nodes": ["x", "y", "x", "z"]})}},
        "DuplicateNode",
        EAST,
        ("spec", "pools", 0, "nodes"),
        id="a node twice in its pool",
    ),
    pytest.param(
        {EAST: {"maintenance": [{**WINDOW, "pools": ["l4"]}]}},
        "UnknownPool",
        EAST,
        ("spec", "maintenance", 0, "pools", 0),
        id="maintenance of a pool that is not there",
    ),
    pytest.param(
        {EAST: {"maintenance": [{**WINDOW, "nodes": ["h100-4", "h100-5"]}]}},
        "UnknownNode",
        EAST,
        ("spec", "maintenance", 0, "nodes", 1),
        id="maintenance of a node that is not there",
    ),
    pytest.param(
        {EAST: {"maintenance": [{"begin": WINDOW["end"], "end": WINDOW["end"]}]}},
        "EndBeforeBegin",
        EAST,
        ("spec", "maintenance", 0, "end"),
        id="a window without length",
    ),
    pytest.param(
        {EAST: {"pools": pools({"reserved": [{"begin": WINDOW["end"], "end": WINDOW["end"]}]})}},
        "EndBeforeBegin",
        EAST,
        ("spec", "pools", 0, "reserved", 0, "end"),
        id="a reservation without length",
    ),
    pytest.param(
        {EAST: {"pools": pools({"reserved": [WINDOW, {**WINDOW, "nodes": 2}]})}},
        "ReservedTwice",
        EAST,
        ("spec", "pools", 0, "reserved", 1),
        id="two reservations at once",
    ),
    pytest.param(
        {EAST: {"pools": pools({"nodes": 4, "reserved": [{**WINDOW, "nodes": 5}]})}},
        "ReservedNodes",
        EAST,
        ("spec", "pools", 0, "reserved", 0, "nodes"),
        id="a reservation of more nodes than the pool has",
    ),
    pytest.param(
        {EAST: {"pools": pools({"nodes": None, "elastic": {"min": 1, "max": 4}, "reserved": [WINDOW]})}},
        "ReservedMinimum",
        EAST,
        ("spec", "pools", 0, "elastic"),
        id="an elastic pool keeps a node outside of its reservation",
    ),
    pytest.param(
        {EAST: {"health": {"maxTemperature": 70, "clearTemperature": 71}}},
        "BadThresholds",
        EAST,
        ("spec", "health"),
        id="well again only above the alarm",
    ),
    pytest.param(
        {EAST: {"health": {"limits": [{"gpuShape": "H100-80GB", "maxTemperature": 75}]}}},
        "BadThresholds",
        EAST,
        ("spec", "health", "limits", 0),
        id="well again only above the alarm of its shape",
    ),
    pytest.param(
        {"slices/nlp/slice.yaml": {"namespaces": ["nlp", "vision"]}},
        "NamespaceTaken",
        SLICE,
        ("spec", "namespaces", 0),
        id="a namespace of two slices",
    ),
    pytest.param(
        {
            "project.yaml": {"limits.requestsPerSlice": 1},
            "slices/vision/gprs/z.yaml": {"slice": "vision", "nodes": 1, "duration": "1h"},
        },
        "TooManyRequests",
        "slices/vision/gprs/z.yaml",
        (),
        id="too many requests in a folder",
    ),
    pytest.param(
        {APPROVAL.replace("ada", "bo"): WORD},
        "NotAnAdmin",
        APPROVAL.replace("ada", "bo"),
        ("metadata", "name"),
        id="an approval by somebody who may not",
    ),
    pytest.param(
        {APPROVAL: {**WORD, "limit": GONE}},
        "LimitMissing",
        APPROVAL,
        ("spec",),
        id="an approval without a limit",
    ),
    pytest.param(
        {APPROVAL: {**WORD, "specDigest": f"sha256:{'0' * 64}"}},
        "StaleApproval",
        APPROVAL,
        ("spec", "specDigest"),
        id="an approval of other content",
    ),
    pytest.param(
        {APPROVAL: WORD, TRAIN: GONE},
        "UnknownRequest",
        APPROVAL,
        ("spec", "gpr"),
        id="an approval of nothing",
    ),
    pytest.param(
        {TRAIN: {"memoryPerGpu": 81920}}, "MemoryInMiB", TRAIN, ("spec", "memoryPerGpu"), id="memory as MiB"
    ),
]


@pytest.mark.parametrize(("changes", "rule", "file", "path"), CASES)
def test_a_broken_rule_is_found_where_it_is_broken(
    changes: dict[str, Any], rule: str, file: str, path: Any
) -> None:
    """C4, D1, D18, D19, E5: bounds, fields, reasons, templates and approvals."""
    problems = [problem for problem in check(changes).problems if problem.rule == rule]
    assert problems
    got = next(problem for problem in problems if problem.file == file)
    content = files(changes).get(file)
    assert (got.line, got.column) == (locate(content).value(path) if content else (1, 1))
    assert got.severity == BY_ID[rule].severity
    assert got.message
    assert got.fix


@pytest.mark.parametrize(("changes", "rule", "file", "path"), CASES)
def test_a_broken_rule_is_the_only_one_reported_for_its_file(
    changes: dict[str, Any], rule: str, file: str, path: Any
) -> None:
    rules = {problem.rule for problem in check(changes).problems if problem.file == file}
    also = {
        "ClusterNotAllowed": {"UnknownShape", "FitsNowhere"},
        "TooManyNodes": set(),
        "ShapeNotAllowed": set(),
    }
    assert rules <= {rule, *also.get(rule, ())}


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        pytest.param({EAST: b"a: no\n"}, EAST, id="a refused cluster"),
        pytest.param({SLICE: b"a: no\n"}, SLICE, id="a refused slice"),
        pytest.param({"templates/small.yaml": b"a: no\n"}, "templates/small.yaml", id="a refused template"),
        pytest.param({"project.yaml": b"a: no\n"}, "project.yaml", id="a refused project"),
        pytest.param({TRAIN: b"a: no\n", APPROVAL: WORD}, TRAIN, id="a refused request with an approval"),
    ],
)
def test_one_refused_file_is_blamed_once(changes: dict[str, Any], path: str) -> None:
    assert [(problem.file, problem.rule) for problem in check(changes).problems] == [
        (path, "AmbiguousScalar")
    ]
