"""Rules of routes and profiles (H12): names, reasons, times, words and slices."""

from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.reading.strict_yaml import locate
from schemas.rules.event_reasons import TEMPLATE_WORDS
from schemas.rules.rule_list import BY_ID
from tests.schemas.build import GONE, SLICE, check, files
from tests.support.profile import law

PROFILE, SECOND = "people/bo.yaml", "people/bo-too.yaml"
PLACES = ("project.yaml", SLICE, PROFILE)
ROUTE: dict[str, Any] = {
    "name": "chat",
    "secret": "chat",
    "events": ["GPRProvisioned", "warnings"],
    "slices": ["vision"],
    "digest": "15m",
    "urgent": ["GPRFailed"],
    "quiet": {"begin": "22:00", "end": "07:00", "timeZone": "Europe/Berlin"},
    "template": {"title": "$type: $reason ($$5)", "body": "${message} at $time for $$ 5 in $slice"},
}


def with_routes(place: str, *routes: dict[str, Any]) -> dict[str, Any]:
    own = {"email": "bo@example.com"} if place == PROFILE else {}
    return {place: {**own, "notifications": list(routes)}}


@pytest.mark.parametrize("place", PLACES)
def test_a_route_that_uses_everything_breaks_no_rule(place: str) -> None:
    assert check(with_routes(place, ROUTE, {"name": "mail", "secret": "mail"})).problems == ()


@pytest.mark.parametrize(
    ("change", "rule", "path", "advice"),
    [
        pytest.param({"events": ["warnings", "GPRProvisionned"]}, "UnknownEvent", ("events", 1),
                     "did you mean GPRProvisioned?", id="a reason misspelt"),
        pytest.param({"events": ["warning"]}, "UnknownEvent", ("events", 0), "did you mean warnings?",
                     id="nearly all warnings"),
        pytest.param({"events": ["xyzzy"]}, "UnknownEvent", ("events", 0), "docs/reference/events.md lists",
                     id="a reason that is like none"),
        pytest.param({"urgent": ["nodeout"]}, "UnknownEvent", ("urgent", 0), "did you mean NodeOut?",
                     id="an urgent reason in other letters"),
        pytest.param({"quiet": {"begin": "22:00", "end": "07:00", "timeZone": "Europe/Berlni"}},
                     "UnknownTimeZone", ("quiet", "timeZone"), "did you mean Europe/Berlin?", id="a zone misspelt"),
        pytest.param({"quiet": {"begin": "22:00", "end": "07:00", "timeZone": "../../etc/passwd"}},
                     "UnknownTimeZone", ("quiet", "timeZone"), "IANA", id="a zone that is a path"),
        pytest.param({"quiet": {"begin": "22:00", "end": "07:00", "timeZone": "Europe"}},
                     "UnknownTimeZone", ("quiet", "timeZone"), "", id="a zone that is a folder"),
        pytest.param({"quiet": {"begin": "22:00", "end": "22:00"}}, "QuietWithoutLength", ("quiet", "end"),
                     "correct begin or end", id="quiet from ten to ten"),
        pytest.param({"digest": "8d"}, "DigestTooLong", ("digest",), "write at most 7d", id="a digest of eight days"),
        pytest.param({"template": {"title": "$raeson"}}, "UnknownWord", ("template", "title"),
                     "did you mean reason?", id="a word misspelt"),
        pytest.param({"template": {"body": "so ${much} $message"}}, "UnknownWord", ("template", "body"),
                     "write one of $cluster", id="a word in braces"),
        pytest.param({"slices": ["vision", "robots"]}, "UnknownSlice", ("slices", 1), "add slices/",
                     id="a slice that is not there"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", PLACES)
def test_a_broken_route_is_told_where_and_with_what_to_do(
    place: str, change: dict[str, Any], rule: str, path: Any, advice: str
) -> None:
    changes = with_routes(place, {"name": "other", "secret": "other"}, {**ROUTE, **change})
    (problem,) = check(changes).problems
    want = locate(files(changes)[place]).value(("spec", "notifications", 1, *path))
    assert (problem.rule, problem.file, (problem.line, problem.column)) == (rule, place, want)
    assert problem.severity == BY_ID[rule].severity == "error"
    assert advice in problem.fix


@pytest.mark.parametrize("place", PLACES)
def test_names_are_unique_where_they_stand(place: str) -> None:
    (problem,) = check(with_routes(place, ROUTE, {**ROUTE, "secret": "mail"})).problems
    assert (problem.rule, problem.file) == ("DuplicateRoute", place)
    elsewhere = with_routes("project.yaml", ROUTE) | with_routes(SLICE, ROUTE)
    assert check(elsewhere).problems == ()


def test_a_person_has_one_profile() -> None:
    one, other = {"email": "bo@example.com"}, {"email": "Bo@example.com"}
    assert check({PROFILE: one, SECOND: other}).problems == ()
    problems = check({PROFILE: one, SECOND: one}).problems
    assert {(problem.file, problem.rule) for problem in problems} == {
        (PROFILE, "DuplicateProfile"),
        (SECOND, "DuplicateProfile"),
    }
    assert check({PROFILE: one, SECOND: GONE}).problems == ()


@pytest.mark.parametrize(
    ("change", "hidden"),
    [
        pytest.param(
            {"secret": "https://hooks.example.com/T0/B1/xyz"}, "hooks", id="an address for a secret"
        ),
        pytest.param({"secret": "Hunter2!"}, "Hunter2", id="a password for a secret"),
        pytest.param({"events": "https://hooks.example.com/T0/B1/xyz"}, "hooks", id="an address elsewhere"),
    ],
)
def test_a_secret_written_by_mistake_is_not_told_on(change: dict[str, Any], hidden: str) -> None:
    (problem,) = check(with_routes(PROFILE, {**ROUTE, **change})).problems
    assert problem.rule in ("BadValue", "WrongType")
    assert hidden not in problem.message + problem.fix


@law(200)
@given(
    st.lists(
        st.sampled_from(["$", "{", "}", "1", " ", "é", "\u0131", "_", "node", "noDe", "time"]), max_size=12
    )
)
def test_a_word_is_what_python_fills_in(parts: list[str]) -> None:
    """A template passes exactly when every word of it is known."""
    text = "".join(parts)
    unknown = set(string.Template(text).get_identifiers()) - set(TEMPLATE_WORDS)
    problems = check(with_routes(PROFILE, {**ROUTE, "template": {"body": text}})).problems
    assert [problem.rule for problem in problems] == ["UnknownWord"] * bool(unknown)


def test_very_many_mistakes_are_told_in_bounded_number_and_time() -> None:
    routes = [{**ROUTE, "name": f"r{i}", "events": [f"Event{i}x{j}" for j in range(100)]} for i in range(20)]
    problems = check(with_routes(PROFILE, *routes)).problems
    assert len(problems) == 50
