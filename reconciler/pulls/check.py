"""What a pull request would do: whether it is valid and allowed, what it waits for, and what moves.

Pure: takes both sides as of one time, returns a value; `reconciler.pulls.check_comment` puts it into words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from reconciler.approvals.is_approved import hard_violations
from reconciler.deciding.preemption import sent_away
from reconciler.deciding.what_if import effects
from reconciler.documents.finished_files import brought
from reconciler.lifecycle.early_end import STOPPED, stopped_text
from reconciler.model.evidence import Denial
from reconciler.model.status_edits import lease_duration
from reconciler.model.statuses import live
from reconciler.planning.pool_choice import offering
from reconciler.planning.queue_place import standing
from reconciler.pulls.before_and_after import Sight, Sights
from reconciler.pulls.check_basis import Stamps
from reconciler.pulls.merged_tree import Merged
from reconciler.pulls.pull_documents import introduced
from scheduler.causes.compare import Comparison, Effect
from scheduler.choices.fit import candidate_pools
from scheduler.choices.pool_choice import served
from scheduler.quote import quote
from scheduler.snapshot import PoolKey, Request
from schemas.documents.gpr import RequestSpec
from schemas.documents.workspace import WorkspaceRequest
from schemas.reading.reader import rule_of
from schemas.reading.units import instant, seconds
from schemas.rules.problems import Problem
from schemas.rules.view import gpr_path
from schemas.status.gpr_status import HOLDING, GPRStatus, Phase

Verdict = Literal["refused", "waits", "clear"]
"""It cannot be merged as it is; an approval is needed; nothing blocks it."""

TRIAL_WORK = 3000
"""Requests replanned to prove causes: half a second, so that the check stays fast."""
FEWEST_TRIALS = 3
NEEDS_APPROVAL = "NeedsApproval"
NEEDS_ADMIN = "NeedsAdmin"
"""For a slice request: it is valid, and counts once an admin merges it."""


@dataclass(frozen=True, slots=True)
class RequestChange:
    """One request that the pull request creates, edits, ends or deletes, and the effect."""

    key: str  # slice/name
    file: str
    change: Literal["new", "changed", "extended", "released", "cancelled", "deleted", "invalid"]
    phase: Phase | None = None
    start: datetime | None = None
    end: datetime | None = None
    was: datetime | None = None  # its start before the change
    pool: PoolKey | None = None
    gpu_shape: str | None = None
    nodes: int = 0
    gpus: int = 0  # of all its nodes in that pool
    quota: int | None = None  # GPUs that one request of the slice may hold without approval
    gpu_hours: float | None = None
    amount: float | None = None
    reason: str | None = None  # why it has no start
    message: str | None = None
    needs_approval: bool = False  # the start is then the one after an immediate approval


@dataclass(frozen=True, slots=True)
class Need:
    """An approval that a request waits for; for a slice request, an admin's merge."""

    key: str
    file: str
    why: str
    rule: Literal["request", "extension", "slice"]
    admins: tuple[str, ...]  # handles of the admins who may approve
    count: int = 1  # how many approvals are needed

    @property
    def command(self) -> str:
        """The command for an admin; a merge needs none."""
        if self.rule == "slice":
            return ""
        return f"egs approve {self.key}{' --rule extension' if self.rule == 'extension' else ''}"


@dataclass(frozen=True, slots=True)
class Judged:
    """Whether the author may do it. If unknown, nothing is judged, and `may` says who may make each change."""

    actor: str | None = None  # the author's name
    denials: tuple[Denial, ...] = ()
    may: Mapping[str, str] | None = None  # by path: who may change it; None: unknown too


@dataclass(frozen=True, slots=True)
class Other:
    """A change of a document other than a request."""

    path: str
    kind: str
    change: Literal["added", "changed", "removed"]
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PullCheck:
    """The whole result."""

    now: datetime
    stamps: Stamps
    currency: str
    problems: tuple[Problem, ...] = ()  # new ones, and all in changed files
    conflicts: tuple[str, ...] = ()
    judged: Judged = Judged()
    requests: tuple[RequestChange, ...] = ()
    moved: tuple[Effect, ...] = ()  # all other requests
    sent_away: tuple[str, ...] = ()  # running requests that are evicted
    needs: tuple[Need, ...] = ()
    others: tuple[Other, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Refused if there is any error; else whether an approval is needed."""
        if self.conflicts or self.judged.denials or any(p.severity == "error" for p in self.problems):
            return "refused"
        return "waits" if self.needs else "clear"


def check_pull(sights: Sights, merge: Merged, judged: Judged, now: datetime) -> PullCheck:
    base, head = sights.base, sights.head
    budget = max(FEWEST_TRIALS, TRIAL_WORK // max(1, len(head.snapshot.requests)))
    found = effects(base, head, budget, sights.promised)
    requests = tuple(_requests(sights, merge, found))
    judged, asked = _without_waiting(judged, head, merge)
    own = {request.key for request in requests}
    return PullCheck(
        now=now,
        stamps=sights.stamps,
        currency=head.wanted.project.currency,
        problems=_problems(sights, merge),
        conflicts=merge.conflicts,
        judged=judged,
        requests=requests,
        moved=tuple(effect for effect in found.effects if effect.key not in own),
        sent_away=sent_away(base.facts, head.facts),
        needs=(*_needs(base, head, own, judged.actor), *asked),
        others=tuple(_others(base, head, merge)),
    )


def _problems(sights: Sights, merge: Merged) -> tuple[Problem, ...]:
    found = introduced(sights.base.problems, sights.head.problems, merge)
    kept = brought(found, sights.head.facts.requests, sights.base.problems, merge.changes)
    return tuple(sorted({*kept, *sights.edits}))


# -- requests ------------------------------------------------------------------------------------------------


def _requests(sights: Sights, merge: Merged, found: Comparison) -> Iterable[RequestChange]:
    was = {effect.key: effect.was for effect in found.effects}
    for path in sorted(merge.changes):
        match rule_of(path):
            case (rule, names) if rule.kind == "GPR":
                yield _request(f"{names['slice']}/{names['name']}", path, sights, found, was)


def _request(
    key: str, path: str, sights: Sights, found: Comparison, was: Mapping[str, int | None]
) -> RequestChange:
    base, head = sights.base, sights.head
    before, after = base.facts.requests.get(key), head.facts.requests.get(key)
    filed = head.wanted.filed.get(key)
    if filed is not None and filed.spec is None:
        return RequestChange(key, path, "invalid", message=filed.problem)
    if after is None or filed is None:
        phase = None if after is None else after.phase
        return RequestChange(key, path, "deleted" if phase in HOLDING else "cancelled", phase)
    request = RequestChange(
        key,
        path,
        _change(before, after),
        after.phase,
        was=_start_before(before, was.get(key)),
        nodes=after.accepted_spec.nodes,
        quota=_quota(head, after.accepted_spec),
    )
    if after.phase in HOLDING:
        return holding(request, after, head)
    if after.phase is Phase.PENDING_APPROVAL:
        return _if_approved(request, after, head, found)
    if after.phase is Phase.QUEUED:
        return _queued(request, after, head, found)
    return replace(request, reason=after.reason, message=after.message)


def _change(
    before: GPRStatus | None, after: GPRStatus
) -> Literal["new", "changed", "extended", "released", "cancelled"]:
    if after.phase is Phase.CANCELLED and (before is None or before.phase is not Phase.CANCELLED):
        return "cancelled"
    if after.accepted_spec.early_release and not (before and before.accepted_spec.early_release):
        return "released"
    if before is None:
        return "new"
    grows = after.accepted_spec.extend > before.accepted_spec.extend
    return "extended" if grows and after.phase in HOLDING else "changed"


def _start_before(before: GPRStatus | None, planned: int | None) -> datetime | None:
    if planned is not None:
        return instant(planned)
    return None if before is None else before.start_time or before.estimated_start_time


def _quota(side: Sight, spec: RequestSpec) -> int | None:
    slice_ = side.wanted.slices.get(spec.slice)
    return None if slice_ is None or slice_.quota is None else slice_.quota.gpus


def holding(request: RequestChange, status: GPRStatus, side: Sight) -> RequestChange:
    """With the times and the cost of its lease."""
    held = status.assignment
    pool = None if held is None else (held.cluster, held.pool)
    end = status.end_time or status.estimated_end_time
    start = status.start_time or status.estimated_start_time
    message = next((c.message for c in status.conditions if c.type == "ExtensionRefused"), None)
    return priced(replace(request, start=start, end=end, message=message), pool, side)


def _queued(request: RequestChange, status: GPRStatus, side: Sight, found: Comparison) -> RequestChange:
    place = found.planned.placements.get(request.key)
    if place is not None:
        placed = replace(request, start=instant(place.start), end=instant(place.end))
        if side.snapshot.pools[place.pool].observed:
            placed = replace(placed, reason="ClusterObserved", message="its cluster is only observed")
        return priced(placed, place.pool, side)
    refusal = found.planned.refusals.get(request.key)
    if refusal is not None:
        fits = f"; would fit: {refusal.would_fit}" if refusal.would_fit else ""
        return replace(request, reason=str(refusal.reason), message=f"{refusal.message}{fits}")
    if status.accepted_spec.stopped:
        return replace(request, reason=STOPPED, message=stopped_text(request.key, status))
    return replace(request, reason="LimitExceeded", message="; ".join(hard_violations(status, side.wanted)))


def _if_approved(request: RequestChange, status: GPRStatus, side: Sight, found: Comparison) -> RequestChange:
    """Its start with an immediate approval: what an admin wants to know before deciding."""
    spec, waits = status.accepted_spec, replace(request, needs_approval=True, reason=NEEDS_APPROVAL)
    slice_ = side.wanted.slices.get(spec.slice)
    fitting = () if slice_ is None else candidate_pools(spec, slice_, side.wanted.pools)
    chosen = offering(side.wanted, side.facts, found.world.pools).among(spec, fitting, None, status)
    pools = chosen.pools
    gpus = side.wanted.pools[pools[0]].gpus_per_node if pools else spec.gpus_per_node
    place = standing(request.key, status, gpus, side.wanted, side.facts.at)
    asked = Request(
        key=request.key,
        slice=spec.slice,
        nodes=spec.nodes,
        duration=int(lease_duration(status).total_seconds()),
        pools=pools,
        priority=spec.priority,
        boost=place.boost,
        move=place.move,
        share=place.share,
        service=place.service,
        filed_at=place.filed_at,
        not_before=0 if spec.not_before is None else seconds(spec.not_before),
    )
    answers = quote(found.world, asked, planned=found.planned)
    starts = {answer.pool: answer.start for answer in answers if answer.start is not None}
    best = served(chosen, starts)
    if best is None:
        return replace(waits, message="it fits no pool that it may use, even if approved")
    end = instant(starts[best] + asked.duration)
    return priced(replace(waits, start=instant(starts[best]), end=end), best, side)


def priced(request: RequestChange, key: PoolKey | None, side: Sight) -> RequestChange:
    """With what it costs from its start to its end in that pool."""
    pool = None if key is None else side.wanted.pools.get(key)
    if pool is None or request.start is None or request.end is None:
        return replace(request, pool=key)
    gpus = request.nodes * pool.gpus_per_node
    hours = gpus * (request.end - request.start) / timedelta(hours=1)
    amount = hours * pool.price_per_gpu_hour
    return replace(
        request,
        pool=key,
        gpu_shape=pool.gpu_shape,
        gpus=gpus,
        gpu_hours=round(hours, 2),
        amount=round(amount, 2),
    )


# -- approvals -----------------------------------------------------------------------------------------------


def _needs(base: Sight, head: Sight, own: set[str], actor: str | None) -> Iterable[Need]:
    """For its own requests, and for others that need an approval because of it."""
    notices = {p.file: p for p in head.problems if p.rule == NEEDS_APPROVAL}
    judged = {Phase.PENDING_APPROVAL, *HOLDING}
    for key in sorted(key for key, status in live(head.facts.requests).items() if status.phase in judged):
        status, before = head.facts.requests[key], base.facts.requests.get(key)
        path = gpr_path(*key.split("/"))
        waits = status.phase is Phase.PENDING_APPROVAL
        is_new = key in own or before is None or before.phase is not Phase.PENDING_APPROVAL
        notice = notices.get(path)
        if waits and is_new:
            why = _why(notice, status)
            yield Need(key, path, why, "request", _admins(head, actor), _how_many(status, head))
        elif notice is not None and key in own and status.phase in HOLDING:
            yield Need(key, path, _why(notice, status), "extension", _admins(head, actor))


def _without_waiting(judged: Judged, head: Sight, merge: Merged) -> tuple[Judged, tuple[Need, ...]]:
    """Everyone may request a slice, which then waits for an admin's merge: that is not a refusal."""
    waiting = {denial.path for denial in judged.denials if denial.rule == NEEDS_ADMIN}
    needs = []
    for path, document in head.repository.documents.items():
        asks = isinstance(document, WorkspaceRequest) and path in merge.changes
        if asks and (path in waiting or judged.actor is None):
            name, admins = document.metadata.name, _admins(head, judged.actor)
            needs.append(Need(name, path, f"slice {name} is requested", "slice", admins))
    mine = {need.file for need in needs}
    denials = tuple(denial for denial in judged.denials if denial.path not in mine)
    return replace(judged, denials=denials), tuple(sorted(needs, key=lambda need: need.key))


def _why(notice: Problem | None, status: GPRStatus) -> str:
    if notice is not None:
        return notice.message.removeprefix("an admin must approve: ")
    reasons = status.approval.reasons if status.approval is not None else ()
    return " and ".join(reasons) or status.message or "the project's rules"


def _admins(side: Sight, actor: str | None) -> tuple[str, ...]:
    """Admins who may approve: nobody approves their own request unless the project allows it."""
    project = side.wanted.project
    others = [admin for admin in project.admins if project.approval.own_requests or admin.email != actor]
    return tuple(admin.handle for admin in others)


def _how_many(status: GPRStatus, side: Sight) -> int:
    above, spec = side.wanted.project.approval.two_admins_above, status.accepted_spec
    slice_ = side.wanted.slices.get(spec.slice)
    if above is None or slice_ is None:
        return 1
    pools = [side.wanted.pools[key] for key in candidate_pools(spec, slice_, side.wanted.pools)]
    gpus = min((spec.nodes * pool.gpus_per_node for pool in pools), default=0)
    many_gpus = above.gpus is not None and gpus > above.gpus
    many_nodes = above.nodes is not None and spec.nodes > above.nodes
    return 2 if many_gpus or many_nodes else 1


# -- other documents -----------------------------------------------------------------------------------------


def _others(base: Sight, head: Sight, merge: Merged) -> Iterable[Other]:
    for path, entry in sorted(merge.changes.items()):
        found = rule_of(path)
        if found is None or found[0].kind == "GPR":
            continue
        kind = found[0].kind
        if entry.oid is None:
            yield Other(path, kind, "removed")
        elif base.repository.absent(path):
            yield Other(path, kind, "added")
        else:
            documents = (side.repository.documents.get(path) for side in (base, head))
            was, now = (getattr(document, "spec", None) for document in documents)
            yield Other(path, kind, "changed", _differing(was, now))


def _differing(old: object, new: object) -> tuple[str, ...]:
    """Fields, by their names in files, whose values differ."""
    fields = getattr(type(new), "model_fields", {})
    return tuple(
        field.alias or name
        for name, field in fields.items()
        if getattr(old, name, None) != getattr(new, name, None)
    )
