"""Rows of the commands through the API (D2, D14, G5): an admin's are the commands' own, a member's hide the others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from portal.gprs import NOT_SEEN_TEXT
from portal.hiding import SOMEBODY
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
    made = Site(tmp_path_factory.mktemp("site"))
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
