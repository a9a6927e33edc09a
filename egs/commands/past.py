"""Commands about what was: blame, undo."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from egs.commands import options, output
from egs.commands.backend import Backend
from egs.commands.declare import ASKS, READS_NOW, Place, declare
from egs.commands.options import argument, option
from egs.commands.output import Column, Form, at, field
from egs.commands.questions import CHANGES, MOVES_NOBODY


def register(app: typer.Typer) -> None:
    declare(app, "blame", "Say which commit set something.", blame, READS_NOW)
    declare(app, "undo", "Take a commit back, by a pull request.", undo, _PROPOSES)


_PROPOSES = Place({**ASKS.options, "now": options.Now}, "pull-request")


_MAIN: tuple[Column, ...] = (
    ("COMMIT", lambda row: row["commit"][:12]),
    ("AT", at("at")),
    ("BY", lambda row: f"{row['name']} <{row['email']}>"),
    ("PULL REQUEST", field("pullRequest")),
    ("SUBJECT", field("subject")),
)
_STATUS: tuple[Column, ...] = (
    ("STATUS COMMIT", lambda row: row["commit"][:12]),
    ("AT", at("at")),
    (
        "BECAUSE",
        lambda row: (
            "; ".join(f"{one['reason']}: {one['message']}" for one in row["events"]) or row["subject"]
        ),
    ),
)
_VALUES: tuple[Column, ...] = (
    ("WAS", lambda row: _shown(row["was"])),
    ("NOW", lambda row: _shown(row["now"])),
)


def blame(
    backend: Backend,
    thing: Annotated[str, argument(metavar="SLICE/GPR|PATH", help="A request, or the path of a document.")],
    name: Annotated[
        str | None,
        option(
            "--field", metavar="F", help="Only what set this field: spec.priority, status.estimatedStartTime."
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=50, metavar="N", help="Most commits of each.")
    ] = 5,
    output: options.Output = Form.TABLE,
) -> None:
    """Say which commits set a request or a document, or one field of it: who, when, by which pull request.

    \b
    Examples:
      egs blame vision/train
      egs blame vision/train --field spec.priority
      egs blame vision/train --field status.estimatedStartTime
      egs blame clusters/east.yaml --field spec.mode -o json

    What people wrote is on main; a status is the controller's, with the events of that time as its cause.
    """
    found = backend.blame(thing, name, limit)
    if output is not Form.TABLE:
        _data(found, output)
        return
    values = _VALUES if found["field"] else ()
    if found["main"]:
        _rows(found["main"], Form.TABLE, (*_MAIN, *values), "")
    if found["main"] and found["status"]:
        _text("")
    if found["status"]:
        _rows(found["status"], Form.TABLE, (*_STATUS, *values), "")


_FILES: tuple[Column, ...] = (
    ("FILE", field("path")),
    ("CHANGE", field("change")),
    ("FIELDS", lambda row: ", ".join(row["fields"]) or None),
)


def undo(
    backend: Backend,
    commit: Annotated[str, argument(metavar="COMMIT", help="A commit of main, or its first 7 characters.")],
    dry_run: options.DryRun = False,
    output: options.Output = Form.TABLE,
) -> None:
    """Take back what a commit changed, field by field, by a pull request; first it shows whom that moves.

    \b
    Examples:
      egs undo 8d5f0a1c --dry-run
      egs undo 8d5f0a1c

    Later changes of other fields stay. If a later commit changed the same field, it is refused and says which.
    """
    found = backend.undo(commit, is_trial=dry_run)
    if output is not Form.TABLE:
        _data(found, output)
        return
    _rows(found["files"], Form.TABLE, _FILES, "")
    _text("")
    _rows(found["moves"], Form.TABLE, CHANGES, MOVES_NOBODY)


def _shown(value: Any) -> str | None:
    """A value of a document in one cell."""
    if isinstance(value, dict | list):
        return f"{len(value)} entries"
    return None if value is None else str(value)


# Inside a command, `output` is its option and not the module.
_data, _rows, _text = output.data, output.rows, output.text
