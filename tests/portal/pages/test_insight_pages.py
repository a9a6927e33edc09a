"""Trends, and a policy tried on what was filed (E9, G6)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from httpx import Response

from tests.support import repos
from tests.support.portal import Site
from tests.support.world import cluster

HTML = {"Accept": "text/html"}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path, {"clusters/east.yaml": cluster("east", nodes=2)})
    made.settle()
    for name, hours in (("long", 6), ("longer", 8), ("short", 1), ("tiny", 1)):
        made.file(f"vision/{name}", nodes=2, duration=f"{hours}h", clusters=["east"])
        made.pass_time(2)
    made.pass_time(400)
    yield made
    made.close()


def send(site: Site, **form: str) -> Response:
    return site.client().post("/admin/lab", data={"key": "", **form}, headers=HTML, follow_redirects=False)


def fields(html: str) -> dict[str, str]:
    found = dict(re.findall(r'<input id="f-\w+" name="(\w+)" type="\w+"[^>]*? value="([^"]*)"', html))
    found |= dict.fromkeys(re.findall(r'type="checkbox" name="(\w+)" value="on" checked', html), "on")
    found |= dict(re.findall(r'name="(order)".*?<option value="([^"]*)" selected', html, re.S))
    return found


def test_trends_are_those_of_the_api(site: Site) -> None:
    html = unescape(site.client().get("/admin/insights", headers=HTML).text)
    data = site.client().get("/api/v1/insights").json()["data"]["total"]
    assert f'<p class="figure">{data["requests"]}</p>' in html
    assert "Free nodes in the next 24 hours" in html


def test_the_present_policy_changes_nothing_and_another_one_says_what(site: Site) -> None:
    present = fields(site.client().get("/admin/lab", headers=HTML).text)
    same = send(site, do="try", **present)
    assert same.status_code == 200, same.text
    assert "0 requests would have started at another time" in same.text
    assert "Propose it" not in same.text
    other = send(site, do="try", **{**present, "order": "shortest-service", "fairness": ""})
    assert "3 requests would have started at another time: 2 earlier, 1 later" in other.text
    assert "better" in other.text
    assert "order: shortest-service" in other.text
    assert "fairness: null" in other.text


def test_a_policy_becomes_a_pull_request(site: Site) -> None:
    """Never a push: it is everybody's."""
    present, tip = fields(site.client().get("/admin/lab", headers=HTML).text), repos.tip(site.repo)
    done = send(site, do="save", **{**present, "order": "shortest-service"})
    assert done.status_code == 303, done.text
    assert "way=branch" in done.headers["Location"]
    assert repos.tip(site.repo) == tip


def test_what_is_no_policy_is_refused(site: Site) -> None:
    present = fields(site.client().get("/admin/lab", headers=HTML).text)
    refused = send(site, do="try", **{**present, "step": "900", "ageing": "on"})
    assert refused.status_code == 422
    assert "ageing.step" in refused.text
    answer = site.client("bo-owner").post("/api/v1/whatif/policy", json={"scheduling": {}})
    assert answer.status_code == 403
