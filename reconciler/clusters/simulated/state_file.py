"""Storage of a simulated cluster's state: one JSON file, or memory only.

The file is replaced as a whole, so that a killed process never leaves half a state. Several processes may
share it (two controllers, an agent, the demo): each holds the lock file during one call and reads what the
others wrote.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import RLock

from pydantic import TypeAdapter, ValidationError

from reconciler.clusters.simulated.simulated_world import World
from schemas.errors import Fault

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Kept:
    """The file's content."""

    format: int
    world: World


KEPT = TypeAdapter(Kept)


class StateFile:
    """Reads and writes the state; use `world` only inside `locked`."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._seen: tuple[int, ...] | None = None
        self._world = World()
        self._mutex = RLock()
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def locked(self) -> Iterator[World]:
        """The present state, locked against other writers until the block ends.

        Raises Fault `StateUnreadable` if the file cannot be read, or not be written by `save`.
        """
        try:
            with self._mutex, self._file_lock():
                yield self._current()
        except OSError as error:
            text = f"the state of a simulated cluster cannot be used: {error}; fix its folder or its disk"
            raise Fault(text, "StateUnreadable") from error

    def save(self, world: World) -> None:
        """Stores `world`; storing an unchanged state costs nothing."""
        if world is self._world:
            return
        if self._path is not None:
            draft = self._path.with_name(self._path.name + ".new")
            draft.write_bytes(KEPT.dump_json(Kept(FORMAT, world)))
            draft.replace(self._path)
            self._seen = _mark(self._path)
        self._world = world

    @contextmanager
    def _file_lock(self) -> Iterator[None]:
        if self._path is None:
            yield
            return
        with self._path.with_name(self._path.name + ".lock").open("a") as handle:
            # Released when the file is closed, even if the process is killed.
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    def _current(self) -> World:
        if self._path is None or not self._path.exists():
            return self._world
        if (mark := _mark(self._path)) != self._seen:
            self._world, self._seen = _read(self._path), mark
        return self._world


def _mark(path: Path) -> tuple[int, ...]:
    """Differs whenever the file was replaced."""
    found = path.stat()
    return found.st_ino, found.st_mtime_ns, found.st_size


def _read(path: Path) -> World:
    try:
        kept = KEPT.validate_json(path.read_bytes())
    except ValidationError as error:
        raise _unreadable(path) from error
    if kept.format != FORMAT:
        raise _unreadable(path)
    return kept.world


def _unreadable(path: Path) -> Fault:
    return Fault(
        f"{path} is not the state of a simulated cluster in format {FORMAT}; "
        "remove it to start with an empty cluster",
        "StateUnreadable",
    )
