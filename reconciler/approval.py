"""Whether a waiting request needs an admin's word, and whether it has it. Pure.

In force is an unsigned Approval by an admin the Project lists, for exactly this content, not past its end and
within its limit. A policy that changed re-judges whoever waits; who holds nodes keeps his terms.
"""

from __future__ import annotations

from datetime import datetime

from reconciler.conditions import with_slip, without_promise
from reconciler.events import Event, Told
from reconciler.facts import Scene, Turn
from scheduler.fit import approval_reasons, candidate_pools, limit_violations, usable_pools
from scheduler.lifecycle import Event as Move
from scheduler.lifecycle import advance
from schemas.approval import Approval
from schemas.status import WAITING, ApprovalState, Cause, GPRStatus, Phase


def approval_turn(key: str, status: GPRStatus, scene: Scene) -> Turn:
    """Moves a waiting request between PendingApproval, Queued and Rejected."""
    if status.phase not in WAITING or status.accepted_spec.slice not in scene.wanted.slices:
        return Turn(status)
    words = standing_words(key, status, scene)
    rejection = next((word for word in words if word.spec.decision == "reject"), None)
    if rejection is not None:
        return _rejected(key, status, rejection, scene.now)
    reasons = needed_reasons(status, scene)
    approval = next((w for w in words if w.spec.decision == "approve" and is_enough(w, status, scene)), None)
    if reasons and approval is None:
        return _pending(key, status, reasons, scene)
    return _queued(key, status, reasons, approval, scene.now)


def standing_words(key: str, status: GPRStatus, scene: Scene) -> tuple[Approval, ...]:
    """Decisions on this request that count now, by the approver's name."""
    admins = {person.handle for person in scene.wanted.project.admins}
    return tuple(
        word
        for word in sorted(scene.wanted.approvals.get(key, ()), key=lambda w: w.metadata.name)
        if word.metadata.name in admins
        and word.spec.spec_digest == status.spec_digest
        and (word.spec.not_after is None or scene.now < word.spec.not_after)
    )


def is_enough(word: Approval, status: GPRStatus, scene: Scene) -> bool:
    """True when an approval's limit covers the request in at least one pool that fits it."""
    spec, wanted = status.accepted_spec, scene.wanted
    slice_, limit = wanted.slices[spec.slice], word.spec.limit
    if limit is None or limit.nodes < spec.nodes:
        return False
    fitting = candidate_pools(spec, slice_, wanted.pools)
    return not fitting or bool(usable_pools(spec, slice_, wanted.project.limits, wanted.pools, limit))


def needed_reasons(status: GPRStatus, scene: Scene) -> tuple[str, ...]:
    """Why an admin must approve this request: QuotaExceeded, NodeLimitExceeded, LimitExceeded; () if nothing."""
    spec = status.accepted_spec
    slice_ = scene.wanted.slices[spec.slice]
    needs = approval_reasons(spec, slice_, scene.wanted.project.limits, scene.wanted.pools)
    return tuple(need.reason for need in needs)


def hard_violations(status: GPRStatus, scene: Scene) -> tuple[str, ...]:
    """Sentences on the slice's hard limits this request breaks since a policy changed."""
    slice_ = scene.wanted.slices.get(status.accepted_spec.slice)
    if slice_ is None:
        return ("its slice is gone",)
    return tuple(violation.message for violation in limit_violations(status.accepted_spec, slice_))


def _pending(key: str, status: GPRStatus, reasons: tuple[str, ...], scene: Scene) -> Turn:
    if status.phase is Phase.PENDING_APPROVAL:
        return Turn(status)
    why = " and ".join(reasons)
    slipped, told = _without_start(key, status, scene.now)
    pending = without_promise(slipped).model_copy(
        update={
            "phase": advance(status.phase, Move.WITHHOLD),
            "reason": "NeedsApproval",
            "message": f"{why}: an admin approves it with `egs approve {key}`",
            "approval": ApprovalState(reasons=reasons),
        }
    )
    waits = Event(scene.now, Told.PENDING_APPROVAL, f"{key} waits for approval: {why}", key)
    return Turn(pending, (*told, waits))


def _without_start(key: str, status: GPRStatus, now: datetime) -> tuple[GPRStatus, tuple[Event, ...]]:
    """A start that was promised goes only with its cause: its own edit, or a word or rule that changed."""
    if status.estimated_start_time is None:
        return status, ()
    cause = Cause.REQUEST_CHANGED if status.filed_at == now else Cause.POLICY_CHANGED
    told = Event(now, Told.DELAYED, f"{key} lost its start: {cause}, it needs an approval", key)
    return with_slip(status, None, cause, key, now), (told,)


def _queued(
    key: str, status: GPRStatus, reasons: tuple[str, ...], approval: Approval | None, now: datetime
) -> Turn:
    """In the queue, with the word that let it in: its limit says which pools may serve."""
    word = _recorded(status, reasons, approval, now) if reasons else None
    if status.phase is Phase.QUEUED and word == status.approval:
        return Turn(status)
    queued = status.model_copy(update={"approval": word})
    if status.phase is not Phase.QUEUED:
        phase = advance(status.phase, Move.ALLOW if word is None else Move.APPROVE)
        queued = queued.model_copy(update={"phase": phase, "reason": None, "message": None})
    elif word is None:
        return Turn(queued)
    what = f"{key} needs no approval any more" if word is None else f"{key} was approved by {word.by}"
    return Turn(queued, (Event(now, Told.APPROVED, what, key),), (Cause.APPROVED, key))


def _recorded(
    status: GPRStatus, reasons: tuple[str, ...], approval: Approval | None, now: datetime
) -> ApprovalState | None:
    """The approval as the status shows it; one that is recorded already keeps its time."""
    if approval is None:
        return None
    word = ApprovalState(
        reasons=reasons,
        decision="approve",
        by=approval.metadata.name,
        message=approval.spec.reason,
        limit=approval.spec.limit,
        at=now,
    )
    known = status.approval
    return known if known is not None and known.model_copy(update={"at": now}) == word else word


def _rejected(key: str, status: GPRStatus, word: Approval, now: datetime) -> Turn:
    by, why = word.metadata.name, word.spec.reason or "no reason given"
    queued = status.phase is Phase.QUEUED  # a word against it counts also where none was needed
    pending = advance(status.phase, Move.WITHHOLD) if queued else status.phase
    rejected = without_promise(status).model_copy(
        update={
            "phase": advance(pending, Move.REJECT),
            "reason": "Rejected",
            "message": f"rejected by {by}: {why}",
            "approval": ApprovalState(decision="reject", by=by, message=why, at=now),
        }
    )
    return Turn(rejected, (Event(now, Told.REJECTED, f"{key} was rejected by {by}: {why}", key),))
