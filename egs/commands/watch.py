"""`egs watch`: what happens, a line for each change as it comes."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer

from egs.commands import output
from egs.commands.backend import STANDS, Backend
from egs.commands.declare import READS_NOW, declare
from egs.commands.lists import Slice
from egs.commands.options import of_repository
from egs.commands.output import Row


class WatchForm(StrEnum):
    """What `-o` of watch takes; json is one object in each line."""

    TABLE = "table"
    JSON = "json"


def register(app: typer.Typer) -> None:
    """Add it to the app."""
    declare(app, "watch", "Follow events as they happen.", watch, READS_NOW)


def watch(
    backend: Backend,
    slice_: Slice = None,
    gpr: Annotated[
        str | None, typer.Option(metavar="[SLICE/]GPR", help="Only this request.", show_default=False)
    ] = None,
    every: Annotated[
        int,
        of_repository(min=1, max=3600, metavar="SECONDS", help="Pause between two polls.", show_default=True),
    ] = 5,
    output: Annotated[WatchForm, typer.Option("--output", "-o", help="Output format.")] = WatchForm.TABLE,
) -> None:
    """Follow events as they come; with --slice or --gpr also phases and estimated starts. Ctrl-C ends it.

    \b
    Example:
      egs watch --gpr vision/train
    """
    for line in backend.watch(slice_, gpr, every):
        _text(json.dumps(line, ensure_ascii=False) if output is WatchForm.JSON else as_text(line))
        # A reader of a pipe gets each line when it comes.
        _flush()


def as_text(line: Row) -> str:
    """A change in one line for people, with the local time."""
    when = output.shown(output.time(line["at"]))
    if line["kind"] == "event":
        about = line["request"] or (f"{line['cluster']}/{line['node']}" if line["node"] else line["cluster"])
        return "  ".join(word for word in (when, line["reason"], about, line["message"]) if word)
    return f"{when}  {output.key(line)}  {_standing(line)}"


def _standing(line: Row) -> str:
    was = dict.fromkeys(STANDS) | (line["was"] or {})
    if line["phase"] is None:
        return f"{was['phase']} → its file is gone"
    words = line["phase"] if was["phase"] in (None, line["phase"]) else f"{was['phase']} → {line['phase']}"
    words += f" ({line['reason']})" if line["reason"] else ""
    if line["estimatedStartTime"]:
        words += f", starts {output.shown(output.time(line['estimatedStartTime']))}"
        if was["estimatedStartTime"] not in (None, line["estimatedStartTime"]):
            words += f" instead of {output.shown(output.time(was['estimatedStartTime']))}"
    return str(words)


# The command calls its option `output`, as people type it; the module of that name is meant here.
_text, _flush = output.text, output.flush
