"""Going back, comparing, blaming and taking back, as pages of admins."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from tests.support import repos
from tests.support.portal import Site
from tests.support.world import project

HTML = {"Accept": "text/html"}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    made.settle()
    made.file("vision/train", nodes=2, duration="2h")
    made.pass_time(30)
    made.file("vision/next", nodes=1, duration="1h", priority=120)
    made.settle()
    made.file("vision/next", nodes=1, duration="1h", priority=180)
    made.settle()
    yield made
    made.close()


def page(site: Site, path: str) -> str:
    answer = site.client().get(path, headers=HTML)
    assert answer.status_code == 200, answer.text
    return unescape(answer.text)


def test_two_states_differ_in_words(site: Site) -> None:
    html = page(site, "/admin/history?from=20m")
    assert "vision/next" in html
    first = re.search(r'<option value="([0-9a-f]{40})"', html)
    assert first is not None
    assert "vision/train" in page(site, f"/admin/history?from={first.group(1)}")
    assert "StateGone" in page(site, "/admin/history?from=900d")
    oldest = page(site, "/admin/history")  # without a wish: from the oldest state
    assert re.search(r'data-label="In words">vision/train [^<]*<time datetime=', oldest)


def test_a_changed_document_leads_to_who_set_it(site: Site) -> None:
    """The address of the link has a parameter that is called `path`, too."""
    site.commit({"project.yaml": project(maxExtension="2h")})
    site.settle()
    html = page(site, "/admin/history?from=20m")
    assert "project.yaml</a>" in html
    assert re.search(r'href="/admin/history\?path=[^"]+&field=[^"]*&from=[^"]+#blame"', html)


def test_blame_names_the_commit_and_what_it_set(site: Site) -> None:
    html = page(site, "/admin/history?path=vision/next&field=spec.priority")
    assert "bo@example.com" in html
    assert re.search(r"120\s*→\s*180", html)
    assert "there is no request" in page(site, "/admin/history?path=vision/none").lower()


def test_an_undo_shows_its_effect_then_becomes_a_proposal(site: Site) -> None:
    """As it was shown, and nothing on main changes by it."""
    tip = repos.tip(site.repo)
    html = page(site, f"/admin/history/undo?commit={tip}")
    assert "spec.priority" in html
    assert "slices/vision/gprs/next.yaml" in html
    form = dict(
        re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', html[html.index('class="confirm"') :])
    )
    client = site.client()
    done = client.post("/admin/history/undo", data=form, headers=HTML, follow_redirects=False)
    assert done.status_code == 303, done.text
    assert repos.tip(site.repo) == tip
    assert "waits on the branch" in page(site, done.headers["Location"])
    site.file("vision/next", nodes=1, duration="1h", priority=190)
    refused = client.post("/admin/history/undo", data={**form, "key": ""}, headers=HTML)
    assert refused.status_code == 409


def test_what_cannot_be_taken_back_says_why(site: Site) -> None:
    answer = site.client().get("/admin/history/undo?commit=0000000", headers=HTML)
    assert answer.status_code == 404
    assert 'class="confirm"' not in answer.text
