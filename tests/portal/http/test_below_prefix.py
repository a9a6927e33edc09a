"""A portal below a path of its host: every link of a page stays below it, whether a proxy strips the path or not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.support.portal import KEYS, Site


@pytest.mark.parametrize(
    "passed_on", ["/gpus", ""], ids=["the proxy passes the path on", "the proxy strips it"]
)
def test_links_stay_below_the_path(tmp_path: Path, passed_on: str):
    site = Site(tmp_path / "site", portal={"public_url": "https://example.com/gpus"})
    site.settle()
    headers = {"Accept": "text/html", "Origin": "https://example.com"}
    browser = TestClient(site.portal.app, "https://example.com", headers=headers, follow_redirects=False)
    to_login = browser.get(f"{passed_on}/requests")
    assert to_login.headers["Location"] == "/gpus/login?next=%2Frequests"
    logged_in = browser.post(f"{passed_on}/login", data={"key": KEYS["bo-editor"], "next": "/requests"})
    assert logged_in.headers["Location"] == "/gpus/requests"
    page = browser.get(f"{passed_on}/requests").text
    found = re.findall(r'(?:href|src|action|hx-get)="([^"#]+)"', page)
    assert found
    assert [link for link in found if not link.startswith("/gpus/")] == []
    style = next(link for link in found if link.endswith(".css"))
    assert browser.get(style.removeprefix("/gpus") if not passed_on else style).status_code == 200
    link = browser.post(f"{passed_on}/api/v1/auth/ticket").json()["data"]["url"]
    assert link.startswith("https://example.com/gpus/login/with?ticket=")
    site.close()
