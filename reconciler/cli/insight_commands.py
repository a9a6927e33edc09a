"""The commands `egs insights` and `egs forecast`. Only their words; the work is imported late."""

from __future__ import annotations

from typing import Annotated

import typer

from egs.commands.options import Now, Output, Repo
from egs.commands.output import Form


def register(app: typer.Typer) -> None:
    """Add them to the app."""
    app.command("insights", short_help="Show demand, waits, use and how good estimates were.")(insights)
    app.command("forecast", short_help="Say how many more nodes would shorten waits.")(forecast)


def insights(
    repo: Repo = None,
    now: Now = None,
    days: Annotated[
        int, typer.Option(metavar="N", min=1, max=92, help="Days that are shown one by one.")
    ] = 14,
    output: Output = Form.TABLE,
) -> None:
    """Show what requests that are over have shown: demand, waits, utilisation, how good estimates were, and why
    promises moved; by shape, slice, hour and day.

    \b
    Examples:
      egs insights
      egs insights --days 30 -o json
    """
    from reconciler.queries.insight_rows import show_insights

    show_insights(repo, now, days, output)


def forecast(  # noqa: PLR0913 - each is an option of the command
    shape: Annotated[str, typer.Option(metavar="SHAPE", help="GPU shape of the nodes that are added.")],
    target_p90: Annotated[
        str, typer.Option("--target-p90", metavar="D", help="Nine of ten requests are to wait no longer: 4h.")
    ],
    most: Annotated[
        int, typer.Option(metavar="N", min=1, max=100_000, help="Nodes that are added at most.")
    ] = 256,
    since: Annotated[str, typer.Option(metavar="D", help="How far back requests are replayed: 14d.")] = "14d",
    repo: Repo = None,
    now: Now = None,
    output: Output = Form.TABLE,
) -> None:
    """Say how many more nodes of a shape would bring the wait of nine requests in ten under a target.

    Replays the repository's own requests of the last days through the planner, with ever more nodes. Only requests
    that may use nodes of the shape count.

    \b
    Example:
      egs forecast --shape H100-80GB --target-p90 4h

    Exit 1 when no number of nodes up to --most is enough, or there is nothing to replay.
    """
    from reconciler.queries.capacity_forecast import Question, show_capacity

    raise typer.Exit(show_capacity(repo, now, Question(shape, target_p90, most, since), output))
