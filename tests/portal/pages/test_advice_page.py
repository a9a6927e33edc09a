"""The page of advice (J3): what the API says, as a chart and a table, to those who see it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import unescape
from re import search

import pytest
from starlette.testclient import TestClient

from tests.support.portal import Site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """vision runs one request."""
    made = Site(tmp_path_factory.mktemp("site"))
    made.settle()
    made.file("vision/train", nodes=1, duration="4h", clusters=["east"])
    made.settle()
    made.pass_time(2)
    yield made
    made.close()


def browser(site: Site, key: str = "bo-viewer") -> TestClient:
    client = site.client(key)
    client.headers.update({"Accept": "text/html"})
    return client


def test_the_chart_and_the_table_say_what_the_api_says(site: Site) -> None:
    data = site.client("bo-viewer").get("/api/v1/advice/vision?patience=30m").json()["data"]
    answer = browser(site).get("/workspaces/vision/advice?patience=30m")
    assert answer.status_code == 200
    found = search(r'data-chart="([^"]*)"', answer.text)
    assert found is not None
    chart = json.loads(unescape(found[1]))
    assert [one["values"] for one in chart["series"]] == [
        [hour[name] for hour in data["hours"]] for name in ("nodes", "expected", "known")
    ]
    assert data["sentence"] in unescape(answer.text)
    assert answer.text.count('<th scope="row"') == len(data["hours"]) + len(data["proposals"])


def test_a_workspace_leads_there(site: Site) -> None:
    assert 'href="/workspaces/vision/advice"' in browser(site).get("/workspaces/vision").text


def test_senseless_terms_are_refused_with_a_sentence(site: Site) -> None:
    answer = browser(site).get("/workspaces/vision/advice?patience=soon")
    assert answer.status_code == 422
    assert "--patience soon" in unescape(answer.text)


def test_another_workspace_is_not_there(site: Site) -> None:
    assert browser(site).get("/workspaces/nlp/advice").status_code == 404
