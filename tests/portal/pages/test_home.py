"""The first page: H9. What it tells whom, and that all of it is of the caller's workspaces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from reconciler.telemetry.telemetry_port import Latest
from tests.support.page_reader import Found, page
from tests.support.portal import Site
from tests.support.world import slice_


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """vision runs one and waits with two; nlp moved one of them and asks an admin for another."""
    nlp = slice_("nlp", members=[{"email": "cy@example.com"}], quota={"gpus": 24})
    made = Site(tmp_path_factory.mktemp("site"), {"slices/nlp/slice.yaml": nlp})
    made.file("vision/train", nodes=2, duration="6h", displayName="Llama")
    made.settle()
    made.file("vision/next", nodes=4, duration="3h")
    made.file("vision/wide", nodes=9, duration="3h")
    made.pass_time(30)
    made.file("nlp/urgent", nodes=3, duration="2h", priority=250)
    made.file("nlp/secret", nodes=4, duration="2h")
    made.settle()
    yield made
    made.close()


def card(found: Found, heading: str) -> str:
    """The text of the card with that heading."""
    cards = [one.text for one in found.root.all("section")]
    return next(text for text in cards if text.startswith(heading))


def test_it_says_when_one_starts_and_why_not_earlier(site: Site) -> None:
    found = page(site.client("bo-viewer"), "/")
    start = site.view.facts.requests["vision/next"].estimated_start_time
    assert start is not None
    told = card(found, "Next start")
    assert f"next, Nov {start.day}, {start:%H:%M}" in told
    assert "Its workspace runs vision/train until" in told
    assert f'data-until="{start:%Y-%m-%dT%H:%M:%SZ}"' in found.html


def test_it_says_what_runs_and_what_waits(site: Site) -> None:
    found = page(site.client("bo-viewer"), "/")
    assert "Running 1 Llama 2 nodes H100-80GB in east" in card(found, "Running")
    told = card(found, "Waiting")
    assert told.startswith("Waiting 2")
    assert "wide no start yet" in told


def test_it_says_what_is_free_now_and_when_more_is(site: Site) -> None:
    """By shape, of the pools that the workspace may use: the figures of `egs get capacity`."""
    client = site.client("bo-viewer")
    rows = client.get("/api/v1/tables/capacity", params={"hours": 72}).json()["data"]["items"]
    now, more = rows[0], next(row for row in rows if row["free"] > rows[0]["free"])
    told = card(page(client, "/"), "Free now")
    assert f"{now['free']} of {now['nodes']}" in told
    assert f"{more['free']} from Nov" in told


def test_it_says_what_the_month_costs(site: Site) -> None:
    """Of the caller's workspaces alone, running leases until now."""
    client = site.client("bo-viewer")
    (used,) = client.get("/api/v1/usage").json()["data"]["items"]
    assert f"{used['runningCost']:,.2f} USD" in card(page(client, "/"), "This month")


def test_warnings_are_those_of_the_caller(site: Site) -> None:
    """B10: a name of another workspace is nowhere on the page."""
    found = page(site.client("bo-viewer"), "/")
    assert "Delayed vision/next" in card(found, "Latest warnings")
    assert "nlp" not in found.html
    assert "secret" not in found.html


def test_the_hottest_gpu_comes_after_the_page(site: Site) -> None:
    """No page waits for a source; who holds nothing is told so."""
    assert 'hx-trigger="load, every 30s"' in page(site.client("bo-viewer"), "/").html
    told = page(site.client("bo-viewer"), "/hottest").text
    assert "°C" in told
    assert "GPU 0 on h100-" in told
    assert "You hold no GPU now" in page(site.client("eve-editor"), "/hottest").text


def test_without_a_source_it_says_so_and_shows_no_zero(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Browser check 22: absent is absent."""

    class Silent:
        def latest(self, nodes: object, now: object) -> Latest:
            return Latest()

    parts = site.portal.app.state.parts
    silent = replace(parts, sources=replace(parts.sources, telemetry=Silent()))
    monkeypatch.setattr(site.portal.app.state, "parts", silent)
    told = page(site.client("bo-viewer"), "/hottest").text
    assert "No source has values of your GPUs" in told
    assert "0 °C" not in told


def test_an_admin_sees_what_needs_them(site: Site) -> None:
    found = page(site.client("ada-owner"), "/")
    assert "Needs you: 1 request waits for an approval" in found.text
    assert found.links["Decide"] == "/admin/approvals"
    assert "Needs you" not in page(site.client("bo-viewer"), "/").text


def test_who_has_no_workspace_is_told_to_ask_for_one(site: Site) -> None:
    found = page(site.client("eve-editor"), "/")
    assert found.links["Ask for a workspace"] == "/workspaces/new"
    assert "Next start" not in found.text


def test_a_chosen_workspace_narrows_every_card(site: Site) -> None:
    found = page(site.client("ada-owner"), "/?workspace=nlp")
    assert "vision/" not in card(found, "Waiting")
    assert "Llama" not in found.text
