"""The queue of admins by pointer and by keyboard (E4): nothing is written before its effect was shown."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.support.portal import Site
from tests.support.world import cluster, project

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture
def site(tmp_path):
    policy = project(scheduling={"fairness": None, "ageing": None})
    made = Site(tmp_path / "site", {"clusters/east.yaml": cluster("east", nodes=2), "project.yaml": policy})
    made.settle()
    for name in ("vision/now", "nlp/first", "vision/second", "nlp/third"):
        made.file(name, nodes=2, duration="2h", clusters=["east"])
        made.pass_time(1)
    yield made
    made.close()


def order(page: Page) -> list[str]:
    return page.locator("tr[data-key]").evaluate_all("rows => rows.map(row => row.dataset.key)")


def test_keys_move_a_row_and_show_whom_it_delays(visitor, url, site):
    page = visitor(url).log_in("ada-owner", "/admin/queue")
    handle = page.locator('tr[data-key="nlp/third"] .handle')
    handle.focus()
    page.keyboard.press("ArrowUp")
    assert order(page) == ["nlp/first", "nlp/third", "vision/second"]
    expect(page.locator("#moves")).to_contain_text("place 2 of 3")
    page.keyboard.press("Escape")
    assert order(page) == ["nlp/first", "vision/second", "nlp/third"]
    page.keyboard.press("ArrowUp")
    before = site.log()
    page.keyboard.press("Enter")
    dialog = page.locator("#change-dialog")
    expect(dialog).to_contain_text("Moved before vision/second")
    expect(dialog).to_contain_text("2h 7m later")
    assert site.log() == before
    page.keyboard.press("Escape")
    expect(dialog).not_to_be_visible()
    assert order(page) == ["nlp/first", "vision/second", "nlp/third"]
    handle.focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    dialog.get_by_role("button", name="Make this change").click()
    expect(page.locator(".notice.good")).to_contain_text("The change is on main")
    site.settle()
    page.reload()
    assert order(page) == ["nlp/first", "nlp/third", "vision/second"]


def test_a_row_is_dragged(visitor, url):
    page = visitor(url).log_in("ada-owner", "/admin/queue")
    handle = page.locator('tr[data-key="nlp/third"] .handle')
    handle.drag_to(page.locator('tr[data-key="nlp/first"]'), target_position={"x": 200, "y": 4})
    dialog = page.locator("#change-dialog")
    expect(dialog).to_contain_text("Moved before nlp/first")
    dialog.get_by_label("Priority").fill("150")
    dialog.locator("form[data-preview]").last.get_by_role("button").click()
    expect(dialog).to_contain_text("With priority 150")


def test_without_scripts_the_same_is_a_page(visitor, url, site):
    page = visitor(url, java_script_enabled=False).log_in("ada-owner", "/admin/queue")
    page.locator('tr[data-key="nlp/third"]').get_by_role("link", name="Change").click()
    page.get_by_role("button", name="First").click()
    expect(page.locator("#effect")).to_contain_text("later")
    page.get_by_role("button", name="Make this change").click()
    expect(page.locator(".notice.good")).to_contain_text("The change is on main")
    assert "Move nlp/third first" in site.log()[0]
