"""Replays a trace: at every arrival, end and failure the real planner plans again with the standing promises.

Promises that are due become leases, and leases end when their requests give them back, at their strict end at the
latest. Nothing happens in between, so a year costs only its events.

What always holds:
  * a node serves at most one request at any instant, and so does a slice;
  * with strict durations and no later request of higher rank, every start is the first estimate;
  * additional plans at instants without events change nothing.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum

from scheduler.causes.changes import node_key
from scheduler.choices.preemption import preempted
from scheduler.kernel.library import load
from scheduler.plan import plan
from scheduler.replay.eviction import Evicted, terms
from scheduler.replay.node_failures import Failing, Failures
from scheduler.replay.observer import Moment, Unwatched, Watcher
from scheduler.replay.queue import Planned, Queue, Since, Waiting
from scheduler.replay.record import Records, Run
from scheduler.replay.replay_fleet import Fleet
from scheduler.replay.replay_rank import Bare, Ordering
from scheduler.replay.trace import Trace
from scheduler.snapshot import FOREVER, Change, ChangeKind, Lease, Plan, PoolKey, Refusal, Request, Snapshot
from schemas.documents.scheduling import Preemption
from schemas.status.gpr_status import Cause

TRIAL_WORK = 200_000
"""Most requests planned again at one instant to prove causes: as much as the controller does."""
FEWEST_TRIALS = 8
COMPILED_FROM = 1000
"""Arrivals from which a queue kept as arrays pays off."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules outside of the trace: node failures, preemption, and the work spent on proving causes."""

    failing: Failing | None = None
    preemption: Preemption | None = None
    trial_work: int = TRIAL_WORK
    compiled_from: int = COMPILED_FROM


class _Due(IntEnum):
    """Events of leases and nodes, in their order at one instant."""

    END = 0  # the request gives its nodes back, or its time is over
    LEAVE = 1  # it was evicted, with time left
    CLEAN = 2  # the nodes can serve others
    MEND = 3  # a node is back


def simulate(
    trace: Trace, ordering: Ordering | None = None, rules: Rules | None = None, watcher: Watcher | None = None
) -> Run:
    """The whole trace, from its first arrival until everything that can run has run."""
    simulation = Simulation(trace, ordering, rules, watcher)
    for _ in simulation.instants():
        pass
    return simulation.result()


class Simulation:
    """One replay. The first `fed` arrivals of the trace are filed; `now` is the current time."""

    def __init__(
        self,
        trace: Trace,
        ordering: Ordering | None = None,
        rules: Rules | None = None,
        watcher: Watcher | None = None,
    ) -> None:
        self.now, self.fed, self.plans = trace.begin, 0, 0
        self._trace, self._rules = trace, rules or Rules()
        self._ordering, self._watcher = ordering or Bare(), watcher or Unwatched()
        self._arrivals = sorted(trace.arrivals, key=lambda a: (a.request.filed_at, a.request.key))
        self._fleet, self._queue = Fleet(trace.pools, trace.running), queue_for(trace, self._rules)
        self._failures = Failures(trace.pools, self._rules.failing, trace.begin)
        self._records, self._since = Records(), Since(trace.begin)
        self._events: list[tuple[int, _Due, str, int]] = []
        self._mending: dict[str, tuple[PoolKey, str]] = {}
        self._running: dict[str, tuple[Request, int]] = {}  # requests with nodes, and the number of that hold
        self._left = {arrival.request.key: arrival.actual for arrival in trace.arrivals} | dict(trace.actual)
        self._holds = 0
        self._evicted = Evicted(
            (arrival.request.key for arrival in trace.arrivals if arrival.preemptible),
            1 if self._rules.preemption is None else self._rules.preemption.per_slice_and_day,
        )
        self._stale = False  # something happened since the last plan, or that plan is not settled
        self._roomier = False  # and it may have freed nodes
        self._refusals: dict[str, Refusal] = {}
        for lease in trace.running.values():
            self._records.ran(lease, trace.names.get(lease.key, lease.key))
            self._hold(_as_request(lease), lease)

    def instants(self) -> Iterator[int]:
        """Advance from event to event; yields each instant when it is done."""
        while (at := self._next()) is not None:
            self.now = at
            self._happen()
            while self.fed < len(self._arrivals) and self._arrivals[self.fed].request.filed_at <= at:
                self._arrive()
                self._plan()  # each arrival by itself, so that its effects are its own
            if self._stale and self._queue.requests:
                self._plan()
            self._begin()
            yield at

    def result(self) -> Run:
        """The records so far."""
        found = self._records.all()
        return Run(
            begin=self._trace.begin,
            end=max((record.end for record in found.values() if record.end is not None), default=self.now),
            nodes=sum(len(pool.nodes) for pool in self._trace.pools.values()),
            records=tuple(found[key] for key in self._trace.order or sorted(found) if key in found),
            refusals=dict(self._refusals),
            plans=self.plans,
        )

    def _next(self) -> int | None:
        arrival = self._arrivals[self.fed].request.filed_at if self.fed < len(self._arrivals) else FOREVER
        event = self._events[0][0] if self._events else FOREVER
        soonest = min(arrival, event, self._queue.next_begin())
        # Nodes fail only while some request can be affected, or no replay would ever end.
        if self._busy:
            soonest = min(soonest, self._failures.next_at)
        elif not self._queue.requests:
            return None
        return None if soonest == FOREVER else max(self.now, soonest)

    @property
    def _busy(self) -> bool:
        arriving = self.fed < len(self._arrivals)
        return arriving or bool(self._running) or self._queue.next_begin() < FOREVER

    def _happen(self) -> None:
        while self._events and self._events[0][0] <= self.now:
            _, due, key, number = heapq.heappop(self._events)
            if due is _Due.MEND:
                self._mend(key)
            elif due is _Due.CLEAN:
                self._fleet.give_back(key)
            elif key in self._running and self._running[key][1] == number:
                self._end(key) if due is _Due.END else self._come_back(key)
        while self._failures.next_at <= self.now:
            struck = self._failures.strike()
            if struck is not None and self._busy:
                self._fail(*struck)

    def _arrive(self) -> None:
        arrival = self._arrivals[self.fed]
        request = self._ordering.filed(arrival.request, self._world())
        self.fed += 1
        self._records.filed(request, arrival.name)
        self._file(request, Cause.HIGHER_RANK_ARRIVED)

    def _world(self) -> Snapshot:
        return Snapshot(self.now, self._fleet.pools, self._fleet.leases, self._queue.requests)

    def _file(self, request: Request, cause: Cause) -> None:
        self._queue.file(request)
        self._since.changes.append(Change(ChangeKind.REQUEST, request.key, cause, request.key))
        self._stale = True

    def _plan(self) -> None:
        for request in self._ordering.aged(self.now, self._queue.requests):
            self._queue.change(request)
        planned = self._queue.plan(self.now, self._fleet, self._engine, self._roomier)
        self.plans += 1
        moment = Moment(self.now, planned.made)
        for key, start in planned.first:
            if self._records.estimated(key, start):
                self._watcher.estimated(moment, self._queue.requests[key], start)
        self._note_slips(planned)
        self._refusals = dict(planned.refusals)
        self._since = Since(self.now)
        self._stale = self._roomier = not planned.settled

    def _engine(self, world: Snapshot) -> tuple[Snapshot, Plan]:
        """The controller's plan, then with its preemptions."""
        planned = plan(world)
        policy = self._rules.preemption
        if policy is None:
            return world, planned
        running = {key: request for key, (request, _) in self._running.items()}
        may_go = self._evicted.may_go(self.now, running, world.leases)
        found = preempted(world, planned, may_go, terms(policy))
        for one in found.preemptions:
            for key in one.victims:
                self._evicted.sent(self.now, running[key])
                self._fleet.leases[key] = found.snapshot.leases[key]
                heapq.heappush(self._events, (one.at, _Due.LEAVE, key, self._running[key][1]))
        return found.snapshot, found.plan

    def _note_slips(self, planned: Planned) -> None:
        if not planned.slipped:
            return
        trials = max(FEWEST_TRIALS, self._rules.trial_work // max(1, len(self._queue.requests)))
        for why in self._queue.causes(self._since, planned, trials):
            causes = tuple(str(change.cause) for change in why.causes)
            self._records.slipped(why.keys, causes, proven=why.proven and bool(causes))
        for request in self._ordering.displaced(planned.gave_way, self._queue.requests):
            self._queue.change(request)

    def _begin(self) -> None:
        for key in self._queue.due(self.now):
            request = self._queue.requests[key]
            lease = self._fleet.take(request, self.now)
            if lease is None:
                self._stale = True  # planned again at the next event
            else:
                self._queue.leave(key)
                self._records.started(lease)
                self._ordering.started(request, lease)
                self._hold(request, lease)
                self._watcher.started(self.now, request, lease)

    def _hold(self, request: Request, lease: Lease) -> None:
        self._holds += 1
        self._running[request.key] = (request, self._holds)
        end = min(lease.end, lease.start + self._left[request.key])
        heapq.heappush(self._events, (end, _Due.END, request.key, self._holds))

    def _end(self, key: str) -> None:
        if self.now < self._fleet.leases[key].end:
            self._stale = self._roomier = True  # it frees nodes earlier than known
        self._stop(key)

    def _stop(self, key: str) -> tuple[Request, Lease]:
        """It gives its nodes back now, and its use counts; they can serve others when they are clean."""
        request, number = self._running.pop(key)
        lease = self._fleet.stop(key, self.now, f"{key} {number}")
        self._evicted.gone(key)
        self._records.ended(key, lease.end, lease.end - lease.start)
        self._ordering.ended(lease)
        self._watcher.ended(self.now, request, lease)
        heapq.heappush(self._events, (lease.held_until, _Due.CLEAN, f"{key} {number}", number))
        return request, lease

    def _fail(self, pool: PoolKey, node: str) -> None:
        name = node_key(pool, node)
        self._failures.out(pool, node)
        self._since.pools.setdefault(pool, self._fleet.pools[pool])
        self._since.changes.append(Change(ChangeKind.NODE, name, Cause.NODE_LOST, name))
        self._mending[name] = (pool, node)
        heapq.heappush(self._events, (self.now + self._failures.mended_s, _Due.MEND, name, 0))
        self._stale = self._roomier = True
        hit = self._fleet.fail(pool, node)
        if hit is not None and hit.key in self._running:
            self._since.leases.setdefault(hit.key, hit)
            if self._fleet.replace_node(hit.key, node) is not None:
                self._since.changes.append(Change(ChangeKind.LEASE, hit.key, Cause.NODE_REPLACED, name))
            else:
                self._file(self._freed(hit.key), Cause.REQUEUED)

    def _come_back(self, key: str) -> None:
        """A preempted request waits for the rest of its time; no waiting request gives way to it."""
        self._file(replace(self._freed(key), may_displace=False), Cause.REQUEUED)

    def _freed(self, key: str) -> Request:
        """It loses its nodes; returns the request for the rest of its time."""
        self._since.leases.setdefault(key, self._fleet.leases[key])
        request, lease = self._stop(key)
        self._records.requeued(key)
        ran = lease.end - lease.start
        self._left[key] -= ran
        return replace(request, duration=request.duration - ran)

    def _mend(self, name: str) -> None:
        pool, node = self._mending.pop(name)
        self._failures.mend(pool, node)
        self._fleet.mend(pool, node, tuple(self._trace.pools[pool].windows.get(node, ())))
        self._stale = self._roomier = True


def queue_for(trace: Trace, rules: Rules) -> Waiting:
    """A queue that stays compiled between plans if the trace is large and allows it; the results are the same."""
    slices = [a.request.slice for a in trace.arrivals if a.request.slice]
    slices += [lease.slice for lease in trace.running.values() if lease.slice]
    plain = all(pool.open and not (pool.windows or pool.withheld) for pool in trace.pools.values())
    is_unbound = len(set(slices)) == len(slices)
    fits = all(a.request.movable and not a.request.fallback for a in trace.arrivals)
    allowed = plain and is_unbound and fits and not rules.preemption
    if len(trace.arrivals) < rules.compiled_from or not allowed or load() is None:
        return Queue(trace.pools)
    from scheduler.replay.resident_queue import Resident

    return Resident(trace.pools)


def _as_request(lease: Lease) -> Request:
    """A lease from the beginning, as a request."""
    duration = lease.end - lease.start
    return Request(lease.key, lease.slice, len(lease.nodes), duration, (lease.pool,), filed_at=lease.start)
