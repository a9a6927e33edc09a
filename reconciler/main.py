"""`egs-reconciler`: reads the settings once, puts the parts together, and starts the loops."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from reconciler.clock import Clock, SystemClock
from reconciler.clusters.kubernetes.names import SYSTEM_NAMESPACE
from reconciler.compose import controller
from reconciler.credentials import from_environment
from reconciler.cycle import Cycle
from reconciler.loop import Reconciler
from reconciler.model.facts import Facts
from reconciler.processes.applier_process import Inside, Where
from reconciler.processes.cluster_processes import app as residents
from reconciler.processes.election import candidate, taking_part
from reconciler.processes.http_server import Server, Service
from reconciler.processes.metrics import Metrics
from reconciler.processes.process_options import (
    DEFAULT_STATE,
    BelieveClock,
    Budget,
    Elect,
    ElectKubeconfig,
    Fleet,
    HistoryDays,
    HookSecrets,
    Kubeconfigs,
    Listen,
    MetricsFiles,
    Namespace,
    Poll,
    Project,
    Repo,
    Repos,
    Routes,
    State,
    grouped,
)
from reconciler.processes.repositories import Tending, apart, named
from reconciler.processes.webhooks import secrets_of
from reconciler.settings import DEFAULTS, Settings
from reconciler.store.git.remote_address import is_remote
from reconciler.telling.trial import app as trials
from reconciler.trust.adopted_main import Adoption, listed
from reconciler.trust.trust_options import ForgeOptions, TrustOptions, forge_of
from schemas.errors import EgsError, Fault, UserError
from schemas.rules.problems import quoted

log = logging.getLogger(__name__)

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Plan the queue of a repository and carry it out.",
)
app.add_typer(residents)
app.add_typer(trials)

DEFAULT_PROJECT = "default"
HOSTED_BUDGET = 2
"""Non-urgent pushes per minute to a forge; a local disk needs no limit."""
LOG = "%(asctime)s %(levelname)s {}%(name)s %(message)s"
"""The log format. With several repositories it has the thread, which is named after the repository."""
HISTORY_DAYS = DEFAULTS.history.days
MOST_CYCLES = 20
"""Most cycles of one `once`; each follows only if the previous one left something to do at once."""


@dataclass(frozen=True, slots=True)
class Given:
    state: Path
    trust: TrustOptions
    forge: ForgeOptions
    project: str = ""  # empty: not given
    kubeconfigs: Path | None = None
    namespace: str = SYSTEM_NAMESPACE
    poll: int = 30
    budget: int | None = None
    routes: Path | None = None
    history_days: int = HISTORY_DAYS
    metrics_files: Path | None = None

    def of(self, repo: str, name: str = DEFAULT_PROJECT) -> Settings:
        """Settings for that repository; `name` is the default project."""
        for option, folder, what in (
            ("--kubeconfigs", self.kubeconfigs, "cluster that is reached with one"),
            ("--routes", self.routes, "secret named in routes"),
            ("--metrics-files", self.metrics_files, "secret that spec.metrics of clusters names"),
        ):
            if folder is not None and not folder.is_dir():
                to_do = f"create it, with a file for each {what}"
                raise UserError(f"{option} {folder} is not a folder; {to_do}", "WrongUse")
        trust = self.trust.settings(repo)
        budget = HOSTED_BUDGET if self.budget is None and is_remote(repo) else self.budget
        return Settings(
            repo=repo,
            state=self.state.expanduser(),
            credentials=from_environment(os.environ),
            poll=timedelta(seconds=self.poll),
            pushes_per_minute=budget or None,
            project=self.project or name,
            kubeconfigs=self.kubeconfigs,
            namespace=self.namespace,
            trust=trust,
            forge=forge_of(self.forge, repo, trust.level),
            routes=self.routes,
            history=timedelta(days=self.history_days),
            metrics_files=self.metrics_files,
        )


def _one(fleet: Fleet, trust: TrustOptions, forge: ForgeOptions) -> Settings:
    given = Given(fleet.state, trust, forge, fleet.project, fleet.kubeconfigs, fleet.namespace)
    return replace(given, routes=fleet.routes, metrics_files=fleet.metrics_files).of(fleet.repo)


def settle(reconciler: Reconciler, clock: Clock) -> tuple[Cycle, int]:
    """Runs the cycles that this time needs; returns the last one, and the number of all events.

    Raises Fault if the repository does not answer, or this machine's clock cannot be trusted.
    """
    told = 0
    for _ in range(MOST_CYCLES):
        cycle = reconciler.cycle(clock.now())
        told += len(cycle.events)
        if not cycle.reachable:
            raise Fault(
                "the repository does not answer; check its address, the network and your permissions",
                "RemoteUnreachable",
            )
        if cycle.doubt:
            raise Fault(cycle.doubt, "ClockDoubted")
        if (not cycle.leading or cycle.wake > clock.now()) and not reconciler.has_sent():
            break
    return cycle, told


@app.command(
    epilog="Example: egs-reconciler run --repo https://forge.example.com/fleet.git --verify signature --trust trust"
)
@grouped
def run(  # noqa: PLR0913 - one per option
    repo: Repos,
    trust: TrustOptions,
    forge: ForgeOptions,
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
    routes: Routes = None,
    history_days: HistoryDays = HISTORY_DAYS,
    metrics_files: MetricsFiles = None,
) -> None:
    """Plan and act until SIGTERM or Ctrl-C, for one repository or several."""
    election = candidate(elect, elect_kubeconfig)
    given = Given(state, trust, forge, project, kubeconfigs, namespace, poll, pushes_per_minute, routes)
    given = replace(given, history_days=history_days, metrics_files=metrics_files)
    clock = SystemClock()
    metrics = Metrics(clock)
    tending = Tending(_each(repo, given), clock, metrics, None if election is None else election.leads)
    server = _server(listen, hook_secrets, tending, metrics)
    with taking_part(election, tending.wake):
        _until_told(tending, server)


@app.command(
    epilog="Example: egs-reconciler apply --cluster east --repo https://forge.example.com/fleet.git --verify none"
)
@grouped
def apply(  # noqa: PLR0913 - one per option
    cluster: Annotated[
        str,
        typer.Option(
            "--cluster", envvar="EGS_CLUSTER", help="Name of the Cluster document.", show_default=False
        ),
    ],
    repo: Repo,
    trust: TrustOptions,
    state: State = DEFAULT_STATE,
    poll: Poll = 15,
    report_every: Annotated[
        int,
        typer.Option("--report-every", min=10, max=3600, help="Seconds between two reports without changes."),
    ] = 300,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            "--kubeconfig",
            help="Kubeconfig of the cluster. Default: the cluster this runs in.",
            show_default=False,
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
    """Inside a cluster with access.pull: carry out what is committed, and report, until SIGTERM or Ctrl-C."""
    election = candidate(elect, elect_kubeconfig)
    given = Given(state, trust, ForgeOptions(), project, None, namespace, poll, pushes_per_minute)
    own = replace(given.of(repo), report_every=timedelta(seconds=report_every))
    clock = SystemClock()
    metrics = Metrics(clock)
    where = Where(cluster, None if kubeconfig is None else kubeconfig.absolute())
    inside = Inside(own, where, clock, metrics, None if election is None else election.leads)
    server = _server(listen, hook_secrets, inside, metrics)
    with taking_part(election, inside.wake):
        _until_told(inside, server)


def _until_told(work: Tending | Inside, server: Server | None) -> None:
    """Runs until a signal, or until it ends by itself."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: work.end())
    work.start()
    if server is not None:
        server.start()
    work.wait()
    if not work.stop():
        _leave()
    if server is not None:
        server.stop()


def _leave() -> None:
    """Exits during a cycle. The loop's threads would otherwise keep the process running until it is finished."""
    log.warning("stopped during a cycle; uncommitted decisions are made again at the next start")
    logging.shutdown()
    os._exit(0)


def _each(repo: Sequence[str], given: Given) -> dict[str, Settings]:
    addresses = named(repo)
    if len(addresses) > 1 and (given.project or given.forge.forge_repository):
        raise UserError(
            "--project and --forge-repository are for a single repository; with several, each one's name is its "
            "project, and its address has its name on the forge",
            "WrongUse",
        )
    if len(addresses) > 1:
        for handler in logging.getLogger().handlers:
            handler.setFormatter(logging.Formatter(LOG.format("%(threadName)s ")))
    alone = len(addresses) == 1
    return apart(
        {name: given.of(address, DEFAULT_PROJECT if alone else name) for name, address in addresses.items()}
    )


def _server(listen: str, secrets: Path | None, tending: Tending | Inside, metrics: Metrics) -> Server | None:
    """The server, with its port bound; None if not requested."""
    if secrets is not None:
        _check_secrets(secrets, listen)
    if not listen:
        return None
    service = Service(tending.wakers(), tending.alive, tending.ready, metrics.page, metrics.hooked, secrets)
    return Server(listen, service)


def _check_secrets(file: Path, listen: str) -> None:
    if not listen:
        raise UserError("--hook-secrets needs the server; also give --listen", "WrongUse")
    try:
        secrets_of(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        text = f"--hook-secrets {file} cannot be read ({type(error).__name__}); write one secret per line into it"
        raise UserError(text, "HookSecretMissing") from error


@app.command(epilog="Example: egs-reconciler once --repo ./fleet.git")
@grouped
def once(fleet: Fleet, trust: TrustOptions, forge: ForgeOptions) -> None:
    """Look, plan, commit, act, until nothing is left to do now. Exit 1: another controller leads."""
    clock = SystemClock()
    cycle, told = settle(controller(_one(fleet, trust, forge), clock=clock), clock)
    if not cycle.leading:
        typer.echo("another controller leads; nothing was done", err=True)
        raise typer.Exit(1)
    typer.echo(f"events: {told}; the next instant that matters is {cycle.wake:%Y-%m-%dT%H:%M:%SZ}")


@app.command(epilog="Example: egs-reconciler adopt --repo ./fleet.git")
@grouped
def adopt(
    fleet: Fleet, trust: TrustOptions, forge: ForgeOptions, believe_clock: BelieveClock = False
) -> None:
    """Adopt a repository as it is: a new one whose requests have no status, or one whose main was rewritten."""
    clock, settings = SystemClock(), replace(_one(fleet, trust, forge), believe_clock=believe_clock)
    reconciler = controller(settings, adopt=True, clock=clock)
    cycle, _ = settle(reconciler, clock)
    for line in _taken(cycle.facts, reconciler.adoption):
        typer.echo(line)


def _taken(facts: Facts | None, adoption: Adoption | None) -> Iterator[str]:
    """What the operator should know after adopting a repository."""
    count = 0 if facts is None else len(facts.requests)
    yield f"adopted {count} request{'' if count == 1 else 's'}"
    if adoption is not None and adoption.changes is None:
        yield f"{adoption.instead_of[:12]}, which counted before, no longer exists to compare with: review all of main"
    elif adoption is not None and adoption.changes:
        yield f"main at {adoption.main[:12]} counts instead of {adoption.instead_of[:12]}; this brings into force:"
        yield from (f"  {line}" for line in listed(adoption.changes))
    held = () if facts is None or facts.trust is None else facts.trust.held
    if held:
        yield "still held:"
        yield from (f"  {line}" for line in listed([f"{quoted(c.path)} ({c.rule})" for c in held]))


def main() -> None:
    """The console script `egs-reconciler`: exit 1 for a refusal, 2 for wrong use, 3 for a failure."""
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format=LOG.format(""))
    for talkative in ("apscheduler", "httpx"):  # they log every wake-up and every call
        logging.getLogger(talkative).setLevel(logging.WARNING)
    try:
        app()
    except EgsError as error:
        typer.echo(f"egs-reconciler: {error} ({error.reason})", err=True)
        sys.exit(2 if error.reason == "WrongUse" else 1 if isinstance(error, UserError) else 3)
