"""The result of one cycle of the loop, as a value for logs, metrics, tests and the demo."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from reconciler.acting.actions import Do
from reconciler.model.events import Event
from reconciler.model.facts import Facts, Wanted

RETRY = timedelta(seconds=1)
"""Retry interval of a start after a lost push race: the other writer may be dead. Also the shortest pause
after a second cycle at one time, so that alternating actions never stop the clock.
"""


@dataclass(frozen=True, slots=True)
class Cycle:
    """What one cycle did."""

    at: datetime
    leading: bool
    wake: datetime
    events: tuple[Event, ...] = ()
    facts: Facts | None = None
    changed: bool = False
    reachable: bool = True
    wanted: Wanted | None = None  # the documents in force; None while another controller leads
    pushed: str = ""  # result of the commit: Committed, Conflict, … or Unchanged; empty: none was tried
    acted: Mapping[tuple[Do, str], int] = field(default_factory=dict)  # actions by kind and answer
    carried: Mapping[tuple[str, str], int] = field(default_factory=dict)  # messages by scope and answer
    clocks: Mapping[str, float] = field(default_factory=dict)  # seconds by which each is ahead of ours
    doubt: str = ""  # why our clock is not trusted; then nothing was decided
    waits: str = ""  # the reason that needs a merge first; empty: none
