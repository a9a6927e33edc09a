"""The answer to a change that was not pushed as data: the JSON of `egs whatif -o json`, documented and stable. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from reconciler.pulls import check_json, check_sentences
from reconciler.pulls.check import PullCheck
from reconciler.pulls.check_sentences import Tongue
from reconciler.pulls.proposed_effect import Evicted, Proposed
from scheduler.causes.compare import Effect
from scheduler.reasons import Reason
from schemas.reading.units import format_instant
from schemas.rules.limits import RULES

MOST_MOVED = 200
"""Most requests that are listed as moved, those that move most; `moreMoved` counts the others."""
_PLAIN = Tongue(str, str)


@dataclass(frozen=True, slots=True)
class Hidden:
    """Effects on requests that the reader may not see, counted."""

    later: int = 0
    earlier: int = 0
    without_start: int = 0  # they lose their start
    preempted: int = 0
    most_minutes: int | None = None  # the longest delay
    problems: int = 0  # in their files


NOTHING = Hidden()


def data(found: Proposed, seen: Proposed | None = None, hidden: Hidden = NOTHING) -> dict[str, Any]:
    """Everything that is known of the change; for a reader who may not see all of it the `seen` part."""
    seen = found if seen is None else seen
    check, shown = seen.check, check_sentences.most_moved_first(seen.check.moved)
    told = check_json.data(replace(check, moved=tuple(shown[:MOST_MOVED])))
    return {
        "verdict": found.check.verdict,
        "summary": check_sentences.verdict(found.check, _PLAIN),
        **{name: told[name] for name in ("now", "actor", "problems", "denials")},
        "against": _against(told["against"]),
        "requests": [_request(row, seen) for row in told["requests"]],
        "approvals": told["approvals"],
        "limits": list(_limits(check)),
        "moved": [_moved(row, effect) for row, effect in zip(told["moved"], shown, strict=False)],
        "moreMoved": max(0, len(shown) - MOST_MOVED),
        "preempted": [_evicted(one) for one in seen.evicted],
        "others": told["others"],
        "cost": {"before": found.cost_before, "after": found.cost_after, "currency": check.currency},
        "hidden": _hidden(hidden),
    }


def minutes_of(effect: Effect) -> int | None:
    """How much later (or, negative, earlier) it starts; None: it has no start on one side."""
    if effect.was is None or effect.now is None or effect.change == "refused":
        return None
    return round((effect.now - effect.was) / 60)


def _against(stamps: dict[str, Any]) -> dict[str, Any]:
    return {
        "main": stamps["base"],
        "status": stamps["status"],
        "statusTime": stamps["statusTime"],
        "statusAnswersMain": stamps["statusAnswersBase"],
        "queueDigest": stamps["queueDigest"],
    }


def _request(row: dict[str, Any], found: Proposed) -> dict[str, Any]:
    key = f"{row['slice']}/{row['name']}"
    before, likely = found.costs_before.get(key), found.forecasts.get(key)
    currency = found.check.currency
    return {
        **row,
        "costBefore": None if before is None else {"amount": before, "currency": currency},
        "forecast": None if likely is None else likely.model_dump(mode="json", by_alias=True),
    }


def _moved(row: dict[str, Any], effect: Effect) -> dict[str, Any]:
    return {**row, "minutes": minutes_of(effect), "why": check_sentences.cause(effect, _PLAIN)}


def _evicted(one: Evicted) -> dict[str, Any]:
    slice_, _, name = one.key.partition("/")
    lost = None if one.was is None else max(0, round((one.was - one.at).total_seconds() / 60))
    return {
        "slice": slice_,
        "name": name,
        "by": one.by,
        "at": format_instant(one.at),
        "endBefore": _time(one.was),
        "minutes": lost,
        "resumes": _time(one.back),
    }


def _limits(check: PullCheck) -> Iterator[dict[str, Any]]:
    """Hard limits, which nothing lifts, and quotas, which an admin may."""
    by_file = {request.file: request.key for request in check.requests}
    for problem in check.problems:
        if problem.severity == "error" and problem.rule in RULES.values() and problem.file in by_file:
            yield _limit(by_file[problem.file], problem.rule, problem.message, is_hard=True)
    for request in check.requests:
        if request.reason == Reason.LIMIT_EXCEEDED:
            yield _limit(request.key, str(Reason.LIMIT_EXCEEDED), request.message or "", is_hard=True)
    for need in check.needs:
        if need.rule != "slice":
            yield _limit(need.key, need.rule, need.why, is_hard=False)


def _limit(key: str, rule: str, message: str, *, is_hard: bool) -> dict[str, Any]:
    slice_, _, name = key.partition("/")
    return {"slice": slice_, "name": name, "rule": rule, "message": message, "hard": is_hard}


def _hidden(hidden: Hidden) -> dict[str, Any]:
    return {
        "later": hidden.later,
        "earlier": hidden.earlier,
        "withoutStart": hidden.without_start,
        "preempted": hidden.preempted,
        "mostMinutes": hidden.most_minutes,
        "problems": hidden.problems,
    }


def _time(at: datetime | None) -> str | None:
    return None if at is None else format_instant(at)
