"""Events over HTTP, searched: H10, and the same filter for the command."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from portal.views import event_search
from portal.views.event_log import EventReader
from portal.views.event_search import search_of
from reconciler.queries.event_search import Between, Filter, Spot, looked, newest_first
from schemas.reading.units import parse_instant
from tests.egs.remote import Shell
from tests.reconciler.cli.rig import egs
from tests.support.portal import KEYS, Site
from tests.support.sdk import FACES
from tests.support.world import gpr_path


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Two hours in which two workspaces ran requests."""
    made = Site(tmp_path_factory.mktemp("site"), poll=timedelta(minutes=10))
    made.file("vision/train", nodes=2, duration="4m", clusters=["east"])
    made.file("nlp/eval", nodes=1, duration="3m")
    made.settle()
    made.pass_time(9)
    made.clock.set(made.now + timedelta(minutes=52))
    made.file("vision/late", nodes=1, duration="2m", clusters=["east"])
    made.pass_time(9)
    yield made
    made.close()


def found(site: Site, query: str = "", who: str = "ada-owner") -> Any:
    """The page."""
    answer = site.client(who).get(f"/api/v1/events?{query}")
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        pytest.param("", [], id="everything"),
        pytest.param("slice=vision", ["--slice", "vision"], id="of a workspace"),
        pytest.param("gpr=vision/train", ["--gpr", "vision/train"], id="of a request"),
        pytest.param("gpr=eval", ["--gpr", "eval"], id="of a request by its name alone"),
        pytest.param("cluster=east", ["--cluster", "east"], id="of a cluster"),
        pytest.param("reason=GPRProvisioned", ["--reason", "GPRProvisioned"], id="of one kind"),
        pytest.param("type=Warning", ["--type", "Warning"], id="warnings"),
        pytest.param("q=H100-1", ["--grep", "H100-1"], id="with a text, in capitals or not"),
        pytest.param("since=9m", ["--since", "9m"], id="of the last minutes"),
        pytest.param("until=2026-11-21T08:01:00Z", ["--until", "2026-11-21T08:01:00Z"], id="before a time"),
        pytest.param(
            "since=2026-11-21T09:00:00Z&until=2026-11-21T10:00:00Z",
            ["--since", "2026-11-21T09:00:00Z", "--until", "2026-11-21T10:00:00Z"],
            id="between two times",
        ),
        pytest.param("slice=vision&q=has", ["--slice", "vision", "--grep", "has"], id="both"),
    ],
)
def test_a_search_finds_what_the_command_finds(site: Site, query: str, words: list[str]) -> None:
    """H10: newest first, by the same filter."""
    if "9m" in query:  # the command goes by this machine's clock
        words = ["--since", "2026-11-21T09:01:00Z"]
    rows = egs("get", "events", *words, "--limit", 500, "--repo", site.repo, "-o", "json").json
    items = found(site, f"{query}&limit=500")["items"]
    assert items == rows
    assert (query in ("type=Warning",)) or items
    assert [row["at"] for row in items] == sorted((row["at"] for row in items), reverse=True)


def test_nobody_sees_what_happens_to_others(site: Site) -> None:
    """B10, H10: of their workspaces, and of clusters that these span."""
    for who, theirs in (("bo-viewer", "vision"), ("cy-editor", "nlp")):
        items = found(site, "limit=500", who)["items"]
        assert items
        assert {row["request"].partition("/")[0] for row in items if row["request"]} == {theirs}
    assert site.client("bo-viewer").get("/api/v1/events?slice=nlp").status_code == 404
    assert found(site, "gpr=nlp/eval", "bo-viewer")["items"] == []


def test_a_cursor_goes_on_where_the_last_portion_ended(site: Site) -> None:
    """H10: whatever happens meanwhile."""
    whole = found(site, "limit=500")["items"]
    page = found(site, "limit=4")
    read = list(page["items"])
    site.file("vision/meanwhile", nodes=1, clusters=["west"])
    site.pass_time(3)
    while page["next"] is not None:
        page = found(site, f"limit=4&cursor={page['next']}")
        read += page["items"]
        assert len(read) <= len(whole)
    assert read == whole
    assert len(found(site, "limit=500")["items"]) > len(whole)


def test_empty_pages_are_gone_through(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """H10: a question looks at so many events and says where to go on; the SDK and the command do."""
    ends = found(site, "reason=GPRCompleted&limit=500")["items"]
    monkeypatch.setattr(event_search, "SEARCHED", 3)
    page = found(site, "q=nowhere")
    assert (page["items"], page["next"] is None) == ([], False)
    with site.server() as url:
        for call in FACES.values():
            session = call("authenticate", url, KEYS["ada-owner"])
            told = call("events", reason="GPRCompleted", limit=len(ends), authenticated_session=session)
            assert [row.at for row in told] == [row["at"] for row in ends]
        shell = Shell(site, url, tmp_path, capsys)
        for more in ("", f" --limit {len(ends)}"):
            assert shell.on_server(f"get events --reason GPRCompleted -o json{more}").data == ends


@pytest.mark.parametrize(
    ("query", "word"),
    [
        pytest.param("reason=GPRSlept", "GPRSlept", id="no such reason"),
        pytest.param("since=yesterday", "since", id="no such time"),
        pytest.param("cursor=abc", "cursor", id="no such cursor"),
        pytest.param("type=Loud", "type", id="no such kind"),
    ],
)
def test_what_cannot_be_searched_is_said(site: Site, query: str, word: str) -> None:
    """H10."""
    answer = site.client("ada-owner").get(f"/api/v1/events?{query}")
    assert (answer.status_code, word in answer.json()["message"]) == (422, True), answer.text


def test_the_command_says_how_times_are_written(site: Site) -> None:
    """H10."""
    done = egs("get", "events", "--repo", site.repo, "--since", "yesterday")
    assert (done.code, "2h" in done.err) == (2, True)


def test_no_file_of_an_hour_before_the_time_is_read() -> None:
    """H10: a search costs what it looks at."""
    read: list[str] = []

    def rows(path: str) -> list[dict[str, str]]:
        read.append(path)
        return [{"at": "2026-11-21T09:30:00Z"}, {"at": "2026-11-21T09:40:00Z"}]

    paths = ["events/2026-11-21/08-0.yaml", "events/2026-11-21/09-2.yaml", "events/2026-11-21/09-10.yaml"]
    wanted = Filter(since=parse_instant("2026-11-21T09:35:00Z"))

    def found(part: Between) -> list[Spot]:
        return [spot for spot, row in looked(newest_first(paths), rows, wanted, part) if wanted.takes(row)]

    spots = found(Between())
    assert spots == [Spot(paths[2], 1), Spot(paths[1], 1)]
    assert read == [paths[2], paths[1]]
    assert found(Between(before=spots[0])) == [spots[1]]


def test_a_log_that_is_followed_is_that_of_its_commit(site: Site) -> None:
    """H10: the log of one commit stays as it was."""
    reader = EventReader(site.portal.store)
    status = site.view.status
    log = reader.at(status)
    assert log.files == site.view.events.files
    site.file("vision/once", nodes=1, clusters=["west"])
    site.settle()
    assert reader.at(site.view.status).files == site.view.events.files
    assert log.files != site.view.events.files


def test_a_cancelled_request_is_found_by_its_id(tmp_path: Path) -> None:
    """H10: its file and its status are gone; others of its name are others."""
    site = Site(tmp_path, poll=timedelta(minutes=10))
    try:
        site.settle()
        site.file("vision/waits", nodes=9)
        site.settle()
        id_ = site.view.facts.requests["vision/waits"].uid
        site.commit({gpr_path("vision/waits"): None})
        site.settle()
        for who in ("bo-viewer", "ada-owner"):
            reasons = [row["reason"] for row in found(site, f"gpr={id_}", who)["items"]]
            assert (reasons[0], reasons[-1]) == ("GPRCancelled", "GPRCreated")
        rows = egs("get", "events", "--gpr", id_, "--repo", site.repo, "-o", "json").json
        assert [row["reason"] for row in rows] == reasons
        assert found(site, f"gpr={id_}", "cy-editor")["items"] == []
    finally:
        site.close()


def test_who_had_a_node_is_found_by_it(site: Site) -> None:
    """H10: also where the nodes of a request are in the message alone."""
    rows = found(site, "gpr=vision/train&limit=500")["items"]
    (has,) = (row for row in rows if row["reason"] == "GPRProvisioned")
    assert not has["node"]
    node = has["message"].split(" has ")[1].split(",")[0]
    for name in (node, f"east/{node}"):
        told = {row["reason"] for row in found(site, f"gpr=vision/train&node={name}&limit=500")["items"]}
        assert told >= {"GPRProvisioning", "GPRProvisioned", "GPRCompleted"}
    assert found(site, f"node=west/{node}&slice=vision")["items"] == []
    assert found(site, f"node={node[:-1]}")["items"] == []


@pytest.mark.parametrize(
    ("node", "message", "takes"),
    [
        pytest.param("h100-1", "b has h100-1, h100-2 of east/h100", True, id="one of many"),
        pytest.param("h100-2", "it lost h100-2.", True, id="before a full stop"),
        pytest.param("east/h100-1", "b has h100-1 of east/h100", True, id="with the event's cluster"),
        pytest.param("west/h100-1", "b has h100-1 of east/h100", False, id="of another cluster"),
        pytest.param("west/h100-1", "it went to west/h100-1", True, id="of the cluster that is named"),
        pytest.param("h100-1", "b has h100-10 of east/h100", False, id="part of a longer name"),
        pytest.param("h100-1", "b has h100-1.example.com", False, id="the beginning of a longer one"),
        pytest.param("h100", "b has h100-1 of east/h100", False, id="of a path"),
    ],
)
def test_a_message_names_a_node_as_a_whole_word(node: str, message: str, takes: bool) -> None:
    """H10."""
    assert Filter(node=node).takes({"cluster": "east", "message": message}) is takes


def test_no_name_of_others_is_found_as_a_node(tmp_path: Path) -> None:
    """B10: what is hidden from a reader is not found by its letters either."""
    site = Site(tmp_path, poll=timedelta(minutes=10))
    try:
        site.settle()
        site.file("nlp/theirs", nodes=1)
        site.settle()
        row = {"request": "vision/mine", "message": "it waits for nlp/theirs"}
        search = [
            search_of(site.view, site.portal.caller(who), Filter(node="nlp/theirs")).data(row)
            for who in ("ada-owner", "bo-viewer")
        ]
        assert [one is not None for one in search] == [True, False]
    finally:
        site.close()
