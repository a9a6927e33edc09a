"""A signal ends what waits for it, whatever the main thread does at the moment that it comes."""

from __future__ import annotations

import subprocess
import threading

import pytest

from reconciler import signals
from tests.support.ready_python import ready_python

IN_THE_MIDST = """
import os, signal
from reconciler.signals import ended_by_signals, wait_for
with ended_by_signals() as ended:
    with ended._cond:  # as for a moment in each look at the event
        os.kill(os.getpid(), signal.SIGTERM)
    wait_for(ended)
print("ended")
"""


def test_one_that_comes_while_the_event_is_looked_at() -> None:
    """Its handler runs in the thread that holds the event's lock."""
    command = [ready_python("reconciler.signals"), "-c", IN_THE_MIDST]
    assert subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout == "ended\n"


def test_one_that_comes_just_before_the_wait_wakes_nothing_and_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(signals, "LOOK_S", 0.01)
    ended = threading.Event()
    waiting = threading.Thread(target=signals.wait_for, args=(ended,), daemon=True)
    waiting.start()
    ended._flag = True  # type: ignore[attr-defined]  # set, and no waiter notified
    waiting.join(60)
    assert not waiting.is_alive()
