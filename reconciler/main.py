"""`egs-reconciler`: settings are read once, the parts are put together, and time starts to pass."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from reconciler.clock import SystemClock
from reconciler.clusters.kubernetes.names import SYSTEM_NAMESPACE
from reconciler.compose import controller
from reconciler.credentials import from_environment
from reconciler.electing import candidate, taking_part
from reconciler.hooks import secrets_of
from reconciler.inside import Inside, Where
from reconciler.loop import Cycle, Reconciler
from reconciler.metrics import Metrics
from reconciler.resident import app as residents
from reconciler.serving import Server, Service
from reconciler.settings import Settings
from reconciler.store.address import is_remote
from reconciler.tending import Tending, apart, named
from schemas.errors import EgsError, Fault, UserError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Plan the queue of a repository and carry it out.",
)
app.add_typer(residents)

Repo = Annotated[
    str, typer.Option("--repo", envvar="EGS_REPO", help="Path or URL of the repository.", show_default=False)
]
Repos = Annotated[
    list[str],
    typer.Option(
        "--repo",
        envvar="EGS_REPO",
        help="Path or URL of a repository, or NAME=ADDRESS; may be repeated.",
        show_default=False,
    ),
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
Listen = Annotated[
    str,
    typer.Option(
        "--listen",
        envvar="EGS_LISTEN",
        help="HOST:PORT for webhooks, metrics and probes; none by default.",
        show_default=False,
    ),
]
HookSecrets = Annotated[
    Path | None,
    typer.Option(
        "--hook-secrets",
        envvar="EGS_HOOK_SECRETS",
        help="File with the secrets of webhooks, one a line; without it webhooks are off.",
        show_default=False,
    ),
]
Elect = Annotated[
    str,
    typer.Option(
        "--elect",
        envvar="EGS_ELECT",
        help="NAMESPACE/NAME of a Lease: of all processes that name it one is active. Default: no election.",
        show_default=False,
    ),
]
ElectKubeconfig = Annotated[
    Path | None,
    typer.Option(
        "--elect-kubeconfig",
        envvar="EGS_ELECT_KUBECONFIG",
        help="Kubeconfig of the cluster with that Lease. Default: the cluster that this runs in.",
        show_default=False,
    ),
]

Project = Annotated[
    str,
    typer.Option(
        "--project",
        envvar="EGS_PROJECT",
        help="Whose nodes and namespaces they are, where projects share clusters. Default: default; of several "
        "repositories, each one's name.",
        show_default=False,
    ),
]
Kubeconfigs = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfigs",
        envvar="EGS_KUBECONFIGS",
        help="Folder with the kubeconfigs that Cluster manifests name.",
        show_default=False,
    ),
]
Namespace = Annotated[
    str,
    typer.Option(
        "--namespace", envvar="EGS_NAMESPACE", help="Namespace in every cluster for what belongs to no slice."
    ),
]

DEFAULT_PROJECT = "default"
DEFAULT_STATE = Path("~/.local/state/egs-reconciler")


HOSTED_BUDGET = 2
"""Pushes a minute that a forge is asked for when nobody waits; one's own disk needs no such care."""
LOG = "%(asctime)s %(levelname)s {}%(name)s %(message)s"
"""A line of the log. Where several repositories are tended it names the thread, which has the repository's name."""
MOST_CYCLES = 20
"""Cycles of one `once` at most; each goes on only while the one before has left something to do at once."""


@dataclass(frozen=True, slots=True)
class Driving:
    """How real clusters are driven."""

    project: str = ""  # empty: nobody said
    kubeconfigs: Path | None = None
    namespace: str = SYSTEM_NAMESPACE

    def of(self, settings: Settings, name: str) -> Settings:
        """Settings with it; `name` is the project where nobody named one."""
        return replace(
            settings, project=self.project or name, kubeconfigs=self.kubeconfigs, namespace=self.namespace
        )


def _settings(repo: str, state: Path, poll: int = 30, budget: int | None = None) -> Settings:
    if budget is None and is_remote(repo):
        budget = HOSTED_BUDGET
    return Settings(
        repo=repo,
        state=state.expanduser(),
        credentials=from_environment(os.environ),
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


@app.command(epilog="Example: egs-reconciler run --repo https://forge.example.com/fleet.git --listen :8080")
def run(  # noqa: PLR0913 - one for each option
    repo: Repos,
    state: State = DEFAULT_STATE,
    poll: Poll = 30,
    pushes_per_minute: Budget = None,
    listen: Listen = "",
    hook_secrets: HookSecrets = None,
    elect: Elect = "",
    elect_kubeconfig: ElectKubeconfig = None,
    project: Project = "",
    kubeconfigs: Kubeconfigs = None,
    namespace: Namespace = SYSTEM_NAMESPACE,
) -> None:
    """Plan and act until SIGTERM or Ctrl-C, for one repository or several."""
    election = candidate(elect, elect_kubeconfig)
    clock, settings = (
        SystemClock(),
        _each(repo, state, (poll, pushes_per_minute), Driving(project, kubeconfigs, namespace)),
    )
    metrics = Metrics(clock)
    tending = Tending(settings, clock, metrics, None if election is None else election.leads)
    server = _server(listen, hook_secrets, tending, metrics)
    with taking_part(election, tending.wake):
        _until_told(tending, server)


@app.command(epilog="Example: egs-reconciler apply --cluster east --repo https://forge.example.com/fleet.git")
def apply(  # noqa: PLR0913 - one for each option
    cluster: Annotated[
        str, typer.Option("--cluster", envvar="EGS_CLUSTER", help="The Cluster document.", show_default=False)
    ],
    repo: Repo,
    state: State = DEFAULT_STATE,
    poll: Poll = 15,
    report_every: Annotated[
        int,
        typer.Option(
            "--report-every", min=10, max=3600, help="Seconds between two reports when nothing changes."
        ),
    ] = 300,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            "--kubeconfig", help="Of the cluster. Default: the one that this runs in.", show_default=False
        ),
    ] = None,
    pushes_per_minute: Budget = None,
    listen: Listen = "",
    hook_secrets: HookSecrets = None,
    elect: Elect = "",
    elect_kubeconfig: ElectKubeconfig = None,
    project: Project = "",
    namespace: Namespace = SYSTEM_NAMESPACE,
) -> None:
    """Inside of a cluster with access.pull: carry out what is committed, and report, until SIGTERM or Ctrl-C."""
    election = candidate(elect, elect_kubeconfig)
    own = replace(
        Driving(project, None, namespace).of(
            _settings(repo, state, poll, pushes_per_minute), DEFAULT_PROJECT
        ),
        report_every=timedelta(seconds=report_every),
    )
    clock = SystemClock()
    metrics = Metrics(clock)
    where = Where(cluster, None if kubeconfig is None else kubeconfig.absolute())
    inside = Inside(own, where, clock, metrics, None if election is None else election.leads)
    server = _server(listen, hook_secrets, inside, metrics)
    with taking_part(election, inside.wake):
        _until_told(inside, server)


def _until_told(work: Tending | Inside, server: Server | None) -> None:
    """Everything turns until a signal says so, or until it ends by itself."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: work.end())
    work.start()
    if server is not None:
        server.start()
    work.wait()
    if server is not None:
        server.stop()
    work.stop()


def _each(
    repo: Sequence[str], state: Path, pace: tuple[int, int | None], driving: Driving
) -> dict[str, Settings]:
    addresses = named(repo)
    if len(addresses) > 1 and driving.project:
        raise UserError(
            "--project is for one repository; of several each one's name is its project", "WrongUse"
        )
    if len(addresses) > 1:
        for handler in logging.getLogger().handlers:
            handler.setFormatter(logging.Formatter(LOG.format("%(threadName)s ")))
    return apart(
        {
            name: driving.of(
                _settings(address, state, *pace), name if len(addresses) > 1 else DEFAULT_PROJECT
            )
            for name, address in addresses.items()
        }
    )


def _server(listen: str, secrets: Path | None, tending: Tending | Inside, metrics: Metrics) -> Server | None:
    """The server, its address taken; None when none is asked for."""
    if secrets is not None:
        _check_secrets(secrets, listen)
    if not listen:
        return None
    wake = {name: loop.wake for name, loop in tending.loops.items()}
    service = Service(wake, tending.alive, tending.ready, metrics.page, metrics.hooked, secrets)
    return Server(listen, service)


def _check_secrets(file: Path, listen: str) -> None:
    if not listen:
        raise UserError("--hook-secrets is for the server; give --listen too", "WrongUse")
    try:
        secrets_of(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        text = (
            f"--hook-secrets {file} cannot be read ({type(error).__name__}); write one secret a line into it"
        )
        raise UserError(text, "HookSecretMissing") from error


@app.command(epilog="Example: egs-reconciler once --repo ./fleet.git")
def once(
    repo: Repo,
    state: State = DEFAULT_STATE,
    project: Project = "",
    kubeconfigs: Kubeconfigs = None,
    namespace: Namespace = SYSTEM_NAMESPACE,
) -> None:
    """Look, plan, commit, act, until there is nothing left to do at this instant. Exit 1: somebody else leads."""
    driving = Driving(project, kubeconfigs, namespace)
    cycle, told = _settle(controller(driving.of(_settings(repo, state), DEFAULT_PROJECT)))
    if not cycle.leading:
        typer.echo("another controller leads; nothing was done", err=True)
        raise typer.Exit(1)
    typer.echo(f"events: {told}; the next instant that matters is {cycle.wake:%Y-%m-%dT%H:%M:%SZ}")


@app.command(epilog="Example: egs-reconciler adopt --repo ./fleet.git")
def adopt(
    repo: Repo,
    state: State = DEFAULT_STATE,
    project: Project = "",
    kubeconfigs: Kubeconfigs = None,
    namespace: Namespace = SYSTEM_NAMESPACE,
) -> None:
    """Take a repository over whose requests have no status yet: every request is filed now."""
    driving = Driving(project, kubeconfigs, namespace)
    cycle, _ = _settle(controller(driving.of(_settings(repo, state), DEFAULT_PROJECT), adopt=True))
    count = len(cycle.facts.requests) if cycle.facts else 0
    typer.echo(f"adopted {count} request{'' if count == 1 else 's'}")


def main() -> None:
    """The console script `egs-reconciler`: exit 1 when the answer is no, 2 for wrong use, 3 for what broke."""
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format=LOG.format(""))
    logging.getLogger("apscheduler").setLevel(logging.WARNING)  # it tells of every wake-up
    try:
        app()
    except EgsError as error:
        typer.echo(f"egs-reconciler: {error} ({error.reason})", err=True)
        sys.exit(2 if error.reason == "WrongUse" else 1 if isinstance(error, UserError) else 3)
