"""A controller's facts as metrics: gauges at one time, and counters per commit. Pure.

Labels never contain a request's name: they come from manifests' clusters, pools and slices and from fixed
lists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from reconciler.leadership import next_due
from reconciler.model.events import Event, EventReason
from reconciler.model.facts import Facts, Wanted
from reconciler.model.status_edits import clean_by
from reconciler.model.statuses import changed, live
from scheduler.calendars.elastic import existing
from schemas.status.gpr_status import HOLDING, Assignment, Cause, GPRStatus, Phase
from schemas.status.node_status import NodeState

Series = Mapping[tuple[str, ...], float]
"""Values by their labels."""

SCOPES = ("project", "slice", "person")
"""Kinds of route owners."""
LATE = timedelta(minutes=1)
"""A hand-over or an end later than this counts as overdue."""


def requests(facts: Facts) -> Series:
    return Counter((s.accepted_spec.slice, str(s.phase)) for s in facts.requests.values())


def leases(facts: Facts, wanted: Wanted) -> Series:
    """Requests that hold nodes, by cluster and pool; 0 for a pool without any."""
    return _empty(wanted) | Counter((a.cluster, a.pool) for a in _assignments(facts))


def leased_nodes(facts: Facts, wanted: Wanted) -> Series:
    """Nodes that requests hold, by cluster and pool."""
    held: Counter[tuple[str, ...]] = Counter()
    for assignment in _assignments(facts):
        held[assignment.cluster, assignment.pool] += len(assignment.nodes)
    return _empty(wanted) | held


def nodes(facts: Facts, wanted: Wanted) -> Series:
    """Nodes by cluster, pool and state; 0 for a state without any."""
    states = [str(state) for state in NodeState]
    found: Counter[tuple[str, ...]] = Counter({(*key, state): 0 for key in wanted.pools for state in states})
    for (cluster, name), pool in wanted.pools.items():
        for node in existing(pool):
            record = facts.nodes.get((cluster, node))
            found[cluster, name, str(NodeState.READY if record is None else record.state)] += 1
    return found


def clusters_reachable(facts: Facts, wanted: Wanted) -> Series:
    """1 for a cluster that answers, else 0."""
    silent = {name for name, reach in facts.clusters.items() if not reach.reachable}
    return {(name,): float(name not in silent) for name in wanted.clusters}


def starts_overdue(facts: Facts, now: datetime) -> Series:
    """Number of committed starts more than a minute ago without a hand-over."""
    waiting = [s for s in live(facts.requests).values() if s.phase is not Phase.PROVISIONED]
    return {(): sum(_passed(next_due(status), now) for status in waiting)}


def ends_overdue(facts: Facts, wanted: Wanted, now: datetime) -> Series:
    """Number of leases past their strict end, or their drain, that still have nodes; by cluster."""
    late: Counter[tuple[str, ...]] = Counter({(cluster,): 0 for cluster in wanted.clusters})
    for status in live(facts.requests).values():
        if status.assignment is not None and status.phase in HOLDING:
            late[(status.assignment.cluster,)] += _passed(_nodes_back_by(status, wanted), now)
    return late


def slipped(before: Facts | None, after: Facts) -> Mapping[Cause, int]:
    """Number of promises that moved later since the previous commit, by cause; none before the first."""
    found: Counter[Cause] = Counter()
    for key in changed(before.requests, after.requests) if before is not None else ():
        old, status = before.requests.get(key) if before is not None else None, after.requests.get(key)
        if status is None:
            continue
        known = old.delayed_count if old is not None and old.uid == status.uid else 0
        new = status.delayed_count - known
        found.update(slip.cause for slip in status.slips[-new:] if new > 0)
    return found


def start_delays_s(facts: Facts, events: tuple[Event, ...]) -> Iterator[float]:
    """Seconds from each committed start until all its nodes were seen assigned."""
    for event in events:
        status = facts.requests.get(event.request)
        if event.reason is EventReason.PROVISIONED and status is not None and status.start_time is not None:
            yield max(0.0, (event.at - status.start_time).total_seconds())


def entries_waiting(facts: Facts) -> Series:
    """Events waiting to be sent, by owner kind of their route."""
    found: Counter[tuple[str, ...]] = Counter({(scope,): 0 for scope in SCOPES})
    for name, record in facts.outbox.items():
        found[(name.partition(".")[0],)] += sum(len(d.entries) + d.more for d in record.deliveries)
    return found


def _assignments(facts: Facts) -> list[Assignment]:
    held = (s.assignment for s in live(facts.requests).values() if s.phase in HOLDING)
    return [assignment for assignment in held if assignment is not None]


def _empty(wanted: Wanted) -> dict[tuple[str, ...], float]:
    return dict.fromkeys(wanted.pools, 0.0)


def _nodes_back_by(status: GPRStatus, wanted: Wanted) -> datetime | None:
    """The strict end while running, then the end of the drain."""
    if status.phase is not Phase.RELEASING or status.assignment is None:
        return next_due(status) if status.phase is Phase.PROVISIONED else None
    cluster = wanted.clusters.get(status.assignment.cluster)
    return clean_by(status, timedelta() if cluster is None else cluster.drain)


def _passed(due: datetime | None, now: datetime) -> bool:
    return due is not None and now - due > LATE
