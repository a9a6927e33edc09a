"""A site that lives by itself: its controller runs by a fast clock, and its portal reads what it commits."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reconciler.clock import ScaledClock, SystemClock
from tests.support.portal import Site
from tests.support.world import START

SPEED = 240
"""Simulated seconds for each real one: half an hour of GPU time is seven seconds."""
PAUSE_S = 0.1


@contextmanager
def living(folder: Path) -> Iterator[str]:
    """Gives the URL of its server; `folder` is made."""
    folder.mkdir()
    site = Site(folder, clock=ScaledClock(SystemClock(), SPEED, START))
    ended = threading.Event()

    def live() -> None:
        while not ended.wait(PAUSE_S):
            site.controller.cycle(site.now)
            site.refresh()

    lives = threading.Thread(target=live, daemon=True)
    with site.server() as url:
        lives.start()
        try:
            yield url
        finally:
            ended.set()
            lives.join()
    site.close()
