"""What main says about a request, compared with its record: new, edited, cancelled, refused, missing.

Pure. The rules are the life of a file in docs/gpr.md; a request that finished never runs again under its
name.
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
from reconciler.model.events import Event, Told
from reconciler.model.facts import Filed, Scene, Turn
from reconciler.model.status_edits import has_condition, with_condition, without_condition, without_promise
from scheduler.lifecycle import Event as Move
from scheduler.lifecycle import advance
from schemas.documents.gpr import RequestSpec
from schemas.documents.identity import uid_of
from schemas.rules.edits import ALWAYS_FREE, FIELD_NAMES, asks_more_or_other, changed_terms
from schemas.rules.fit import free_priority
from schemas.status.gpr_status import HOLDING, TERMINAL, WAITING, Cause, Condition, GPRStatus, Phase


def file_turn(key: str, filed: Filed | None, status: GPRStatus | None, scene: Scene) -> Turn:
    """The effect of the file (None: missing) on the record (None: new)."""
    turn = _turned(key, filed, status, scene)
    if turn.status is None or filed is None:
        return turn
    return replace(turn, status=with_evidence(status, turn.status, filed, scene.now))


def _turned(key: str, filed: Filed | None, status: GPRStatus | None, scene: Scene) -> Turn:
    if status is None:
        return _first_seen(key, filed, scene)
    if filed is None:
        return _file_gone(key, status, scene)
    status = _note_return(status)
    spec = filed.spec
    if spec is None and (not filed.ends or status.phase in TERMINAL):
        return Turn(_noted(status, "InvalidFile", "Invalid", filed.problem, scene.now))
    if spec is None:  # whatever else is wrong with the file, it asks for the end
        spec = status.accepted_spec.model_copy(update={"early_release": True})
    status = without_condition(status, "InvalidFile")
    if status.phase in TERMINAL:
        return Turn(_finished(status, spec, scene))
    if status.phase in WAITING:
        return _waiting(key, status, spec, scene)
    return _held(key, status, spec, scene)


def _first_seen(key: str, filed: Filed | None, scene: Scene) -> Turn:
    if filed is None or filed.spec is None:
        return Turn(None)
    digest = filed.spec.digest(_ceiling(filed.spec, scene))
    status = GPRStatus(
        phase=Phase.QUEUED,
        uid=_uid(key, scene),
        filed_at=scene.seen.filed.get(key, scene.now),
        accepted_spec=filed.spec,
        spec_digest=digest,
    )
    told = Event(scene.now, Told.FILED, f"{key} was filed", key)
    if filed.spec.early_release:
        return _cancelled(key, status, "EarlyRelease", "its file asks for release", scene)
    if filed.spec.stopped:
        held = {"reason": STOPPED, "message": stopped_text(key, status)}
        return Turn(status.model_copy(update=held), (told,))
    return Turn(status, (told,), (Cause.HIGHER_RANK_ARRIVED, key))


def _file_gone(key: str, status: GPRStatus, scene: Scene) -> Turn:
    if status.phase in TERMINAL:
        return Turn(None)
    if status.phase in WAITING:
        return Turn(None, (Event(scene.now, Told.CANCELLED, f"{key} was cancelled: its file is gone", key),))
    message = missing_text(key)
    told = (
        ()
        if has_condition(status, "FileMissing", message)
        else (Event(scene.now, Told.FILE_MISSING, f"{key}: {message}", key),)
    )
    return Turn(_noted(status, "FileMissing", "FileMissing", message, scene.now), told)


def missing_text(key: str) -> str:
    """Message for a lease without a file, with the commands that end it and restore the file."""
    return (
        f"its file is gone, but the lease continues until its end; `egs gpr release {key}` ends it now, "
        f"`egs gpr restore {key}` restores the file"
    )


def _finished(status: GPRStatus, spec: RequestSpec, scene: Scene) -> GPRStatus:
    if not asks_more_or_other(status.accepted_spec, spec) or spec.early_release:
        return without_condition(status, "EditRefused")
    message = f"this request is {status.phase} and never runs again; file it under a new name"
    return _noted(status, "EditRefused", "Finished", message, scene.now)


def _waiting(key: str, status: GPRStatus, spec: RequestSpec, scene: Scene) -> Turn:
    if spec.early_release:
        return _cancelled(key, status, "EarlyRelease", "its file asks for release", scene)
    if spec == status.accepted_spec:
        return Turn(without_condition(status, "EditRefused"))
    reset = asks_more_or_other(status.accepted_spec, spec)
    update = {"accepted_spec": spec, "spec_digest": spec.digest(_ceiling(spec, scene))}
    edited = without_condition(status, "EditRefused").model_copy(update=update)
    if status.reason == "ClusterObserved":  # the shown estimate was computed for the old spec
        edited = edited.model_copy(update={"reason": None, "message": None})
    if reset:
        edited = edited.model_copy(update={"filed_at": scene.now, "waits_from": None, "charge": None})
    elif _wants_sooner(status.accepted_spec.not_before, spec.not_before, scene.now):
        edited = edited.model_copy(update={"waits_from": scene.now})
    edited = with_what_is_left(status, edited)
    if not reset and spec.move != status.accepted_spec.move:
        text = f"{key} was moved by an admin within its priority"
        return Turn(edited, (Event(scene.now, Told.MOVED, text, key),), (Cause.ADMIN_MOVED, key))
    how = (
        "loses its place in the queue, because it asks for more or something else"
        if reset
        else "keeps its place"
    )
    told = Event(scene.now, Told.EDITED, f"{key} was edited and {how}", key)
    if spec.stopped != status.accepted_spec.stopped:
        turn = (stopped if spec.stopped else resumed)(key, edited, scene)
        return replace(turn, events=((told, *turn.events) if reset else turn.events))
    return Turn(edited, (told,), (Cause.REQUEST_CHANGED, key))


def _wants_sooner(was: datetime | None, wanted: datetime | None, now: datetime) -> bool:
    """True if its `notBefore` was in the future and is earlier now: the time until then does not count as
    waiting.
    """
    return was is not None and was > now and (wanted is None or wanted < was)


def _held(key: str, status: GPRStatus, spec: RequestSpec, scene: Scene) -> Turn:
    if status.phase is Phase.RELEASING:
        return given_up(key, status, scene) if spec.early_release else Turn(status)
    refused = tuple(FIELD_NAMES.get(field, field) for field in changed_terms(status.accepted_spec, spec))
    free = {field: getattr(spec, field) for field in ALWAYS_FREE}
    accepted = status.accepted_spec.model_copy(update=free)
    if accepted != status.accepted_spec:
        status = with_free_edits(status, accepted, _ceiling(spec, scene))
    told: tuple[Event, ...] = ()
    if refused:
        message = (
            f"{', '.join(refused)} cannot be changed while it holds nodes; the accepted values stay in force"
        )
        if not has_condition(status, "EditRefused", message):
            told = (Event(scene.now, Told.EDIT_REFUSED, f"{key}: {message}", key),)
        status = _noted(status, "EditRefused", "Held", message, scene.now)
    else:
        status = without_condition(status, "EditRefused")
    if spec.early_release:
        begun = start_seen(key, status, scene) or Turn(status)
        return _released(key, begun.status or status, (*told, *begun.events), scene)
    turn = stopped(key, status, scene) if spec.stopped else Turn(status)
    return replace(turn, events=(*told, *turn.events))


def _released(key: str, status: GPRStatus, told: tuple[Event, ...], scene: Scene) -> Turn:
    """Ends a lease now; the freed nodes make other requests earlier, never later."""
    status, marked = with_marks(key, status, scene.now)
    ended = without_condition(status, PREEMPTED, IDLE).model_copy(
        update={
            "phase": advance(status.phase, Move.RELEASE),
            "eviction": None,
            "end_time": scene.now if status.end_time is None else min(status.end_time, scene.now),
            "reason": "EarlyRelease",
            "message": "released early at its owner's request",
        }
    )
    event = Event(scene.now, Told.EARLY_RELEASED, f"{key} was released early", key)
    return Turn(ended, (*told, *marked, event))


def _cancelled(key: str, status: GPRStatus, reason: str, why: str, scene: Scene) -> Turn:
    gone = without_promise(status).model_copy(
        update={
            "phase": advance(status.phase, Move.CANCEL),
            "reason": reason,
            "message": f"cancelled: {why}",
            "conditions": (),
        }
    )
    return Turn(gone, (Event(scene.now, Told.CANCELLED, f"{key} was cancelled: {why}", key),))


def _note_return(status: GPRStatus) -> GPRStatus:
    return without_condition(status, "FileMissing") if status.phase in HOLDING | TERMINAL else status


def _noted(status: GPRStatus, type_: str, reason: str, message: str, now: datetime) -> GPRStatus:
    return with_condition(status, Condition(type=type_, reason=reason, message=message, at=now))


def _ceiling(spec: RequestSpec, scene: Scene) -> int:
    slice_ = scene.wanted.slices.get(spec.slice)
    return 0 if slice_ is None else free_priority(slice_, scene.wanted.project)


def _uid(key: str, scene: Scene) -> str:
    """Identical for the same file in the same commit, so that repeating a decision gives the same result."""
    filed = scene.wanted.filed.get(key)
    if filed is not None and filed.nonce:
        return uid_of(key, filed.nonce)
    return uid_of(key, f"{scene.wanted.commit}\n{scene.seen.filed.get(key, scene.now).isoformat()}")
