"""What the store asks of Git, through GitPython and through `reconciler.store.git`.

    python -m benchmarks.gitpython [--files 100000] [--commits 1000] [--branches 1000]

Both sides work on copies of the same bare repository. Seconds of wall clock and of CPU, processes included.
GitPython runs as its documentation shows it, with its default object database; it calls the other one deprecated.
A commit changes one file of a repository that has as many files as commits are written.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

import git
from gitdb import IStream

from benchmarks.repositories import change, gpr_path, make, manifest
from benchmarks.repositories import git as plain_git
from reconciler.store.git.git_process import configured
from reconciler.store.git.git_store import GitStore
from reconciler.store.store_port import Draft, Person, chain

_ROBOT = Person("egs", "egs@example.com")
_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_CONFIG_READS = 100


def _cpu_s() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def measured(label: str, work: Callable[[], object], end: Callable[[], None] = lambda: None) -> None:
    """Print wall and CPU seconds; `end` stops helper processes, whose CPU time counts only then."""
    wall, cpu = time.perf_counter(), _cpu_s()
    work()
    took_s = time.perf_counter() - wall
    end()
    print(f"{label:58} {took_s:9.3f} {_cpu_s() - cpu:9.3f}", flush=True)


class ByGitPython:
    """A bare repository through GitPython."""

    def __init__(self, remote: Path) -> None:
        self._repo = git.Repo(remote)

    def tips(self) -> dict[str, str]:
        """The head of every branch."""
        return {branch.name: branch.commit.hexsha for branch in self._repo.branches}

    def paths(self) -> dict[str, str]:
        """Every path of main with its blob's id."""
        tree = self._repo.commit("main").tree
        return {str(item.path): item.hexsha for item in tree.traverse() if item.type == "blob"}

    def blobs(self) -> int:
        """The bytes of all files of main."""
        tree = self._repo.commit("main").tree
        return sum(len(item.data_stream.read()) for item in tree.traverse() if item.type == "blob")

    def diff(self) -> int:
        """Paths that differ between the two newest commits of main."""
        tip = self._repo.commit("main")
        return len(tip.parents[0].diff(tip))

    def commits(self, count: int) -> None:
        """Commits of one file each, through an index: GitPython has no other way to change a tree."""
        person = git.Actor(_ROBOT.name, _ROBOT.email)
        parent = self._repo.commit("main")
        index = git.IndexFile.from_tree(self._repo, parent.tree)
        for number in range(count):
            slice_, name, path = gpr_path(number)
            content = manifest(slice_, name, number + 1)
            stored = self._repo.odb.store(IStream("blob", len(content), BytesIO(content)))
            index.add([git.IndexEntry((0o100644, stored.binsha, 0, path))], write=False)
            tree = index.write_tree()
            parent = git.Commit.create_from_tree(
                self._repo, tree, "Status", [parent], author=person, committer=person,
                author_date=_NOW, commit_date=_NOW,
            )  # fmt: skip

    def config(self) -> None:
        """One value, as often as asked."""
        for _ in range(_CONFIG_READS):
            self._repo.config_reader().get_value("core", "bare")

    def close(self) -> None:
        """End helper processes."""
        self._repo.close()


class ByStore:
    """The same through the store's port."""

    def __init__(self, remote: Path, mirror: Path) -> None:
        self._remote = remote
        self._store = GitStore(str(remote), mirror)
        self._tip = self._store.fetch(["*"])["main"]
        self.close()

    def tips(self) -> dict[str, str]:
        """Read anew from the mirror's refs."""
        return self._store._tracked(list(self._store.tips()))

    def paths(self) -> dict[str, str]:
        """Every path of main with its blob's id."""
        return {entry.path: entry.oid or "" for entry in self._store.diff(None, self._tip)}

    def blobs(self) -> int:
        """The bytes of all files of main."""
        return sum(map(len, self._store.read(self.paths().values()).values()))

    def diff(self) -> int:
        """Paths that differ between the two newest commits of main."""
        return len(self._store.diff(self._store.parent(self._tip), self._tip))

    def _drafts(self, count: int) -> list[Draft]:
        paths = [gpr_path(number) for number in range(count)]
        changes = [{path: manifest(slice_, name, 1)} for slice_, name, path in paths]
        return [Draft(change, "Status", _ROBOT, _NOW) for change in changes]

    def commits(self, count: int) -> None:
        """Each in a process of its own, as a controller writes one per cycle."""
        tip = self._tip
        for draft in self._drafts(count):
            (tip,) = self._store.write_all(chain(tip, [draft]))

    def commits_in_a_chain(self, count: int) -> None:
        """All in one process, as the portal writes what waits."""
        self._store.write_all(chain(self._tip, self._drafts(count)))

    def config(self) -> None:
        """One value, as often as asked."""
        for _ in range(_CONFIG_READS):
            configured("core.bare", self._remote)

    def close(self) -> None:
        """End helper processes, and forget listings."""
        self._store._reader.close()
        self._store._reader._listings.clear()


def _branches(remote: Path, count: int) -> None:
    tip = plain_git(remote, "rev-parse", "main").decode().strip()
    lines = "".join(f"create refs/heads/a{number} {tip}\n" for number in range(count))
    plain_git(remote, "update-ref", "--stdin", given=lines.encode())
    plain_git(remote, "pack-refs", "--all")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, default=100_000, help="files to read")
    parser.add_argument("--commits", type=int, default=1000, help="commits to write")
    parser.add_argument("--branches", type=int, default=1000, help="heads to read")
    asked = parser.parse_args()
    print(f"GitPython {git.__version__}; wall and CPU seconds")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder / "read.git", asked.files)
        change(folder / "read.git", 7, 1)
        _branches(folder / "read.git", asked.branches)
        make(folder / "write.git", asked.commits)
        measure_gitpython("GitPython", folder, asked.commits)
        measure_store("reconciler.store", folder, asked.commits)


def measure_gitpython(label: str, folder: Path, commits: int) -> None:
    """Print a line for each task."""
    side = ByGitPython(folder / "read.git")
    measure_reading(label, side)
    side = ByGitPython(folder / "write.git")
    measured(f"{label}: write {commits} commits", lambda: side.commits(commits), side.close)


def measure_store(label: str, folder: Path, commits: int) -> None:
    """Print a line for each task."""
    side = ByStore(folder / "read.git", folder / "read")
    measure_reading(label, side)
    side = ByStore(folder / "write.git", folder / "write")
    measured(f"{label}: write {commits} commits", lambda: side.commits(commits), side.close)
    measured(f"{label}: the same as one chain", lambda: side.commits_in_a_chain(commits), side.close)


def measure_reading(label: str, side: ByGitPython | ByStore) -> None:
    """Print a line for each task that only reads; caches are emptied between them."""
    measured(f"{label}: heads of all branches", side.tips, side.close)
    measured(f"{label}: list all paths", side.paths, side.close)
    measured(f"{label}: list and read all files", side.blobs, side.close)
    measured(f"{label}: paths changed by one commit", side.diff, side.close)
    measured(f"{label}: read the configuration {_CONFIG_READS} times", side.config, side.close)


if __name__ == "__main__":
    main()
