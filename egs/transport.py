"""Runs scripts on the calling thread; `egs.aio.transport` is its asynchronous twin.

No decisions here. httpx is loaded with the first session, not with `import egs`.

Held by tests/egs/test_sdk_transport.py.
"""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Iterator
from typing import Any, TypeVar

import httpx

from egs.connection import Connection
from egs.steps import Alone, Answer, Feed, Give, NextChunk, Open, Outgoing, Pause, Script, Send, Unreached

T = TypeVar("T")

HEADERS = {"user-agent": "egs-client"}
NEVER_SENT = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
)
"""Failures before the request was sent."""


def run(script: Script[T]) -> T:
    """Run a script; returns its result."""
    wires = _Wires()
    try:
        step = next(script)
        while True:
            step = _sent(script, wires, step)
    except StopIteration as done:
        result: T = done.value
        return result


def feed(script: Feed[T]) -> Iterator[T]:
    """Iterate over a feed; its stream is closed when the caller stops."""
    wires = _Wires()
    try:
        step = next(script)
        while True:
            if isinstance(step, Give):
                yield step.value
                step = script.send(None)
            else:
                step = _sent(script, wires, step)
    except StopIteration:
        return
    finally:
        wires.close()


def _sent(script: Script[Any], wires: _Wires, step: Any) -> Any:
    """Carry out a step and send the result to the script; returns its next step."""
    try:
        result = wires.carry(step)
    except Unreached as fault:
        return script.throw(fault)
    return script.send(result)


class _Wires:
    """The one stream that a script may have open."""

    def __init__(self) -> None:
        self._stream: httpx.Response | None = None
        self._chunks: Iterator[bytes] = iter(())

    def carry(self, step: Any) -> Any:
        match step:
            case Send(connection, outgoing):
                return _answer(connection, outgoing)
            case Pause(seconds):
                return time.sleep(seconds)
            case Alone(connection, script):
                with connection.lock:
                    return run(script)
            case Open(connection, outgoing):
                return self._open(connection, outgoing)
            case NextChunk():
                return self._next_chunk()
        raise TypeError(f"no such step: {step!r}")

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
        self._stream = None

    def _open(self, connection: Connection, outgoing: Outgoing) -> Answer:
        self.close()
        client = client_of(connection)
        request = built(client, connection, outgoing, connection.patience.stream_s)
        try:
            self._stream = client.send(request, stream=True)
            if self._stream.is_success:
                self._chunks = self._stream.iter_bytes()
                return read(self._stream, "")
            self._stream.read()
        except httpx.TransportError as error:
            raise unreached(error) from error
        answer = read(self._stream, self._stream.text)
        self.close()
        return answer

    def _next_chunk(self) -> bytes | None:
        try:
            return next(self._chunks, None)
        except httpx.TransportError as error:
            raise unreached(error) from error


def _answer(connection: Connection, outgoing: Outgoing) -> Answer:
    client = client_of(connection)
    try:
        response = client.send(built(client, connection, outgoing, connection.patience.read_s))
    except httpx.TransportError as error:
        raise unreached(error) from error
    return read(response, response.text)


def client_of(connection: Connection) -> httpx.Client:
    """The connection's HTTP client in this process; a forked one gets its own."""
    client: httpx.Client = connection.pool(
        os.getpid(), lambda: httpx.Client(headers=HEADERS, verify=trusted(connection))
    )
    return client


def trusted(connection: Connection) -> ssl.SSLContext | bool:
    """The authorities that a server may be certified by; none for one without TLS, because reading them takes 20 ms."""
    return connection.url.startswith("https:") or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def close(connection: Connection) -> None:
    """Close the client of this process, if there is one."""
    client = connection.forget(os.getpid())
    if client is not None:
        client.close()


def built(
    client: httpx.Client | httpx.AsyncClient, connection: Connection, outgoing: Outgoing, read_s: float
) -> httpx.Request:
    """The request for httpx, with a timeout for every wait."""
    return client.build_request(
        outgoing.method,
        connection.url + outgoing.path,
        headers=dict(outgoing.headers),
        params=dict(outgoing.params),
        json=outgoing.body,
        timeout=httpx.Timeout(read_s, connect=connection.patience.connect_s),
    )


def read(response: httpx.Response, text: str) -> Answer:
    return Answer(
        response.status_code, {name.lower(): value for name, value in response.headers.items()}, text
    )


def unreached(error: httpx.TransportError) -> Unreached:
    words = " ".join(str(error).split())
    why = f"{type(error).__name__}: {words}" if words else type(error).__name__
    return Unreached(why, sent=not isinstance(error, NEVER_SENT))
