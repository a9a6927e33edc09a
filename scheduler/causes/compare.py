"""The effect of a change on all requests: two worlds planned, and each difference with its cause."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from scheduler.causes.causes import BUDGET, Moved, slipped
from scheduler.causes.changes import asked, changes_between, promised
from scheduler.plan import plan
from scheduler.promises import with_promises
from scheduler.snapshot import Change, Plan, Request, Snapshot
from schemas.status.gpr_status import Cause


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect on one request; `was` and `now` are starts, `cause` and `by` belong to later and refused ones."""

    key: str
    change: Literal["new", "earlier", "later", "gone", "refused"]
    was: int | None
    now: int | None
    cause: Cause | None = None
    by: str = ""
    proven: bool = True  # False: the cause is the likeliest one; there was no time to prove it


@dataclass(frozen=True, slots=True)
class Comparison:
    """The effect on all requests, and the plan after the change."""

    effects: tuple[Effect, ...]
    world: Snapshot  # after the change, with the earlier promises
    planned: Plan  # of that world


def compare(before: Snapshot, after: Snapshot) -> tuple[Effect, ...]:
    """The effects of going from `before` to `after`, in rank order, removed requests last.

    The plan of `before` counts as promised, as it would be when `after` is merged.
    """
    return compared(as_planned(before), after).effects


def as_planned(snapshot: Snapshot) -> Snapshot:
    """`snapshot` with its own plan as promises. Costs a plan."""
    return with_promises(snapshot, plan(snapshot))


def compared(committed: Snapshot, after: Snapshot, budget: int = BUDGET) -> Comparison:
    """As `compare`, from a world that is `as_planned`, with the plan.

    At most `budget` more plans are made to prove causes.
    """
    merged = carry(committed, after)
    planned = plan(merged)
    starts, was = planned.starts(), {key: promised(committed, merged, key) for key in planned.order}
    later = [
        (key, old, now)
        for key, old in was.items()
        if old is not None and ((now := starts.get(key)) is None or now > old)
    ]
    found = slipped(later, (committed, merged), changes_between(committed, merged), planned, budget)
    moved = {slip.key: slip for slip in found}
    effects = [
        _effect((committed, merged), (old, starts.get(key)), moved.get(key), key) for key, old in was.items()
    ]
    gone = [
        Effect(key, "gone", promised(committed, committed, key), None)
        for key in sorted(committed.requests)
        if key not in merged.requests and key not in merged.leases
    ]
    return Comparison((*(effect for effect in effects if effect is not None), *gone), merged, planned)


def carry(committed: Snapshot, after: Snapshot) -> Snapshot:
    """`after` with the promises of `committed` for all requests that are unchanged."""
    requests = {
        key: request if key in after.leases else _carried(committed.requests.get(key), request)
        for key, request in after.requests.items()
    }
    return replace(after, requests=requests)


def _carried(old: Request | None, request: Request) -> Request:
    if old is request:
        return request
    same = old is not None and asked(old) == asked(request)
    if old is None or not same:
        return replace(request, promise=None)
    return replace(request, promise=old.promise, may_displace=old.may_displace)


def _effect(
    worlds: tuple[Snapshot, Snapshot], at: tuple[int | None, int | None], slip: Moved | None, key: str
) -> Effect | None:
    """`at`: its start before and after."""
    (committed, merged), (was, now) = worlds, at
    if was == now and was is not None and key in committed.requests:
        return None
    first: Change | None = slip.causes[0] if slip is not None and slip.causes else None
    cause, by = (None, "") if first is None else (first.cause, first.by)
    proven = slip is None or slip.proven
    if key not in committed.requests:
        if key in merged.leases:
            return None  # it runs; its eviction is reported separately
        return Effect(key, "new" if now is not None else "refused", None, now)
    if now is None:
        return None if was is None else Effect(key, "refused", was, None, cause, by, proven)
    if was is None or now < was:
        return Effect(key, "earlier", was, now)
    return Effect(key, "later", was, now, cause, by, proven) if now > was else None
