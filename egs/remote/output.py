"""How commands on a server answer: data on stdout, in one of three forms; everything else on stderr.

Data is the same as on a repository (docs/commands.md); tables are for people and only look alike.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any

import typer

Row = Mapping[str, Any]
Column = tuple[str, Callable[[Row], Any]]
"""Its head, and what stands in it."""


class Form(StrEnum):
    """What `-o` takes."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


Output = Annotated[Form, typer.Option("--output", "-o", help="How to answer.")]


def note(sentence: str) -> None:
    """Tell a person something that is not the answer."""
    sys.stderr.write(f"egs: {sentence}\n")


def text(line: str) -> None:
    """One line, or several, of the answer."""
    sys.stdout.write(f"{line}\n")


def flush() -> None:
    """Hand on what was said, also into a pipe."""
    sys.stdout.flush()


def data(content: Any, form: Form) -> None:
    """The answer as JSON or YAML, keys in their own order."""
    if form is Form.JSON:
        text(json.dumps(content, indent=2, ensure_ascii=False))
        return
    import yaml

    sys.stdout.write(yaml.safe_dump(content, sort_keys=False, allow_unicode=True))


def rows(found: Sequence[Row], form: Form, columns: Sequence[Column], empty: str) -> None:
    """The answer as data, or as a table; of a table without a row, the sentence `empty` on stderr."""
    if form is not Form.TABLE:
        data(found, form)
    elif not found:
        note(empty)
    else:
        _table([name for name, _ in columns], [[shown(cell(row)) for _, cell in columns] for row in found])


def page(content: Row, form: Form) -> None:
    """Everything about one thing, as data or as a page for people."""
    if form is Form.TABLE:
        text("\n".join(_lines(content)))
    else:
        data(content, form)


def _table(head: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for name in head:
            grid.add_column(name, overflow="fold")
        for row in cells:
            grid.add_row(*map(Text, row))
        Console(file=sys.stdout).print(grid)
        return
    # Programs that read tables get each row in one line, however wide.
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    for row in (head, *cells):
        text("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _lines(content: Row, indent: str = "") -> Iterator[str]:
    for name, value in content.items():
        if value is None or value in ([], {}, ""):
            continue
        if isinstance(value, dict):
            yield f"{indent}{name}:"
            yield from _lines(value, f"{indent}  ")
        elif isinstance(value, list):
            yield f"{indent}{name}:"
            yield from _items(value, f"{indent}  ")
        else:
            yield from _line(f"{indent}{name}: ", value)


def _items(items: Sequence[Any], indent: str) -> Iterator[str]:
    for item in items:
        if isinstance(item, dict):
            lines = list(_lines(item, f"{indent}  "))
            yield f"{indent}- {lines[0].lstrip()}" if lines else f"{indent}-"
            yield from lines[1:]
        else:
            yield from _line(f"{indent}- ", item)


def _line(head: str, value: Any) -> Iterator[str]:
    said = str(value).lower() if isinstance(value, bool) else shown(value)
    first, *more = said.splitlines() or [""]
    yield f"{head}{first}"
    for line in more:
        yield f"{' ' * len(head)}{line}"


def shown(value: Any) -> str:
    """A value as a cell: nothing for None, local time, durations as people say them."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return f"{value.astimezone():%Y-%m-%d %H:%M:%S%z}"
    if isinstance(value, timedelta):
        return spoken(value)
    if isinstance(value, list | tuple):
        return ", ".join(shown(item) for item in value)
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def spoken(value: timedelta) -> str:
    """The two largest units: `3h 20m`, `2d 4h`, `45s`; zero is `now`."""
    total = int(value.total_seconds())
    units = (("d", total // 86400), ("h", total // 3600 % 24), ("m", total // 60 % 60), ("s", total % 60))
    first = next((i for i, (_, count) in enumerate(units) if count), None)
    if first is None:
        return "now"
    return " ".join(f"{count}{unit}" for unit, count in units[first : first + 2] if count)


def time(value: str | None) -> datetime | None:
    """A time of the server's, to be shown in a table."""
    return None if not value else datetime.fromisoformat(value)


def seconds(count: int | None) -> timedelta | None:
    """Seconds of the server's, to be shown in a table."""
    return None if count is None else timedelta(seconds=count)


def field(name: str) -> Callable[[Row], Any]:
    """A cell that is a field as it is."""
    return lambda row: row[name]


def at(name: str) -> Callable[[Row], Any]:
    """A cell that is a time."""
    return lambda row: time(row[name])


def key(row: Row) -> str:
    """A request's `slice/name`."""
    return f"{row['slice']}/{row['name']}"


def place(row: Row) -> str | None:
    """Where it is or will be."""
    return f"{row['cluster']}/{row['pool']}" if row["cluster"] else None
