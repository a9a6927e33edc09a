"""What the emitter writes is read back as the same data, in the form people would have written."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.reading.strict_yaml import FORBIDDEN, load
from schemas.reading.yaml_text import dump
from tests.support.profile import law

texts = st.text(max_size=40).filter(lambda text: not FORBIDDEN.search(text)) | st.text(
    "yesnotrufal0123456789._:-+eE #,'\"&*[]{}|>%@`~", max_size=12
)
numbers = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
data = st.recursive(
    texts | numbers | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


@given(data.filter(lambda value: value is not None))
@law(600)
def test_what_is_written_is_read_back(value: Any) -> None:
    again = load(dump(value).encode())
    assert again == value
    assert repr(again) == repr(value)  # 1 is not 1.0, true is not 1, -0.0 is not 0.0


@pytest.mark.parametrize(
    ("value", "want"),
    [
        pytest.param({"a": "word", "b": "two words"}, "a: word\nb: two words\n", id="plain where it can be"),
        pytest.param(
            {"a": "no", "on": "12"}, 'a: "no"\n"on": "12"\n', id="quoted where readers would differ"
        ),
        pytest.param({"at": "2026-11-21T08:00:00Z"}, "at: 2026-11-21T08:00:00Z\n", id="times are plain"),
        pytest.param({"d": "sha256:ab"}, "d: sha256:ab\n", id="a colon inside a word is plain"),
        pytest.param(
            {"a": "b: c", "d": "e #f", "g": " h"}, 'a: "b: c"\nd: "e #f"\ng: " h"\n', id="syntax is quoted"
        ),
        pytest.param({"a": [], "b": {}, "c": None}, "a: []\nb: {}\nc: null\n", id="empty things"),
        pytest.param(
            {"a": {"b": [1, {"c": 2, "d": [3]}]}},
            "a:\n  b:\n    - 1\n    - c: 2\n      d:\n        - 3\n",
            id="nesting",
        ),
        pytest.param([[1, 2], [3]], "- - 1\n  - 2\n- - 3\n", id="lists in lists"),
        pytest.param({"a": 1e22, "b": 1e-7}, f"a: 1{'0' * 22}.0\nb: 0.0000001\n", id="no exponents"),
        pytest.param({"a": "x" * 300}, f"a: {'x' * 300}\n", id="a long text stays on its line"),
        pytest.param({"a": "one\ntwo"}, 'a: "one\\ntwo"\n', id="line breaks are escaped"),
        pytest.param((1, (2,)), "- 1\n- - 2\n", id="tuples are lists"),
    ],
)
def test_how_it_is_written(value: Any, want: str) -> None:
    assert dump(value) == want


def test_keys_too_long_for_the_short_form_are_read_back() -> None:
    value = {"k" * 1500: {"a": 1}, "x": [{"é" * 1200: "v"}]}
    assert load(dump(value).encode()) == value


@pytest.mark.parametrize(
    "value",
    [{1: 2}, {"a": float("nan")}, pytest.param({"a": object()}, id="an object"), float("inf"), {1, 2}],
    ids=repr,
)
def test_what_is_no_plain_data_is_the_callers_mistake(value: Any) -> None:
    with pytest.raises(TypeError):
        dump(value)
