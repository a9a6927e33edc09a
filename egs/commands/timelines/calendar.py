"""`egs get calendar`: nodes along time, as text or as the data of `GET calendar`."""

from __future__ import annotations

import shutil
import sys
from typing import Annotated

import typer

from egs.commands import options, output
from egs.commands.backend import Backend
from egs.commands.declare import READS_THEN, declare
from egs.commands.options import option
from egs.commands.output import Form, Row
from egs.commands.timelines.strips import TICK, Span, lines

MOST_HOURS = 24 * 90
_SLOTS = 4 * TICK
"""Of a strip, for programs and narrow terminals."""
_NAMES = 24
"""Columns of a terminal that names of nodes may need."""

From = Annotated[str | None, option("--from", metavar="TIME", help="Begin at this time. Default: now.")]
Hours = Annotated[int, typer.Option("--hours", min=1, max=MOST_HOURS, metavar="N", help="How many hours.")]
Slice = Annotated[str | None, option("--slice", metavar="S", help="Only nodes with a bar of this slice.")]
Cluster = Annotated[str | None, option("--cluster", metavar="C", help="Only nodes of this cluster.")]
Pool = Annotated[str | None, option("--pool", metavar="P", help="Only nodes of pools of this name.")]
Shape = Annotated[str | None, option("--shape", metavar="X", help="Only nodes of this GPU shape.")]
Free = Annotated[bool, typer.Option("--free", help="Only nodes that are free now.")]


def register(get: typer.Typer) -> None:
    declare(get, "calendar", "Nodes along time: what has them when.", calendar, READS_THEN)


def calendar(  # noqa: PLR0913 - each is an option of the command
    backend: Backend,
    begin: From = None,
    hours: Hours = 24,
    cluster: Cluster = None,
    pool: Pool = None,
    shape: Shape = None,
    slice_: Slice = None,
    free: Free = False,
    output: options.Output = Form.TABLE,
) -> None:
    """Show nodes along time: leases, promises, planned starts, maintenance. Of others' requests only the times.

    \b
    Examples:
      egs get calendar
      egs get calendar --cluster east --hours 168
      egs get calendar --slice vision -o json
    """
    filters = {
        "from": begin,
        "hours": hours,
        "cluster": cluster,
        "pool": pool,
        "shape": shape,
        "slice": slice_,
        "free": free,
    }
    found = backend.calendar(filters)
    if output is Form.TABLE:
        _draw(found, hours)
    else:
        _data(found, output)


def _draw(found: Row, hours: int) -> None:
    if not found["rows"]:
        output.note("no node to show")
        return
    since = found["begin"]
    for line in lines(found, Span(since, since + hours * 3600, _slots())):
        output.text(line)


def _slots() -> int:
    """As many as a terminal shows in one line."""
    if not sys.stdout.isatty():
        return _SLOTS
    columns = shutil.get_terminal_size().columns - _NAMES
    return max(_SLOTS, columns // TICK * TICK)


# Inside a command, `output` is its option and not the module.
_data = output.data
