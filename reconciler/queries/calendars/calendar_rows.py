"""The calendar as one person may see it: nodes as rows, by cluster and pool, cut to a window of rows and time. Pure.

Nodes and times are those of `egs get nodes`. Of requests in other slices a person sees that a node is taken and until
when, with no name and no number that would tell one such request from another. Keys without a value are left out.

Held by tests/portal/live/test_calendar_rows.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reconciler.queries.calendars.calendar_bars import Bar, Row, is_free
from reconciler.queries.state import State
from reconciler.queries.tables import QueuePosition
from scheduler.snapshot import FOREVER, Pool, PoolKey
from schemas.reading.units import seconds
from schemas.status.node_status import NodeState

Data = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reader:
    """Whose calendar it is."""

    clusters: Collection[str]
    """Those that they see."""
    may_see: Callable[[str], bool] = lambda _: True
    """Whether they see a slice."""
    text: Callable[[str], str] = str
    """A sentence without names that they may not see."""


@dataclass(frozen=True, slots=True)
class Scene:
    """All that a calendar is made of."""

    state: State
    rows: Sequence[Row]
    turns: Mapping[str, QueuePosition]
    """Places of waiting requests."""
    waits: Mapping[str, tuple[Bar, ...]]
    """What planned requests wait for (`calendar_bars.waits_in`)."""
    reader: Reader


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which nodes; empty: all."""

    cluster: str = ""
    pool: str = ""
    shape: str = ""
    slice: str = ""
    """Nodes with a bar of this slice."""
    is_free: bool = False
    """Only nodes that are free now."""


@dataclass(frozen=True, slots=True)
class Window:
    """Which rows, and which time of them: [begin, end)."""

    begin: int
    end: int
    first: int = 0
    rows: int | None = None
    """None: all."""


def calendar(scene: Scene, id_: str, wanted: Wanted, window: Window) -> Data:
    """The window of the rows that match; `id_` names the commits."""
    found = list(_matching(scene, wanted, window))
    shown = found[window.first :][: window.rows]
    return {
        "id": id_,
        "now": seconds(scene.state.facts.at),
        "begin": window.begin,
        "total": len(found),
        "first": window.first,
        "pools": _pools(scene, found, window),
        "rows": [row_data(scene, row, window) for row in shown],
        "requests": requests_in(scene, shown, window),
    }


def _matching(scene: Scene, wanted: Wanted, window: Window) -> Iterator[Row]:
    seen, now = scene.reader.clusters, seconds(scene.state.facts.at)
    for row in scene.rows:
        cluster, pool = row.pool
        if cluster not in seen or wanted.cluster not in ("", cluster) or wanted.pool not in ("", pool):
            continue
        if wanted.shape not in ("", scene.state.wanted.pools[row.pool].gpu_shape):
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


def _pools(scene: Scene, rows: Sequence[Row], window: Window) -> list[Data]:
    """Groups of rows that follow each other."""
    by_pool: dict[PoolKey, list[Row]] = {}
    for row in rows:
        by_pool.setdefault(row.pool, []).append(row)
    found, first = [], 0
    for key, of in by_pool.items():
        found.append(_pool(scene.state, scene.state.wanted.pools[key], first, of, window))
        first += len(of)
    return found


def _pool(state: State, pool: Pool, first: int, rows: Sequence[Row], window: Window) -> Data:
    reach, now = state.facts.clusters.get(pool.key[0]), seconds(state.facts.at)
    return {
        "cluster": pool.key[0],
        "pool": pool.key[1],
        "gpuShape": pool.gpu_shape,
        "gpusPerNode": pool.gpus_per_node,
        "memoryPerGPU": pool.memory_per_gpu,
        "first": first,
        "rows": len(rows),
        "free": sum(is_free(row.bars, now) for row in rows),
        "idle": not any(True for row in rows for _ in _within(row.bars, window)),
        "reachable": reach is None or reach.reachable,
    }


def row_data(scene: Scene, row: Row, window: Window | None = None) -> Data:
    """A node with its bars; without a window with all of them."""
    record = scene.state.facts.nodes.get(row.key)
    message = None if record is None else record.message
    return _given(
        cluster=row.pool[0],
        pool=row.pool[1],
        node=row.node,
        state=str(NodeState.READY if record is None else record.state),
        message=None if message is None else scene.reader.text(message),
        bars=[_bar(scene.reader, bar) for bar in _within(row.bars, window)],
    )


def _given(**values: Any) -> Data:
    return {name: value for name, value in values.items() if value is not None}


def _bar(reader: Reader, bar: Bar) -> Data:
    return _given(
        kind=bar.kind,
        begin=bar.begin,
        start=None if bar.start == bar.begin else bar.start,
        end=None if bar.end == bar.until else bar.end,
        until=_ended(bar),
        request=_seen(reader, bar),
    )


def _ended(bar: Bar) -> int | None:
    return None if bar.until >= FOREVER else bar.until


def _seen(reader: Reader, bar: Bar) -> str | None:
    return bar.key if bar.key and reader.may_see(bar.key.partition("/")[0]) else None


def requests_in(scene: Scene, rows: Iterable[Row], window: Window | None = None) -> dict[str, Data]:
    """What the reader may know of the requests in these rows."""
    bars = (bar for row in rows for bar in _within(row.bars, window))
    keys = dict.fromkeys(key for bar in bars if (key := _seen(scene.reader, bar)) is not None)
    return {key: _request(scene, key) for key in keys}


def _request(scene: Scene, key: str) -> Data:
    status, turn = scene.state.facts.requests[key], scene.turns.get(key)
    likely, message, reader = status.forecast, status.message, scene.reader
    return _given(
        gprId=status.uid,
        phase=str(status.phase),
        nodes=status.accepted_spec.nodes,
        priority=status.accepted_spec.priority,
        rank=None if turn is None else turn.rank,
        likely=None if likely is None else (seconds(likely.p10), seconds(likely.p90)),
        waitsFor=[
            _given(kind=bar.kind, request=_seen(reader, bar), until=bar.until)
            for bar in scene.waits.get(key, ())
        ]
        or None,
        reason=status.reason,
        message=None if message is None else reader.text(message),
    )
