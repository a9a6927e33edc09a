"""`egs-agent`: settings are read, the parts are put together, and the cycles start."""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from threading import Event
from types import FrameType
from typing import TYPE_CHECKING, Annotated
from uuid import uuid4

import typer

from agent.nvml import installed
from agent.port import Reader
from agent.release import from_file, never
from agent.report import Identity, Reporter, as_text, report_of
from agent.settings import Settings
from agent.simulated import SimulatedReader, file_source
from agent.watch import Manifest, Observer, Watch
from reconciler.clock import Clock, SystemClock, monotonic_s
from reconciler.credentials import from_environment
from reconciler.model.evidence import GIT
from reconciler.store.git.git_store import GitStore
from reconciler.store.store_port import Sign, Store
from reconciler.trust.trust_options import OwnKey
from schemas.errors import EgsError, UserError
from schemas.reading.units import LONG_NAME_PATTERN, LONGEST_NAME, NAME_PATTERN

if TYPE_CHECKING:
    from reconciler.trust.sshsig import PrivateKey

log = logging.getLogger(__name__)

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Report the health of one node's GPUs.",
    context_settings={"help_option_names": ["-h", "--help"]},
)

Repo = Annotated[
    str, typer.Option("--repo", envvar="EGS_REPO", help="Path or URL of the repository.", show_default=False)
]
ClusterName = Annotated[
    str, typer.Option("--cluster", envvar="EGS_CLUSTER", help="Cluster of this node.", show_default=False)
]
NodeName = Annotated[
    str,
    typer.Option("--node", envvar="EGS_NODE", help="Name of this node in the cluster.", show_default=False),
]
AgentName = Annotated[
    str | None, typer.Option("--agent", help="Name of the agent's branch; the node's name by default.")
]
Simulated = Annotated[
    Path | None, typer.Option("--simulated", help="JSON file to read GPUs from instead of the driver.")
]
Interval = Annotated[int, typer.Option("--interval", min=1, max=3600, help="Seconds between two readings.")]
State = Annotated[
    Path, typer.Option("--state", envvar="EGS_STATE", help="Folder for the mirror; safe to delete.")
]

Listen = Annotated[
    str | None,
    typer.Option(
        "--listen",
        envvar="EGS_LISTEN",
        metavar="HOST:PORT",
        help="Serve metrics and the last hours here. Default: off.",
    ),
]
PodResources = Annotated[
    Path | None,
    typer.Option(
        "--pod-resources",
        envvar="EGS_POD_RESOURCES",
        metavar="SOCKET",
        help="The kubelet's socket, to name the pods of GPUs in telemetry. Default: none.",
    ),
]

Release = Annotated[
    Path | None,
    typer.Option(
        "--release",
        envvar="EGS_RELEASE",
        metavar="FILE",
        help="File with the time until which the driver is released, for a reset. Default: never.",
    ),
]

DEFAULT_STATE = Path("~/.local/state/egs-agent")


@app.command(epilog="Example: egs-agent once --repo ./fleet.git --cluster east --node h100-1")
def once(  # noqa: PLR0913 - the options of a command
    repo: Repo,
    cluster: ClusterName,
    node: NodeName,
    agent: AgentName = None,
    simulated: Simulated = None,
    state: State = DEFAULT_STATE,
    key: OwnKey = None,
) -> None:
    """Read, judge and report once, and print the report.

    Exit 0: the node is healthy; 1: it is not; 3: reading it or pushing its report failed.
    """
    settings = _settings(Settings(repo, cluster, node, agent or node, state, simulated, key=key))
    with _refusals_told(), closing(_store(settings)) as store:
        clock, who = SystemClock(), identity(settings)
        watched = watch(settings, store, who)
        verdict = watched.cycle(clock.now(), patient=False)
        if verdict is not None:
            typer.echo(as_text(report_of(verdict, who, clock.now())).decode(), nl=False)
        if verdict is None or not watched.told:
            raise typer.Exit(3)
        raise typer.Exit(0 if verdict.healthy else 1)


@app.command(epilog="Example: egs-agent run --repo ./fleet.git --cluster east --node h100-1 --interval 10")
def run(  # noqa: PLR0913 - the options of a command
    repo: Repo,
    cluster: ClusterName,
    node: NodeName,
    agent: AgentName = None,
    simulated: Simulated = None,
    interval: Interval = 10,
    state: State = DEFAULT_STATE,
    listen: Listen = None,
    pod_resources: PodResources = None,
    release: Release = None,
    key: OwnKey = None,
) -> None:
    """Read, judge and report on change, until SIGTERM or Ctrl-C."""
    every = timedelta(seconds=interval)
    settings = _settings(
        Settings(
            repo,
            cluster,
            node,
            agent or node,
            state,
            simulated,
            every,
            listen=listen,
            pod_resources=pod_resources,
            release=release,
            key=key,
        )
    )
    clock = SystemClock()
    with _refusals_told(), closing(_store(settings)) as store, _observed(settings, clock) as observe:
        keep_watching(watch(settings, store, identity(settings), observe), every, clock)


def watch(settings: Settings, store: Store, who: Identity, observe: Observer = lambda *_: None) -> Watch:
    """Put the parts of one agent together."""
    manifest = Manifest(store, settings.main_branch, who, settings.thresholds_every)
    release = never if settings.release is None else from_file(settings.release)
    return Watch(_reader(settings), Reporter(store, who, _key(settings)), manifest, who, observe, release)


@contextmanager
def _observed(settings: Settings, clock: Clock) -> Iterator[Observer]:
    """What sees the readings: telemetry if it is on, which is served until the end of the block."""
    if settings.listen is None:
        yield lambda *_: None
        return
    from agent.telemetry.serve import serve  # costs memory, which an agent without telemetry does not need

    node = (settings.cluster, settings.node)
    with serve(settings.listen, node, settings.pod_resources, clock) as exporter:
        yield exporter.observe


def identity(settings: Settings) -> Identity:
    boot = BOOT_ID.read_text().strip() if BOOT_ID.exists() else ""
    writer = f"{settings.agent}@{settings.cluster}/{uuid4().hex[:12]}"
    return Identity(settings.cluster, settings.node, settings.agent, writer, boot)


def keep_watching(watched: Watch, every: timedelta, clock: Clock) -> None:
    """Cycle at intervals until a signal ends it; raises errors that an operator must fix.

    A late cycle is never skipped, and several late ones count as one.
    """
    stopped = Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopped.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    while not stopped.is_set():
        due = monotonic_s() + every.total_seconds()
        watched.cycle(clock.now())
        stopped.wait(max(0.0, due - monotonic_s()))


def _reader(settings: Settings) -> Reader:
    if settings.simulated is not None:
        return SimulatedReader(file_source(settings.simulated))
    return installed(settings.deadline.total_seconds())


def _store(settings: Settings) -> GitStore:
    state = settings.state.expanduser() / settings.cluster / settings.agent
    key = _key(settings)
    sign: Sign | None = None if key is None else lambda payload: key.sign(GIT, payload)
    return GitStore(settings.repo, state / "mirror.git", credentials=settings.credentials, sign=sign)


def _key(settings: Settings) -> PrivateKey | None:
    if settings.key is None:
        return None
    from reconciler.trust.sshsig import (
        read_private_key,  # costs 8 MB, which an agent without a key does not need
    )

    return read_private_key(settings.key)


def _settings(settings: Settings) -> Settings:
    if not re.fullmatch(NAME_PATTERN, settings.cluster):
        raise typer.BadParameter(
            f"--cluster {settings.cluster!r}: lower-case letters, digits and '-', at most 63"
        )
    for option in ("node", "agent"):
        value = getattr(settings, option)
        if not re.fullmatch(LONG_NAME_PATTERN, value) or len(value) > LONGEST_NAME:
            allowed = f"lower-case letters, digits, '-' and '.', at most {LONGEST_NAME}"
            raise typer.BadParameter(f"--{option} {value!r}: {allowed}")
    deadline = min(settings.deadline, settings.interval / 2)
    return replace(settings, deadline=deadline, credentials=from_environment(os.environ))


@contextmanager
def _refusals_told() -> Iterator[None]:
    """An error that an operator must fix: one sentence on stderr and exit 2; any other fault: exit 3."""
    try:
        yield
    except EgsError as error:
        typer.echo(f"{error.reason}: {error}", err=True)
        raise typer.Exit(2 if isinstance(error, UserError) else 3) from error


def main() -> None:
    """The console script `egs-agent`."""
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    app()
