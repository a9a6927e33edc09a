"""Logging in by a form, by a link and out again (D5): what each answers and sets."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from tests.support.portal import KEYS, Site

HERE = {"Origin": "http://testserver", "Accept": "text/html"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("site"))
    made.settle()
    yield made
    made.close()


@pytest.fixture
def browser(site: Site) -> TestClient:
    return TestClient(site.portal.app, headers=HERE, follow_redirects=False)


def test_a_page_leads_a_stranger_to_the_login_and_back(browser: TestClient):
    answer = browser.get("/requests?which=all")
    assert answer.status_code == 303
    assert answer.headers["Location"] == "/login?next=%2Frequests%3Fwhich%3Dall"
    sent = {"key": KEYS["bo-editor"], "next": "/requests?which=all"}
    answer = browser.post("/login", data=sent)
    assert (answer.status_code, answer.headers["Location"]) == (303, "/requests?which=all")
    assert browser.get("/requests").status_code == 200


@pytest.mark.parametrize(
    ("key", "status", "reason"),
    [
        ("short", 400, "ApiKeyInvalid"),
        ("egs_unknown_unknown_unknown", 401, "ApiKeyNotFound"),
        (KEYS["bo-revoked"], 401, "ApiKeyRevoked"),
    ],
)
def test_a_key_that_opens_nothing_says_why(browser: TestClient, key: str, status: int, reason: str):
    answer = browser.post("/login", data={"key": key})
    assert answer.status_code == status
    assert reason in answer.text
    assert "Set-Cookie" not in answer.headers
    assert key not in answer.text, "a secret is not sent back"


def test_a_form_of_another_site_logs_nobody_in(browser: TestClient):
    sent = {"key": KEYS["bo-editor"]}
    answer = browser.post("/login", data=sent, headers={"Origin": "https://evil.example"})
    assert answer.status_code == 403
    assert "Set-Cookie" not in answer.headers


def test_no_link_leads_to_another_host(browser: TestClient):
    answer = browser.post("/login", data={"key": KEYS["bo-editor"], "next": "//evil.example/x"})
    assert answer.headers["Location"] == "/"


def test_a_ticket_opens_the_pages_of_its_person_for_a_minute(site: Site, browser: TestClient):
    with site.client("bo-editor") as client:
        made = client.post("/api/v1/auth/ticket").json()["data"]
    path = made["url"].removeprefix("http://testserver")
    answer = browser.get(f"{path}&next=/requests")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/requests")
    assert "bo@example.com" in browser.get("/requests").text
    site.pass_time(2)
    browser.cookies.clear()
    assert browser.get(path).status_code == 401


def test_logging_out_forgets_the_session(browser: TestClient):
    browser.post("/login", data={"key": KEYS["bo-editor"]})
    answer = browser.post("/logout")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/login?ended=true")
    assert browser.get("/requests").status_code == 303
