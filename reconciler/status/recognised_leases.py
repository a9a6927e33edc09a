"""Recovers leases that the status branch lost from the marks on nodes in clusters. Pure.

After a loss (`Facts.unread`), no mark is removed before it was read once. A marked lease without a record
continues: Provisioned, with the id, nodes, start and end in its mark, and the rest from its request on main.
Marks of an ended or impossible lease are reported and removed.

Held by tests/reconciler/test_lost.py.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from reconciler.model.cluster_port import ClusterView, LeaseRef, NodeView, Stamp
from reconciler.model.events import MARKS, Event, EventReason
from reconciler.model.facts import Facts, Wanted
from reconciler.model.statuses import Records, holders, records
from schemas.documents.gpr import RequestSpec
from schemas.reading.units import NAME_PATTERN
from schemas.rules.fit import free_priority
from schemas.status.gpr_status import HOLDING, WAITING, Assignment, GPRStatus, Mark, Phase

EVERYWHERE = frozenset({"*"})
"""In `Facts.unread`: no cluster's marks have been read since the branch was lost."""
MOST_TERM = 10**12
"""No controller ever reaches it: a later term in a mark is forged, and no term above it is taken."""
_MINUTE = timedelta(minutes=1)
_NAME, _UID = re.compile(NAME_PATTERN), re.compile(r"gpr-[0-9a-f]{8}-[0-9a-f]{4}")


@dataclass(frozen=True, slots=True)
class Marked:
    cluster: str
    lease: LeaseRef  # from its newest mark
    nodes: tuple[NodeView, ...]

    @property
    def stamp(self) -> Stamp:
        return max((node.stamp for node in self.nodes if node.stamp is not None), default=Stamp(0, 0))

    @property
    def where(self) -> str:
        return f"{', '.join(node.name for node in self.nodes)} of {self.cluster}"


def is_unread(cluster: str, facts: Facts) -> bool:
    """True if that cluster's marks have not been read since the branch was lost."""
    return not facts.unread.isdisjoint({cluster, *EVERYWHERE})


def outdated(views: Mapping[str, ClusterView], own: Stamp) -> dict[str, Stamp]:
    """Clusters with a later stamp than our newest: written by a controller that the branch does not know."""
    newest = {name: view.newest for name, view in sorted(views.items())}
    return {name: stamp for name, stamp in newest.items() if stamp is not None and stamp > own}


def term_above(facts: Facts, views: Mapping[str, ClusterView], own: Stamp) -> int | None:
    """The latest term in the unread clusters if they would refuse our writes; None: they would not."""
    ahead = outdated({name: view for name, view in views.items() if is_unread(name, facts)}, own)
    return max((stamp.term for stamp in ahead.values() if stamp.term <= MOST_TERM), default=None)


def recognised(
    facts: Facts, wanted: Wanted, views: Mapping[str, ClusterView], now: datetime
) -> tuple[Facts, tuple[Event, ...]]:
    """The facts plus the leases in the marks of clusters that answer, and events; unchanged if nothing is lost."""
    if not facts.unread:
        return facts, ()
    read = [name for name in sorted(wanted.clusters) if is_unread(name, facts) and name in views]
    silent = frozenset(n for n in wanted.clusters if is_unread(n, facts) and n not in views)
    found = [marked for name in read for marked in _leases(name, views[name])]
    known, events = records(facts.requests), list[Event]()
    # Of two incompatible marks, the one written last is true.
    for marked in sorted(found, key=lambda m: (m.stamp, m.lease.request), reverse=True):
        events += _turn(marked, known, wanted, now)
    events += [_unread(name, now) for name in sorted(silent) if facts.unread == EVERYWHERE]
    return replace(facts, requests=known, unread=silent), tuple(events)


def _leases(cluster: str, view: ClusterView) -> Iterator[Marked]:
    by_uid: dict[str, list[NodeView]] = {}
    for _, node in sorted(view.nodes.items()):
        if node.lease is not None:
            by_uid.setdefault(node.lease.uid, []).append(node)
    for nodes in by_uid.values():
        last = max(nodes, key=lambda node: node.stamp or Stamp(0, 0)).lease
        assert last is not None
        yield Marked(cluster, last, tuple(nodes))


def _turn(marked: Marked, known: Records, wanted: Wanted, now: datetime) -> list[Event]:
    """Records one lease, or reports why not."""
    if not _is_possible(marked.lease, now):
        text = f"nodes {marked.where} have the mark of a lease that no controller wrote; it is removed"
        return [Event(now, EventReason.NOT_RECOGNISED, text, "", marked.cluster)]
    key, old = marked.lease.request, known.get(marked.lease.request)
    is_same = old is not None and old.uid == marked.lease.uid
    if old is not None and is_same and old.phase not in WAITING | {Phase.PROVISIONED}:
        return []  # a known lease: its record decides about its nodes
    if old is not None and is_same and old.phase is Phase.PROVISIONED and _now(old, marked) == old:
        return []
    if why := _why_not(marked, old if not is_same else None, known, now):
        text = f"{key}: nodes {marked.where} have the mark of a lease that {why}; it is removed"
        return [Event(now, EventReason.NOT_RECOGNISED, text, key, marked.cluster)]
    known[key] = status = _provisioned(marked, old, wanted, now)
    assert status.start_time is not None
    text = (
        f"{key} was recovered from the marks of its nodes {marked.where}: it holds them since "
        f"{status.start_time:%Y-%m-%dT%H:%M:%SZ} until {marked.lease.end:%Y-%m-%dT%H:%M:%SZ}"
    )
    return [Event(now, EventReason.RECOGNISED, text, key, marked.cluster)]


def _is_possible(lease: LeaseRef, now: datetime) -> bool:
    """Names become paths and times are compared: a kubelet can write anything on its own node."""
    slice_, _, name = lease.request.partition("/")
    named = slice_ == lease.slice and _NAME.fullmatch(slice_) and _NAME.fullmatch(name)
    return bool(named and _UID.fullmatch(lease.uid)) and (lease.start is None or lease.start <= now)


def _now(status: GPRStatus, marked: Marked) -> GPRStatus:
    """A recorded lease, updated with later changes in the marks: replaced nodes, a later end."""
    held, nodes, end = status.assignment, tuple(node.name for node in marked.nodes), status.end_time
    assert held is not None
    assert end is not None
    if set(held.nodes) != set(nodes) and len(held.nodes) == len(nodes):
        out = tuple(sorted(set(held.nodes) - set(nodes)))
        replaced = (*status.replaced_nodes, *out)
        status = status.edited(assignment=held.edited(nodes=nodes), replaced_nodes=replaced)
    more = marked.lease.end - end
    if more <= timedelta():
        return status
    end = marked.lease.end
    return status.edited(end_time=end, estimated_end_time=end, extended_by=status.extended_by + more)


def _why_not(marked: Marked, other: GPRStatus | None, known: Records, now: datetime) -> str:
    lease = marked.lease
    if now >= lease.end:
        return f"ended at {lease.end:%Y-%m-%dT%H:%M:%SZ}"
    if other is not None and other.phase not in WAITING:
        return f"differs from the recorded one, which is {other.phase}"
    rival = next((k for k, s in holders(known).items() if _runs(s, lease) and k != lease.request), None)
    return "" if rival is None else f"overlaps with {rival} of the same slice"


def _runs(status: GPRStatus, lease: LeaseRef) -> bool:
    return status.accepted_spec.slice == lease.slice and status.phase in HOLDING - {Phase.RELEASING}


def _provisioned(marked: Marked, old: GPRStatus | None, wanted: Wanted, now: datetime) -> GPRStatus:
    if old is not None and old.phase is Phase.PROVISIONED:
        return _now(old, marked)
    lease, nodes = marked.lease, tuple(node.name for node in marked.nodes)
    spec = _spec(marked, old, wanted, now)
    # An older mark has no start: then it is computed without an extension.
    start = min(now, lease.end - spec.duration) if lease.start is None else lease.start
    lasts = lease.end - start
    pool = Counter(node.pool for node in marked.nodes).most_common(1)[0][0]
    # A longer lease was extended; a shorter one is the remaining time of an earlier lease.
    more, less = max(timedelta(), lasts - spec.duration), max(timedelta(), spec.duration - lasts)
    slice_ = wanted.slices.get(lease.slice)
    ceiling = 0 if slice_ is None else free_priority(slice_, wanted.project)
    return GPRStatus(
        phase=Phase.PROVISIONED,
        uid=lease.uid,
        filed_at=start if old is None else old.filed_at,
        estimated_start_time=start,
        estimated_end_time=lease.end,
        assignment=Assignment(cluster=marked.cluster, pool=pool, nodes=nodes),
        held_from=start,
        start_time=start,
        end_time=lease.end,
        extended_by=more,
        remaining=spec.duration - less if less else None,
        served=less,
        # It is unknown which marks were reported: none is reported twice.
        marks=tuple(Mark(percent=p, at=now) for p in MARKS if now >= start + lasts * p / 100),
        approval=None if old is None else old.approval,
        accepted_spec=spec,
        spec_digest=spec.digest(ceiling),
    )


def _spec(marked: Marked, old: GPRStatus | None, wanted: Wanted, now: datetime) -> RequestSpec:
    """Its spec: from main if present, else inferred from its nodes; the lease keeps its nodes either way."""
    lease, filed = marked.lease, wanted.filed.get(marked.lease.request)
    count, sharing = len(marked.nodes), f"mig:{lease.mig}" if lease.mig else "dedicated"
    spec = old.accepted_spec if old is not None else None if filed is None else filed.spec
    if spec is not None:
        return spec.edited(nodes=count, sharing=sharing, early_release=False, stopped=False)
    lasts = max(_MINUTE, (lease.end - (lease.start or now)) // _MINUTE * _MINUTE)
    gpus = max(len(node.gpus) for node in marked.nodes)
    return RequestSpec(
        slice=lease.slice, nodes=count, gpus_per_node=max(1, gpus), duration=lasts, sharing=sharing
    )


def _unread(cluster: str, now: datetime) -> Event:
    text = (
        f"{cluster} does not answer, so its leases cannot be recovered yet: they continue, and are recovered "
        "once it answers; a request that holds nodes there may get other nodes until then"
    )
    return Event(now, EventReason.NOT_RECOGNISED, text, "", cluster)
