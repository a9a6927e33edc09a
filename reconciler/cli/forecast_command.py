"""The command `egs forecast`. Declarations only; the work is imported late."""

from __future__ import annotations

from typing import Annotated

import typer

from egs.commands.options import Now, Output, Repo
from egs.commands.output import Form


def register(app: typer.Typer) -> None:
    app.command("forecast", short_help="Say how many more nodes would shorten waits.")(forecast)


def forecast(  # noqa: PLR0913 - each is an option of the command
    shape: Annotated[str, typer.Option(metavar="SHAPE", help="GPU shape of the added nodes.")],
    target_p90: Annotated[
        str,
        typer.Option(
            "--target-p90", metavar="D", help="Target: nine of ten requests wait no longer than this: 4h."
        ),
    ],
    most: Annotated[int, typer.Option(metavar="N", min=1, max=100_000, help="Most nodes to add.")] = 256,
    since: Annotated[
        str, typer.Option(metavar="D", help="How many days of requests to replay: 14d.")
    ] = "14d",
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
