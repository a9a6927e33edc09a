"""Builds the compiled planner in the background, for long queues: no cycle waits for it, and plans are identical."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Thread

from reconciler.cycle import Cycle
from reconciler.machine_code import make_ready
from reconciler.model.statuses import live
from schemas.status.gpr_status import GPRStatus

LONG_QUEUE = 2000
"""From this queue length on, interpreted planning takes a tenth of a second or more in every cycle."""


@dataclass(slots=True)
class Warming:
    """Begins once, with the first long queue."""

    begin: Callable[[], None] = lambda: Thread(target=make_ready, name="planner", daemon=True).start()
    _has_begun: bool = False

    def after(self, cycle: Cycle) -> None:
        if cycle.facts is not None:
            self.seen(cycle.facts.requests)

    def seen(self, requests: Mapping[str, GPRStatus]) -> None:
        """Checks the queue of a reader."""
        if not self._has_begun and len(live(requests)) >= LONG_QUEUE:
            self._has_begun = True
            self.begin()
