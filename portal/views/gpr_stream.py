"""The requests of a stream: each as it is, and again when it changes. One owner.

Values that only tick, such as the cost so far and the remaining wait, cause no event; they come with the next change. A
cancelled request is sent once as such, also if its file was deleted; a stream of that request alone ends there.

Held by tests/portal/test_watch.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from portal.http.sse import StreamEvent
from portal.identity.callers import Caller
from portal.identity.redaction import Redactor
from portal.vendor.gpr_answers import FILED, Found, as_cancelled, data_of, found_in
from portal.vendor.gpr_models import GprData
from portal.views.queues import line_of
from portal.views.view import View
from reconciler.model.statuses import live
from schemas.status.gpr_status import WAITING, GPRStatus, Phase

EVENT = "gpr"


@dataclass(slots=True)
class Watch:
    """The stream of one caller. `keys`: only these; empty: all live requests of `slice`, until they end."""

    slice: str = ""
    keys: frozenset[str] = frozenset()
    _told: dict[str, tuple[object, StreamEvent]] = field(default_factory=dict)
    _stood: dict[str, GprData] = field(default_factory=dict)

    def tell(self, view: View, caller: Caller, now: datetime) -> list[StreamEvent]:
        redactor = Redactor(caller, view)
        told = (self._of(view, key, now, redactor) for key in self._wanted(view))
        return [one for one in told if one is not None]

    def _wanted(self, view: View) -> list[str]:
        if self.keys:
            return sorted(self.keys)
        alive = view.once_planned(_alive).get(self.slice, ())
        fresh = view.once(_fresh).get(self.slice, ())
        return sorted({*alive, *fresh, *self._told})

    def _of(self, view: View, key: str, now: datetime, redactor: Redactor) -> StreamEvent | None:
        found = found_in(view, key)
        if found is None:
            return self._gone(view, key)
        made_from = _made_from(view, found)
        known = self._told.get(key)
        if known is not None and known[0] == made_from:
            return known[1]
        data = data_of(view, found, now, redactor)
        stands = _without_clock(data)
        told = known[1] if known is not None and self._stood.get(key) == stands else _as_told(key, data)
        if key in self.keys and data.phase == Phase.CANCELLED:
            told = replace(told, is_last=True)
        self._told[key], self._stood[key] = (made_from, told), stands
        return told

    def _gone(self, view: View, key: str) -> StreamEvent | None:
        """The final event of a request that waited when last seen; None: its end is unknown."""
        self._told.pop(key, None)
        stood = self._stood.pop(key, None)
        if stood is None or stood.phase not in {*WAITING, FILED} or key in view.wanted.filed:
            return None
        return replace(_as_told(key, as_cancelled(stood)), is_last=key in self.keys)


def _alive(view: View) -> Mapping[str, list[str]]:
    """Live requests by slice; worked out once for all streams."""
    return _by_slice(live(view.facts.requests))


def _fresh(view: View) -> Mapping[str, list[str]]:
    """Requests that the controller has not seen yet, by slice."""
    return _by_slice(key for key in view.wanted.filed if key not in view.facts.requests)


def _by_slice(keys: Iterable[str]) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key in keys:
        found.setdefault(key.partition("/")[0], []).append(key)
    return found


def _made_from(view: View, found: Found) -> tuple[GPRStatus | None, object, object]:
    """The inputs of the data, except the clock: if equal, the data need not be built again."""
    status = found.status
    waits = status is not None and status.phase in WAITING
    return (status, view.once_planned(line_of).turns.get(found.key) if waits else None, found.spec)


def _without_clock(data: GprData) -> GprData:
    status = data.status.edited(cost="")
    return data.edited(estimated_wait_time="", status=status)


def _as_told(key: str, data: GprData) -> StreamEvent:
    return StreamEvent(key, EVENT, data.model_dump_json(by_alias=True))
