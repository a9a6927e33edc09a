"""After a merge: the state of the requests that a commit of main brought, until they start. Pure.

Shown in one commit status on the merge commit and the comment on its pull request; both change only if their
content does, and stop once every request has started or never will.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from reconciler.forges.forge_port import CommitState
from reconciler.pulls.check_comment import MARKER
from reconciler.pulls.check_sentences import day_time
from reconciler.pulls.markdown import code, plain, table
from schemas.reading.units import counted
from schemas.status.gpr_status import HOLDING, WAITING, GPRStatus, Phase

CONTEXT = "egs/schedule"
"""Name of the commit status."""
MOST = 30
"""Requests listed in one comment."""
_SAID: Mapping[Phase, str] = {
    Phase.PROVISIONING: "nodes are being prepared",
    Phase.PROVISIONED: "started",
    Phase.RELEASING: "ended, its nodes are being cleaned",
    Phase.COMPLETED: "ended",
    Phase.CANCELLED: "cancelled",
    Phase.REJECTED: "rejected",
    Phase.FAILED: "failed",
}


@dataclass(frozen=True, slots=True)
class CommitReport:
    state: CommitState
    description: str
    comment: str
    is_last: bool  # final: every request has started or never will


def told(requests: Mapping[str, GPRStatus]) -> CommitReport:
    """The texts for the requests (`slice/name`) brought by one commit of main; at least one."""
    order = sorted(requests)
    waiting = [key for key in order if is_followed(requests[key])]
    wrong = [key for key in order if requests[key].phase in (Phase.REJECTED, Phase.FAILED)]
    state: CommitState = "pending" if waiting else "failure" if wrong else "success"
    return CommitReport(state, _line(requests, order, waiting), _comment(requests, order), not waiting)


def is_followed(status: GPRStatus) -> bool:
    """True while its start may still change."""
    return status.phase in WAITING or status.phase is Phase.PROVISIONING


def _line(requests: Mapping[str, GPRStatus], order: list[str], waiting: list[str]) -> str:
    if len(order) == 1:
        return f"{order[0]}: {_sentence(requests[order[0]])}"
    if not waiting:
        return f"{counted(len(order), 'request')}: {_ends(requests.values())}"
    starts = [at for key in waiting if (at := requests[key].estimated_start_time) is not None]
    first = f", the next at {day_time(min(starts))} UTC" if starts else ""
    return f"{counted(len(order), 'request')}: {len(waiting)} not started yet{first}"


def _ends(statuses: Iterable[GPRStatus]) -> str:
    phases = [status.phase for status in statuses]
    words = (("started", HOLDING | {Phase.COMPLETED}), ("cancelled", {Phase.CANCELLED}))
    parts = [f"{n} {word}" for word, some in words if (n := sum(phase in some for phase in phases))]
    parts += [
        f"{n} {str(phase).lower()}" for phase in (Phase.REJECTED, Phase.FAILED) if (n := phases.count(phase))
    ]
    return ", ".join(parts)


def _sentence(status: GPRStatus) -> str:
    if status.phase is Phase.PENDING_APPROVAL:
        return "waits for an admin's approval"
    if status.phase is Phase.QUEUED:
        at = status.estimated_start_time
        where = f" on {status.estimated_cluster}" if status.estimated_cluster else ""
        if at is None:
            return "has no start: it currently fits nowhere"
        return f"starts {day_time(at)} UTC{where}"
    said = _SAID[status.phase]
    start = status.start_time or status.estimated_start_time
    if status.phase is Phase.PROVISIONING and start is not None:
        return f"starts {day_time(start)} UTC; {said}"
    if status.phase is Phase.PROVISIONED and status.start_time is not None:
        end = f", ends {day_time(status.end_time)} UTC" if status.end_time is not None else ""
        return f"{said} {day_time(status.start_time)} UTC{end}"
    return said


def _comment(requests: Mapping[str, GPRStatus], order: list[str]) -> str:
    rows = [(code(key), plain(_sentence(requests[key])), _slipped(requests[key])) for key in order[:MOST]]
    more = f"\n\nand {len(order) - MOST} more" if len(order) > MOST else ""
    body = table(("request", "state (UTC)", "moved later"), rows)
    return f"{MARKER}\n\n### Merged\n\n{body}{more}\n"


def _slipped(status: GPRStatus) -> str:
    if not status.slips:
        return ""
    last = status.slips[-1]
    causes = (f"{plain(str(one.cause))}{f' by {code(one.by)}' if one.by else ''}" for one in last.causes)
    return f"{counted(len(status.slips), 'time')}; last: {' and '.join(causes)}"
