"""`egs watch`: one line for every change, as it happens."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer

from egs.commands import output
from egs.commands.backend import STANDS, Backend
from egs.commands.declare import READS_NOW, declare
from egs.commands.lists import Slice
from egs.commands.options import of_repository, option
from egs.commands.output import Row


class WatchForm(StrEnum):
    """json is one object per line."""

    TABLE = "table"
    JSON = "json"


def register(app: typer.Typer) -> None:
    declare(app, "watch", "Follow events as they happen.", watch, READS_NOW)


def watch(
    backend: Backend,
    slice_: Slice = None,
    gpr: Annotated[str | None, option(metavar="[SLICE/]GPR", help="Only this request.")] = None,
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
        if line is None:
            continue
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


# Inside a command, `output` is its option and not the module.
_text, _flush = output.text, output.flush
