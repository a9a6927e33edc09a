"""What pages are made of: vendored files are as published, and nothing else is given out."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from portal.pages.static_files import address_of_asset
from tests.support.portal import Site

PAGES = Path(__file__).parents[3] / "portal" / "pages"
VENDORED = {
    "htmx.min.js": "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717",
    "idiomorph-ext.min.js": "5811b9a7eda14878b7dab4378bf60432e1bb6f11fcfb970cc26540642650181e",
    "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
}
"""SHA-256 of htmx.org 2.0.11, idiomorph 0.8.0 and uplot 1.6.32, as published."""


def test_vendored_files_are_as_published():
    folder = PAGES / "static" / "vendor"
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.iterdir()
        if path.suffix != ".LICENSE"
    }
    assert found == VENDORED
    assert {path.name for path in folder.glob("*.LICENSE")} == {
        "htmx.LICENSE", "idiomorph.LICENSE", "uPlot.LICENSE",
    }  # fmt: skip


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory):
    site = Site(tmp_path_factory.mktemp("site"))
    with TestClient(site.portal.app) as client:
        yield client
    site.close()


def test_a_file_is_kept_for_a_year_under_the_address_of_its_content(browser: TestClient):
    answer = browser.get(address_of_asset("egs.css"))
    assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert answer.headers["Content-Type"].startswith("text/css")
    old = browser.get("/static/000000000000/egs.css")
    assert (old.content, old.headers["Cache-Control"]) == (answer.content, "no-cache")


@pytest.mark.parametrize("name", ["nothing.css", "../html.py", "%2e%2e/html.py", "vendor"])
def test_nothing_else_is_given_out(browser: TestClient, name: str):
    assert browser.get(f"/static/000000000000/{name}").status_code == 404
