"""Strips of the calendar as text: what each slot of time shows (G3)."""

from __future__ import annotations

from typing import Any

import pytest

from egs.commands.timelines.strips import Span, strip

SPAN = Span(0, 1000, 10)


def bar(kind: str, begin: int, until: int | None = None, request: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {"kind": kind, "begin": begin}
    found |= {"until": until} if until is not None else {}
    return found | ({"request": request} if request else {})


@pytest.mark.parametrize(("bars", "want"), [
    pytest.param([], "..........", id="a free node"),
    pytest.param([bar("lease", 0, 500, "a/x")], "|a/x=.....", id="a lease with its name"),
    pytest.param([bar("lease", -500, 500, "a/x")], "<a/x=.....", id="one that began earlier"),
    pytest.param([bar("lease", 0, None, "a/train")], "|a/train==", id="one without an end"),
    pytest.param([bar("lease", 0, 700, "vision/train")], "|train=...", id="with less room without its slice"),
    pytest.param([bar("lease", 0, 500, "vision/train")], "|tra=.....", id="with even less cut off"),
    pytest.param([bar("promise", 400, 1000)], "....|othe-", id="one of others has no name"),
    pytest.param([bar("planned", 200, 500, "a/xyz")], "..|~~.....", id="no name without room for three letters"),
    pytest.param([bar("planned", 210, 220, "a/x")], "..~.......", id="the shortest bar has a slot"),
    pytest.param([bar("maintenance", 300, 900)], "...|main#.", id="maintenance says so"),
    pytest.param([bar("unreserved", 800)], "........|/", id="a node that does not exist yet"),
    pytest.param([bar("out", 0)], "|out of sx", id="a node that is out says so"),
    pytest.param([bar("out", 0), bar("lease", 0, 500, "a/x")], "|a/x=of sx", id="a lease is shown before it"),
    pytest.param(
        [bar("lease", 0, 500, "a/x"), bar("promise", 500, 1000, "b/y")], "|a/x=|b/y-", id="one after the other",
    ),
    pytest.param(
        [bar("lease", 0, 520, "a/x"), bar("promise", 530, 1000, "b/y")], "|a/x=|b/y-", id="two in one slot",
    ),
    pytest.param([bar("lease", -200, 0, "a/x"), bar("lease", 1000, 1100, "b/y")], "..........", id="others times"),
])  # fmt: skip
def test_a_strip(bars: list[dict[str, Any]], want: str) -> None:
    assert strip(bars, SPAN) == want
