"""Calls a server over loopback at a fixed rate, independent of its answers; for benchmarks of the HTTP API."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


def key_of(person: int) -> str:
    """The text of a person's API key."""
    return f"egs_bench_{person:03d}_".ljust(43, "x")


@dataclass(slots=True)
class AnswerTimes:
    """Latencies in seconds, and failed answers."""

    took: list[float] = field(default_factory=list)
    bad: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def told(self, what: str, rate: float) -> str:
        """A one-line summary."""
        every = sorted(self.took)
        if not every:
            return f"{what}: no answer"
        at = [1000 * every[min(len(every) - 1, int(len(every) * part))] for part in (0.5, 0.95, 0.99)]
        return (
            f"{what}: {len(every)} answers, {rate:.0f}/s, p50 {at[0]:.1f} ms, p95 {at[1]:.1f} ms, "
            f"p99 {at[2]:.1f} ms, longest {1000 * every[-1]:.0f} ms, refused {len(self.bad)}"
        )


class Line:
    """Open connections to one server; as many as there are concurrent calls."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._free: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        """Status and body."""
        line = self._free.pop() if self._free else await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = line
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
        body = await reader.readexactly(int(length[1]) if length else 0)
        self._free.append(line)
        return int(head.split(b" ", 2)[1]), body


def get(path: str, person: int) -> bytes:
    """The bytes of a GET request."""
    head = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key_of(person)}\r\n\r\n"
    return head.encode()


def post(path: str, person: int, body: dict[str, Any]) -> bytes:
    """The bytes of a POST request."""
    text = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key_of(person)}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
    )
    return head.encode() + text


async def by_the_clock(
    lines: Sequence[Line], request: Callable[[int], tuple[bytes, str]], rate: float, seconds: float
) -> AnswerTimes:
    """`rate` calls per second for the given time, each sent when due, whether the previous was answered or not."""
    asked, begun = AnswerTimes(), time.perf_counter()

    async def one(number: int, due: float) -> None:
        sent, name = request(number)
        try:
            status, body = await lines[number % len(lines)].ask(sent)
        except (OSError, asyncio.IncompleteReadError) as error:
            asked.bad.append(type(error).__name__)
            return
        asked.took.append(time.perf_counter() - due)
        if status == 200:
            asked.names.append(name)
        else:
            asked.bad.append(f"{status} {body[:200]!r}")

    async with asyncio.TaskGroup() as group:
        for number in range(int(rate * seconds)):
            due = begun + number / rate
            if (left := due - time.perf_counter()) > 0:
                await asyncio.sleep(left)
            group.create_task(one(number, due))
    return asked
