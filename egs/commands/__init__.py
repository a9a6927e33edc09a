"""The commands that work on a repository and on a server: names, options, columns and help, each declared once.

`backend` is the port behind them and `limits` says what a server does not carry out. Functions import what they need
when they run, because `egs --help` loads nothing heavy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import typer


def register(app: typer.Typer) -> None:
    """Add all of them to the app."""
    from egs.commands import (
        access,
        accounts,
        decisions,
        keys,
        lists,
        pages,
        past,
        questions,
        requests,
        slices,
        watch,
    )
    from egs.commands.proposed import advise, whatif
    from egs.commands.running import diagnose, endpoints, jobs, top
    from egs.commands.timelines import diff

    for part in (
        past,
        diff,
        questions,
        whatif,
        advise,
        lists,
        watch,
        top,
        diagnose,
        requests,
        jobs,
        endpoints,
        slices,
        keys,
        decisions,
        access,
        pages,
        accounts,
    ):
        part.register(app)
