"""`egs watch` on a server: its two streams, told as one, as they come."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import copy_context
from enum import StrEnum
from typing import Annotated, Any

import typer

from egs import clock
from egs.commands import output
from egs.commands.errors import Said, wrong_use
from egs.remote import asking
from egs.sse import Message

Line = dict[str, Any]
"""One change, as `-o json` prints it."""
_STANDS = ("phase", "reason", "estimatedStartTime", "estimatedEndTime")


class WatchForm(StrEnum):
    """What `-o` of watch takes; json is one object in each line."""

    TABLE = "table"
    JSON = "json"


def register(app: typer.Typer) -> None:
    """Add it to the app."""
    app.command("watch", short_help="Follow what happens, as it happens.")(watch)


def watch(
    slice_: Annotated[
        str | None, typer.Option("--slice", metavar="S", help="Only this slice.", show_default=False)
    ] = None,
    gpr: Annotated[
        str | None, typer.Option(metavar="SLICE/GPR", help="Only this request.", show_default=False)
    ] = None,
    output: Annotated[WatchForm, typer.Option("--output", "-o", help="How to tell it.")] = WatchForm.TABLE,
) -> None:
    """Follow events as they come; with --slice or --gpr also phases and estimated starts. Ctrl-C ends it.

    \b
    Example:
      egs watch --gpr vision/train
    """
    name = gpr if gpr is None or "/" in gpr or slice_ is None else f"{slice_}/{gpr}"
    if name is not None and "/" not in name:
        raise wrong_use(f"{name} names no request; write SLICE/GPR, for example vision/train")
    about = {"slice": None if name else slice_, "gpr": name}
    streams: list[Callable[[], Iterator[Line]]] = [lambda: _events(about)]
    if name is not None:
        streams.append(lambda: _requests("gpr/watch", {"gprId": name}))
    elif slice_ is not None:
        streams.append(lambda: _requests("watch", {"sliceName": slice_}))
    for line in merged(streams):
        _tell(line, output)


def merged(streams: list[Callable[[], Iterator[Line]]]) -> Iterator[Line]:
    """The lines of all streams as they come, each stream read by a thread of its own; the first error ends it."""
    found: queue.Queue[Line | Exception] = queue.Queue()

    def read(stream: Callable[[], Iterator[Line]]) -> None:
        try:
            for line in stream():
                found.put(line)
        except Exception as error:
            found.put(error)

    for stream in streams:
        # A thread has a context of its own, and the server is named in ours.
        threading.Thread(target=copy_context().run, args=(read, stream), daemon=True).start()
    while True:
        line = found.get()
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
            return  # it is gone, and the stream with it; its events go on


def moves(messages: Iterable[Message]) -> Iterator[Line]:
    """Where the requests of a stream stand, and where they stood before; what is as before is not told again."""
    before: dict[str, Line] = {}
    for message in messages:
        _check(message.event, message.data)
        data = json.loads(message.data)
        times = (data.get("estimatedStartTime") or None, data.get("endTime") or None)
        now = dict(zip(_STANDS, (data["phase"], data.get("reason") or None, *times), strict=True))
        was, before[data["name"]] = before.get(data["name"]), now
        if was != now:
            slice_, _, name = data["name"].partition("/")
            at = clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
            yield {"kind": "request", "at": at, "slice": slice_, "name": name, **now, "was": was}


def _check(event: str, text: str) -> None:
    """The server ends a stream with its reason when the caller may not hear more."""
    if event == "error":
        reason, _, sentence = text.partition(": ")
        raise Said(sentence or text, reason, 1)


def _tell(line: Line, form: WatchForm) -> None:
    output.text(json.dumps(line, ensure_ascii=False) if form is WatchForm.JSON else as_text(line))
    # Whoever reads from a pipe gets each line when it comes.
    output.flush()


def as_text(line: Line) -> str:
    """A change in one line for people, with the local time."""
    when = output.shown(output.time(line["at"]))
    if line["kind"] == "event":
        about = line["request"] or (f"{line['cluster']}/{line['node']}" if line["node"] else line["cluster"])
        return "  ".join(word for word in (when, line["reason"], about, line["message"]) if word)
    was = line["was"] or dict.fromkeys(_STANDS)
    words = line["phase"] if was["phase"] in (None, line["phase"]) else f"{was['phase']} → {line['phase']}"
    words += f" ({line['reason']})" if line["reason"] else ""
    if line["estimatedStartTime"]:
        words += f", starts {output.shown(output.time(line['estimatedStartTime']))}"
    return f"{when}  {line['slice']}/{line['name']}  {words}"
