"""`egs-agent`: where settings are read, the parts are put together, and time starts to pass."""

from __future__ import annotations

import logging
import re
import signal
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import Annotated
from uuid import uuid4

import typer
from apscheduler.schedulers.blocking import BlockingScheduler

from agent.nvml import installed
from agent.port import Reader
from agent.report import Identity, Reporter, report_of
from agent.report import as_text as report_text
from agent.settings import Settings
from agent.simulated import SimulatedReader, file_source
from agent.watch import Manifest, Watch
from reconciler.clock import Clock, SystemClock
from reconciler.store.git import GitStore
from reconciler.store.port import Store
from schemas.errors import EgsError, UserError
from schemas.units import NAME_PATTERN

log = logging.getLogger(__name__)

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Report the health of one node's GPUs.")

Repo = Annotated[
    str, typer.Option("--repo", envvar="EGS_REPO", help="Path or URL of the repository.", show_default=False)
]
ClusterName = Annotated[
    str, typer.Option("--cluster", envvar="EGS_CLUSTER", help="Cluster of this node.", show_default=False)
]
NodeName = Annotated[
    str, typer.Option("--node", envvar="EGS_NODE", help="Name of this node in it.", show_default=False)
]
AgentName = Annotated[
    str | None, typer.Option("--agent", help="Name of the agent's branch; the node's name by default.")
]
Simulated = Annotated[
    Path | None, typer.Option("--simulated", help="JSON file to read GPUs from instead of the driver.")
]
Interval = Annotated[int, typer.Option("--interval", min=1, max=3600, help="Seconds between two readings.")]
State = Annotated[
    Path, typer.Option("--state", envvar="EGS_STATE", help="Folder for the mirror; may be lost at any time.")
]

DEFAULT_STATE = Path("~/.local/state/egs-agent")


@app.command(epilog="Example: egs-agent once --repo ./fleet.git --cluster east --node h100-1 --simulated g.json")
def once(
    repo: Repo,
    cluster: ClusterName,
    node: NodeName,
    agent: AgentName = None,
    simulated: Simulated = None,
    state: State = DEFAULT_STATE,
) -> None:
    """Read, judge and report once; prints the report. Exit 1 when the node is unhealthy or was not read."""
    settings = _settings(repo, cluster, node, agent, state, simulated)
    with _ending_in_words(), closing(_store(settings)) as store:
        clock, who = SystemClock(), identity(settings)
        verdict = watch(settings, store, who).cycle(clock.now())
        if verdict is None:
            raise typer.Exit(1)
        typer.echo(report_text(report_of(verdict, who, clock.now())).decode(), nl=False)
        raise typer.Exit(0 if verdict.healthy else 1)
