"""`egs-reconciler`: settings are read once, the parts are put together, and time starts to pass."""

from __future__ import annotations

import logging
import signal
import sys
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from reconciler.clock import SystemClock
from reconciler.compose import controller
from reconciler.loop import Cycle, Reconciler
from reconciler.settings import Settings
from reconciler.waking import Waking
from schemas.errors import EgsError, Fault, UserError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Plan the queue of a repository and carry it out.",
)

Repo = Annotated[
    str, typer.Option("--repo", envvar="EGS_REPO", help="Path or URL of the repository.", show_default=False)
]
State = Annotated[
    Path,
    typer.Option("--state", envvar="EGS_STATE", help="Folder for mirror and cache; may be lost at any time."),
]
Poll = Annotated[
    int, typer.Option("--poll", min=1, max=3600, help="Seconds between two looks at the repository.")
]
Budget = Annotated[
    int | None,
    typer.Option(
        "--pushes-per-minute",
        min=0,
        max=60,
        help="Pushes that nobody waits for; 0: no bound. Default: 2 for a URL, no bound for a path.",
    ),
]

DEFAULT_STATE = Path("~/.local/state/egs-reconciler")


HOSTED_BUDGET = 2
"""Pushes a minute that a forge is asked for when nobody waits; one's own disk needs no such care."""
MOST_CYCLES = 20
"""Cycles of one `once` at most; each goes on only while the one before has left something to do at once."""


def _settings(repo: str, state: Path, poll: int = 30, budget: int | None = None) -> Settings:
    if budget is None and "://" in repo:
        budget = HOSTED_BUDGET
    return Settings(
        repo=repo,
        state=state.expanduser(),
        poll=timedelta(seconds=poll),
        pushes_per_minute=budget or None,
    )


def _settle(reconciler: Reconciler) -> tuple[Cycle, int]:
    """The last of as many cycles as the instant needs, and the events of all.

    Raises Fault when the repository does not answer.
    """
    clock, told = SystemClock(), 0
    for _ in range(MOST_CYCLES):
        cycle = reconciler.cycle(clock.now())
        told += len(cycle.events)
        if not cycle.reachable:
            raise Fault(
                "the repository does not answer; check its address, the network and your rights",
                "RemoteUnreachable",
            )
        if not cycle.leading or cycle.wake > clock.now():
            break
    return cycle, told


@app.command(epilog="Example: egs-reconciler run --repo https://forge.example.com/fleet.git")
def run(repo: Repo, state: State = DEFAULT_STATE, poll: Poll = 30, pushes_per_minute: Budget = None) -> None:
    """Plan and act until SIGTERM or Ctrl-C."""
    waking = Waking(controller(_settings(repo, state, poll, pushes_per_minute)), SystemClock())
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: waking.ended.set())
    waking.start()
    waking.ended.wait()
    waking.stop()
    if waking.failed is not None:
        raise waking.failed


@app.command(epilog="Example: egs-reconciler once --repo ./fleet.git")
def once(repo: Repo, state: State = DEFAULT_STATE) -> None:
    """Look, plan, commit, act, until there is nothing left to do at this instant. Exit 1: somebody else leads."""
    cycle, told = _settle(controller(_settings(repo, state)))
    if not cycle.leading:
        typer.echo("another controller leads; nothing was done", err=True)
        raise typer.Exit(1)
    typer.echo(f"events: {told}; the next instant that matters is {cycle.wake:%Y-%m-%dT%H:%M:%SZ}")


@app.command(epilog="Example: egs-reconciler adopt --repo ./fleet.git")
def adopt(repo: Repo, state: State = DEFAULT_STATE) -> None:
    """Take a repository over whose requests have no status yet: every request is filed now."""
    cycle, _ = _settle(controller(_settings(repo, state), adopt=True))
    count = len(cycle.facts.requests) if cycle.facts else 0
    typer.echo(f"adopted {count} request{'' if count == 1 else 's'}")


def main() -> None:
    """The console script `egs-reconciler`: exit 1 when the answer is no, 2 for wrong use, 3 for what broke."""
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    logging.getLogger("apscheduler").setLevel(logging.WARNING)  # it tells of every wake-up
    try:
        app()
    except EgsError as error:
        typer.echo(f"egs-reconciler: {error} ({error.reason})", err=True)
        sys.exit(1 if isinstance(error, UserError) else 3)
