"""Events, the bell and alerts (H6, H10): searched as the API searches, unread by person, nothing of others."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from re import search

import pytest
from starlette.testclient import TestClient

from portal.views import event_search
from reconciler.clusters.simulated.scripted_faults import GpuFails
from tests.support.portal import Site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """vision and nlp run one request each; one GPU of vision is too hot."""
    made = Site(tmp_path_factory.mktemp("site"))
    made.settle()
    made.file("vision/train", nodes=1, duration="6h", clusters=["east"])
    made.file("nlp/secret-model", nodes=1, duration="4h", clusters=["east"])
    made.settle()
    made.pass_time(5)
    made.running.submit("east", "vision", "finetune", 8, made.now)
    held = made.view.facts.requests["vision/train"].assignment
    assert held is not None
    fault = GpuFails(node=held.nodes[0], gpu=2, at=made.now + timedelta(minutes=1), temp_c=91)
    made.running.cluster("east").inject(fault)
    made.pass_time(5)
    yield made
    made.close()


def page(site: Site, path: str, key: str = "bo-viewer", status: int = 200) -> str:
    answer = site.client(key).get(path, headers={"Accept": "text/html"})
    assert answer.status_code == status, answer.text
    return answer.text


def test_events_are_those_of_the_api_with_links(site: Site) -> None:
    rows = site.client("bo-viewer").get("/api/v1/events").json()["data"]["items"]
    text = page(site, "/events")
    assert text.count('class="name said"') == len(rows) > 3
    assert 'href="/requests/vision/train"' in text
    assert "/admin/" not in text
    assert 'href="/admin/history?path=vision/train"' in page(site, "/events", "ada-owner"), "who set it"


@pytest.mark.parametrize("path", ["/events", "/events?q=secret", "/events?type=Normal", "/alerts?values=now"])
def test_nothing_of_another_workspace_is_found(site: Site, path: str) -> None:
    text = page(site, path).replace('value="secret"', "").replace("q=secret", "")
    assert "nlp" not in text
    assert "secret" not in text


def test_filters_are_those_of_the_api_and_stay_in_the_address(site: Site) -> None:
    one = page(site, "/events?reason=GPRCreated&gpr=vision/train&since=7d")
    assert one.count('class="name said"') == 1
    assert '<option value="GPRCreated" selected>' in one
    assert "No event matches" in page(site, "/events?type=Warning&q=nowhere")
    assert "there is no reason" in page(site, "/events?reason=Nothing", status=422)
    page(site, "/events?slice=nlp", status=404)


def test_a_search_that_found_little_says_how_far_it_looked_and_goes_on(site: Site, monkeypatch) -> None:
    monkeypatch.setattr(event_search, "SEARCHED", 2)
    text = page(site, "/events?q=filed")
    assert "events were searched" in text
    more = search(r'href="(/events\?cursor=[^"]+)"', text)
    assert more is not None
    assert "q=filed" in more[1]
    page(site, more[1].replace("&amp;", "&"))


def logged_in(site: Site, key: str = "bo-viewer") -> TestClient:
    client = site.client(key)
    client.headers.update({"Accept": "text/html", "HX-Request": "true"})
    client.follow_redirects = False
    return client


def unread(client: TestClient) -> int:
    found = search(r'id="bell-count" class="count"( hidden)?>(\d+)', client.get("/bell").text)
    assert found is not None
    assert (found[2] == "0") is bool(found[1])
    return int(found[2])


def test_the_bell_counts_what_is_new_to_this_person_about_their_workspaces(tmp_path) -> None:
    """H10: unread until the list was opened; a mark in a cookie, and nothing in a database."""
    site = Site(tmp_path / "site")
    try:
        site.settle()
        bo, cy = logged_in(site), logged_in(site, "cy-editor")
        assert unread(bo) == 0
        site.file("vision/train", nodes=1, duration="1h", clusters=["east"])
        site.settle()
        assert unread(bo) == 2, "filed, and being provisioned"
        assert unread(cy) == 0
        mark = search(r'data-mark="([^"]+)"', bo.get("/bell").text)
        assert mark is not None
        answer = bo.post("/bell/read", data={"mark": mark[1]})
        assert answer.status_code == 303
        assert "HttpOnly" in answer.headers["Set-Cookie"]
        assert unread(bo) == 0
        site.pass_time(20)
        assert unread(bo) > 0, "the same hour's file grew"
        bo.get("/events?q=other")
        assert unread(bo) > 0, "who filters has not read all"
        bo.get("/events")
        assert unread(bo) == 0
        bo.post("/bell/read", data={"mark": "nonsense"})
        assert unread(bo) == 0
    finally:
        site.close()


def test_a_cookie_that_is_no_mark_counts_as_none(site: Site) -> None:
    client = logged_in(site)
    before = unread(client)
    client.get("/events")
    for name in list(client.cookies):
        client.cookies.set(name, "WzEsICIuLi8uLi8iXQ")
    assert unread(client) == before


def test_without_scripts_the_bell_leads_to_the_events(site: Site) -> None:
    client = site.client("bo-viewer")
    client.follow_redirects = False
    assert client.get("/bell", headers={"Accept": "text/html"}).headers["Location"] == "/events"


def test_alerts_have_value_limit_and_advice(site: Site) -> None:
    """H6: the same as the API's, with the thresholds by shape."""
    rows = site.client("bo-viewer").get("/api/v1/alerts").json()["data"]["items"]
    assert rows
    text = page(site, "/alerts?values=now")
    for row in rows:
        assert row["kind"] in text
    assert "its limit is 87 °C" in text
    assert "From when on" in text
    assert "609 W" in text
    assert "0 of" in page(site, "/alerts?values=now&q=nowhere")
