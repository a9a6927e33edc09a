"""Which requests are let in if a slice's monthly GPU-hours, or its queued requests, are limited. Pure.

A monthly limit counts the leases that begin in the month and all queued requests: a request is charged in
full from when it is let in until it has nodes. Charges never grow, so only a changed policy pushes requests
out again, newest first; until there is room they wait without a start. An evicted request keeps its position
and its hours. Held by tests/cases/reconciler/limits.yaml:
  * the charges and usage of a month never exceed a limit that was in force all along;
  * a request that was let in stays in while the policy is unchanged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType

from reconciler.accounts.gpu_hours import (
    BEYOND_QUOTA,
    SLACK,
    hours,
    is_beyond_quota,
    month_of,
    owed,
    spent_in,
    under_way,
)
from reconciler.approvals.is_approved import OUTSIDE, approval_outcome
from reconciler.model.facts import Context, Facts, RequestOutcome, Wanted
from reconciler.model.status_edits import lease_duration, with_condition, without_condition
from reconciler.model.statuses import live
from scheduler.choices.fit import candidate_pools, limit_violations, usable_pools
from scheduler.snapshot import PoolKey
from schemas.documents.gpr import RequestSpec
from schemas.documents.slice import SliceSpec
from schemas.rules.limits import HourBound, hour_bounds
from schemas.status.gpr_status import WAITING, Charge, Condition, GPRStatus, Phase
from schemas.status.usage import UsageRecord

_MAY_TAKE = "its slice may take"


def bounded_slices(wanted: Wanted) -> frozenset[str]:
    """Slices whose monthly hours, or queued requests, are limited: theirs are let in one after the other."""
    return frozenset(
        n for n, s in wanted.slices.items() if s.limits.max_waiting is not None or hour_bounds(s)
    )


def unbounded_outcome(key: str, status: GPRStatus, context: Context) -> RequestOutcome:
    """What becomes of a request of any other slice: whether an admin has to agree; nothing is charged any more."""
    bare = _without_charge(status) if status.phase in WAITING else status
    return approval_outcome(key, bare, context)


def bounded_outcomes(
    slices: Collection[str],
    requests: Mapping[str, GPRStatus],
    usage: Mapping[str, UsageRecord],
    context: Context,
) -> Iterator[tuple[str, RequestOutcome]]:
    """What becomes of all that wait in these slices: whether each is let in, and whether an admin has to agree."""
    found: dict[str, dict[str, GPRStatus]] = {name: {} for name in sorted(slices)}
    for key, status in live(requests).items():
        if status.accepted_spec.slice in found:
            found[status.accepted_spec.slice][key] = status
    for name, own in found.items():
        account = account_of(name, own.values(), usage.get(name), (context.wanted, context.now))
        waiting = [key for key, status in own.items() if status.phase in WAITING]
        waiting.sort(key=lambda key: _turn_of(key, own[key]))
        outcomes = {key: _let_in(key, own[key], account, context) for key in waiting}
        yield from ((key, _with_what_is_left(outcome, account, context)) for key, outcome in outcomes.items())


def _turn_of(key: str, status: GPRStatus) -> tuple[object, ...]:
    """Requests that are in come first, then promised ones; last those approved beyond the quota: they take no room."""
    has_word = status.approval is not None and status.approval.decision == "approve"
    return (status.charge is None, status.estimated_start_time is None, has_word, status.filed_at, key)


# -- the account of one slice ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Want:
    cluster: str
    gpu_shape: str
    gpu_hours: float

    def is_under(self, bound: HourBound) -> bool:
        return bound.covers(self.cluster, self.gpu_shape)


Wants = Mapping[PoolKey, Want]
NOTHING: Wants = MappingProxyType({})


def _most(wants: Wants, bound: HourBound) -> float:
    return max((want.gpu_hours for want in wants.values() if want.is_under(bound)), default=0.0)


@dataclass(slots=True)
class Account:
    """What a slice has used of its month so far, by limit, and how many of its requests are queued."""

    slice_: SliceSpec
    month: str
    bounds: tuple[HourBound, ...]
    taken: dict[HourBound, float] = field(default_factory=dict)
    waiting: int = 0

    def left(self, bound: HourBound) -> float:
        return bound.gpu_hours - self.taken.get(bound, 0.0)

    def take(self, wants: Wants, *, beyond_quota: bool, instead_of: Wants = NOTHING) -> None:
        """Charges a request in every pool where it may run, with the most that it can hold there."""
        for bound in self.bounds:
            if bound.is_hard or not beyond_quota:
                more = _most(wants, bound) - _most(instead_of, bound)
                self.taken[bound] = self.taken.get(bound, 0.0) + more

    def has_room(self, now: Wants, wider: Wants, *, beyond_quota: bool) -> bool:
        """True if a request charged for some pools could also be charged for more."""
        return all(
            _most(wider, bound) - _most(now, bound) <= self.left(bound) + SLACK
            for bound in self.bounds
            if bound.is_hard or not beyond_quota
        )

    def over(self, want: Want) -> tuple[HourBound, ...]:
        """The limits that a request would exceed in that pool."""
        return tuple(b for b in self.bounds if want.is_under(b) and want.gpu_hours > self.left(b) + SLACK)


def account_of(
    name: str, own: Iterable[GPRStatus], record: UsageRecord | None, known: tuple[Wanted, datetime]
) -> Account:
    """The account before any waiting request is let in: the ledger, and the running leases."""
    wanted, month = known[0], month_of(known[1])
    slice_ = wanted.slices[name]
    account = Account(slice_, month, hour_bounds(slice_))
    holding = [taken for s in own if (taken := under_way(s, month, wanted)) is not None]
    for taken in (*spent_in(record, month), *holding):
        for bound in account.bounds:
            if bound.covers(taken.cluster, taken.gpu_shape):
                counts = taken.gpu_hours if bound.is_hard else taken.gpu_hours - taken.approved
                account.taken[bound] = account.taken.get(bound, 0.0) + counts
    return account


def full_account(name: str, facts: Facts, wanted: Wanted) -> Account:
    """The account with all admitted requests charged: what a request filed now would face."""
    own = [status for status in live(facts.requests).values() if status.accepted_spec.slice == name]
    account = account_of(name, own, facts.usage.get(name), (wanted, facts.at))
    for status in own:
        if status.phase in WAITING and not status.accepted_spec.stopped and not _is_back(status):
            account.waiting += not any(condition.type == OUTSIDE for condition in status.conditions)
        if status.phase is Phase.QUEUED and status.charge is not None and not _is_paid(status, account):
            wants, barred = verdict(status.accepted_spec, status, account, wanted).wants, barred_pools(status)
            open_ = {pool: want for pool, want in wants.items() if pool not in barred}
            account.take(open_, beyond_quota=is_beyond_quota(status))
    return account


# -- one request -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Verdict:
    """Pools whose hours are used up: by a limit for everyone, or by the quota without an approval."""

    wants: Mapping[PoolKey, Want]
    hard: Mapping[PoolKey, HourBound]
    soft: Mapping[PoolKey, HourBound]

    def barred(self, *, beyond_quota: bool) -> frozenset[PoolKey]:
        return frozenset(self.hard if beyond_quota else {**self.hard, **self.soft})


def verdict(spec: RequestSpec, status: GPRStatus | None, account: Account, wanted: Wanted) -> Verdict:
    """The account's verdict on a request, recorded or hypothetical."""
    duration = spec.duration if status is None else min(lease_duration(status), owed(status))
    wants: dict[PoolKey, Want] = {}
    for key in candidate_pools(spec, account.slice_, wanted.pools):
        pool = wanted.pools[key]
        wants[key] = Want(key[0], pool.gpu_shape, hours(spec.nodes, pool.gpus_per_node, duration))
    over = {key: account.over(want) for key, want in wants.items()}
    hard = {key: found[0] for key, found in over.items() if found and found[0].is_hard}
    soft = {key: found[-1] for key, found in over.items() if found and not found[-1].is_hard}
    return Verdict(wants, hard, soft)


def needs_more_quota(found: Verdict, free: Iterable[PoolKey]) -> bool:
    """True if only the month's quota keeps a request from the pools that need no approval."""
    open_ = [key for key in free if key not in found.hard]
    return bool(open_) and all(key in found.soft for key in open_)


def _let_in(key: str, status: GPRStatus, account: Account, context: Context) -> RequestOutcome:
    spec, most = status.accepted_spec, account.slice_.limits.max_waiting
    if spec.stopped:
        outcome = approval_outcome(key, status, context)
        return outcome if outcome.status is None else replace(outcome, status=_without_charge(outcome.status))
    if most is not None and account.waiting >= most and not _is_back(status):
        return _outside(status, queue_full(most), context)
    account.waiting += not _is_back(status)
    if _is_paid(status, account):
        outcome = approval_outcome(key, status, context)
        is_in = outcome.status is None or outcome.status.phase is Phase.QUEUED
        return outcome if is_in else replace(outcome, status=_without_charge(outcome.status or status))
    found = verdict(spec, status, account, context.wanted)
    free = usable_pools(spec, account.slice_, context.wanted.project, context.wanted.pools, None)
    more = (BEYOND_QUOTA,) if needs_more_quota(found, free or tuple(found.wants)) else ()
    outcome = approval_outcome(key, status, context, more)
    judged = outcome.status
    if judged is None or judged.phase is not Phase.QUEUED:
        return outcome if judged is None else replace(outcome, status=_without_charge(judged))
    return _charged((outcome, judged), found, account, context)


def _is_back(status: GPRStatus) -> bool:
    """True if it was evicted or lost its nodes: then it takes no additional room in its slice's queue."""
    return status.charge is not None and status.charge.month is not None


def _is_paid(status: GPRStatus, account: Account) -> bool:
    """True if all of it counts in a past month; it may then use the same pools as before."""
    month = None if status.charge is None else status.charge.month
    return month is not None and month < account.month


def _charged(
    judged: tuple[RequestOutcome, GPRStatus], found: Verdict, account: Account, context: Context
) -> RequestOutcome:
    """Let in, with its charge; or outside, if every pool that it may use is barred."""
    outcome, status = judged
    beyond, usable = is_beyond_quota(status), _usable(status, account, context.wanted)
    barred = found.barred(beyond_quota=beyond) | barred_pools(status)
    open_ = {pool: found.wants[pool] for pool in usable if pool not in barred}
    if usable and not open_:
        outside = _outside(status, too_few_hours(usable[0], found, account), context)
        return replace(outside, events=outcome.events, cause=outcome.cause)
    account.take(open_, beyond_quota=beyond)
    return replace(outcome, status=_with_charge(status, open_, (pool for pool in usable if pool in barred)))


def _usable(status: GPRStatus, account: Account, wanted: Wanted) -> tuple[PoolKey, ...]:
    limit = None if status.approval is None else status.approval.limit
    return usable_pools(status.accepted_spec, account.slice_, wanted.project, wanted.pools, limit)


def _with_what_is_left(outcome: RequestOutcome, account: Account, context: Context) -> RequestOutcome:
    """After all charges: barred pools open as far as there is room, and messages get the final number."""
    status = outcome.status
    if status is not None and status.charge is None and status.phase is Phase.QUEUED:
        return _told_anew(outcome, status, account, context)
    if status is None or not barred_pools(status) or _is_paid(status, account):
        return outcome
    found, beyond = verdict(status.accepted_spec, status, account, context.wanted), is_beyond_quota(status)
    shut = {pool for pool in barred_pools(status) if pool in found.wants}
    open_ = {pool: want for pool, want in found.wants.items() if pool not in shut}
    for pool in sorted(shut):
        wider = {**open_, pool: found.wants[pool]}
        if account.has_room(open_, wider, beyond_quota=beyond):
            account.take(wider, beyond_quota=beyond, instead_of=open_)
            open_, shut = wider, shut - {pool}
    return replace(outcome, status=_with_charge(status, open_, shut))


def _told_anew(
    outcome: RequestOutcome, status: GPRStatus, account: Account, context: Context
) -> RequestOutcome:
    is_short = any(c.type == OUTSIDE and c.message.startswith(_MAY_TAKE) for c in status.conditions)
    usable = _usable(status, account, context.wanted) if is_short else ()
    if not usable:
        return outcome
    found = verdict(status.accepted_spec, status, account, context.wanted)
    if usable[0] not in found.barred(beyond_quota=is_beyond_quota(status)):
        return outcome
    return replace(outcome, status=_outside(status, too_few_hours(usable[0], found, account), context).status)


def is_out(status: GPRStatus, wanted: Wanted) -> bool:
    """True if a request of an existing slice is not planned: it waits outside, or violates a hard limit."""
    if any(condition.type == OUTSIDE for condition in status.conditions):
        return True
    spec = status.accepted_spec
    return bool(limit_violations(spec, wanted.slices[spec.slice], wanted.pools))


def barred_pools(status: GPRStatus) -> frozenset[PoolKey]:
    """Pools that it may not use, because its slice's hours there are used up."""
    if status.charge is None:
        return frozenset()
    return frozenset((cluster, pool) for cluster, _, pool in (b.partition("/") for b in status.charge.barred))


def _with_charge(status: GPRStatus, wants: Mapping[PoolKey, Want], barred: Iterable[PoolKey]) -> GPRStatus:
    charge = Charge(
        gpu_hours=round(max((want.gpu_hours for want in wants.values()), default=0.0), 4),
        barred=tuple(sorted("/".join(pool) for pool in barred)),
        month=None if status.charge is None else status.charge.month,
    )
    charged = without_condition(status, OUTSIDE)
    return charged if charged.charge == charge else charged.edited(charge=charge)


def too_few_hours(pool: PoolKey, found: Verdict, account: Account) -> str:
    """Why a request cannot use that pool, or waits outside."""
    bound, asks = found.hard.get(pool) or found.soft[pool], found.wants[pool].gpu_hours
    may = f"{_MAY_TAKE} {bound.gpu_hours} GPU-hours a month{bound.where}"
    if asks > bound.gpu_hours:
        return f"{may}, but this request needs {asks:g}; ask for fewer nodes or less time"
    left = f"{max(0.0, account.left(bound)):g} are left in {account.month}"
    return f"{may}; {left} and it needs {asks:g}; it is queued when there is room"


def queue_full(most: int) -> str:
    """Why the newest request of a slice waits outside."""
    return f"its slice may have {most} requests in the queue; it is queued when another one leaves"


def _outside(status: GPRStatus, message: str, context: Context) -> RequestOutcome:
    condition = Condition(type=OUTSIDE, reason="LimitExceeded", message=message, at=context.now)
    return RequestOutcome(with_condition(_uncharged(status), condition))


def _without_charge(status: GPRStatus) -> GPRStatus:
    return _uncharged(without_condition(status, OUTSIDE))


def _uncharged(status: GPRStatus) -> GPRStatus:
    return status if status.charge is None else status.edited(charge=None)
