"""Cross-file rules cost what changed, not what exists, and never miss what a change touches."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.reading.reader import read_document
from schemas.rules.repository import Repository
from tests.schemas.build import APPROVAL, EAST, GONE, POOL, SLICE, TRAIN, file_of, outcomes, repository
from tests.schemas.rules.test_rule_list import WORD
from tests.support.profile import law

MANY = 200


def large() -> Repository:
    """The small repository, and `MANY` slices of one cluster with as many requests each as there are files."""
    changes: dict[str, Any] = {}
    for i in range(MANY):
        changes[f"slices/s{i}/slice.yaml"] = {
            "members": [{"email": "a@b.c"}],
            "clusters": ["west"],
            "namespaces": [f"s{i}"],
        }
        changes[f"slices/s{i}/gprs/only.yaml"] = {"slice": f"s{i}", "nodes": 1, "duration": "1h"}
    return repository(changes)


@pytest.mark.parametrize(
    ("path", "change", "most"),
    [
        pytest.param(TRAIN, {"nodes": 3}, 1, id="an edited request: itself"),
        pytest.param(TRAIN, GONE, 1, id="a removed request: its slice, which counts them"),
        pytest.param(
            "slices/vision/gprs/new.yaml",
            {"slice": "vision", "nodes": 1, "duration": "1h"},
            2,
            id="a new request: itself and its slice",
        ),
        pytest.param(SLICE, {"quota": {"gpus": 1}}, 2, id="an edited slice: itself and its requests"),
        pytest.param("slices/vision/gprs/x.txt", b"", 0, id="a stray file: nothing"),
        pytest.param(EAST, {"pools": [POOL]}, 0, id="the same content again: nothing"),
        pytest.param(
            EAST,
            {"mode": "observe", "pools": [{**POOL, "nodes": 5}]},
            5,
            id="an edited cluster: its slices and their requests",
        ),
        pytest.param(
            "templates/small.yaml", {"nodes": 2}, 2, id="an edited template: the requests that name it"
        ),
        pytest.param(APPROVAL, WORD, 2, id="a new approval: itself, and at most its request"),
    ],
)
def test_a_change_runs_the_rules_of_what_it_touches_and_no_others(path: str, change: Any, most: int) -> None:
    tree = large()
    assert tree.rules_run == len(tree.documents)
    outcome = (
        None
        if change is GONE
        else read_document(path, change if isinstance(change, bytes) else file_of(path, change))
    )
    tree.update({path: outcome})
    assert tree.rules_run <= most
    if most:
        assert tree.rules_run >= 1


ASKED_FOR = "requests/vision.yaml"
STEPS: list[tuple[str, Any]] = [
    ("project.yaml", GONE),
    ("project.yaml", {}),
    ("project.yaml", {"limits.nodesPerRequest": 1}),
    (EAST, GONE),
    (EAST, {}),
    (EAST, {"pools": [{**POOL, "nodes": 1}]}),
    (EAST, b"a: no"),
    ("clusters/west.yaml", GONE),
    ("clusters/west.yaml", {}),
    (SLICE, GONE),
    (SLICE, {}),
    (SLICE, {"quota": {"gpus": 8}}),
    (SLICE, {"clusters": ["west"]}),
    (SLICE, {"namespaces": ["nlp"]}),
    ("slices/nlp/slice.yaml", {"clusters": ["west"]}),
    ("slices/nlp/slice.yaml", {}),
    ("slices/nlp/slice.yaml", {"namespaces": ["vision"]}),
    (TRAIN, GONE),
    (TRAIN, {}),
    (TRAIN, {"template": "small", "nodes": GONE}),
    (TRAIN, b"?"),
    (TRAIN, {"priority": 300}),
    ("templates/small.yaml", GONE),
    ("templates/small.yaml", {}),
    ("templates/small.yaml", {"duration": GONE}),
    (APPROVAL, WORD),
    (APPROVAL, GONE),
    (APPROVAL, {**WORD, "gpr": "tune"}),
    (ASKED_FOR, {"requester": {"email": "d@e.f"}, "clusters": ["east"], "namespaces": ["vision"]}),
    (ASKED_FOR, {"requester": {"email": "d@e.f"}, "clusters": ["west"], "namespaces": ["nlp"]}),
    (ASKED_FOR, b"?"),
    (ASKED_FOR, GONE),
    ("slices/vision/gprs/x.yml", b""),
    ("slices/vision/gprs/x.yml", GONE),
]


@given(st.lists(st.lists(st.sampled_from(STEPS), min_size=1, max_size=4), max_size=8))
@law(200)
def test_any_way_to_a_tree_finds_the_same_as_reading_it_afresh(history: list[list[tuple[str, Any]]]) -> None:
    """The law of the incremental rules: no way through edits hides a problem or keeps one that is gone."""
    tree = repository()
    files = dict(outcomes())
    for commit in history:
        changes = {
            path: None
            if change is GONE
            else read_document(path, change if isinstance(change, bytes) else file_of(path, change))
            for path, change in commit
        }
        tree.update(changes)
        files |= changes
        afresh = Repository()
        afresh.update(files)
        assert tree.problems() == afresh.problems()
        assert dict(tree.documents) == dict(afresh.documents)
        assert dict(tree.gprs) == dict(afresh.gprs)
        assert dict(tree.slices) == dict(afresh.slices)
        assert dict(tree.clusters) == dict(afresh.clusters)


def test_lookups_are_by_name() -> None:
    tree = repository({APPROVAL: WORD})
    assert tree.project is not None
    assert set(tree.clusters) == {"east", "west"}
    assert set(tree.slices) == {"vision", "nlp"}
    assert set(tree.gprs) == {("vision", "train"), ("nlp", "tune")}
    assert set(tree.templates) == {"small"}
    assert [approval.metadata.name for approval in tree.approvals("vision", "train")] == ["ada"]
    assert tree.approvals("nlp", "tune") == ()
    assert tree.resolved("nlp", "none") is None


def test_a_copy_goes_its_own_way() -> None:
    tree = repository()
    other = tree.copy()
    other.update({TRAIN: None, EAST: None})
    assert tree.problems() == ()
    assert ("vision", "train") in tree.gprs
    assert {problem.rule for problem in other.problems()} == {"UnknownCluster"}
    tree.update({SLICE: None})
    assert "vision" in other.slices


def test_a_refused_file_takes_the_place_of_the_document() -> None:
    tree = repository()
    tree.update({TRAIN: read_document(TRAIN, b"a: no")})
    assert ("vision", "train") not in tree.gprs
    assert not tree.absent(TRAIN)
    assert [problem.rule for problem in tree.problems()] == ["AmbiguousScalar"]
    tree.update({TRAIN: read_document(TRAIN, file_of(TRAIN))})
    assert tree.problems() == ()
