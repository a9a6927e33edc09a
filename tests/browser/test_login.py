"""Logging in and out in a browser, with and without scripts (D5)."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.xdist_group("browser")


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_a_visitor_comes_back_to_the_page_that_they_wanted(visitor, url, scripts):
    someone = visitor(url, java_script_enabled=scripts)
    page = someone.open("/requests?which=all")
    expect(page).to_have_title("Log in · EGS")
    page.fill("input[name=key]", "5067bd55-1aef-4c84-8987-3e966e917f07")
    someone.expected = ("401",)
    page.click("main button")
    expect(page.get_by_role("alert")).to_have_attribute("title", "ApiKeyNotFound")
    someone.log_in("bo-editor", "/requests?which=all")
    expect(page.locator("h1")).to_have_text("GPU requests")
    assert page.url.endswith("/requests?which=all")


def test_after_a_logout_no_page_is_shown(visitor, url):
    page = visitor(url).log_in("bo-editor", "/requests")
    page.click(".person summary")
    page.get_by_role("button", name="Log out").click()
    expect(page.locator("main .notice")).to_contain_text("You are logged out")
    page.goto(url + "/requests")
    expect(page).to_have_title("Log in · EGS")
