"""What the rules across documents say beyond being broken: advice, silence, and what they take into account."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from schemas.documents.gpr import GPR
from schemas.reading.collector import collector_paused
from schemas.reading.reader import read_document
from schemas.reading.yaml_text import dump
from schemas.rules.rule_list import BY_ID, RULES
from tests.schemas.build import APPROVAL, GONE, SLICE, TRAIN, check, document, file_of, repository
from tests.schemas.rules.test_rule_list import WORD


def test_an_approval_of_exactly_this_content_silences_the_notice() -> None:
    """E5."""
    over = {SLICE: {"quota": {"gpus": 8}}}
    assert [problem.rule for problem in check(over).problems] == ["NeedsApproval"]
    assert check({**over, APPROVAL: WORD}).problems == ()
    less = {**WORD, "limit": {"gpus": 15, "nodes": 8}}
    assert [problem.rule for problem in check({**over, APPROVAL: less}).problems] == ["NeedsApproval"]
    rejected = {**WORD, "decision": "reject"}
    assert [problem.rule for problem in check({**over, APPROVAL: rejected}).problems] == ["NeedsApproval"]


def test_checking_leaves_the_garbage_collector_as_it_was() -> None:
    assert gc.isenabled()
    check()
    assert gc.isenabled()
    with collector_paused():
        check()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_needing_approval_is_no_error() -> None:
    assert check({SLICE: {"quota": {"gpus": 0}}}).ok


def test_what_would_fit_is_said() -> None:
    (problem,) = check({TRAIN: {"nodes": 5}}).problems
    assert "east/h100 has 4 nodes" in problem.message
    assert problem.fix == "ask for at most 4 nodes"


def test_a_shape_the_slice_may_not_use_is_not_offered_for_any() -> None:
    changes = {
        "slices/nlp/slice.yaml": {"limits": {"gpuShapes": ["A100-80GB"]}},
        "slices/nlp/gprs/tune.yaml": {"network": {"rdma": True}},
    }
    assert [problem.rule for problem in check(changes).problems] == ["FitsNowhere"]


def test_a_list_of_shapes_needs_only_one_that_exists() -> None:
    assert check({TRAIN: {"gpuShape": ["H200", "H100-80GB"]}}).problems == ()


def test_rules_are_listed_once_and_read_as_sentences() -> None:
    assert len(BY_ID) == len(RULES)
    for rule in RULES:
        assert rule.id[0].isupper()
        assert rule.meaning.endswith(".")
        assert rule.fix
        assert not rule.fix.endswith(".")


def test_every_field_of_the_template_is_overruled_by_the_request() -> None:
    """D19."""
    path = "slices/nlp/gprs/tune.yaml"
    got = read_document(path, file_of(path, {"duration": "3h"}))
    assert isinstance(got, GPR)
    spec = repository({path: {"duration": "3h"}}).resolved("nlp", "tune")
    assert spec is not None
    assert (spec.nodes, spec.duration.total_seconds()) == (1, 3 * 3600)


ROBOTS = "requests/robots.yaml"
ASKED = {"requester": {"email": "di@example.com"}, "clusters": ["east"], "namespaces": ["robots"]}


def asked(**changes: object) -> bytes:
    return dump(document("WorkspaceRequest", "robots", {**ASKED, **changes})).encode()


def test_a_workspace_request_is_a_slice_to_everybody_else() -> None:
    """B8."""
    filed = {"slices/robots/gprs/arm.yaml": file_of(TRAIN, {"slice": "robots"}).replace(b"train", b"arm")}
    assert check({ROBOTS: asked(), **filed}).problems == ()
    (problem,) = check(filed).problems
    assert problem.rule == "UnknownSlice"


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        pytest.param({"clusters": ["moon"]}, "UnknownCluster", id="a cluster that does not exist"),
        pytest.param({"namespaces": ["vision"]}, "NamespaceTaken", id="a namespace of another slice"),
        pytest.param({"limits": {"gpuShapes": ["L4"]}}, "UnknownShape", id="a shape that no cluster has"),
        pytest.param({"weight": 2.0}, "UnknownField", id="a field that only admins give a slice"),
        pytest.param({"requester": "di@example.com"}, "WrongType", id="a person who is only an address"),
    ],
)
def test_a_workspace_request_is_judged_as_the_slice_it_would_be(
    changes: dict[str, object], rule: str
) -> None:
    problems = check({ROBOTS: asked(**changes)}).problems
    assert [problem.rule for problem in problems if problem.file == ROBOTS] == [rule]


@pytest.mark.parametrize(
    ("mine", "theirs", "taken"),
    [
        pytest.param("none", "none", set(), id="other clusters, nothing across"),
        pytest.param("mcs", "none", {"slices/a/slice.yaml", "slices/b/slice.yaml"}, id="one goes across"),
        pytest.param("mcs", "mcs", {"slices/a/slice.yaml", "slices/b/slice.yaml"}, id="both do"),
    ],
)
def test_a_namespace_of_services_across_clusters_is_one_slice_s_everywhere(
    mine: str, theirs: str, taken: set[str]
) -> None:
    """C7: one Service of the mesh would join both; the rule follows either slice's change."""

    def slice_(name: str, cluster: str, across: str) -> bytes:
        spec = {"members": [ASKED["requester"]], "clusters": [cluster], "namespaces": ["shared"]}
        return dump(document("Slice", name, {**spec, "services": {"across": across}})).encode()

    both = {
        "slices/a/slice.yaml": slice_("a", "east", mine),
        "slices/b/slice.yaml": slice_("b", "west", theirs),
    }
    problems = [problem for problem in check(both).problems if problem.rule == "NamespaceTaken"]
    assert {problem.file for problem in problems} == taken
    assert check({"slices/a/slice.yaml": both["slices/a/slice.yaml"]}).problems == ()


def test_a_slice_of_its_own_takes_the_place_of_the_request_for_it() -> None:
    slice_ = {"members": [ASKED["requester"]], "clusters": ["east"], "namespaces": ["robots"]}
    made = {"slices/robots/slice.yaml": dump(document("Slice", "robots", slice_)).encode()}
    (problem,) = check({ROBOTS: asked(), **made}).problems
    assert (problem.file, problem.rule, problem.severity) == (ROBOTS, "WorkspaceMade", "notice")


@pytest.mark.parametrize("rule", BY_ID)
def test_every_rule_has_a_case(rule: str) -> None:
    cases = (path.read_text("utf-8") for path in Path(__file__).parent.rglob("test_*.py"))
    assert any(f'"{rule}"' in text for text in cases)


def test_a_slice_that_may_use_no_pool_gets_its_requests_refused() -> None:
    problems = check({SLICE: {"limits.gpuShapes": ["L4"]}}).problems
    assert {(problem.file, problem.rule) for problem in problems} == {
        (SLICE, "UnknownShape"),
        (TRAIN, "FitsNowhere"),
    }


@pytest.mark.parametrize(
    ("change", "rule", "fix"),
    [
        pytest.param({"nodes": 0}, "BadValue", "write a number from 1 to 100000", id="beyond a bound"),
        pytest.param({"nodes": "two"}, "WrongType", "write a number from 1 to 100000", id="no number"),
        pytest.param({"nodes": 1.0}, "BadValue", "write it without a decimal point", id="a fraction"),
        pytest.param({"preemptible": 5}, "WrongType", "write true or false", id="no truth value"),
        pytest.param(
            {"displayName": 5},
            "WrongType",
            "write text in one line, without control characters",
            id="a number for text",
        ),
        pytest.param({"start": "x"}, "BadValue", "write one of asap, ready, promised", id="no such word"),
        pytest.param({"network": 5}, "WrongType", "write a mapping", id="no mapping"),
        pytest.param(
            {"duration": "six"},
            "BadValue",
            "write a duration like 6h or 0d6h0m, above zero",
            id="no duration",
        ),
        pytest.param(
            {"notBefore": "soon"}, "BadValue", "write a time like 2026-11-21T08:00:00Z", id="no time"
        ),
        pytest.param(
            {"notBefore": "2026-13-01T00:00:00Z"},
            "BadValue",
            "write a time like 2026-11-21T08:00:00Z",
            id="a date that does not exist",
        ),
        pytest.param(
            {"duration": GONE}, "MissingField", "add duration, for example 6h", id="no duration at all"
        ),
    ],
)
def test_the_fix_says_what_to_write(change: dict[str, object], rule: str, fix: str) -> None:
    (problem,) = check({TRAIN: change}).problems
    assert (problem.rule, problem.fix) == (rule, fix)
    assert "Input should" not in problem.message
    assert "Value error" not in problem.message
