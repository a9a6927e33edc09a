"""Shows pods when they must have stopped: an annotation, which a downward-API file in the pod follows.

A write is conditional on the version of the pod that was read. So a controller that wakes up with an old decision
changes no pod to which a newer one has shown another end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta

from reconciler.clusters.kubernetes.api.api_client import Api, Json, Rejected, refused
from reconciler.clusters.kubernetes.names import ENDS_AT
from reconciler.clusters.kubernetes.nodes.cluster_view import Known
from reconciler.clusters.kubernetes.nodes.node_inventory import Pod
from reconciler.clusters.kubernetes.nodes.node_marks import late, marks_of
from reconciler.model.cluster_port import Answer, Busy, Done, LeaseRef, Refused, Stamp
from schemas.reading.units import format_instant

MOST_AT_ONCE = 100
"""Pods written per call: starts and ends of other leases must not wait."""
AGAIN = timedelta(seconds=1)

Learn = Callable[[Json], None]
Wanted = tuple[Pod, str]


def show(api: Api, learn: Learn, lease: LeaseRef, known: Known, stamp: Stamp, now: datetime) -> Answer:
    """The lease's pods show its end; Busy while some of them do not."""
    for node in known.nodes.values():
        marks = marks_of(node)
        if marks.lease is not None and marks.lease.uid == lease.uid:
            refusal = late(f"node {node.name}", marks.stamp, stamp)
            if refusal is not None:
                return refusal
    wrong = list(_wrong(lease, known))
    found = _write(api, learn, wrong[:MOST_AT_ONCE])
    if isinstance(found, Refused):
        return found
    left = len(wrong) - found
    return (
        Done() if not left else Busy(now + AGAIN, f"{left} pods do not show the end of {lease.request} yet")
    )


def correct(api: Api, pods: Iterable[Pod], by: datetime) -> None:
    """Pods that leave at another time than they were shown; one that cannot be written is left as it is."""
    text = format_instant(by)
    _write(api, lambda _: None, ((pod, text) for pod in pods if pod.ends_at not in {None, text}))


def _wrong(lease: LeaseRef, known: Known) -> Iterator[Wanted]:
    """Pods of the slice that show another end, or none; on a node that leaves before, its own end counts."""
    namespaces = set(known.slices.get(lease.slice, ()))
    for _, pod in sorted(known.pods.items()):
        if pod.namespace not in namespaces:
            continue
        end: datetime | None = lease.end if pod.gpus == 0 and pod.ends_at is not None else None
        node = known.nodes.get(pod.node or "")
        if pod.uses_gpus and node is not None:
            marks = marks_of(node)
            if marks.lease is not None and marks.lease.uid == lease.uid:
                end = min(lease.end, marks.exit_by or lease.end)
        if end is not None and pod.ends_at != format_instant(end):
            yield pod, format_instant(end)


def _write(api: Api, learn: Learn, wanted: Iterable[Wanted]) -> int | Refused:
    """How many were written, or are gone; a refusal other than of a changed pod stops it."""
    written = 0
    for pod, text in wanted:
        meta = {"uid": pod.uid, "resourceVersion": pod.version, "annotations": {ENDS_AT: text}}
        try:
            learn(api.merge(f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}", {"metadata": meta}))
        except Rejected as no:
            if no.status == 409:
                continue
            if no.status != 404:
                return refused(no)
        written += 1
    return written
