"""The calendar as one caller may see it: nodes as rows, by cluster and pool, cut to a window of rows and time.

Nodes and times are those of `GET tables/nodes`. Of requests in other workspaces a caller sees that a node is taken and
until when, with no name and no number that would tell one such request from another.

Held by tests/portal/live/test_calendar_rows.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pydantic import Field

from portal.http.context import Wire, optional
from portal.identity.callers import Caller
from portal.identity.redaction import Redactor
from portal.live.calendar_bars import Bar, Kind, Row, bars_of, is_free, waits_for
from portal.live.live_changes import id_of
from portal.views.queues import line_of
from portal.views.table_rows import clusters_seen
from portal.views.view import View
from scheduler.calendars.elastic import existing
from scheduler.snapshot import FOREVER, Pool, PoolKey
from schemas.reading.units import seconds
from schemas.status.gpr_status import NodeState

MOST_ROWS = 200
"""Most nodes of one answer."""
_DIGITS = re.compile(r"(\d+)")
At = int
"""Seconds since 1970."""


class CalendarBar(Wire):
    """A time in which something has the node. Times are seconds since 1970."""

    kind: Kind = Field(description="What it is; a promise is a committed start, `planned` may still move.")
    begin: At = Field(description="From here on the node is prepared and not free.")
    start: At | None = optional("When its use starts; absent: at `begin`.")
    end: At | None = optional("When its use ends; absent: at `until`.")
    until: At | None = optional("When the node is free and clean again; absent: unknown.")
    request: str | None = optional("slice/name, a key of `requests`; absent: none, or not for this caller.")


class CalendarRow(Wire):
    """A node."""

    cluster: str
    pool: str
    node: str
    state: str
    message: str | None = optional("What is wrong with it.")
    bars: list[CalendarBar] = Field(description="By begin; those of requests do not overlap.")


class CalendarWaits(Wire):
    """What a planned request waits for on one of its nodes."""

    kind: Kind
    request: str | None = optional("slice/name; absent: none, or not for this caller.")
    until: At


class CalendarRequest(Wire):
    """A request that the caller may see."""

    gpr_id: str
    phase: str
    nodes: int
    priority: int
    rank: int | None = optional("Its place in the queue, from 1.")
    likely: tuple[At, At] | None = optional(
        "One in ten starts before the first, one in ten after the second."
    )
    waits_for: list[CalendarWaits] | None = optional("What has its nodes until it begins.")
    reason: str | None = optional("Why it is where it is: a stable identifier.")
    message: str | None = optional("The same for people.")


class CalendarPool(Wire):
    """A group of rows."""

    cluster: str
    pool: str
    gpu_shape: str
    gpus_per_node: int
    memory_per_gpu: int = Field(alias="memoryPerGPU", description="GB.")
    first: int = Field(description="Number of its first row among all that match, from 0.")
    rows: int = Field(description="How many of its nodes match.")
    free: int = Field(description="How many of those are free now.")
    idle: bool = Field(description="Whether nothing has any of those in the window.")
    reachable: bool = Field(description="Whether its cluster answers; otherwise its rows may be old.")


class CalendarData(Wire):
    """A window of the calendar."""

    id: str = Field(description="Names the commits, as the `id` of `GET live`.")
    now: At = Field(description="When the plan was made.")
    total: int = Field(description="How many nodes match.")
    first: int = Field(description="Number of the first row here.")
    pools: list[CalendarPool] = Field(description="All that match, in order of their rows.")
    rows: list[CalendarRow]
    requests: dict[str, CalendarRequest] = Field(description="Those of the rows, by slice/name.")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which nodes; empty: all."""

    cluster: str = ""
    pool: str = ""
    shape: str = ""
    slice: str = ""
    """Nodes with a bar of this workspace."""
    is_free: bool = False
    """Only nodes that are free now."""


@dataclass(frozen=True, slots=True)
class Window:
    """Which rows, and which time of them: [begin, end)."""

    begin: int
    end: int
    first: int = 0
    rows: int = MOST_ROWS


def rows_of(view: View) -> Sequence[Row]:
    """All nodes by cluster, pool and name as people count, with leased ones that left their pool; `view.once`."""
    bars = view.once_planned(bars_of)
    names = {key: set(existing(pool)) for key, pool in view.wanted.pools.items()}
    for lease in view.state.snapshot.leases.values():
        names.get(lease.pool, set()).update(lease.nodes)
    return [
        Row(key, node, bars.get((key[0], node), ()))
        for key, found in sorted(names.items())
        for node in sorted(found, key=_as_counted)
    ]


def _as_counted(name: str) -> list[tuple[int, str]]:
    """`h100-9` comes before `h100-10`."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in _DIGITS.split(name)]


def calendar(view: View, caller: Caller, wanted: Wanted, window: Window) -> CalendarData:
    """The window of the rows that match."""
    found = list(_matching(view, caller, wanted, window))
    shown = found[window.first : window.first + window.rows]
    return CalendarData(
        id=id_of(view),
        now=seconds(view.facts.at),
        total=len(found),
        first=window.first,
        pools=_pools(view, found, window),
        rows=[row_of(view, caller, row, window) for row in shown],
        requests=requests_in(view, caller, shown, window),
    )


def _matching(view: View, caller: Caller, wanted: Wanted, window: Window) -> Iterator[Row]:
    seen, now = clusters_seen(view, caller), seconds(view.facts.at)
    for row in view.once(rows_of):
        cluster, pool = row.pool
        if cluster not in seen or wanted.cluster not in ("", cluster) or wanted.pool not in ("", pool):
            continue
        if wanted.shape not in ("", view.wanted.pools[row.pool].gpu_shape):
            continue
        if wanted.is_free and not is_free(row.bars, now):
            continue
        if wanted.slice and not any(_is_of(bar, wanted.slice) for bar in _within(row.bars, window)):
            continue
        yield row


def _is_of(bar: Bar, slice_: str) -> bool:
    return bar.key.startswith(f"{slice_}/")


def _within(bars: Iterable[Bar], window: Window | None) -> Iterator[Bar]:
    return (bar for bar in bars if window is None or (bar.begin < window.end and bar.until > window.begin))


def _pools(view: View, rows: Sequence[Row], window: Window) -> list[CalendarPool]:
    """Groups of rows that follow each other."""
    by_pool: dict[PoolKey, list[Row]] = {}
    for row in rows:
        by_pool.setdefault(row.pool, []).append(row)
    found, first = [], 0
    for key, of in by_pool.items():
        found.append(_pool(view, view.wanted.pools[key], first, of, window))
        first += len(of)
    return found


def _pool(view: View, pool: Pool, first: int, rows: Sequence[Row], window: Window) -> CalendarPool:
    reach, now = view.facts.clusters.get(pool.key[0]), seconds(view.facts.at)
    return CalendarPool(
        cluster=pool.key[0],
        pool=pool.key[1],
        gpu_shape=pool.gpu_shape,
        gpus_per_node=pool.gpus_per_node,
        memory_per_gpu=pool.memory_per_gpu,
        first=first,
        rows=len(rows),
        free=sum(is_free(row.bars, now) for row in rows),
        idle=not any(True for row in rows for _ in _within(row.bars, window)),
        reachable=reach is None or reach.reachable,
    )


def row_of(view: View, caller: Caller, row: Row, window: Window | None = None) -> CalendarRow:
    """A node with its bars; without a window with all of them."""
    record = view.facts.nodes.get(row.key)
    message = None if record is None else record.message
    return CalendarRow(
        cluster=row.pool[0],
        pool=row.pool[1],
        node=row.node,
        state=str(NodeState.READY if record is None else record.state),
        message=None if message is None else Redactor(caller, view).text(message),
        bars=[_bar(caller, bar) for bar in _within(row.bars, window)],
    )


def _bar(caller: Caller, bar: Bar) -> CalendarBar:
    return CalendarBar(
        kind=bar.kind,
        begin=bar.begin,
        start=None if bar.start == bar.begin else bar.start,
        end=None if bar.end == bar.until else bar.end,
        until=None if bar.until >= FOREVER else bar.until,
        request=_seen(caller, bar),
    )


def _seen(caller: Caller, bar: Bar) -> str | None:
    return bar.key if bar.key and caller.may_see(bar.key.partition("/")[0]) else None


def requests_in(
    view: View, caller: Caller, rows: Iterable[Row], window: Window | None = None
) -> dict[str, CalendarRequest]:
    """What the caller may know of the requests in these rows."""
    bars = (bar for row in rows for bar in _within(row.bars, window))
    keys = dict.fromkeys(key for bar in bars if (key := _seen(caller, bar)) is not None)
    return {key: _request(view, caller, key) for key in keys}


def _request(view: View, caller: Caller, key: str) -> CalendarRequest:
    status, turn = view.facts.requests[key], view.once_planned(line_of).turns.get(key)
    likely, message = status.forecast, status.message
    before = view.once_planned(waits_for).get(key, ())
    return CalendarRequest(
        gpr_id=status.uid,
        phase=str(status.phase),
        nodes=status.accepted_spec.nodes,
        priority=status.accepted_spec.priority,
        rank=None if turn is None else turn.rank,
        likely=None if likely is None else (seconds(likely.p10), seconds(likely.p90)),
        waits_for=[CalendarWaits(kind=b.kind, request=_seen(caller, b), until=b.until) for b in before]
        or None,
        reason=status.reason,
        message=None if message is None else Redactor(caller, view).text(message),
    )
