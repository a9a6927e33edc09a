"""The words of pages: one word per thing, reasons in plain English, one clock for all countdowns."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from jinja2 import Environment

from portal.pages import plain_words
from portal.pages.html import environment, said
from portal.pages.plain_words import APPROVALS, CAUSES, WAITS_FOR, nearest_limit, reason_words
from scheduler.reasons import Reason
from schemas.rules.event_reasons import EventReason
from schemas.status.gpr_status import Cause

NOW = datetime(2026, 11, 21, 8, 0, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("sentence", "want"),
    [
        pytest.param(
            "Its slice runs vision/a, and a slice runs one request at a time.",
            "Its workspace runs vision/a, and a workspace runs one request at a time.",
            id="a slice is a workspace",
        ),
        pytest.param("Slices of vision", "Workspaces of vision", id="at the beginning, and several"),
        pytest.param("slice/slice in slices/x/slice.yaml", "slice/slice in slices/x/slice.yaml", id="names stay"),
        pytest.param("run `egs slice edit` for a slice", "run `egs slice edit` for a workspace", id="commands stay"),
        pytest.param(
            "moved because of HigherRankArrived (nlp/x) and NodeLost (east/n1).",
            "moved because a more urgent request came (nlp/x) and a node was lost (east/n1).",
            id="causes are said",
        ),
        pytest.param("GpuHot is over: GPU 6", "GPU hot is over: GPU 6", id="names of events are said"),
        pytest.param("it is 0d6h0m but 1d0h0m is allowed", "it is 6h but 1d is allowed", id="durations are short"),
        pytest.param("MyHigherRankArrivedTest", "MyHigherRankArrivedTest", id="only whole words"),
    ],
)  # fmt: skip
def test_a_sentence_in_the_words_of_pages(sentence: str, want: str) -> None:
    assert plain_words.said(sentence) == want


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("GPRDuration50", "Half of its time used"),
        ("ExtensionRefused", "Extension refused"),
        ("GpuHot", "GPU hot"),
        ("Xid79", "Xid 79"),
        ("QuotaExceeded", "Quota exceeded"),
        ("", ""),
    ],
)
def test_a_name_in_words(name: str, want: str) -> None:
    assert reason_words(name) == want


@pytest.mark.parametrize("name", [*map(str, EventReason), *map(str, Cause), *map(str, Reason), *APPROVALS])
def test_no_name_of_programs_is_shown_as_it_is(name: str) -> None:
    """Each reads as words, and the tables know every cause and reason."""
    assert not re.search(r"[a-z][A-Z]", reason_words(name).replace("PCIe", "").replace("NVLink", ""))
    assert set(CAUSES) == set(Cause)
    assert set(WAITS_FOR) == set(Reason)


def _said(sentence: str) -> str:
    made = Environment(autoescape=True)
    made.filters["said"] = said
    return made.from_string("{{ sentence | said }}").render(sentence=sentence, now=NOW)


def test_a_wait_in_a_sentence_is_that_of_the_pages_clock() -> None:
    """What the controller counted at its last cycle would differ from the countdown beside it."""
    told = _said("It starts at 2026-11-21T12:28:00Z (4h 30m) in east/h100; see `egs why`. <b>")
    assert '<time datetime="2026-11-21T12:28:00Z"' in told
    assert '(<span data-until="2026-11-21T12:28:00Z">in 4h 27m</span>) in east/h100' in told
    assert "<code>egs why</code>" in told
    assert "&lt;b&gt;" in told
    assert ">now</span>" in _said("until 2026-11-21 08:00Z (2m left).")
    assert ">in 59m 30s</span>" in _said("until 2026-11-21T09:00:00Z (1h left).")


def test_a_countdown_has_its_text_without_scripts() -> None:
    page = environment().from_string(
        '{% import "macros.html" as ui with context %}{{ ui.countdown("2026-11-21T10:05:00Z") }}'
    )
    assert page.render(now=NOW) == '<span data-until="2026-11-21T10:05:00Z">in 2h 4m</span>'


@pytest.mark.parametrize(
    ("values", "want"),
    [
        pytest.param(
            {"tempC": 61, "memoryTempC": 70, "powerW": 353}, "power", id="cool, but at its power limit"
        ),
        pytest.param({"tempC": 86, "powerW": 300}, "temperature", id="hot"),
        pytest.param({"tempC": None, "powerW": None}, "", id="not measured"),
    ],
)
def test_the_limit_that_a_gpu_is_near(values: dict[str, float | None], want: str) -> None:
    assert nearest_limit(values, {"tempC": 87, "memoryTempC": 95, "powerW": 348}) == want
