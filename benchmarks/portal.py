"""What the HTTP API bears on one's own Git server: reads and writes at once, at the rates that are its goals.

    python -m benchmarks.portal [--requests 1000 10000] [--seconds 20] [--reads 1000] [--writes 50] [--replicas 1]
                                [--quotes FOLDER]

A bare repository with that many requests, most of which wait, is decided once by the real controller and served by real
processes of `egs-portal`. A hundred people ask, each with a key of their own: for one request and for the first
page of their slice's, by turns; others file requests. Both go by the clock and not by the answers (an answer that is
late counts from when it was due); where `wrk` is installed it does the reading, with a pause before each question that
makes about that rate. At the end it is looked whether every answered write is on main.

`--quotes FOLDER` asks for wait times in the repository that `python -m benchmarks.cycle --keep FOLDER` left.
Goals: reads p99 <= 100 ms at 1,000 a second, writes p99 <= 1 s at 50 a second, quotes p99 <= 10 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.asking import AnswerTimes, Line, by_the_clock, get, key_of, post
from benchmarks.repositories import ENVIRONMENT, data, git
from portal.views.quotes import WaitAsk, quoted
from portal.views.reader import Reader
from reconciler.clock import SystemClock
from reconciler.compose import controller
from reconciler.settings import Settings
from reconciler.store.document_cache import DocumentCache
from reconciler.store.git.git_store import GitStore
from schemas.documents.apikey import digest_of
from schemas.reading.reader import READER_VERSION
from schemas.reading.yaml_text import dump

PEOPLE = 100
ADMIN, MEMBER = PEOPLE, PEOPLE + 1
"""Further callers: an admin, and a person whose key is for the first slice alone."""
PER_SLICE = 100
"""Requests of one slice at most."""
HEAD = {"apiVersion": "egs.dev/v1alpha1"}
_COMMITTER = b"committer Ada <ada@example.com> 1767225600 +0000\n"
START_S = 300.0
QUOTES = 1000


# -- the repository --------------------------------------------------------------------------------------------------


def slices_for(requests: int) -> int:
    """How many slices that many requests stand in."""
    return max(4, requests // PER_SLICE)


def files(requests: int) -> Iterator[tuple[str, str]]:
    """Path and text of everything on main."""
    pool = {"name": "h100", "gpuShape": "H100-80GB", "gpusPerNode": 8, "memoryPerGpu": 80, "nodes": 50}
    yield (
        "project.yaml",
        _document(
            "Project",
            "default",
            {"admins": [{"email": "ada@example.com"}], "limits": {"requestsPerSlice": 1000}},
        ),
    )
    for name in ("east", "west"):
        spec = {"driver": "embedded", "mode": "manage", "pools": [pool]}
        yield f"clusters/{name}.yaml", _document("Cluster", name, spec)
    everybody = [{"email": f"p{n:03d}@example.com"} for n in range(PEOPLE)]
    count = slices_for(requests)
    for number in range(count):
        spec = {"members": everybody, "clusters": ["east", "west"], "namespaces": [f"s{number:04d}"]}
        yield f"slices/s{number:04d}/slice.yaml", _document("Slice", f"s{number:04d}", spec)
    for person in range(PEOPLE):
        spec = {"sha256": digest_of(key_of(person)), "email": f"p{person:03d}@example.com", "role": "Editor"}
        yield f"keys/p{person:03d}.yaml", _document("ApiKey", f"p{person:03d}", spec)
    owner = {"sha256": digest_of(key_of(ADMIN)), "email": "ada@example.com", "role": "Owner"}
    yield "keys/admin.yaml", _document("ApiKey", "admin", owner)
    of_one = {"sha256": digest_of(key_of(MEMBER)), "email": "p000@example.com", "role": "Editor"}
    yield "keys/member.yaml", _document("ApiKey", "member", of_one | {"slices": ["s0000"]})
    for number in range(requests):
        slice_, name = f"s{number % count:04d}", f"r{number:06d}"
        spec = {"slice": slice_, "nodes": 1 + number % 4, "duration": "6h", "gpuShape": "H100-80GB"}
        yield f"slices/{slice_}/gprs/{name}.yaml", _document("GPR", name, spec)


def _document(kind: str, name: str, spec: dict[str, Any]) -> str:
    return dump({**HEAD, "kind": kind, "metadata": {"name": name}, "spec": spec})


def make(folder: Path, requests: int) -> Path:
    """The repository, decided by the real controller."""
    repo = folder / "fleet.git"
    repo.mkdir(parents=True)
    git(repo, "init", "--quiet", "--bare", "--initial-branch=main")
    stream = [b"commit refs/heads/main\n" + _COMMITTER + data(b"The fleet")]
    stream += [f"M 100644 inline {path}\n".encode() + data(text.encode()) for path, text in files(requests)]
    git(repo, "fast-import", "--quiet", "--done", given=b"".join(stream) + b"done\n")
    command = [sys.executable, "-m", "benchmarks.portal", "--decide", str(folder)]
    subprocess.run(command, check=True)
    return repo


def decide(folder: Path) -> None:
    """The controller's cycles until it rests; in a process of its own, which then gives its memory back."""
    settings = Settings(repo=str(folder / "fleet.git"), state=folder / "controller", pushes_per_minute=None)
    one, clock = controller(settings, adopt=True), SystemClock()
    for _ in range(10):
        if one.cycle(clock.now()).wake > clock.now():
            return


# -- asking ----------------------------------------------------------------------------------------------------------


def reading(requests: int) -> Callable[[int], tuple[bytes, str]]:
    """One request, or the first page of a slice, by turns."""
    count = slices_for(requests)

    def request(number: int) -> tuple[bytes, str]:
        person, which = number % PEOPLE, number * 7919 % requests
        if number % 10 == 9:
            return get(f"/api/v1/gpr/list?sliceName=s{which % count:04d}&limit=20", person), ""
        return get(f"/api/v1/gpr?gprId=s{which % count:04d}/r{which:06d}", person), ""

    return request


def writing(requests: int) -> Callable[[int], tuple[bytes, str]]:
    """New requests, by everybody, in all slices."""
    count, begun = slices_for(requests), f"{time.time_ns() // 1_000_000_000:x}"

    def request(number: int) -> tuple[bytes, str]:
        slice_, name = f"s{number % count:04d}", f"w{begun}-{number:05d}"
        body = {
            "name": name,
            "gprName": name,
            "sliceName": slice_,
            "numberOfGPUs": 8,
            "numberOfGPUNodes": 1,
            "gpuShape": "H100-80GB",
            "exitDuration": "0d2h0m",
        }
        return post("/api/v1/gpr", number % PEOPLE, body), f"slices/{slice_}/gprs/{name}.yaml"

    return request


# -- the portal ------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def served(repo: Path, state: Path, replicas: int) -> Iterator[list[int]]:
    """Processes of `egs-portal`, ready; gives their ports."""
    ports, processes = [_free_port() for _ in range(replicas)], list[subprocess.Popen[bytes]]()
    try:
        for number, port in enumerate(ports):
            command = [str(Path(sys.executable).with_name("egs-portal")), "--repo", str(repo)]
            command += ["--state", str(state / str(number)), "--listen", f"127.0.0.1:{port}"]
            log = (state.parent / f"portal-{number}.log").open("wb")
            processes.append(subprocess.Popen(command, env={**os.environ, **ENVIRONMENT}, stderr=log))
        for port in ports:
            _until_ready(port)
        yield ports
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


@contextlib.contextmanager
def fleet_served(requests: int, keep: Path | None) -> Iterator[int]:
    """The port of a portal on a repository with that many requests, made first or kept in that folder."""
    cores, load = os.cpu_count(), f"load {os.getloadavg()[0]:.1f}"
    print(f"{cores} cores, {platform.machine()}, Python {platform.python_version()}, {load}")
    with tempfile.TemporaryDirectory(prefix="egs-bench-") as name:
        folder = keep or Path(name)
        repo = folder / "fleet.git"
        if not repo.exists():
            make(folder, requests)
        with served(repo, Path(name) / "portals", 1) as (port,):
            yield port
    print(f"load {os.getloadavg()[0]:.1f} at the end")


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _until_ready(port: int) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            status, _ = asyncio.run(Line(port).ask(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"))
            if status == 200:
                return
        time.sleep(0.1)
    raise SystemExit("the portal did not get ready")


# -- what is measured ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Load:
    """What is asked of it."""

    reads: float
    writes: float
    seconds: float
    replicas: int


def load(requests: int, wanted: Load) -> None:
    """Make a repository of that size, serve it, and ask."""
    with tempfile.TemporaryDirectory(prefix="egs-bench-") as name:
        folder = Path(name)
        begun = time.perf_counter()
        repo = make(folder, requests)
        print(f"\n{requests} requests; made and decided in {time.perf_counter() - begun:.0f} s", flush=True)
        begun = time.perf_counter()
        with served(repo, folder / "portals", wanted.replicas) as ports:
            print(f"ready after {time.perf_counter() - begun:.1f} s", flush=True)
            _measure(requests, wanted, ports, repo, folder)


def _measure(requests: int, wanted: Load, ports: list[int], repo: Path, folder: Path) -> None:
    lines = [Line(port) for port in ports]
    asyncio.run(by_the_clock(lines, writing(requests + 1), 5, 2))  # the first write reads all of main
    lines = [Line(port) for port in ports]
    readers = [_wrk(requests, port, wanted, folder / f"{port}.lua") for port in ports]

    async def both() -> tuple[AnswerTimes, AnswerTimes]:
        rate = 0 if readers[0] is not None else wanted.reads
        async with asyncio.TaskGroup() as group:
            reads = group.create_task(by_the_clock(lines, reading(requests), rate, wanted.seconds))
            writes = group.create_task(by_the_clock(lines, writing(requests), wanted.writes, wanted.seconds))
        return reads.result(), writes.result()

    reads, writes = asyncio.run(both())
    if reads.took:
        print(reads.told("reads ", len(reads.took) / wanted.seconds))
    for reader in readers:
        if reader is not None:
            print(reader.communicate()[0].strip())
    print(writes.told("writes", len(writes.took) / wanted.seconds))
    for bad in dict.fromkeys([*reads.bad, *writes.bad]):
        print(f"  refused: {bad}")
    there = set(git(repo, "ls-tree", "-r", "--name-only", "main").decode().splitlines())
    missing = [name for name in writes.names if name not in there]
    print(f"answered writes that are not on main: {len(missing)}", flush=True)


_LUA = """
local n = 0
request = function()
  n = n + 1
  local which = (n * 7919) %% %(requests)d
  local path = string.format("/api/v1/gpr?gprId=s%%04d/r%%06d", which %% %(slices)d, which)
  if n %% 10 == 0 then
    path = string.format("/api/v1/gpr/list?sliceName=s%%04d&limit=20", which %% %(slices)d)
  end
  local key = string.format("egs_bench_%%03d_", n %% %(people)d)
  key = key .. string.rep("x", 43 - #key)
  return wrk.format("GET", path, {["Authorization"] = "Bearer " .. key})
end
delay = function() return %(delay)d end
"""
LINES = 60
"""Connections of `wrk`; each asks again some time after its answer."""
USUAL_MS = 16
"""What an answer takes in the mean: with the pause it makes the rate."""


def _wrk(requests: int, port: int, wanted: Load, script: Path) -> subprocess.Popen[str] | None:
    """Asks at about the rate for so long; None: it is not installed."""
    program = shutil.which("wrk")
    if program is None:
        return None
    delay = int(1000 * LINES * wanted.replicas / wanted.reads) - USUAL_MS if wanted.reads else 0
    values = {"requests": requests, "slices": slices_for(requests), "people": PEOPLE, "delay": delay}
    script.write_text(_LUA % values)
    command = [program, "-t1", f"-c{LINES}", f"-d{int(wanted.seconds)}s", "--latency", "-s", str(script)]
    return subprocess.Popen([*command, f"http://127.0.0.1:{port}"], stdout=subprocess.PIPE, text=True)


# -- quotes ----------------------------------------------------------------------------------------------------------


def quotes(folder: Path, count: int) -> None:
    """Wait times in a repository that is there, one after the other."""
    settings = Settings(repo=str(folder / "fleet.git"), state=folder / "portal-state")
    settings.state.mkdir(exist_ok=True)
    store = GitStore(settings.repo, settings.state / "mirror.git")
    reader = Reader(
        store, DocumentCache(settings.state / "d.sqlite", READER_VERSION), settings, SystemClock()
    )
    begun = time.perf_counter()
    reader.refresh()
    view = reader.view()
    size = len(view.facts.requests)
    print(f"\nquotes with {size} requests; read in {time.perf_counter() - begun:.0f} s", flush=True)
    names, took = sorted(view.wanted.slices), list[float]()
    for number in range(count + 5):
        ask = WaitAsk(
            slice_name=names[number * 7919 % len(names)],
            number_of_gpus=8,
            number_of_gpu_nodes=1 + number % 4,
            exit_duration=f"0d{1 + number % 12}h0m",
        )
        begun = time.perf_counter()
        quoted(view, ask, view.facts.at)
        took.append(time.perf_counter() - begun)
    print(f"first {1000 * took[0]:.0f} ms")
    print(AnswerTimes(took=took[5:]).told("quotes", count / sum(took[5:])), flush=True)
    store.close()


def main() -> None:
    """Everything that was asked for, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, nargs="*", default=[1000, 10_000])
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--reads", type=float, default=1000)
    parser.add_argument("--writes", type=float, default=50)
    parser.add_argument("--replicas", type=int, default=1)
    parser.add_argument("--quotes", type=Path, help="folder of a repository that benchmarks.cycle kept")
    parser.add_argument("--decide", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.decide is not None:
        decide(given.decide)
        return
    print(f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}")
    wanted = Load(given.reads, given.writes, given.seconds, given.replicas)
    for requests in given.requests:
        load(requests, wanted)
    if given.quotes is not None:
        quotes(given.quotes, QUOTES)


if __name__ == "__main__":
    main()
