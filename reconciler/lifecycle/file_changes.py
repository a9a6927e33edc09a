"""What main says about a request, compared with its record: new, edited, cancelled, refused, missing. Pure.

docs/reference/kinds/gpr.md has the rules; a request that finished never runs again under its name.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from reconciler.approvals.file_evidence import with_evidence
from reconciler.approvals.is_approved import with_free_edits
from reconciler.lifecycle.early_end import (
    IDLE,
    PREEMPTED,
    STOPPED,
    given_up,
    resumed,
    stopped,
    stopped_text,
    with_what_is_left,
)
from reconciler.lifecycle.marks import with_marks
from reconciler.lifecycle.provisioning import start_seen
from reconciler.model.events import Event, EventReason
from reconciler.model.facts import Context, Filed, RequestOutcome
from reconciler.model.status_edits import has_condition, with_condition, without_condition, without_promise
from scheduler.lifecycle import Event as Move
from scheduler.lifecycle import advance
from schemas.documents.gpr import RequestSpec
from schemas.documents.identity import uid_of
from schemas.rules.edits import ALWAYS_FREE, FIELD_NAMES, asks_more_or_other, changed_terms
from schemas.rules.fit import free_priority
from schemas.status.gpr_status import HOLDING, TERMINAL, WAITING, Cause, Condition, GPRStatus, Phase


def file_outcome(key: str, filed: Filed | None, status: GPRStatus | None, context: Context) -> RequestOutcome:
    """The effect of the file (None: missing) on the record (None: new)."""
    outcome = _outcome(key, filed, status, context)
    if outcome.status is None or filed is None:
        return outcome
    judged = with_evidence(status, outcome.status, filed, context.now)
    return outcome if judged is outcome.status else replace(outcome, status=judged)


def _outcome(key: str, filed: Filed | None, status: GPRStatus | None, context: Context) -> RequestOutcome:
    if status is None:
        return _first_seen(key, filed, context)
    if filed is None:
        return _file_gone(key, status, context)
    if status.phase in HOLDING | TERMINAL:
        status = without_condition(status, "FileMissing")
    spec = filed.spec
    if spec is None and (not filed.ends or status.phase in TERMINAL):
        return RequestOutcome(_noted(status, "InvalidFile", "Invalid", filed.problem, context.now))
    if spec is None:  # whatever else is wrong with the file, it asks for the end
        spec = status.accepted_spec.edited(early_release=True)
    status = without_condition(status, "InvalidFile")
    if status.phase in TERMINAL:
        return RequestOutcome(_finished(status, spec, context))
    if status.phase in WAITING:
        return _waiting(key, status, spec, context)
    return _held(key, status, spec, context)


def _first_seen(key: str, filed: Filed | None, context: Context) -> RequestOutcome:
    if filed is None or filed.spec is None:
        return RequestOutcome(None)
    digest = filed.spec.digest(_ceiling(filed.spec, context))
    status = GPRStatus(
        phase=Phase.QUEUED,
        uid=_uid(key, context),
        filed_at=context.seen.filed.get(key, context.now),
        accepted_spec=filed.spec,
        spec_digest=digest,
    )
    told = Event(context.now, EventReason.FILED, f"{key} was filed", key)
    if filed.spec.early_release:
        return _cancelled(key, status, "EarlyRelease", "its file asks for release", context)
    if filed.spec.stopped:
        return RequestOutcome(status.edited(reason=STOPPED, message=stopped_text(key, status)), (told,))
    return RequestOutcome(status, (told,), (Cause.HIGHER_RANK_ARRIVED, key))


def _file_gone(key: str, status: GPRStatus, context: Context) -> RequestOutcome:
    if status.phase in TERMINAL:
        return RequestOutcome(None)
    if status.phase in WAITING:
        gone = Event(context.now, EventReason.CANCELLED, f"{key} was cancelled: its file is gone", key)
        return RequestOutcome(None, (gone,))
    message = (
        f"its file is gone, but the lease continues until its end; `egs gpr release {key}` ends it now, "
        f"`egs gpr restore {key}` restores the file"
    )
    told = Event(context.now, EventReason.FILE_MISSING, f"{key}: {message}", key)
    is_told = has_condition(status, "FileMissing", message)
    noted = _noted(status, "FileMissing", "FileMissing", message, context.now)
    return RequestOutcome(noted, () if is_told else (told,))


def _finished(status: GPRStatus, spec: RequestSpec, context: Context) -> GPRStatus:
    if not asks_more_or_other(status.accepted_spec, spec) or spec.early_release:
        return without_condition(status, "EditRefused")
    message = f"this request is {status.phase} and never runs again; file it under a new name"
    return _noted(status, "EditRefused", "Finished", message, context.now)


def _waiting(key: str, status: GPRStatus, spec: RequestSpec, context: Context) -> RequestOutcome:
    if spec.early_release:
        return _cancelled(key, status, "EarlyRelease", "its file asks for release", context)
    if spec == status.accepted_spec:
        return RequestOutcome(without_condition(status, "EditRefused"))
    reset = asks_more_or_other(status.accepted_spec, spec)
    digest = spec.digest(_ceiling(spec, context))
    after = without_condition(status, "EditRefused").edited(accepted_spec=spec, spec_digest=digest)
    if status.reason == "ClusterObserved":  # the shown estimate was computed for the old spec
        after = after.edited(reason=None, message=None)
    if reset:
        after = after.edited(filed_at=context.now, waits_from=None, charge=None)
    elif _wants_sooner(status.accepted_spec.not_before, spec.not_before, context.now):
        after = after.edited(waits_from=context.now)
    after = with_what_is_left(status, after)
    if not reset and spec.move != status.accepted_spec.move:
        text = f"{key} was moved by an admin within its priority"
        moved = Event(context.now, EventReason.MOVED, text, key)
        return RequestOutcome(after, (moved,), (Cause.ADMIN_MOVED, key))
    lost = "loses its place in the queue, because it asks for more or something else"
    how = lost if reset else "keeps its place"
    told = Event(context.now, EventReason.EDITED, f"{key} was edited and {how}", key)
    if spec.stopped != status.accepted_spec.stopped:
        outcome = (stopped if spec.stopped else resumed)(key, after, context)
        return replace(outcome, events=((told, *outcome.events) if reset else outcome.events))
    return RequestOutcome(after, (told,), (Cause.REQUEST_CHANGED, key))


def _wants_sooner(was: datetime | None, wanted: datetime | None, now: datetime) -> bool:
    """True if its `notBefore` was in the future and is earlier now: the time until then does not count as waiting."""
    return was is not None and was > now and (wanted is None or wanted < was)


def _held(key: str, status: GPRStatus, spec: RequestSpec, context: Context) -> RequestOutcome:
    if status.phase is Phase.RELEASING:
        return given_up(key, status, context) if spec.early_release else RequestOutcome(status)
    refused = tuple(FIELD_NAMES.get(field, field) for field in changed_terms(status.accepted_spec, spec))
    free = {field: getattr(spec, field) for field in ALWAYS_FREE}
    accepted = status.accepted_spec.model_copy(update=free)
    if accepted != status.accepted_spec:
        status = with_free_edits(status, accepted, _ceiling(spec, context))
    told: tuple[Event, ...] = ()
    if refused:
        message = (
            f"{', '.join(refused)} cannot be changed while it holds nodes; the accepted values stay in force"
        )
        if not has_condition(status, "EditRefused", message):
            told = (Event(context.now, EventReason.EDIT_REFUSED, f"{key}: {message}", key),)
        status = _noted(status, "EditRefused", "Held", message, context.now)
    else:
        status = without_condition(status, "EditRefused")
    if spec.early_release:
        begun = start_seen(key, status, context) or RequestOutcome(status)
        return _released(key, begun.status or status, (*told, *begun.events), context)
    outcome = stopped(key, status, context) if spec.stopped else RequestOutcome(status)
    return replace(outcome, events=(*told, *outcome.events))


def _released(key: str, status: GPRStatus, told: tuple[Event, ...], context: Context) -> RequestOutcome:
    """Ends a lease now; the freed nodes make other requests earlier, never later."""
    status, marked = with_marks(key, status, context.now)
    ended = without_condition(status, PREEMPTED, IDLE).edited(
        phase=advance(status.phase, Move.RELEASE),
        eviction=None,
        end_time=context.now if status.end_time is None else min(status.end_time, context.now),
        reason="EarlyRelease",
        message="released early at its owner's request",
    )
    event = Event(context.now, EventReason.EARLY_RELEASED, f"{key} was released early", key)
    return RequestOutcome(ended, (*told, *marked, event))


def _cancelled(key: str, status: GPRStatus, reason: str, why: str, context: Context) -> RequestOutcome:
    gone = without_promise(status).edited(
        phase=advance(status.phase, Move.CANCEL),
        reason=reason,
        message=f"cancelled: {why}",
        conditions=(),
    )
    told = Event(context.now, EventReason.CANCELLED, f"{key} was cancelled: {why}", key)
    return RequestOutcome(gone, (told,))


def _noted(status: GPRStatus, type_: str, reason: str, message: str, now: datetime) -> GPRStatus:
    return with_condition(status, Condition(type=type_, reason=reason, message=message, at=now))


def _ceiling(spec: RequestSpec, context: Context) -> int:
    slice_ = context.wanted.slices.get(spec.slice)
    return 0 if slice_ is None else free_priority(slice_, context.wanted.project)


def _uid(key: str, context: Context) -> str:
    """Identical for the same file in the same commit, so that repeating a decision gives the same result."""
    filed = context.wanted.filed.get(key)
    if filed is not None and filed.nonce:
        return uid_of(key, filed.nonce)
    return uid_of(key, f"{context.wanted.commit}\n{context.seen.filed.get(key, context.now).isoformat()}")
