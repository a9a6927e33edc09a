"""Asking for GPUs in a browser: D1 to D4, D15 to D18, and browser checks 4 to 7 and 14."""

from __future__ import annotations

import pytest
from playwright.sync_api import Dialog, Page, expect

from tests.browser.conftest import Visitor
from tests.support.portal import Site
from tests.support.world import gpr, gpr_path

pytestmark = pytest.mark.xdist_group("browser")

STRANGE = "<img src=x onerror=alert(1)> \u05e9\u05dc\u05d5\u05dd"


def filed(site: Site) -> list[str]:
    return [
        line.rpartition("|")[2] for line in site.log() if line.rpartition("|")[2].startswith("Create vision/")
    ]


def waiting(site: Site, *names: str) -> None:
    """One request runs all day, so that these wait."""
    site.file("vision/train", nodes=2, duration="20h")
    site.settle()
    for name in names:
        site.file(f"vision/{name}", nodes=1, duration="1h")
    site.settle()


def test_quotes_come_while_one_types_and_the_row_appears(visitor, site: Site, url: str) -> None:
    """Browser check 5: quote, pick, file, and the list of another tab has it without a reload."""
    someone: Visitor = visitor(url)
    page = someone.log_in("bo-editor", "/requests/new")
    other = page.context.new_page()
    other.goto(f"{url}/requests")
    expect(other.locator("#rows")).to_contain_text("No request is waiting")
    rows = page.locator("#quotes tbody tr")
    expect(rows).to_have_count(3)
    page.get_by_label("GPU nodes").fill("3")
    expect(rows).to_have_count(2)  # west has two nodes
    page.get_by_label("Name", exact=True).fill("Quick try")
    page.locator("#p-1").check()
    page.locator(".copy-as summary").click()
    expect(page.locator("#copy-1")).to_contain_text("clusters:")
    expect(page.locator("#copy-1")).to_contain_text("displayName: Quick try")
    shown = page.locator("#copy-1").text_content() or ""
    page.get_by_role("button", name="Request GPUs").click()
    expect(page.locator("h1")).to_have_text("Quick try")
    path = shown.splitlines()[0].removeprefix("# ")
    assert (site.main(path) or "") in shown
    expect(other.locator("#rows")).to_contain_text("Quick try")
    site.settle()
    expect(page.locator("#request .state").first).to_have_text("Provisioning")
    assert len(filed(site)) == 1


def test_a_double_click_files_once(visitor, site: Site, url: str) -> None:
    page = visitor(url).log_in("bo-editor", "/requests/new")
    page.get_by_role("button", name="Request GPUs").dblclick()
    expect(page.locator("#request")).to_be_visible()
    assert len(filed(site)) == 1


def test_going_back_and_sending_again_files_once(visitor, site: Site, url: str) -> None:
    """Browser check 6: the form that comes back is the same form."""
    someone: Visitor = visitor(url)
    page = someone.log_in("bo-editor", "/requests/new")
    page.get_by_role("button", name="Request GPUs").click()
    expect(page.locator("#request")).to_be_visible()
    first = page.url
    page.go_back()
    page.get_by_role("button", name="Request GPUs").click()
    expect(page.locator("#request")).to_be_visible()
    assert page.url == first
    assert len(filed(site)) == 1


def no_scripts(visitor, url: str) -> Visitor:
    found: Visitor = visitor(url, java_script_enabled=False)
    return found


def test_without_scripts_one_lists_files_and_cancels(visitor, site: Site, url: str) -> None:
    """Browser check 4."""
    waiting(site)
    page = no_scripts(visitor, url).log_in("bo-editor", "/requests")
    page.get_by_role("link", name="New request").click()
    page.get_by_label("GPU nodes").fill("2")
    page.get_by_label("Name", exact=True).fill(STRANGE)
    page.get_by_role("button", name="Get wait time").click()
    expect(page.locator("#quotes tbody tr")).to_have_count(3)
    expect(page.get_by_label("GPU nodes")).to_have_value("2")
    page.get_by_role("button", name="Request GPUs").click()
    expect(page.locator("h1")).to_have_text(STRANGE)
    site.settle()
    page.goto(f"{url}/requests?which=waiting")
    row = page.locator("tbody tr")
    expect(row).to_contain_text(STRANGE)
    row.get_by_role("checkbox").check()
    page.get_by_role("button", name="Cancel picked").click()
    site.settle()
    page.goto(f"{url}/requests?which=waiting")
    expect(page.locator("#rows")).to_contain_text("No request matches")
    assert len(filed(site)) == 1


def test_what_is_picked_and_opened_stays_when_the_list_refreshes(visitor, site: Site, url: str) -> None:
    """D15: a new row comes by itself; then several are cancelled after one question."""
    waiting(site, "one", "two")
    page: Page = visitor(url).log_in("bo-editor", "/requests?sort=name")
    page.get_by_label("Pick vision/one").check()
    page.get_by_label("Pick vision/two").check()
    page.locator("#r-vision-two summary").click()
    expect(page.locator("#cancel-several")).to_have_text("Cancel 2 picked")
    site.file("vision/three", nodes=1, duration="1h")
    site.settle()
    expect(page.locator("#r-vision-three")).to_be_visible()
    expect(page.get_by_label("Pick vision/one")).to_be_checked()
    expect(page.locator("#r-vision-two details")).to_have_attribute("open", "")
    expect(page.locator("#cancel-several")).to_have_text("Cancel 2 picked")
    asked: list[str] = []

    def agree(dialog: Dialog) -> None:
        asked.append(dialog.message)
        dialog.accept()

    page.on("dialog", agree)
    page.locator("#cancel-several").click()
    expect(page.locator("#cancel-several")).to_have_text("Cancel picked")
    assert asked == ["Cancel the picked requests? They lose their places in the queue."]
    site.settle()
    expect(page.locator("tbody tr")).to_have_count(2)


def test_an_edit_of_what_somebody_else_changed_keeps_the_input(visitor, site: Site, url: str) -> None:
    """Browser check 7: also while the page refreshes around the form."""
    waiting(site, "next")
    someone: Visitor = visitor(url)
    page = someone.log_in("bo-editor", "/requests/vision/next")
    page.locator("#edit > summary").click()
    page.get_by_label("Priority").fill("180")
    site.commit({gpr_path("vision/next"): gpr("vision", "next", nodes=3, duration="5h")})
    site.settle()
    expect(page.locator("#request")).to_contain_text("3 whole nodes")
    expect(page.get_by_label("Priority")).to_have_value("180")
    page.on("dialog", lambda dialog: dialog.accept())
    someone.expected = ("409",)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("changed since you opened the form")
    expect(page.get_by_label("Priority")).to_have_value("180")
    expect(page.locator(".differences")).to_contain_text("GPU nodes")
    page.get_by_label("GPU nodes").fill("3")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#request")).to_contain_text("Priority 101 → 180")


def test_a_running_request_is_released_by_keyboard(visitor, site: Site, url: str) -> None:
    """Browser check 3: the menu, the page's form and the question need no mouse."""
    waiting(site)
    page: Page = visitor(url).log_in("bo-editor", "/requests")
    page.on("dialog", lambda dialog: dialog.accept())
    page.locator("#r-vision-train summary").focus()
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Early release …").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#release")).to_contain_text("2 nodes go back now")
    page.get_by_role("button", name="Release its nodes").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#request")).to_contain_text("Its file asks for its end")
