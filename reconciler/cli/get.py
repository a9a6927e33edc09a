"""`egs get …`: one function for each kind, from the repository to the answer. The tables are those of `egs.kinds`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from egs import kinds
from egs.listing import ListOptions, answer
from reconciler.cli import output
from reconciler.cli.answers.validation import checked
from reconciler.model.events import EventReason
from reconciler.queries import holds, policy_problems, tables, workload_rows
from reconciler.queries.arguments import moment
from reconciler.queries.event_search import Filter, event_row, events
from reconciler.queries.state import State, clock, read_state
from reconciler.queries.tables import Rows
from reconciler.sources.command_errors import NotFound, WrongUse
from reconciler.sources.source import opened
from schemas.status.gpr_status import Phase

_NAMED = 5
"""Requests that are named beside a table."""


def _state(repo: str | None, now: str | None) -> State:
    with opened(repo) as source:
        return read_state(source, clock(now, source))


def _check_slice(state: State, slice_: str | None) -> None:
    if slice_ is not None and slice_ not in state.wanted.slices:
        raise NotFound("slice", slice_, state.wanted.slices)


def get_gprs(
    repo: str | None, now: str | None, slice_: str | None, phase: str | None, asked: ListOptions
) -> None:
    """Requests."""
    if phase is not None and phase not in set(Phase):
        raise WrongUse(f"there is no phase {phase}; phases are {', '.join(Phase)}")

    def rows() -> Rows:
        state = _state(repo, now)
        _check_slice(state, slice_)
        held = [key for key in holds.held_new(state.committed) if slice_ in (None, key.partition("/")[0])]
        if held and not asked.is_watched:
            more = ", …" if len(held) > _NAMED else ""
            output.note(
                f"held, so not listed: {', '.join(held[:_NAMED])}{more}; `egs why {held[0]}` says why"
            )
        return tables.gprs(state, slice_, phase)

    answer(kinds.GPRS, rows, asked)


def get_slices(repo: str | None, now: str | None, asked: ListOptions) -> None:
    """Slices."""
    answer(kinds.SLICES, lambda: tables.slices(_state(repo, now)), asked)


def get_clusters(repo: str | None, now: str | None, asked: ListOptions) -> None:
    """Clusters; in the table one row for each pool."""
    answer(kinds.CLUSTERS, lambda: tables.clusters(_state(repo, now)), asked, kinds.by_pool)


def get_nodes(
    repo: str | None, now: str | None, cluster: str | None, pool: str | None, asked: ListOptions
) -> None:
    """Nodes; those of no pool at the end."""

    def rows() -> Rows:
        state = _state(repo, now)
        if cluster is not None and cluster not in state.wanted.clusters:
            raise NotFound("cluster", cluster, state.wanted.clusters)
        pools = {key[1] for key in state.wanted.pools if cluster in (None, key[0])}
        if pool is not None and pool not in pools:
            raise NotFound("pool", pool, pools)
        for name in () if asked.is_watched else tables.open_clusters(state, cluster):
            output.note(
                f"{name}: spec.admission.mode is none, so any pod of the cluster that tolerates every taint or names "
                "a node may land on these nodes, also while a slice has them; use auto to close them"
            )
        unmanaged = tables.unmanaged_nodes(state, cluster) if pool is None else []
        return tables.nodes(state, cluster, pool) + unmanaged

    answer(kinds.NODES, rows, asked)


def get_queue(repo: str | None, now: str | None, slice_: str | None, asked: ListOptions) -> None:
    """The queue."""
    answer(kinds.QUEUE, _of_slice(repo, now, slice_, tables.queue), asked)


def get_workloads(repo: str | None, now: str | None, slice_: str | None, asked: ListOptions) -> None:
    """What runs on requests' nodes."""
    answer(kinds.WORKLOADS, _of_slice(repo, now, slice_, workload_rows.rows), asked)


def _of_slice(
    repo: str | None, now: str | None, slice_: str | None, rows: Callable[[State, str | None], Rows]
) -> Callable[[], Rows]:
    def found() -> Rows:
        state = _state(repo, now)
        _check_slice(state, slice_)
        return rows(state, slice_)

    return found


def get_events(
    repo: str | None, wanted: Filter, span: tuple[str | None, str | None], limit: int, asked: ListOptions
) -> None:
    """Events, newest first; `span` are --since and --until as typed."""
    if wanted.reason is not None and wanted.reason not in set(EventReason):
        raise WrongUse(str(NotFound("reason", wanted.reason, set(EventReason))))

    def rows() -> Rows:
        with opened(repo) as source:
            now = clock(None, source)
            since, until = moment("--since", span[0], now), moment("--until", span[1], now)
            timed = replace(wanted, since=since, until=until)
            return [event_row(row) for row in events(source, timed, limit)]

    answer(kinds.EVENTS, rows, asked)


def get_problems(repo: str | None, asked: ListOptions) -> None:
    """What is wrong with the documents, what of main does not count, and which requests break a policy now."""
    from dataclasses import asdict

    def rows() -> Rows:
        with opened(repo) as source:
            now = clock(None, source)
            broken = policy_problems.problem_rows(source, now)
            documents = policy_problems.without_rejected(checked(source, None, None).problems, broken)
            return [*holds.problem_rows(source, now), *broken, *map(asdict, documents)]

    answer(kinds.PROBLEMS, rows, asked)
