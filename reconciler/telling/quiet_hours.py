"""When a route must not send, in its local time. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo

from schemas.documents.notifications import QuietHours

_DAYS = 5
"""A night, a weekend and the following night are over by then."""


def is_quiet(quiet: QuietHours | None, at: datetime) -> bool:
    """True if nothing is to be sent at that time. Quiet hours with equal begin and end are empty."""
    if quiet is None:
        return False
    there = at.astimezone(_zone(quiet.time_zone))
    if quiet.weekends and there.weekday() >= 5:
        return True
    now = f"{there:%H:%M}"
    if quiet.begin <= quiet.end:
        return quiet.begin <= now < quiet.end
    return now >= quiet.begin or now < quiet.end


def free_from(quiet: QuietHours | None, at: datetime) -> datetime:
    """That time, or the end of the quiet hours that it falls into."""
    if quiet is None or not is_quiet(quiet, at):
        return at
    ends = (end for end in sorted(_ends(quiet, at)) if end > at and not is_quiet(quiet, end))
    return next(ends, at)


def _ends(quiet: QuietHours, at: datetime) -> Iterator[datetime]:
    """Times at which quiet hours may end: the configured hour, and midnight after a weekend."""
    zone = _zone(quiet.time_zone)
    today = at.astimezone(zone).date()
    for day in (today + timedelta(days=n) for n in range(_DAYS)):
        for clock in (time.fromisoformat(quiet.end), time()):
            yield datetime.combine(day, clock, zone).astimezone(UTC)


def _zone(name: str) -> tzinfo:
    """UTC for an unknown name: `egs validate` refuses such a route, and a late message is better than none."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return UTC
