"""`egs simulate`: which trace, under which policy, and how it is told. The replay itself is `scheduler.replay`."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from egs.commands import output
from egs.commands.output import Form
from reconciler.machine_code import MANY, make_ready
from reconciler.queries.arguments import lasting, time
from reconciler.queries.plans import pool_sizes
from reconciler.sources.command_errors import NotAllowed, WrongUse
from scheduler.fairness.rank import band
from scheduler.instance import InstanceError, parse
from scheduler.replay.answers import requests_csv
from scheduler.replay.figures import Figures, figures
from scheduler.replay.node_failures import Failing
from scheduler.replay.record import Run
from scheduler.replay.replay_rank import Bare, ByPolicy, Ordering
from scheduler.replay.simulation import Rules, Simulation
from scheduler.replay.trace import Trace, arriving_faster, from_rows, releasing_early
from schemas.documents.project import Project
from schemas.documents.scheduling import Scheduling
from schemas.reading.reader import read_document

_HEAD = (
    "BAND",
    "REQUESTS",
    "WAIT MEAN",
    "P50",
    "P90",
    "P99",
    "SLOWDOWN",
    "ERROR MEAN",
    "WITHIN 1H",
    "SLIPPED",
)
_BANDS = {0: "low", 1: "medium", 2: "high"}


@dataclass(frozen=True, slots=True)
class Drawn:
    """What differs from the trace, as typed."""

    arrivals: float = 1.0
    early_release: float = 0.0
    failures: str | None = None
    mended: str = "1d"
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Tried:
    """What is replayed, as typed; `by_policy` False: by priority and time of filing alone."""

    repo: str | None
    file: str | None
    pools: tuple[str, ...]
    history: bool
    since: str | None
    by_policy: bool
    policy: Path | None
    drawn: Drawn


def show_simulation(tried: Tried, form: Form, requests_out: Path | None) -> int:
    try:
        trace, own = _history(tried) if tried.history else (_rows(tried), None)
    except InstanceError as error:
        for bad in (error, *error.more):
            output.note(f"{tried.file}: {bad}")
        return WrongUse.exit_code
    policy, trace = _policy(tried, own), _varied(trace, tried.drawn)
    ordering = Bare() if policy is None else ByPolicy(policy, trace.pools, trace.weights)
    run = _replayed(trace, ordering, _rules(tried.drawn, policy))
    if requests_out is not None:
        _write(requests_out, requests_csv(run))
    _print(run, form)
    for record in run.records:
        if record.start is None:
            refusal = run.refusals.get(record.key)
            why = "it never had a start" if refusal is None else refusal.message
            output.note(f"{record.name or record.key}: {why}")
    return 1 if any(record.start is None for record in run.records) else 0


def _rows(tried: Tried) -> Trace:
    if tried.file is None:
        raise WrongUse("name the CSV of a trace, or give --history to replay the repository's own requests")
    if tried.since is not None:
        raise WrongUse("--since needs --history; remove from the CSV what is not to be replayed")
    sizes = dict(pool_sizes(tried.pools))
    try:
        text = sys.stdin.read() if tried.file == "-" else Path(tried.file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise WrongUse(f"{tried.file} cannot be read: {why}") from error
    return from_rows(parse(text), sizes)


def _history(tried: Tried) -> tuple[Trace, Scheduling]:
    from reconciler.accounts.past_requests import history
    from reconciler.queries.state import clock, read_state
    from reconciler.sources.open_source import opened

    if tried.file is not None or tried.pools:
        raise WrongUse("--history takes requests and pools from the repository; leave out FILE and --pool")
    since = time("--since", tried.since)
    with opened(tried.repo) as source:
        state = read_state(source, clock(None, source))
    if state.committed is None:
        raise NotAllowed("nothing has been recorded here: a folder without status has no history to replay")
    trace = history(state.committed, state.wanted, since)
    if not trace.arrivals:
        raise NotAllowed("no request was filed in that time; give an earlier --since, or leave it out")
    return trace, state.wanted.project.scheduling


def _varied(trace: Trace, drawn: Drawn) -> Trace:
    found = trace if drawn.arrivals == 1 else arriving_faster(trace, drawn.arrivals)
    return releasing_early(found, drawn.early_release, drawn.seed) if drawn.early_release else found


def _policy(tried: Tried, own: Scheduling | None) -> Scheduling | None:
    """What counts besides priority and filing time; None: nothing."""
    if tried.by_policy:
        return own or Scheduling() if tried.policy is None else _scheduling(tried.policy)
    if tried.policy is not None:
        raise WrongUse("--fairness off turns every queue policy off; give it or --policy")
    return None


def _scheduling(file: Path) -> Scheduling:
    try:
        found = read_document("project.yaml", file.read_bytes())
    except OSError as error:
        raise WrongUse(f"{file} cannot be read: {error.strerror}") from error
    if isinstance(found, Project):
        return found.spec.scheduling
    problems = found if isinstance(found, tuple) else ()
    said = "; ".join(f"line {problem.line}: {problem.message}; {problem.fix}" for problem in problems)
    raise WrongUse(f"{file} is not a Project: {said or 'it is of another kind'}")


def _rules(drawn: Drawn, policy: Scheduling | None) -> Rules:
    preemption = None if policy is None else policy.preemption
    mean, mended = lasting("--failures", drawn.failures), lasting("--mended", drawn.mended)
    if mean is None or mended is None:
        return Rules(preemption=preemption)
    failing = Failing(int(mean.total_seconds()), int(mended.total_seconds()), drawn.seed)
    return Rules(failing, preemption)


def _replayed(trace: Trace, ordering: Ordering, rules: Rules) -> Run:
    if len(trace.arrivals) >= MANY:
        make_ready()
    simulation, fed = Simulation(trace, ordering, rules), 0
    with _progress(len(trace.arrivals)) as show:
        for _ in simulation.instants():
            if simulation.fed != fed:
                fed = simulation.fed
                show(fed)
    return simulation.result()


@contextlib.contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None]]:
    """Shows how many of the requests are filed, on a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("Replaying"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda fed: bar.update(task, completed=fed)


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise WrongUse(f"{file} cannot be written: {error.strerror}") from error


def _print(run: Run, form: Form) -> None:
    if form is not Form.TABLE:
        output.data(figures(run).json(), form)
        return
    filed = [record for record in run.records if not record.was_running]
    bands = sorted({band(record.priority) for record in filed}, reverse=True)
    parts = [(_BANDS.get(b, "other"), [r for r in filed if band(r.priority) == b]) for b in bands]
    rows = [_row(name, figures(run, records)) for name, records in [*parts, ("all", filed)] if records]
    output.table(_HEAD, rows, "the trace has no requests")
    output.note(f"utilisation {figures(run).utilisation:.1%}, {run.plans} plans")


def _row(name: str, found: Figures) -> tuple[object, ...]:
    wait = found.wait
    spoken = [output.seconds(round(value)) for value in (wait.mean, wait.p50, wait.p90, wait.p99)]
    error = output.seconds(round(found.estimate.mean_absolute_error))
    return (
        name,
        found.requests,
        *spoken,
        f"{found.bounded_slowdown:.1f}",
        error,
        f"{found.estimate.within_1h:.0%}",
        found.slipped,
    )
