"""Checks option values before anything is read; an error names the option."""

from __future__ import annotations

from datetime import datetime, timedelta

from reconciler.sources.command_errors import WrongUse
from schemas.reading.units import parse_duration, parse_instant, parse_lasting


def lasting(option: str, text: str | None) -> timedelta | None:
    """A duration above zero; raises WrongUse."""
    try:
        return None if text is None else parse_lasting(text)
    except ValueError as error:
        sentence = "write a duration above zero, like 0d6h0m, 6h, 90m or 1w"
        raise WrongUse(f"{option} {text}: {sentence}") from error


def time(option: str, text: str | None) -> datetime | None:
    """A timestamp; raises WrongUse."""
    try:
        return None if text is None else parse_instant(text)
    except ValueError as error:
        raise WrongUse(f"{option} {text}: {error}") from error


def moment(option: str, text: str | None, now: datetime) -> datetime | None:
    """A timestamp, or a duration before `now`; raises WrongUse."""
    if text is None:
        return None
    try:
        return now - parse_duration(text)
    except (ValueError, OverflowError):
        pass
    try:
        return parse_instant(text)
    except ValueError as error:
        sentence = "write a time like 2026-11-21T08:00:00Z, or how long ago, like 2h or 1d"
        raise WrongUse(f"{option} {text}: {sentence}") from error
