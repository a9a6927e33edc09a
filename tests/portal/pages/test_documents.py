"""Day 1 by form (C1, D13, B6): the file and what it would do are shown first, and exactly that is written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from httpx import Response

from tests.support.portal import Site

HTML = {"Accept": "text/html"}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    made.settle()
    yield made
    made.close()


def send(site: Site, path: str, who: str = "ada-owner", **form: str) -> Response:
    client = site.client(who)
    return client.post(path, data={"key": "", **form}, headers=HTML, follow_redirects=False)


def kept(html: str) -> dict[str, str]:
    """The fields of the form as they stand."""
    form = html[html.index('id="document"') : html.index("</form>", html.index('id="document"'))]
    found = dict(re.findall(r'<input id="f-[\w-]+" name="([\w-]+)"[^>]*? value="([^"]*)"', form))
    found |= dict(re.findall(r'<textarea id="f-[\w-]+" name="([\w-]+)"[^>]*>([^<]*)<', form))
    for name, options in re.findall(r'<select id="f-[\w-]+" name="([\w-]+)"[^>]*>(.*?)</select>', form, re.S):
        chosen = re.search(r'<option value="([^"]*)" selected', options)
        found[name] = chosen.group(1) if chosen else ""
    return {name: unescape(value) for name, value in found.items()}


CASES = [
    pytest.param(
        "/admin/workspaces/new",
        {"name": "speech", "clusters": "east", "namespaces": "", "members": "cy@example.com", "quota": "16"},
        "slices/speech/slice.yaml",
        "cy@example.com",
        id="a new workspace",
    ),
    pytest.param(
        "/admin/workspaces/vision",
        {"quota": "8"},
        "slices/vision/slice.yaml",
        "gpus: 8",
        id="a workspace's quota",
    ),
    pytest.param(
        "/admin/policies/vision",
        {"range": "medium", "waiting": "3", "duration": "12h"},
        "slices/vision/slice.yaml",
        "maxWaiting: 3",
        id="a policy",
    ),
    pytest.param(
        "/admin/templates/new",
        {"name": "night", "nodes": "2", "duration": "8h", "shape": "H100-80GB"},
        "templates/night.yaml",
        "duration: 0d8h0m",
        id="a new template",
    ),
    pytest.param(
        "/admin/templates/small", {"nodes": "3"}, "templates/small.yaml", "nodes: 3", id="a template"
    ),
    pytest.param(
        "/admin/bindings/vision",
        {"templates-east": "small", "default-east": "small"},
        "bindings/vision.yaml",
        "default: small",
        id="a binding",
    ),
]


@pytest.mark.parametrize(("path", "typed", "file", "says"), CASES)
def test_a_document_is_shown_then_saved(
    site: Site, path: str, typed: dict[str, str], file: str, says: str
) -> None:
    before = site.main(file)
    form = {**kept(site.client().get(path, headers=HTML).text), **typed}
    shown = send(site, path, do="check", **form)
    assert shown.status_code == 200, shown.text
    html = unescape(shown.text)
    assert file in html
    assert says in html
    assert "No other request moves" in html
    assert site.main(file) == before  # nothing is written by looking
    again = kept(shown.text)
    assert {name: again[name] for name in typed} == typed
    done = send(site, path, do="save", **form)
    assert done.status_code == 303, done.text
    assert says in (site.main(file) or "")


@pytest.mark.parametrize(
    ("path", "typed", "says"),
    [
        pytest.param(
            "/admin/workspaces/new", {"name": "Speech!", "clusters": "east"}, "not a valid name", id="a name"
        ),
        pytest.param(
            "/admin/workspaces/new", {"name": "speech", "clusters": "moon"}, "no cluster moon", id="a place"
        ),
        pytest.param(
            "/admin/workspaces/new", {"name": "nlp", "clusters": "east"}, "exists already", id="it exists"
        ),
        pytest.param(
            "/admin/policies/vision", {"duration": "soon"}, "maxExitDurationPerGPR", id="a duration"
        ),
        pytest.param(
            "/admin/templates/new", {"name": "night", "nodes": "two"}, "whole number", id="no number"
        ),
        pytest.param(
            "/admin/templates/new", {"name": "small", "nodes": "2"}, "exists already", id="a taken name"
        ),
        pytest.param("/admin/bindings/vision", {"templates-east": "none"}, "none", id="no such template"),
    ],
)
@pytest.mark.parametrize("do", ["check", "save"])
def test_what_cannot_be_is_refused_in_the_form(
    site: Site, path: str, typed: dict[str, str], says: str, do: str
) -> None:
    """By the words of the API; what was typed stays, and nothing is written."""
    before = site.log()
    refused = send(site, path, do=do, **typed)
    assert refused.status_code in (409, 422), refused.text
    assert says in unescape(refused.text)
    again = kept(refused.text)
    assert {name: again[name] for name in typed} == typed
    assert site.log() == before


def test_violations_are_shown_before_saving(site: Site) -> None:
    """A limit that a waiting request breaks is named before it holds."""
    site.file("vision/big", nodes=4, duration="9h")
    site.file("vision/next", nodes=4, duration="9h")
    site.settle()
    shown = send(site, "/admin/policies/vision", do="check", range="high", duration="1h")
    assert "vision/next" in shown.text


def test_a_workspace_that_a_member_asks_for_is_made_by_an_admin(site: Site) -> None:
    """B6: from the list, with what was asked for in the form."""
    body = {"workspaceName": "robots", "clusters": ["east"], "namespaces": ["robots"], "description": "arms"}
    assert site.client("bo-owner").post("/api/v1/slice-workspace", json=body).status_code == 200
    html = site.client().get("/admin/workspaces", headers=HTML).text
    found = re.search(r'href="(/admin/workspaces/new\?name=robots[^"]*)"', html)
    assert found is not None
    form = kept(site.client().get(unescape(found.group(1)), headers=HTML).text)
    assert (form["email"], form["description"]) == ("bo@example.com", "arms")
    assert send(site, "/admin/workspaces/new", do="save", **form).status_code == 303
    assert "bo@example.com" in (site.main("slices/robots/slice.yaml") or "")
    site.settle()
    assert "People ask for" not in site.client().get("/admin/workspaces", headers=HTML).text


def test_what_is_in_use_is_not_deleted(site: Site) -> None:
    assert send(site, "/admin/bindings/vision", do="save", **{"templates-east": "small"}).status_code == 303
    site.settle()
    refused = send(site, "/admin/templates/small/delete")
    assert refused.status_code == 409
    assert "GprTemplateInUse" in refused.text
    assert send(site, "/admin/bindings/vision/delete").status_code == 303
    site.settle()
    assert send(site, "/admin/templates/small/delete").status_code == 303
    assert site.main("templates/small.yaml") is None
    site.file("vision/run", nodes=1)
    site.settle()
    assert "WorkspaceInUse" in send(site, "/admin/workspaces/vision/delete").text
    assert send(site, "/admin/workspaces/nlp/delete").status_code == 303
