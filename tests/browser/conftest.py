"""A real browser (Debian's chromium or its headless shell) on a real portal. Whatever a test does, these hold for
every page that it opens: no error on the console, no violation of the content security policy, no request to another
host.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright

from tests.support.portal import KEYS, Site

CHROMIUM = next(
    filter(
        None,
        (os.environ.get("EGS_TEST_CHROMIUM"), *map(shutil.which, ("chromium-headless-shell", "chromium"))),
    ),
    None,
)
"""The shell has the same engine and no windows: a page costs half of the time."""
WAIT_MS = 20_000
"""A busy machine is no failure."""


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """For this folder: while Playwright runs, its thread has an event loop, and tests elsewhere start their own."""
    if CHROMIUM is None:
        pytest.skip(
            "there is no chromium: install Debian's chromium-headless-shell, or set EGS_TEST_CHROMIUM"
        )
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


@dataclass
class Visitor:
    """Somebody at a browser of their own."""

    page: Page
    url: str
    faults: list[str] = field(default_factory=list)
    expected: tuple[str, ...] = ()
    """Parts of console messages that the test provokes."""

    def open(self, path: str) -> Page:
        self.page.goto(self.url + path)
        return self.page

    def log_in(self, key: str, path: str = "/") -> Page:
        """By the API key of that name, through the form; then that page."""
        self.open(f"/login?next={quote(path)}")
        self.page.fill("input[name=key]", KEYS[key])
        self.page.click("main button")
        self.page.wait_for_load_state()  # scripts have run
        return self.page

    def _noted(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not any(part in message.text for part in self.expected):
            self.faults.append(message.text)

    def _sent(self, request: Request) -> None:
        if request.url.startswith("http") and urlsplit(request.url).netloc != urlsplit(self.url).netloc:
            self.faults.append(f"a request to {request.url}")

    def leave(self) -> None:
        """Close the browser; a page's stream would keep a server from ending."""
        self.page.context.close()

    def watch(self) -> None:
        self.page.set_default_timeout(WAIT_MS)
        self.page.on("console", self._noted)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("request", self._sent)


@pytest.fixture
def visitors() -> Iterator[list[Visitor]]:
    """All that the test has made."""
    made: list[Visitor] = []
    yield made
    for each in made:
        each.leave()
        assert each.faults == []


@pytest.fixture
def visitor(browser: Browser, visitors: list[Visitor]) -> Callable[..., Visitor]:
    """Makes visitors of a portal: `visitor(url, **options of the browser's context)`."""

    def make(url: str, **options: Any) -> Visitor:
        context = browser.new_context(viewport={"width": 1360, "height": 850}, **options)
        found = Visitor(context.new_page(), url)
        found.watch()
        visitors.append(found)
        return found

    return make


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A fleet of its own for a test that changes it."""
    made = Site(tmp_path / "site")
    made.settle()
    yield made
    made.close()


@pytest.fixture
def url(site: Site, visitors: list[Visitor]) -> Iterator[str]:
    """The portal of `site`, served."""
    with site.server() as found:
        yield found
        for each in visitors:
            each.leave()
