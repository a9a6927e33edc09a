"""What waits for an admin, and what an approval on file must be (E5, D8, C10)."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.reading.strict_yaml import locate
from tests.schemas.build import APPROVAL, GONE, SLICE, TRAIN, check, files
from tests.schemas.rules.test_rule_list import WORD

GRACE = {"gpus": 64, "nodes": 8, "extend": "3h"}
CASES = [
    pytest.param(
        {TRAIN: {"extend": "2h"}, APPROVAL: WORD},
        "NeedsApproval",
        TRAIN,
        ("spec", "extend"),
        id="more grace than the project allows, with a word for the request",
    ),
    pytest.param(
        {TRAIN: {"extend": "4h"}, APPROVAL: {**WORD, "rule": "extension", "limit": GRACE}},
        "NeedsApproval",
        TRAIN,
        ("spec", "extend"),
        id="more grace than an admin allowed",
    ),
    pytest.param(
        {"project.yaml": {"approval": {"duration": "5h"}}},
        "NeedsApproval",
        TRAIN,
        ("spec",),
        id="longer than the policy lets pass",
    ),
    pytest.param(
        {"project.yaml": {"approval": {"priority": 100}}},
        "NeedsApproval",
        TRAIN,
        ("spec",),
        id="a higher priority than the policy lets pass",
    ),
    pytest.param(
        {"project.yaml": {"approval": {"gpuHours": 95}}},
        "NeedsApproval",
        TRAIN,
        ("spec",),
        id="more GPU-hours than the policy lets pass",
    ),
    pytest.param(
        {"project.yaml": {"approval": {"gpuShapes": ["H100-80GB"]}}},
        "NeedsApproval",
        TRAIN,
        ("spec",),
        id="a shape that the policy names",
    ),
    pytest.param(
        {
            SLICE: {"quota": {"gpus": 8}},
            "project.yaml": {"approval": {"twoAdminsAbove": {"gpus": 8}}},
            APPROVAL: WORD,
        },
        "NeedsApproval",
        TRAIN,
        ("spec",),
        id="one admin where two are needed",
    ),
    pytest.param(
        {APPROVAL: {**WORD, "rule": "extension"}},
        "LimitMissing",
        APPROVAL,
        ("spec", "limit"),
        id="an approval of grace without its limit",
    ),
    pytest.param(
        {APPROVAL: {**WORD, "signature": GONE}},
        "UnsignedApproval",
        APPROVAL,
        ("spec",),
        id="an approval without a signature",
    ),
    pytest.param(
        {APPROVAL: {**WORD, "notAfter": GONE}},
        "UnsignedApproval",
        APPROVAL,
        ("spec",),
        id="an approval without an end",
    ),
]


@pytest.mark.parametrize(("changes", "rule", "file", "path"), CASES)
def test_a_broken_rule_is_found_where_it_is_broken(
    changes: dict[str, Any], rule: str, file: str, path: Any
) -> None:
    """It is the only problem of its file."""
    (got,) = (problem for problem in check(changes).problems if problem.file == file)
    content = files(changes)[file]
    assert content is not None
    assert (got.rule, got.line, got.column) == (rule, *locate(content).value(path))


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param({"duration": "6h"}, id="as long as the policy lets pass"),
        pytest.param({"priority": 101}, id="as urgent as the policy lets pass"),
        pytest.param({"gpuHours": 96}, id="as many GPU-hours as the policy lets pass"),
        pytest.param({"gpuShapes": ["A100-80GB"]}, id="another shape than the policy names"),
        pytest.param({"twoAdminsAbove": {"gpus": 1}}, id="above the second threshold and below the first"),
    ],
)
def test_what_the_policy_lets_pass_needs_nobody(policy: dict[str, Any]) -> None:
    changes = {"project.yaml": {"approval": policy}, TRAIN: {"gpuShape": "H100-80GB"}}
    assert [problem.rule for problem in check(changes).problems if problem.file == TRAIN] == []


def test_two_admins_are_enough_beyond_the_second_threshold() -> None:
    admins = [{"email": "ada@example.com"}, {"email": "cy@example.com"}]
    changes = {
        SLICE: {"quota": {"gpus": 8}},
        "project.yaml": {"approval": {"twoAdminsAbove": {"gpus": 8}}, "admins": admins},
        APPROVAL: WORD,
        APPROVAL.replace("ada", "cy"): WORD,
    }
    assert [problem.rule for problem in check(changes).problems] == []


def test_an_approval_of_grace_silences_its_notice() -> None:
    """C10."""
    long = {TRAIN: {"extend": "3h"}}
    assert [problem.rule for problem in check(long).problems] == ["NeedsApproval"]
    assert check({**long, APPROVAL: {**WORD, "rule": "extension", "limit": GRACE}}).problems == ()
