"""Parts of the calendar: free nodes by time, quotes with whom they delay, the length in view, colours (G3, D2, E4)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

import pytest

from portal.pages.user.calendar_time import usual_zoom
from schemas.reading.units import format_instant, parse_instant
from tests.support.page_reader import Found, page
from tests.support.portal import Site
from tests.support.world import START, cluster

SOON = format_instant(START + timedelta(minutes=90))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Four nodes in east: three are held for six hours, and a request of low priority waits for all four."""
    made = Site(tmp_path_factory.mktemp("site"), {"clusters/east.yaml": cluster("east", nodes=4)})
    made.file("vision/train", nodes=3, duration="6h", clusters=["east"])
    made.settle()
    made.pass_time(3)
    made.file("nlp/secret", nodes=4, duration="4h", clusters=["east"], priority=50)
    made.pass_time(3)
    yield made
    made.close()


def part(site: Site, query: str, who: str = "bo-owner") -> Found:
    return page(site.client(who), f"/calendar/free?{query}")


def numbers(found: Found) -> list[int]:
    return [int(text) for text in re.findall(r"<title>(\d+) nodes? of", found.html)]


def test_free_nodes_by_time_are_those_of_the_capacity(site: Site) -> None:
    """A strip per shape, in the columns of the axis, in numbers and not in colours alone."""
    found = part(site, "cluster=east&zoom=day")
    rows = site.client("bo-owner").get("/api/v1/tables/capacity", params={"cluster": "east", "hours": 24})
    free = [row["free"] for row in rows.json()["data"]["items"]]
    merged = [one for number, one in enumerate(free) if number == 0 or free[number - 1] != one]
    assert numbers(found) == merged[: len(numbers(found))]
    assert numbers(found)[:2] == [1, 0]
    assert "style=" not in found.html.partition("<main")[2]


def test_when_so_many_nodes_are_free(site: Site) -> None:
    """In a sentence with a link to the request; looked for beyond the time in view."""
    found = part(site, "cluster=east&zoom=day&need=4")
    (line,) = re.findall(r"H100-80GB: .*", found.text)
    begin = parse_instant(re.findall(r'<a href="/requests/new[^"]*"><time datetime="([^"]+)"', found.html)[0])
    assert timedelta(hours=9) < begin - START < timedelta(hours=12)
    assert line.startswith(f"H100-80GB: Nov 21, {begin:%H:%M} on")
    assert f"nodes=4&amp;notBefore={begin:%Y-%m-%dT%H}" in found.html.replace("%3A", ":")
    assert "H100-80GB: now to Nov 21" in part(site, "cluster=east&need=1").text
    assert "has only 4 nodes" in part(site, "cluster=east&need=9").text


def test_free_nodes_name_nothing_of_others(site: Site) -> None:
    assert "secret" not in part(site, "need=4").html
    assert "Free nodes of H100-80GB" in part(site, "").html
    assert "Free nodes of H100-80GB" not in part(site, "", "eve-editor").html


def test_a_quote_says_its_priority_and_whom_it_delays(site: Site) -> None:
    """As the form for a new request: of another workspace's request only that there is one."""
    client = site.client("bo-owner")
    asked = f"slice=vision&nodes=4&gpus=8&shape=H100-80GB&cluster=east&duration=4h&notBefore={SOON}"
    low = page(client, f"/calendar/quote?{asked}&priority=10")
    assert "It delays no other request." in low.text
    assert "With priority 10." in low.text
    usual = page(client, f"/calendar/quote?{asked}")
    assert "It delays 1 request. A lower priority may delay none." in usual.text
    assert "With priority 101." in usual.text
    assert "This is later than you picked" in usual.text
    assert "secret" not in usual.html
    href = usual.links["Request this"]
    assert "priority=101" in href
    form = page(client, href)
    assert "It delays 1 request. A lower priority may delay none." in form.text


def test_a_quote_that_is_refused_says_why_in_words(site: Site) -> None:
    client = site.client("bo-owner")
    assert "not a duration" in page(client, "/calendar/quote?slice=vision&nodes=1&duration=soon").text
    told = page(client, "/calendar/quote?slice=nlp&nodes=1&duration=1h")
    assert "workspace nlp" in told.text
    assert "secret" not in told.html


@pytest.mark.parametrize(
    ("duration", "want"),
    [("4h", "day"), ("2d", "week"), ("9d", "2weeks")],
)
def test_the_length_in_view_suits_what_is_planned(tmp_path, duration: str, want: str) -> None:
    """Names have room in half of the bars; the address overrules it, and links keep it."""
    site = Site(tmp_path)
    site.file("vision/train", nodes=1, duration=duration, clusters=["west"])
    site.settle()
    assert site.view.once_planned(usual_zoom) == want
    found = page(site.client("bo-owner"), "/calendar")
    assert f'"zoom":"{want}"' in found.html
    assert '"zoom":"30days"' in page(site.client("bo-owner"), "/calendar?zoom=30days").html
    site.close()


def test_bars_can_be_coloured_by_workspace(site: Site) -> None:
    """With a legend by name; who sees one workspace is not asked."""
    found = page(site.client("ada-owner"), "/calendar?colour=workspace")
    assert '"hues":{"nlp":0,"vision":1}' in found.html
    legend = found.html.partition("Colours of workspaces")[2].partition("</ul>")[0]
    assert re.findall(r"</svg>(\w+)</li>", legend)[:2] == ["nlp", "vision"]
    assert '"hues":{}' in page(site.client("ada-owner"), "/calendar").html
    assert 'name="colour"' not in page(site.client("bo-owner"), "/calendar").html
