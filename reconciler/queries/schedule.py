"""The whole schedule as rows: leases, waiting requests with their starts, refused requests. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from reconciler.approvals.is_approved import hard_violations
from reconciler.lifecycle.early_end import STOPPED
from reconciler.model.facts import Filed, Wanted
from reconciler.model.statuses import live
from scheduler.choices.fit import limit_violations, would_fit
from scheduler.plan import plan
from scheduler.reasons import Reason
from scheduler.snapshot import Placement, Plan, PoolKey, Refusal, Snapshot
from schemas.documents.gpr import RequestSpec
from schemas.reading.units import instant, wire
from schemas.rules.problems import Problem
from schemas.rules.view import gpr_path
from schemas.status.gpr_status import HOLDING, GPRStatus, Phase
from schemas.status.insights import Forecast

STARTED = frozenset({Phase.PROVISIONED, Phase.RELEASING})


@dataclass(frozen=True, slots=True)
class Row:
    """One request in the schedule; fields that do not apply are None."""

    key: str
    phase: Phase
    rank: int | None = None
    position: int | None = None
    start: datetime | None = None
    end: datetime | None = None
    pool: PoolKey | None = None
    gpu_shape: str | None = None
    nodes: tuple[str, ...] | None = None
    reason: str | None = None
    forecast: Forecast | None = None  # recorded together with the promise that this start is

    def wait(self, now: datetime) -> timedelta | None:
        """Time until the start; zero once it has begun, whatever the clock says."""
        if self.start is None or self.phase in STARTED:
            return None if self.start is None else timedelta()
        return max(timedelta(), self.start - now)

    def json(self, now: datetime) -> dict[str, Any]:
        slice_, _, name = self.key.partition("/")
        wait = self.wait(now)
        row: dict[str, Any] = {
            "slice": slice_,
            "name": name,
            "phase": str(self.phase),
            "rank": self.rank,
            "position": self.position,
            "estimatedStartTime": wire(self.start),
            "estimatedWaitSeconds": None if wait is None else int(wait.total_seconds()),
            "estimatedEndTime": wire(self.end),
            "cluster": None if self.pool is None else self.pool[0],
            "pool": None if self.pool is None else self.pool[1],
            "gpuShape": self.gpu_shape,
            "nodes": None if self.nodes is None else list(self.nodes),
            "reason": self.reason,
        }
        if self.forecast is not None:
            row["forecast"] = self.forecast.model_dump(mode="json", by_alias=True)
        return row


@dataclass(frozen=True, slots=True)
class Schedule:
    """Rows in the order of the design: leases, waiting by rank, waiting for approval; and the refused requests."""

    rows: tuple[Row, ...]
    refused: tuple[Refusal, ...]
    plan: Plan


def full_plan(
    requests: Mapping[str, GPRStatus], snapshot: Snapshot, wanted: Wanted, known: Plan | None = None
) -> Plan:
    """The `known` plan, or a new one; a request that fits nowhere also gets what would fit."""
    planned = plan(snapshot) if known is None else known
    refusals = dict(planned.refusals)
    for key, refusal in refusals.items():
        slice_ = wanted.slices.get(requests[key].accepted_spec.slice)
        if refusal.reason == Reason.FITS_NOWHERE and not refusal.would_fit and slice_ is not None:
            fits = would_fit(requests[key].accepted_spec, slice_, wanted.pools)
            refusals[key] = replace(refusal, message="it fits no pool that it may use", would_fit=fits)
    return replace(planned, refusals=refusals)


def schedule(
    requests: Mapping[str, GPRStatus],
    snapshot: Snapshot,
    wanted: Wanted,
    unread: Iterable[Refusal] = (),
    known: Plan | None = None,
) -> Schedule:
    """Plans `snapshot` (or takes the `known` plan); `unread` are requests without a status whose files are refused."""
    planned = full_plan(requests, snapshot, wanted, known)
    ranked = [key for key in planned.order if key in requests and key not in snapshot.leases]
    # Queued, but its slice is gone or has become too small: it is not planned, and its refusal says so.
    outside = sorted(
        key
        for key, status in live(requests).items()
        if status.phase is Phase.QUEUED and key not in snapshot.requests
    )
    rows = [
        *_holding(requests, snapshot),
        *_waiting(ranked, requests, snapshot, planned),
        *(unranked_row(key, requests[key]) for key in outside),
        *_pending(requests),
    ]
    refusals = [planned.refusals[key] for key in ranked if key in planned.refusals]
    refusals += [Refusal(key, _why_outside(requests[key]), _said(requests[key], wanted)) for key in outside]
    return Schedule(tuple(rows), (*refusals, *unread), planned)


def _said(status: GPRStatus, wanted: Wanted) -> str:
    """The refusal that holds now, whatever was committed last."""
    return (
        status.message or "" if status.accepted_spec.stopped else "; ".join(hard_violations(status, wanted))
    )


def _why_outside(status: GPRStatus) -> str:
    return STOPPED if status.accepted_spec.stopped else str(Reason.LIMIT_EXCEEDED)


def refusal_json(refusal: Refusal) -> dict[str, Any]:
    slice_, _, name = refusal.key.partition("/")
    return {
        "slice": slice_,
        "name": name,
        "reason": str(refusal.reason),
        "message": refusal.message,
        "wouldFit": refusal.would_fit or None,
    }


def unread_refusal(
    key: str, filed: Filed, spec: RequestSpec | None, wanted: Wanted, problems: Iterable[Problem]
) -> Refusal:
    """Why a request without a status is not planned, and what would be allowed."""
    slice_ = None if spec is None else wanted.slices.get(spec.slice)
    if spec is not None and slice_ is not None:
        broken = limit_violations(spec, slice_)
        if broken:
            allowed = "; ".join(f"{v.field} {v.allowed}" for v in broken)
            return Refusal(key, Reason.LIMIT_EXCEEDED, "; ".join(v.message for v in broken), allowed)
    path = gpr_path(*key.split("/"))
    rule = next((p.rule for p in problems if p.file == path and p.severity == "error"), "InvalidFile")
    return Refusal(key, rule, filed.problem)


def _holding(requests: Mapping[str, GPRStatus], snapshot: Snapshot) -> Iterable[Row]:
    for key, status in sorted(live(requests).items()):
        if status.phase not in HOLDING:
            continue
        held = status.assignment
        pool = None if held is None else (held.cluster, held.pool)
        known = None if pool is None else snapshot.pools.get(pool)
        yield Row(
            key=key,
            phase=status.phase,
            start=status.start_time or status.estimated_start_time,
            end=status.end_time or status.estimated_end_time,
            pool=pool,
            gpu_shape=None if known is None else known.gpu_shape,
            nodes=None if held is None else held.nodes,
            reason=status.reason,
        )


def _waiting(
    ranked: list[str], requests: Mapping[str, GPRStatus], snapshot: Snapshot, planned: Plan
) -> Iterable[Row]:
    ahead: Counter[PoolKey] = Counter()
    for rank, key in enumerate(ranked, start=1):
        place = planned.placements.get(key)
        if place is not None:
            ahead[place.pool] += 1
        position = None if place is None else ahead[place.pool]
        yield ranked_row((key, requests[key]), (rank, position), snapshot, planned)


def ranked_row(
    one: tuple[str, GPRStatus], turn: tuple[int, int | None], snapshot: Snapshot, planned: Plan
) -> Row:
    """A planned request; `turn`: its rank, and its position among those waiting for the same pool."""
    (key, status), (rank, position) = one, turn
    place = planned.placements.get(key)
    if place is None or position is None:
        return Row(key, status.phase, rank, reason=str(planned.refusals[key].reason))
    return _placed(key, rank, position, place, snapshot, status)


def unranked_row(key: str, status: GPRStatus) -> Row:
    """A waiting request that is not planned: it needs an approval, or exceeds its slice's limits."""
    if status.phase is Phase.PENDING_APPROVAL:
        return Row(key, status.phase, reason=Reason.NEEDS_APPROVAL)
    return Row(key, status.phase, reason=_why_outside(status))


def _placed(
    key: str, rank: int, position: int, place: Placement, snapshot: Snapshot, status: GPRStatus
) -> Row:
    pool = snapshot.pools[place.pool]
    # This plan replaces what the last one said; what happened (its checks failed) still holds.
    kept = None if status.reason in set(Reason) | {"ClusterObserved"} else status.reason
    return Row(
        key=key,
        phase=status.phase,
        rank=rank,
        position=position,
        start=instant(place.start),
        end=instant(place.end),
        pool=place.pool,
        gpu_shape=pool.gpu_shape,
        reason="ClusterObserved" if pool.observed else kept,
        forecast=status.forecast if status.estimated_start_time == instant(place.start) else None,
    )


def _pending(requests: Mapping[str, GPRStatus]) -> Iterable[Row]:
    for key, status in sorted(live(requests).items()):
        if status.phase is Phase.PENDING_APPROVAL:
            yield unranked_row(key, status)
