"""Rules of API keys, groups and bindings of templates (B7, D19, G4)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from schemas.documents.apikey import digest_of
from schemas.reading.strict_yaml import locate
from schemas.rules.rule_list import BY_ID
from tests.schemas.build import EAST, GONE, TRAIN, check, file_of, files

KEY, OTHER = "keys/ci.yaml", "keys/robot.yaml"
VISION, NLP = "bindings/vision.yaml", "bindings/nlp.yaml"
TUNE, SMALL = "slices/nlp/gprs/tune.yaml", "templates/small.yaml"
SPEC = {"sha256": digest_of("egs_1"), "email": "bo@example.com", "role": "Editor", "slices": ["vision"]}
BOUND = {"clusters": [{"cluster": "east", "templates": ["small"], "default": "small"}]}
LARGE = {"templates/large.yaml": {"nodes": 2, "duration": "2h"}}


def bound(cluster: str = "east", *templates: str, **more: str) -> dict[str, Any]:
    return {"cluster": cluster, "templates": list(templates or ("small",)), **more}


def test_keys_and_bindings_that_are_right_draw_no_word() -> None:
    other = {**SPEC, "sha256": digest_of("egs_2"), "slices": []}
    assert check({KEY: SPEC, OTHER: other, NLP: BOUND}).problems == ()


CASES = [
    pytest.param(
        {KEY: {**SPEC, "slices": ["vision", "robots"]}}, "UnknownSlice", KEY, ("spec", "slices", 1),
        id="a key for a slice that is not there",
    ),
    pytest.param(
        {KEY: SPEC, OTHER: {**SPEC, "email": "cy@example.com"}}, "DuplicateSecret", KEY, ("spec", "sha256"),
        id="a digest that was copied",
    ),
    pytest.param(
        {"project.yaml": {"groups": [{"group": "ml", "role": "Viewer", "slices": ["robots"]}]}},
        "UnknownSlice", "project.yaml", ("spec", "groups", 0, "slices", 0),
        id="a group for a slice that is not there",
    ),
    pytest.param(
        {"bindings/robots.yaml": BOUND}, "UnknownSlice", "bindings/robots.yaml", ("metadata", "name"),
        id="a binding of a slice that is not there",
    ),
    pytest.param(
        {VISION: {"clusters": [bound("moon")]}}, "UnknownCluster", VISION, ("spec", "clusters", 0, "cluster"),
        id="a binding in a cluster that is not there",
    ),
    pytest.param(
        {VISION: {"clusters": [bound(), bound("west")]}}, "ClusterNotAllowed", VISION,
        ("spec", "clusters", 1, "cluster"), id="a binding in a cluster that the slice does not span",
    ),
    pytest.param(
        {VISION: {"clusters": [bound(), bound()]}}, "DuplicateCluster", VISION, ("spec", "clusters", 1, "cluster"),
        id="a cluster twice",
    ),
    pytest.param(
        {VISION: {"clusters": [bound("east", "small", "huge")]}}, "UnknownTemplate", VISION,
        ("spec", "clusters", 0, "templates", 1), id="a template that is not there",
    ),
    pytest.param(
        {VISION: {"clusters": [bound(default="large")]}, **LARGE}, "DefaultNotBound", VISION,
        ("spec", "clusters", 0, "default"), id="a default that is not among them",
    ),
    pytest.param(
        {NLP: {"clusters": [bound("west")]}, SMALL: {"clusters": ["east"]}, TUNE: GONE}, "TemplateElsewhere", NLP,
        ("spec", "clusters", 0, "templates", 0), id="a template for another cluster",
    ),
    pytest.param(
        {NLP: {"clusters": [bound("east", "large")]}, **LARGE}, "TemplateNotBound", TUNE, ("spec", "template"),
        id="a request with a template that is not bound",
    ),
    pytest.param(
        {NLP: BOUND, TUNE: {"clusters": ["east", "west"]}}, "TemplateNotBound", TUNE, ("spec", "template"),
        id="a request that names a cluster in which its template is not bound",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "rule", "file", "path"), CASES)
def test_a_broken_rule_is_found_where_it_is_broken(
    changes: dict[str, Any], rule: str, file: str, path: Any
) -> None:
    problems = [problem for problem in check(changes).problems if problem.file == file]
    (problem,) = problems
    assert problem.rule == rule
    assert problem.severity == BY_ID[rule].severity == "error"
    assert (problem.line, problem.column) == locate(files(changes)[file]).value(path)


def test_a_request_hears_what_is_bound() -> None:
    (problem,) = check({NLP: {"clusters": [bound("east", "large")]}, **LARGE}).problems
    assert problem.fix == "bound templates: large in east; choose one of them, or none"


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({NLP: BOUND, TUNE: {"clusters": ["east"]}}, id="a bound template in its cluster"),
        pytest.param({NLP: BOUND}, id="a bound template, wherever it goes"),
        pytest.param({VISION: BOUND}, id="no template at all"),
        pytest.param({VISION: BOUND, TUNE: {}}, id="a slice without a binding"),
        pytest.param({NLP: b"a: no\n"}, id="a binding that does not read"),
    ],
)
def test_a_request_that_keeps_to_the_binding_is_sound(changes: dict[str, Any]) -> None:
    assert [problem for problem in check(changes).problems if problem.file in (TRAIN, TUNE)] == []


def test_of_a_copied_digest_neither_key_counts() -> None:
    """B7: the digest is public, so nobody may take another's requests for their own by it."""
    problems = check({KEY: SPEC, OTHER: {**SPEC, "email": "cy@example.com"}}).problems
    assert {problem.file for problem in problems} == {KEY, OTHER}


def test_a_key_that_is_over_draws_a_notice_from_whoever_has_a_clock() -> None:
    end = datetime(2026, 11, 21, 8, tzinfo=UTC)
    changes = {KEY: {**SPEC, "notAfter": "2026-11-21T08:00:00Z"}}
    assert check(changes).problems == check(changes, now=end - timedelta(seconds=1)).problems == ()
    (problem,) = check(changes, now=end).problems
    assert (problem.rule, problem.severity) == ("KeyExpired", "notice")
    assert (problem.line, problem.column) == locate(files(changes)[KEY]).value(("spec", "notAfter"))


def test_a_refused_cluster_is_no_reason_to_blame_a_binding() -> None:
    problems = check({EAST: b"a: no\n", NLP: BOUND}).problems
    assert {problem.file for problem in problems} == {EAST}


@pytest.mark.parametrize(
    ("change", "advice"),
    [
        pytest.param({"sha256": "egs_" + "k" * 43}, "SHA-256", id="the key itself"),
        pytest.param({"sha256": "A" * 64}, "SHA-256", id="capital letters"),
        pytest.param({"role": "Admin"}, "one of Owner, Editor, Viewer", id="a role that is none"),
        pytest.param({"notAfter": "soon"}, "a time like 2026-11-21T08:00:00Z", id="an end that is no time"),
        pytest.param({"email": "bo"}, "text like ada@example.com", id="no address"),
        pytest.param({"slices": "vision"}, "a list", id="a name for a list"),
        pytest.param({"key": "egs_" + "k" * 43}, "fields here", id="a field for the key itself"),
    ],
)
def test_a_mistake_in_a_key_is_told_without_the_secret(change: dict[str, Any], advice: str) -> None:
    (problem,) = check({KEY: {**SPEC, **change}}).problems
    assert advice in problem.fix
    assert "kkkk" not in problem.message + problem.fix


def test_changes_of_one_key_look_at_the_others_again() -> None:
    """What a change of one document makes of another is found without reading all."""
    from tests.schemas.build import outcomes, repository

    made = repository({KEY: SPEC})
    assert made.is_clean(KEY)
    copied = outcomes({KEY: SPEC, OTHER: {**SPEC, "email": "cy@example.com"}})
    made.update({OTHER: copied[OTHER]})
    assert not made.is_clean(KEY)
    made.update({OTHER: None})
    assert made.is_clean(KEY)
    assert file_of(KEY, SPEC)
