"""What a simulation tells whoever listens, as it happens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from scheduler.snapshot import Lease, Plan, Request, Snapshot


@dataclass(frozen=True, slots=True)
class Moment:
    """What is known when the queue was planned."""

    now: int
    made: Callable[[], tuple[Snapshot, Plan]]

    @property
    def world(self) -> Snapshot:
        """What was planned, with the promises from before; made when it is asked for."""
        return self.made()[0]

    @property
    def plan(self) -> Plan:
        """Its plan; made when it is asked for."""
        return self.made()[1]


class Watcher(Protocol):
    """Told of what happens; nothing that it is given changes afterwards."""

    def estimated(self, moment: Moment, request: Request, start: int) -> None:
        """A request has its first estimate."""

    def started(self, now: int, request: Request, lease: Lease) -> None:
        """Nodes were decided for a request: from `lease.start`, which is never before `now`, they are its own."""

    def ended(self, now: int, request: Request, lease: Lease) -> None:
        """A request gave its nodes back at `lease.end`, or lost them then."""


class Unwatched:
    """Nobody listens."""

    def estimated(self, moment: Moment, request: Request, start: int) -> None:
        """Says nothing."""

    def started(self, now: int, request: Request, lease: Lease) -> None:
        """Says nothing."""

    def ended(self, now: int, request: Request, lease: Lease) -> None:
        """Says nothing."""
