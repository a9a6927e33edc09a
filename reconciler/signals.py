"""How commands that run on end: by Ctrl-C and SIGTERM."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def ended_by_signals() -> Iterator[threading.Event]:
    """Set by Ctrl-C and SIGTERM, which interrupt nothing else meanwhile."""
    ended = threading.Event()
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, lambda *_: ended.set()) for number in numbers]
    try:
        yield ended
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def looks(every_s: float, ended: threading.Event) -> Iterator[None]:
    """One step per look, with a pause between two, until `ended`."""
    while not ended.is_set():
        yield
        ended.wait(every_s)
