"""What became of each endpoint, from its document, its request and what the clusters show. Pure.

Its objects live as a workload's do (`workload_runs`). It serves while a version with traffic has a ready replica, and
drains before the strict end of its request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from reconciler.documents.workload_terms import run_of
from reconciler.endpoints.rendered import version_name
from reconciler.endpoints.rollout import Sight, advanced, begun_anew, first_rollout
from reconciler.endpoints.terms import as_workload, is_draining, workload_key
from reconciler.lifecycle.workload_runs import run_status
from reconciler.model.events import Event, EventReason
from reconciler.model.facts import Facts, Seen, Wanted
from reconciler.model.workload_port import PlacedWorkload
from schemas.documents.endpoint import EndpointSpec
from schemas.status.endpoint_status import EndpointPhase, EndpointStatus, RolloutStatus, VersionStatus
from schemas.status.gpr_status import GPRStatus
from schemas.status.workload_status import ObjectState, WorkloadPhase, WorkloadStatus

_TOLD = {
    EndpointPhase.SERVING: EventReason.ENDPOINT_SERVES,
    EndpointPhase.DRAINING: EventReason.ENDPOINT_DRAINS,
    EndpointPhase.FAILED: EventReason.ENDPOINT_FAILED,
    EndpointPhase.REMOVED: EventReason.ENDPOINT_REMOVED,
}
_LIVING = frozenset({WorkloadPhase.RUNNING, WorkloadPhase.FAILED})
"""Phases in which traffic may move: one object that failed freezes no other version."""
_KINDS = frozenset({"Deployment", "InferenceService"})
"""Of the objects that serve a version."""

Said = tuple[EndpointPhase, str | None, str | None]
"""Phase, reason, message."""


def endpoint_turn(
    facts: Facts, wanted: Wanted, requests: Mapping[str, GPRStatus], seen: Seen, now: datetime
) -> tuple[dict[str, EndpointStatus], tuple[Event, ...]]:
    """The status of every endpoint with a document, and the events of what changed."""
    found: dict[str, EndpointStatus] = {}
    events: list[Event] = []
    for key, spec in sorted(wanted.endpoints.items()):
        before = facts.endpoints.get(key)
        status = _status(key, spec, before, (wanted, requests, seen), now)
        found[key] = before if before is not None and before == status else status
        events += _told(key, spec, before, status, now)
    return found, tuple(events)


def _status(
    key: str,
    spec: EndpointSpec,
    before: EndpointStatus | None,
    known: tuple[Wanted, Mapping[str, GPRStatus], Seen],
    now: datetime,
) -> EndpointStatus:
    wanted, requests, seen = known
    rollout = first_rollout(spec, now) if before is None else before.rollout
    request = requests.get(f"{spec.slice}/{spec.gpr}")
    rendered = as_workload(key, spec, rollout, request, (wanted, now))
    run = run_status(workload_key(key), rendered, None if before is None else before.run, known, now)
    if before is not None and run == before.run.edited(since=run.since):
        run = before.run
    if before is not None and _place(run) != _place(before.run):
        rollout = begun_anew(rollout, now)
    view = seen.views.get(run.cluster or "")
    placed = None if view is None else view.placed.get(workload_key(key))
    lives = run.phase in _LIVING and request is not None and run_of(request, now) is not None
    drains = lives and is_draining(spec, request, wanted, now)
    ready = _ready(key, spec, placed if _is_shown(placed, run) else None)
    if (
        view is None and before is not None and run is before.run
    ):  # the cluster is silent: what was last seen stands
        ready = {version.name: version.ready for version in before.versions}
    if lives and not drains:
        able = frozenset(name for name, count in ready.items() if count != 0)
        rollout = advanced(spec, rollout, Sight(able, seen.observed.get(key)), now)
    versions = tuple(
        VersionStatus(
            name=version.name,
            weight=0 if drains else rollout.weights.get(version.name, 0),
            ready=ready.get(version.name, 0),
        )
        for version in spec.versions
    )
    phase, reason, message = _phase(run, versions, rollout, drains=drains)
    same = before is not None and before.phase is phase
    since = before.since if same and before is not None else now
    return EndpointStatus(
        phase=phase, reason=reason, message=message, since=since, versions=versions, rollout=rollout, run=run
    )


def _place(run: WorkloadStatus) -> tuple[str | None, datetime | None, str | None]:
    return run.uid, run.start_time, run.cluster


def _is_shown(placed: PlacedWorkload | None, run: WorkloadStatus) -> bool:
    return placed is not None and (placed.run.uid, placed.run.start) == (run.uid, run.start_time)


def _ready(key: str, spec: EndpointSpec, placed: PlacedWorkload | None) -> dict[str, int | None]:
    """Ready replicas by version; None: it runs, and its backend does not say how many."""
    if placed is None:
        return {}
    views = {each.name: each for each in placed.objects if each.kind in _KINDS}
    found: dict[str, int | None] = {}
    for version in spec.versions:
        each = views.get(version_name(key.partition("/")[2], version.name))
        if each is None or (each.ready is None and each.state is not ObjectState.RUNNING):
            found[version.name] = 0
        else:
            found[version.name] = each.ready
    return found


def _phase(
    run: WorkloadStatus, versions: tuple[VersionStatus, ...], rollout: RolloutStatus, *, drains: bool
) -> Said:
    if run.phase is WorkloadPhase.REMOVED:
        return EndpointPhase.REMOVED, run.reason, run.message
    if run.phase is WorkloadPhase.PENDING:
        return EndpointPhase.PENDING, run.reason, run.message
    if drains:
        text = "the lease is near its end: running answers are finished, and no new request reaches it"
        return EndpointPhase.DRAINING, "NearEnd", text
    if any(version.weight and version.ready != 0 for version in versions):
        if run.reason is not None:
            return EndpointPhase.SERVING, run.reason, run.message
        reason = None if rollout.state == "Steady" else f"Rollout{rollout.state}"
        return EndpointPhase.SERVING, reason, rollout.message
    if run.phase is WorkloadPhase.FAILED:
        return EndpointPhase.FAILED, run.reason, run.message
    return EndpointPhase.PENDING, "Starting", "no version with traffic has a ready replica yet"


def _told(
    key: str, spec: EndpointSpec, before: EndpointStatus | None, status: EndpointStatus, now: datetime
) -> Iterator[Event]:
    request, cluster = f"{spec.slice}/{spec.gpr}", status.run.cluster or ""
    reason = _TOLD.get(status.phase)
    if reason is not None and (before is None or before.phase is not status.phase):
        what = f"endpoint {key} is {status.phase}"
        yield Event(now, reason, f"{what}: {status.message}" if status.message else what, request, cluster)
    if before is None or before.rollout.weights == status.rollout.weights:
        return
    shares = ", ".join(f"{name} {weight} %" for name, weight in sorted(status.rollout.weights.items()))
    if status.rollout.state == "Returned":
        text = f"endpoint {key} went back to {shares}: {status.rollout.message}"
        yield Event(now, EventReason.ENDPOINT_RETURNED, text, request, cluster)
    else:
        yield Event(now, EventReason.ENDPOINT_MOVED, f"endpoint {key} now gives {shares}", request, cluster)
