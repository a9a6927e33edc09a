"""What an edit of a request means, by its phase; D9, design section 5."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from schemas.documents.gpr import ModelInfo, Network, RequestSpec
from schemas.reading.reader import REGULAR
from schemas.reading.units import instant
from schemas.rules.check import check_files, forbidden_edits
from schemas.rules.check_result import as_annotations, as_json
from schemas.rules.edits import ALWAYS_FREE, MORE_IS_MORE, SOMETHING_ELSE, asks_more_or_other, edit_problems
from schemas.rules.problems import Problem
from schemas.status.gpr_status import HOLDING, Phase
from tests.schemas.build import GONE, TRAIN, check, repository

HOUR = timedelta(hours=1)
OLD = RequestSpec(
    slice="vision", nodes=2, gpus_per_node=4, memory_per_gpu=40, duration=6 * HOUR, priority=150
)

FREE: dict[str, Any] = {
    "display_name": "other",
    "early_release": True,
    "extend": HOUR,
    "idle_timeout": HOUR,
    "model": ModelInfo(name="x"),
    "requeue_on_failure": False,
    "preemptible": False,
    "not_before": instant(0),
    "start": "promised",
    "move": 1,
    "stopped": True,
    "max_wait": HOUR,
}
LESS: dict[str, Any] = {"nodes": 1, "gpus_per_node": 2, "memory_per_gpu": 0, "duration": HOUR, "priority": 1}
MORE: dict[str, Any] = {
    "nodes": 3,
    "gpus_per_node": 8,
    "memory_per_gpu": 80,
    "duration": 7 * HOUR,
    "priority": 151,
}
OTHER: dict[str, Any] = {
    "slice": "nlp",
    "gpu_shapes": ("A100",),
    "clusters": ("west",),
    "instance_type": "p5",
    "network": Network(rdma=True),
    "sharing": "mig:1g",
    "prefer": "price",
}


def test_every_field_of_a_request_is_classified_once() -> None:
    fields = [*ALWAYS_FREE, *MORE_IS_MORE, *SOMETHING_ELSE]
    assert sorted(fields) == sorted(RequestSpec.model_fields)
    assert (set(FREE), set(LESS), set(OTHER)) == (set(ALWAYS_FREE), set(MORE_IS_MORE), set(SOMETHING_ELSE))


@pytest.mark.parametrize(
    ("edits", "loses"),
    [
        pytest.param(FREE, False, id="what may always change keeps the place in the queue"),
        pytest.param(LESS, False, id="asking for less keeps it"),
        pytest.param(MORE, True, id="asking for more loses it"),
        pytest.param(OTHER, True, id="asking for something else loses it"),
    ],
)
def test_whether_an_edit_costs_the_place_in_the_queue(edits: dict[str, Any], loses: bool) -> None:
    for field, value in edits.items():
        assert asks_more_or_other(OLD, OLD.model_copy(update={field: value})) is loses, field


@pytest.mark.parametrize("phase", Phase)
def test_terms_of_a_request_that_holds_nodes_may_not_change(phase: Phase) -> None:
    for field, value in (LESS | MORE | OTHER).items():
        found = list(edit_problems(TRAIN, OLD, OLD.model_copy(update={field: value}), phase))
        assert [finding.rule for finding in found] == (["ForbiddenEdit"] if phase in HOLDING else []), field
    for field, value in FREE.items():
        assert not list(edit_problems(TRAIN, OLD, OLD.model_copy(update={field: value}), phase)), field


def test_validate_against_a_base_names_the_forbidden_edit() -> None:
    phases = {("vision", "train"): Phase.PROVISIONED, ("nlp", "tune"): Phase.QUEUED}
    changes = {TRAIN: {"nodes": 3, "displayName": "x"}, "slices/nlp/gprs/tune.yaml": {"priority": 5}}
    (problem,) = check(changes, base=repository(), phases=phases).problems
    assert (problem.file, problem.rule, problem.line) == (TRAIN, "ForbiddenEdit", 7)
    assert check(changes).ok


def test_a_template_edit_leaves_provisioned_requests_alone() -> None:
    phases = {("nlp", "tune"): Phase.PROVISIONED}
    head = repository({"templates/small.yaml": {"nodes": 3}})
    assert forbidden_edits(repository(), head, phases) == ()


def test_deleting_the_file_of_a_running_request_draws_a_warning() -> None:
    for phase in Phase:
        result = check({TRAIN: GONE}, base=repository(), phases={("vision", "train"): phase})
        want = ["HeldFileDeleted"] if phase in HOLDING else []
        assert [problem.rule for problem in result.problems] == want
        assert result.ok


def test_the_json_of_validate_is_the_contract() -> None:
    """Design section 7: names, order, and 1-based places."""
    result = check_files([("clusters/b.yaml", REGULAR, b"a: 1\nb: no\n"), ("clusters/a.yml", REGULAR, b"")])
    got = json.loads(as_json(result))
    assert list(got) == ["documents", "problems"]
    assert got["documents"] == 1
    assert [list(problem) for problem in got["problems"]] == [
        ["file", "line", "column", "rule", "severity", "message", "fix"]
    ] * 3
    assert [(p["file"], p["line"], p["column"], p["rule"]) for p in got["problems"]] == [
        ("clusters/a.yml", 1, 1, "StrayFile"),
        ("clusters/b.yaml", 2, 4, "AmbiguousScalar"),
        ("project.yaml", 1, 1, "ProjectMissing"),
    ]


def test_annotations_cannot_be_forged_by_a_file() -> None:
    hostile = Problem(
        "a,b:c%\n::error::x", 1, 2, "BadValue", "error", "50% of\r\n::set-output name=a::b", "x"
    )
    result = check()
    text = as_annotations(type(result)(1, (hostile,)))
    assert text == (
        "::error file=a%2Cb%3Ac%25%0A%3A%3Aerror%3A%3Ax,line=1,col=2,title=BadValue"
        "::50%25 of%0D%0A::set-output name=a::b; x\n"
    )
