"""Rows of the commands through the API (D2, D14, G5): an admin's are the commands' own, a member's hide the others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from starlette.testclient import TestClient

from portal.http.errors import ApiError
from portal.identity.redaction import SOMEBODY
from portal.vendor.gpr_answers import NOT_SEEN_TEXT
from portal.views import table_rows
from portal.views.event_log import EventLog
from portal.views.view import View
from schemas.reading.yaml_text import dump
from tests.support.portal import Site

TABLES = "/api/v1/tables"
LISTS = ["gprs", "slices", "requests", "clusters", "nodes"]
THINGS = {
    "gpr": "nlp/secret-plan",
    "slice": "nlp",
    "cluster": "west",
    "node": "west/h100-1",
    "request": "nobodys",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """nlp runs in east, the only cluster that it may use; vision waits behind it there."""
    made = Site(tmp_path_factory.mktemp("site"), poll=timedelta(minutes=10))
    made.settle()
    made.file("nlp/secret-plan", nodes=4, duration="4h")
    made.settle()
    made.file("vision/waits", nodes=4, duration="1h", clusters=["east"])
    made.settle()
    yield made
    made.close()


def rows(client: TestClient, kind: str, **params: Any) -> list[dict[str, Any]]:
    answer = client.get(f"{TABLES}/{kind}", params=params)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["data"]["items"]
    return found


@pytest.mark.parametrize("kind", LISTS)
@pytest.mark.parametrize("key", ["bo-editor", "bo-viewer", "ada-vision"])
def test_a_member_never_reads_the_name_of_anothers_request(site: Site, kind: str, key: str) -> None:
    with site.client(key) as client:
        assert "secret-plan" not in json.dumps(rows(client, kind))


def test_a_member_sees_that_a_node_is_taken_and_not_by_whom(site: Site) -> None:
    with site.client("bo-viewer") as client:
        east = rows(client, "nodes", cluster="east")
    assert {row["lease"] for row in east} == {SOMEBODY}
    assert "vision/waits" in json.dumps(east), "what is theirs is named"
    with site.client("ada-owner") as client:
        assert {row["lease"] for row in rows(client, "nodes", cluster="east")} == {"nlp/secret-plan"}


def test_one_sees_the_slices_and_clusters_that_are_ones_own(site: Site) -> None:
    with site.client("cy-editor") as client:
        assert [row["name"] for row in rows(client, "slices")] == ["nlp"]
        assert [row["name"] for row in rows(client, "clusters")] == ["east"]
        assert {row["cluster"] for row in rows(client, "nodes")} == {"east"}
        assert [row["name"] for row in rows(client, "gprs")] == ["secret-plan"]
        assert client.get(f"{TABLES}/nodes", params={"cluster": "west"}).status_code == 404


@pytest.mark.parametrize("kind", sorted(THINGS))
def test_what_one_may_not_see_is_not_there(site: Site, kind: str) -> None:
    key = "bo-editor" if kind in ("gpr", "slice", "request") else "cy-editor"
    with site.client(key) as client:
        answer = client.get(f"{TABLES}/{kind}", params={"name": THINGS[kind]})
        assert (answer.status_code, answer.json()["error"]["errorKey"]) == (404, "NotFound")
        missing = client.get(f"{TABLES}/{kind}", params={"name": "east/none" if kind == "node" else "none"})
        assert missing.status_code == 404


@pytest.mark.parametrize("name", ["cluster", "node"])
def test_descriptions_hide_the_others_too(site: Site, name: str) -> None:
    thing = {"cluster": "east", "node": "east/h100-1"}[name]
    for key, is_told in (("ada-owner", True), ("bo-editor", False)):
        with site.client(key) as client:
            answer = client.get(f"{TABLES}/{name}", params={"name": thing})
        assert answer.status_code == 200, answer.text
        assert ("secret-plan" in answer.text) is is_told


@pytest.mark.parametrize("kind", LISTS)
def test_nobody_and_who_is_no_member_sees_nothing(site: Site, kind: str) -> None:
    with site.client(None) as client:
        assert client.get(f"{TABLES}/{kind}").status_code == 401
    with site.client("eve-editor") as client:
        assert rows(client, kind) == []


def test_a_list_comes_in_portions(site: Site) -> None:
    with site.client() as client:
        every = rows(client, "nodes")
        found: list[dict[str, Any]] = []
        cursor: str | None = ""
        while cursor is not None:
            page = client.get(f"{TABLES}/nodes", params={"limit": 1, "cursor": cursor}).json()["data"]
            found += page["items"]
            cursor = page["next"]
    assert found == every
    assert len(every) == 6


def test_a_request_that_nobody_answered_yet_says_so(site: Site) -> None:
    site.file("vision/new", nodes=1, duration="1h")
    with site.client("bo-editor") as client:
        answer = client.get(f"{TABLES}/gpr", params={"name": "vision/new"})
    assert answer.status_code == 200, answer.text
    assert answer.json()["data"]["why"] == [NOT_SEEN_TEXT]
    site.commit({"slices/vision/gprs/new.yaml": None})


def test_problems_are_for_admins(site: Site) -> None:
    for key, status in (("ada-owner", 200), ("ada-editor", 403), ("bo-owner", 403), (None, 401)):
        with site.client(key) as client:
            assert client.get("/api/v1/problems").status_code == status
    with site.client() as client:
        found = client.get("/api/v1/problems").json()["data"]["items"]
    assert [row["rule"] for row in found] == ["KeyExpired"]


ASKED = {
    "requester": {"email": "bo@example.com"},
    "clusters": ["east"],
    "namespaces": ["robots"],
    "members": [{"email": "cy@example.com"}],
    "reason": "after nlp/secret-plan",
}


@pytest.fixture(scope="module")
def robots(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """bo asked for the slice robots, with cy in it, and an admin merged it."""
    made = Site(tmp_path_factory.mktemp("robots"), poll=timedelta(minutes=10))
    head = {"apiVersion": "egs.dev/v1alpha1", "kind": "WorkspaceRequest", "metadata": {"name": "robots"}}
    made.commit({"requests/robots.yaml": dump({**head, "spec": ASKED})})
    made.settle()
    made.file("nlp/secret-plan")
    made.settle()
    yield made
    made.close()


def waiting(site: Site) -> View:
    """The view as if robots still waited, with events of it and of a slice that was called so before."""
    view = site.view
    rows = [
        {"at": "2026-11-21T08:00:00Z", "slice": "robots", "message": "waits, as nlp/secret-plan does"},
        {"at": "2026-11-21T08:01:00Z", "request": "robots/older", "message": "is over"},
    ]
    slices = {name: spec for name, spec in view.wanted.slices.items() if name != "robots"}
    log = EventLog({"events/2026-11-21/08-0.yaml": "rows"}, lambda _: rows)
    return replace(view, wanted=replace(view.wanted, slices=slices), events=log, _of_plan={}, _worked_out={})


WHO = ["ada-owner", "ada-vision", "bo-owner", "bo-viewer", "cy-editor", "eve-editor"]


def told(site: Site, view: View, who: str) -> Any:
    """The description of robots; None: there is none for them."""
    caller = site.portal.caller(who)
    if view is not site.view and caller.sees is not None:
        caller = replace(caller, sees=caller.sees - {"robots"})
    listed = table_rows.requests(view, caller, site.portal.store)
    if not listed:
        with pytest.raises(ApiError, match="there is no request for a slice called robots"):
            table_rows.described_request(view, caller, site.portal.store, "robots")
        return None
    found = table_rows.described_request(view, caller, site.portal.store, "robots")
    assert [{**found, **row} for row in listed] == [found]
    return found


def test_a_key_shows_no_request_for_a_slice_that_it_is_not_good_for(robots: Site) -> None:
    """B10: neither while it waits nor when the slice is there; bo-viewer is a key for vision alone."""
    for view in (robots.view, waiting(robots)):
        seen = [who for who in WHO if told(robots, view, who) is not None]
        assert seen == ["ada-owner", "bo-owner", "cy-editor"]


def test_a_request_for_a_slice_names_no_request_of_others(robots: Site) -> None:
    """B10: neither its reason nor what happened to it."""
    view = waiting(robots)
    for who, is_told in (("ada-owner", True), ("bo-owner", False)):
        found = told(robots, view, who)
        assert ("secret-plan" in json.dumps(found["reason"])) is is_told
        assert ("secret-plan" in json.dumps(found["events"])) is is_told
        assert ("robots/older" in json.dumps(found["events"])) is is_told
        assert len(found["events"]) == (2 if is_told else 1)
