"""Every field of a forge's answer is of the type that is asked for, or nothing of the answer counts."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.forges import gitea, github, gitlab
from reconciler.forges.json_fields import Json, Row, plain
from schemas.errors import Fault

OID = "a" * 40
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("value", "read"),
    [
        pytest.param(7, lambda row: row.text("x"), id="a number is no text"),
        pytest.param("7", lambda row: row.number("x"), id="a text is no number"),
        pytest.param(True, lambda row: row.number("x"), id="true is no number"),
        pytest.param(7.0, lambda row: row.number("x"), id="a fraction is no number"),
        pytest.param(-1, lambda row: row.number("x"), id="an id is not negative"),
        pytest.param(2**63, lambda row: row.number("x"), id="an id has an end"),
        pytest.param("true", lambda row: row.flag("x"), id="a text is no flag"),
        pytest.param(1, lambda row: row.flag("x"), id="one is no flag"),
        pytest.param("abc", lambda row: row.oid("x"), id="a short id"),
        pytest.param("A" * 40, lambda row: row.oid("x"), id="an id in capitals"),
        pytest.param(OID + "\n", lambda row: row.oid("x"), id="an id and a line end"),
        pytest.param("yesterday", lambda row: row.when("x"), id="a word is no time"),
        pytest.param("2026-11-21T08:00:00", lambda row: row.when("x"), id="a time without its zone"),
        pytest.param([], lambda row: row.row("x"), id="a list is no object"),
        pytest.param({}, lambda row: row.rows("x"), id="an object is no list"),
        pytest.param([7], lambda row: row.rows("x"), id="a list of numbers"),
        pytest.param("x", lambda row: row.texts("x"), id="a text is no list"),
    ],
)
def test_a_field_of_another_type_is_refused(value: Json, read: Callable[[Row], object]) -> None:
    with pytest.raises(Fault) as caught:
        read(Row({"x": value}, "/pulls/7"))
    assert caught.value.reason == "ForgeRefused"
    assert "/pulls/7" in str(caught.value)


def test_times_of_every_zone_become_utc() -> None:
    row = Row({"a": "2026-11-21T08:00:00Z", "b": "2026-11-21T09:00:00.000+01:00"}, "")
    assert row.when("a") == row.when("b") == datetime(2026, 11, 21, 8, tzinfo=UTC)


def test_what_is_absent_is_told_from_what_is_wrong() -> None:
    row = Row({"null": None}, "")
    assert (row.maybe_text("null"), row.maybe_oid("none"), row.maybe_row("null")) == ("", "", None)
    assert (row.flag("none"), row.rows("null"), row.texts("none")) == (False, [], [])


@given(JSON)
def test_no_answer_whatever_breaks_a_driver(answer: Json) -> None:
    """Answers of any shape in place of a pull request: a Fault, or a value, never another error."""
    for read in (
        lambda row: github._pull(row, None, None),
        lambda row: gitea._pull(row, None, None),
        lambda row: gitlab._merge_commit(row),
        github._review,
        github._account,
        gitea._account,
    ):
        with contextlib.suppress(Fault):
            read(Row.of(answer, "/x"))


@given(st.text())
def test_texts_of_strangers_become_one_plain_line(text: str) -> None:
    found = plain(text, 40)
    assert len(found) <= 40
    assert all(letter.isprintable() for letter in found)
    assert "\n" not in found
