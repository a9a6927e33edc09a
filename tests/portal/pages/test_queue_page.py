"""The queue of admins (E4): whom a change delays is shown before it is made, and only that is made."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from httpx import Response

from tests.support.portal import Site
from tests.support.world import cluster, project

HTML = {"Accept": "text/html"}
CHANGE = "/admin/queue/change"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """Both nodes are held; three requests wait for both of them, one after the other."""
    policy = project(scheduling={"fairness": None, "ageing": None})
    made = Site(tmp_path, {"clusters/east.yaml": cluster("east", nodes=2), "project.yaml": policy})
    made.settle()
    for name, hours in (("vision/now", 2), ("nlp/first", 1), ("vision/second", 3), ("nlp/third", 1)):
        made.file(name, nodes=2, duration=f"{hours}h", clusters=["east"])
        made.pass_time(1)
    made.pass_time(2)
    yield made
    made.close()


def page(site: Site, path: str) -> str:
    answer = site.client().get(path, headers=HTML)
    assert answer.status_code == 200, answer.text
    return unescape(answer.text)


def words(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html.partition('id="main"')[2]))


def confirm(site: Site, path: str) -> Response:
    """Send the form that the page of a change shows."""
    return send(site, page(site, path))


def send(site: Site, html: str) -> Response:
    form = html[html.index('class="confirm"') :]
    found = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form[: form.index("</form>")]))
    return site.client().post(CHANGE, data=found, headers=HTML, follow_redirects=False)


def order(site: Site) -> list[str]:
    return re.findall(r'data-key="([^"]+)"', page(site, "/admin/queue"))


def test_each_one_says_what_it_waits_for(site: Site) -> None:
    """Another request by name; else in words. A reason's name is only a title."""
    site.file("nlp/later", nodes=1, duration="1h", notBefore="2026-11-24T08:00:00Z", clusters=["east"])
    site.file("nlp/vast", nodes=3, duration="1h")
    site.pass_time(1)
    told = words(page(site, "/admin/queue"))
    assert "Place Request Priority Nodes Starts Pool In its pool Waits for" in told
    assert re.search(r"nlp/first .*? east/h100 1 vision/now ", told)
    assert re.search(r"nlp/later .*? the earliest start that it asks for", told)
    assert re.search(r"nlp/vast .*? a pool in which it fits", told)
    assert "FitsNowhere" not in told
    assert "vision/now" in words(page(site, "/admin/queue?q=first"))


def test_one_that_follows_its_own_workspace_names_it(tmp_path: Path) -> None:
    """Free nodes do not help: a workspace runs one request at a time."""
    site = Site(tmp_path)
    site.file("vision/now", nodes=1, duration="2h", clusters=["east"])
    site.settle()
    site.file("vision/next", nodes=1, duration="2h", clusters=["west"])
    site.pass_time(1)
    assert "vision/now of its own workspace, which runs one at a time" in words(page(site, "/admin/queue"))
    site.close()


def test_everything_that_waits_is_in_order_with_whom_it_waits_for(site: Site) -> None:
    assert order(site) == ["nlp/first", "vision/second", "nlp/third"]
    text = words(page(site, "/admin/queue"))
    assert re.search(r"nlp/first 101 2 Nov 21, 10:\d\d .*?east/h100 1 vision/now ⠿ Change", text)
    assert re.search(r"vision/second 101 2 .*?east/h100 2 nlp/first ⠿ Change", text)


def test_a_move_says_whom_it_delays_and_by_how_much_then_does_it(site: Site) -> None:
    path = f"{CHANGE}?gpr=vision/second&before=nlp/first"
    before = site.log()
    text = words(page(site, path))
    late = re.search(r"nlp/first (\S+ \S+) later Nov 21, (\d\d:\d\d) Nov 21, (\d\d:\d\d)", text)
    assert late is not None, text
    assert site.log() == before  # asking writes nothing
    done = confirm(site, path)
    assert done.status_code == 303, done.text
    assert "The change is on main" in page(site, done.headers["Location"])
    site.settle()
    assert order(site) == ["vision/second", "nlp/first", "nlp/third"]
    start = site.view.facts.requests["nlp/first"].estimated_start_time
    assert start is not None
    assert f"{start:%H:%M}" == late.group(3)  # as it was told


def test_another_priority_says_the_same_and_is_made(site: Site) -> None:
    path = f"{CHANGE}?gpr=nlp/third&priority=150"
    text = words(page(site, path))
    assert "With priority 150" in text
    assert re.search(r"vision/second .*? later", text)
    assert confirm(site, path).status_code == 303
    site.settle()
    assert order(site)[0] == "nlp/third"


def test_what_delays_nobody_says_so(site: Site) -> None:
    assert "No other request moves" in page(site, f"{CHANGE}?gpr=nlp/first&priority=150")


def test_an_effect_that_changed_is_shown_again(site: Site) -> None:
    """Nothing is written on an effect that nobody saw."""
    path = f"{CHANGE}?gpr=vision/second&before=nlp/first"
    shown = page(site, path)
    site.file("nlp/fourth", nodes=2, duration="5h", clusters=["east"], priority=140)
    site.settle()
    before = site.log()
    refused = send(site, shown)
    assert refused.status_code == 409
    assert "The effect has changed" in refused.text or "the effect has changed" in refused.text
    assert site.log() == before
    assert send(site, unescape(refused.text)).status_code == 303


@pytest.mark.parametrize(
    ("query", "status", "says"),
    [
        pytest.param(
            "gpr=nlp/first&before=nlp/first", 422, "cannot be put before itself", id="before itself"
        ),
        pytest.param("gpr=nlp/first&priority=soon", 422, "this must be a whole number", id="no number"),
        pytest.param(
            "gpr=vision/now&to=first", 409, "only waiting requests can be moved", id="it runs already"
        ),
        pytest.param("gpr=nlp/third&to=last", 409, "", id="it is there already"),
        pytest.param("gpr=nlp/none&to=first", 404, "there is no request", id="there is none"),
    ],
)
def test_what_cannot_be(site: Site, query: str, status: int, says: str) -> None:
    answer = site.client().get(f"{CHANGE}?{query}", headers=HTML)
    assert answer.status_code == status
    assert says in unescape(answer.text).lower()
    assert 'class="confirm"' not in answer.text


def test_members_do_not_move_requests(site: Site) -> None:
    """B10: not by the form, and not by the path."""
    before = site.log()
    for who in ("bo-owner", "olga-owner", "ada-editor"):
        client = site.client(who)
        form = {"gpr": "vision/second", "to": "first"}
        assert client.post(CHANGE, data=form, headers=HTML).status_code == 403
        body = {"gprId": "vision/second", "to": "first"}
        assert client.post("/api/v1/queue/move", json=body).status_code == 403
    assert site.log() == before
