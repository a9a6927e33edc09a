"""The one module of the client that reads the clock or draws at random; everything else is told."""

from __future__ import annotations

import secrets
import time
from datetime import UTC, datetime

_RANDOM = secrets.SystemRandom()


def now() -> datetime:
    """The present instant, aware UTC."""
    return datetime.now(UTC)  # noqa: TID251 - this is the client's one place


def monotonic_s() -> float:
    """Seconds on a clock that is never set: only differences mean anything."""
    return time.monotonic()


def share() -> float:
    """Somewhere in [0, 1): spreads clients that would all come back at the same moment."""
    return _RANDOM.random()
