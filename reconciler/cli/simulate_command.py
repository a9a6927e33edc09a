"""The command `egs simulate`. Declarations only; the work is imported late."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from egs.commands.options import Output, Pools, Repo
from egs.commands.output import Form
from egs.commands.questions import Fairness

Trace = Annotated[
    str | None,
    typer.Argument(metavar="FILE", help="A CSV as of plan --instance; - reads stdin.", show_default=False),
]
Since = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="With --history: only requests filed from then on.", show_default=False
    ),
]
Policy = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A Project manifest whose `scheduling` counts.", show_default=False),
]
RequestsOut = Annotated[
    Path | None,
    typer.Option(metavar="OUT.csv", help="Write the outcome of each request.", show_default=False),
]


def register(app: typer.Typer) -> None:
    app.command("simulate", short_help="Replay a trace through the planner.")(simulate)


def simulate(  # noqa: PLR0913 - each is an option of the command
    file: Trace = None,
    pool: Pools = None,
    history: Annotated[
        bool, typer.Option("--history", help="Replay the repository's own requests instead of a file.")
    ] = False,
    since: Since = None,
    repo: Repo = None,
    fairness: Annotated[
        Fairness, typer.Option(help="off: only priority, time of filing and order; no queue policy.")
    ] = Fairness.ON,
    policy: Policy = None,
    arrivals: Annotated[
        float, typer.Option(metavar="F", min=0.01, max=100, help="Factor by which requests arrive faster.")
    ] = 1.0,
    early_release: Annotated[
        float, typer.Option(metavar="SHARE", min=0, max=1, help="Share of requests that release early.")
    ] = 0.0,
    failures: Annotated[
        str | None,
        typer.Option(metavar="MTBF", help="Mean time between failures of a node: 30d.", show_default=False),
    ] = None,
    mended: Annotated[
        str, typer.Option(metavar="D", help="With --failures: how long a failed node is out.")
    ] = "1d",
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the random draws.")] = 0,
    requests_out: RequestsOut = None,
    output: Output = Form.TABLE,
) -> None:
    """Replay a trace through the real planner, lifecycle and policies in simulated time.

    \b
    Examples:
      egs simulate trace.csv --pool a=100 -o json
      egs simulate trace.csv --pool a=100 --policy project.yaml --early-release 0.6 --requests-out out.csv
      egs simulate --history --policy project.yaml

    Exit 1 when a request never started, 2 when a row is bad.
    """
    from reconciler.cli.answers.simulations import Drawn, Tried, show_simulation

    drawn = Drawn(arrivals, early_release, failures, mended, seed)
    tried = Tried(repo, file, tuple(pool or ()), history, since, fairness is Fairness.ON, policy, drawn)
    raise typer.Exit(show_simulation(tried, output, requests_out))
