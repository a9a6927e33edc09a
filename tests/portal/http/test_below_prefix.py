"""A portal below a path of its host: every link of a page stays below it, whether a proxy strips the path or not."""

from __future__ import annotations

import html
import re
from pathlib import Path

import httpx
import pytest
from starlette.testclient import TestClient

from portal.settings import ProviderSettings
from tests.support.openid import CLIENT, SECRET, openid, query_of
from tests.support.portal import KEYS, Site

either_way = pytest.mark.parametrize(
    "passed_on", ["/gpus", ""], ids=["the proxy passes the path on", "the proxy strips it"]
)


@either_way
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


DEEP = "https://host.example.com/tools/egs"


@pytest.mark.parametrize(
    "passed_on", ["/tools/egs", ""], ids=["the proxy passes the path on", "the proxy strips it"]
)
@pytest.mark.parametrize("wanted", ["/requests?which=all", ""], ids=["a page was wanted", "none was"])
def test_a_login_through_the_provider_comes_back_below_the_path(tmp_path: Path, passed_on: str, wanted: str):
    """B7, D5: from a page over the login page and a real provider to that page, or to the first one."""
    callback = f"{DEEP}/api/v1/auth/callback"
    with openid(tmp_path, callback) as provider:
        secret = tmp_path / "secret"
        secret.write_text(SECRET)
        settings = ProviderSettings(issuer=provider.issuer, client_id=CLIENT, client_secret=secret)
        site = Site(tmp_path / "site", portal={"public_url": DEEP, "provider": settings})
        site.settle()
        browser = TestClient(
            site.portal.app,
            "https://host.example.com",
            headers={"Accept": "text/html"},
            follow_redirects=False,
        )

        def opened(link: str) -> httpx.Response:
            """As the proxy sends it on."""
            path = link.removeprefix("https://host.example.com")
            assert path.startswith("/tools/egs/"), link
            return browser.get(passed_on + path.removeprefix("/tools/egs"))

        begin = "/tools/egs/api/v1/auth/login"
        if wanted:
            to_login = browser.get(f"{passed_on}{wanted}").headers["Location"]
            (begin,) = re.findall(r'href="([^"]*/auth/login[^"]*)"', opened(to_login).text)
        asked = opened(html.unescape(begin)).headers["Location"]
        assert query_of(asked)["redirect_uri"] == callback
        with httpx.Client(timeout=60) as elsewhere:
            back = provider.authorise(elsewhere, asked, "bo").headers["Location"]
        done = opened(back)
        assert (done.status_code, done.headers["Location"]) == (303, f"/tools/egs{wanted or '/'}")
        assert opened(done.headers["Location"]).status_code == 200
        site.close()
