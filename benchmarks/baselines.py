"""Other schedulers in plain Python, for comparison: first come, EASY backfill, and conservative planning.

First come and EASY replay a trace on one pool and start requests; neither predicts starts. EASY (Lifka, JSSPP 1995)
starts what it can in queue order, reserves for the first request that does not fit, and lets later ones pass if they
do not touch that reservation. Both serve in the given order. `conservative` plans a
whole queue from nothing on a list of free nodes over time, as scheduling simulators commonly do.
"""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.philly import TraceRequest


@dataclass(frozen=True, slots=True)
class Served:
    """A request that ran on [start, end)."""

    asked: TraceRequest
    start: int
    end: int


@dataclass(slots=True)
class Cluster:
    """Free nodes, and running requests: (strict end, actual end, nodes), by actual end."""

    free: int
    running: list[tuple[int, int, int]]


Order = Callable[[TraceRequest], tuple[int, ...]]
Choose = Callable[[Cluster, list[TraceRequest], int], list[TraceRequest]]


def by_priority(asked: TraceRequest) -> tuple[int, ...]:
    """Higher priority first, then first submitted."""
    return (-asked.priority, asked.submit)


def by_arrival(asked: TraceRequest) -> tuple[int, ...]:
    """First submitted first, whatever the priority."""
    return (asked.submit,)


def replay(
    asked: Sequence[TraceRequest], nodes: int, choose: Choose, order: Order = by_priority
) -> list[Served]:
    """Serve all requests on `nodes`; `choose` selects those of the queue that start now."""
    coming = sorted(asked, key=lambda a: a.submit)
    cluster, queue, served, following = Cluster(nodes, []), list[TraceRequest](), list[Served](), 0
    keys: list[tuple[tuple[int, ...], str]] = []
    while following < len(coming) or queue:
        submit = coming[following].submit if following < len(coming) else None
        end = cluster.running[0][0] if cluster.running else None
        now = min(at for at in (submit, end) if at is not None)
        while cluster.running and cluster.running[0][0] <= now:
            cluster.free += heapq.heappop(cluster.running)[2]
        while following < len(coming) and coming[following].submit <= now:
            key = (order(coming[following]), coming[following].id)
            place = bisect.bisect(keys, key)
            keys.insert(place, key)
            queue.insert(place, coming[following])
            following += 1
        for one in choose(cluster, queue, now):
            place = bisect.bisect_left(keys, (order(one), one.id))
            del keys[place], queue[place]
            served.append(Served(one, now, now + one.actual))
    return served


def first_come(cluster: Cluster, queue: list[TraceRequest], now: int) -> list[TraceRequest]:
    """The head of the queue, as long as it fits; no request passes another."""
    started = []
    for one in queue:
        if one.nodes > cluster.free:
            break
        _start(cluster, one, now)
        started.append(one)
    return started


def easy(cluster: Cluster, queue: list[TraceRequest], now: int) -> list[TraceRequest]:
    """The head as long as it fits; then requests that do not delay the new head."""
    started = first_come(cluster, queue, now)
    if len(started) == len(queue) or not cluster.free:
        return started
    shadow, spare = _reserved(cluster, queue[len(started)].nodes)
    for one in queue[len(started) + 1 :]:
        if not cluster.free:
            break
        in_time = now + one.duration <= shadow
        if one.nodes <= cluster.free and (in_time or one.nodes <= spare):
            _start(cluster, one, now)
            spare -= 0 if in_time else one.nodes
            started.append(one)
    return started


def _start(cluster: Cluster, one: TraceRequest, now: int) -> None:
    cluster.free -= one.nodes
    heapq.heappush(cluster.running, (now + one.actual, now + one.duration, one.nodes))


def _reserved(cluster: Cluster, nodes: int) -> tuple[int, int]:
    """When the head starts if all run to their strict end, and the nodes that it leaves then."""
    free = cluster.free
    for _, end, count in sorted(cluster.running, key=lambda run: run[1]):
        free += count
        if free >= nodes:
            return end, free - nodes
    raise ValueError("it asks for more nodes than exist")


def conservative(asked: Sequence[TraceRequest], nodes: int, now: int) -> dict[str, int]:
    """The start of each request, planned from nothing: the earliest that those before it leave. O(requests x steps)."""
    at, free = [now], [nodes]
    starts = {}
    for one in sorted(asked, key=lambda a: (-a.priority, a.submit)):
        first = bisect.bisect_right(at, max(now, one.submit)) - 1
        begin = max(now, one.submit)
        i = first
        while i < len(at) and (at[i] < begin + one.duration):
            if free[i] < one.nodes:
                begin = at[i + 1]  # all nodes are free after the last step, so there is a next one
            i += 1
        starts[one.id] = begin
        _take(at, free, (begin, begin + one.duration), one.nodes)
    return starts


def _take(at: list[int], free: list[int], hold: tuple[int, int], nodes: int) -> None:
    places = []
    for instant in hold:
        place = bisect.bisect_left(at, instant)
        if place == len(at) or at[place] != instant:
            at.insert(place, instant)
            free.insert(place, free[place - 1])
        places.append(place)
    for i in range(places[0], places[1]):
        free[i] -= nodes
