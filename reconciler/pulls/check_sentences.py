"""The check's sentences, the same in a terminal and on a forge. Pure.

`code` and `plain` format names and untrusted text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.model.evidence import Denial
from reconciler.pulls.check import Need, PullCheck, RequestChange
from scheduler.causes.compare import Effect
from schemas.reading.units import counted, instant
from schemas.rules.problems import quoted
from schemas.status.gpr_status import WAITING, Cause

Writer = Callable[[str], str]

DESCRIPTION = 140
"""Characters that GitHub shows of a commit status."""
NOT_JUDGED = "Whether the author may make this change was not checked here; the controller checks it."
_MOST_NAMES = 5
_WHY = {
    Cause.HIGHER_RANK_ARRIVED: "{by} ranks before it",
    Cause.APPROVED: "{by} was approved",
    Cause.REQUEUED: "{by} is queued again",
    Cause.REQUEST_CHANGED: "{by} changed",
    Cause.ADMIN_MOVED: "an admin moved {by}",
    Cause.POLICY_CHANGED: "rules or pools of {by} change",
    Cause.MAINTENANCE_ADDED: "maintenance of {by}",
    Cause.NODE_LOST: "{by} is lost",
    Cause.NODE_REPLACED: "{by} replaces a bad node",
    Cause.CHECKS_FAILED: "{by} failed its checks",
    Cause.CLUSTER_UNREACHABLE: "{by} does not answer",
    Cause.CONTROLLER_ABSENT: "the controller was down",
}
_ITS_OWN = {Cause.REQUEST_CHANGED: "it was edited", Cause.POLICY_CHANGED: "its rules or pools change"}
"""If a request is itself the cause of its move."""


@dataclass(frozen=True, slots=True)
class Tongue:
    """How names and untrusted text are written."""

    code: Writer
    plain: Writer


def verdict(check: PullCheck, tongue: Tongue) -> str:
    """The whole result in one line."""
    if check.verdict == "refused":
        return f"It cannot be merged like this: {_hindrances(check)}."
    waiting = [tongue.code(need.key) for need in check.needs[:_MOST_NAMES]]
    if len(check.needs) > _MOST_NAMES:
        waiting.append(f"{len(check.needs) - _MOST_NAMES} others")
    if waiting:
        verb = "waits" if len(waiting) == 1 else "wait"
        for_what = "an admin's merge" if all(n.rule == "slice" for n in check.needs) else "approval"
        return f"Valid. {_listed(waiting)} {verb} for {for_what}; {_effect_on_others(check)}."
    begun = [request for request in check.requests if request.change in {"new", "changed"}]
    starts = [request for request in begun if request.start is not None]
    if not starts:
        return f"Good to merge; {_effect_on_others(check)}."
    first = min(starts, key=lambda request: (request.start or check.now, request.key))
    more = f" and {len(starts) - 1} more later" if len(starts) > 1 else ""
    when = _when(first, check.now)
    return f"Good to merge: {tongue.code(first.key)} starts {when}{more}; {_effect_on_others(check)}."


def _when(request: RequestChange, now: datetime) -> str:
    assert request.start is not None
    wait = max(timedelta(), request.start - now)
    return f"at {day_time(request.start)} UTC" if wait else "at once"


def description(check: PullCheck) -> str:
    """The verdict for a commit status."""
    text = verdict(check, Tongue(str, str))
    return text if len(text) <= DESCRIPTION else f"{text[: DESCRIPTION - 1]}…"


def _hindrances(check: PullCheck) -> str:
    found = (
        (sum(problem.severity == "error" for problem in check.problems), "error", "errors"),
        (len(check.judged.denials), "change that is not allowed", "changes that are not allowed"),
        (len(check.conflicts), "conflict", "conflicts"),
    )
    return _listed(counted(count, one, several) for count, one, several in found if count)


def _effect_on_others(check: PullCheck) -> str:
    gone = len(check.sent_away)
    room = f"{counted(gone, 'running request is', 'running requests are')} evicted and" if gone else ""
    return " ".join(filter(None, (room, _effect_on_waiting(check))))


def _effect_on_waiting(check: PullCheck) -> str:
    later = [effect for effect in check.moved if effect.change in {"later", "refused"}]
    sooner = sum(effect.change == "earlier" for effect in check.moved)
    if later:
        most = delay(min(later, key=_by_move)).removesuffix(" later")
        up_to = f" ({most})" if len(later) == 1 else f" (up to {most})"
        return f"{counted(len(later), 'request waits', 'requests wait')} longer{up_to}"
    less = f", {sooner} {'waits' if sooner == 1 else 'wait'} less" if sooner else ""
    return f"no request waits longer{less}"


def cause(effect: Effect, tongue: Tongue) -> str:
    """Why a request moves."""
    if effect.change == "gone":
        return "its file is deleted"
    if effect.cause is None:
        return "room appears" if effect.change == "earlier" else ""
    by = _listed([tongue.code(name) for name in effect.by.split(", ") if name]) or "something"
    own = _ITS_OWN.get(effect.cause) if effect.by == effect.key else None
    said = own or _WHY[effect.cause].format(by=by)
    return said if effect.proven else f"probably: {said}"


def refusal(denial: Denial) -> str:
    """Why a change is not allowed, without the path, which is printed before it."""
    return denial.message.removeprefix(f"{quoted(denial.path)}: ")


def delay(effect: Effect) -> str:
    """How much later or earlier a start is."""
    if effect.now is None:
        return "no start"
    if effect.was is None:
        return "now has a start"
    if effect.now == effect.was:
        return "no start any more"
    by = lasting(abs(instant(effect.now) - instant(effect.was)))
    return f"{by} later" if effect.now > effect.was else f"{by} earlier"


def most_moved_first(effects: Iterable[Effect]) -> list[Effect]:
    """Requests that lose their start first, then by the size of the move."""
    return sorted(effects, key=_by_move)


def _by_move(effect: Effect) -> tuple[float, str]:
    if effect.was is None or effect.now is None:
        return (float("-inf"), effect.key)
    return (-abs(effect.now - effect.was), effect.key)


def start(request: RequestChange) -> str:
    """The start, its condition and the previous start; empty if there is none."""
    if request.start is None:
        return {"deleted": "its lease continues", "invalid": "see above"}.get(request.change, "")
    said = day_time(request.start) + (" if approved now" if request.needs_approval else "")
    if request.was is None or request.was == request.start:
        return said
    return f"{said} (was {day_time(request.was)})"


def wait(request: RequestChange, now: datetime) -> str:
    """Time until the start; empty once it has begun."""
    if request.start is None or request.phase not in WAITING:
        return ""
    return lasting(max(timedelta(), request.start - now))


def gpus(request: RequestChange, write: Writer) -> str:
    """How many GPUs it holds, and the quota without approval."""
    if not request.gpus:
        return ""
    quota = "" if request.quota is None else f", quota {request.quota}"
    return f"{request.gpus} × {write(request.gpu_shape or '')}{quota}"


def cost(request: RequestChange, currency: str) -> str:
    return "" if request.amount is None else f"{request.amount:,.2f} {currency}"


def approval(need: Need, tongue: Tongue) -> str:
    """Reason, people and command."""
    names = [tongue.code(name) for name in need.admins[:_MOST_NAMES]]
    if len(need.admins) > _MOST_NAMES:
        names.append(f"{len(need.admins) - _MOST_NAMES} others")
    count = "two admins have" if need.count > 1 else "an admin has"
    who = _listed(names, "or") if names else "there is no admin other than the requester"
    if not need.command:
        return f"{tongue.plain(need.why)}; {count} to merge it ({who})"
    # It binds the content of main: before the merge there is nothing to approve, or another content.
    how = f"after the merge, {tongue.code(need.command)}"
    return f"{tongue.plain(need.why)}; {count} to approve ({who}): {how}"


def against(check: PullCheck, tongue: Tongue) -> list[str]:
    """What the check was computed against, and why it may change."""
    stamps, lines = check.stamps, []
    queue = (
        "without a status: no controller has written one, so starts assume an empty history"
        if stamps.status_at is None
        else f"and the queue of {day_time(stamps.status_at)} UTC"
    )
    lines.append(f"Checked {day_time(check.now)} UTC against main {tongue.code(stamps.base[:10])} {queue}.")
    if stamps.behind:
        lines.append(
            f"The branch is {counted(stamps.behind, 'commit')} behind main: it is checked as its own changes "
            "on top of main as it is now."
        )
    if stamps.status_at is not None and not stamps.is_answered:
        lines.append("The controller has not processed current main yet: starts may still move.")
    lines.append("The check is stale once main or the queue changes.")
    return lines


def grouped(may: Mapping[str, str]) -> dict[str, list[str]]:
    """Files by who may change them."""
    found: dict[str, list[str]] = {}
    for path, who in sorted(may.items()):
        found.setdefault(who, []).append(path)
    return found


def day_time(at: datetime) -> str:
    """`21 Nov 14:20`; seconds only where there are any."""
    return f"{at:%-d %b %H:%M}" if at.second == 0 else f"{at:%-d %b %H:%M:%S}"


def lasting(value: timedelta) -> str:
    """The two largest units: `3h 20m`."""
    total = int(value.total_seconds())
    units = (("d", total // 86400), ("h", total // 3600 % 24), ("m", total // 60 % 60), ("s", total % 60))
    first = next((i for i, (_, count) in enumerate(units) if count), None)
    if first is None:
        return "none"
    return " ".join(f"{count}{unit}" for unit, count in units[first : first + 2] if count)


def _listed(words: Iterable[str], last: str = "and") -> str:
    *first, end = list(words) or [""]
    return f"{', '.join(first)} {last} {end}" if first else end
