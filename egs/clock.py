"""The one module of the client that reads the clock or draws random numbers."""

from __future__ import annotations

import secrets
import time
from datetime import UTC, datetime

_RANDOM = secrets.SystemRandom()


def now() -> datetime:
    """The current time, aware UTC."""
    return datetime.now(UTC)  # noqa: TID251 - this is the client's one place


def monotonic_s() -> float:
    """Seconds on a clock that is never set; only differences have a meaning."""
    return time.monotonic()


def share() -> float:
    """A random number in [0, 1), to spread clients that would all retry at the same moment."""
    return _RANDOM.random()
