"""How many streams somebody has, and what becomes of those that nobody reads: K1, D14."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from portal.http import sse
from portal.http.errors import ApiError
from portal.http.sse import MOST_OF_A_PERSON, MOST_OF_ONE, MOST_STREAMS, StreamEvent, Streams, heard
from portal.views import gpr_stream
from portal.views.gpr_stream import Watch
from portal.views.view import View
from tests.support.portal import Site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("site"), poll=timedelta(minutes=10))
    made.file("vision/train")
    made.file("nlp/eval")
    made.settle()
    yield made
    made.close()


def refused(streams: Streams, caller: Any) -> str:
    """The key of the refusal of one more; empty: it is let in."""
    try:
        streams.check(caller)
    except ApiError as error:
        return error.reason
    return ""


def test_nobody_takes_the_streams_of_all(site: Site) -> None:
    """K1: some for a key, twice as many for a person with all of theirs."""
    bo = site.portal.caller("bo-viewer")
    others = [replace(bo, key="bo-second"), replace(bo, key="bo-third"), replace(bo, key="")]
    cy, streams = site.portal.caller("cy-editor"), Streams()
    with contextlib.ExitStack() as first, contextlib.ExitStack() as second:
        for _ in range(MOST_OF_ONE):
            assert refused(streams, bo) == ""
            first.enter_context(streams.one_more(bo))
        assert refused(streams, bo) == "TooManyRequests"
        for _ in range(MOST_OF_A_PERSON - MOST_OF_ONE):
            assert refused(streams, others[0]) == ""
            second.enter_context(streams.one_more(others[0]))
        assert {refused(streams, one) for one in (bo, *others)} == {"TooManyRequests"}
        assert refused(streams, cy) == ""
        first.close()
        assert {refused(streams, one) for one in (bo, *others[1:])} == {""}
    for number in range(MOST_STREAMS):
        second.enter_context(streams.one_more(replace(bo, key=f"k{number}", email=f"{number}@example.com")))
    assert refused(streams, cy) == "Unavailable"
    second.close()
    assert streams == Streams()


@pytest.mark.parametrize("path", ["events/stream", "watch?sliceName=vision", "gpr/watch?gprId=vision/train"])
def test_one_too_many_is_told_so(site: Site, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """K1: as any refusal, with when to ask again."""
    monkeypatch.setattr(sse, "MOST_OF_ONE", 0)
    answer = site.client("bo-viewer").get(f"/api/v1/{path}")
    assert (answer.status_code, answer.json()["error"]["errorKey"]) == (429, "TooManyRequests"), answer.text
    assert "streams are open with this key; end one" in answer.json()["message"]
    assert answer.headers["Retry-After"] == "15"


def test_who_does_not_read_keeps_no_stream(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """K1: once what they were sent fills the connection, it ends, and counts no more."""
    streams, bo = Streams(), site.portal.caller("bo-viewer")
    monkeypatch.setattr(sse, "_STREAMS", streams)
    monkeypatch.setattr(sse, "SEND_S", 0.01)
    monkeypatch.setattr(sse, "MOST_OF_ONE", 1)
    sent: list[str] = []
    were: list[str] = []

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"data: x\n\n"

    async def send(message: Any) -> None:
        sent.append(message["type"])
        were.append(refused(streams, bo))
        if len(sent) == 3:
            await asyncio.Event().wait()

    async def receive() -> Any:
        await asyncio.Event().wait()

    for version in ("2.3", "2.4"):
        sent.clear()
        scope = {"type": "http", "asgi": {"spec_version": version}}
        asyncio.run(sse._Streaming(endless(), bo)(scope, receive, send))
        assert sent == ["http.response.start", "http.response.body", "http.response.body"]
        assert set(were) == {"TooManyRequests"}
        assert streams == Streams()


def test_what_there_is_to_say_is_worked_out_beside_the_loop(site: Site) -> None:
    """D14: nobody else waits for it, neither at the beginning nor with a newer view."""
    threads: list[int] = []

    def tell(view: View) -> list[StreamEvent]:
        threads.append(threading.get_ident())
        return [StreamEvent("x", "gpr", view.main)]

    async def story() -> None:
        stream = heard(site.portal.reader, tell, "")
        await anext(stream)
        waiting = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        await asyncio.to_thread(site.file, "vision/newer")
        await waiting
        await stream.aclose()

    asyncio.run(story())
    assert len(threads) == 2
    assert threading.get_ident() not in threads


def test_streams_share_who_lives(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """D14: all requests are looked through once for a view, however many follow."""
    looked: list[int] = []
    alive = gpr_stream.live

    def counted(requests: Any) -> Any:
        looked.append(1)
        return alive(requests)

    monkeypatch.setattr(gpr_stream, "live", counted)
    view = replace(site.view, _of_plan={}, _worked_out={})
    for who, slice_, key in (("bo-viewer", "vision", "vision/train"), ("cy-editor", "nlp", "nlp/eval")):
        for _ in range(3):
            told = Watch(slice=slice_).tell(view, site.portal.caller(who), site.now)
            assert key in {one.key for one in told}
    assert len(looked) == 1
