"""How `egs get` answers: a table or data, of all rows or of named ones, once or again after every change.

It follows kubectl: names after the kind, `-w`, `-o wide`, and for a single name one object instead of a list.

Held by tests/egs/test_listing.py.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import Any

from egs.commands import output
from egs.commands.errors import not_allowed, wrong_use
from egs.commands.kinds import CHECKS, Kind
from egs.commands.output import Column, Form, Row

EVERY_S = 5.0
"""Pause between two polls of `-w`; a server does not read its repository more often."""


class GetForm(StrEnum):
    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Which rows are asked for, and how they are shown."""

    form: GetForm = GetForm.TABLE
    names: Sequence[str] | None = None
    is_watched: bool = False


def answer(
    kind: Kind,
    fetch: Callable[[], Sequence[Row]],
    asked: ListOptions,
    spread: Callable[[list[Row]], list[Row]] = list,
    looks: Iterable[None] | None = None,
) -> None:
    """Print the rows of `fetch`; `spread` turns them into rows of the table. Raises Said if a name is unknown."""
    if asked.is_watched:
        if asked.form is GetForm.YAML:
            raise wrong_use("-w prints one row per line; use -o json or a table")
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
    """Yields at once, and again after every pause, for ever."""
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
    """The named rows, in the order of the names, and the unknown names. The part after a / is enough."""
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
    """Print the checks of a described request: before its start, between its nodes, after its end."""
    status = described["status"] or {}
    output.rows(status.get("checks") or [], Form(form), CHECKS.columns, CHECKS.empty)


# -- watching ----------------------------------------------------------------------------------------------------------

Source = tuple[Callable[[], Sequence[Row]], Callable[[list[Row]], list[Row]]]


def _follow(kind: Kind, source: Source, asked: ListOptions, looks: Iterable[None]) -> None:
    """Print all rows, then each new or changed one. The header comes once."""
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
