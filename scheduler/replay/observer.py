"""Notifications of a simulation to a watcher."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from scheduler.snapshot import Lease, Plan, Request, Snapshot


@dataclass(frozen=True, slots=True)
class Moment:
    """The state when the queue was planned."""

    now: int
    made: Callable[[], tuple[Snapshot, Plan]]

    @property
    def world(self) -> Snapshot:
        """The planned world, with the earlier promises; made on access."""
        return self.made()[0]

    @property
    def plan(self) -> Plan:
        """Its plan; made on access."""
        return self.made()[1]


class Watcher(Protocol):
    """Receives events; its arguments never change afterwards."""

    def estimated(self, moment: Moment, request: Request, start: int) -> None:
        """A request has its first estimate."""

    def started(self, now: int, request: Request, lease: Lease) -> None:
        """A request got nodes: they are its own from `lease.start`, which is never before `now`."""

    def ended(self, now: int, request: Request, lease: Lease) -> None:
        """A request gave its nodes back at `lease.end`, or lost them then."""


class Unwatched:
    """No watcher."""

    def estimated(self, moment: Moment, request: Request, start: int) -> None: ...
    def started(self, now: int, request: Request, lease: Lease) -> None: ...
    def ended(self, now: int, request: Request, lease: Lease) -> None: ...
