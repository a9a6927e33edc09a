"""The calendar of all nodes as bars: what serves whom, what is planned, what is away. Pure; nothing is hidden yet.

Times are whole seconds since 1970. Held by tests/reconciler/queries/test_calendar_bars.py:
  * bars of leases and plans of one node never overlap;
  * every lease, and every planned request whose nodes exist, is there with all its nodes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType
from typing import Literal

from reconciler.model.facts import NodeKey
from reconciler.model.pools import is_within
from reconciler.queries.state import State
from reconciler.queries.tables import SHOWN_WINDOWS, tentative_leases, unreserved_nodes
from scheduler.calendars.elastic import existing
from scheduler.snapshot import FOREVER, Lease, Plan, PoolKey, Snapshot, Window
from schemas.reading.units import seconds
from schemas.status.node_status import NodeRecord, NodeState

Kind = Literal["lease", "promise", "planned", "maintenance", "out", "unreserved"]
"""`promise`: its start is committed; `planned`: it is not. `out`: the node is not fit to serve.
`unreserved`: it does not exist then."""
_DIGITS = re.compile(r"(\d+)")
IN_SERVICE = (NodeState.READY, NodeState.SUSPECT)


@dataclass(frozen=True, slots=True)
class Bar:
    """A time of one node."""

    kind: Kind
    begin: int
    """From here on it is prepared, and not free."""
    start: int
    end: int
    until: int
    """To here it is cleaned. FOREVER: no end is known."""
    key: str = ""
    """slice/name; empty: no request."""


@dataclass(frozen=True, slots=True)
class Row:
    """A node of a pool."""

    pool: PoolKey
    node: str
    bars: tuple[Bar, ...]
    """By begin. Those of requests do not overlap."""

    @property
    def key(self) -> NodeKey:
        return self.pool[0], self.node


def rows_of(state: State, bars: Mapping[NodeKey, tuple[Bar, ...]]) -> list[Row]:
    """All nodes by cluster, pool and name as people count, with leased ones that left their pool."""
    names = {key: set(existing(pool)) for key, pool in state.wanted.pools.items()}
    for lease in state.snapshot.leases.values():
        names.get(lease.pool, set()).update(lease.nodes)
    return [
        Row(key, node, bars.get((key[0], node), ()))
        for key, found in sorted(names.items())
        for node in sorted(found, key=_as_counted)
    ]


def _as_counted(name: str) -> list[tuple[int, str]]:
    """`h100-9` comes before `h100-10`."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in _DIGITS.split(name)]


def bars_of(state: State, plan: Plan) -> Mapping[NodeKey, tuple[Bar, ...]]:
    """All bars by node, with the state's plan. Costs the choice of nodes for the whole plan."""
    requests = state.facts.requests
    planned = tentative_leases(state.snapshot, plan)
    promised = {
        lease.key
        for lease in planned
        if (status := requests.get(lease.key)) is not None and status.estimated_start_time is not None
    }
    away = unreserved_nodes(state)
    found = bars_in(state.snapshot, planned, promised, away)
    return by_node(found, out_of_service(state.facts.nodes), when_unreserved(away))


def by_node(*found: Iterable[tuple[NodeKey, Bar]]) -> Mapping[NodeKey, tuple[Bar, ...]]:
    """By begin; at one begin the one that ends first."""
    bars: dict[NodeKey, list[Bar]] = {}
    for node, bar in chain(*found):
        bars.setdefault(node, []).append(bar)
    return {
        node: tuple(sorted(of, key=lambda bar: (bar.begin, bar.until, bar.kind))) for node, of in bars.items()
    }


def bars_in(
    snapshot: Snapshot,
    planned: Iterable[Lease],
    promised: Collection[str],
    away: Mapping[NodeKey, tuple[Window, ...]] = MappingProxyType({}),
) -> Iterator[tuple[NodeKey, Bar]]:
    """Leases, the planned ones with the nodes that they would get now, and maintenance."""
    for lease in snapshot.leases.values():
        yield from _of_lease(lease, "lease")
    for lease in planned:
        yield from _of_lease(lease, "promise" if lease.key in promised else "planned")
    for pool in snapshot.pools.values():
        for node, windows in pool.windows.items():
            for window in windows[:SHOWN_WINDOWS]:
                # What begins with time itself is no maintenance: the node is out, or has a lease from elsewhere.
                is_away = is_within(window, away.get((pool.key[0], node), ()))
                if window.begin > 0 and window.end < FOREVER and not is_away:
                    bar = Bar("maintenance", window.begin, window.begin, window.end, window.end)
                    yield (pool.key[0], node), bar


def when_unreserved(away: Mapping[NodeKey, tuple[Window, ...]]) -> Iterator[tuple[NodeKey, Bar]]:
    """When nodes of reserved pools do not exist."""
    for node, windows in away.items():
        for window in windows:
            yield node, Bar("unreserved", window.begin, window.begin, window.end, window.end)


def out_of_service(nodes: Mapping[NodeKey, NodeRecord]) -> Iterator[tuple[NodeKey, Bar]]:
    """Nodes that are not fit to serve, each from when it was found out."""
    for node, record in nodes.items():
        if record.state not in IN_SERVICE:
            since = seconds(record.since)
            until = FOREVER if record.until is None else max(since, seconds(record.until))
            yield node, Bar("out", since, since, until, until)


def _of_lease(lease: Lease, kind: Kind) -> Iterator[tuple[NodeKey, Bar]]:
    bar = Bar(kind, lease.held_from, lease.start, lease.end, lease.held_until, lease.key)
    return (((lease.pool[0], node), bar) for node in lease.nodes)


def waits_in(found: Mapping[NodeKey, tuple[Bar, ...]]) -> Mapping[str, tuple[Bar, ...]]:
    """By planned request, the bars that end on one of its nodes just when its own begins."""
    waits: dict[str, dict[Bar, None]] = {}
    for bars in found.values():
        ends = {bar.until: bar for bar in bars}
        for bar in bars:
            before = ends.get(bar.begin)
            if bar.kind in ("promise", "planned") and before is not None and before.key != bar.key:
                waits.setdefault(bar.key, {})[before] = None
    return {key: tuple(bars) for key, bars in waits.items()}


def is_free(bars: tuple[Bar, ...], now: int) -> bool:
    """Whether nothing has the node at that instant."""
    return not any(bar.begin <= now < bar.until for bar in bars)
