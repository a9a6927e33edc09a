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
from reconciler.settings import Settings
from reconciler.waking import Waking
from schemas.errors import EgsError, UserError

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Plan the queue of a repository and carry it out."
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
    int,
    typer.Option("--pushes-per-minute", min=0, max=60, help="Pushes that nobody waits for; 0: no bound."),
]

DEFAULT_STATE = Path("~/.local/state/egs-reconciler")


def _settings(repo: str, state: Path, poll: int = 30, budget: int = 2) -> Settings:
    return Settings(
        repo=repo,
        state=state.expanduser(),
        poll=timedelta(seconds=poll),
        pushes_per_minute=budget or None,
    )


@app.command(epilog="Example: egs-reconciler run --repo git@forge.example.com:fleet.git")
def run(repo: Repo, state: State = DEFAULT_STATE, poll: Poll = 30, pushes_per_minute: Budget = 2) -> None:
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
    """One cycle: look, plan, commit, act."""
    cycle = controller(_settings(repo, state)).cycle(SystemClock().now())
    typer.echo(
        f"{len(cycle.events)} events; the next instant that matters is {cycle.wake:%Y-%m-%dT%H:%M:%SZ}"
    )
    raise typer.Exit(0 if cycle.leading else 1)


@app.command(epilog="Example: egs-reconciler adopt --repo ./fleet.git")
def adopt(repo: Repo, state: State = DEFAULT_STATE) -> None:
    """Take a repository over whose requests have no status yet: every request is filed now."""
    cycle = controller(_settings(repo, state), adopt=True).cycle(SystemClock().now())
    typer.echo(f"adopted {len(cycle.facts.requests) if cycle.facts else 0} requests")


def main() -> None:
    """The console script `egs-reconciler`: exit 2 for what somebody has to mend, 3 for trouble of the world."""
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    logging.getLogger("apscheduler").setLevel(logging.WARNING)  # it tells of every wake-up
    try:
        app()
    except EgsError as error:
        typer.echo(f"{error.reason}: {error}", err=True)
        sys.exit(2 if isinstance(error, UserError) else 3)
