"""The data of `egs get KIND` and `egs describe KIND NAME` on a repository."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from egs.commands import output
from egs.commands.backend import Where
from reconciler.cli.answers.validation import Status, checked
from reconciler.model.events import EventReason
from reconciler.queries import details, holds, job_rows, policy_problems, tables, workspace_requests
from reconciler.queries.arguments import moment
from reconciler.queries.event_search import EventRow, Filter, event_row, events, events_at
from reconciler.queries.past.state_then import state_then
from reconciler.queries.running import capacity_rows, endpoint_rows
from reconciler.queries.state import State, clock, read_state
from reconciler.queries.tables import Rows
from reconciler.sources.command_errors import NotFound, WrongUse
from reconciler.sources.open_source import opened
from reconciler.sources.source import Source
from reconciler.store.store_port import Store
from schemas.status.gpr_status import Phase

_NAMED = 5
"""Requests that a note names besides the table."""
Filters = Mapping[str, Any]


def rows(where: Where, kind: str, filters: Filters) -> Rows:
    """The rows of a kind, now or then. Raises WrongUse and NotFound for filters that fit nothing."""
    with opened(where.repo) as source:
        if kind in _OF_FILES:
            return _OF_FILES[kind](source, filters)
        seen = _seen(source, where)
        state = seen.state
        if kind == "requests":
            return workspace_requests.rows(source, state)
    check_known("slice", filters.get("slice"), state.wanted.slices)
    check_known("cluster", filters.get("cluster"), state.wanted.clusters)
    return _OF_STATE[kind](seen, filters)


@dataclass(frozen=True, slots=True)
class _Seen:
    """A state, and the instant for which waits and costs are computed."""

    state: State
    now: datetime
    status: tuple[Store, str] | None
    """Where its events are."""


def _seen(source: Source, where: Where) -> _Seen:
    """The present, or the state of then."""
    now = clock(where.now, source)
    if where.at is None:
        return _Seen(read_state(source, now), now, source.status())
    then = state_then(source, where.at, now)
    return _Seen(then.state, then.asked, then.tip)


def described(where: Where, kind: str, name: str) -> dict[str, Any]:
    """The data of `egs describe KIND NAME`. Raises NotFound and WrongUse."""
    with opened(where.repo) as source:
        seen = _seen(source, where)
        state = seen.state

        def latest(wanted: Filter) -> list[EventRow]:
            return [] if seen.status is None else events_at(seen.status, wanted, details.EVENTS)

        match kind:
            case "gpr":
                return details.gpr_data(state, name, latest(Filter(gpr=name)), seen.now)
            case "slice":
                return details.slice_data(state, name, latest(Filter(slice=name)))
            case "job":
                return job_rows.job_data(state, name, latest(Filter(slice=name.partition("/")[0])))
            case "endpoint":
                return endpoint_rows.endpoint_data(state, name, latest(Filter(slice=name.partition("/")[0])))
            case "cluster":
                return details.cluster_data(state, name, latest(Filter(cluster=name)))
            case "node":
                cluster, node = details.parts_of_node(name)
                return details.node_data(state, name, latest(Filter(cluster=cluster, node=node)))
        return workspace_requests.request_data(source, state, name)


def check_known(what: str, name: str | None, known: Iterable[str]) -> None:
    """Raises NotFound if a filter names nothing."""
    if name is not None and name not in set(known):
        raise NotFound(what, name, known)


def _gprs(seen: _Seen, filters: Filters) -> Rows:
    state = seen.state
    slice_, phase = filters["slice"], filters["phase"]
    if phase is not None and phase not in set(Phase):
        raise WrongUse(f"there is no phase {phase}; phases are {', '.join(Phase)}")
    held = [key for key in holds.held_new(state.committed) if slice_ in (None, key.partition("/")[0])]
    if held:
        more = ", …" if len(held) > _NAMED else ""
        output.note(f"held, so not listed: {', '.join(held[:_NAMED])}{more}; `egs why {held[0]}` says why")
    return tables.gprs(state, slice_, phase, seen.now)


def _nodes(seen: _Seen, filters: Filters) -> Rows:
    """Nodes without a pool come last."""
    state = seen.state
    cluster, pool = filters["cluster"], filters["pool"]
    check_known("pool", pool, {key[1] for key in state.wanted.pools if cluster in (None, key[0])})
    for name in tables.open_clusters(state, cluster):
        output.note(
            f"{name}: spec.admission.mode is none, so any pod that tolerates every taint or names a node may run "
            "on these nodes, even while a slice has them; use auto to prevent this"
        )
    unmanaged = tables.unmanaged_nodes(state, cluster) if pool is None else []
    return tables.nodes(state, cluster, pool) + unmanaged


def _capacity(seen: _Seen, filters: Filters) -> Rows:
    state = seen.state
    pools = [key for key in state.wanted.pools if filters["cluster"] in (None, key[0])]
    return capacity_rows.rows(state, capacity_rows.needs_in(state), pools, filters["hours"], filters["shape"])


def _events(source: Source, filters: Filters) -> Rows:
    if filters["reason"] is not None and filters["reason"] not in set(EventReason):
        raise WrongUse(str(NotFound("reason", filters["reason"], set(EventReason))))
    now = clock(None, source)
    wanted = Filter(
        **{name: filters[name] for name in ("slice", "gpr", "node", "cluster", "reason")},
        type=None if filters["type"] is None else str(filters["type"]),
        text=filters["grep"],
        since=moment("--since", filters["since"], now),
        until=moment("--until", filters["until"], now),
    )
    return [event_row(row) for row in events(source, wanted, filters["limit"])]


def _problems(source: Source, _: Filters) -> Rows:
    """Problems of documents, changes of main that do not count, and requests that violate a policy now."""
    now = clock(None, source)
    broken = policy_problems.problem_rows(source, now)
    documents = policy_problems.without_rejected(
        checked(source, (None, None), Status(source)).problems, broken
    )
    return [*holds.problem_rows(source, now), *broken, *map(asdict, documents)]


_OF_FILES: Mapping[str, Callable[[Source, Filters], Rows]] = {"events": _events, "problems": _problems}
_OF_STATE: Mapping[str, Callable[[_Seen, Filters], Rows]] = {
    "gprs": _gprs,
    "slices": lambda seen, _: tables.slices(seen.state, seen.now),
    "clusters": lambda seen, _: tables.clusters(seen.state),
    "nodes": _nodes,
    "capacity": _capacity,
    "jobs": lambda seen, filters: job_rows.rows(seen.state, filters["slice"]),
    "endpoints": lambda seen, filters: endpoint_rows.rows(seen.state, filters["slice"]),
    "queue": lambda seen, filters: tables.queue(replace(seen.state, now=seen.now), filters["slice"]),
}
