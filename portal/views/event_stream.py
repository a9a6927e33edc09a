"""The events of a stream: the latest, then each new one as it is committed. One owner.

A stream starts at most an hour back and remembers how far it has looked; in a newer view it looks at newer events only.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import islice

from portal.http.sse import StreamEvent
from portal.identity.callers import Caller
from portal.views.event_log import SEARCHED
from portal.views.event_search import EventData, EventQuery, search_of
from portal.views.view import View
from reconciler.queries.event_search import Between, Filter, Spot

LATEST = 200
"""Most events that a stream sends for one view; a client that needs every event searches."""
FURTHEST_BACK = timedelta(hours=1)
"""Greatest age of the first event."""


@dataclass(slots=True)
class EventStream:
    """The stream of one caller, started at `begun`."""

    asked: EventQuery
    begun: datetime
    _since: datetime | None = None
    _last: Spot | None = field(default=None)

    def tell(self, view: View, caller: Caller, now: datetime) -> list[StreamEvent]:
        """New events of this view, oldest first. ApiError 422."""
        search = search_of(view, caller, self._wanted(view, now))
        told: list[StreamEvent] = []
        newest: Spot | None = None
        for spot, row in islice(view.events.looked(search.wanted, Between(after=self._last)), SEARCHED):
            newest = newest or spot
            data = search.data(row)
            if data is not None:
                told.append(_told(spot, data))
            if len(told) == LATEST:
                break
        self._last = newest or self._last
        return told[::-1]

    def _wanted(self, view: View, now: datetime) -> Filter:
        """With a fixed start, also if `since` was relative."""
        wanted = self.asked.filter(view, now)
        if self._since is None:
            earliest = self.begun - FURTHEST_BACK
            self._since = earliest if wanted.since is None else max(earliest, wanted.since)
        return replace(wanted, since=self._since)


def _told(spot: Spot, data: EventData) -> StreamEvent:
    return StreamEvent(f"{spot.path}:{spot.number}", "event", data.model_dump_json(by_alias=True))
