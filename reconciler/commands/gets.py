"""`egs get …`: one function for each kind, from the repository to the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from reconciler.commands import holds, output, policies, tables
from reconciler.commands.errors import NotFound, WrongUse
from reconciler.commands.happenings import Filter, event_row, events
from reconciler.commands.output import Form, parsed
from reconciler.commands.source import opened
from reconciler.commands.state import State, clock, read_state
from reconciler.commands.tables import Rows
from reconciler.commands.typed import moment
from reconciler.commands.validation import checked
from reconciler.events import Told
from schemas.status import Phase

Cells = Callable[[dict[str, Any]], Sequence[Any]]
_NAMED = 5
"""Requests that are named beside a table."""


def _answer(rows: Rows, form: Form, head: Sequence[str], cells: Cells, empty: str) -> None:
    if form is Form.TABLE:
        output.table(head, [cells(row) for row in rows], empty)
    else:
        output.data(rows, form)


def _state(repo: str | None, now: str | None) -> State:
    with opened(repo) as source:
        return read_state(source, clock(now, source))


def _check_slice(state: State, slice_: str | None) -> None:
    if slice_ is not None and slice_ not in state.wanted.slices:
        raise NotFound("slice", slice_, state.wanted.slices)


def get_gprs(repo: str | None, now: str | None, slice_: str | None, phase: str | None, form: Form) -> None:
    """Requests."""
    if phase is not None and phase not in set(Phase):
        raise WrongUse(f"there is no phase {phase}; phases are {', '.join(Phase)}")
    state = _state(repo, now)
    _check_slice(state, slice_)
    held = [key for key in holds.held_new(state.committed) if slice_ in (None, key.partition("/")[0])]
    if held:
        more = ", …" if len(held) > _NAMED else ""
        output.note(f"held, so not listed: {', '.join(held[:_NAMED])}{more}; `egs why {held[0]}` says why")
    _answer(
        tables.gprs(state, slice_, phase),
        form,
        (
            "REQUEST",
            "PHASE",
            "PRIORITY",
            "NODES",
            "SHAPE",
            "DURATION",
            "START",
            "END",
            "WHERE",
            "REASON",
            "COST",
        ),
        lambda row: (
            f"{row['slice']}/{row['name']}",
            row["phase"],
            row["priority"],
            f"{row['nodes']} x {row['gpusPerNode']}",
            row["gpuShapes"] or "any",
            row["duration"],
            parsed(row["startTime"] or row["estimatedStartTime"]),
            parsed(row["endTime"] or row["estimatedEndTime"]),
            f"{row['cluster']}/{row['pool']}" if row["cluster"] else None,
            row["reason"],
            row["cost"],
        ),
        "no request",
    )


def get_slices(repo: str | None, now: str | None, form: Form) -> None:
    """Slices."""
    state = _state(repo, now)
    _answer(
        tables.slices(state),
        form,
        ("SLICE", "CLUSTERS", "QUOTA", "WAITING", "HOLDING", "GPUS HELD", "GPU HOURS", "COST"),
        lambda row: (
            row["name"],
            row["clusters"],
            "none" if row["quotaGpus"] is None else row["quotaGpus"],
            row["waiting"],
            row["holding"],
            row["gpusHeld"],
            row["gpuHours"],
            f"{row['cost']:g} {row['currency']}",
        ),
        "no slice",
    )


def get_clusters(repo: str | None, now: str | None, form: Form) -> None:
    """Clusters; in the table one row for each pool."""
    state = _state(repo, now)
    rows = tables.clusters(state)
    if form is not Form.TABLE:
        output.data(rows, form)
        return
    head = (
        "CLUSTER",
        "MODE",
        "ANSWERS",
        "SINCE",
        "STATUS OF",
        "POOL",
        "SHAPE",
        "NODES",
        "LEASED",
        "FREE",
        "OUT",
    )
    cells = [
        (
            row["name"],
            row["mode"],
            "unknown" if row["reachable"] is None else row["reachable"],
            parsed(row["since"]),
            parsed(row["statusTime"]),
            pool["name"],
            f"{pool['gpusPerNode']} x {pool['gpuShape']}",
            pool["nodes"],
            pool["leased"],
            pool["free"],
            pool["out"],
        )
        for row in rows
        for pool in row["pools"]
    ]
    output.table(head, cells, "no cluster")


def get_nodes(repo: str | None, now: str | None, cluster: str | None, pool: str | None, form: Form) -> None:
    """Nodes; those of no pool at the end."""
    state = _state(repo, now)
    if cluster is not None and cluster not in state.wanted.clusters:
        raise NotFound("cluster", cluster, state.wanted.clusters)
    pools = {key[1] for key in state.wanted.pools if cluster in (None, key[0])}
    if pool is not None and pool not in pools:
        raise NotFound("pool", pool, pools)
    unmanaged = tables.unmanaged_nodes(state, cluster) if pool is None else []
    _answer(
        tables.nodes(state, cluster, pool) + unmanaged,
        form,
        ("NODE", "POOL", "STATE", "REASON", "LEASE", "UNTIL", "NEXT"),
        lambda row: (
            f"{row['cluster']}/{row['name']}",
            row["pool"],
            row["state"],
            row["message"] if row["state"] == tables.UNMANAGED else row["reason"],
            row["lease"],
            _until(row),
            _next(row),
        ),
        "no node",
    )
    for name in tables.open_clusters(state, cluster):
        output.note(
            f"{name}: spec.admission.mode is none, so any pod of the cluster that tolerates every taint or names a "
            "node may land on these nodes, also while a slice has them; use auto to close them"
        )


def _until(row: dict[str, Any]) -> Any:
    ends = [entry["end"] for entry in row["schedule"] if entry["request"] == row["lease"] is not None]
    return parsed(ends[0]) if ends else None


def _next(row: dict[str, Any]) -> str | None:
    later = [
        entry for entry in row["schedule"] if entry["request"] is None or entry["request"] != row["lease"]
    ]
    if not later:
        return None
    entry = later[0]
    likely = " (likely)" if entry["tentative"] else ""
    return f"{entry['request'] or 'maintenance'}{likely} at {output.shown(parsed(entry['begin']))}"


def get_queue(repo: str | None, now: str | None, slice_: str | None, form: Form) -> None:
    """The queue."""
    state = _state(repo, now)
    _check_slice(state, slice_)
    _answer(
        tables.queue(state, slice_),
        form,
        (
            "RANK",
            "POSITION",
            "REQUEST",
            "PHASE",
            "PRIORITY",
            "NODES",
            "START",
            "WAIT",
            "WHERE",
            "MOVED",
            "REASON",
        ),
        lambda row: (
            row["rank"],
            row["position"],
            f"{row['slice']}/{row['name']}",
            row["phase"],
            row["priority"],
            row["nodes"],
            parsed(row["estimatedStartTime"]),
            output.seconds(row["estimatedWaitSeconds"]),
            f"{row['cluster']}/{row['pool']}" if row["cluster"] else None,
            row["delayedCount"] or None,
            row["reason"],
        ),
        "nobody waits",
    )


def get_events(
    repo: str | None, wanted: Filter, span: tuple[str | None, str | None], limit: int, form: Form
) -> None:
    """Events, newest first; `span` are --since and --until as typed."""
    if wanted.reason is not None and wanted.reason not in set(Told):
        raise WrongUse(str(NotFound("reason", wanted.reason, set(Told))))
    with opened(repo) as source:
        now = clock(None, source)
        since, until = moment("--since", span[0], now), moment("--until", span[1], now)
        timed = replace(wanted, since=since, until=until)
        rows: Rows = [event_row(row) for row in events(source, timed, limit)]
    _answer(
        rows,
        form,
        ("AT", "REASON", "TYPE", "ABOUT", "MESSAGE"),
        lambda row: (
            parsed(row["at"]),
            row["reason"],
            row["type"],
            row["request"] or (f"{row['cluster']}/{row['node']}" if row["node"] else row["cluster"]),
            row["message"],
        ),
        "no such event",
    )


def get_problems(repo: str | None, form: Form) -> None:
    """What is wrong with the documents, what of main does not count, and which requests break a policy now."""
    from dataclasses import asdict

    with opened(repo) as source:
        now = clock(None, source)
        broken = policies.problem_rows(source, now)
        known = {(row["file"], row["rule"]) for row in broken}
        rows: Rows = [
            *holds.problem_rows(source, now),
            *broken,
            *(asdict(p) for p in checked(source, None, None).problems if (p.file, p.rule) not in known),
        ]
    _answer(
        rows,
        form,
        ("WHERE", "SEVERITY", "RULE", "PROBLEM", "WHAT TO DO"),
        lambda row: (
            f"{row['file']}:{row['line']}:{row['column']}",
            row["severity"],
            row["rule"],
            row["message"],
            row["fix"],
        ),
        "nothing is wrong",
    )
