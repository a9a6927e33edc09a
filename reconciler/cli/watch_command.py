"""The command `egs watch`. Only its words and when it looks; the work is imported late."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated

import typer

from egs.commands.options import Repo


class WatchForm(StrEnum):
    """What `-o` of watch takes; json is one object in each line."""

    TABLE = "table"
    JSON = "json"


def register(app: typer.Typer) -> None:
    """Add it to the app."""
    app.command("watch", short_help="Follow what happens, as it happens.")(watch)


def watch(
    slice_: Annotated[
        str | None, typer.Option("--slice", metavar="S", help="Only this slice.", show_default=False)
    ] = None,
    gpr: Annotated[
        str | None, typer.Option(metavar="[SLICE/]GPR", help="Only this request.", show_default=False)
    ] = None,
    every: Annotated[
        int, typer.Option(min=1, max=3600, metavar="SECONDS", help="Pause between two looks.")
    ] = 5,
    repo: Repo = None,
    output: Annotated[WatchForm, typer.Option("--output", "-o", help="How to tell it.")] = WatchForm.TABLE,
) -> None:
    """Follow events as they come; with --slice or --gpr also phases and estimated starts. Ctrl-C ends it.

    \b
    Example:
      egs watch --gpr vision/train
    """
    from reconciler.queries.event_search import Filter
    from reconciler.queries.status_changes import follow

    with ended_by_signals() as ended:
        follow(repo, Filter(slice=slice_, gpr=gpr), looks(every, ended), is_json=output is WatchForm.JSON)


@contextlib.contextmanager
def ended_by_signals() -> Iterator[threading.Event]:
    """Set by Ctrl-C and SIGTERM, which end nothing else meanwhile: a look goes on to its end."""
    ended = threading.Event()
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, lambda *_: ended.set()) for number in numbers]
    try:
        yield ended
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def looks(every_s: float, ended: threading.Event) -> Iterator[None]:
    """One step for each look, with a pause between two, until it is ended."""
    while not ended.is_set():
        yield
        ended.wait(every_s)
