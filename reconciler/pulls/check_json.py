"""A check as data: the JSON of `egs check-pr -o json`, documented in docs/guides/pull-requests.md and stable. Pure."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any

from reconciler.pulls.check import Need, PullCheck, RequestChange
from reconciler.pulls.check_basis import Stamps
from scheduler.causes.compare import Effect
from schemas.reading.units import format_instant, instant


def data(check: PullCheck) -> dict[str, Any]:
    """Everything that the check says."""
    judged = check.judged
    return {
        "verdict": check.verdict,
        "now": format_instant(check.now),
        "against": _stamps(check.stamps),
        "actor": judged.actor,
        "problems": [asdict(problem) for problem in check.problems],
        "conflicts": list(check.conflicts),
        "denials": [{"file": d.path, "rule": d.rule, "message": d.message} for d in judged.denials],
        "may": None
        if judged.may is None
        else [{"file": path, "who": who} for path, who in sorted(judged.may.items())],
        "requests": [_request(request, check) for request in check.requests],
        "approvals": [_need(need) for need in check.needs],
        "moved": [_effect(effect) for effect in check.moved],
        **({"preempted": list(check.sent_away)} if check.sent_away else {}),  # only if preemption is enabled
        "others": [
            {"file": o.path, "kind": o.kind, "change": o.change, "fields": list(o.fields)}
            for o in check.others
        ],
    }


def _stamps(stamps: Stamps) -> dict[str, Any]:
    return {
        "base": stamps.base,
        "head": stamps.head,
        "behind": stamps.behind,
        "status": stamps.status,
        "statusTime": _time(stamps.status_at),
        "statusAnswersBase": stamps.is_answered,
        "queueDigest": stamps.queue,
    }


def _request(request: RequestChange, check: PullCheck) -> dict[str, Any]:
    slice_, _, name = request.key.partition("/")
    wait = None if request.start is None else max(0, int((request.start - check.now).total_seconds()))
    return {
        "slice": slice_,
        "name": name,
        "file": request.file,
        "change": request.change,
        "phase": None if request.phase is None else str(request.phase),
        "needsApproval": request.needs_approval,
        "startBefore": _time(request.was),
        "estimatedStartTime": _time(request.start),
        "estimatedWaitSeconds": wait,
        "estimatedEndTime": _time(request.end),
        "cluster": None if request.pool is None else request.pool[0],
        "pool": None if request.pool is None else request.pool[1],
        "gpuShape": request.gpu_shape,
        "nodes": request.nodes or None,
        "gpus": request.gpus or None,
        "quota": request.quota,
        "gpuHours": request.gpu_hours,
        "cost": None if request.amount is None else {"amount": request.amount, "currency": check.currency},
        "reason": request.reason,
        "message": request.message,
    }


def _need(need: Need) -> dict[str, Any]:
    slice_, _, name = need.key.partition("/")
    return {
        "slice": slice_,
        "name": name or None,
        "rule": need.rule,
        "why": need.why,
        "admins": list(need.admins),
        "count": need.count,
        "command": need.command or None,
    }


def _effect(effect: Effect) -> dict[str, Any]:
    slice_, _, name = effect.key.partition("/")
    return {
        "slice": slice_,
        "name": name,
        "change": effect.change,
        "was": None if effect.was is None else format_instant(instant(effect.was)),
        "now": None if effect.now is None else format_instant(instant(effect.now)),
        "cause": None if effect.cause is None else str(effect.cause),
        "by": effect.by or None,
        "proven": effect.proven,
    }


def _time(at: datetime | None) -> str | None:
    return None if at is None else format_instant(at)
