"""`egs top`: GPUs, workloads or slices, again and again; sums are made here from the rows of `egs get gpus`.

Held by tests/egs/test_running_commands.py.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Annotated, Any

import typer

from egs.commands import output
from egs.commands.backend import Backend
from egs.commands.declare import LOOKS, add, group, parameter
from egs.commands.lists import Cluster, Slice
from egs.commands.options import Output
from egs.commands.output import Column, Form, Row, field
from egs.commands.running.gpu_kinds import GPUS

FRAME_S = 5.0
"""Pause between two looks: values are not newer than that."""
ROWS = 40
"""Rows of a live table: as many as a screen has."""

Once = Annotated[bool, typer.Option("--once", help="Print it once. Default if stdout is not a terminal.")]

SUMS: tuple[Column, ...] = (
    ("GPUS", field("gpus")),
    ("IDLE", field("idleGpus")),
    ("HOT", field("hotGpus")),
    ("USE", lambda row: None if row["utilisationPercent"] is None else f"{row['utilisationPercent']:.0f} %"),
    ("HOTTEST", lambda row: None if row["tempC"] is None else f"{row['tempC']:g} °C"),
    ("POWER", lambda row: None if row["powerW"] is None else f"{row['powerW']:g} W"),
    ("OF LIMIT", lambda row: None if row["closeness"] is None else f"{row['closeness']:.0%}"),
)
TABLES: Mapping[str, tuple[Column, ...]] = {
    "gpus": GPUS.columns,
    "workloads": (("WORKLOAD", field("workload")), ("REQUEST", field("request")), *SUMS),
    "slices": (("SLICE", field("slice")), *SUMS),
}
ABOUT: Mapping[str, tuple[str, str]] = {
    "gpus": (
        "GPUs, the nearest to their limits first.",
        "Show GPUs live, the nearest to their own limits first.",
    ),
    "workloads": (
        "Workloads, with their GPUs summed up.",
        "Show workloads live: use, idle and hot GPUs, power.",
    ),
    "slices": ("Slices, with their GPUs summed up.", "Show slices live: use, idle and hot GPUs, power."),
}


def register(app: typer.Typer) -> None:
    about = "Watch GPUs, workloads or slices live.\n\n\b\nExample:\n  egs top gpus"
    top = group(app, "top", "Watch GPUs live.", about)
    for name in TABLES:
        _add(top, name)


def _add(app: typer.Typer, name: str) -> None:
    def command(backend: Backend, once: bool, form: Form, **filters: Any) -> None:
        def look() -> list[Row]:
            rows = backend.rows("gpus", {"node": None, "grep": None, "hot": False, **filters})
            if name == "gpus":
                return list(rows)
            return [*sums(rows, name)]

        if form is not Form.TABLE:
            output.data(look(), form)
        elif once or not sys.stdout.isatty():
            output.rows(look(), form, TABLES[name], GPUS.empty)
        else:
            live(look, TABLES[name], every(FRAME_S))

    short, about = ABOUT[name]
    text = f"{about} Ctrl-C ends it.\n\n\b\nExample:\n  egs top {name}"
    typed = [
        parameter("slice", Slice),
        parameter("cluster", Cluster),
        parameter("once", Once, False),
        parameter("form", Output, Form.TABLE),
    ]
    add(app, (name, short, text), command, typed, LOOKS)


def sums(rows: Sequence[Row], by: str) -> list[dict[str, Any]]:
    """Rows of GPUs summed up by workload or slice, the nearest to a limit first; GPUs without a lease are left out."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        for key in _keys(row, by):
            groups.setdefault(key, []).append(row)
    found = [{**_named(key, by), **_sum(gpus)} for key, gpus in sorted(groups.items())]
    return sorted(found, key=lambda one: -(one["closeness"] or 0))


def _keys(row: Row, by: str) -> list[tuple[str, str]]:
    if row["request"] is None:
        return []
    if by == "slices":
        return [(row["slice"], "")]
    names = [f"{one['kind']}/{one['name']}" for one in row["workloads"]]
    return [(name, row["request"]) for name in names] or [("", row["request"])]


def _named(key: tuple[str, str], by: str) -> dict[str, Any]:
    name, request = key
    return {"slice": name} if by == "slices" else {"workload": name or None, "request": request}


def _sum(gpus: Sequence[Row]) -> dict[str, Any]:
    used, power = _known(gpus, "utilisationPercent"), _known(gpus, "powerW")
    return {
        "gpus": len(gpus),
        "idleGpus": sum(row["idle"] is True for row in gpus) if used else None,
        "hotGpus": sum(row["hot"] for row in gpus) if used else None,
        "utilisationPercent": round(fmean(used), 1) if used else None,
        "tempC": max(_known(gpus, "tempC"), default=None),
        "powerW": round(sum(power), 1) if power else None,
        "closeness": max(_known(gpus, "closeness"), default=None),
    }


def _known(gpus: Sequence[Row], name: str) -> list[float]:
    return [row[name] for row in gpus if row[name] is not None]


def every(seconds: float) -> Iterator[None]:
    """Yields at once, and again after every pause, for ever."""
    while True:
        yield
        time.sleep(seconds)


def live(look: Callable[[], list[Row]], columns: Sequence[Column], looks: Iterator[None]) -> None:
    """One table on the screen, drawn again at every look."""
    from rich.live import Live
    from rich.table import Table
    from rich.text import Text

    with Live(auto_refresh=False, screen=True) as page:
        for _ in looks:
            table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", expand=True)
            for name, _cell in columns:
                table.add_column(name, overflow="fold")
            for row in look()[:ROWS]:
                style = "bold red" if row.get("hot") or row.get("hotGpus") else ""
                table.add_row(*(Text(output.shown(cell(row))) for _, cell in columns), style=style)
            page.update(table, refresh=True)
