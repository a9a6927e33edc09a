"""The calendar in a browser: its layout, live bars, dragging, the keyboard, what another member finds (G3, A1)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.support.portal import Site
from tests.support.world import cluster, slice_

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A portal for tests that change nothing: vision runs and waits, nlp runs; 120 more nodes stand in the north."""
    spans = slice_("vision", ("east", "west", "north"), owners=[{"email": "olga@example.com"}])
    files = {"clusters/north.yaml": cluster("north", nodes=120), "slices/vision/slice.yaml": spans}
    site = Site(tmp_path_factory.mktemp("quiet"), files)
    site.file("vision/train", nodes=2, duration="30h", clusters=["east"])
    site.file("nlp/secret", nodes=2, duration="20h")
    site.settle()
    site.file("vision/next", nodes=2, duration="10h", clusters=["east"])
    site.settle()
    with site.server() as url:
        yield url
    site.close()


@pytest.fixture
def site(tmp_path) -> Iterator[Site]:
    made = Site(tmp_path / "site", poll=timedelta(seconds=5))
    made.file("vision/train", nodes=2, duration="30h", clusters=["east"])
    made.settle()
    yield made
    made.close()


def layout(page: Page, expression: str) -> Any:
    """The value of an expression over the module of the layout, `l`."""
    address = page.evaluate("document.querySelector('script[src*=\"calendar.js\"]').src")
    path = address.replace("calendar.js", "calendar-layout.js")
    return page.evaluate(f"import({json.dumps(path)}).then((l) => {expression})")


def drag(page: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(*end, steps=6)
    page.mouse.up()


def place(page: Page, row: int, share: float) -> tuple[float, float]:
    """A point in the chart: a row that is drawn, and how far along it."""
    box = page.locator(f".cal-rows [data-row='{row}'] .band").bounding_box()
    assert box is not None
    return box["x"] + share * box["width"], box["y"] + box["height"] / 2


LAYOUT: dict[str, tuple[str, Any]] = {
    "a bar within the time": (
        "l.placed({from: 0, to: 100, width: 1000}, {begin: 10, start: 12, end: 18, until: 20})",
        {"x": 100, "width": 100, "use": {"x": 120, "width": 60}, "isCut": False},
    ),
    "a bar that begins before and ends after": (
        "l.placed({from: 0, to: 100, width: 1000}, {begin: -50})",
        {"x": 0, "width": 1000, "use": {"x": 0, "width": 1000}, "isCut": True},
    ),
    "a bar that is over": ("l.placed({from: 50, to: 100, width: 10}, {begin: 0, until: 50})", None),
    "a bar that comes later": ("l.placed({from: 0, to: 50, width: 10}, {begin: 50, until: 60})", None),
    "a short bar is still seen": ("l.placed({from: 0, to: 10000, width: 10}, {begin: 1, until: 2}).width", 2),
    "free between two": (
        "[l.isFree([{begin: 0, until: 5}, {begin: 9}], 5, 9), l.isFree([{begin: 0, until: 5}], 4, 6)]",
        [True, False],
    ),
    "free until the next": ("l.freeUntil([{begin: 7, until: 9}], 3)", 7),
    "taken now": ("l.freeUntil([{begin: 1, until: 9}], 3)", None),
    "midnights of two weeks": ("l.ticks({from: 3600, to: 3600 + 14 * 86400, width: 1400}, true).length", 14),
    "every label has room": (
        "l.ticks({from: 0, to: 30 * 86400, width: 300}, true).filter((t) => t.label).length <= 6", True,
    ),
    "hours of a day": (
        "l.ticks({from: 0, to: 86400, width: 600}, true).map((t) => t.label).slice(0, 3)",
        ["Jan 1", "02:00", "04:00"],
    ),
    "a row is found where it was put": (
        "[0, 9, 10, 14].map((n) => { const s = l.stacked([{first: 0, rows: 10}, {first: 10, rows: 5}]);"
        " return l.rowAt(s, l.topOf(s, n) + 1); })",
        [0, 9, 10, 14],
    ),
    "a heading is no row": ("l.rowAt(l.stacked([{first: 0, rows: 2}]), 3)", -1),
    "only what is in view": (
        "l.between(l.stacked([{first: 0, rows: 1000}, {first: 1000, rows: 9}]), 26000, 26100)", [998, 1001],
    ),
    "a time as a manifest writes it": ("[90, 4 * 3600, 36 * 3600].map(l.exactSpan)", ["2m", "4h", "1d12h"]),
    "an input and back": ("l.fromInput(l.asInput(1795000020, true), true)", 1795000020),
}  # fmt: skip


def test_layout(quiet, visitor):
    """Numbers in, numbers out."""
    page = visitor(quiet).log_in("bo-owner", "/calendar")
    expect(page.locator("#calendar")).to_be_visible()
    got = {name: layout(page, expression) for name, (expression, _) in LAYOUT.items()}
    assert got == {name: want for name, (_, want) in LAYOUT.items()}


def test_a_member_finds_no_name_of_another_workspace_anywhere(quiet, visitor):
    """A1: in no answer of the page, no attribute, title, text of the SVG, or stream."""
    someone = visitor(quiet)
    heard: list[str] = []
    someone.page.on("response", lambda r: "/api/v1/calendar" in r.url and heard.append(r.text()))
    page = someone.log_in("bo-owner", "/calendar")
    expect(page.locator(".cal-bar.lease.own").first).to_be_visible()
    page.locator(".cal-bar.lease:not(.seen, .own)").first.click()
    expect(page.locator("#calendar-bar")).to_contain_text("Another workspace's request has this node")
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Later").click()
    expect(page.locator(".cal-rows .cal-bar")).to_have_count(0)
    text = page.content() + "".join(heard)
    assert "secret" not in text
    assert "nlp" not in text


def test_only_rows_in_view_are_drawn_and_fetched(quiet, visitor):
    page = visitor(quiet).log_in("bo-owner", "/calendar")
    expect(page.locator(".cal-rows .row").first).to_be_attached()
    assert page.locator(".cal-rows .row").count() < 70
    page.locator("#calendar").evaluate("(e) => { e.scrollTop = e.scrollHeight; }")
    expect(page.locator(".cal-names [data-row='125']")).to_have_text("h100-2")
    assert page.locator(".cal-rows .row").count() < 70


def test_dragging_over_free_nodes_gives_a_quote_and_a_request(quiet, visitor):
    """The time and the nodes that were picked are filled in; only free ones count."""
    page = visitor(quiet).log_in("bo-owner", "/calendar?cluster=north&zoom=week")
    drag(page, place(page, 0, 0.5), place(page, 2, 0.75))
    dialog = page.locator("#calendar-ask")
    expect(dialog).to_be_visible()
    expect(dialog.locator("[name=nodes]")).to_have_value("3")
    expect(dialog.locator("[name=duration]")).to_have_value("1d18h")
    expect(dialog.locator("[data-effect] li")).to_contain_text("in north / h100")
    expect(dialog.locator("#delays")).to_have_text("It delays no other request.")
    expect(dialog).to_contain_text("With priority 101.")
    link = dialog.get_by_role("link", name="Request this").get_attribute("href")
    assert link is not None
    assert all(
        part in link
        for part in ("nodes=3", "cluster=north", "duration=1d18h", "slice=vision", "priority=101")
    )


def test_free_nodes_by_time_follow_the_time_in_view(quiet, visitor):
    """A strip in the columns of the axis; moving in time asks for it anew, and the list below has the names."""
    page = visitor(quiet).log_in("bo-owner", "/calendar?cluster=east&zoom=day&need=1")
    strip = page.locator("#calendar-free .free-part")
    expect(strip.first.locator("title")).to_contain_text("0 nodes of 4 free from Nov 21, 08:00")
    expect(page.locator("#calendar-list tbody tr")).to_have_count(1)
    expect(page.locator("#calendar-list")).to_contain_text("vision/train")
    assert "nlp" not in page.locator("#calendar-list").inner_text()
    axis, chart = (
        page.locator(".cal-ticks").bounding_box(),
        page.locator(".cal-free-row").first.bounding_box(),
    )
    assert axis is not None
    assert chart is not None
    assert (axis["x"], axis["width"]) == (chart["x"], chart["width"])
    page.get_by_label("Later").click()
    expect(page.locator("#calendar-free .enough").first).to_be_visible()
    expect(page.locator("#when-free")).to_contain_text("Nov 22, ")


def test_the_keyboard_does_what_the_pointer_does(quiet, visitor):
    """Each row can be reached, opened and asked for; each waiting request can be moved."""
    page = visitor(quiet).log_in("bo-owner", "/calendar")
    page.locator("#calendar").focus()
    page.keyboard.press("ArrowDown")
    taken = "h100-1, east. Another workspace's request has this node until"
    expect(page.locator("#calendar-told")).to_contain_text(taken)
    page.keyboard.press("Enter")
    dialog = page.locator("#calendar-bar")
    expect(dialog).to_contain_text("vision/next")
    dialog.get_by_role("button", name="Move …").first.press("Enter")
    move = page.locator("#calendar-move")
    expect(move.locator("[name=priority]")).to_be_focused()
    page.keyboard.press("Escape")
    expect(move).to_be_hidden()
    page.locator("#calendar").focus()
    page.keyboard.press("n")
    expect(page.locator("#calendar-ask")).to_be_visible()
    page.keyboard.press("Escape")
    page.locator("#calendar").focus()
    page.keyboard.press("ArrowRight")
    assert "from=2026-11-22T18%3A00Z" in page.url  # a quarter of the week that suits these leases


def test_bars_follow_a_commit_and_the_focus_stays(site, visitor, url):
    """By delta: rows that did not change keep their very elements."""
    page = visitor(url).log_in("bo-owner", "/calendar")
    expect(page.locator(".cal-bar.lease.own")).to_have_count(2)
    page.locator("#calendar").focus()
    page.keyboard.press("ArrowDown")
    page.locator(".cal-rows [data-row='5']").evaluate("(row) => { row.dataset.kept = 'yes'; }")
    site.file("nlp/tune", nodes=1, duration="5h")
    site.settle()
    expect(page.locator(".cal-bar.lease")).to_have_count(3)
    expect(page.locator(".cal-rows [data-kept]")).to_have_count(1)
    expect(page.locator("#calendar")).to_be_focused()
    expect(page.locator(".cal-name.at")).to_have_count(1)
    assert "tune" not in page.content()
    spent = page.evaluate("performance.getEntriesByName('egs:patch').map((e) => e.duration)")
    assert spent
    assert max(spent) < 100  # docs/explain/benchmarks.md has the figure; a busy machine is no failure


def test_moving_a_request_shows_whom_it_delays_before_anything_is_filed(site, visitor, url):
    site.file("vision/next", nodes=2, duration="10h", clusters=["east"])
    site.settle()
    site.file("vision/second", nodes=2, duration="10h", clusters=["east"])
    site.settle()
    page = visitor(url).log_in("bo-owner", "/calendar?zoom=week")
    waiting = page.locator(".cal-bar.own.promise, .cal-bar.own.planned").filter(has_text="vision/next").first
    box = waiting.bounding_box()
    assert box is not None
    before = site.main("slices/vision/gprs/next.yaml")
    middle = box["y"] + box["height"] / 2
    drag(page, (box["x"] + 20, middle), (box["x"] + 320, middle))
    move = page.locator("#calendar-move")
    expect(move.locator("[data-effect]")).to_contain_text("vision/second earlier by")
    assert site.main("slices/vision/gprs/next.yaml") == before
    move.get_by_role("button", name="File this move").click()
    expect(move.locator("[data-effect]")).to_contain_text("It is filed")
    assert "notBefore" in (site.main("slices/vision/gprs/next.yaml") or "")


def test_an_admin_plans_maintenance_after_seeing_whom_it_delays(site, visitor, url):
    site.file("vision/next", nodes=4, duration="10h", clusters=["east"])
    site.settle()
    page = visitor(url).log_in("ada-owner", "/calendar")
    page.locator("#calendar").focus()
    page.keyboard.press("m")
    dialog = page.locator("#calendar-maintain")
    dialog.locator("[name=begin]").fill("2026-11-22T12:00")
    dialog.locator("[name=end]").fill("2026-11-23T12:00")
    dialog.get_by_role("button", name="Whom does it delay?").click()
    expect(dialog.locator("[data-effect]")).to_contain_text("vision/next later by")
    dialog.get_by_role("button", name="Plan this maintenance").click()
    expect(dialog.locator("[data-effect]")).to_contain_text("It is filed")
    assert "maintenance:" in (site.main("clusters/east.yaml") or "")


def test_an_admin_changes_the_order_by_dropping_one_request_on_another(site, visitor, url):
    """It goes before that one; the effect is shown, then the move is filed."""
    site.file("vision/next", nodes=4, duration="10h", clusters=["east"])
    site.settle()
    site.file("vision/second", nodes=4, duration="10h", clusters=["east"])
    site.settle()
    page = visitor(url).log_in("ada-owner", "/calendar?zoom=week&workspace=vision")
    waiting = page.locator(".cal-bar.own.promise, .cal-bar.own.planned")
    boxes = [waiting.filter(has_text=name).first.bounding_box() for name in ("vision/second", "vision/next")]
    (start, end) = [(box["x"] + 15, box["y"] + box["height"] / 2) for box in boxes if box is not None]
    drag(page, start, end)
    move = page.locator("#calendar-move")
    expect(move.locator("[name=order]")).to_have_value("vision/next")
    expect(move.locator("[data-effect]")).to_contain_text("vision/next later by")
    move.get_by_role("button", name="File this move").click()
    expect(move.locator("[data-effect]")).to_contain_text("It is filed")
    assert "move: 1" in (site.main("slices/vision/gprs/second.yaml") or "")


def test_a_drag_over_nodes_fills_in_their_maintenance(quiet, visitor):
    """For admins, beside the quote."""
    page = visitor(quiet).log_in("ada-owner", "/calendar?cluster=north&zoom=week")
    drag(page, place(page, 1, 0.5), place(page, 2, 0.75))
    page.get_by_role("button", name="Plan maintenance there …").click()
    dialog = page.locator("#calendar-maintain")
    expect(dialog.locator("[name=nodes]")).to_have_value("h100-2 h100-3")
    expect(dialog.locator("[name=begin]")).to_have_value("2026-11-24T12:00")
    expect(dialog.locator("[name=end]")).to_have_value("2026-11-26T06:00")
