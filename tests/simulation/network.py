"""The one remote of a story, in memory or as a real bare repository, and the way of each process to it.

Every fetch and push of a process may meet a fault of that process, or of all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, Protocol, cast

from reconciler.store.git.git_store import GitStore
from reconciler.store.memory_store import MemoryRemote, MemoryStore
from reconciler.store.store_port import Commit, Outcome, Store
from schemas.errors import Fault
from tests.support import repos

Send = Callable[[], Outcome]
"""Makes a push for real."""


class Guard(Protocol):
    """What a process meets on its way out."""

    def fetches(self) -> bool:
        """Called before each fetch; False: the remote does not answer."""

    def pushes(self, branch: str, new: str, send: Send) -> Outcome:
        """Sends the push, now, later or never."""


def _unreachable() -> Fault:
    return Fault("the remote could not be read: it is down", "RemoteUnreachable")


class Remote(Protocol):
    """The server, as the story and its auditor see it; `auditor.reading.Published` too."""

    def store(self, guard: Guard) -> Store:
        """A new clone of one process."""

    def tip(self, branch: str) -> str | None:
        """Where a branch is."""

    def branches(self) -> list[str]:
        """All names, sorted."""

    def point(self, branch: str, at: str | None) -> None:
        """Somebody moves a branch by hand, or deletes it."""

    def files(self, commit: str) -> Mapping[str, str]:
        """Blob by path."""

    def text(self, blob: str) -> str:
        """The content of a blob."""

    def trailers(self, commit: str) -> Mapping[str, str]:
        """Of the commit's message."""

    def parent(self, commit: str) -> str | None:
        """The first one."""


class Memory:
    """The twin that passes the store's contract."""

    def __init__(self) -> None:
        self._remote = MemoryRemote()

    def store(self, guard: Guard) -> Store:
        return MemoryStore(cast(MemoryRemote, _Link(self._remote, guard)))

    def tip(self, branch: str) -> str | None:
        return self._remote.tips.get(branch)

    def branches(self) -> list[str]:
        return sorted(self._remote.tips)

    def point(self, branch: str, at: str | None) -> None:
        self._remote.tips.pop(branch, None)
        if at is not None:
            self._remote.tips[branch] = at

    def files(self, commit: str) -> Mapping[str, str]:
        return {path: oid for path, (_, oid) in self._remote.commits[commit].files.items()}

    def text(self, blob: str) -> str:
        return self._remote.blobs[blob].decode()

    def trailers(self, commit: str) -> Mapping[str, str]:
        return self._remote.commits[commit].commit.trailers

    def parent(self, commit: str) -> str | None:
        return next(iter(self._remote.commits[commit].commit.parents), None)


class _Link:
    """A `MemoryRemote` as one process has it."""

    def __init__(self, remote: MemoryRemote, guard: Guard) -> None:
        self._remote, self._guard = remote, guard

    @property
    def tips(self) -> Mapping[str, str]:
        return self._remote.tips

    @property
    def blobs(self) -> dict[str, bytes]:
        return self._remote.blobs

    @property
    def commits(self) -> dict[str, Any]:
        return self._remote.commits

    def commit(self, oid: str) -> Commit:
        return self._remote.commit(oid)

    def history(self, oid: str, known: AbstractSet[str] = frozenset()) -> set[str]:
        return self._remote.history(oid, known)

    def fetch(self, patterns: Sequence[str]) -> dict[str, str]:
        if not self._guard.fetches():
            raise _unreachable()
        return self._remote.fetch(patterns)

    def push(self, branch: str, new: str, expected: str | None) -> Outcome:
        return self._guard.pushes(branch, new, lambda: self._remote.push(branch, new, expected))


class RealGit:
    """A bare repository in a folder; each process has a mirror there."""

    def __init__(self, root: Path) -> None:
        self._root, self._count = root, 0
        self._bare = repos.bare(root / "fleet.git")
        self._reader = GitStore(str(self._bare), root / "reader.git")

    def store(self, guard: Guard) -> Store:
        self._count += 1
        return cast(Store, _Clone(str(self._bare), self._root / f"mirror-{self._count}.git", guard))

    def tip(self, branch: str) -> str | None:
        ref = self._bare / "refs" / "heads" / branch
        return ref.read_text().strip() if ref.is_file() else None

    def branches(self) -> list[str]:
        return repos.git(self._bare, "for-each-ref", "--format=%(refname:lstrip=2)").split()

    def point(self, branch: str, at: str | None) -> None:
        repos.git(
            self._bare,
            "update-ref",
            *(("-d",) if at is None else ()),
            f"refs/heads/{branch}",
            *filter(None, [at]),
        )

    def files(self, commit: str) -> Mapping[str, str]:
        self._reader.fetch(["main", "egs/*", "egs/agents/*/*", "egs/clusters/*"])
        return {e.path: e.oid for e in self._reader.diff(None, commit) if e.oid is not None}

    def text(self, blob: str) -> str:
        return self._reader.read([blob])[blob].decode()

    def trailers(self, commit: str) -> Mapping[str, str]:
        return self._reader.commit(commit).trailers

    def parent(self, commit: str) -> str | None:
        return self._reader.parent(commit)


class _Clone(GitStore):
    """A mirror whose way to the remote has faults."""

    def __init__(self, address: str, mirror: Path, guard: Guard) -> None:
        super().__init__(address, mirror)
        self._guard = guard

    def fetch(self, patterns: Sequence[str]) -> Mapping[str, str]:
        if not self._guard.fetches():
            raise _unreachable()
        return super().fetch(patterns)

    def push(self, branch: str, new: str, expected: str | None) -> Outcome:
        send = super().push
        return self._guard.pushes(branch, new, lambda: send(branch, new, expected))
