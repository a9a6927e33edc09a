"""How commands that run on end: by Ctrl-C and SIGTERM."""

from __future__ import annotations

import _thread
import contextlib
import signal
import threading
from collections.abc import Iterator

LOOK_S = 1.0
"""Between two looks of the main thread: a signal that arrives just before it begins to wait wakes nothing."""


@contextlib.contextmanager
def ended_by_signals() -> Iterator[threading.Event]:
    """Set by Ctrl-C and SIGTERM, which interrupt nothing else meanwhile."""
    ended = threading.Event()
    numbers = (signal.SIGTERM, signal.SIGINT)
    # In a thread: the main one may hold the event's lock at the moment, and would wait for itself.
    before = [signal.signal(number, lambda *_: _thread.start_new_thread(ended.set, ())) for number in numbers]
    try:
        yield ended
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def wait_for(ended: threading.Event) -> None:
    """Until it is set."""
    while not ended.wait(LOOK_S):
        pass


def looks(every_s: float, ended: threading.Event) -> Iterator[None]:
    """One step per look, with a pause between two, until `ended`."""
    while not ended.is_set():
        yield
        ended.wait(every_s)
