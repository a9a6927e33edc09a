"""Warnings: the end of a lease is announced once, while nothing is evicted yet, and again if it changes. Pure.

Held by tests/cases/reconciler/checkpoints.yaml.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from reconciler.model.events import Event, EventReason, warning_text
from reconciler.model.lease_end import end_of
from reconciler.model.statuses import Records
from schemas.documents.cluster import ClusterSpec
from schemas.status.checkpoints import Warned
from schemas.status.gpr_status import GPRStatus, Phase


def with_warnings(requests: Records, clusters: Mapping[str, ClusterSpec], now: datetime) -> list[Event]:
    """Announces the ends that are near and were not announced; an end that moved away counts as not announced."""
    told = []
    for key in sorted(key for key, status in requests.live.items() if status.phase is Phase.PROVISIONED):
        status = requests[key]
        cluster = None if status.assignment is None else clusters.get(status.assignment.cluster)
        if cluster is None:
            continue
        warned = _warned(status, cluster, now)
        if warned == status.warned:
            continue
        requests[key] = status.edited(warned=warned)
        if warned is not None:
            text = warning_text(key, warned.ends_at)
            told.append(Event(now, EventReason.WARNED, text, key))
    return told


def _warned(status: GPRStatus, cluster: ClusterSpec, now: datetime) -> Warned | None:
    end = end_of(status, cluster)
    if end is None or cluster.warning is None:
        return None
    if end.phase(now) == "over":
        return status.warned
    if end.phase(now) == "running":
        return None
    if status.warned is not None and status.warned.ends_at == end.ends_at:
        return status.warned
    return Warned(at=now, ends_at=end.ends_at)
