"""Checkpoints: when a lease's work was last saved, as its pods say, and how much of it an eviction would lose. Pure.

A pod says so by an annotation. What it says counts only inside of its lease and not in the future, so that no lease
seems to lose more than it ran, or less than nothing. Each new value would be a commit: while nothing else happens, one
is written every `STEP`, and near the end every `LAST_STEP`.
Held by tests/reconciler/lifecycle/test_checkpoints.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType

from reconciler.model.cluster_port import ClusterView, WorkloadView
from reconciler.model.facts import Context, RequestOutcome
from reconciler.model.lease_end import end_of
from schemas.documents.cluster import ClusterSpec
from schemas.status.checkpoints import Checkpoint
from schemas.status.gpr_status import GPRStatus, Phase

STEP, LAST_STEP = timedelta(minutes=10), timedelta(minutes=1)
"""The least progress of a checkpoint that is written by itself: normally, and from the warning on."""
NAMED = 8
"""Pods named in a status."""

Said = Mapping[tuple[str, str], Sequence[WorkloadView]]
"""By cluster and slice: its pods that said when they saved their work."""
NOTHING_SAID: Said = MappingProxyType({})


def said_in(views: Mapping[str, ClusterView]) -> Said:
    """What pods say in all clusters. O(pods)."""
    found: dict[tuple[str, str], list[WorkloadView]] = defaultdict(list)
    for cluster, view in views.items():
        for work in view.workloads:
            if work.checkpointed_at is not None:
                found[cluster, work.slice].append(work)
    return found


def newest(status: GPRStatus, said: Said, now: datetime) -> Checkpoint | None:
    """The newest checkpoint of its present lease, or the one it had; only between the start and `now`."""
    start, held, known = status.start_time, status.assignment, status.checkpoint
    if start is None or held is None:
        return known
    here = said.get((held.cluster, status.accepted_spec.slice), ())
    valid = [work for work in here if (at := work.checkpointed_at) is not None and start <= at <= now]
    at = max((work.checkpointed_at for work in valid if work.checkpointed_at is not None), default=None)
    if at is None or (known is not None and at <= known.at):
        return known
    same = [work for work in valid if work.checkpointed_at == at]
    pods = sorted(f"{work.namespace}/{work.name}" for work in same)[:NAMED]
    nodes = sorted({work.node for work in same if work.node is not None})[:NAMED]
    return Checkpoint(at=at, pods=tuple(pods), nodes=tuple(nodes))


def checkpoint_outcome(status: GPRStatus, said: Said, context: Context) -> RequestOutcome:
    """Writes a checkpoint that is worth a commit: the first of a lease, and those a step apart."""
    if status.phase is not Phase.PROVISIONED or status.assignment is None or status.start_time is None:
        return RequestOutcome(status)
    found, known = newest(status, said, context.now), status.checkpoint
    cluster = context.wanted.clusters.get(status.assignment.cluster)
    is_first = known is None or known.at < status.start_time
    if found is None or found is known:
        return RequestOutcome(status)
    if known is not None and not is_first and found.at - known.at < _step(status, cluster, context.now):
        return RequestOutcome(status)
    return RequestOutcome(status.edited(checkpoint=found))


def _step(status: GPRStatus, cluster: ClusterSpec | None, now: datetime) -> timedelta:
    end = None if cluster is None else end_of(status, cluster)
    return STEP if end is None or end.phase(now) == "running" else LAST_STEP


def saved_at(status: GPRStatus, said: Said, now: datetime) -> datetime | None:
    """Until when the work of the present lease is saved; None: nothing of it is known to be."""
    found = newest(status, said, now)
    if found is None or status.start_time is None or not status.start_time <= found.at <= now:
        return None
    return found.at
