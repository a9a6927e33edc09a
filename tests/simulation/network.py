"""The way of one process to the one remote: every fetch and push may meet a fault of that process, or of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Protocol

from reconciler.store.memory_store import MemoryRemote
from reconciler.store.store_port import Commit, Outcome
from schemas.errors import Fault


class Guard(Protocol):
    """What a process meets on its way out."""

    def fetches(self) -> bool:
        """Called before each fetch; False: the remote does not answer."""

    def pushes(self, branch: str, new: str, expected: str | None) -> Outcome | None:
        """Makes the push, or not; None: the process just pushes."""


class Link:
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
            raise Fault("the remote could not be read: it is down", "RemoteUnreachable")
        return self._remote.fetch(patterns)

    def push(self, branch: str, new: str, expected: str | None) -> Outcome:
        outcome = self._guard.pushes(branch, new, expected)
        return self._remote.push(branch, new, expected) if outcome is None else outcome
