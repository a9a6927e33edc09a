"""What is looked at for who searches or follows events, and what is found: H10, B10."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from portal.http.paging import Portion
from portal.identity.callers import Caller
from portal.views import event_search, event_stream
from portal.views.event_log import SEARCHED, EventLog
from portal.views.event_search import EventQuery, found
from portal.views.event_stream import EventStream
from portal.views.view import View
from schemas.reading.units import format_instant, parse_instant
from tests.support.portal import Site

NOON = parse_instant("2026-11-21T12:00:00Z")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("site"), poll=timedelta(minutes=10))
    made.file("nlp/secret")
    made.settle()
    yield made
    made.close()


class Counted(list[dict[str, str]]):
    """Rows that count how many of them were looked at."""

    looks = 0

    def __getitem__(self, at: Any) -> Any:
        Counted.looks += 1
        return super().__getitem__(at)


class Log:
    """Events as they come, and which files are read."""

    def __init__(self, site: Site) -> None:
        self.site, self.read = site, list[str]()
        self.files: dict[str, Counted] = {}
        Counted.looks = 0

    def add(self, at: datetime, number: int = 1, **row: str) -> None:
        """So many events at that instant."""
        base = {"at": format_instant(at), "reason": "GPRQueued", "type": "Normal", "request": "vision/a"}
        rows = self.files.setdefault(f"events/{at:%Y-%m-%d/%H}-0.yaml", Counted())
        rows += [{**base, "message": f"{n}", **row} for n in range(number)]

    @property
    def view(self) -> View:
        """The view of now, with these events."""
        kept = {path: Counted(rows) for path, rows in self.files.items()}

        def rows_of(path: str) -> Counted:
            self.read.append(path)
            return kept[path]

        return replace(self.site.view, events=EventLog({path: path for path in kept}, rows_of))

    def caller(self, who: str) -> Caller:
        """The caller of that key."""
        return self.site.portal.caller(who)


def said(stream: EventStream, log: Log, now: datetime = NOON, who: str = "bo-viewer") -> list[str]:
    """Messages that the stream tells of the present view."""
    return [json.loads(one.text)["message"] for one in stream.tell(log.view, log.caller(who), now)]


def test_a_stream_begins_an_hour_back_at_most(site: Site) -> None:
    """H10: whatever `since` says, nothing before is told or read."""
    log = Log(site)
    for hours in range(100):
        log.add(NOON - timedelta(hours=hours, minutes=30), message=f"{hours}")
    assert said(EventStream(EventQuery(since="2020-01-01T00:00:00Z"), NOON), log) == ["0"]
    assert log.read == ["events/2026-11-21/11-0.yaml"]
    assert said(EventStream(EventQuery(since="20m"), NOON), log) == []


def test_of_a_newer_view_a_stream_looks_at_what_is_newer(site: Site) -> None:
    """H10: each event is told once, and what was looked at is not looked at again, wanted or not."""
    log = Log(site)
    log.add(NOON - timedelta(minutes=50), 300, request="nlp/secret")
    log.add(NOON - timedelta(minutes=40), 2, message="early")
    stream = EventStream(EventQuery(), NOON)
    assert said(stream, log) == ["early", "early"]
    looks = Counted.looks
    assert said(stream, log) == []
    log.add(NOON - timedelta(minutes=40), message="same hour")
    log.add(NOON + timedelta(minutes=1), message="next hour")
    assert said(stream, log, NOON + timedelta(days=1)) == ["same hour", "next hour"]
    assert Counted.looks == looks + 2


def test_a_stream_that_found_nothing_yet_goes_on_from_its_beginning(site: Site) -> None:
    """H10."""
    log = Log(site)
    stream = EventStream(EventQuery(), NOON)
    assert said(stream, log) == []
    log.add(NOON + timedelta(minutes=1), message="first")
    assert said(stream, log, NOON + timedelta(hours=9)) == ["first"]


def test_nothing_is_looked_at_without_end(site: Site) -> None:
    """H10: not for a text that is nowhere, by a stream, a search or a description."""
    log = Log(site)
    log.add(NOON - timedelta(minutes=10), SEARCHED + 5000)
    assert said(EventStream(EventQuery(q="nowhere"), NOON), log) == []
    assert Counted.looks == SEARCHED
    Counted.looks = 0
    wanted = EventQuery(q="nowhere").filter(log.view, NOON)
    items, cursor = found(log.view, log.caller("bo-viewer"), wanted, Portion())
    assert (items, Counted.looks) == ([], SEARCHED + 1)
    assert cursor is not None
    items, cursor = found(log.view, log.caller("bo-viewer"), wanted, Portion(cursor=cursor))
    assert (items, cursor) == ([], None)
    Counted.looks = 0
    assert list(log.view.events.found(wanted)) == []
    assert Counted.looks == SEARCHED


def test_of_one_view_a_stream_tells_the_latest(site: Site) -> None:
    """H10: and does not come back to the others."""
    log = Log(site)
    log.add(NOON - timedelta(minutes=10), 500)
    stream = EventStream(EventQuery(), NOON)
    assert said(stream, log) == [str(n) for n in range(300, 500)]
    assert said(stream, log) == []


@pytest.mark.parametrize(
    "asked",
    [EventQuery(q="nlp/sec"), EventQuery(q="secret"), EventQuery(q="NLP/"), EventQuery(node="nlp/secret")],
    ids=repr,
)
def test_nobody_finds_an_event_by_what_is_hidden_from_them(site: Site, asked: EventQuery) -> None:
    """B10: letter by letter they would read the name."""
    log = Log(site)
    log.add(NOON - timedelta(minutes=5), message="moved because of nlp/secret")
    view = log.view
    for who, is_found in (("bo-viewer", False), ("ada-owner", True)):
        items, _ = found(view, log.caller(who), asked.filter(view, NOON), Portion())
        assert bool(items) is is_found
        assert bool(said(EventStream(asked, NOON), log, who=who)) is is_found
    items, _ = found(view, log.caller("bo-viewer"), EventQuery(q="ANOTHER").filter(view, NOON), Portion())
    assert [item.message for item in items] == ["moved because of another workspace's request"]


def test_the_bounds_are_those_of_one_place() -> None:
    """H10: docs/reference/api.md names them."""
    assert event_search.SEARCHED == event_stream.SEARCHED == SEARCHED == 20_000
    assert event_stream.LATEST == 200
