"""Workloads, GPUs and the bell in a browser (H1-H6, H10): values that come after the page, charts, and what is new."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from reconciler.clusters.simulated.scripted_faults import GpuFails
from tests.browser.test_every_page import violations
from tests.support.portal import Site

pytestmark = pytest.mark.xdist_group("browser")


def running(folder: Path) -> Site:
    """vision runs a model on two nodes, one GPU of which is hot."""
    made = Site(folder)
    made.settle()
    model = {"name": "llama", "framework": "jax"}
    made.file("vision/train", nodes=2, duration="6h", clusters=["east"], model=model)
    made.settle()
    made.pass_time(5)
    made.running.submit("east", "vision", "finetune", 8, made.now)
    held = made.view.facts.requests["vision/train"].assignment
    assert held is not None
    fault = GpuFails(node=held.nodes[0], gpu=2, at=made.now + timedelta(minutes=30), xid=63, temp_c=91)
    made.running.cluster("east").inject(fault)
    made.pass_time(40)
    return made


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = running(tmp_path_factory.mktemp("site"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def url(site: Site) -> Iterator[str]:
    with site.server() as found:
        yield found


def test_the_hot_gpu_and_its_values_are_three_clicks_from_the_workloads(visitor: Any, url: str) -> None:
    page = visitor(url).log_in("bo-viewer", "/workloads")
    expect(page.get_by_text("91 °C").first).to_be_visible()
    page.get_by_role("link", name="train", exact=True).click()
    expect(page.get_by_text("is slowed down by heat")).to_be_visible()
    page.get_by_role("link", name="Go to GPUs").click()
    first = page.locator("tr.hot")
    expect(first).to_have_count(1)
    first.get_by_role("link", name="View dashboard").click()
    expect(page.locator(".chart canvas")).to_have_count(4)
    expect(page.get_by_role("heading", level=1)).to_contain_text("GPU 2 on")
    assert "values=" not in page.url
    page.select_option("#f-since", "6h")
    expect(page.locator(".chart canvas")).to_have_count(4)
    assert "since=6h" in page.url


def test_gpus_are_filtered_while_one_types_and_the_address_keeps_it(visitor: Any, url: str) -> None:
    page = visitor(url).log_in("bo-viewer", "/workloads/vision/train/gpus")
    rows = page.locator("table.gpus tbody tr")
    expect(rows).to_have_count(16)
    page.get_by_label("Search").fill("finetune")
    expect(rows).to_have_count(8)
    page.get_by_label("Hot spots only").check()
    expect(rows).to_have_count(1)
    expect(page).to_have_url(f"{url}/workloads/vision/train/gpus?q=finetune&hot=yes")
    page.reload()
    expect(rows).to_have_count(1)


def test_a_source_that_does_not_answer_is_told_in_a_sentence(visitor: Any, url: str) -> None:
    someone = visitor(url)
    someone.expected = ("Failed to load", "htmx:")
    page = someone.log_in("bo-viewer", "/requests")
    page.route("**/workloads?values=now*", lambda route: route.abort())
    page.goto(f"{url}/workloads")
    expect(page.get_by_text("llama")).to_be_visible()
    expect(page.locator("[data-late]")).to_be_visible()
    page.unroute("**/workloads?values=now*")
    page.evaluate("document.body.dispatchEvent(new Event('egs:look'))")
    expect(page.get_by_text("91 °C").first).to_be_visible()
    expect(page.locator("[data-late]")).to_be_hidden()


def test_a_workload_that_is_not_there_is_told_in_a_sentence(visitor: Any, url: str) -> None:
    someone = visitor(url)
    someone.expected = ("404",)
    page = someone.log_in("bo-viewer", "/workloads/nothing")
    expect(page.get_by_role("alert")).to_contain_text("There is no workload nothing")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_once_values_are_there(visitor: Any, url: str, scheme: str) -> None:
    someone = visitor(url, color_scheme=scheme)
    someone.log_in("bo-viewer", "/workloads")
    found = {}
    for path, there in (
        ("/workloads", "91 °C"),
        ("/workloads/vision/train", "Average use"),
        ("/workloads/vision/train/gpus", "Near its limit"),
        ("/workloads/dashboard?workload=vision/train", "Errors and slowdowns"),
        ("/alerts", "From when on"),
    ):
        page = someone.open(path)
        expect(page.get_by_text(there).first).to_be_visible()
        for width in (1360, 375):
            page.set_viewport_size({"width": width, "height": 850})
            found[path, width] = violations(page)
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, (path, width)
    assert {place: told for place, told in found.items() if told} == {}


def test_without_scripts_the_tables_are_there(visitor: Any, url: str) -> None:
    page = visitor(url, java_script_enabled=False).log_in("bo-viewer", "/workloads")
    expect(page.get_by_text("91 °C").first).to_be_visible()
    page.goto(f"{url}/workloads/dashboard?workload=vision/train")
    expect(page.get_by_role("cell", name="Xid 63")).to_be_visible()


def test_the_bell_tells_what_is_new_and_forgets_it_when_it_was_opened(visitor: Any, tmp_path: Path) -> None:
    site = Site(tmp_path / "own", poll=timedelta(seconds=5))
    try:
        site.settle()
        with site.server() as url:
            someone = visitor(url)
            page = someone.log_in("bo-viewer", "/requests")
            count = page.locator("#bell-count")
            expect(count).to_be_hidden()
            site.file("vision/train", nodes=1, duration="1h", clusters=["east"])
            site.settle()
            expect(count).to_have_text("2 unread")
            page.locator("#bell summary").click()
            expect(page.locator("#bell-list")).to_contain_text("vision/train was filed")
            expect(count).to_be_hidden()
            page.keyboard.press("Escape")
            expect(page.locator("#bell-list")).to_be_hidden()
            page.reload()
            expect(page.locator("#bell-list")).to_contain_text("Nothing new")
            expect(count).to_be_hidden()
            someone.leave()
    finally:
        site.close()
