"""How `egs get` answers: a table, a wider one, or data; of all, or of what is named; once, or again when it changes.

As people know it from kubectl: singular or plural kinds, names behind the kind, `-w`, `-o wide`, and of one name the
thing itself in JSON. Nothing here knows where rows come from.

Held by tests/egs/test_listing.py.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import Annotated, Any

import typer

from egs.kinds import CHECKS, SINGULAR, Kind
from egs.remote import output
from egs.remote.errors import not_allowed, wrong_use
from egs.remote.output import Column, Form, Row

_OTHER = {**SINGULAR, **{singular: plural for plural, singular in SINGULAR.items()}}
_LISTS = {
    "gprs": "Requests, in every phase.",
    "slices": "Slices, with what they hold and used.",
    "clusters": "Clusters, their freshness and pools.",
    "nodes": "Nodes, with state, lease and schedule.",
    "requests": "Slices that people asked for.",
    "queue": "Who waits, in order, and how long.",
    "events": "What happened, newest first.",
    "problems": "What is wrong with the documents.",
    "workloads": "What runs on requests' nodes.",
}
_WHOLES = {
    "gpr": "A request: checks, slips, cost.",
    "slice": "A slice: bounds, requests, usage.",
    "request": "A slice that a person asked for.",
    "cluster": "A cluster: pools and schedule.",
    "node": "A node: state, GPUs, calendar.",
}
EVERY_S = 5.0
"""Pause between two looks of `-w`: repositories are read every few seconds, too."""


class GetForm(StrEnum):
    """What `-o` of get takes."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"


class EventType(StrEnum):
    """Type of an event."""

    NORMAL = "Normal"
    WARNING = "Warning"


Output = Annotated[GetForm, typer.Option("--output", "-o", help="How to answer; wide: with more columns.")]
Watch = Annotated[
    bool, typer.Option("--watch", "-w", help="Then tell each row again when it changes, until Ctrl-C.")
]
Checks = Annotated[
    bool, typer.Option("--checks", help="Only the checks of its nodes, each with its value and log.")
]
Slice = Annotated[
    str | None, typer.Option("--slice", metavar="S", help="Only this slice.", show_default=False)
]
Cluster = Annotated[str | None, typer.Option(metavar="C", help="Only this cluster.", show_default=False)]
Pool = Annotated[str | None, typer.Option(metavar="P", help="Only this pool.", show_default=False)]
PhaseName = Annotated[
    str | None,
    typer.Option(
        "--phase", metavar="PHASE", help="Only in this phase, for example Queued.", show_default=False
    ),
]
OfRequest = Annotated[
    str | None,
    typer.Option("--gpr", metavar="[SLICE/]GPR", help="Only this request.", show_default=False),
]
OfNode = Annotated[
    str | None,
    typer.Option("--node", metavar="[CLUSTER/]NODE", help="Only this node.", show_default=False),
]
Reason = Annotated[
    str | None,
    typer.Option(
        "--reason", metavar="REASON", help="Only these, for example GPRDelayed.", show_default=False
    ),
]
OfType = Annotated[
    EventType | None,
    typer.Option("--type", help="Only what is a warning, or what is none.", show_default=False),
]
Since = Annotated[
    str | None,
    typer.Option("--since", metavar="TIME", help="From this time on; 2h: two hours ago.", show_default=False),
]
Until = Annotated[
    str | None,
    typer.Option("--until", metavar="TIME", help="Before this time, or so long ago.", show_default=False),
]
Grep = Annotated[
    str | None,
    typer.Option(
        "--grep", metavar="TEXT", help="Only with this text, in capitals or not.", show_default=False
    ),
]
Limit = Annotated[int, typer.Option("--limit", min=1, metavar="N", help="At most so many.")]
Names = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME]...", help="Only these; none: all.", show_default=False)
]


@dataclass(frozen=True, slots=True)
class ListOptions:
    """How somebody wants it."""

    form: GetForm = GetForm.TABLE
    names: Sequence[str] | None = None
    is_watched: bool = False


def register(
    app: typer.Typer, lists: Mapping[str, Callable[..., None]], wholes: Mapping[str, Callable[..., None]]
) -> None:
    """Add `get` with a command for each kind of `lists`, and `describe` with one for each of `wholes`."""
    get = typer.Typer(
        help="List GPRs, slices, requests for slices, clusters, nodes, the queue, events, problems or workloads."
        "\n\n\b\nExample:\n  egs get queue",
        short_help="List things of one kind.",
        no_args_is_help=True,
    )
    describe = typer.Typer(
        help="Show everything about one thing.\n\n\b\nExample:\n  egs describe gpr vision/train",
        short_help="Show everything about one thing.",
        no_args_is_help=True,
    )
    for kind, function in lists.items():
        add(get, kind, function, _LISTS[kind])
    for kind, function in wholes.items():
        add(describe, kind, function, _WHOLES[kind])
    app.add_typer(get, name="get")
    app.add_typer(describe, name="describe")


def add(group: typer.Typer, kind: str, function: Callable[..., None], about: str) -> None:
    """Add the command of a kind, and hidden beside it the same under its other number."""
    group.command(kind, short_help=about)(function)
    if kind in _OTHER:
        group.command(_OTHER[kind], short_help=about, hidden=True)(function)


def answer(
    kind: Kind,
    fetch: Callable[[], Sequence[Row]],
    asked: ListOptions,
    spread: Callable[[list[Row]], list[Row]] = list,
    looks: Iterable[None] | None = None,
) -> None:
    """Answer with what `fetch` gives; `spread` makes of rows those of the table. Raises Said: a name is not there."""
    if asked.is_watched:
        if asked.form is GetForm.YAML:
            raise wrong_use("-w tells one row in each line: give it -o json, or a table")
        _follow(kind, (fetch, spread), asked, every(EVERY_S) if looks is None else looks)
        return
    rows = list(fetch())
    found, missing = _named(kind, rows, asked.names or ())
    if found or not missing:
        _show(kind, found, asked, spread)
    if missing:
        output.flush()
        raise not_allowed(_not_there(kind, missing, rows), "NotFound")


def every(seconds: float) -> Iterator[None]:
    """A look, and again after each pause, for ever."""
    while True:
        yield
        time.sleep(seconds)


def _show(kind: Kind, rows: list[Row], asked: ListOptions, spread: Callable[[list[Row]], list[Row]]) -> None:
    if asked.form in (GetForm.JSON, GetForm.YAML):
        is_one = len(asked.names or ()) == 1 == len(rows)
        output.data(rows[0] if is_one else rows, Form(asked.form))
        return
    output.rows(spread(rows), Form.TABLE, _columns(kind, asked.form), kind.empty)


def _columns(kind: Kind, form: GetForm) -> tuple[Column, ...]:
    return kind.columns + kind.wide if form is GetForm.WIDE else kind.columns


def _named(kind: Kind, rows: Sequence[Row], names: Sequence[str]) -> tuple[list[Row], list[str]]:
    """Rows of those names, in the order of the names, and names of none. The part behind a / is enough."""
    if not names:
        return list(rows), []
    found: dict[int, Row] = {}
    missing = []
    for name in names:
        of_name = [(i, row) for i, row in enumerate(rows) if _is_called(kind.name(row), name)]
        found |= dict(of_name)
        missing += [] if of_name else [name]
    return list(found.values()), missing


def _is_called(full: str, name: str) -> bool:
    return full == name or ("/" not in name and full.rpartition("/")[2] == name)


def _not_there(kind: Kind, missing: Sequence[str], rows: Sequence[Row]) -> str:
    near = get_close_matches(missing[0], sorted({kind.name(row) for row in rows}), 3, 0.6)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"there is no {kind.noun} {', '.join(missing)}{hint}"


def checks(described: Row, form: str) -> None:
    """Answer with the checks of a request that was described: before its start, between its nodes, after its end."""
    status = described["status"] or {}
    output.rows(status.get("checks") or [], Form(form), CHECKS.columns, CHECKS.empty)


# -- watching ----------------------------------------------------------------------------------------------------------

Source = tuple[Callable[[], Sequence[Row]], Callable[[list[Row]], list[Row]]]


def _follow(kind: Kind, source: Source, asked: ListOptions, looks: Iterable[None]) -> None:
    """What is, then each row that is new or another, in one line. The header comes once."""
    fetch, spread = source
    columns = _columns(kind, asked.form)
    before: dict[str, list[str]] | None = None
    widths = [len(head) for head, _ in columns]
    for _ in looks:
        rows, _missing = _named(kind, list(fetch()), asked.names or ())
        now = {_place(kind, row): (row, _cells(columns, row)) for row in spread(rows)}
        known = before or {}
        new = [one for name, one in now.items() if _lasting(kind, columns, one[1]) != known.get(name)]
        if asked.form is GetForm.JSON:
            told = {kind.name(row): row for row in rows if kind.name(row) in {kind.name(r) for r, _ in new}}
            _say(json.dumps(row, ensure_ascii=False) for row in told.values())
        else:
            widths = [max(w, *(len(c[i]) for _, c in new), 0) for i, w in enumerate(widths)]
            head = [[head for head, _ in columns]] if before is None else []
            _say(_line(cells, widths) for cells in [*head, *(cells for _, cells in new)])
        before = {name: _lasting(kind, columns, cells) for name, (_, cells) in now.items()}


def _place(kind: Kind, row: Row) -> str:
    """A table of clusters has several rows of one name."""
    pool = row.get("pool")
    return f"{kind.name(row)} {pool['name']}" if isinstance(pool, dict) else kind.name(row)


def _cells(columns: Sequence[Column], row: Row) -> list[str]:
    return [output.shown(cell(row)) for _, cell in columns]


def _lasting(kind: Kind, columns: Sequence[Column], cells: list[str]) -> list[str]:
    return [cell for (head, _), cell in zip(columns, cells, strict=True) if head not in kind.passing]


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _say(lines: Iterable[Any]) -> None:
    for line in lines:
        output.text(line)
    output.flush()
