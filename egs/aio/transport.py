"""Runs scripts in an event loop; `egs.transport` is its synchronous twin.

Sockets and the renewal lock belong to one loop each; a session may be used in several.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, TypeVar
from weakref import ref

import httpx

from egs.connection import Connection
from egs.steps import Alone, Answer, Feed, Give, NextChunk, Open, Outgoing, Pause, Script, Send, Unreached
from egs.transport import HEADERS, built, read, trusted, unreached

T = TypeVar("T")


@dataclass
class _Pool:
    """What a connection keeps for one event loop."""

    loop: ref[asyncio.AbstractEventLoop]
    client: httpx.AsyncClient
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


async def run(script: Script[T]) -> T:
    """Run a script; returns its result."""
    wires = _Wires()
    try:
        step = next(script)
        while True:
            try:
                result = await wires.carry(step)
            except Unreached as fault:
                step = script.throw(fault)
            else:
                step = script.send(result)
    except StopIteration as done:
        value: T = done.value
        return value


async def feed(script: Feed[T]) -> AsyncIterator[T]:
    """Iterate over a feed; its stream is closed when the caller stops."""
    wires = _Wires()
    try:
        step = next(script)
        while True:
            if isinstance(step, Give):
                yield step.value
                step = script.send(None)
                continue
            try:
                result = await wires.carry(step)
            except Unreached as fault:
                step = script.throw(fault)
            else:
                step = script.send(result)
    except StopIteration:
        return
    finally:
        await wires.close()


class _Wires:
    """The one stream that a script may have open."""

    def __init__(self) -> None:
        self._stream: httpx.Response | None = None
        self._chunks: AsyncIterator[bytes] | None = None

    async def carry(self, step: Any) -> Any:
        match step:
            case Send(connection, outgoing):
                return await _answer(connection, outgoing)
            case Pause(seconds):
                return await asyncio.sleep(seconds)
            case Alone(connection, script):
                async with _pool(connection).lock:
                    return await run(script)
            case Open(connection, outgoing):
                return await self._open(connection, outgoing)
            case NextChunk():
                return await self._next_chunk()
        raise TypeError(f"no such step: {step!r}")

    async def close(self) -> None:
        if self._stream is not None:
            await self._stream.aclose()
        self._stream = None

    async def _open(self, connection: Connection, outgoing: Outgoing) -> Answer:
        await self.close()
        client = _pool(connection).client
        request = built(client, connection, outgoing, connection.patience.stream_s)
        try:
            self._stream = await client.send(request, stream=True)
            if self._stream.is_success:
                self._chunks = self._stream.aiter_bytes()
                return read(self._stream, "")
            await self._stream.aread()
        except httpx.TransportError as error:
            raise unreached(error) from error
        answer = read(self._stream, self._stream.text)
        await self.close()
        return answer

    async def _next_chunk(self) -> bytes | None:
        assert self._chunks is not None
        try:
            return await anext(self._chunks, None)
        except httpx.TransportError as error:
            raise unreached(error) from error


async def _answer(connection: Connection, outgoing: Outgoing) -> Answer:
    client = _pool(connection).client
    try:
        response = await client.send(built(client, connection, outgoing, connection.patience.read_s))
    except httpx.TransportError as error:
        raise unreached(error) from error
    return read(response, response.text)


def _pool_of(connection: Connection, loop: asyncio.AbstractEventLoop) -> _Pool:
    return _Pool(ref(loop), httpx.AsyncClient(headers=HEADERS, verify=trusted(connection)))


def _pool(connection: Connection) -> _Pool:
    loop = asyncio.get_running_loop()
    pool: _Pool = connection.pool(id(loop), lambda: _pool_of(connection, loop))
    if pool.loop() is not loop:
        # An earlier, closed loop had the same id: its sockets are gone.
        connection.forget(id(loop))
        return _pool(connection)
    return pool


async def close(connection: Connection) -> None:
    """Close the client of this loop, if there is one."""
    pool = connection.forget(id(asyncio.get_running_loop()))
    if pool is not None:
        await pool.client.aclose()
