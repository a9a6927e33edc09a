"""A session that ends while somebody types (browser check 8)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from playwright.sync_api import Request, expect

from tests.browser.conftest import Visitor
from tests.support.portal import Site

pytestmark = pytest.mark.xdist_group("browser")


def test_what_was_typed_stays_when_the_session_ends(visitor, site: Site, url: str) -> None:
    """And nothing asks again and again: at most one request in 15 seconds."""
    someone: Visitor = visitor(url)
    page = someone.log_in("bo-editor", "/requests?which=all")
    page.fill("input[name=q]", "typed")
    expect(page.get_by_text("No request matches")).to_be_visible()
    someone.expected = ("401",)
    site.clock.set(site.now + timedelta(hours=2))
    asked: list[Request] = []
    page.on("request", lambda request: asked.append(request))
    page.locator("input[name=q]").press_sequentially(" more")
    expect(page.locator("#session")).to_contain_text("You are logged out")
    expect(page.locator("input[name=q]")).to_have_value("typed more")
    before = len(asked)
    page.wait_for_timeout(3000)
    assert len(asked) - before <= 1
