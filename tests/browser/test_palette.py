"""The palette by keyboard."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.xdist_group("browser")


def test_it_opens_finds_and_goes_without_a_mouse(visitor, site, url):
    site.file("vision/train", nodes=2, duration="6h")
    site.settle()
    page = visitor(url).log_in("bo-editor", "/requests")
    page.keyboard.press("Control+k")
    field = page.locator("#palette input")
    expect(field).to_be_focused()
    field.fill("8 H100 for 2h")
    expect(page.locator(".hits .name").first).to_contain_text("1 node × 8 H100-80GB for 2h in")
    page.keyboard.press("Escape")
    expect(page.locator("#palette")).to_be_hidden()
    page.keyboard.press("Control+k")
    field.fill("requests")
    expect(page.locator(".hits [aria-selected=true]")).to_contain_text("GPU requests")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{url}/requests")
