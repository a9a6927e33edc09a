"""`egs whatif`: what a change would do that is not pushed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from egs.commands import options, output
from egs.commands.backend import Backend
from egs.commands.declare import DECIDES, declare
from egs.commands.errors import wrong_use
from egs.commands.options import option
from egs.commands.output import Column, Form, Row, at, field, place


def register(app: typer.Typer) -> None:
    declare(app, "whatif", "Say what a change would do, without making it.", whatif, DECIDES)


REQUESTS: tuple[Column, ...] = (
    ("REQUEST", output.key),
    ("CHANGE", field("change")),
    ("START WAS", at("startBefore")),
    ("START", at("estimatedStartTime")),
    ("WAIT", lambda row: output.seconds(row["estimatedWaitSeconds"])),
    ("END", at("estimatedEndTime")),
    ("WHERE", place),
    ("GPUS", field("gpus")),
    ("COST WAS", lambda row: _amount(row["costBefore"])),
    ("COST", lambda row: _amount(row["cost"])),
    ("REASON", lambda row: row["message"] or row["reason"]),
)
MOVED: tuple[Column, ...] = (
    ("REQUEST", output.key),
    ("CHANGE", field("change")),
    ("MINUTES", field("minutes")),
    ("START WAS", at("was")),
    ("START", at("now")),
    ("WHY", lambda row: row["why"] if row["proven"] else f"probably: {row['why']}"),
)
PREEMPTED: tuple[Column, ...] = (
    ("REQUEST", output.key),
    ("ENDS", at("at")),
    ("INSTEAD OF", at("endBefore")),
    ("FOR", field("by")),
    ("RESUMES", at("resumes")),
)


def whatif(
    backend: Backend,
    files: Annotated[
        list[Path] | None,
        options.argument(metavar="[FILE...]", help="Manifests as they would be; - reads one from stdin."),
    ] = None,
    edit: Annotated[
        list[str] | None,
        option(
            "--edit", metavar="SLICE/GPR:FIELD=VALUE", help="Change a field of a request; may be repeated."
        ),
    ] = None,
    end: Annotated[
        list[str] | None,
        option("--end", metavar="SLICE/GPR", help="Cancel or release a request; may be repeated."),
    ] = None,
    output: options.Output = Form.TABLE,
) -> None:
    """Say what a change would do, without making it: is it valid, who approves, who starts when, who waits longer.

    \b
    Examples:
      egs whatif train.yaml
      egs whatif --edit vision/train:priority=180 --end vision/old
      egs whatif maintenance-of-east.yaml -o json

    The answer is that of `egs check-pr` for a pull request with the change. A manifest's place follows from its kind
    and name. On a server, requests of slices that you may not see are counted, not named. Exit 1 when it cannot be
    merged.
    """
    manifests = {str(path): _text(path) for path in files or ()}
    if not (manifests or edit or end):
        raise wrong_use("name a change: a manifest's FILE, --edit or --end")
    found = backend.what_if(manifests, [_edit(word) for word in edit or ()], end or [])
    if output is Form.TABLE:
        _show(found)
    else:
        _data(found, output)
    raise typer.Exit(1 if found["verdict"] == "refused" else 0)


def _text(path: Path) -> str:
    try:
        return sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise wrong_use(f"{path} cannot be read: {why}") from error


def _edit(word: str) -> tuple[str, Sequence[str]]:
    request, colon, assignment = word.partition(":")
    if not colon or "=" not in assignment:
        raise wrong_use(f"--edit {word}: write SLICE/GPR:FIELD=VALUE, for example vision/train:priority=180")
    return request, [assignment]


def _show(found: Row) -> None:
    output.text(found["summary"])
    for row in found["problems"]:
        output.text(
            f"{row['file']}:{row['line']}: {row['severity']} {row['rule']}: {row['message']}; {row['fix']}"
        )
    for row in found["denials"]:
        output.text(f"{row['file']}: {row['rule']}: {row['message']}")
    for row in found["approvals"]:
        who = " or ".join(row["admins"]) or "no admin other than the requester"
        output.text(f"{row['slice']}/{row['name'] or ''}: {row['why']}; to approve: {who}")
    for rows, columns in (
        (found["requests"], REQUESTS),
        (found["preempted"], PREEMPTED),
        (found["moved"], MOVED),
    ):
        if rows:
            output.text("")
            output.rows(rows, Form.TABLE, columns, "")
    if found["moreMoved"]:
        output.note(f"{output.counted(found['moreMoved'], 'more request')} move less than these")
    for sentence in _hidden(found["hidden"]):
        output.note(sentence)


def _hidden(hidden: Row) -> Sequence[str]:
    """What happens to requests of other slices, in sentences."""
    said = []
    if hidden["later"]:
        said.append(f"{_others(hidden['later'])} wait longer, up to {hidden['mostMinutes']} min")
    if hidden["withoutStart"]:
        said.append(f"{_others(hidden['withoutStart'])} lose their start")
    if hidden["preempted"]:
        said.append(f"{_others(hidden['preempted'])} have to make room")
    if hidden["problems"]:
        said.append(f"it breaks files of other slices ({hidden['problems']} problems)")
    return said


def _others(count: int) -> str:
    return f"{output.counted(count, 'request')} of slices that you may not see"


def _amount(cost: Row | None) -> str | None:
    return None if cost is None else f"{cost['amount']:,.2f} {cost['currency']}"


# Inside a command, `output` is its option and not the module.
_data = output.data
