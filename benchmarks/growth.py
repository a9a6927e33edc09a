"""Growth of the remote under real status pushes.

    python -m benchmarks.growth [--pushes 2880] [--files 10000] [--changed 50] [--every 240]

Two days of one push a minute, 50 of 10,000 status files changed in each (random ones, the same on every run), 20
files to a folder, through `reconciler.store.branch_writer` onto a bare repository that re-roots as by default. Time is
simulated, the pushes are real. At intervals, and right before each re-root, the remote is measured as it is and
after `git gc --prune=now`; between those points it is never collected. Goal: at most 40 MB at any time after gc.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.repositories import git, gpr_path
from reconciler.store.branch_writer import BranchWriter
from reconciler.store.git.git_store import GitStore
from reconciler.store.store_port import Person
from reconciler.store.write_decision import WriterSettings, reroot_due

_START = datetime(2026, 1, 1, tzinfo=UTC)
_MINUTE = timedelta(minutes=1)
_FILES_A_FOLDER = 20
_MB = 1_000_000


def status(number: int, at: datetime, chance: random.Random) -> tuple[str, bytes]:
    """Path and contents of one request's status: about 600 bytes, of which an estimate and its cause differ."""
    slice_, name, path = gpr_path(number, _FILES_A_FOLDER)
    filed = _START - timedelta(minutes=number % 5000)
    starts = at + timedelta(minutes=chance.randrange(5, 3000))
    text = f"""apiVersion: egs.dev/v1alpha1
kind: GPRStatus
metadata: {{name: {name}}}
status:
  slice: {slice_}
  uid: {random.Random(number).randbytes(16).hex()}
  phase: Queued
  reason: WaitsForNodes
  message: 'waits for 2 nodes of H100-80GB in east'
  filedAt: {filed:%Y-%m-%dT%H:%M:%SZ}
  estimatedStartTime: {starts:%Y-%m-%dT%H:%M:%SZ}
  estimatedEndTime: {starts + timedelta(hours=6):%Y-%m-%dT%H:%M:%SZ}
  slips:
  - {{was: {starts - timedelta(minutes=chance.randrange(1, 90)):%Y-%m-%dT%H:%M:%SZ},
     now: {starts:%Y-%m-%dT%H:%M:%SZ}, cause: HigherRankArrived,
     by: s{chance.randrange(500):05d}/g{chance.randrange(10000):06d}, at: {at:%Y-%m-%dT%H:%M:%SZ}}}
  specDigest: sha256:{random.Random(-number - 1).randbytes(32).hex()}
"""
    return path, text.encode()


def size_mb(folder: Path) -> float:
    """Size of all files below, in MB."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / _MB


class Growth:
    """The run: a remote, the writer that pushes to it, and what was measured."""

    def __init__(self, folder: Path, files: int) -> None:
        self._remote = folder / "remote.git"
        self._remote.mkdir()
        git(self._remote, "init", "--quiet", "--bare")
        git(self._remote, "config", "gc.auto", "0")
        self._mirror = folder / "mirror"
        self._store = GitStore(str(self._remote), self._mirror)
        self._settings = WriterSettings(pushes_per_minute=None)
        robot = Person("egs", "egs@example.com")
        self._writer = BranchWriter(self._store, "egs/status", "benchmark", robot, self._settings)
        self._chance = random.Random(1)
        self._files = files
        self.largest_mb = self.largest_as_it_is_mb = self.largest_mirror_mb = 0.0
        self.roots = 0

    def push(self, number: int, changed: int) -> float:
        """One minute's push; returns its seconds. The first one writes every file."""
        now = _START + number * _MINUTE
        chosen = range(self._files) if number == 0 else self._chance.sample(range(self._files), changed)
        changes = dict(status(each, now, self._chance) for each in chosen)
        if number == 0:
            assert self._writer.take_over(now).landed
        epoch = self._writer.epoch
        if epoch is not None and reroot_due(epoch, now, self._settings):
            self.roots += 1
            self.measure(number, "before a re-root")
        self._store.fetch(["egs/status"])  # as every cycle begins, and where the mirror is tended
        started = time.perf_counter()
        assert self._writer.write(changes, None, now, "Status", urgent=True).landed
        return time.perf_counter() - started

    def measure(self, number: int, why: str) -> None:
        """Print the remote's size before and after a collection, and the mirror's."""
        before, mirror = size_mb(self._remote), size_mb(self._mirror)
        git(self._remote, "gc", "--quiet", "--prune=now")
        after = size_mb(self._remote)
        self.largest_mb = max(self.largest_mb, after)
        self.largest_as_it_is_mb = max(self.largest_as_it_is_mb, before)
        self.largest_mirror_mb = max(self.largest_mirror_mb, mirror)
        print(f"{number:7} {before:12.1f} {after:9.1f} {mirror:9.1f}  {why}", flush=True)

    def close(self) -> None:
        """End helper processes."""
        self._store.close()


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pushes", type=int, default=2880)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--changed", type=int, default=50)
    parser.add_argument("--every", type=int, default=240, help="pushes between measurements")
    asked = parser.parse_args()
    print(f"{'push':>7} {'as it is MB':>12} {'gc MB':>9} {'mirror MB':>9}")
    with tempfile.TemporaryDirectory() as folder:
        growth, times = Growth(Path(folder), asked.files), []
        for number in range(asked.pushes):
            times.append(growth.push(number, asked.changed))
            if number % asked.every == 0:
                growth.measure(number, "")
        growth.measure(asked.pushes, "at the end")
        growth.close()
    median_ms = sorted(times)[len(times) // 2] * 1000
    print(
        f"{asked.pushes} pushes, {growth.roots} re-roots, median {median_ms:.0f} ms a push; largest: "
        f"{growth.largest_mb:.1f} MB after gc (goal: at most 40), {growth.largest_as_it_is_mb:.1f} MB as it is "
        f"between gcs, mirror {growth.largest_mirror_mb:.1f} MB"
    )


if __name__ == "__main__":
    main()
