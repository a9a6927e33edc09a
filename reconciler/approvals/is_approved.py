"""Whether a waiting request needs an admin's approval, and whether it has one. Pure.

`reconciler.approvals.who_approved` decides which approvals are genuine; this module decides whether they
cover the request: this exact content, not expired, within their limits, and by two admins where required. A
changed policy re-judges waiting requests; a running lease keeps its terms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations

from reconciler.model.events import Event, Told
from reconciler.model.evidence import Word
from reconciler.model.facts import Scene, Turn, Wanted
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
MOST_DOUBTS = 3
"""Sentences on approvals that do not count, in one message."""


@dataclass(frozen=True, slots=True)
class Consent:
    """Approvals that suffice together, and the most that they let the request hold."""

    words: tuple[Word, ...]
    limit: ApprovalLimit


def approval_turn(key: str, status: GPRStatus, scene: Scene, more: tuple[str, ...] = ()) -> Turn:
    """Moves a waiting request between PendingApproval, Queued and Rejected; `more`: further reasons for an
    approval.
    """
    if status.phase not in WAITING or status.accepted_spec.slice not in scene.wanted.slices:
        return Turn(status)
    words = standing_words(key, status, scene)
    rejection = next((word for word in words if word.decision == "reject"), None)
    if rejection is not None:
        return _rejected(key, status, rejection, scene.now)
    reasons = (*needed_reasons(status, scene), *more)
    if not reasons:
        return _queued(key, status, (), None, scene.now)
    cause, status = _why_not(key, status, scene), _bound_anew(status, scene)
    words = tuple(word for word in standing_words(key, status, scene) if word.decision == "approve")
    consent = consent_of(words, status.accepted_spec, scene.wanted)
    if consent is None:
        return _pending(key, status, (reasons, words, cause), scene)
    return _queued(key, status, reasons, consent, scene.now)


def standing_words(key: str, status: GPRStatus, scene: Scene) -> tuple[Word, ...]:
    """Decisions on this request as it reads now, in the order of their authors' names."""
    return tuple(
        word
        for word in sorted(scene.wanted.words.get(key, ()), key=lambda w: (w.by, w.id))
        if word.rule == "request"
        and (word.digest == status.spec_digest or word.id in _carried(status))
        and (word.not_after is None or scene.now < word.not_after)
    )


def with_free_edits(status: GPRStatus, accepted: RequestSpec, ceiling: int) -> GPRStatus:
    """A request that holds nodes, after an edit allowed at any time; the approvals that let it in stay with
    it.

    They were for the lease, whose terms did not change, so requeuing for the remaining time needs no new
    approval. `ceiling` is the priority from which an approval is bound to the priority.
    """
    was, now = status.accepted_spec.digest(ceiling), accepted.digest(ceiling)
    edited = status.model_copy(update={"accepted_spec": accepted})
    if now == was or status.spec_digest != was:  # bound by another policy: the policy check decides
        return edited
    known = status.approval
    words = None if known is None else known.model_copy(update={"digest": now})
    return edited.model_copy(update={"spec_digest": now, "approval": words})


def _carried(status: GPRStatus) -> tuple[str, ...]:
    """Names of approvals that count for the request as it reads now, though they named its earlier content."""
    known = status.approval
    return known.ids if known is not None and known.digest == status.spec_digest else ()


def _bound_anew(status: GPRStatus, scene: Scene) -> GPRStatus:
    """With the digest that approvals need under the present policy, which says which priorities they are
    bound to.
    """
    spec, wanted = status.accepted_spec, scene.wanted
    digest = spec.digest(free_priority(wanted.slices[spec.slice], wanted.project))
    return status if digest == status.spec_digest else status.model_copy(update={"spec_digest": digest})


# -- what is enough --------------------------------------------------------------------------------------------------


def consent_of(words: tuple[Word, ...], spec: RequestSpec, wanted: Wanted) -> Consent | None:
    """The first approval, or pair of approvals, that covers the request in at least one pool it fits."""
    return next((c for c in _consents(words, spec, wanted) if _is_enough(c.limit, spec, wanted)), None)


def _consents(words: tuple[Word, ...], spec: RequestSpec, wanted: Wanted) -> Iterator[Consent]:
    """Pairs before single approvals where the project has a second threshold: pairs allow more."""
    above = wanted.project.approval.two_admins_above
    limits = {word.id: word.limit or _as_asked(spec, wanted) for word in words}
    if above is None:
        yield from (Consent((word,), limits[word.id]) for word in words)
        return
    for one, other in combinations(words, 2):
        if one.email.lower() != other.email.lower():
            yield Consent((one, other), _least(limits[one.id], limits[other.id]))
    for word in words:
        limit = limits[word.id]
        gpus, nodes = above.gpus or limit.gpus, above.nodes or limit.nodes
        yield Consent((word,), _least(limit, ApprovalLimit(gpus=gpus, nodes=nodes)))


def _least(one: ApprovalLimit, other: ApprovalLimit) -> ApprovalLimit:
    return ApprovalLimit(gpus=min(one.gpus, other.gpus), nodes=min(one.nodes, other.nodes))


def _as_asked(spec: RequestSpec, wanted: Wanted) -> ApprovalLimit:
    """The limit of an approval without limits of its own: whatever the content asks for."""
    return largest_hold(spec, wanted.slices[spec.slice], wanted.pools)


def _is_enough(limit: ApprovalLimit, spec: RequestSpec, wanted: Wanted) -> bool:
    slice_ = wanted.slices[spec.slice]
    if limit.nodes < spec.nodes:
        return False
    fitting = candidate_pools(spec, slice_, wanted.pools)
    return not fitting or bool(usable_pools(spec, slice_, wanted.project, wanted.pools, limit))


def needed_reasons(status: GPRStatus, scene: Scene) -> tuple[str, ...]:
    """Why this request needs an approval, as `schemas.rules.fit` lists it; () if it needs none."""
    spec, wanted = status.accepted_spec, scene.wanted
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
    key: str, status: GPRStatus, found: tuple[tuple[str, ...], tuple[Word, ...], Cause], scene: Scene
) -> Turn:
    """Waiting for an approval. Insufficient approvals are listed too, so that they stay known as used."""
    reasons, words, cause = found
    why = " and ".join(reasons)
    doubts = [*_too_little(words), *scene.wanted.doubts.get(key, ())][:MOST_DOUBTS]
    update = {
        "reason": "NeedsApproval",
        "message": "; ".join((f"{why}: an admin can approve it with `egs approve {key}`", *doubts)),
        "approval": _shown(status, reasons, words),
    }
    if status.phase is Phase.PENDING_APPROVAL:
        return Turn(status.model_copy(update=update))  # what is missing may have changed
    slipped, told = _without_start(key, status, cause, scene.now)
    pending = without_promise(slipped).model_copy(
        update={**update, "phase": advance(status.phase, Move.WITHHOLD)}
    )
    waits = Event(scene.now, Told.PENDING_APPROVAL, f"{key} waits for approval: {why}", key)
    return Turn(pending, (*told, waits))


def _shown(status: GPRStatus, reasons: tuple[str, ...], words: tuple[Word, ...]) -> ApprovalState:
    if not words:
        return ApprovalState(reasons=reasons)
    digest = _other_digest(status, words)
    return ApprovalState(reasons=reasons, by=_names(words), how=words[0].how, ids=_ids(words), digest=digest)


def _other_digest(status: GPRStatus, words: tuple[Word, ...]) -> str | None:
    """The request's digest if these approvals name a different one."""
    return status.spec_digest if any(word.digest != status.spec_digest for word in words) else None


def _too_little(words: tuple[Word, ...]) -> tuple[str, ...]:
    if not words:
        return ()
    one = len(words) == 1
    return (
        f"the approval of {_names(words)} is not enough: its limit is below what is asked for, or the request needs "
        "a second approval"
        if one
        else f"the approvals of {_names(words)} are not enough: their limits are below what is asked for",
    )


def _why_not(key: str, status: GPRStatus, scene: Scene) -> Cause:
    """Why a request that was queued no longer would be: its own edit, else a changed approval or policy."""
    had = () if status.approval is None else status.approval.ids
    words = (w for w in scene.wanted.words.get(key, ()) if w.rule == "request" and w.id in had)
    is_other = any(word.digest != status.spec_digest for word in words) and not _carried(status)
    return Cause.REQUEST_CHANGED if status.filed_at == scene.now or is_other else Cause.POLICY_CHANGED


def _without_start(
    key: str, status: GPRStatus, cause: Cause, now: datetime
) -> tuple[GPRStatus, tuple[Event, ...]]:
    """A promised start is lost only with a stated cause."""
    if status.estimated_start_time is None:
        return status, ()
    told = Event(now, Told.DELAYED, f"{key} lost its start ({cause}): it needs an approval", key)
    return with_slip(status, None, cause, key, now), (told,)


def _queued(
    key: str, status: GPRStatus, reasons: tuple[str, ...], consent: Consent | None, now: datetime
) -> Turn:
    """Queued, with the approvals that let it in: their limit says which pools may serve it."""
    word = None if consent is None else _recorded(status, reasons, consent, now)
    if status.phase is Phase.QUEUED and word == status.approval:
        return Turn(status)
    queued = status.model_copy(update={"approval": word})
    if status.phase is not Phase.QUEUED:
        phase = advance(status.phase, Move.ALLOW if word is None else Move.APPROVE)
        queued = queued.model_copy(update={"phase": phase, "reason": None, "message": None})
    elif word is None:
        return Turn(queued)
    what = f"{key} no longer needs an approval" if word is None else f"{key} was approved by {word.by}"
    return Turn(queued, (Event(now, Told.APPROVED, what, key),), (Cause.APPROVED, key))


def _recorded(status: GPRStatus, reasons: tuple[str, ...], consent: Consent, now: datetime) -> ApprovalState:
    """The approvals as the status shows them; a recorded one keeps its time."""
    words = consent.words
    word = ApprovalState(
        reasons=reasons,
        decision="approve",
        by=_names(words),
        how=words[0].how,
        ids=_ids(words),
        message="; ".join(word.reason for word in words if word.reason),
        limit=consent.limit,
        digest=_other_digest(status, words),
        at=now,
    )
    known = status.approval
    return known if known is not None and known.model_copy(update={"at": now}) == word else word


def _names(words: tuple[Word, ...]) -> str:
    return ", ".join(dict.fromkeys(word.by for word in words))


def _ids(words: tuple[Word, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word.id for word in words))


def _rejected(key: str, status: GPRStatus, word: Word, now: datetime) -> Turn:
    by, why = word.by, word.reason or "no reason given"
    queued = status.phase is Phase.QUEUED  # a rejection counts even if no approval was needed
    pending = advance(status.phase, Move.WITHHOLD) if queued else status.phase
    told = ApprovalState(decision="reject", by=by, how=word.how, ids=(word.id,), message=why, at=now)
    rejected = without_promise(status).model_copy(
        update={
            "phase": advance(pending, Move.REJECT),
            "reason": "Rejected",
            "message": f"rejected by {by}: {why}",
            "approval": told,
        }
    )
    return Turn(rejected, (Event(now, Told.REJECTED, f"{key} was rejected by {by}: {why}", key),))
