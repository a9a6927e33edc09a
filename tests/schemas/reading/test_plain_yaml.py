"""Reading line by line gives what libyaml's events give, or leaves the document to them."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.reading import plain_yaml, strict_yaml
from schemas.reading.plain_yaml import plain_value
from schemas.reading.strict_yaml import MAX_NODES, Refused, load
from tests.support.profile import law

MOST = MAX_NODES // 2
KEYS = ("a", "b", "spec", "no", "true", "a.b/c-d", '"q"', "1")
VALUES = (
    *(
        "",
        "word",
        "two words",
        "12",
        "010",
        "yes",
        "~",
        "null",
        "true",
        "1.5",
        "x:1",
        "x: 1",
        "x #c",
        "a:",
        " deep",
    ),
    *("t ", '"q"', '"a: #"', '"\\n"', "'s'", "[1]", "{}", "|", "- 1", "&x 1", "*x", "!t 1", "#c"),
    *("2026-11-21T08:00:00Z", "ä"),
)
LINES = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "", "  ", "  ", "    ", "      ", " ", "\t"]),
    st.sampled_from(["", "", "", "- ", "- - ", "-"]),
    st.sampled_from(["", *(f"{key}: " for key in KEYS), *(f"{key}:" for key in KEYS)]),
    st.sampled_from(VALUES),
)


def by_events(text: str) -> Any:
    """What the parser alone gives; None if it refuses."""
    with mock.patch.object(strict_yaml, "plain_value", return_value=None):
        try:
            return load(text.encode())
        except Refused:
            return None


@given(st.lists(LINES, max_size=7), st.sampled_from(["\n", "\n", "\n", ""]))
@law(2000)
def test_a_document_read_by_lines_has_the_value_that_events_give(lines: list[str], end: str) -> None:
    text = "\n".join(lines) + end
    found = plain_value(text, MOST)
    if found is not None:
        want = by_events(text)
        assert found == want, text
        assert repr(found) == repr(want), text


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("a: 1\nb: two words\n", {"a": 1, "b": "two words"}, id="values"),
        pytest.param('a: "no"\nb: ""\n', {"a": "no", "b": ""}, id="quoted values"),
        pytest.param("a:\n  b:\n    c: 1\nd: 2\n", {"a": {"b": {"c": 1}}, "d": 2}, id="mappings in mappings"),
        pytest.param("a:\n  - 1\n  - x:y\nb: 2\n", {"a": [1, "x:y"], "b": 2}, id="lists"),
        pytest.param(
            "a:\n  - b: 1\n    c:\n      - 2\n  - b: 3\n",
            {"a": [{"b": 1, "c": [2]}, {"b": 3}]},
            id="lists of mappings",
        ),
        pytest.param("a:\n  - b:\n      c: 1\n", {"a": [{"b": {"c": 1}}]}, id="a mapping in an item"),
    ],
)
def test_what_is_read_by_lines(text: str, want: object) -> None:
    assert plain_value(text, MOST) == by_events(text) == want


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("a: 1", id="no last line break"),
        pytest.param("a:\n", id="an empty value"),
        pytest.param("a: \n", id="a space at the end"),
        pytest.param("a: no\n", id="an ambiguous word"),
        pytest.param("y: 1\n", id="an ambiguous key"),
        pytest.param("a: 1\na: 2\n", id="a key twice"),
        pytest.param("a: 1\n  b\n", id="a value on two lines"),
        pytest.param("a:\n- 1\n", id="a list that is not set in"),
        pytest.param("a:\n    b: 1\n", id="set in by four"),
        pytest.param("a:\n  b: 1\n c: 2\n", id="set in by one"),
        pytest.param("a:\n  - 1\n  b: 2\n", id="a key among items"),
        pytest.param("- 1\n", id="a list on top"),
        pytest.param("word\n", id="a scalar on top"),
        pytest.param("a: [1]\n", id="flow style"),
        pytest.param("a: |\n  b\n", id="a block"),
        pytest.param("a: 1 # c\n", id="a comment"),
        pytest.param("a: 1\r\n", id="a Windows line end"),
        pytest.param("a: &b 1\n", id="an anchor"),
        pytest.param("---\na: 1\n", id="a document marker"),
        pytest.param("a: ä\n", id="other letters"),
        pytest.param(f"a: {'x' * 600}\n", id="a long line"),
        pytest.param("".join(f"{'  ' * n}a:\n" for n in range(30)) + f"{'  ' * 30}a: 1\n", id="deep"),
        pytest.param("a: 1\n" * (MOST + 1), id="many lines"),
    ],
)
def test_what_is_left_to_the_parser(text: str) -> None:
    assert plain_value(text, MOST) is None


def test_lines_are_not_remembered_without_bound() -> None:
    for number in range(20_000):
        assert plain_value(f"a: {number}\n", MOST) == {"a": number}
    assert len(plain_yaml._lines) <= 8192
