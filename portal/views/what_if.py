"""What a change would do that was not pushed: the check of a pull request with it, as far as the caller may see it.

`what_if` gives the answer as a value for routes and pages. It needs a plan, so call it through `Parts.costly`.

Held by tests/portal/views/test_what_if.py and tests/reconciler/pulls/test_proposed_change.py: it names the same
requests and minutes as `egs check-pr`, and as the controller after the merge; no member learns a name of another
workspace.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from pydantic import Field

from portal.http.context import Wire
from portal.http.errors import bad_parameters, forbidden, not_found, unavailable
from portal.identity.callers import Caller
from portal.identity.redaction import Redactor
from portal.vendor.gpr_models import ForecastData
from portal.views.view import View
from portal.writes.write_request import Changes
from reconciler.pulls.proposed_change import StandingMain
from reconciler.pulls.proposed_effect import Proposed
from reconciler.pulls.proposed_json import Hidden, data, minutes_of
from reconciler.pulls.queue_at_check import CommittedStatus
from reconciler.store.store_port import Store
from schemas.reading.reader import rule_of
from schemas.rules.problems import quoted

STANDS_FOR = timedelta(minutes=1)
"""How long main as prepared for questions is used again; `now` of the answer says as of when it is."""
MOST_FILES = 200
"""Most files of one question."""


class WhatIfAgainst(Wire):
    """What it was computed against. It is stale once main or the queue's digest changes."""

    main: str = Field(description="Commit of main.")
    status: str | None = Field(description="Commit of the status branch; null: there is none.")
    status_time: str | None
    status_answers_main: bool = Field(description="Whether the controller has processed that main.")
    queue_digest: str = Field(description="Digest of the waiting and holding requests and their times.")


class WhatIfProblem(Wire):
    """An error, warning or notice in a file."""

    file: str
    line: int
    column: int
    rule: str = Field(description="Stable identifier: docs/reference/rules.md.", examples=["PriorityTooHigh"])
    severity: Literal["error", "warning", "notice"]
    message: str
    fix: str


class WhatIfDenial(Wire):
    """A change that the caller may not make."""

    file: str
    rule: str = Field(examples=["NeedsAdmin"])
    message: str


class WhatIfCost(Wire):
    """An amount of money."""

    amount: float
    currency: str


class WhatIfRequest(Wire):
    """One request that the change creates, edits, ends or deletes."""

    slice: str
    name: str
    file: str
    change: Literal["new", "changed", "extended", "released", "cancelled", "deleted", "invalid"]
    phase: str | None
    needs_approval: bool = Field(description="The start is then the one after an immediate approval.")
    start_before: str | None
    estimated_start_time: str | None = Field(description="null: it has none, and `reason` says why.")
    estimated_wait_seconds: int | None
    estimated_end_time: str | None
    cluster: str | None
    pool: str | None
    gpu_shape: str | None
    nodes: int | None
    gpus: int | None = Field(description="Of all its nodes.")
    quota: int | None = Field(description="GPUs that one request of the workspace may hold without approval.")
    gpu_hours: float | None
    cost: WhatIfCost | None
    cost_before: WhatIfCost | None
    reason: str | None
    message: str | None
    forecast: ForecastData | None = Field(
        description="When it would likely start; null: unknown, or the queue is too long for a forecast."
    )


class WhatIfApproval(Wire):
    """An approval that a request would wait for."""

    slice: str
    name: str | None
    rule: str = Field(examples=["request"])
    why: str
    admins: list[str] = Field(description="Handles of the admins who may approve.")
    count: int = Field(description="How many approvals are needed.")
    command: str | None


class WhatIfLimit(Wire):
    """A limit that the change breaks."""

    slice: str
    name: str
    rule: str = Field(examples=["PriorityTooHigh"])
    message: str
    hard: bool = Field(description="false: an admin may approve it.")


class WhatIfMoved(Wire):
    """Another request whose start moves."""

    slice: str
    name: str
    change: Literal["earlier", "later", "refused", "gone", "new"]
    was: str | None
    now: str | None
    minutes: int | None = Field(
        description="How much later, negative: earlier; null: it has no start on one side."
    )
    cause: str | None = Field(description="From a closed list: docs/explain/estimates.md.")
    by: str | None
    proven: bool = Field(description="false: the likeliest cause; proving it would have taken too long.")
    why: str = Field(description="The cause in words.", examples=["vision/train ranks before it"])


class WhatIfPreempted(Wire):
    """A running request that would have to make room."""

    slice: str
    name: str
    by: str
    at: str = Field(description="When its nodes are released.")
    end_before: str | None
    minutes: int | None = Field(description="How much earlier than its end.")
    resumes: str | None = Field(description="null: unknown.")


class WhatIfOther(Wire):
    """A changed document other than a request."""

    file: str
    kind: str
    change: Literal["added", "changed", "removed"]
    fields: list[str]


class WhatIfCosts(Wire):
    """What the requests of the change cost together."""

    before: float
    after: float
    currency: str


class WhatIfHidden(Wire):
    """Effects on requests of other workspaces, counted: their names are theirs."""

    later: int
    earlier: int
    without_start: int = Field(description="Requests that lose their start.")
    preempted: int
    most_minutes: int | None = Field(description="The longest delay; null: none.")
    problems: int = Field(description="New problems in their files.")


class WhatIf(Wire):
    """The answer to a change that was not pushed; the row of `egs whatif -o json`."""

    verdict: Literal["refused", "waits", "clear"] = Field(
        description="It cannot be merged as it is; it waits for an approval; nothing blocks it."
    )
    summary: str = Field(description="The whole answer in one line.")
    now: str = Field(description="As of when it is.")
    actor: str | None = Field(description="For whom the change was judged.")
    against: WhatIfAgainst
    problems: list[WhatIfProblem]
    denials: list[WhatIfDenial]
    requests: list[WhatIfRequest]
    approvals: list[WhatIfApproval]
    limits: list[WhatIfLimit]
    moved: list[WhatIfMoved] = Field(description="Other requests, those that move most first.")
    more_moved: int = Field(description="How many more move than are listed.")
    preempted: list[WhatIfPreempted]
    others: list[WhatIfOther]
    cost: WhatIfCosts
    hidden: WhatIfHidden


def what_if(view: View, store: Store, caller: Caller, changes: Changes, now: datetime) -> WhatIf:
    """The answer for these files, for that caller. ApiError 404, 403 and 422 for files that they may not ask about.

    Stores nothing. The first question about a view, or after a minute, costs a plan more.
    """
    if not changes:
        raise bad_parameters("name at least one change: files, manifests or changes")
    check_files(caller, changes)
    found = _standing(view, store, now).proposed(changes, caller.actor, view.authority)
    return _told(found, caller, view, changes)


def check_files(caller: Caller, changes: Iterable[str]) -> None:
    """ApiError 422 for paths of no document, 404 for another workspace's, 403 for those of admins alone."""
    paths = sorted(changes)
    if len(paths) > MOST_FILES:
        raise bad_parameters(
            f"{len(paths)} files change at once, but at most {MOST_FILES} may; split the change"
        )
    for path in paths:
        found = rule_of(path)
        if found is None:
            raise bad_parameters(f"{quoted(path)} is not the path of a document, such as clusters/east.yaml")
        if caller.sees is None:
            continue
        slice_ = _slice_of(path)
        if not slice_:
            raise forbidden(f"only admins ask what a change of {quoted(path)} would do")
        if not caller.may_see(slice_):
            raise not_found("workspace", slice_)


def _slice_of(path: str) -> str:
    """The workspace that a file is part of; empty: none."""
    match path.split("/"):
        case ["slices" | "approvals", slice_, *_]:
            return slice_
    return ""


@dataclass(slots=True)
class _Prepared:
    """Main as last prepared for questions about one view."""

    found: list[StandingMain] = field(default_factory=list)


def _prepared(_: View) -> _Prepared:
    return _Prepared()


def _standing(view: View, store: Store, now: datetime) -> StandingMain:
    prepared, at = view.once(_prepared), max(view.facts.at, now.replace(microsecond=0))
    for known in prepared.found:
        if timedelta() <= at - known.now < STANDS_FOR:
            return known
    if view.documents is None:
        raise unavailable("main was not read for questions yet")
    status = CommittedStatus(view.status, view.facts.at, view.facts, {}) if view.status else None
    made = StandingMain(store, view.documents, status, at)
    prepared.found[:] = [made]
    return made


# -- what the caller may see ---------------------------------------------------------------------------------------


def _told(found: Proposed, caller: Caller, view: View, changes: Mapping[str, Any]) -> WhatIf:
    redactor = Redactor(caller, view)
    if caller.sees is None:
        return WhatIf.model_validate(data(found))
    seen, hidden = _seen(found, redactor, changes)
    return WhatIf.model_validate(_redacted(data(found, seen, hidden), redactor))


def _seen(found: Proposed, redactor: Redactor, changes: Mapping[str, Any]) -> tuple[Proposed, Hidden]:
    """The visible part, and how much is hidden."""
    check = found.check

    def shows(path: str) -> bool:
        return path in changes or redactor.caller.may_see(_slice_of(path))

    moved = tuple(effect for effect in check.moved if redactor.key(effect.key))
    away = [effect for effect in check.moved if not redactor.key(effect.key)]
    evicted = tuple(one for one in found.evicted if redactor.key(one.key))
    problems = tuple(problem for problem in check.problems if shows(problem.file))
    needs = tuple(need for need in check.needs if redactor.caller.may_see(need.key.partition("/")[0]))
    delays = [minutes for effect in away if effect.change == "later" and (minutes := minutes_of(effect))]
    hidden = Hidden(
        later=sum(effect.change == "later" for effect in away),
        earlier=sum(effect.change == "earlier" for effect in away),
        without_start=sum(effect.change == "refused" for effect in away),
        preempted=len(found.evicted) - len(evicted),
        most_minutes=max(delays, default=None),
        problems=len(check.problems) - len(problems),
    )
    visible = replace(check, moved=moved, problems=problems, needs=needs)
    return replace(found, check=visible, evicted=evicted), hidden


def _redacted(found: Any, redactor: Redactor) -> Any:
    """Every text without hidden requests."""
    if isinstance(found, str):
        return redactor.text(found)
    if isinstance(found, dict):
        return {name: _redacted(value, redactor) for name, value in found.items()}
    if isinstance(found, list):
        return [_redacted(value, redactor) for value in found]
    return found
