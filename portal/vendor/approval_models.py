"""Pending approvals, and the file of a decision, as `egs approve` writes it. Pure.

Held by tests/portal/test_approvals.py.
"""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Literal

from pydantic import Field

from egs.commands import backend as commands
from portal.http.context import Whole, Wire, optional
from portal.http.durations import checked_duration
from portal.http.errors import ApiError, bad_parameters, conflict, not_found
from portal.identity.callers import Caller
from portal.identity.redaction import Redactor
from portal.vendor.gpr_answers import Found, found_in
from portal.vendor.gpr_models import Span
from portal.views.view import View
from portal.writes.write_request import Changes, Tree
from reconciler.changes.approve import COUNTS_FOR, approval_spec, bound, check_needed
from reconciler.documents.yaml_edit import new_document
from reconciler.model.statuses import live
from reconciler.sources.command_errors import NotAllowed
from schemas.documents.gpr import RequestSpec
from schemas.reading.units import format_duration, format_instant, parse_instant
from schemas.rules.view import gpr_path
from schemas.status.gpr_status import HOLDING, TERMINAL, Phase


class Limit(Wire):
    """The most that is approved, whatever the request says later."""

    gpus: Annotated[Whole, Field(ge=1, le=1_000_000)] | None = optional("GPUs of all its nodes together.")
    nodes: Annotated[Whole, Field(ge=1, le=100_000)] | None = None
    extend: Span | None = optional("Total grace beyond its duration; required for the rule `extension`.")


class Decision(Wire):
    """An admin's decision about a request as it was shown to them."""

    gpr_id: str = Field(max_length=200, description="The request's id, or slice/name.")
    decision: Literal["approve", "reject"]
    spec_digest: str = Field(
        pattern="^sha256:[0-9a-f]{64}$",
        description="The version that was looked at, from `GET approvals` or `GET gpr`; 409 if the request has "
        "changed since.",
    )
    reason: str = Field(default="", max_length=500, description="Shown to the requester.")
    limit: Limit | None = optional("Absent: the GPUs it would hold in the largest nodes that it may use.")
    not_after: str | None = optional("When the approval expires; absent: after 30 days.", max_length=40)
    rule: Literal["request", "extension"] = Field(
        default="request", description="What it approves: the request itself, or its extension."
    )


class Asks(Wire):
    """A request's terms, for an admin to judge."""

    number_of_gpu_nodes: int = Field(alias="numberOfGPUNodes")
    number_of_gpus: int = Field(alias="numberOfGPUs", description="Per node.")
    gpu_shapes: list[str] = Field(description="In order of preference; empty: any.")
    clusters: list[str] = Field(description="Empty: all that the workspace spans.")
    exit_duration: str
    priority: int


class Pending(Wire):
    """A request that waits for a decision."""

    gpr_id: str
    name: str = Field(description="slice/file.")
    reasons: list[str] = Field(
        description="QuotaExceeded, NodeLimitExceeded, …: docs/reference/kinds/approval.md lists them."
    )
    message: str = Field(description="The figures behind them.")
    asked: Asks
    spec_digest: str = Field(description="The version that an approval is bound to.")
    since: str


def pending(view: View, caller: Caller) -> list[Pending]:
    """Requests waiting for an admin that the caller may see, the longest waiting first."""
    waiting = [
        (status.filed_at, key, status)
        for key, status in live(view.facts.requests).items()
        if status.phase is Phase.PENDING_APPROVAL and caller.may_see(key.partition("/")[0])
    ]
    redactor = Redactor(caller, view)
    return [
        Pending(
            gpr_id=status.uid,
            name=key,
            reasons=[] if status.approval is None else list(status.approval.reasons),
            message=redactor.text(status.message or ""),
            asked=_asks(status.accepted_spec),
            spec_digest=status.spec_digest,
            since=format_instant(filed_at),
        )
        for filed_at, key, status in sorted(waiting, key=lambda one: one[:2])
    ]


def _asks(spec: RequestSpec) -> Asks:
    return Asks(
        number_of_gpu_nodes=spec.nodes,
        number_of_gpus=spec.gpus_per_node,
        gpu_shapes=list(spec.gpu_shapes),
        clusters=list(spec.clusters),
        exit_duration=format_duration(spec.duration),
        priority=spec.priority,
    )


def decided(view: View, tree: Tree, key: str, word: Decision, caller: Caller, now: datetime) -> Changes:
    """The file of the decision. ApiError 409 if no decision is needed, 403 for the admin's own request."""
    found = found_in(view, key)
    if found is None:
        raise not_found("request", key)
    spec = _judged(view, found, word)
    _check_shown(view, key, spec, word)
    end, said = _end(word, now), _said(word)
    try:
        if word.decision == "approve":
            check_needed(view.state, key, spec, said)
        content = approval_spec(view.state, key, spec, said, end)
    except NotAllowed as error:
        raise conflict(str(error), "NothingToDecide") from error
    if word.decision == "approve":
        _check_not_own(view, tree, key, caller)
    handle = caller.actor.handle
    return {f"approvals/{key}/{handle}.yaml": new_document("Approval", handle, content)}


def _said(word: Decision) -> commands.Decision:
    limit = word.limit or Limit()
    if (limit.extend is not None) != (word.rule == "extension" and word.decision == "approve"):
        # The digest leaves grace out, so the requester could raise it after the admin has looked.
        raise bad_parameters(
            "limit.extend: the rule extension approves exactly this much grace, so give it, and only with that rule"
        )
    extend = None if limit.extend is None else format_duration(checked_duration("limit.extend", limit.extend))
    return commands.Decision(
        word.decision, word.reason, limit.gpus, limit.nodes, rule=word.rule, limit_extend=extend
    )


def _check_shown(view: View, key: str, spec: RequestSpec, word: Decision) -> None:
    """The request must still be what the admin looked at; the requester may have changed it since."""
    now = bound(view.state, spec)
    if word.spec_digest != now:
        asked = _asks(spec).model_dump(mode="json", by_alias=True)
        raise conflict(
            f"{key} has changed since you looked at it; look at it again, then decide",
            "Conflict",
            {"specDigest": now, "asked": asked},
        )


def _check_not_own(view: View, tree: Tree, key: str, caller: Caller) -> None:
    if view.wanted.project.approval.own_requests:
        return
    slice_, _, name = key.partition("/")
    if caller.email.lower() in {email.lower() for email in tree.authors(gpr_path(slice_, name))}:
        text = (
            f"you wrote {key}, or a part of it, and an admin may not approve their own request; ask another admin, or "
            "allow it with approval.ownRequests in project.yaml"
        )
        raise ApiError(HTTPStatus.FORBIDDEN, "OwnRequest", text)


def _judged(view: View, found: Found, word: Decision) -> RequestSpec:
    """The request as it is on main; one that holds nodes keeps its terms, whatever its file says."""
    status, filed = found.status, view.wanted.filed.get(found.key)
    spec = found.spec if filed is None or filed.spec is None else filed.spec
    if status is None:
        raise conflict(f"the controller has not seen {found.key} yet; decide a moment later", "NotSeenYet")
    if status.phase in TERMINAL:
        raise conflict(f"{found.key} is {status.phase} and never runs again", "GpuAlreadyReleased")
    if status.phase in HOLDING and (word.rule != "extension" or status.phase is Phase.RELEASING):
        raise conflict(f"{found.key} is {status.phase} and keeps its terms", "GpuAlreadyProvisioned")
    return status.accepted_spec.edited(extend=spec.extend) if status.phase in HOLDING else spec


def _end(word: Decision, now: datetime) -> datetime:
    try:
        end = (
            now.replace(microsecond=0) + COUNTS_FOR
            if word.not_after is None
            else parse_instant(word.not_after)
        )
    except ValueError as error:
        raise bad_parameters(f"notAfter {word.not_after}: {error}") from error
    if end <= now:
        raise bad_parameters(
            f"notAfter {word.not_after} is in the past: it is {format_instant(now)}; choose a later time"
        )
    return end
