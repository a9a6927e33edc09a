"""Requests as rows of integers, so that planning need not read objects again.

Rows are cached by the identity of the (frozen) requests: for a snapshot that differs in one request, one is read. Only
the rows of the last snapshot are kept.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from scheduler.fairness.rank import rank_order
from scheduler.snapshot import PoolKey, Request, Snapshot

Ints = NDArray[np.int64]

_NUMBERS = (
    "nodes",
    "duration",
    "not_before",
    "movable",
    "may_displace",
    "priority",
    "boost",
    "move",
    "share",
    "service",
    "filed_at",
)
(NODES, DURATION, NOT_BEFORE, MOVABLE, MAY_DISPLACE) = range(5)
RANK = slice(5, 11)
SLICE, POOLS, PROMISED_POOL, PROMISED_START, FALLBACK = range(11, 16)
"""Columns. The last five are numbers of names, see `Names`; -1 is none."""
ELSEWHERE, NO_PROMISE = -1, -2
"""Instead of a pool's number: not a pool of the snapshot; no promise."""
WIDTH = 16


class _Numbers(dict[PoolKey, int]):
    """Numbers of pools; a pool outside the snapshot is ELSEWHERE."""

    def __missing__(self, key: PoolKey) -> int:
        return ELSEWHERE


class Names:
    """Numbers for the names in rows: slices, lists of pools, and fallbacks."""

    def __init__(self, pools: Sequence[PoolKey]) -> None:
        self.pools = _Numbers((key, number) for number, key in enumerate(pools))
        self.slices: dict[str, int] = {}
        self.lists: dict[tuple[PoolKey, ...], int] = {}
        self.members = array("q")  # of all lists, one after the other
        self.ends = array("q", [0])  # where each list ends; the first begins at 0
        self.fallbacks: list[Mapping[PoolKey, int]] = []

    def slice(self, request: Request) -> int:
        return self.slices.setdefault(request.slice, len(self.slices)) if request.slice else -1

    def list(self, request: Request) -> int:
        pools = request.pools
        number = self.lists.setdefault(pools, len(self.lists))
        if len(self.ends) <= number + 1:
            self.members.extend(map(self.pools.__getitem__, pools))
            self.ends.append(len(self.members))
        return number

    def promised_pool(self, request: Request) -> int:
        """The number of the pool where it has a promise."""
        return NO_PROMISE if request.promise is None else self.pools[request.promise.pool]

    def fallback(self, request: Request) -> int:
        if not request.fallback:
            return -1
        self.fallbacks.append(request.fallback)
        return len(self.fallbacks) - 1


@dataclass(frozen=True, slots=True)
class Rows:
    """Requests in rank order, and a row of numbers for each."""

    requests: Sequence[Request]
    keys: Sequence[str]
    table: Ints
    names: Names


@dataclass(frozen=True, slots=True)
class _Memory:
    """The rows of the last snapshot, by identity of the requests (which are kept alive, so that ids stay valid)."""

    names: Names
    requests: list[Request]
    ids: Ints
    order: Ints
    table: Ints


_lock = threading.Lock()
_memory: list[_Memory] = []


def rows_of(snapshot: Snapshot) -> Rows:
    """The waiting requests of `snapshot`."""
    keys, requests = list(snapshot.requests), list(snapshot.requests.values())
    with _lock:
        names, table = _table(tuple(snapshot.pools), requests)
    order = rank_order(table[:, RANK], [request.key for request in requests])
    places = order.tolist()
    return Rows([requests[i] for i in places], [keys[i] for i in places], table[order], names)


def forget_rows() -> None:
    with _lock:
        _memory.clear()


def _table(pools: tuple[PoolKey, ...], requests: list[Request]) -> tuple[Names, Ints]:
    ids = np.fromiter(map(id, requests), dtype=np.int64, count=len(requests))
    last = _memory[0] if _memory else None
    if last is None or tuple(last.names.pools) != pools or _outgrown(last.names, len(requests)):
        names = Names(pools)
        table = _read(names, requests)
    else:
        names = last.names
        table = _read_fresh(last, requests, ids)
    order = np.argsort(ids, kind="stable")
    _memory[:] = [_Memory(names, requests, ids[order], order, table)]
    return names, table


def _outgrown(names: Names, requests: int) -> bool:
    """Whether most of the cached names are no longer used."""
    return max(len(names.slices), len(names.lists), len(names.fallbacks)) > 2 * requests + 1000


def _read_fresh(last: _Memory, requests: list[Request], ids: Ints) -> Ints:
    """Read the rows of new requests, copy the others."""
    table = np.empty((len(requests), WIDTH), dtype=np.int64)
    if not last.ids.size:
        return _read(last.names, requests)
    places = np.minimum(last.ids.searchsorted(ids), last.ids.size - 1)
    known = last.ids[places] == ids
    table[known] = last.table[last.order[places[known]]]
    fresh = np.flatnonzero(~known)
    table[fresh] = _read(last.names, [requests[i] for i in fresh.tolist()])
    return table


def _read(names: Names, requests: Sequence[Request]) -> Ints:
    columns: list[Iterable[int]] = [map(attrgetter(name), requests) for name in _NUMBERS]
    columns += [map(names.slice, requests), map(names.list, requests)]
    columns += [map(names.promised_pool, requests), map(_promised_start, requests)]
    columns += [map(names.fallback, requests)]
    table = np.empty((len(requests), WIDTH), dtype=np.int64)
    for number, column in enumerate(columns):
        table[:, number] = np.fromiter(column, dtype=np.int64, count=len(requests))
    return table


def _promised_start(request: Request) -> int:
    return 0 if request.promise is None else request.promise.start
