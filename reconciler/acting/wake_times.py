"""When the loop must run again if nothing else wakes it. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from reconciler.acting.apply import Answers
from reconciler.deciding.decide import Decision, next_instants
from reconciler.endpoints.terms import endpoint_instants
from reconciler.health.remedies import instants
from reconciler.lifecycle.idle import told_at
from reconciler.lifecycle.marks import mark_time
from reconciler.model.events import MARKS
from reconciler.model.facts import Facts, Seen, Wanted
from reconciler.model.lease_end import end_of
from reconciler.model.status_edits import clean_by, leaves_at
from reconciler.model.statuses import live
from reconciler.planning.elastic_pools import elastic_pools
from reconciler.settings import Settings
from scheduler.calendars.elastic import asked_at
from schemas.reading.units import instant
from schemas.status.gpr_status import WAITING, GPRStatus, Phase


def next_wake(
    known: tuple[Facts, Wanted, Seen],
    decision: Decision,
    answers: Answers,
    settings: Settings,
    held: datetime | None,
    now: datetime,
) -> datetime:
    """The earliest scheduled time after `now`: a start, an end, a mark, an answer or query that is due, or the poll.

    `now` has its fraction of a second, unlike the decision: an answer due earlier in this second is not waited for.
    """
    facts, wanted, seen = known
    found = [now + settings.poll, *answers.until, *next_instants(decision.snapshot, decision.plan, settings)]
    found += _askings(decision, wanted)
    if held is not None:
        found.append(max(held, now + timedelta(seconds=1)))
    for key, status in live(facts.requests).items():
        found += _instants(status, wanted, seen)
        if status.phase in WAITING:
            found += [d.not_after for d in wanted.decisions.get(key, ()) if d.not_after is not None]
    found += endpoint_instants(wanted, facts)
    found += instants(facts.remedies, wanted.clusters)
    found += [record.until for record in facts.nodes.values() if record.until is not None]
    later = [at for at in found if at > now]
    return min(later)


def _askings(decision: Decision, wanted: Wanted) -> list[datetime]:
    """When to request nodes that do not exist yet: requesting late would delay the start."""
    pools = elastic_pools(wanted)
    terms = {key: pool.elastic for key, pool in pools.items() if pool.elastic is not None}
    return [instant(s) for s in asked_at(decision.snapshot, decision.plan, terms)] if terms else []


def _instants(status: GPRStatus, wanted: Wanted, seen: Seen) -> list[datetime]:
    if status.phase is Phase.PROVISIONING and status.estimated_start_time is not None:
        return [status.estimated_start_time]
    cluster = wanted.clusters.get(status.assignment.cluster) if status.assignment is not None else None
    if status.end_time is None or cluster is None:
        return []
    if status.phase is Phase.RELEASING:
        due = clean_by(status, cluster.drain)
        return [] if due is None else [due]
    if status.phase is not Phase.PROVISIONED:
        return []
    done = {mark.percent for mark in status.marks}
    marks = [mark_time(status, percent) for percent in MARKS if percent not in done]
    leave = leaves_at(status) or status.end_time
    told = told_at(status, wanted.project.scheduling.idle, seen.reports)
    end = end_of(status, cluster)
    warns = [] if end is None or end.warns_at is None else [end.warns_at]
    return [leave - cluster.notice, leave, *warns, *marks, *([] if told is None else [told])]
