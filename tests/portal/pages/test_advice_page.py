"""The page of advice (J3): what the API says, as a chart and a table, to those who see it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import unescape
from re import DOTALL, findall, search
from typing import Any

import pytest
from starlette.testclient import TestClient

from portal.pages.user import advice_page
from portal.views.advice_rows import advice
from portal.views.view import View
from reconciler.queries.demand.served_load import Served
from reconciler.queries.demand.slice_advice import Question
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


def test_gpus_and_shape_are_asked_for_and_stay_in_the_request(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """J3: the page asks as the API does, and the link to the form keeps the answer."""
    asked = {"gpusPerNode": 8, "gpuShape": "H100-80GB, A100-80GB"}
    proposal = {"nodes": 2, "gpusPerNode": 8, "gpuShape": ["H100-80GB", "A100-80GB"], "duration": "3h"}
    proposal |= {"notBefore": "2026-11-22T08:00:00Z", "fileBy": "2026-11-22T07:00:00Z"}

    def advised(view: View, name: str, question: Question, _: Served | None) -> dict[str, Any]:
        assert (question.gpus_per_node, question.shapes) == (8, ("H100-80GB", "A100-80GB"))
        return {**advice(view, name, question), "proposals": [proposal]}

    monkeypatch.setattr(advice_page, "advice", advised)
    page = browser(site).get("/workspaces/vision/advice", params=asked).text
    assert 'name="gpusPerNode" type="number" value="8"' in page
    assert 'name="gpuShape" type="text" value="H100-80GB, A100-80GB"' in page
    assert '<option value="H100-80GB"></option>' in page
    (link,) = findall(r'href="(/requests/new\?workspace=[^"]*)"', page)
    form = browser(site, "bo-owner").get(unescape(link)).text
    assert search(r'<select[^>]*name="shape".*?<option[^>]*selected[^>]*>H100-80GB, A100-80GB<', form, DOTALL)
    assert search(r'<input[^>]*name="gpus"[^>]*value="8"', form)


def test_a_shape_that_no_pool_has_is_refused_with_a_sentence(site: Site) -> None:
    answer = browser(site).get("/workspaces/vision/advice", params={"gpuShape": "Z9"})
    assert answer.status_code == 422
    assert "so there is nothing to advise" in unescape(answer.text)


def test_a_workspace_leads_there(site: Site) -> None:
    assert 'href="/workspaces/vision/advice"' in browser(site).get("/workspaces/vision").text


def test_senseless_terms_are_refused_with_a_sentence(site: Site) -> None:
    answer = browser(site).get("/workspaces/vision/advice?patience=soon")
    assert answer.status_code == 422
    assert "--patience soon" in unescape(answer.text)


def test_another_workspace_is_not_there(site: Site) -> None:
    assert browser(site).get("/workspaces/nlp/advice").status_code == 404
