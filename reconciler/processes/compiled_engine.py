"""Loads the compiled planner in the background, for long queues: no cycle waits for it, and plans are identical."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Thread

from reconciler.cycle import Cycle
from reconciler.model.statuses import live
from scheduler import kernel
from scheduler.kernel import cache
from schemas.status.gpr_status import GPRStatus

log = logging.getLogger(__name__)

LONG_QUEUE = 2000
"""From this queue length on, interpreted planning takes a tenth of a second or more in every cycle."""
PASSED_ON = ("PATH", "HOME", "XDG_CACHE_HOME", "EGS_KERNEL_CACHE", "PYTHONPATH", "PYTHONSAFEPATH", "LANG")
COMPILE_S = 900
"""It takes a minute on an otherwise idle machine."""


def make_ready() -> None:
    """Loads the compiled planner; if it was never compiled, a separate process compiles it first."""
    if not cache.is_installed():
        return
    if not cache.is_kept():
        command = [sys.executable, "-m", "scheduler.kernel"]
        try:
            subprocess.run(  # noqa: S603 - ourselves
                command, check=True, capture_output=True, timeout=COMPILE_S, env=_environment()
            )
        except (OSError, subprocess.SubprocessError) as error:
            log.warning("planner not compiled error=%s; using the interpreted planner", type(error).__name__)
            return
    kernel.warm()
    log.info("planner compiled")


def _environment() -> dict[str, str]:
    """The environment needed to import us and find the cache folder, without any secrets."""
    return {name: os.environ[name] for name in PASSED_ON if name in os.environ}


@dataclass(slots=True)
class Warming:
    """Starts once, with the first long queue."""

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
