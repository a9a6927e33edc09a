"""How a cluster is reached and which nodes it has: the rules of a Cluster document (A10, G1)."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.reading.strict_yaml import locate
from tests.schemas.build import EAST, POOL, TRAIN, check, files
from tests.schemas.rules.test_rule_list import WINDOW, pools

UNCOUNTED = {field: value for field, value in POOL.items() if field != "nodes"}


def finds(selector: dict[str, str]) -> dict[str, Any]:
    """A pool whose nodes are those with these labels."""
    return {**UNCOUNTED, "selector": selector}


def elastic(**more: object) -> dict[str, Any]:
    """A pool that grows."""
    return {**UNCOUNTED, "elastic": {"max": 4}, **more}


TARGET = {"apiVersion": "apps/v1", "resource": "deployments", "namespace": "default", "name": "nodes"}
CASES = [
    pytest.param(
        {EAST: {"pools": [elastic(nodes=2)]}},
        "ElasticPool",
        EAST,
        ("spec", "pools", 0, "nodes"),
        id="a pool that grows and counts nodes",
    ),
    pytest.param(
        {EAST: {"driver": "kubernetes", "pools": [elastic(elastic={"max": 4, "target": TARGET})]}},
        "ElasticPool",
        EAST,
        ("spec", "pools", 0),
        id="a real pool that grows and does not find its nodes",
    ),
    pytest.param(
        {EAST: {"driver": "kubernetes", "pools": [elastic(selector={"pool": "a"})]}},
        "ElasticPool",
        EAST,
        ("spec", "pools", 0, "elastic"),
        id="a real pool that grows and scales nothing",
    ),
    pytest.param(
        {EAST: {"pools": [elastic(elastic={"max": 4, "target": TARGET})]}},
        "ElasticPool",
        EAST,
        ("spec", "pools", 0, "elastic"),
        id="a simulated pool that scales something",
    ),
    pytest.param(
        {EAST: {"pools": [UNCOUNTED]}},
        "NodesOrSelector",
        EAST,
        ("spec", "pools", 0),
        id="a pool without nodes",
    ),
    pytest.param(
        {EAST: {"driver": "kubernetes", "pools": pools({"selector": {"pool": "a"}})}},
        "NodesOrSelector",
        EAST,
        ("spec", "pools", 0),
        id="a pool with nodes twice over",
    ),
    pytest.param(
        {EAST: {"pools": [finds({"pool": "a"})]}},
        "OnlyKubernetes",
        EAST,
        ("spec", "pools", 0, "selector"),
        id="a selector in a simulated cluster",
    ),
    pytest.param(
        {EAST: {"access": {"inCluster": True}}},
        "OnlyKubernetes",
        EAST,
        ("spec", "access"),
        id="a way to a simulated cluster",
    ),
    pytest.param(
        {EAST: {"driver": "kubernetes", "access": {}}},
        "OneAccess",
        EAST,
        ("spec", "access"),
        id="no way",
    ),
    pytest.param(
        {EAST: {"driver": "kubernetes", "access": {"kubeconfig": "a", "pull": True}}},
        "OneAccess",
        EAST,
        ("spec", "access"),
        id="two ways",
    ),
    pytest.param(
        {EAST: {"driver": "kubernetes", "access": {"pull": True, "context": "a"}}},
        "OneAccess",
        EAST,
        ("spec", "access", "context"),
        id="a context of nothing",
    ),
    pytest.param(
        {EAST: {"shapes": [{"product": "P", "gpuShape": "A", "memoryPerGpu": 1}] * 2}},
        "DuplicateProduct",
        EAST,
        ("spec", "shapes", 0, "product"),
        id="a product with two shapes",
    ),
]


@pytest.mark.parametrize(("changes", "rule", "file", "path"), CASES)
def test_a_broken_rule_is_found_where_it_is_broken(
    changes: dict[str, Any], rule: str, file: str, path: Any
) -> None:
    found = [problem for problem in check(changes).problems if problem.rule == rule]
    place = locate(files(changes)[file]).value(path)
    assert (file, place) in {(problem.file, (problem.line, problem.column)) for problem in found}
    assert {problem.severity for problem in found} == {"error"}


@pytest.mark.parametrize("key", ["-a", "a/b/c", "a b", "", "A.example.com/pool", "x" * 64])
def test_a_selector_has_label_keys(key: str) -> None:
    found = check({EAST: {"driver": "kubernetes", "pools": [finds({key: "a"})]}}).problems
    assert "BadLabel" in {problem.rule for problem in found}


@pytest.mark.parametrize("key", ["pool", "egs.dev/pool", "node.kubernetes.io/instance-type", "A_b.c"])
def test_a_pool_that_finds_its_nodes_fits_whatever_is_asked_for(key: str) -> None:
    """G1: how many nodes there are only the cluster knows."""
    window = {**WINDOW, "nodes": ["ip-10-0-0-1.example.internal"]}
    east = {"driver": "kubernetes", "access": {"secret": "east.kube"}, "pools": [finds({key: "a"})]}
    assert check({EAST: {**east, "maintenance": [window]}, TRAIN: {"nodes": 8}}).problems == ()


@pytest.mark.parametrize("warning", ["0d0h0m", "0m", "-5m", 30, ""])
def test_a_warning_lasts(warning: object) -> None:
    """J4: absent is no warning; zero would warn of nothing."""
    found = check({EAST: {"warning": warning}}).problems
    assert {problem.severity for problem in found} == {"error"}
    assert check({EAST: {"warning": "30m", "notice": "5m"}}).problems == ()
