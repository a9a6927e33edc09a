"""How long `POST whatif` takes in a long queue, and how far other answers wait.

    python -m benchmarks.what_if [--requests 10000] [--questions 15] [--keep FOLDER]

A repository of that many requests, nearly all waiting, decided once by the real controller and served by a real
process of `egs-portal` (`benchmarks.portal` makes and serves it). One question after the other: an admin files a
request that ranks last, one in the middle and one that ranks first and moves thousands, changes a priority, cancels,
makes two changes at once, and plans maintenance of a cluster; a member, who sees one slice, files the one that ranks
first. Meanwhile `healthz` is called ten times a second. Goal: p50 <= 300 ms for a change of one request.

`--keep FOLDER` keeps the repository there, or takes the one that is there.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from benchmarks.asking import AnswerTimes, Line, post
from benchmarks.portal import ADMIN, MEMBER, fleet_served
from benchmarks.why import PROBE_EVERY_S, beside, one_by_one
from reconciler.clock import SystemClock

WHATIF = "/api/v1/whatif"
QUICK_S = 2.0
"""An answer within this time shows that the compiled planner is loaded."""
PATIENCE_S = 300.0


def filed(priority: int, slice_: str = "s0000") -> dict[str, Any]:
    """A new request of two nodes."""
    terms = {"gpuShape": "H100-80GB", "numberOfGPUNodes": 2, "exitDuration": "6h", "priority": priority}
    return {"do": "file", "sliceName": slice_, "name": "asked", **terms}


def maintenance() -> dict[str, Any]:
    """Of a whole cluster, for a day in two days."""
    begin = SystemClock().now().replace(microsecond=0) + timedelta(days=2)
    times = {"begin": begin.isoformat(), "end": (begin + timedelta(days=1)).isoformat()}
    return {"do": "maintenance", "clusterName": "east", **times}


def questions() -> dict[str, tuple[int, list[dict[str, Any]]]]:
    """By name: who asks, and the changes."""
    third = {"gprId": "s0003/r000503"}
    return {
        "file, ranks last": (ADMIN, [filed(1)]),
        "file, in the middle": (ADMIN, [filed(101)]),
        "file, ranks first": (ADMIN, [filed(150)]),
        "file, ranks first, a member": (MEMBER, [filed(150)]),
        "change a priority": (ADMIN, [{"do": "edit", **third, "priority": 150}]),
        "cancel": (ADMIN, [{"do": "end", **third}]),
        "two changes": (ADMIN, [filed(150), filed(140, "s0007")]),
        "maintenance": (ADMIN, [maintenance()]),
    }


async def warm(port: int) -> None:
    """Asks until the answers are quick."""
    line, end_s = Line(port), time.monotonic() + PATIENCE_S
    while time.monotonic() < end_s:
        begun = time.perf_counter()
        status, body = await line.ask(post(WHATIF, ADMIN, {"changes": [filed(1)]}))
        assert status == 200, body
        if time.perf_counter() - begun < QUICK_S:
            return
    raise SystemExit("answers did not get quick; is the compiled planner there?")


async def effect(port: int, request: bytes) -> str:
    """How many requests move, as told."""
    status, body = await Line(port).ask(request)
    assert status == 200, body
    found = json.loads(body)["data"]
    hidden = found["hidden"]
    moved = len(found["moved"]) + found["moreMoved"] + hidden["later"] + hidden["earlier"]
    return f"{moved} others move, {len(body)} bytes"


def measure(port: int, count: int) -> None:
    """Each question that often."""
    asyncio.run(warm(port))
    probes = AnswerTimes()
    for name, (who, changes) in questions().items():
        request = post(WHATIF, who, {"changes": changes})
        told = asyncio.run(effect(port, request))
        begun = time.perf_counter()
        found, probed = asyncio.run(beside(port, one_by_one(port, [request] * count)))
        probes.took += probed.took
        print(f"{found.told(name, count / (time.perf_counter() - begun))}; {told}", flush=True)
        for bad in sorted(set(found.bad)):
            print(f"  answered {bad}")
    print(probes.told("healthz meanwhile", 1 / PROBE_EVERY_S))


def main() -> None:
    """Makes or takes the repository, serves it and asks."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--questions", type=int, default=15)
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    with fleet_served(given.requests, given.keep) as port:
        measure(port, given.questions)


if __name__ == "__main__":
    main()
