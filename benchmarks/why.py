"""What `gpr/why` and `plan` cost in a long queue, and what they and strangers' nonsense leave of everybody else's time.

    python -m benchmarks.why [--requests 12000] [--questions 60] [--keep FOLDER]

A repository of that many requests, decided once by the real controller and served by a real process of `egs-portal`
(`benchmarks.portal` makes and serves it). One person after the other asks why a request waits, each of another
request; then people ask for the plan; then a stranger posts 32 KiB of unknown fields to `auth`, as fast as
the portal takes it. Meanwhile `healthz` is called ten times a second. Goals: `why` p50 <= 0.5 s, `healthz`
p99 <= 0.1 s throughout.

`--keep FOLDER` keeps the repository there, or takes the one that is there.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from benchmarks.asking import AnswerTimes, Line, get
from benchmarks.portal import PEOPLE, fleet_served, slices_for

PROBE = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
PROBE_EVERY_S = 0.1
PLANS, NONSENSE = 10, 200
MOST_OF_STRANGERS = 32 << 10


def why_of(requests: int, number: int) -> bytes:
    """One question: each of another request, by another person."""
    which = number * 7919 % requests
    return get(f"/api/v1/gpr/why?gprId=s{which % slices_for(requests):04d}/r{which:06d}", number % PEOPLE)


def nonsense() -> bytes:
    """As many unknown fields as a stranger may send."""
    fields = {f"f{number}": 1 for number in range(MOST_OF_STRANGERS // 12)}
    body = json.dumps(fields).encode()
    head = "POST /api/v1/auth HTTP/1.1\r\nHost: x\r\nContent-Type: application/json"
    return f"{head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


async def one_by_one(port: int, questions: list[bytes]) -> AnswerTimes:
    """Each after the answer to the one before."""
    line, found = Line(port), AnswerTimes()
    for question in questions:
        begun = time.perf_counter()
        status, body = await line.ask(question)
        found.took.append(time.perf_counter() - begun)
        if status != 200:
            found.bad.append(f"{status} {body[:60]!r}")
    return found


async def beside(port: int, asked: Awaitable[AnswerTimes]) -> tuple[AnswerTimes, AnswerTimes]:
    """What it gave, and how long `healthz` took meanwhile."""
    probes, line = AnswerTimes(), Line(port)

    async def probing() -> None:
        while True:
            begun = time.perf_counter()
            await line.ask(PROBE)
            probes.took.append(time.perf_counter() - begun)
            await asyncio.sleep(PROBE_EVERY_S)

    probe = asyncio.create_task(probing())
    try:
        return await asked, probes
    finally:
        probe.cancel()


def measure(port: int, requests: int, questions: int) -> None:
    """All three, one after the other."""
    of: dict[str, Callable[[], list[bytes]]] = {
        "why": lambda: [why_of(requests, number) for number in range(questions)],
        "plan": lambda: [get("/api/v1/plan", number) for number in range(PLANS)],
        "nonsense": lambda: [nonsense()] * NONSENSE,
    }
    for name, made in of.items():
        begun = time.perf_counter()
        found, probes = asyncio.run(beside(port, one_by_one(port, made())))
        rate = len(found.took) / (time.perf_counter() - begun)
        print(found.told(name, rate))
        print(probes.told("  healthz meanwhile", 1 / PROBE_EVERY_S))
        for bad in sorted({bad[:3] for bad in found.bad}):
            print(f"  answered {bad}: {sum(each.startswith(bad) for each in found.bad)}", flush=True)


def main() -> None:
    """Makes or takes the repository, serves it and asks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=12_000)
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    with fleet_served(given.requests, given.keep) as port:
        measure(port, given.requests, given.questions)


if __name__ == "__main__":
    main()
