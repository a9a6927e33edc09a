"""What a reader means in the palette: a wish, a question about free nodes, the hottest GPU. Pure.

Held by tests/portal/pages/test_palette.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from math import ceil

from scheduler.snapshot import Pool

_WISH = re.compile(
    r"(?:ask\s+for\s+)?(?P<count>\d{1,5})\s*(?:(?P<nodes>nodes?(?:\s+of)?)\s+|(?:x|×)\s*(?P<each>\d{1,3})\s*|\s+)?"
    r"(?P<shape>[a-z][\w.-]*)\b(?:\s*(?P<unit_asked>gpus?|nodes?))?\s*(?:for)?\s*"
    r"(?P<length>\d{1,4}(?:\.\d)?)\s*(?P<unit>m|min|minutes?|h|hours?|d|days?|w|weeks?)\??",
    re.IGNORECASE,
)
_MINUTES = {"m": 1, "h": 60, "d": 1440, "w": 10_080}
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_BEGIN = re.compile(
    r"(?:\b(?:from|on|at|starting)\s+)?"
    r"(?:\b(?P<day>today|tomorrow|(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?|\d{4}-\d\d-\d\d)\b"
    r"(?:,?\s*(?:at\s+)?(?P<time>\d{1,2}:\d\d)\b)?|\b(?P<alone>\d{1,2}:\d\d)\b)(?:\s*utc\b)?",
    re.IGNORECASE,
)
_FREE = re.compile(
    r"(?:when\s+(?:are|is|will)?\s*)?(?:there\s+)?(?P<count>\d{1,5}|an?)\s+(?:(?P<before>[a-z]+\d[\w.-]*)\s+)?nodes?"
    r"(?:\s+(?:of\s+)?(?P<after>[a-z]+\d[\w.-]*))?\s+(?:be\s+)?free\??",
    re.IGNORECASE,
)
_HOTTEST = re.compile(r"(?:which\s+is\s+)?(?:the\s+)?(?:hottest|hot|warmest)(?:\s+gpus?)?\??", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Wish:
    """A number of nodes of a shape, for a number of minutes."""

    nodes: int
    gpus_per_node: int
    shape: str
    minutes: int
    begin: datetime | None = None
    """Not before then (UTC); None: as soon as it can."""

    @property
    def duration(self) -> str:
        return f"{self.minutes // 1440}d{self.minutes // 60 % 24}h{self.minutes % 60}m"


@dataclass(frozen=True, slots=True)
class FreeAsk:
    """The question when a number of nodes is free."""

    nodes: int
    shape: str
    """A whole shape; empty: any."""


def wish_in(text: str, pools: Iterable[Pool], now: datetime) -> Wish | None:
    """The wish that the text says. `8 H100` are GPUs, `2 nodes H100`, `2 H100 nodes` and `2x8 H100` nodes; None: none.

    A day, a time, or both may stand anywhere: `4 H100 nodes tomorrow 9:00 for 6h`. Times are UTC.
    """
    begin, rest = _begin(" ".join(text.split()), now)
    found = _WISH.fullmatch(rest)
    if found is None:
        return None
    pool = _pool(found["shape"], pools)
    if pool is None:
        return None
    count, per_node = int(found["count"]), int(found["each"] or 0)
    if found["nodes"] or (found["unit_asked"] or "").lower().startswith("node"):
        per_node = pool.gpus_per_node
    elif not per_node:
        count, per_node = ceil(count / pool.gpus_per_node), min(count, pool.gpus_per_node)
    minutes = round(float(found["length"]) * _MINUTES[found["unit"][0].lower()])
    return Wish(count, per_node, pool.gpu_shape, minutes, begin) if count and minutes else None


def _pool(shape: str, pools: Iterable[Pool]) -> Pool | None:
    """Of a shape that begins so, the one with most GPUs per node."""
    alike = [pool for pool in pools if pool.gpu_shape.lower().startswith(shape.lower())]
    return max(alike, key=lambda each: each.gpus_per_node, default=None)


def _begin(text: str, now: datetime) -> tuple[datetime | None, str]:
    """The first day or time in the text, and the rest; one that has passed is now."""
    found = _BEGIN.search(text)
    if found is None:
        return None, text
    at = _instant(found, now)
    rest = f"{text[: found.start()]} {text[found.end() :]}"
    return (at if at is not None and at > now else None), " ".join(rest.split())


def _instant(found: re.Match[str], now: datetime) -> datetime | None:
    try:
        if found["day"] is None:
            at = datetime.combine(now.date(), _clock(found["alone"]), UTC)
            return at if at > now else at + timedelta(days=1)
        return datetime.combine(_date(found["day"].lower(), now), _clock(found["time"] or "0:00"), UTC)
    except ValueError:
        return None


def _clock(text: str) -> time:
    hours, _, minutes = text.partition(":")
    return time(int(hours), int(minutes))


def _date(text: str, now: datetime) -> date:
    today = now.date()
    if text in ("today", "tomorrow"):
        return today + timedelta(days=text == "tomorrow")
    if text[:3] in _DAYS:
        ahead = (_DAYS.index(text[:3]) - today.weekday()) % 7
        return today + timedelta(days=ahead or 7)
    return date.fromisoformat(text)


def free_ask_in(text: str, pools: Iterable[Pool]) -> FreeAsk | None:
    """`when are 4 nodes free`, `2 H100 nodes free`; None: it asks no such thing, or of a shape that there is not."""
    found = _FREE.fullmatch(" ".join(text.split()))
    if found is None:
        return None
    count = 1 if found["count"].lower().startswith("a") else int(found["count"])
    named = found["before"] or found["after"] or ""
    pool = _pool(named, pools) if named else None
    if count == 0 or (named and pool is None):
        return None
    return FreeAsk(count, "" if pool is None else pool.gpu_shape)


def asks_for_hottest(text: str) -> bool:
    """`hottest gpu`, `hot gpus`."""
    return _HOTTEST.fullmatch(" ".join(text.split())) is not None
