"""Where a simulated cluster keeps its state: one JSON file, or only memory.

The file is replaced as a whole, so a process that is killed leaves the state before or after a change and
never half of one. Several processes may share it (two controllers, an agent, the demo): each holds the lock
beside the file for the length of one call and reads what the others wrote.
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
    """What stands in the file."""

    format: int
    world: World


KEPT = TypeAdapter(Kept)


class StateFile:
    """Gives and takes the state; `world` may only be used inside `locked`."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._seen: tuple[int, ...] | None = None
        self._world = World()
        self._mutex = RLock()
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def locked(self) -> Iterator[World]:
        """The present state, which nobody else changes until the block is left.

        Raises Fault `StateUnreadable` for a file that cannot be read, or not be written by `save`.
        """
        try:
            with self._mutex, self._file_lock():
                yield self._current()
        except OSError as error:
            text = f"the state of a simulated cluster cannot be used: {error}; mend its folder or its disk"
            raise Fault(text, "StateUnreadable") from error

    def save(self, world: World) -> None:
        """Make `world` the state; a call with the state as it is costs nothing."""
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
            fcntl.flock(handle, fcntl.LOCK_EX)  # given back when the file is closed, also by a killed process
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
        "move it away to begin with an untouched cluster",
        "StateUnreadable",
    )
