"""How commands answer: data on stdout, in one of three forms; everything else on stderr.

Times are RFC 3339 UTC in data and local in tables. Data is a stable contract (docs/commands.md), tables are not.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any


class Form(StrEnum):
    """What `-o` takes."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


def note(sentence: str) -> None:
    """Tell a person something that is not the answer."""
    sys.stderr.write(f"egs: {sentence}\n")


@contextlib.contextmanager
def working(what: str) -> Iterator[None]:
    """A sign on stderr that something goes on, if somebody is there to see it."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{what} …"):
        yield


def text(line: str) -> None:
    """One line, or several, of the answer."""
    sys.stdout.write(f"{line}\n")


def data(content: Any, form: Form) -> None:
    """The answer as JSON or YAML, keys in their own order."""
    if form is Form.JSON:
        text(json.dumps(content, indent=2, ensure_ascii=False))
    else:
        from schemas.reading.yaml_text import dump

        sys.stdout.write(dump(content))


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], empty: str) -> None:
    """The answer as a table; without a row, the sentence `empty` on stderr."""
    found = [[shown(cell) for cell in row] for row in rows]
    if not found:
        note(empty)
    elif sys.stdout.isatty():
        _print_grid(head, found)
    else:
        # Programs that read tables get each row in one line, however wide, and thousands at once.
        widths = [max(map(len, column)) for column in zip(head, *found, strict=True)]
        for row in (head, *found):
            text("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _print_grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in head:
        grid.add_column(name, overflow="fold")
    for row in rows:
        grid.add_row(*map(Text, row))
    Console(file=sys.stdout).print(grid)


def shown(value: Any) -> str:
    """A value as a cell: nothing for None, local time, durations as people say them."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return local(value)
    if isinstance(value, timedelta):
        return spoken(value)
    if isinstance(value, list | tuple):
        return ", ".join(shown(item) for item in value)
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def local(at: datetime) -> str:
    """Local time to the second, with its offset."""
    return f"{at.astimezone():%Y-%m-%d %H:%M:%S%z}"


def spoken(value: timedelta) -> str:
    """The two largest units: `3h 20m`, `2d 4h`, `45s`; zero is `now`."""
    total = int(value.total_seconds())
    units = (("d", total // 86400), ("h", total // 3600 % 24), ("m", total // 60 % 60), ("s", total % 60))
    first = next((i for i, (_, count) in enumerate(units) if count), None)
    if first is None:
        return "now"
    return " ".join(f"{count}{unit}" for unit, count in units[first : first + 2] if count)


def counted(count: int, thing: str) -> str:
    """`1 node`, `2 nodes`."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def parsed(time: str | None) -> datetime | None:
    """A time from data, to be shown in a table."""
    from schemas.reading.units import parse_instant

    return None if time is None else parse_instant(time)


def wire(at: datetime | None) -> str | None:
    """A time for data."""
    from schemas.reading.units import format_instant

    return None if at is None else format_instant(at)


def seconds(count: int | None) -> timedelta | None:
    """Seconds from data, to be shown in a table."""
    return None if count is None else timedelta(seconds=count)
