"""`/calendar` without a browser: its table, what is embedded, what a member may not see, refusals (G3, A1)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from schemas.reading.units import format_instant, parse_instant, seconds
from tests.support.portal import Site
from tests.support.world import START, cluster, slice_

ODD = "<script>alert(1)</script>"
HIDDEN = ("nlp", "tune", "secret", "cy@example.com")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    begin, end = (format_instant(START + timedelta(days=days)) for days in (1, 2))
    window = {"begin": begin, "end": end, "nodes": ["h100-4"], "reason": ODD}
    made = Site(
        tmp_path_factory.mktemp("site"),
        {
            "clusters/east.yaml": cluster("east", nodes=4, maintenance=[window]),
            "clusters/north.yaml": cluster("north", nodes=2),
            "slices/vision/slice.yaml": slice_(
                "vision", ("east", "west", "north"), owners=[{"email": "olga@example.com"}]
            ),
        },
    )
    made.file("vision/train", nodes=2, duration="6h", clusters=["east"], displayName=ODD)
    made.file("nlp/tune", nodes=2, duration="2h")
    made.settle()
    made.file("nlp/secret", nodes=4, duration="1h", clusters=["east"])
    made.settle()
    yield made
    made.close()


def page(site: Site, who: str = "bo-owner", query: str = "") -> str:
    with site.client(who) as client:
        answer = client.get(f"/calendar{query}", headers={"Accept": "text/html"})
    assert answer.status_code == 200, answer.text
    return answer.text


def embedded(text: str) -> dict[str, Any]:
    found = re.search(r'id="calendar-data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    told: dict[str, Any] = json.loads(found[1])
    return told


def test_the_table_says_what_the_chart_says(site: Site) -> None:
    """Without scripts and for screen readers: each node with what has it."""
    text = page(site)
    rows = re.findall(r'<th scope="row" class="name">(.*?)</th>', text)
    assert rows == ["h100-1", "h100-2", "h100-3", "h100-4", "h100-1", "h100-2", "h100-1", "h100-2"]
    assert 'href="/requests/vision/train">vision/train</a> has it' in text
    assert "another workspace's request has it" in text
    assert "another workspace's request starts" in text
    assert "Maintenance" in page(site, query="?zoom=week")
    assert text.count("Free all this time") == 4
    assert embedded(text)["data"]["total"] == 8


@pytest.mark.parametrize(
    "query", ["", "?zoom=day", "?zoom=30days", "?of=nlp", "?cluster=east", "?workspace=nlp"]
)
def test_a_member_finds_no_name_of_another_workspace(site: Site, query: str) -> None:
    """A1: in no cell, attribute, title or embedded text."""
    text = page(site, query=query)
    assert not [name for name in HIDDEN if name in text.replace("?of=nlp", "").replace("workspace=nlp", "")]


def test_no_text_of_people_ends_the_embedded_data(site: Site) -> None:
    """Names are text: nothing in them becomes an element."""
    text = page(site, "ada-owner")
    assert ODD not in text
    assert embedded(text)["data"]["rows"]


def test_an_admin_plans_maintenance_and_a_viewer_files_nothing(site: Site) -> None:
    assert "Plan maintenance" in page(site, "ada-owner")
    assert "Plan maintenance" not in page(site)
    assert "Ask for nodes" in page(site)
    viewer = page(site, "bo-viewer")
    assert "data-asks-quote" not in viewer
    assert (embedded(viewer)["files"], embedded(viewer)["works"]) == (False, [])


def test_own_bars_are_those_of_ones_workspaces(site: Site) -> None:
    """An admin who is listed in none sees all alike, unless they choose a workspace."""
    assert embedded(page(site))["own"] == ["vision"]
    assert embedded(page(site, "ada-owner"))["own"] == []
    assert embedded(page(site, "ada-owner", "?workspace=nlp"))["own"] == ["nlp"]


@pytest.mark.parametrize(("query", "begin", "hours"), [
    pytest.param("", "2026-11-21T08:00:00Z", "day", id="leases of hours have room in a day"),
    pytest.param("?zoom=2weeks", "2026-11-21T00:00:00Z", "2weeks", id="two weeks from midnight on"),
    pytest.param("?zoom=day", "2026-11-21T08:00:00Z", "day", id="a day from the full hour on"),
    pytest.param("?zoom=week&from=2026-12-24", "2026-12-24T00:00:00Z", "week", id="a date"),
    pytest.param("?from=2026-12-24T06:30Z", "2026-12-24T06:30:00Z", "day", id="a time"),
])  # fmt: skip
def test_the_time_in_view_is_in_the_address(site: Site, query: str, begin: str, hours: str) -> None:
    told = embedded(page(site, query=query))
    assert (told["from"], told["zoom"]) == (seconds(parse_instant(begin)), hours)


def test_filters_are_kept_in_the_links(site: Site) -> None:
    text = page(site, query="?cluster=east&zoom=week&free=true")
    assert 'href="/calendar?cluster=east&amp;free=true&amp;zoom=30days"' in text
    assert embedded(text)["filters"] == {"cluster": "east", "free": "true"}


def test_nothing_matches(site: Site) -> None:
    text = page(site, query="?shape=B200")
    assert "No node matches." in text
    assert 'href="/calendar?zoom=day">Show all nodes' in text


def test_in_no_workspace_there_is_a_next_step(site: Site) -> None:
    text = page(site, "eve-editor")
    assert "You are in no workspace yet" in text
    assert 'href="/workspaces"' in text


def test_a_time_that_is_none(site: Site) -> None:
    with site.client() as client:
        answer = client.get("/calendar?from=soon", headers={"Accept": "text/html"})
    assert answer.status_code == 422
    assert "write a date such as" in answer.text


def test_a_long_list_has_pages(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("portal.pages.user.calendar_page.TABLE_ROWS", 3)
    text = page(site, query="?first=3")
    assert "Nodes 4 to 6 of 8" in text
    assert "first=6" in text
