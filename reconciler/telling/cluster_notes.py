"""Events to be written into clusters, where users look: which cluster, and which are still pending.

A note always has the same key, so that writing it again after a crash has no effect.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from datetime import timedelta

from reconciler.model.cluster_port import Note
from reconciler.model.events import MARKS, Event, EventReason, mark_text, warning_text
from reconciler.model.facts import Facts, Wanted
from reconciler.model.statuses import live
from schemas.reading.units import format_instant
from schemas.status.gpr_status import HOLDING, GPRStatus

MOST_KEPT = 500
"""Pending notes of one cluster; beyond it the oldest are dropped: the status branch has them all."""
TOLD_AGAIN = timedelta(hours=1)
"""A new leader writes newer marks again: the previous leader may have died before writing them."""


class ClusterNotes:
    """Notes pending for their clusters. One owner."""

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[Note, ...]] = {}
        self._term = 0

    def post(self, events: Iterable[Event], term: int, wanted: Wanted, facts: Facts) -> None:
        """Adds these events, and at the beginning of a term what the previous leader may have left pending."""
        if term != self._term:
            self._term = term
            events = (*recent_marks(facts), *events)
        for event in events:
            cluster = cluster_of(event, wanted, facts)
            if cluster is not None:
                waiting = (*self._waiting.get(cluster, ()), note_of(event, facts))
                self._waiting[cluster] = waiting[-MOST_KEPT:]

    def waiting(self, clusters: Collection[str]) -> dict[str, tuple[Note, ...]]:
        return {name: notes for name, notes in self._waiting.items() if name in clusters and notes}

    def told(self, clusters: Iterable[str]) -> None:
        """These clusters have all their notes."""
        for name in clusters:
            self._waiting.pop(name, None)


def cluster_of(event: Event, wanted: Wanted, facts: Facts) -> str | None:
    """The managed cluster whose users an event concerns; None if none."""
    if not (event.request or event.slice or event.node):
        return None
    status = facts.requests.get(event.request)
    spec = wanted.slices.get(event.request.partition("/")[0])
    named = event.cluster or _home(status) or next(iter(spec.clusters if spec is not None else ()), "")
    cluster = wanted.clusters.get(named)
    return named if cluster is not None and cluster.mode == "manage" else None


def _home(status: GPRStatus | None) -> str:
    if status is None:
        return ""
    return status.assignment.cluster if status.assignment is not None else status.estimated_cluster or ""


def note_of(event: Event, facts: Facts) -> Note:
    status = facts.requests.get(event.request)
    who = status.uid if status is not None else event.request
    parts = (who, str(event.reason), format_instant(event.at), event.cluster, event.node, event.message)
    return Note(
        key=hashlib.sha256("\n".join(parts).encode()).hexdigest()[:20],
        reason=str(event.reason),
        text=event.message,
        at=event.at,
        slice=event.slice or event.request.partition("/")[0],
        request=event.request,
        node=event.node,
        warning=event.warning,
        everywhere=event.reason is EventReason.WARNED,
    )


def recent_marks(facts: Facts) -> list[Event]:
    """The marks and warnings of running requests that were committed recently."""
    holding = [(key, s) for key, s in sorted(live(facts.requests).items()) if s.phase in HOLDING]
    marks = [
        Event(mark.at, MARKS[mark.percent], mark_text(key, mark.percent), key)
        for key, status in holding
        for mark in status.marks
        if facts.at - mark.at <= TOLD_AGAIN and mark.percent in MARKS
    ]
    warnings = [
        Event(status.warned.at, EventReason.WARNED, warning_text(key, status.warned.ends_at), key)
        for key, status in holding
        if status.warned is not None and facts.at - status.warned.at <= TOLD_AGAIN
    ]
    return [*marks, *warnings]
