"""The store's work for a one-file change, beside the plain git commands that do the same.

    python -m benchmarks.store [--sizes 1000,10000,100000] [--rounds 15] [--quick]

Both sides: fetch two branches, find what changed, read it, write one status file as a commit, push it with
a lease. Ours also validates the changed document: strict reading, its model, and the rules across files in a
repository that is loaded already. Each has a copy of the same remote (a folder) and a mirror of its own; they
take turns, and who goes first alternates. The plain side is five git processes with git's own defaults (no
check of objects, no housekeeping). Ours goes through `reconciler.store.git.git_store` and includes both. Goal: a
ratio of at most 1.5 at 100,000.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.repositories import change, data, fleet, git, gpr_path, make, manifest
from reconciler.store.git.git_store import GitStore
from reconciler.store.store_port import Draft, Outcome, Person
from schemas.reading.collector import collector_paused
from schemas.reading.reader import read_document
from schemas.rules.repository import Repository

BRANCHES = ("main", "egs/status")
STEPS = ("fetch", "diff", "read", "validate", "commit", "push")
_ROBOT = Person("egs", "egs@example.com")
_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_MAIN, _STATUS = "refs/remotes/origin/main", "refs/remotes/origin/egs/status"


def loaded(size: int) -> Repository:
    """The documents of a repository of that many requests, as a controller has them in memory."""
    repository = Repository()
    slices = {gpr_path(number)[0] for number in range(size)}
    files = fleet(sorted(slices)) | {gpr_path(n)[2]: manifest(*gpr_path(n)[:2], 0) for n in range(size)}
    with collector_paused():
        repository.update({path: read_document(path, content) for path, content in files.items()})
    errors = [p for p in repository.problems() if p.severity == "error"]
    assert not errors, errors[0]
    return repository


@dataclass(frozen=True, slots=True)
class Figures:
    """Seconds of each step, round by round."""

    rounds: list[list[float]]

    def median_ms(self, step: int | None = None) -> float:
        """Of one step, or of all together."""
        times = [sum(each) if step is None else each[step] for each in self.rounds]
        return statistics.median(times) * 1000


class Ours:
    """The change through the store's port."""

    def __init__(self, remote: Path, mirror: Path, repository: Repository) -> None:
        self._store = GitStore(str(remote), mirror)
        self._repository = repository
        self._seen = self._store.fetch(BRANCHES)["main"]
        # The steady state of a process that runs: its helpers are up.
        self._store.read_path(self._seen, gpr_path(0)[2])
        self._store.diff(self._seen, self._seen)

    def steps(self) -> Iterator[None]:
        """One change, a step at a time."""
        tips = self._store.fetch(BRANCHES)
        yield
        (entry,) = self._store.diff(self._seen, tips["main"])
        yield
        assert entry.oid is not None
        content = self._store.read([entry.oid])[entry.oid]
        yield
        self._repository.update({entry.path: read_document(entry.path, content)})
        yield
        tip = tips["egs/status"]
        new = self._store.write(Draft({entry.path: content}, "Status", _ROBOT, _NOW, tip, tip))
        yield
        assert self._store.push("egs/status", new, tip) is Outcome.COMMITTED
        self._seen = tips["main"]
        yield

    def close(self) -> None:
        """End helper processes."""
        self._store.close()


class Plain:
    """The change by git's own commands, one process each."""

    def __init__(self, remote: Path, mirror: Path) -> None:
        self._mirror = mirror
        mirror.mkdir()
        git(mirror, "init", "--quiet", "--bare")
        git(mirror, "config", "gc.auto", "0")
        git(mirror, "remote", "add", "origin", str(remote))
        git(mirror, "fetch", "--quiet", "origin")
        self._seen = self._tip(_MAIN)

    def _tip(self, ref: str) -> str:
        return git(self._mirror, "rev-parse", ref).decode().strip()

    def steps(self) -> Iterator[None]:
        """One change, a step at a time."""
        git(self._mirror, "fetch", "--quiet", "origin", *BRANCHES)
        yield
        found = git(self._mirror, "diff-tree", "-r", "-z", "--no-renames", self._seen, _MAIN)
        about, path, _ = found.split(b"\0")
        yield
        answer = git(self._mirror, "cat-file", "--batch", given=about.split(b" ")[3] + b"\n")
        content = answer.split(b"\n", 1)[1][:-1]
        yield
        yield  # git does not validate
        head = b"commit refs/heads/draft\ncommitter egs <egs@example.com> 1767225600 +0000\n" + data(
            b"Status"
        )
        head += b"from " + _STATUS.encode() + b"^0\nM 100644 inline " + path + b"\n" + data(content)
        git(self._mirror, "fast-import", "--quiet", "--force", "--done", given=head + b"done\n")
        yield
        lease = f"--force-with-lease=refs/heads/egs/status:{_STATUS}"
        git(self._mirror, "push", "--quiet", lease, "origin", "refs/heads/draft:refs/heads/egs/status")
        yield

    def between(self) -> None:
        """Remember the commit seen, as a program would: not timed."""
        self._seen = self._tip(_MAIN)

    def close(self) -> None:
        """Nothing runs."""


def timed(steps: Iterator[None]) -> list[float]:
    """Seconds of each step."""
    times, before = [], time.perf_counter()
    for _ in steps:
        after = time.perf_counter()
        times.append(after - before)
        before = after
    return times


def compare(folder: Path, size: int, rounds: int) -> tuple[Figures, Figures]:
    """Ours and plain git's figures for repositories of that many manifests."""
    make(folder / "ours.git", size)
    shutil.copytree(folder / "ours.git", folder / "plain.git")
    ours = Ours(folder / "ours.git", folder / "ours", loaded(size))
    plain = Plain(folder / "plain.git", folder / "plain")
    figures: tuple[list[list[float]], list[list[float]]] = ([], [])
    for number in range(rounds + 1):
        for remote in ("ours.git", "plain.git"):
            change(folder / remote, number * 97 % size, number + 1)
        turns: list[tuple[list[list[float]], Ours | Plain]] = [(figures[0], ours), (figures[1], plain)]
        for kept, side in turns if number % 2 else reversed(turns):
            kept.append(timed(side.steps()))
        plain.between()
    ours.close()
    # The first round fills caches on both sides.
    return Figures(figures[0][1:]), Figures(figures[1][1:])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="1000,10000,100000", help="manifests, with commas between")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--quick", action="store_true", help="the smallest size, three rounds")
    asked = parser.parse_args()
    sizes = [int(size) for size in asked.sizes.split(",")]
    rounds = 3 if asked.quick else asked.rounds
    version = git(Path(), "version").decode().strip()
    print(f"{version}, Python {platform.python_version()}, {os.cpu_count()} cores, medians of {rounds} in ms")
    print(f"{'manifests':>9} {'':6}" + "".join(f"{step:>9}" for step in STEPS) + f"{'all':>9}")
    for size in sizes[:1] if asked.quick else sizes:
        with tempfile.TemporaryDirectory() as folder:
            ours, plain = compare(Path(folder), size, rounds)
        for name, side in (("ours", ours), ("plain", plain)):
            cells = "".join(f"{side.median_ms(step):9.1f}" for step in range(len(STEPS)))
            print(f"{size:9} {name:6}{cells}{side.median_ms():9.1f}")
        print(
            f"{size:9} ratio {ours.median_ms() / plain.median_ms():.2f} (goal: at most 1.5 at 100,000)",
            flush=True,
        )


if __name__ == "__main__":
    main()
