"""`egs describe …`: everything that is known about one thing, as data and as a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from egs import listing
from reconciler.cli import output
from reconciler.cli.output import Form, wire
from reconciler.queries import holds, tables
from reconciler.queries.costs import cost_so_far
from reconciler.queries.event_search import EventRow, Filter, events
from reconciler.queries.schedule import schedule
from reconciler.queries.state import State, clock, read_state, split
from reconciler.queries.why import reasons
from reconciler.sources.command_errors import NotFound, WrongUse
from reconciler.sources.source import Source, opened
from scheduler.calendars.elastic import existing
from schemas.reading.units import instant
from schemas.rules.view import gpr_path
from schemas.status.gpr_status import WAITING, GPRStatus

EVENTS = 20
"""Number of latest events that a description shows."""


def describe_gpr(
    repo: str | None, now: str | None, key: str, form: Form, *, checks_alone: bool = False
) -> None:
    """A request: what it asks for, where it stands, its checks with their logs, its slips, its cost."""
    split(key)
    with opened(repo) as source:
        state = read_state(source, clock(now, source))
        content = gpr(source, state, key)
    if checks_alone:
        listing.checks(content, form)
    else:
        _answer(content, form)


def gpr(source: Source, state: State, key: str) -> dict[str, Any]:
    """The data of `egs describe gpr`."""
    return gpr_data(state, key, events(source, Filter(gpr=key), EVENTS))


def gpr_data(state: State, key: str, told: Sequence[EventRow], now: datetime | None = None) -> dict[str, Any]:
    """The same data from a state and the request's events; costs are as of `now` (None: the state's time)."""
    slice_, name = split(key)
    why = reasons(state, key)
    status = state.facts.requests.get(key)
    path = gpr_path(slice_, name)
    problems = [p for p in state.problems if p.file == path]
    held = holds.hold_of(state.committed, key)
    return {
        "slice": slice_,
        "name": name,
        "file": path if key in state.wanted.filed or held is not None else None,
        "why": why,
        **_standing(state, key, status),
        "cost": _cost(state, status, now or state.now),
        "status": None if status is None else status.model_dump(mode="json", by_alias=True),
        "held": None if held is None else holds.row(held),
        "problems": [
            {"rule": p.rule, "severity": p.severity, "message": p.message, "fix": p.fix} for p in problems
        ],
        "events": list(told),
    }


def _cost(state: State, status: GPRStatus | None, now: datetime) -> dict[str, Any] | None:
    """The cost so far; the status has none yet while the request runs."""
    cost = None if status is None else cost_so_far(state.wanted, status, now)
    return None if cost is None else cost.model_dump(mode="json", by_alias=True)


def _standing(state: State, key: str, status: GPRStatus | None) -> dict[str, Any]:
    """Rank, position and wait of a waiting request; they follow from the status and the clock."""
    names = ("rank", "position", "estimatedStartTime", "estimatedWaitSeconds")
    if status is None or status.phase not in WAITING:
        return dict.fromkeys(names)
    row = next(row for row in tables.queue(state) if f"{row['slice']}/{row['name']}" == key)
    return {name: row[name] for name in names}


def describe_slice(repo: str | None, now: str | None, name: str, form: Form) -> None:
    """A slice: its members and limits, its requests, what it used in each month."""
    with opened(repo) as source:
        state = read_state(source, clock(now, source))
        content = slice_data(state, name, events(source, Filter(slice=name), EVENTS))
    _answer(content, form)


def slice_data(state: State, name: str, told: Sequence[EventRow]) -> dict[str, Any]:
    """The data of `egs describe slice`. Raises NotFound."""
    spec = state.wanted.slices.get(name)
    if spec is None:
        raise NotFound("slice", name, state.wanted.slices)
    usage = state.facts.usage.get(name)
    row = _row(tables.slices(state), name)
    return {
        "name": name,
        "spec": spec.model_dump(mode="json", by_alias=True),
        **{key: row[key] for key in ("waiting", "holding", "gpusHeld")},
        "requests": tables.gprs(state, name),
        "usage": [] if usage is None else [m.model_dump(mode="json", by_alias=True) for m in usage.months],
        "events": list(told),
    }


def describe_cluster(repo: str | None, now: str | None, name: str, form: Form) -> None:
    """A cluster: its pools, how fresh its view is, and the schedule of its nodes."""
    with opened(repo) as source:
        state = read_state(source, clock(now, source))
        content = cluster_data(state, name, events(source, Filter(cluster=name), EVENTS))
    _answer(content, form)


def cluster_data(state: State, name: str, told: Sequence[EventRow]) -> dict[str, Any]:
    """The data of `egs describe cluster`. Raises NotFound."""
    if name not in state.wanted.clusters:
        raise NotFound("cluster", name, state.wanted.clusters)
    return {
        **_row(tables.clusters(state), name),
        "spec": state.wanted.clusters[name].model_dump(mode="json", by_alias=True, exclude={"pools"}),
        "schedule": _reservations(state, name),
        "nodesOut": [row for row in tables.nodes(state, name) if row["state"] != "Ready"],
        "events": list(told),
    }


def _reservations(state: State, cluster: str) -> list[dict[str, Any]]:
    """Which request has, or will have, how many nodes of each pool."""
    rows = schedule(state.facts.requests, state.snapshot, state.wanted).rows
    return [
        {
            "request": row.key,
            "phase": str(row.phase),
            "pool": row.pool[1],
            "count": state.facts.requests[row.key].accepted_spec.nodes,
            "nodes": None if row.nodes is None else list(row.nodes),
            "start": wire(row.start),
            "end": wire(row.end),
        }
        for row in sorted(rows, key=lambda row: (row.start is None, row.start, row.key))
        if row.pool is not None and row.pool[0] == cluster
    ]


def describe_node(repo: str | None, now: str | None, name: str, form: Form) -> None:
    """A node: its state and why, its GPUs as last reported, its lease, and its calendar."""
    cluster, node = parts_of_node(name)
    with opened(repo) as source:
        state = read_state(source, clock(now, source))
        content = node_data(state, name, events(source, Filter(cluster=cluster, node=node), EVENTS))
    _answer(content, form)


def parts_of_node(name: str) -> tuple[str, str]:
    """Cluster and name of `CLUSTER/NODE`. Raises WrongUse."""
    cluster, slash, node = name.partition("/")
    if not slash:
        raise WrongUse(f"{name} is not a node; write CLUSTER/NODE, for example east/h100-1")
    return cluster, node


def node_data(state: State, name: str, told: Sequence[EventRow]) -> dict[str, Any]:
    """The data of `egs describe node`. Raises NotFound and WrongUse."""
    key = parts_of_node(name)
    rows = tables.nodes(state) + tables.unmanaged_nodes(state)
    found = [row for row in rows if (row["cluster"], row["name"]) == key]
    if not found:
        raise NotFound(
            "node", name, (f"{pool[0]}/{n}" for pool, p in state.wanted.pools.items() for n in existing(p))
        )
    record, lease = state.facts.nodes.get(key), tables.held_nodes(state).get(key)
    return {
        **found[0],
        "heldUntil": None if lease is None else wire(instant(lease.held_until)),
        "gpus": [] if record is None else [g.model_dump(mode="json", by_alias=True) for g in record.gpus],
        "events": list(told),
    }


def _row(rows: tables.Rows, name: str) -> dict[str, Any]:
    return next(row for row in rows if row["name"] == name)


def _answer(content: dict[str, Any], form: Form) -> None:
    if form is Form.TABLE:
        output.text("\n".join(page(content)))
    else:
        output.data(content, form)


def page(content: Any, indent: str = "") -> Iterator[str]:
    """Data as text: a line per value, an indented block per object or list; empty values are left out."""
    for name, value in content.items():
        if value is None or value in ([], {}, ""):
            continue
        if isinstance(value, dict):
            yield f"{indent}{name}:"
            yield from page(value, f"{indent}  ")
        elif isinstance(value, list):
            yield f"{indent}{name}:"
            yield from _items(value, f"{indent}  ")
        else:
            yield from _line(f"{indent}{name}: ", value)


def _items(items: list[Any], indent: str) -> Iterator[str]:
    for item in items:
        if isinstance(item, dict):
            lines = list(page(item, f"{indent}  "))
            yield f"{indent}- {lines[0].lstrip()}" if lines else f"{indent}-"
            yield from lines[1:]
        else:
            yield from _line(f"{indent}- ", item)


def _line(head: str, value: Any) -> Iterator[str]:
    """One value; the lines of a log stay separate lines below their name."""
    first, *more = (str(value).lower() if isinstance(value, bool) else output.shown(value)).splitlines() or [
        ""
    ]
    yield f"{head}{first}"
    for line in more:
        yield f"{' ' * len(head)}{line}"
