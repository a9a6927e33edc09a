"""From the wish to the promise without a mouse, and what appears by itself (browser checks 3, 5, 18)."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import WAIT_MS, Visitor
from tests.support.portal import Site

pytestmark = pytest.mark.xdist_group("browser")
MOST_STEPS = 80
"""Presses of Tab to get anywhere on a page."""


def tab_to(page: Page, name: str) -> None:
    """Press Tab until the control of that accessible name has the focus."""
    for _ in range(MOST_STEPS):
        page.keyboard.press("Tab")
        if (
            page.evaluate("document.activeElement.labels?.[0]?.innerText ?? document.activeElement.innerText")
            == name
        ):
            return
    raise AssertionError(f"no control {name} is reached by keyboard")


def test_a_request_is_filed_without_a_mouse_and_appears_elsewhere(visitor, site: Site, url: str) -> None:
    """A colleague's open list shows it live, with the promise; their focus stays where it was."""
    colleague: Visitor = visitor(url)
    watched = colleague.log_in("ada-owner", "/requests")
    watched.focus("input[name=q]")
    watched.evaluate("window.sameDocument = true")
    page = visitor(url).log_in("bo-editor", "/requests/new")
    tab_to(page, "Name")
    page.keyboard.type("by hand")
    tab_to(page, "GPU nodes")
    page.keyboard.press("Control+a")
    page.keyboard.type("2")
    tab_to(page, "Reserve for")
    page.keyboard.press("Control+a")
    page.keyboard.type("3h")
    tab_to(page, "Request GPUs")
    page.keyboard.press("Enter")
    page.wait_for_url("**/requests/vision/by-hand-*")
    site.settle()
    row = watched.locator("tbody tr", has_text="by hand")
    expect(row).to_contain_text("Provisioning", timeout=WAIT_MS)
    assert watched.evaluate("window.sameDocument")
    assert watched.evaluate("document.activeElement.name") == "q"


def test_a_slip_is_shown_with_its_cause_as_soon_as_it_is_committed(visitor, site: Site, url: str) -> None:
    site.file("vision/first", nodes=4, duration="2h", clusters=["east"])
    site.file("vision/mine", nodes=4, duration="1h", clusters=["east"])
    site.settle()
    page = visitor(url).log_in("bo-editor", "/requests/vision/mine")
    expect(page.locator("main")).to_contain_text("Queued")
    site.file("nlp/urgent", nodes=4, duration="1h", priority=200, clusters=["east"])
    site.settle()
    expect(page.locator("main")).to_contain_text("a more urgent request came", timeout=WAIT_MS)
    assert "nlp/urgent" not in page.content()
    expect(page.locator("main")).to_contain_text("another workspace's request")
