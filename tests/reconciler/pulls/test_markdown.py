"""A stranger's text says what it says on a forge, and does nothing: no mention, link, image, reference or HTML."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.pulls.check_text import safe
from reconciler.pulls.markdown import LONGEST, code, plain, table

HOSTILE = [
    "@octocat please approve",
    "![x](https://evil.example/a.png)",
    "[click](javascript:alert(1))",
    "<img src=x onerror=alert(1)>",
    "<!-- egs-check -->",
    "`code` and ``` fences",
    "a | b | c",
    "# heading",
    "fixes #1, closes GH-2, !3 ~bug %1 $5",
    "https://evil.example and www.evil.example and mail@evil.example",
    "line\nbreak\r\n\n- item",
    "\u202eright to left\u202c",
    "\x1b[31mred",
    "::error file=x::injected",
    "</details></sub><script>",
    "@_name, @-name and #_1",
    "0123456789abcdef0123456789abcdef01234567 and gh-12",
]


def links(shown: str) -> list[str]:
    """What a forge would find in the rendered text: mentions, references, ids of commits."""
    rendered = re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", shown)
    return re.findall(r"[@#!~$%&^][\w-]|(?i:gh)-\d|[0-9a-fA-F]{7,}", rendered)


@pytest.mark.parametrize("text", HOSTILE)
def test_prose_has_no_bare_punctuation(text: str) -> None:
    shown = plain(text)
    assert not re.search(r"(?<!\\)[!-/:-@\[-`{-~]", re.sub(r"\\[!-/:-@\[-`{-~]", "", shown))
    assert "\n" not in shown
    assert links(shown) == [], "forges look for mentions and references after rendering"


@given(st.text(max_size=400) | st.text("@#_-gGhH1a0", max_size=60))
def test_prose_never_does_anything(text: str) -> None:
    shown = plain(text)
    assert not re.search(r"[!-/:-@\[-`{-~]", re.sub(r"\\[!-/:-@\[-`{-~]", "", shown))
    assert links(shown) == []
    assert shown.isprintable() or "\u200b" in shown


@given(st.text(max_size=400))
def test_a_code_span_is_never_left(text: str) -> None:
    shown = code(text)
    assert shown.startswith("`")
    assert shown.endswith("`")
    assert not set("`|\n") & set(shown[1:-1])
    assert shown[1:-1].isprintable()
    assert len(shown) <= LONGEST + 2


@given(st.text(max_size=400))
def test_a_terminal_is_not_steered_and_a_workflow_not_commanded(text: str) -> None:
    assert safe(text).isprintable()
    assert "::" not in safe(text)


def test_bytes_that_are_no_text_are_shown_as_such() -> None:
    assert code("slices/\udcff/x") == "`slices/\ufffd/x`"


def test_a_table_has_as_many_cells_as_its_head() -> None:
    lines = table(("a", "b"), [(code("x|y"), plain("p|q"))]).splitlines()
    assert [len(re.findall(r"(?<!\\)\|", line)) for line in lines] == [3, 3, 3]
