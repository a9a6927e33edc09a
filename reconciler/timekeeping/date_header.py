"""Another machine's clock, from the `Date` header of its HTTP answers (RFC 9110)."""

from __future__ import annotations

from datetime import UTC
from email.utils import parsedate_to_datetime

from reconciler.clock import steady_s
from reconciler.model.clock_reading import Heard


def heard_in(date: str | None) -> Heard | None:
    """The reading from an answer received just now; None if unreadable."""
    try:
        said = parsedate_to_datetime(date or "")
        return Heard(said.replace(tzinfo=said.tzinfo or UTC).astimezone(UTC), steady_s())
    except (ValueError, TypeError, OverflowError):
        return None
