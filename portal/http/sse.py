"""Server-sent events: what a view says now, and again what changed with each newer view.

Each event has the status commit as its id; a client that reconnects with `Last-Event-ID` of the newest commit gets
only what comes after it. Comment lines keep proxies from closing a quiet stream. The caller is checked again with
every view: after a key is revoked, or a member removed, nothing more is sent.

Events are computed in threads of their own, so that other answers do not wait. One key or person may have a limited
number of streams, and a client that stops reading loses its stream.

Held by tests/portal/views/test_reader.py and tests/portal/test_streams.py.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from fastapi import Request
from fastapi.responses import StreamingResponse
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from portal.http.context import Parts, Reads
from portal.http.errors import ApiError, too_often, unavailable
from portal.identity.callers import Caller
from portal.views.view import View

KEEP_ALIVE_S = 15.0
MOST_STREAMS = 1000
"""Streams of one process; further ones are refused."""
MOST_OF_ONE = 20
"""Streams of one key or login."""
MOST_OF_A_PERSON = 2 * MOST_OF_ONE
"""Streams of one person over all keys and logins."""
SEND_S = 60.0
"""Longest time a client may take to read once the connection's buffers are full."""
_AGAIN_S = 15
_TELLERS = ThreadPoolExecutor(2, thread_name_prefix="stream")
_KEEP_ALIVE = b": keep-alive\n\n"
_END = b"retry: 2000\n: the server ends\n\n"

STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A stream of events, until the client or the server ends it.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}
"""`responses` of a path that streams."""


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event of a view: sent again when the text under its key changed."""

    key: str
    event: str
    text: str
    """One line, mostly JSON."""
    is_last: bool = False
    """The stream ends after it."""


Tell = Callable[[View], Iterable[StreamEvent]]
"""All events of a view for this caller. An ApiError ends the stream and is sent as its last event."""


@dataclass(slots=True)
class Streams:
    """Open streams per caller. Belongs to the event loop."""

    _open: Counter[str] = field(default_factory=Counter)

    def check(self, caller: Caller) -> None:
        """ApiError 429 if the caller has too many open, 503 if the process has."""
        for who, most in _bounds(caller):
            if self._open[who] >= most:
                whose = "with this key" if who != _person(caller) and caller.key else "by you"
                text = f"{most} streams are open {whose}; end one, or follow a whole workspace with one"
                raise too_often(_AGAIN_S, text)
        if self._open[_ALL] >= MOST_STREAMS:
            raise unavailable(
                f"{MOST_STREAMS} streams are open here; try again later, or use another replica"
            )

    @contextlib.contextmanager
    def one_more(self, caller: Caller) -> Iterator[None]:
        """Count one more stream while the block runs."""
        names = (_ALL, *(who for who, _ in _bounds(caller)))
        self._open.update(names)
        try:
            yield
        finally:
            self._open.subtract(names)
            for name in names:
                if not self._open[name]:
                    del self._open[name]


_ALL = ""


def _bounds(caller: Caller) -> tuple[tuple[str, int], ...]:
    return ((caller.counted, MOST_OF_ONE), (_person(caller), MOST_OF_A_PERSON))


def _person(caller: Caller) -> str:
    return f"person {caller.email}"


@dataclass(slots=True)
class _Listener:
    """What was sent to one client."""

    heard: dict[str, str] = field(default_factory=dict)
    is_done: bool = False
    """The last event was sent."""

    def news(self, view: View, tell: Tell) -> bytes:
        """What changed with this view, as bytes for the wire."""
        now = {told.key: told for told in tell(view)}
        fresh = [told for key, told in now.items() if self.heard.get(key) != told.text]
        self.heard = {key: told.text for key, told in now.items()}
        self.is_done = any(told.is_last for told in now.values())
        return b"".join(_sent(told, view.status) for told in fresh)


def _sent(told: StreamEvent, id_: str) -> bytes:
    lines = "".join(f"data: {line}\n" for line in told.text.splitlines() or [""])
    return f"id: {id_}\nevent: {told.event}\n{lines}\n".encode()


async def heard(reads: Reads, tell: Tell, last: str) -> AsyncIterator[bytes]:
    """The stream's bytes; `last` is the status commit that the client already has, if any."""
    view, listener = reads.view(), _Listener()

    async def news() -> bytes:
        return await asyncio.get_running_loop().run_in_executor(_TELLERS, listener.news, view, tell)

    try:
        first = await news()
        yield _KEEP_ALIVE if last and last == view.status else first or _KEEP_ALIVE
        while not (reads.is_ending or listener.is_done):
            newer = await reads.newer(view, KEEP_ALIVE_S)
            if newer is not view:
                view = newer
                if told := await news():
                    yield told
            else:
                yield _KEEP_ALIVE
        if not listener.is_done:
            yield _END
    except ApiError as error:
        yield _sent(StreamEvent("", "error", f"{error.reason}: {error}"), view.status)


_STREAMS = Streams()


def streaming(request: Request, parts: Parts, caller: Caller, tell: Tell) -> StreamingResponse:
    """The answer of a path that streams. `tell` should check the caller again with `parts.logins.recognise`."""
    return counted(heard(parts.reads, tell, request.headers.get("Last-Event-ID", "")), caller)


def counted(stream: AsyncIterator[bytes], caller: Caller) -> StreamingResponse:
    """The answer with these bytes, as one of the caller's streams; ApiError 429 or 503 if there are too many."""
    _STREAMS.check(caller)
    return _Streaming(stream, caller)


class _Streaming(StreamingResponse):
    """Counted from its first byte to its last; ended if the client does not read."""

    media_type = "text/event-stream"

    def __init__(self, stream: AsyncIterator[bytes], caller: Caller) -> None:
        super().__init__(stream, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        self._caller = caller

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def in_time(message: Message) -> None:
            async with asyncio.timeout(SEND_S):
                await send(message)

        with _STREAMS.one_more(self._caller), contextlib.suppress(TimeoutError, ClientDisconnect):
            await super().__call__(scope, receive, in_time)
