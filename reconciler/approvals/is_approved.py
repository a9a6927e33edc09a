"""Whether a waiting request needs an admin's approval, and whether it has one. Pure.

`reconciler.approvals.who_approved` decides which approvals are genuine; this module, whether they cover the
request: this exact content, not expired, within their limits, and by two admins if required. A changed
policy re-judges waiting requests; a running lease keeps its terms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations

from reconciler.model.events import Event, EventReason
from reconciler.model.evidence import ApprovalDecision
from reconciler.model.facts import Context, RequestOutcome, Wanted
from reconciler.model.status_edits import with_slip, without_promise
from scheduler.choices.fit import (
    approval_reasons,
    candidate_pools,
    largest_hold,
    limit_violations,
    usable_pools,
)
from scheduler.lifecycle import Event as Move
from scheduler.lifecycle import advance
from schemas.documents.approval import ApprovalLimit
from schemas.documents.gpr import RequestSpec
from schemas.rules.fit import free_priority
from schemas.status.gpr_status import WAITING, ApprovalState, Cause, GPRStatus, Phase

OUTSIDE = "OverLimit"
"""The condition of a request kept out of the queue by a limit; see `reconciler.accounts.monthly_limits`."""
MOST_IGNORED = 3
"""Sentences on approvals that do not count, in one message."""


@dataclass(frozen=True, slots=True)
class Consent:
    """Approvals that suffice together, and the most that they let the request hold."""

    decisions: tuple[ApprovalDecision, ...]
    limit: ApprovalLimit


def approval_outcome(
    key: str, status: GPRStatus, context: Context, more: tuple[str, ...] = ()
) -> RequestOutcome:
    """Moves a waiting request between PendingApproval, Queued and Rejected; `more`: further reasons for an approval."""
    if status.phase not in WAITING or status.accepted_spec.slice not in context.wanted.slices:
        return RequestOutcome(status)
    decisions = standing_decisions(key, status, context)
    rejection = next((decision for decision in decisions if decision.verdict == "reject"), None)
    if rejection is not None:
        return _rejected(key, status, rejection, context.now)
    reasons = (*needed_reasons(status, context), *more)
    if not reasons:
        return _queued(key, status, (), None, context.now)
    cause, status = _why_not(key, status, context), _bound_anew(status, context)
    decisions = tuple(d for d in standing_decisions(key, status, context) if d.verdict == "approve")
    consent = consent_of(decisions, status.accepted_spec, context.wanted)
    if consent is None:
        return _pending(key, status, (reasons, decisions, cause), context)
    return _queued(key, status, reasons, consent, context.now)


def standing_decisions(key: str, status: GPRStatus, context: Context) -> tuple[ApprovalDecision, ...]:
    """Decisions on the present content of this request, in the order of their authors' names."""
    return tuple(
        decision
        for decision in sorted(context.wanted.decisions.get(key, ()), key=lambda d: (d.by, d.id))
        if decision.rule == "request"
        and (decision.digest == status.spec_digest or decision.id in _carried(status))
        and (decision.not_after is None or context.now < decision.not_after)
    )


def with_free_edits(status: GPRStatus, accepted: RequestSpec, ceiling: int) -> GPRStatus:
    """A request that holds nodes, after an edit allowed at any time; it keeps its approvals, as its terms are the same.

    `ceiling` is the priority from which an approval is bound to the priority.
    """
    was, now = status.accepted_spec.digest(ceiling), accepted.digest(ceiling)
    status = status.edited(accepted_spec=accepted)
    if now == was or status.spec_digest != was:  # bound by another policy: the policy check decides
        return status
    known = status.approval
    return status.edited(spec_digest=now, approval=None if known is None else known.edited(digest=now))


def _carried(status: GPRStatus) -> tuple[str, ...]:
    """Names of approvals of an earlier content that still count for the present one."""
    known = status.approval
    return known.ids if known is not None and known.digest == status.spec_digest else ()


def _bound_anew(status: GPRStatus, context: Context) -> GPRStatus:
    """With the digest that approvals need under the present policy, which says which priorities they are bound to."""
    spec, wanted = status.accepted_spec, context.wanted
    digest = spec.digest(free_priority(wanted.slices[spec.slice], wanted.project))
    return status if digest == status.spec_digest else status.edited(spec_digest=digest)


# -- what is enough --------------------------------------------------------------------------------------------------


def consent_of(decisions: tuple[ApprovalDecision, ...], spec: RequestSpec, wanted: Wanted) -> Consent | None:
    """The first approval, or pair of approvals, that covers the request in at least one pool it fits."""
    return next((c for c in _consents(decisions, spec, wanted) if _is_enough(c.limit, spec, wanted)), None)


def _consents(
    decisions: tuple[ApprovalDecision, ...], spec: RequestSpec, wanted: Wanted
) -> Iterator[Consent]:
    """Pairs before single approvals where the project has a second threshold: pairs allow more."""
    above = wanted.project.approval.two_admins_above
    # An approval without limits of its own covers whatever the content asks for.
    slice_ = wanted.slices[spec.slice]
    limits = {d.id: d.limit or largest_hold(spec, slice_, wanted.pools) for d in decisions}
    if above is None:
        yield from (Consent((decision,), limits[decision.id]) for decision in decisions)
        return
    for one, other in combinations(decisions, 2):
        if one.email.lower() != other.email.lower():
            yield Consent((one, other), _least(limits[one.id], limits[other.id]))
    for decision in decisions:
        limit = limits[decision.id]
        gpus, nodes = above.gpus or limit.gpus, above.nodes or limit.nodes
        yield Consent((decision,), _least(limit, ApprovalLimit(gpus=gpus, nodes=nodes)))


def _least(one: ApprovalLimit, other: ApprovalLimit) -> ApprovalLimit:
    return ApprovalLimit(gpus=min(one.gpus, other.gpus), nodes=min(one.nodes, other.nodes))


def _is_enough(limit: ApprovalLimit, spec: RequestSpec, wanted: Wanted) -> bool:
    slice_ = wanted.slices[spec.slice]
    if limit.nodes < spec.nodes:
        return False
    fitting = candidate_pools(spec, slice_, wanted.pools)
    return not fitting or bool(usable_pools(spec, slice_, wanted.project, wanted.pools, limit))


def needed_reasons(status: GPRStatus, context: Context) -> tuple[str, ...]:
    """Why this request needs an approval, as `schemas.rules.fit` lists it; () if it needs none."""
    spec, wanted = status.accepted_spec, context.wanted
    needs = approval_reasons(spec, wanted.slices[spec.slice], wanted.project, wanted.pools)
    return tuple(dict.fromkeys(need.reason for need in needs))


def hard_violations(status: GPRStatus, wanted: Wanted) -> tuple[str, ...]:
    """Sentences on the hard limits that keep a waiting request out of the queue."""
    slice_ = wanted.slices.get(status.accepted_spec.slice)
    if slice_ is None:
        return ("its slice is gone",)
    broken = limit_violations(status.accepted_spec, slice_, wanted.pools)
    outside = (c.message for c in status.conditions if c.type == OUTSIDE)
    return (*(violation.message for violation in broken), *outside)


# -- what becomes of the request -------------------------------------------------------------------------------------


def _pending(
    key: str,
    status: GPRStatus,
    found: tuple[tuple[str, ...], tuple[ApprovalDecision, ...], Cause],
    context: Context,
) -> RequestOutcome:
    """Waiting for an approval. Insufficient approvals are listed too, so that they stay known as used."""
    reasons, decisions, cause = found
    why = " and ".join(reasons)
    ignored = [*_too_little(decisions), *context.wanted.ignored_decisions.get(key, ())][:MOST_IGNORED]
    shown = status.edited(
        reason="NeedsApproval",
        message="; ".join((f"{why}: an admin can approve it with `egs approve {key}`", *ignored)),
        approval=_shown(status, reasons, decisions),
    )
    if status.phase is Phase.PENDING_APPROVAL:
        return RequestOutcome(shown)  # what is missing may have changed
    slipped, told = _without_start(key, shown, cause, context.now)
    pending = without_promise(slipped).edited(phase=advance(status.phase, Move.WITHHOLD))
    waits = Event(context.now, EventReason.PENDING_APPROVAL, f"{key} waits for approval: {why}", key)
    return RequestOutcome(pending, (*told, waits))


def _shown(
    status: GPRStatus, reasons: tuple[str, ...], decisions: tuple[ApprovalDecision, ...]
) -> ApprovalState:
    if not decisions:
        return ApprovalState(reasons=reasons)
    digest = _other_digest(status, decisions)
    how, by, ids = decisions[0].how, _names(decisions), _ids(decisions)
    return ApprovalState(reasons=reasons, by=by, how=how, ids=ids, digest=digest)


def _other_digest(status: GPRStatus, decisions: tuple[ApprovalDecision, ...]) -> str | None:
    """The request's digest if these approvals name a different one."""
    return status.spec_digest if any(d.digest != status.spec_digest for d in decisions) else None


def _too_little(decisions: tuple[ApprovalDecision, ...]) -> tuple[str, ...]:
    if not decisions:
        return ()
    names = _names(decisions)
    if len(decisions) > 1:
        return (f"the approvals of {names} are not enough: their limits are below what is asked for",)
    why = "its limit is below what is asked for, or the request needs a second approval"
    return (f"the approval of {names} is not enough: {why}",)


def _why_not(key: str, status: GPRStatus, context: Context) -> Cause:
    """Why a request that was queued no longer would be: its own edit, else a changed approval or policy."""
    had = () if status.approval is None else status.approval.ids
    decisions = (d for d in context.wanted.decisions.get(key, ()) if d.rule == "request" and d.id in had)
    is_other = any(decision.digest != status.spec_digest for decision in decisions) and not _carried(status)
    return Cause.REQUEST_CHANGED if status.filed_at == context.now or is_other else Cause.POLICY_CHANGED


def _without_start(
    key: str, status: GPRStatus, cause: Cause, now: datetime
) -> tuple[GPRStatus, tuple[Event, ...]]:
    """A promised start is lost only with a stated cause."""
    if status.estimated_start_time is None:
        return status, ()
    told = Event(now, EventReason.DELAYED, f"{key} lost its start ({cause}): it needs an approval", key)
    return with_slip(status, None, cause, key, now), (told,)


def _queued(
    key: str, status: GPRStatus, reasons: tuple[str, ...], consent: Consent | None, now: datetime
) -> RequestOutcome:
    """Queued, with the approvals that let it in: their limit says which pools may serve it."""
    approval = None if consent is None else _recorded(status, reasons, consent, now)
    if status.phase is Phase.QUEUED and approval == status.approval:
        return RequestOutcome(status)
    queued = status.edited(approval=approval)
    if status.phase is not Phase.QUEUED:
        phase = advance(status.phase, Move.ALLOW if approval is None else Move.APPROVE)
        queued = queued.edited(phase=phase, reason=None, message=None)
    elif approval is None:
        return RequestOutcome(queued)
    what = (
        f"{key} no longer needs an approval" if approval is None else f"{key} was approved by {approval.by}"
    )
    return RequestOutcome(queued, (Event(now, EventReason.APPROVED, what, key),), (Cause.APPROVED, key))


def _recorded(status: GPRStatus, reasons: tuple[str, ...], consent: Consent, now: datetime) -> ApprovalState:
    """The approvals as the status shows them; a recorded one keeps its time."""
    decisions = consent.decisions
    approval = ApprovalState(
        reasons=reasons,
        decision="approve",
        by=_names(decisions),
        how=decisions[0].how,
        ids=_ids(decisions),
        message="; ".join(d.reason for d in decisions if d.reason),
        limit=consent.limit,
        digest=_other_digest(status, decisions),
        at=now,
    )
    known = status.approval
    return known if known is not None and known.edited(at=now) == approval else approval


def _names(decisions: tuple[ApprovalDecision, ...]) -> str:
    return ", ".join(dict.fromkeys(decision.by for decision in decisions))


def _ids(decisions: tuple[ApprovalDecision, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(decision.id for decision in decisions))


def _rejected(key: str, status: GPRStatus, decision: ApprovalDecision, now: datetime) -> RequestOutcome:
    by, why = decision.by, decision.reason or "no reason given"
    queued = status.phase is Phase.QUEUED  # a rejection counts even if no approval was needed
    pending = advance(status.phase, Move.WITHHOLD) if queued else status.phase
    told = ApprovalState(decision="reject", by=by, how=decision.how, ids=(decision.id,), message=why, at=now)
    rejected = without_promise(status).edited(
        phase=advance(pending, Move.REJECT),
        reason="Rejected",
        message=f"rejected by {by}: {why}",
        approval=told,
    )
    event = Event(now, EventReason.REJECTED, f"{key} was rejected by {by}: {why}", key)
    return RequestOutcome(rejected, (event,))
