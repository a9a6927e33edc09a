"""The calendar in a real browser: first paint, a patch, scrolling, memory, bytes.

    python -m benchmarks.pages.calendar [--nodes 200 2000] [--patches 40] [--hour 3600]

A fleet of that many nodes is booked for two weeks (2,000 nodes: 30 days), decided by the real controller in simulated
time and served over loopback; Debian's chromium opens the page. A patch is a request of eight nodes that is filed and
planned behind all others; its time is that of our script, from the event to the changed document. `--hour N` then
tells the same page N patches, one as soon as the one before is drawn: the portal goes to and fro between two states
that the controller has decided, so that each is told as a commit of its own; the request has another name each time.

Goals at 200 nodes and 14 days: paint within 1.5 s, a patch of 8 bars within 16 ms, memory grows by less than 10 %.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import statistics
import tempfile
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from playwright.sync_api import CDPSession, Page, sync_playwright

from portal.views.view import View
from tests.support.portal import KEYS, Site
from tests.support.world import cluster, gpr, gpr_path, slice_

PER_SLICE = 4
"""Nodes of one workspace: it runs one request at a time."""
HOURS = 33
"""Length of a request."""
SCROLLS = 40
_PATCHES = "performance.getEntriesByName('egs:patch').length"
_DRAWN = f"(least) => {_PATCHES} >= least"


def files(nodes: int, days: int) -> dict[str, str]:
    """Two clusters, and workspaces that book all of their nodes; bo is a member of the first one."""
    found = {f"clusters/{name}.yaml": cluster(name, nodes=nodes // 2) for name in ("east", "west")}
    for number in range(nodes // PER_SLICE):
        name = f"s{number:03d}"
        members = [{"email": "bo@example.com"}] if number == 0 else [{"email": f"{name}@example.com"}]
        home = ("east", "west")[number % 2]
        limits = {"gpus": 8 * 8}
        found[f"slices/{name}/slice.yaml"] = slice_(name, (home,), members=members, quota=limits)
        for turn in range(days * 24 // HOURS):
            key = f"{name}/r{turn:02d}"
            text = gpr(
                name, f"r{turn:02d}", nodes=PER_SLICE, duration=f"{HOURS - number % 7}h", clusters=[home]
            )
            found[gpr_path(key)] = text
    return found


def measure(nodes: int, days: int, patches: int, hour: int) -> None:
    """One fleet, in one browser."""
    with tempfile.TemporaryDirectory(prefix="egs-bench-") as name:
        begun = time.perf_counter()
        site = Site(Path(name), files(nodes, days), poll=timedelta(seconds=5))
        site.settle()
        print(f"\n{nodes} nodes, {days} days: decided in {time.perf_counter() - begun:.0f} s", flush=True)
        with site.server() as url, sync_playwright() as playwright:
            program = os.environ.get("EGS_TEST_CHROMIUM") or shutil.which("chromium")
            browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
            page = browser.new_context(viewport={"width": 1920, "height": 1080}).new_page()
            page.goto(f"{url}/login")
            page.fill("input[name=key]", KEYS["bo-owner"])
            page.click("main button")
            zoom = "2weeks" if days <= 14 else "30days"
            _painted(page, f"{url}/calendar?zoom={zoom}")
            _scrolled(page)
            _patched(page, site, patches)
            if hour:
                _lasting(page, site, hour)
            browser.close()
        site.close()


def _painted(page: Page, address: str) -> None:
    took, sent = [], list[Any]()
    page.on("response", lambda answer: sent.append(answer))
    for _ in range(6):
        sent.clear()
        page.goto(address)
        page.wait_for_selector(".cal-rows .cal-bar", state="attached")
        took.append(page.evaluate("performance.getEntriesByType('paint').at(-1)?.startTime ?? 0"))
        drawn = page.evaluate("performance.getEntriesByName('egs:drawn')[0].startTime")
    here = [answer for answer in sent if answer.url == address]
    packed = here[0].header_value("content-length") if here else "?"
    total = page.evaluate("JSON.parse(document.getElementById('calendar-data').textContent).data.total")
    bars = page.locator(".cal-rows .cal-bar").count()
    print(
        f"first paint {statistics.median(took[1:]):.0f} ms, drawn after {drawn:.0f} ms; {bars} bars drawn, "
        f"{total} rows; page {int(packed or 0) / 1000:.0f} kB compressed",
        flush=True,
    )


def _scrolled(page: Page) -> None:
    """Frames while the calendar scrolls from top to bottom, fetching what comes into view."""
    frames = page.evaluate(
        """async (steps) => {
          const root = document.getElementById("calendar");
          const took = [];
          const most = root.scrollHeight - root.clientHeight;
          const frame = () => new Promise((done) => requestAnimationFrame(done));
          let last = await frame();
          for (let step = 1; step <= steps; step += 1) {
            root.scrollTop = (most * step) / steps;
            for (let each = 0; each < 4; each += 1) { const now = await frame(); took.push(now - last); last = now; }
          }
          return took;
        }""",
        SCROLLS,
    )
    slow = sorted(frames)
    print(
        f"scroll: frames p50 {slow[len(slow) // 2]:.0f} ms, p95 {slow[int(len(slow) * 0.95)]:.0f} ms, "
        f"longest {slow[-1]:.0f} ms",
        flush=True,
    )
    page.evaluate("document.getElementById('calendar').scrollTop = 0")


def _patched(page: Page, site: Site, patches: int) -> None:
    session = page.context.new_cdp_session(page)
    first = 0.0
    for number in range(patches):
        site.file(f"s000/p{number:03d}", nodes=8, duration="1h", clusters=["east"], priority=1)
        site.settle()
        site.commit({gpr_path(f"s000/p{number:03d}"): None})
        site.settle()
        if number == min(9, patches - 1):
            first = _heap(session)
    page.wait_for_timeout(2000)
    entries = page.evaluate(
        "performance.getEntriesByName('egs:patch').map((e) => [e.duration, e.detail.rows])"
    )
    took = sorted(duration for duration, rows in entries if rows)
    if not took:
        print("no patch was measured")
        return
    print(
        f"{len(took)} patches of {statistics.median(rows for _, rows in entries if rows):.0f} rows: p50 "
        f"{took[len(took) // 2]:.1f} ms, p95 {took[int(len(took) * 0.95)]:.1f} ms, longest {took[-1]:.1f} ms; "
        f"memory {first:.1f} → {_heap(session):.1f} MB",
        flush=True,
    )


def _lasting(page: Page, site: Site, count: int) -> None:
    """Memory of scripts and of the document before and after that many patches."""
    session, reader, without = page.context.new_cdp_session(page), site.portal.reader, site.view
    site.file("s000/hour", nodes=8, duration="1h", clusters=["east"], priority=1)
    site.settle()
    filed, begun = site.view, time.perf_counter()
    page.wait_for_function(_DRAWN, arg=1)
    # The first thousand fill what has a bound: compiled code, and the browser's own buffers.
    marks = dict.fromkeys((0, *(count * tenth // 10 for tenth in range(1, 11))), (0.0, 0))
    for number in range(count + 1):
        if number in marks:
            marks[number] = (_heap(session), page.evaluate("document.getElementsByTagName('*').length"))
        drawn = page.evaluate(_PATCHES)
        reader._publish(_named(filed, without, f"s000/h{number:04d}") if number % 2 else without)
        page.wait_for_function(_DRAWN, arg=drawn + 1, polling=2)
    print(
        f"{count} patches in {time.perf_counter() - begun:.0f} s; memory and elements of the document: "
        + ", ".join(f"after {number} {heap:.2f} MB, {nodes}" for number, (heap, nodes) in marks.items()),
        flush=True,
    )


def _named(filed: View, without: View, key: str) -> View:
    """The state with one more request, under that name."""
    (status,) = (
        filed.facts.requests[one] for one in filed.facts.requests if one not in without.facts.requests
    )
    requests = {**without.facts.requests, key: status.edited(uid=f"gpr-{key}")}
    return replace(
        filed,
        status=f"{filed.status}{key}",
        facts=replace(filed.facts, requests=requests),
        _worked_out={},
        _of_plan={},
    )


def _heap(session: CDPSession) -> float:
    """MB of JavaScript objects after a collection."""
    session.send("HeapProfiler.collectGarbage")
    found: float = session.send("Runtime.getHeapUsage")["usedSize"]
    return found / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="*", default=[200, 2000])
    parser.add_argument("--patches", type=int, default=40)
    parser.add_argument("--hour", type=int, default=0, help="patches of the last part; 3600: one a second")
    given = parser.parse_args()
    print(f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}")
    for nodes in given.nodes:
        is_large = nodes >= 1000  # each change is decided among 10,000 requests there
        measure(nodes, 30 if is_large else 14, given.patches // 4 if is_large else given.patches, given.hour)


if __name__ == "__main__":
    main()
