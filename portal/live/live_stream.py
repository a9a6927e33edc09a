"""The one stream of a browser: each new commit, what changed with it, and whether the repository answers.

Events, each with JSON as its data:
  * `commit`, with an id: a commit that the client does not have, its age, and what changed for this caller;
  * `calendar`, before the `commit` it belongs to, if asked for: bars to draw anew and bars to remove;
  * `beat`: nothing new; the age of the data, and the commit that counts;
  * `stale`: the repository has not answered for three polls, in a sentence; `fresh`: it answers again;
  * `end`: the server says no more, and why. With status 401 or 403 the client must not ask again by itself.

The id names the commits of both branches, so it means the same to every replica and after a restart. A client that
comes back with the id of the present commit gets no `commit`; one that comes back with any other is told that
everything may have changed. What callers who see the same slices get is computed and encoded once. The caller is
checked again with each event that says more than the time.

Held by tests/portal/live/test_live_stream.py.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from portal.http.context import Reads
from portal.http.errors import ApiError
from portal.identity.callers import Caller
from portal.live.calendar_deltas import delta
from portal.live.live_changes import EVERYTHING, Changes, changes, difference, id_of
from portal.views.view import View

KEEP_ALIVE_S = 15.0
WHILE_STALE_S = 2.0
"""Between two looks whether the repository answers again."""
SOON_S = 1.0
"""Least time to wait for a new commit before saying something else."""
_TELLERS = ThreadPoolExecutor(2, thread_name_prefix="live")
Recognise = Callable[[View], Caller]
"""The caller in another view; ApiError 401 or 403 after their rights ended."""


def sentence(text: str) -> str:
    """A reason as a sentence of its own."""
    return f"{text[:1].upper()}{text[1:]}." if text else ""


@dataclass(slots=True)
class LiveStream:
    """What one client is told. `last` is the id that it has; empty: it has nothing yet."""

    reads: Reads
    recognise: Recognise
    last: str = ""
    calendar: bool = False
    """Whether it is told of bars, too."""
    _is_stale: bool = False

    async def told(self) -> AsyncIterator[bytes]:
        """The stream's bytes, until the server or the caller's right ends."""
        try:
            view = self.reads.view()
            caller = self.recognise(view)
            said = self._first(view)
            while not self.reads.is_ending:
                yield self._turned() + said
                before, was = view, caller
                view = await self._newer(before)
                caller = self.recognise(view)
                said = self._beat(view) if view is before else await self._news(before, view, was, caller)
            yield encoded("end", {"status": 503, "reason": "Ending", "message": "The portal restarts."})
        except ApiError as error:
            said_last = {
                "status": error.status.value,
                "reason": error.reason,
                "message": sentence(str(error)),
            }
            yield encoded("end", said_last)

    def _first(self, view: View) -> bytes:
        return self._beat(view) if self.last == id_of(view) else committed(view, EVERYTHING)

    async def _newer(self, view: View) -> View:
        """The same one if there is none yet, or if views are refused because the repository is silent for too long."""
        patience_s = WHILE_STALE_S if self._is_stale else max(SOON_S, self.reads.stale_in_s)
        try:
            return await self.reads.newer(view, min(KEEP_ALIVE_S, patience_s))
        except ApiError:
            return view

    def _turned(self) -> bytes:
        """What to say when the repository stops answering, or answers again."""
        ready = self.reads.ready()
        if ready.ok is not self._is_stale:
            return b""
        self._is_stale = not ready.ok
        if self._is_stale:
            return encoded("stale", {"why": sentence(ready.message)})
        return encoded("fresh", {"age": int(self.reads.age_s)})

    def _beat(self, view: View) -> bytes:
        now = {"status": view.status, "main": view.main, "age": int(self.reads.age_s)}
        return encoded("beat", now)

    async def _news(self, before: View, view: View, was: Caller, caller: Caller) -> bytes:
        if was.sees != caller.sees:  # what this caller has been told does not add up with what others have
            return committed(view, EVERYTHING)
        return await view.once(_Shared).of(before, caller, self.calendar)


@dataclass(slots=True)
class _Shared:
    """The bytes of one view, by the view before and by what its readers see."""

    view: View
    _made: dict[tuple[str, frozenset[str] | None, bool], Future[bytes]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    async def of(self, before: View, caller: Caller, calendar: bool) -> bytes:
        key = (id_of(before), caller.sees, calendar)
        with self._lock:
            if key not in self._made:
                self._made[key] = _TELLERS.submit(_changed, before, self.view, caller, calendar)
            made = self._made[key]
        # A reader who leaves must not cancel what others wait for.
        return made.result() if made.done() else await asyncio.shield(asyncio.wrap_future(made))


def _changed(before: View, view: View, caller: Caller, calendar: bool) -> bytes:
    told = committed(view, changes(difference(before, view), view, caller))
    if not calendar:
        return told
    bars = delta(before, view, caller).model_dump(by_alias=True, exclude_none=True)
    return encoded("calendar", {**bars, "id": id_of(view)}) + told


def committed(view: View, what: Changes) -> bytes:
    """A new commit. It is as old as the fetch that brought it, which is over."""
    said = {
        "status": view.status,
        "main": view.main,
        "age": 0,
        "all": what.is_all,
        "requests": what.requests,
        "nodes": what.nodes,
        "calendar": what.calendar,
    }
    return encoded("commit", said, id_of(view))


def encoded(event: str, data: dict[str, Any], id_: str = "") -> bytes:
    """One event. JSON has no line ends, so its data is one line."""
    head = f"id: {id_}\n" if id_ else ""
    return f"{head}event: {event}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()
