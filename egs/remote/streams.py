"""`egs watch` on a server: two streams, merged as they arrive."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import copy_context
from typing import Any

from egs import clock
from egs.commands.backend import STANDS
from egs.commands.errors import Said, wrong_use
from egs.remote import asking
from egs.sse import Message

Line = dict[str, Any]
"""One change, as `-o json` prints it."""


def followed(slice_: str | None, gpr: str | None, every_s: float) -> Iterator[Line | None]:
    """Events, and the state of that request or of that slice's requests; None where none came for `every_s`."""
    if gpr is not None and "/" not in gpr:
        raise wrong_use(f"{gpr} names no request; write SLICE/GPR, for example vision/train")
    about = {"slice": None if gpr else slice_, "gpr": gpr}
    streams: list[Callable[[], Iterator[Line]]] = [lambda: _events(about)]
    if gpr is not None:
        streams.append(lambda: _requests("gpr/watch", {"gprId": gpr}))
    elif slice_ is not None:
        streams.append(lambda: _requests("watch", {"sliceName": slice_}))
    return merged(streams, every_s)


def merged(streams: list[Callable[[], Iterator[Line]]], every_s: float) -> Iterator[Line | None]:
    """The lines of all streams as they come; a thread reads each stream, and the first error ends all.

    None whenever no line came for `every_s` seconds.
    """
    found: queue.Queue[Line | Exception] = queue.Queue()

    def read(stream: Callable[[], Iterator[Line]]) -> None:
        try:
            for line in stream():
                found.put(line)
        except Exception as error:
            found.put(error)

    for stream in streams:
        # A new thread has an empty context, and SERVER is set in ours.
        threading.Thread(target=copy_context().run, args=(read, stream), daemon=True).start()
    while True:
        try:
            line = found.get(timeout=every_s)
        except queue.Empty:
            yield None
            continue
        if isinstance(line, Exception):
            raise line
        yield line


def _events(about: Mapping[str, Any]) -> Iterator[Line]:
    for message in asking.heard("events/stream", about):
        _check(message.event, message.data)
        yield {"kind": "event", **json.loads(message.data)}


def _requests(path: str, params: Mapping[str, Any]) -> Iterator[Line]:
    for line in moves(asking.heard(path, params)):
        yield line
        if "gprId" in params and line["phase"] == "Cancelled":
            return  # the server ends the stream of a cancelled request; its events go on


def moves(messages: Iterable[Message]) -> Iterator[Line]:
    """The new and the previous state of each request of a stream that has changed."""
    before: dict[str, Line] = {}
    for message in messages:
        _check(message.event, message.data)
        data = json.loads(message.data)
        times = (data.get("estimatedStartTime") or None, data.get("endTime") or None)
        now = dict(zip(STANDS, (data["phase"], data.get("reason") or None, *times), strict=True))
        was, before[data["name"]] = before.get(data["name"]), now
        if was != now:
            slice_, _, name = data["name"].partition("/")
            at = clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
            yield {"kind": "request", "at": at, "slice": slice_, "name": name, **now, "was": was}


def _check(event: str, text: str) -> None:
    """Raises Said if the server ends the stream with a refusal."""
    if event == "error":
        reason, _, sentence = text.partition(": ")
        raise Said(sentence or text, reason, 1)
