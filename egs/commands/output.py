"""How commands answer: data on stdout, as a table, JSON or YAML; everything else on stderr.

Times are RFC 3339 UTC in data and local in tables. Data is stable (docs/reference/commands/common.md), tables are not.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

Row = Mapping[str, Any]
Column = tuple[str, Callable[[Row], Any]]
"""Its heading, and the value of a cell."""


class Form(StrEnum):
    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


def note(sentence: str) -> None:
    """A sentence for people that is not the answer, on stderr."""
    sys.stderr.write(f"egs: {sentence}\n")


@contextlib.contextmanager
def working(what: str) -> Iterator[None]:
    """Show on stderr that work is going on, if it is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{what} …"):
        yield


def text(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def flush() -> None:
    """Flush stdout, which may be a pipe."""
    sys.stdout.flush()


def data(content: Any, form: Form) -> None:
    """The answer as JSON or YAML, keys in their own order."""
    if form is Form.JSON:
        text(json.dumps(content, indent=2, ensure_ascii=False))
        return
    sys.stdout.write(_yaml(content))


_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./-]*")
"""Texts that every version of YAML reads as text, but for words like `on`, which the library quotes itself."""


def _yaml(content: Any) -> str:
    import yaml

    class Quoting(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # the C one, where it is built
        """Quotes every text that some reader could take for a number, a time or a truth value."""

    def text_node(dumper: Any, value: str) -> Any:
        style = None if _PLAIN.fullmatch(value) else '"'
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Quoting.add_representer(str, text_node)
    found: str = yaml.dump(content, Dumper=Quoting, sort_keys=False, allow_unicode=True, width=2**30)
    return found


def rows(found: Sequence[Row], form: Form, columns: Sequence[Column], empty: str) -> None:
    """The answer as data or as a table; for an empty table, the sentence `empty` on stderr."""
    if form is not Form.TABLE:
        data(found, form)
        return
    cells = ([cell(row) for _, cell in columns] for row in found)
    table([name for name, _ in columns], cells, empty)


def table(head: Sequence[str], found: Iterable[Sequence[Any]], empty: str) -> None:
    """A table; if it is empty, the sentence `empty` on stderr, if there is one."""
    cells = [[shown(cell) for cell in row] for row in found]
    if cells:
        _table(head, cells)
    elif empty:
        note(empty)


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
    # Programs that read tables get each row in one line, however wide, and thousands at once.
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
    """A value as a cell: empty for None, times in local time, durations as people say them."""
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


def counted(count: int, thing: str) -> str:
    """`1 node`, `2 nodes`."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def time(value: str | None) -> datetime | None:
    """A time from data, to be shown in a table."""
    return None if not value else datetime.fromisoformat(value)


def seconds(count: int | None) -> timedelta | None:
    """Seconds from data, to be shown in a table."""
    return None if count is None else timedelta(seconds=count)


def field(name: str) -> Callable[[Row], Any]:
    """A cell with a field as it is."""
    return lambda row: row[name]


def at(name: str) -> Callable[[Row], Any]:
    """A cell with a time."""
    return lambda row: time(row[name])


def key(row: Row) -> str:
    """A request's `slice/name`."""
    return f"{row['slice']}/{row['name']}"


def place(row: Row) -> str | None:
    """The pool where it is or will be."""
    return f"{row['cluster']}/{row['pool']}" if row["cluster"] else None
