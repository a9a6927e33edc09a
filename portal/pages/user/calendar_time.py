"""The time that a calendar shows: what its address says, else what suits the lengths of what is planned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from statistics import median
from typing import Annotated, Literal

from fastapi import Depends, Query

from portal.http.errors import bad_parameters
from portal.live.calendar_rows import bars_of
from portal.pages.visit import Visiting
from portal.views.view import View
from schemas.reading.units import parse_instant

Zoom = Literal["day", "week", "2weeks", "30days"]
HOURS: Mapping[Zoom, int] = {"day": 24, "week": 168, "2weeks": 336, "30days": 720}
NAMES: Mapping[Zoom, str] = {"day": "Day", "week": "Week", "2weeks": "Two weeks", "30days": "30 days"}
DURING: Mapping[Zoom, str] = {
    "day": "all day", "week": "all week", "2weeks": "both weeks", "30days": "all 30 days",
}  # fmt: skip
SUITS: tuple[tuple[timedelta, Zoom], ...] = ((timedelta(hours=12), "day"), (timedelta(days=5), "week"))
"""The usual length up to which a bar has room for its name; longer ones are shown for two weeks."""
_DATE = 10
"""Letters of a date without a time."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The time in view."""

    zoom: Zoom
    begin: datetime

    @property
    def length(self) -> timedelta:
        return timedelta(hours=HOURS[self.zoom])

    @property
    def end(self) -> datetime:
        return self.begin + self.length


def usual_zoom(view: View) -> Zoom:
    """In which half of all leases and promises have room for their names; call it through `View.once_planned`."""
    bars = (bar for of in view.once_planned(bars_of).values() for bar in of)
    lengths = [bar.end - bar.start for bar in bars if bar.kind in ("lease", "promise", "planned")]
    usual = timedelta(seconds=median(lengths)) if lengths else timedelta(days=1)
    return next((zoom for most, zoom in SUITS if usual <= most), "2weeks")


def _in_view(
    visit: Visiting,
    zoom: Zoom | Literal[""] = "",
    begin: Annotated[str, Query(alias="from", max_length=40)] = "",
) -> Asked:
    chosen: Zoom = visit.view.once_planned(usual_zoom) if zoom == "" else zoom
    return Asked(chosen, _since(begin, visit.now, chosen))


InView = Annotated[Asked, Depends(_in_view)]
"""What the address asks for; without a length the usual one."""


def _since(text: str, now: datetime, zoom: Zoom) -> datetime:
    """The beginning of the time in view; without one the last midnight (of a day: the last hour)."""
    if not text:
        return now.replace(minute=0, second=0, microsecond=0) if zoom == "day" else _midnight(now)
    try:
        return (
            _midnight(parse_instant(f"{text}T00:00:00Z"))
            if len(text) == _DATE
            else parse_instant(_full(text))
        )
    except ValueError as error:
        raise bad_parameters(
            "from: write a date such as 2026-11-21, or a time such as 2026-11-21T08:00Z"
        ) from error


def _full(text: str) -> str:
    """With seconds, which a browser's input leaves out."""
    return f"{text[:-1]}:00Z" if text.endswith("Z") and text.count(":") == 1 else text


def _midnight(at: datetime) -> datetime:
    return datetime.combine(at.date(), time(), UTC)
