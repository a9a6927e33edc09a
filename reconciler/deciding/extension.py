"""Extension of a running request: granted if no promise moves; beyond the project's limit an admin must approve.

Pure. An approval lifts the limit, never another request's promise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from reconciler.deciding.failed_attempts import FailedAttempts
from reconciler.deciding.favour_delays import whom_it_delays
from reconciler.model.events import Event, EventReason
from reconciler.model.evidence import ApprovalDecision
from reconciler.model.facts import Facts, RequestOutcome, Wanted
from reconciler.model.holdings import gpus_of
from reconciler.model.status_edits import has_condition, with_condition, without_condition
from reconciler.model.statuses import records
from reconciler.planning.reserve import reserved
from scheduler.plan import plan
from scheduler.snapshot import Lease, Snapshot
from schemas.reading.units import format_duration
from schemas.rules.fit import admins_needed
from schemas.status.gpr_status import ApprovalState, Condition, GPRStatus, Phase


def extended(
    facts: Facts, wanted: Wanted, snapshot: Snapshot, attempts: FailedAttempts | None = None
) -> tuple[Facts, Snapshot, tuple[Event, ...]]:
    """Facts and snapshot with every extension that delays no other request; `attempts` remembers refusals."""
    known = (facts, wanted, FailedAttempts() if attempts is None else attempts)
    requests = records(facts.requests)
    events: list[Event] = []
    asking = sorted(key for key, status in requests.live.items() if asks_for_more_time(status))
    for key in asking:
        status = requests[key]
        outcome, snapshot = _outcome(key, status, known, snapshot)
        assert outcome.status is not None
        requests[key] = outcome.status
        events += outcome.events
    return replace(facts, requests=requests), snapshot, tuple(events)


def asks_for_more_time(status: GPRStatus) -> bool:
    """True if a running request asks for a longer extension than it has."""
    return status.phase is Phase.PROVISIONED and status.accepted_spec.extend > status.extended_by


@dataclass(frozen=True, slots=True)
class Room:
    """How much longer a request may run in all, beyond its duration, without an admin."""

    most: timedelta
    """At least what it has already."""
    before: str
    """slice/name of the request that any more would delay; empty: only the project's limit ends it."""


def room_for(key: str, facts: Facts, wanted: Wanted, snapshot: Snapshot) -> Room | None:
    """The longest extension that `extended` would grant; None: the request is not running.

    Only at the start of another request can one more minute begin to hurt, so those instants are tried, by halves.
    Costs two plans or four for each try.
    """
    status, lease = facts.requests.get(key), snapshot.leases.get(key)
    if status is None or lease is None or status.phase is not Phase.PROVISIONED:
        return None
    limit = wanted.project.max_extension - status.extended_by
    lengths = _lengths(lease, snapshot, limit)
    low, high, before = 0, len(lengths), ""
    while low < high:
        middle = (low + high) // 2
        longer = reserved(_with_longer_lease(key, lengths[middle], snapshot), wanted, facts)
        hurt = whom_it_delays(longer.leases[key], (snapshot, longer), wanted, facts)
        low, high, before = (middle + 1, high, before) if hurt is None else (low, middle, hurt)
    most = lengths[low - 1] if low else timedelta()
    return Room(status.extended_by + most, before)


def _lengths(lease: Lease, snapshot: Snapshot, limit: timedelta) -> list[timedelta]:
    """In whole minutes: up to where another request begins, and the limit itself."""
    begins = [(other.held_from, other.start) for other in snapshot.leases.values() if other.key != lease.key]
    begins += [
        (place.start - snapshot.pools[place.pool].prepare, place.start)
        for place in plan(snapshot).placements.values()
    ]
    until = [at - end for held, start in begins for at, end in ((held, lease.held_until), (start, lease.end))]
    found = {timedelta(minutes=seconds // 60) for seconds in until} | {limit}
    return sorted(length for length in found if timedelta() < length <= limit)


def _outcome(
    key: str, status: GPRStatus, known: tuple[Facts, Wanted, FailedAttempts], snapshot: Snapshot
) -> tuple[RequestOutcome, Snapshot]:
    facts, wanted, attempts = known
    asked, most = status.accepted_spec.extend, wanted.project.max_extension
    decisions = () if asked <= most else _decisions_for(key, status, wanted, facts.at)
    if asked > most and not decisions:
        message = (
            f"{format_duration(asked)} of extension exceeds the project's {format_duration(most)}; an admin "
            f"can approve it with `egs approve {key} --rule extension`"
        )
        return _refused(key, status, message, facts), snapshot
    longer = reserved(_with_longer_lease(key, asked - status.extended_by, snapshot), wanted, facts)
    lease = longer.leases[key]
    hurt = attempts.hurt(key, lease, lambda: whom_it_delays(lease, (snapshot, longer), wanted, facts))
    if hurt is not None:
        message = f"it would delay {hurt} beyond its promised start"
        return _refused(key, status, message, facts), snapshot
    assert status.end_time is not None
    end = status.end_time + (asked - status.extended_by)
    granted = _with_decisions(without_condition(status, "ExtensionRefused"), decisions, facts.at).edited(
        end_time=end, estimated_end_time=end, extended_by=asked
    )
    text = f"{key} may run {format_duration(asked)} longer in total"
    return RequestOutcome(granted, (Event(facts.at, EventReason.EXTENDED, text, key),)), longer


def _decisions_for(
    key: str, status: GPRStatus, wanted: Wanted, now: datetime
) -> tuple[ApprovalDecision, ...]:
    """Approvals that together allow the whole extension; () if insufficient."""
    spec, held = status.accepted_spec, gpus_of(status, wanted)
    found: dict[str, ApprovalDecision] = {}
    for decision in sorted(wanted.decisions.get(key, ()), key=lambda d: (d.by, d.id)):
        limit = decision.limit
        if (
            decision.rule == "extension"
            and decision.verdict == "approve"
            and decision.digest == status.spec_digest
            and (decision.not_after is None or now < decision.not_after)
            and limit is not None
            and limit.nodes >= spec.nodes
            and limit.gpus >= held
            and limit.extend is not None
            and limit.extend >= spec.extend
        ):
            found.setdefault(decision.email.lower(), decision)
    needed = admins_needed(wanted.project, spec.nodes, held)
    return tuple(found.values())[:needed] if len(found) >= needed else ()


def _with_decisions(status: GPRStatus, decisions: tuple[ApprovalDecision, ...], now: datetime) -> GPRStatus:
    """Adds the approvals of its extension to those it has used."""
    if not decisions:
        return status
    names, ids = tuple(d.by for d in decisions), tuple(d.id for d in decisions)
    known = status.approval
    if known is not None:
        state = known.edited(ids=tuple(dict.fromkeys((*known.ids, *ids))))
    else:
        state = ApprovalState(
            reasons=("ExtensionNeedsApproval",),
            decision="approve",
            by=", ".join(names),
            how=decisions[0].how,
            ids=ids,
            limit=decisions[0].limit,
            at=now,
        )
    return status.edited(approval=state)


def _refused(key: str, status: GPRStatus, message: str, facts: Facts) -> RequestOutcome:
    if has_condition(status, "ExtensionRefused", message):
        return RequestOutcome(status)
    condition = Condition(type="ExtensionRefused", reason="ExtensionRefused", message=message, at=facts.at)
    told = Event(facts.at, EventReason.EXTENSION_REFUSED, f"{key} is not extended: {message}", key)
    return RequestOutcome(with_condition(status, condition), (told,))


def _with_longer_lease(key: str, by: timedelta, snapshot: Snapshot) -> Snapshot:
    lease, more = snapshot.leases[key], int(by.total_seconds())
    longer = replace(lease, end=lease.end + more, held_until=lease.held_until + more)
    return replace(snapshot, leases={**snapshot.leases, key: longer})
