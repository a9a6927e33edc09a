"""Time from a push to the committed status at 100,000 manifests; and the cost of restarts and `egs plan`.

    python -m benchmarks.cycle [--manifests 100000] [--runs 7] [--keep FOLDER] [--profile]

A bare repository in which each slice of 100 requests has ten waiting ones; all others are over, except those that hold
the nodes of the two embedded clusters. The real controller has written the status branch, promises included. Timed is
the real controller on the real remote: cycles without changes; cycles after one request was pushed, by phase; cycles in
which nothing changed while extensions are refused, and while a burst cluster is short of hours; and a new controller in
a process of its own, with the mirror and caches of the last one, until its first cycle is committed. `egs plan
--against` is a whole command, on a clone and on its second run. Goals: a push answered in 1 s, a restart in 3 s, a
comparison of two commits in 5 s.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.large_fleet import (
    PER_SLICE,
    burst,
    close,
    file_one,
    longer,
    make,
    push,
    settings_of,
)
from benchmarks.repositories import ENVIRONMENT, cpu_s, git
from reconciler import loop
from reconciler.committer import Committer
from reconciler.compose import controller
from reconciler.documents.in_force import Desired
from reconciler.loop import Reconciler
from reconciler.machine_code import make_ready
from reconciler.status.branch import StatusBranch
from scheduler.kernel import library
from schemas.reading.collector import heap_settled
from schemas.status.gpr_status import Phase

PHASES = ("fetch", "read", "observe", "fold", "decide", "render", "commit", "act", "other")
SECOND = timedelta(seconds=1)


class Clock:
    """Seconds of each phase of a cycle; time in a nested phase counts only for that one."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}
        self._stack: list[tuple[str, float]] = []

    @contextmanager
    def running(self, phase: str) -> Iterator[None]:
        """Time what happens inside."""
        begun = time.perf_counter()
        self._stack.append((phase, 0.0))
        try:
            yield
        finally:
            _, inner = self._stack.pop()
            took = time.perf_counter() - begun
            self.spent[phase] = self.spent.get(phase, 0.0) + took - inner
            if self._stack:
                outer, before = self._stack[-1]
                self._stack[-1] = (outer, before + took)

    def watch(self, owner: Any, name: str, phase: str) -> None:
        """From now on calls of that function count for the phase."""
        inner: Callable[..., Any] = getattr(owner, name)

        def timed(*args: Any, **kwargs: Any) -> Any:
            with self.running(phase):
                return inner(*args, **kwargs)

        setattr(owner, name, timed)


def watched() -> Clock:
    """A clock for the phases of cycles of this process."""
    clock = Clock()
    for owner, name, phase in (
        (Reconciler, "_fetch", "fetch"),
        (Reconciler, "_documents", "read"),
        (Reconciler, "_observe", "observe"),
        (loop, "fold", "fold"),
        (loop, "decide", "decide"),
        (Committer, "_files", "render"),
        (Desired, "accepted_files", "render"),
        (StatusBranch, "write", "commit"),
        (Reconciler, "_carry_out", "act"),
        (Reconciler, "_tell", "act"),
    ):
        clock.watch(owner, name, phase)
    return clock


def cycle(acting: Reconciler, clock: Clock, now: datetime) -> tuple[float, dict[str, float], str]:
    """Seconds of one cycle, of its phases, and what became of its commit."""
    clock.spent = {}
    with clock.running("other"):
        done = acting.cycle(now)
    return sum(clock.spent.values()), dict(clock.spent), done.pushed


def measure(folder: Path, runs: int, slices: int, profile: bool) -> None:
    """Quiet cycles, and cycles after a push."""
    clock, acting = watched(), controller(settings_of(folder))
    begun = time.perf_counter()
    now = _last(folder) + timedelta(minutes=1)
    first = acting.cycle(now)
    print(f"restart in this process: {time.perf_counter() - begun:.2f} s, {first.pushed}", flush=True)
    heap_settled()
    for _ in range(5):
        now += SECOND
        settled = cycle(acting, clock, now)
    _print(
        "nothing changed", [cycle(acting, clock, now + i * SECOND) for i in range(1, runs + 1)], "Unchanged"
    )
    now, found, profiler = now + (runs + 1) * SECOND, [], cProfile.Profile()
    for run in range(runs + 1):
        file_one(folder / "fleet.git", run * 37 % slices, int(now.timestamp()))
        if profile and run:
            profiler.enable()
        found.append(cycle(acting, clock, now))
        profiler.disable()
        for _ in range(3):
            now += SECOND
            cycle(acting, clock, now)
        now += SECOND
    _print("one request pushed", found[1:], "Committed")
    for _ in range(3):  # until requests run
        now += timedelta(minutes=1)
        acting.cycle(now)
    running = [key for key, s in acting._facts().requests.items() if s.phase is Phase.PROVISIONED]
    asked = {"ten extensions refused": longer(sorted(running)[:10]), "a burst cluster's hours short": burst()}
    for what, files in asked.items():
        push(folder / "fleet.git", files)
        for _ in range(6):
            now += SECOND
            cycle(acting, clock, now)
        quiet = [cycle(acting, clock, now + i * SECOND) for i in range(1, runs + 1)]
        _print(f"nothing changed, {what}", quiet, "Unchanged")
        now += (runs + 1) * SECOND
    close(acting)
    if profile:
        profiler.dump_stats("cycle.prof")
    assert settled[2] == "Unchanged", settled


def _last(folder: Path) -> datetime:
    at = git(folder / "fleet.git", "log", "-1", "--format=%ct", "egs/status").decode()
    return datetime.fromtimestamp(int(at), UTC)


def _print(what: str, found: list[tuple[float, dict[str, float], str]], pushed: str) -> None:
    medians = {p: statistics.median(spent.get(p, 0.0) for _, spent, _ in found) * 1000 for p in PHASES}
    parts = ", ".join(f"{phase} {ms:.0f}" for phase, ms in medians.items())
    whole = statistics.median(took for took, _, _ in found) * 1000
    as_expected = sum(each[2] == pushed for each in found)
    print(f"{what}: {whole:.0f} ms ({parts}); {as_expected} of {len(found)} {pushed}", flush=True)


RESTART = """
import resource, sys, time
from datetime import datetime
from pathlib import Path
begun = time.perf_counter()
from benchmarks.large_fleet import settings_of
from reconciler.compose import controller
acting = controller(settings_of(Path(sys.argv[1])))
done = acting.cycle(datetime.fromisoformat(sys.argv[2]))
most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(f"{time.perf_counter() - begun:.3f} {done.pushed} {most:.0f}")
"""


def restarts(folder: Path, runs: int) -> None:
    """A new process each time."""
    found = []
    for run in range(runs):
        now = _last(folder) + timedelta(seconds=90 + run)
        args = [sys.executable, "-c", RESTART, str(folder), now.isoformat()]
        before = cpu_s()
        done = subprocess.run(args, capture_output=True, text=True, check=True).stdout.split()
        found.append((float(done[0]), cpu_s() - before, done[1], int(done[2])))
    median, least = statistics.median(f[0] for f in found), min(f[1] for f in found)
    pushed = ", ".join(f[2] for f in found)
    print(f"restart: {median:.2f} s from imports to the first commit, CPU {least:.2f} s ({pushed})")
    print(f"  largest resident memory: {max(f[3] for f in found)} MiB")


def against(folder: Path, runs: int) -> None:
    """`egs plan --against` for the last five pushes, in a clone."""
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch) / "tree"
        git(Path(scratch), "clone", "--quiet", "--no-checkout", str(folder / "fleet.git"), str(tree))
        now = f"{_last(folder) + timedelta(minutes=1):%Y-%m-%dT%H:%M:%SZ}"
        egs = str(Path(sys.executable).with_name("egs"))
        commits = git(tree, "rev-list", "--max-count=6", "main").decode().split()
        refs = ["--ref", commits[0], "--against", commits[-1]]
        args = [egs, "plan", "--repo", str(tree), *refs, "--now", now, "-o", "json"]
        found = []
        for _ in range(runs):
            begun, before = time.perf_counter(), cpu_s()
            done = subprocess.run(args, env=_environment(Path(scratch)), capture_output=True, check=False)
            found.append((time.perf_counter() - begun, cpu_s() - before))
            assert done.returncode == 0, done.stderr[-2000:]
        first, *others = found
        again = f"{statistics.median(f[0] for f in others):.2f} s, CPU {min(f[1] for f in others):.2f} s"
        print(
            f"egs plan --against, five pushes: {first[0]:.2f} s, CPU {first[1]:.2f} s at first, then {again}"
        )


def _environment(scratch: Path) -> dict[str, str]:
    """A person's own, who has the compiled planner and has read nothing before."""
    own = {"EGS_CACHE": str(scratch / "cache"), "PYTHONPATH": str(Path(__file__).parents[1])}
    engine = (library.cache_folder() or scratch / "egs/kernel").parents[1]
    return {**ENVIRONMENT, **own, library.VARIABLE: str(engine)}


def main() -> None:
    """Make the repository, measure, print."""
    raw = argparse.RawDescriptionHelpFormatter
    options = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    options.add_argument("--manifests", type=int, default=100_000)
    options.add_argument("--runs", type=int, default=7)
    options.add_argument("--keep", type=Path, help="make the repository there, or use an existing one")
    options.add_argument("--only", choices=("cycle", "restart", "against"))
    options.add_argument("--profile", action="store_true", help="write cycle.prof of the cycles after pushes")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.keep or Path(scratch) / "fleet"
        if not (folder / "fleet.git").exists():
            begun = time.perf_counter()
            make(folder, given.manifests)
            print(f"repository made in {time.perf_counter() - begun:.0f} s", flush=True)
        gc.collect()
        make_ready()  # as in an installation
        if given.only in (None, "cycle"):
            measure(folder, given.runs, given.manifests // PER_SLICE, given.profile)
        if given.only in (None, "restart"):
            restarts(folder, given.runs)
        if given.only in (None, "against"):
            against(folder, 4)


if __name__ == "__main__":
    main()
