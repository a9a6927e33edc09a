"""Server-sent events: what a view says now, and again whatever of it is another with a newer view.

Each event has the status commit as its id; who comes back with `Last-Event-ID` of the newest commit is told only what
comes after it. A line of comment now and then keeps proxies from closing a quiet stream. The caller is looked at again
with every view: a key that was revoked, or a member who is none any more, hears nothing further.

What there is to say is worked out in threads of their own, so that nobody else waits for it. One key or person has a
few streams, and whoever does not read what they are sent loses theirs.

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
"""Streams of one process; one more is sent away."""
MOST_OF_ONE = 20
"""Streams of one key, or of a person who logged in."""
MOST_OF_A_PERSON = 2 * MOST_OF_ONE
"""Streams of one person with all their keys and logins."""
SEND_S = 60.0
"""How long somebody may take to read what they were sent, once it fills the connection's buffers."""
_AGAIN_S = 15
_TELLERS = ThreadPoolExecutor(2, thread_name_prefix="stream")
_KEEP_ALIVE = b": keep-alive\n\n"
_END = b"retry: 2000\n: the server ends\n\n"

STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A stream of events, until the caller or the server ends it.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}
"""`responses` of a path that streams."""


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One thing that a view says: told again when the text under its key is another."""

    key: str
    event: str
    text: str
    """One line, mostly JSON."""
    is_last: bool = False
    """Nothing comes after it: the stream ends."""


Tell = Callable[[View], Iterable[StreamEvent]]
"""All that a view has to say to this caller. An ApiError ends the stream, and is told as its last event."""


@dataclass(slots=True)
class Streams:
    """Who has how many open. Belongs to the event loop."""

    _open: Counter[str] = field(default_factory=Counter)

    def check(self, caller: Caller) -> None:
        """ApiError 429 where one more would be too many of theirs, 503 of everybody's."""
        for who, most in _bounds(caller):
            if self._open[who] >= most:
                whose = "with this key" if who != _person(caller) and caller.key else "by you"
                text = f"{most} streams are open {whose}; end one, or follow a whole workspace with one"
                raise too_often(_AGAIN_S, text)
        if self._open[_ALL] >= MOST_STREAMS:
            raise unavailable(f"{MOST_STREAMS} streams are open here; ask again later, or another replica")

    @contextlib.contextmanager
    def one_more(self, caller: Caller) -> Iterator[None]:
        """Counted for so long."""
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
    """What one caller has heard."""

    heard: dict[str, str] = field(default_factory=dict)
    is_done: bool = False
    """They heard the last there is."""

    def news(self, view: View, tell: Tell) -> bytes:
        """What is new in this view, as it goes over the wire."""
        now = {told.key: told for told in tell(view)}
        fresh = [told for key, told in now.items() if self.heard.get(key) != told.text]
        self.heard = {key: told.text for key, told in now.items()}
        self.is_done = any(told.is_last for told in now.values())
        return b"".join(_sent(told, view.status) for told in fresh)


def _sent(told: StreamEvent, id_: str) -> bytes:
    lines = "".join(f"data: {line}\n" for line in told.text.splitlines() or [""])
    return f"id: {id_}\nevent: {told.event}\n{lines}\n".encode()


async def heard(reads: Reads, tell: Tell, last: str) -> AsyncIterator[bytes]:
    """The stream's bytes; `last` is the status commit that the caller has heard of already, if any."""
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
    """The answer of a path that streams. `tell` should look at the caller again: `parts.logins.recognise`."""
    _STREAMS.check(caller)
    return _Streaming(heard(parts.reads, tell, request.headers.get("Last-Event-ID", "")), caller)


class _Streaming(StreamingResponse):
    """Counted from its first byte to its last; ended where nobody reads."""

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
