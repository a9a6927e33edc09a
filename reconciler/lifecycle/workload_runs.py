"""What became of each workload, from its document, its request and what the clusters show. Pure.

Pending until its request is Provisioned and its objects were applied; Removed at the end of the lease, unless it had
ended by itself; Pending again when the request starts anew. What has succeeded stays so until its objects change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from reconciler.documents.workload_terms import digest_of, is_of, is_settled, namespace_of, run_of
from reconciler.model.events import Event, EventReason
from reconciler.model.facts import Facts, Seen, Wanted
from reconciler.model.workload_port import PlacedWorkload, WorkloadRun, ends
from schemas.documents.workload import RENDERED_KINDS, WorkloadSpec
from schemas.status.gpr_status import GPRStatus, Phase
from schemas.status.workload_status import ObjectState, ObjectStatus, WorkloadPhase, WorkloadStatus

_TOLD = {
    WorkloadPhase.RUNNING: EventReason.WORKLOAD_RUNS,
    WorkloadPhase.SUCCEEDED: EventReason.WORKLOAD_SUCCEEDED,
    WorkloadPhase.FAILED: EventReason.WORKLOAD_FAILED,
    WorkloadPhase.REMOVED: EventReason.WORKLOAD_REMOVED,
}
_OVER = frozenset({WorkloadPhase.SUCCEEDED, WorkloadPhase.FAILED})
_MESSAGE = 500
"""Of one object's message, in characters."""


def workload_turn(
    facts: Facts, wanted: Wanted, requests: Mapping[str, GPRStatus], seen: Seen, now: datetime
) -> tuple[dict[str, WorkloadStatus], tuple[Event, ...]]:
    """The status of every workload with a document, and the events of what changed."""
    found: dict[str, WorkloadStatus] = {}
    events: list[Event] = []
    for key, spec in sorted(wanted.workloads.items()):
        before = facts.workloads.get(key)
        status = run_status(key, spec, before, (wanted, requests, seen), now)
        if before is not None and _same_but_time(before, status):
            found[key] = before
            continue
        found[key] = status
        events += _told(key, spec, before, status, now)
    return found, tuple(events)


def _same_but_time(before: WorkloadStatus, status: WorkloadStatus) -> bool:
    return before == status.edited(since=before.since)


def _told(
    key: str, spec: WorkloadSpec, before: WorkloadStatus | None, status: WorkloadStatus, now: datetime
) -> Iterator[Event]:
    reason = _TOLD.get(status.phase)
    if reason is None or (before is not None and before.phase is status.phase):
        return
    what = f"workload {key} is {status.phase}"
    text = f"{what}: {status.message}" if status.message else what
    yield Event(now, reason, text, f"{spec.slice}/{spec.gpr}", status.cluster or "")


def run_status(
    key: str,
    spec: WorkloadSpec,
    before: WorkloadStatus | None,
    known: tuple[Wanted, Mapping[str, GPRStatus], Seen],
    now: datetime,
) -> WorkloadStatus:
    """The status of one workload; its objects in clusters have the name `key`."""
    wanted, requests, seen = known
    name = f"{spec.slice}/{spec.gpr}"
    request = requests.get(name)
    run = None if request is None else run_of(request, now)
    if request is None or run is None or request.assignment is None:
        return _without_nodes(spec, before, request, now)
    if before is not None and not is_of(before, run) and is_settled(before, spec):
        return before
    cluster = request.assignment.cluster
    fresh = _pending(spec, now).edited(
        uid=run.uid, start_time=run.start, cluster=cluster, namespace=namespace_of(spec, wanted)
    )
    if fresh.namespace is None:
        text = f"slice {spec.slice} does not have the namespace {spec.namespace or '(none)'}"
        return _since(before, fresh.edited(reason="NamespaceMissing", message=text), now)
    if wanted.clusters[cluster].mode != "manage":
        text = f"cluster {cluster} is only observed; an admin sets its mode to manage"
        return _since(before, fresh.edited(reason="ClusterObserved", message=text), now)
    view = seen.views.get(cluster)
    placed = None if view is None else view.placed.get(key)
    if view is None and before is not None and is_of(before, run):
        return before  # the cluster does not answer: what was last seen stands
    if placed is None or placed.run != run:
        return _since(
            before, fresh.edited(reason="Applying", message=f"it is being applied in {cluster}"), now
        )
    return _since(before, _from_objects(fresh, spec, placed, before, run), now)


def _pending(spec: WorkloadSpec, now: datetime) -> WorkloadStatus:
    return WorkloadStatus(phase=WorkloadPhase.PENDING, gpr=spec.gpr, since=now)


def _since(before: WorkloadStatus | None, status: WorkloadStatus, now: datetime) -> WorkloadStatus:
    """A phase that lasts keeps its beginning."""
    same = before is not None and (before.phase, before.uid, before.start_time) == (
        status.phase,
        status.uid,
        status.start_time,
    )
    return status.edited(since=before.since if same and before is not None else now)


def _without_nodes(
    spec: WorkloadSpec, before: WorkloadStatus | None, request: GPRStatus | None, now: datetime
) -> WorkloadStatus:
    """Its request is not running: it ran and was removed, or waits."""
    waits = request is not None and request.phase in _TO_COME
    if before is not None and before.uid is not None and before.gpr == spec.gpr:
        if before.phase in _OVER and not (before.phase is WorkloadPhase.FAILED and waits):
            return before
        if not waits:
            text = f"the lease of {spec.slice}/{spec.gpr} is over; its objects were removed"
            gone = before.edited(phase=WorkloadPhase.REMOVED, reason="LeaseOver", message=text, objects=())
            return _since(before, gone, now)
    pending = _pending(spec, now)
    if request is None:
        text = f"slice {spec.slice} has no request {spec.gpr}; it starts with that request"
        return _since(before, pending.edited(reason="RequestMissing", message=text), now)
    if waits:
        text = f"it waits until {spec.slice}/{spec.gpr} is Provisioned"
        return _since(before, pending.edited(reason="RequestWaits", message=text), now)
    text = (
        f"{spec.slice}/{spec.gpr} is {request.phase} and does not run again; name another request in spec.gpr"
    )
    return _since(before, pending.edited(reason="RequestOver", message=text), now)


_TO_COME = frozenset({Phase.PENDING_APPROVAL, Phase.QUEUED, Phase.PROVISIONING})


def _from_objects(
    fresh: WorkloadStatus,
    spec: WorkloadSpec,
    placed: PlacedWorkload,
    before: WorkloadStatus | None,
    run: WorkloadRun,
) -> WorkloadStatus:
    """The phase that follows from the objects; one that ended stays ended when the cluster removes it."""
    same = before is not None and is_of(before, run) and before.digest == placed.digest
    past = {(o.kind, o.name): o for o in before.objects} if same and before is not None else {}
    objects = []
    for each in placed.objects:
        last = past.get((each.kind, each.name))
        if each.state is ObjectState.MISSING and last is not None and last.state in _ENDED:
            objects.append(last)
            continue
        message = each.message[:_MESSAGE] or None
        objects.append(
            ObjectStatus(
                kind=each.kind, name=each.name, state=each.state, reason=each.reason or None, message=message
            )
        )
    told = fresh.edited(digest=placed.digest, objects=tuple(objects))
    if placed.digest != digest_of(spec):
        text = "its document has changed; the new objects are being applied"
        return told.edited(phase=WorkloadPhase.RUNNING, reason="Updating", message=text)
    phase, odd = _phase(objects)
    if odd is None:
        return told.edited(phase=phase)
    text = f"{odd.kind} {odd.name} is {odd.state}" + (f": {odd.message}" if odd.message else "")
    return told.edited(phase=phase, reason=odd.reason or f"Object{odd.state}", message=text)


_ENDED = frozenset({ObjectState.SUCCEEDED, ObjectState.FAILED})


def _phase(objects: list[ObjectStatus]) -> tuple[WorkloadPhase, ObjectStatus | None]:
    """The phase, and the object that explains it; None: nothing to explain."""
    for state in (ObjectState.REFUSED, ObjectState.FAILED):
        if (odd := next((o for o in objects if o.state is state), None)) is not None:
            return WorkloadPhase.FAILED, odd
    active = [o for o in objects if not RENDERED_KINDS[o.kind].first]
    if active and all(ends(o.kind) and o.state is ObjectState.SUCCEEDED for o in active):
        return WorkloadPhase.SUCCEEDED, None
    for state in (ObjectState.MISSING, ObjectState.CHANGED):
        if (odd := next((o for o in objects if o.state is state), None)) is not None:
            return WorkloadPhase.RUNNING, odd
    return WorkloadPhase.RUNNING, None
