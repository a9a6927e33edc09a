"""What the list of requests costs the server when there are thousands of them.

    python -m benchmarks.request_pages [--requests 10000] [--times 9]

A repository of that many requests, decided once by the real controller (`benchmarks.portal` makes it), and the pages
of a member of every workspace, asked in this process. "First" is the first answer from a new commit; the others are
medians. Goal: filters and orders <= 100 ms.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median

from benchmarks.asking import key_of
from benchmarks.portal import make
from portal.compose import portal
from portal.http.rate_limits import Rate, Rates
from portal.pages.user.request_rows import briefs
from portal.settings import PortalSettings
from portal.views.queues import line_of
from reconciler.clock import SystemClock
from reconciler.settings import Settings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

ASKED = {
    "waiting and running": "",
    "… as a part for a script": "",
    "text that all have": "?q=r00",
    "text that one has": "?q=r004321",
    "all, by name": "?which=all&sort=name",
    "by start, latest first": "?sort=starts&desc=true",
    "by priority": "?sort=priority",
    "by cost": "?sort=cost",
    "the last rows": "?which=all&first=9800",
    "one workspace": "?workspace=s0007",
}


def main() -> None:
    """Prints a row of docs/explain/benchmarks.md for each question."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--times", type=int, default=9)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="egs-bench-") as name:
        folder = Path(name)
        repo = make(folder, given.requests)
        rate = Rate(10**6, 10**6)
        settings = PortalSettings(
            Settings(repo=str(repo), state=folder / "portal"), rates=Rates(rate, rate, rate, rate)
        )
        made = portal(settings, SystemClock())
        made.reader.refresh()
        try:
            _measure(TestClient(made.app), given.times)
        finally:
            made.stop()


def _measure(client: TestClient, times: int) -> None:
    headers = {"Authorization": f"Bearer {key_of(0)}", "Accept": "text/html"}
    print(f"| {'what':32} | {'ms':>7} | {'KB':>5} |")
    view = client.app.state.parts.reads.view()  # type: ignore[attr-defined]
    print(_row("the plan of a new commit", 1000 * _seconds(lambda: view.once_planned(line_of)), 0))
    print(_row("what requests are found by", 1000 * _seconds(lambda: view.once(briefs)), 0))
    print(_row("first", *_asked(client, "", headers)))
    for what, query in ASKED.items():
        more = {**headers, "HX-Request": "true"} if "part" in what else headers
        answers = [_asked(client, query, more) for _ in range(times)]
        print(_row(what, median(ms for ms, _ in answers), answers[0][1]))
    begun = time.perf_counter()
    size = len(client.get("/requests.csv?which=all&workspace=all", headers=headers).content)
    print(_row("CSV of all", 1000 * (time.perf_counter() - begun), size / 1000))


def _seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def _asked(client: TestClient, query: str, headers: dict[str, str]) -> tuple[float, float]:
    """Milliseconds, and kilobytes before compression."""
    begun = time.perf_counter()
    answer = client.get(f"/requests{query}", headers=headers)
    took = 1000 * (time.perf_counter() - begun)
    assert answer.status_code == 200, answer.text
    return took, len(answer.content) / 1000


def _row(what: str, ms: float, kilobytes: float) -> str:
    return f"| {what:32} | {ms:7.1f} | {kilobytes:5.0f} |"


if __name__ == "__main__":
    main()
