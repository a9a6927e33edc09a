"""One stream for all tabs of a browser, in each way that a browser offers (D14, G4; checks 9 to 12)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from portal.http import sse
from portal.live import live_stream
from tests.browser.conftest import WAIT_MS
from tests.support.portal import Site, api_key

pytestmark = pytest.mark.xdist_group("browser")
WAYS = {
    "shared worker": "",
    "lock": "delete window.SharedWorker;",
    "each tab": "delete window.SharedWorker; delete window.BroadcastChannel;",
}
TABS = 12


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path / "site", poll=timedelta(seconds=5))
    made.settle()
    yield made
    made.close()


def streams() -> int:
    """Streams open in this process."""
    return sse._STREAMS._open[""]


def until(page: Page, holds: Callable[[], bool]) -> None:
    """Waits; the page's events are handled meanwhile."""
    for _ in range(200):
        if holds():
            return
        page.wait_for_timeout(50)
    raise AssertionError("it never held")


@pytest.mark.parametrize("way", [w for w in WAYS if w != "each tab"])
def test_twelve_tabs_share_one_stream(site, visitor, url, way):
    """Over HTTP/1.1 a browser has six connections to a host: the seventh stream would hang every tab."""
    someone = visitor(url)
    someone.page.context.add_init_script(WAYS[way])
    first = someone.log_in("bo-editor", "/requests")
    tabs = [first] + [someone.page.context.new_page() for _ in range(TABS - 1)]
    for tab in tabs[1:]:
        tab.goto(url + "/requests")
    until(first, lambda: streams() == 1)
    tabs[-1].bring_to_front()
    site.file("vision/train")
    site.settle()
    expect(tabs[-1].locator("#rows")).to_contain_text("vision/train")
    expect(tabs[0].locator("#as-of code")).to_have_text(site.view.status[:7])
    first.close()
    site.file("vision/second")
    tabs[1].bring_to_front()
    expect(tabs[1].locator("#rows")).to_contain_text("vision/second")
    until(tabs[1], lambda: streams() == 1)


def test_without_locks_each_tab_has_its_own(site, visitor, url):
    someone = visitor(url)
    someone.page.context.add_init_script(WAYS["each tab"])
    page = someone.log_in("bo-editor", "/requests")
    until(page, lambda: streams() == 1)
    site.file("vision/train")
    expect(page.locator("#rows")).to_contain_text("vision/train")


def test_a_revoked_key_ends_the_stream_and_nothing_is_asked_again(site, visitor, url):
    """Tabs that retry have sent a million refused requests in two hours elsewhere."""
    someone = visitor(url)
    page = someone.log_in("bo-editor", "/requests")
    until(page, lambda: streams() == 1)
    asked: list[str] = []
    page.context.on("request", lambda request: asked.append(request.url))
    site.commit({"keys/bo-editor.yaml": api_key("bo-editor").replace("spec:", "spec:\n  revoked: true")})
    expect(page.locator("#session")).to_contain_text("You are logged out")
    expect(page.get_by_role("link", name="Log in again")).to_be_visible()
    until(page, lambda: streams() == 0)
    page.evaluate("document.body.dispatchEvent(new CustomEvent('egs:changed', {detail: {}}))")
    assert [each for each in asked if "/static/" not in each] == [], "but for the icon of the tab"
    someone.log_in("bo-owner", "/requests")
    until(page, lambda: streams() == 1)


def test_silence_of_the_repository_is_shown_and_so_is_its_return(site, visitor, url, monkeypatch):
    """Without a reload, and what was on the page stays."""
    monkeypatch.setattr(live_stream, "KEEP_ALIVE_S", 0.05)
    monkeypatch.setattr(live_stream, "WHILE_STALE_S", 0.05)
    page = visitor(url).log_in("bo-editor", "/requests")
    until(page, lambda: streams() == 1)
    expect(page.locator("#stale")).to_be_hidden()
    site.silent_s = 20
    expect(page.locator("#stale")).to_contain_text("The repository has not answered since")
    site.silent_s = 0
    site.refresh()
    expect(page.locator("#stale")).to_be_hidden()


def test_after_a_restart_of_the_portal_the_page_goes_on(site, visitor):
    """By itself; what was committed meanwhile is shown, and what was on the page stays until then."""
    with site.server() as url:
        someone = visitor(url)
        someone.expected = (
            "ERR_CONNECTION_REFUSED",
            "ERR_INCOMPLETE_CHUNKED_ENCODING",
            "ERR_CONNECTION_RESET",
        )
        page = someone.log_in("bo-editor", "/requests")
        until(page, lambda: streams() == 1)
    until(page, lambda: streams() == 0)
    site.file("vision/meanwhile")
    with site.server(int(url.rpartition(":")[2])):
        expect(page.locator("#rows")).to_contain_text("vision/meanwhile", timeout=WAIT_MS)
        until(page, lambda: streams() == 1)
        someone.leave()
