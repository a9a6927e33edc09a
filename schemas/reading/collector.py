"""Pause Python's cyclic garbage collector while many documents are read.

Reading makes no cycles worth collecting, but every few hundred documents the collector walks all those already
there: at 20,000 documents pausing it makes reading and checking a quarter faster (benchmarks/validation.py).
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


def heap_settled() -> None:
    """Keep the collector away from all that is there now: for a process that has read what it will have for long."""
    gc.collect()
    gc.freeze()


@contextmanager
def collector_paused() -> Iterator[None]:
    """For bulk work only; leaves the collector as it was, also after an error."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
