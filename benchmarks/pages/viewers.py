"""How soon the last of many viewers is told of a commit, and what their streams cost.

    python -m benchmarks.pages.viewers [--viewers 1000] [--commits 10] [--requests 200]

A repository as in `benchmarks.portal`, decided by the real controller and served by one process of `egs-portal`. So
many streams of `GET live` are open, by a hundred people with the same rights. With `--calendar` each gets bars too.
A member files a request through the portal; the time begins with that call, so it includes the push.

Goal: the last viewer is told within 2 s of the commit.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import statistics
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.asking import Line, get
from benchmarks.portal import PEOPLE, make, served, writing

_OPEN_AT_ONCE = 50
_WAIT_S = 60.0


@dataclass(slots=True)
class Viewers:
    """Open streams, and when each was told."""

    told: dict[str, list[float]] = field(default_factory=dict)
    """By id of the commit."""
    events: dict[str, float] = field(default_factory=dict)
    bytes_heard: int = 0

    async def watch(self, port: int, person: int, path: str, is_open: asyncio.Event) -> None:
        """Read one stream until it ends."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(get(path, person))
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head.split(b"\r\n", 1)[0]:
            raise SystemExit(f"a stream was refused: {head[:200]!r}")
        while line := await reader.readline():
            self.bytes_heard += len(line)
            if line.startswith(b"id: "):
                self.told.setdefault(line[4:].decode().strip(), []).append(time.perf_counter())
                is_open.set()


async def _measure(port: int, wanted: argparse.Namespace, process: int) -> None:
    viewers, path = Viewers(), "/api/v1/live" + ("?calendar=true" if wanted.calendar else "")
    opened, streams = [asyncio.Event() for _ in range(wanted.viewers)], []
    before = _used(process)
    for number, is_open in enumerate(opened):
        streams.append(asyncio.create_task(viewers.watch(port, number % PEOPLE, path, is_open)))
        if number % _OPEN_AT_ONCE == _OPEN_AT_ONCE - 1:
            await is_open.wait()
    await asyncio.gather(*(is_open.wait() for is_open in opened))
    after = _used(process)
    print(f"{wanted.viewers} streams: memory {before[1]:.0f} → {after[1]:.0f} MiB", flush=True)
    write, line, last, heard = writing(wanted.requests + 1), Line(port), list[float](), viewers.bytes_heard
    half = list[float]()
    for number in range(wanted.commits):
        known = set(viewers.told)
        asked = time.perf_counter()
        status, body = await line.ask(write(number)[0])
        if status != 200:
            raise SystemExit(f"{status} {body[:300]!r}")
        times = await _all_told(viewers, known, wanted.viewers)
        last.append(times[-1] - asked)
        half.append(times[len(times) // 2] - asked)
        await asyncio.sleep(1)
    spent = _used(process)[0] - after[0]
    told = (viewers.bytes_heard - heard) / wanted.commits / wanted.viewers
    print(
        f"last told after {statistics.median(last):.2f} s in the median, {max(last):.2f} s at worst; half after "
        f"{statistics.median(half):.2f} s; {1000 * spent / wanted.commits:.0f} ms of CPU and {told:.0f} bytes a "
        "viewer for each commit",
        flush=True,
    )
    for stream in streams:
        stream.cancel()


async def _all_told(viewers: Viewers, known: set[str], count: int) -> list[float]:
    """When each was told of the new commit, sorted."""
    deadline = time.perf_counter() + _WAIT_S
    while time.perf_counter() < deadline:
        for id_ in set(viewers.told) - known:
            if len(viewers.told[id_]) >= count:
                return sorted(viewers.told[id_])
        await asyncio.sleep(0.005)
    raise SystemExit("some viewers were never told")


def _used(process: int) -> tuple[float, float]:
    """Seconds of CPU and MiB of memory that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    seconds = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return seconds, int(fields[21]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--viewers", type=int, default=1000)
    parser.add_argument("--commits", type=int, default=10)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--calendar", action="store_true")
    given = parser.parse_args()
    print(f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}")
    with tempfile.TemporaryDirectory(prefix="egs-bench-") as name:
        folder = Path(name)
        repo = make(folder, given.requests)
        with served(repo, folder / "portals", 1) as ports:
            asyncio.run(_measure(ports[0], given, _child()))


def _child() -> int:
    """The one process that was started: the portal."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return int(children[0])


if __name__ == "__main__":
    main()
