"""Commands that ask and change nothing: plan, wait, why, insights, promises."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any

import typer

from egs.commands import options, output
from egs.commands.backend import Backend
from egs.commands.declare import READS, READS_THEN, declare
from egs.commands.errors import wrong_use
from egs.commands.options import of_repository, option
from egs.commands.output import Column, Form, Row, at, field, place

LONGEST_COUNTED_S = 7 * 86_400
"""The last bound under which `egs insights` counts waits (reconciler.accounts.insights.MARKS_S)."""


class PlanForm(StrEnum):
    """csv belongs to --instance."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"


class Fairness(StrEnum):
    ON = "on"
    OFF = "off"


def register(app: typer.Typer) -> None:
    declare(app, "plan", "Show the schedule.", plan, READS_THEN)
    declare(app, "wait", "Quote a start before filing.", wait, READS)
    declare(app, "why", "Say what a request waits for.", why, READS)
    declare(app, "insights", "Show demand, waits, use and how good estimates were.", insights, READS)
    declare(app, "promises", "Show which promised starts were kept.", promises, READS)


PLAN: tuple[Column, ...] = (
    ("RANK", field("rank")),
    ("REQUEST", output.key),
    ("PHASE", field("phase")),
    ("START", at("estimatedStartTime")),
    ("WAIT", lambda row: output.seconds(row["estimatedWaitSeconds"])),
    ("END", at("estimatedEndTime")),
    ("WHERE", place),
    ("NODES", field("nodes")),
    ("REASON", field("reason")),
)
CHANGES: tuple[Column, ...] = (
    ("REQUEST", output.key),
    ("CHANGE", field("change")),
    ("WAS", at("was")),
    ("NOW", at("now")),
    ("CAUSE", lambda row: f"{row['cause']} ({row['by']})" if row["cause"] and row["by"] else row["cause"]),
)
"""Of `egs plan --against`."""
MOVES_NOBODY = "the change moves no start"


def plan(  # noqa: PLR0913 - each is an option of the command
    backend: Backend,
    ref: Annotated[str | None, of_repository(metavar="REF", help="Plan this branch or commit.")] = None,
    against: Annotated[
        str | None,
        of_repository(metavar="REF", help="Compare with this commit: show which requests the change moves."),
    ] = None,
    output: Annotated[
        PlanForm | None, option("--output", "-o", help="Default: table; csv with --instance.")
    ] = None,
    instance: Annotated[
        str | None, of_repository(metavar="FILE", help="Plan the rows of a CSV instead of a repository.")
    ] = None,
    pool: options.Pools = None,
    fairness: Annotated[
        Fairness,
        of_repository(
            help="With --instance: whether past use of slices counts in the rank.", show_default=True
        ),
    ] = Fairness.ON,
) -> None:
    """Show the schedule: who holds which nodes, who starts when, who is refused and why.

    \b
    Examples:
      egs plan
      egs plan --repo ~/gpus.git --ref more-nodes --against main
      egs plan --instance rows.csv --pool a=100 --pool b=20 --now 0 -o csv

    With --instance, exit 1 when a row cannot be placed, 2 when a row is bad; --now is whole seconds.
    On a server: main as it is there, without the requests of slices that you may not see.
    """
    is_fair = fairness is Fairness.ON
    if instance is not None:
        if output is PlanForm.YAML or ref is not None or against is not None:
            raise wrong_use("--instance goes with --pool, --now, --fairness and -o csv|json|table only")
        raise typer.Exit(backend.instance(instance, pool or [], output or PlanForm.CSV, is_fair))
    if pool or output is PlanForm.CSV or not is_fair:
        raise wrong_use("--pool, --fairness and -o csv belong to --instance FILE")
    _show_plan(backend.plan(ref, against), Form(output or PlanForm.TABLE))


def _show_plan(found: Row, form: Form) -> None:
    if form is not Form.TABLE:
        output.data(found, form)
        return
    output.rows(found["requests"], form, PLAN, "no request waits or runs")
    for row in found["refused"]:
        fits = f"; would fit: {row['wouldFit']}" if row.get("wouldFit") else ""
        output.note(f"{output.key(row)} is not planned ({row['reason']}): {row['message']}{fits}")
    if "changes" in found:
        output.text("")
        output.rows(found["changes"], form, CHANGES, MOVES_NOBODY)


WAIT: tuple[Column, ...] = (
    ("CLUSTER", field("cluster")),
    ("POOL", field("pool")),
    ("SHAPE", field("gpuShape")),
    ("GPUS", field("gpusPerNode")),
    ("FREE NODES", field("freeNodes")),
    ("START", at("estimatedStartTime")),
    ("WAIT", lambda row: output.seconds(row["estimatedWaitSeconds"])),
    ("APPROVAL", lambda row: "needed" if row["needsApproval"] else None),
    ("PRICE/GPU/H", field("pricePerGpuHour")),
    ("REASON", field("reason")),
)


def wait(  # noqa: PLR0913 - each is an option of the command
    backend: Backend,
    slice_: Annotated[str, typer.Option("--slice", metavar="S", help="The slice that asks.")],
    nodes: Annotated[int, typer.Option(min=1, metavar="N", help="Whole GPU nodes.")],
    duration: Annotated[str, typer.Option(metavar="D", help="How long: 6h, 90m, 0d6h0m.")],
    gpus_per_node: Annotated[
        int, typer.Option("--gpus-per-node", min=1, metavar="G", help="GPUs each node has at least.")
    ] = 1,
    shape: options.Shapes = None,
    memory: options.Memory = None,
    cluster: options.Clusters = None,
    priority: Annotated[int, typer.Option(min=1, max=300, metavar="P", help="1 to 300.")] = 101,
    rdma: options.Rdma = False,
    not_before: options.NotBefore = None,
    prefer: options.Prefer = None,
    output: options.Output = Form.TABLE,
) -> None:
    """Quote when a request would start, in each pool it could use, without filing it.

    \b
    Example:
      egs wait --slice vision --nodes 2 --gpus-per-node 8 --duration 6h
      egs gpr create vision/train --nodes 2 --gpus-per-node 8 --duration 6h --shape H100-80GB

    With --prefer on a repository, stderr also names the pool that it would get. Exit 1 when there is no start
    anywhere; the sentence on stderr says why.
    """
    terms = {
        "nodes": nodes,
        "gpusPerNode": gpus_per_node,
        "gpuShape": shape or None,
        "memoryPerGpu": memory,
        "clusters": cluster or None,
        "duration": duration,
        "priority": priority,
        "notBefore": not_before,
        "prefer": prefer,
        "network.rdma": rdma or None,
    }
    rows, notes = backend.quotes(slice_, terms)
    _show_quotes(rows, notes, output)
    raise typer.Exit(0 if any(row["estimatedStartTime"] for row in rows) else 1)


def _show_quotes(rows: Sequence[Row], notes: Sequence[str], form: Form) -> None:
    output.rows(rows, form, WAIT, "")
    for row in rows:
        if likely := row.get("forecast"):
            p10, p50, p90 = (output.shown(output.time(likely[part])) for part in ("p10", "p50", "p90"))
            output.note(
                f"{place(row)}: it would likely start around {p50}, four times in five between {p10} and {p90}"
            )
    for sentence in notes:
        output.note(sentence)


def why(backend: Backend, request: options.Request, output: options.Output = Form.TABLE) -> None:
    """Say in sentences what a request waits for, and why its start moved.

    \b
    Example:
      egs why vision/llama-finetune
    """
    found = backend.why(request)
    if output is not Form.TABLE:
        _data(found, output)
        return
    for sentence in (*found["reasons"], *map(_alternative, found["alternatives"])):
        _text(sentence)


def _alternative(found: Row) -> str:
    """A change that would start a request earlier, in a sentence."""
    saved = output.seconds(found["savedSeconds"])
    earlier = "" if saved is None else f", {output.spoken(saved)} earlier,"
    anew = "" if found["keepsPlace"] else "; it would lose its place in the queue"
    start = f"it would start at {found['estimatedStartTime']}"
    return f"{_changed(found['field'], str(found['value']))} {start}{earlier} in {place(found)}{anew}."


def _changed(name: str, value: str) -> str:
    match name:
        case "nodes":
            return f"With {output.counted(int(value), 'node')}"
        case "duration":
            units = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
            parts = {units[unit]: int(count) for count, unit in re.findall(r"(\d+)([dhms])", value)}
            return f"For {output.spoken(timedelta(**parts))}"
        case "gpuShape":
            return f"On {value}"
    return f"In cluster {value}"


def insights(
    backend: Backend,
    days: Annotated[int, typer.Option(metavar="N", min=1, max=92, help="Days to show one by one.")] = 14,
    output: options.Output = Form.TABLE,
) -> None:
    """Show statistics of finished requests, by shape, slice, hour and day.

    Demand, waits, utilisation, how good estimates were, and why promises moved.

    \b
    Examples:
      egs insights
      egs insights --days 30 -o json
    """
    found = backend.insights(days)
    if output is not Form.TABLE:
        _data(found, output)
    elif not found["total"]["requests"]:
        _note("no request is over yet, so there is nothing to show; look again when some have ended")
    else:
        _show_insights(found)


_TALLY: tuple[Column, ...] = (
    ("REQUESTS", field("requests")),
    ("RAN", field("ran")),
    ("GPU-H ASKED", lambda row: round(row["askedGpuHours"], 1)),
    ("GPU-H USED", lambda row: round(row["usedGpuHours"], 1)),
    ("MEAN WAIT", lambda row: _spoken(row["meanWaitSeconds"])),
    ("P50", lambda row: _at_most(row, "p50WaitAtMostSeconds")),
    ("P90", lambda row: _at_most(row, "p90WaitAtMostSeconds")),
    ("ERROR", lambda row: _spoken(row["promise"]["meanAbsoluteErrorSeconds"])),
    ("IN 1H", lambda row: _share(row["promise"]["within1h"])),
    ("COVERED", lambda row: _share(row["forecast"]["covered"])),
)
_DAY: tuple[Column, ...] = (*_TALLY, ("UTILISATION", lambda row: _share(row["utilisation"])))


def _show_insights(found: Row) -> None:
    parts: dict[str, tuple[dict[str, Any], tuple[Column, ...]]] = {
        "SHAPE": ({**found.get("byShape", {}), "all": found["total"]}, _TALLY),
        "SLICE": (found.get("bySlice", {}), _TALLY),
        "HOUR (UTC)": (found.get("byHour", {}), _TALLY),
        "DAY (UTC)": (found.get("byDay", {}), _DAY),
    }
    for what, (tallies, columns) in parts.items():
        rows = [{"name": name, **tally} for name, tally in tallies.items()]
        output.rows(rows, Form.TABLE, ((what, field("name")), *columns), "")
        output.text("")
    slips = sorted(found.get("slips", {}).items(), key=lambda entry: (-entry[1], entry[0]))
    output.table(("CAUSE", "MOVES TO LATER"), slips, "no promise ever moved later")


def _at_most(row: Row, name: str) -> str | None:
    """An upper bound of the waits, or the largest one that is counted."""
    mark = row[name]
    if mark is None:
        return f"> {_spoken(LONGEST_COUNTED_S)}" if row["ran"] else None
    return f"<= {_spoken(mark)}"


def _spoken(wait_s: float | None) -> str | None:
    return None if wait_s is None else output.spoken(timedelta(seconds=round(wait_s)))


def _share(share: float | None) -> str | None:
    return None if share is None else f"{share:.0%}"


_MONTH: tuple[Column, ...] = (
    ("MONTH", field("month")),
    ("STARTS", field("starts")),
    ("KEPT", lambda row: _share(row["keptShare"])),
    ("SLIPPED", field("slipped")),
    ("WITHDRAWN", field("withdrawn")),
    ("MEDIAN ERROR", lambda row: _median(row)),
    ("FORECASTS", lambda row: row["forecast"]["starts"]),
    ("COVERED", lambda row: _share(row["forecast"]["covered"])),
    ("MEDIAN ERROR", lambda row: _median(row["forecast"])),
)
_RECENT: tuple[Column, ...] = (
    ("REQUEST", output.key),
    ("PROMISED", at("promised")),
    ("START", at("start")),
    ("LATE", lambda row: _spoken(row["lateSeconds"]) if row["cause"] else None),
    ("CAUSE", field("cause")),
)
_SHOWN_STARTS = 20


def promises(
    backend: Backend,
    months: Annotated[int, typer.Option(metavar="N", min=1, max=36, help="Months to show.")] = 12,
    output: options.Output = Form.TABLE,
) -> None:
    """Show what became of promised starts, by month: kept, or slipped and why; and how good forecasts were.

    \b
    Examples:
      egs promises
      egs promises --months 1 -o json

    A promise is the first start that a request is told. It is kept if the request starts by then, or up to a minute
    later.
    """
    found = backend.promises(months)
    if output is not Form.TABLE:
        _data(found, output)
    else:
        _show_promises(found)


def _show_promises(found: Row) -> None:
    months = [*found["months"], *([{**found["total"], "month": "all"}] if len(found["months"]) > 1 else [])]
    output.rows(
        months,
        Form.TABLE,
        _MONTH,
        "no promised start was settled yet; look again when some requests have begun",
    )
    waiting = found["open"]
    if waiting["promises"]:
        _note(
            f"{output.counted(waiting['promises'], 'promise')} still open, "
            f"{waiting['later']} of them later than promised"
        )
    causes = sorted(found["total"]["causes"].items(), key=lambda entry: (-entry[1], entry[0]))
    if causes:
        _text("")
        output.table(("CAUSE", "SLIPPED STARTS"), causes, "")
    if found["recent"]:
        _text("")
        output.rows(found["recent"][:_SHOWN_STARTS], Form.TABLE, _RECENT, "")


def _median(row: Row) -> str | None:
    mark = row["medianErrorAtMostSeconds"]
    return None if mark is None else f"<= {_spoken(mark) if mark else '0s'}"


# Inside a command, `output` is its option and not the module.
_data, _note, _text = output.data, output.note, output.text
