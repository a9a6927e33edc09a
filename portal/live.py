"""Server-sent events: what a view says now, and again whatever of it is another with a newer view.

Each event has the status commit as its id; who comes back with `Last-Event-ID` of the newest commit is told only what
comes after it. A line of comment now and then keeps proxies from closing a quiet stream. The caller is looked at again
with every view: a key that was revoked, or a member who is none any more, hears nothing further.

Held by tests/portal/test_reading.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from fastapi import Request
from fastapi.responses import StreamingResponse

from portal.errors import ApiError, unavailable
from portal.serving import Parts, Reads
from portal.view import View

KEEP_ALIVE_S = 15.0
MOST_STREAMS = 1000
"""Streams of one process; one more is sent away."""
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
class Told:
    """One thing that a view says: told again when the text under its key is another."""

    key: str
    event: str
    text: str
    """One line, mostly JSON."""


Tell = Callable[[View], Iterable[Told]]
"""All that a view has to say to this caller. An ApiError ends the stream, and is told as its last event."""


@dataclass(slots=True)
class Streams:
    """How many are open."""

    count: int = 0


@dataclass(slots=True)
class _Listener:
    """What one caller has heard."""

    heard: dict[str, str] = field(default_factory=dict)

    def news(self, view: View, tell: Tell) -> bytes:
        """What is new in this view, as it goes over the wire."""
        now = {told.key: told for told in tell(view)}
        fresh = [told for key, told in now.items() if self.heard.get(key) != told.text]
        self.heard = {key: told.text for key, told in now.items()}
        return b"".join(_sent(told, view.status) for told in fresh)


def _sent(told: Told, id_: str) -> bytes:
    lines = "".join(f"data: {line}\n" for line in told.text.splitlines() or [""])
    return f"id: {id_}\nevent: {told.event}\n{lines}\n".encode()


async def heard(reads: Reads, tell: Tell, last: str) -> AsyncIterator[bytes]:
    """The stream's bytes; `last` is the status commit that the caller has heard of already, if any."""
    view, listener = reads.view(), _Listener()
    try:
        first = listener.news(view, tell)
        yield _KEEP_ALIVE if last and last == view.status else first or _KEEP_ALIVE
        while not reads.is_ending:
            newer = await reads.newer(view, KEEP_ALIVE_S)
            if newer is not view:
                view = newer
                if news := listener.news(view, tell):
                    yield news
            else:
                yield _KEEP_ALIVE
        yield _END
    except ApiError as error:
        yield _sent(Told("", "error", f"{error.reason}: {error}"), view.status)


_STREAMS = Streams()


def streaming(request: Request, parts: Parts, tell: Tell) -> StreamingResponse:
    """The answer of a path that streams. `tell` should look at the caller again: `parts.logins.recognise`."""
    if _STREAMS.count >= MOST_STREAMS:
        raise unavailable(f"{MOST_STREAMS} streams are open here; ask again later, or another replica")
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    last = request.headers.get("Last-Event-ID", "")
    return StreamingResponse(
        _counted(heard(parts.reads, tell, last)), media_type="text/event-stream", headers=headers
    )


async def _counted(stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    _STREAMS.count += 1
    try:
        async for part in stream:
            yield part
    finally:
        _STREAMS.count -= 1
