"""Extension of a running request: granted if no promise moves; beyond the project's limit an admin must
approve.

Pure. An approval lifts the limit, never another request's promise.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from reconciler.deciding.failed_attempts import Undecided
from reconciler.deciding.favour_delays import whom_it_delays
from reconciler.model.events import Event, Told
from reconciler.model.evidence import Word
from reconciler.model.facts import Facts, Turn, Wanted
from reconciler.model.status_edits import has_condition, with_condition, without_condition
from reconciler.model.statuses import records
from reconciler.planning.queue_place import gpus_of
from reconciler.planning.reserve import reserved
from scheduler.snapshot import Snapshot
from schemas.reading.units import format_duration
from schemas.rules.fit import admins_needed
from schemas.status.gpr_status import ApprovalState, Condition, GPRStatus, Phase


def extended(
    facts: Facts, wanted: Wanted, snapshot: Snapshot, tried: Undecided | None = None
) -> tuple[Facts, Snapshot, tuple[Event, ...]]:
    """Facts and snapshot with every extension that delays no other request; refusals name the delayed
    request.

    `tried` remembers refusals, so that they cost no plans in each cycle.
    """
    known = (facts, wanted, Undecided() if tried is None else tried)
    requests = records(facts.requests)
    events: list[Event] = []
    asking = sorted(key for key, status in requests.live.items() if asks_for_more_time(status))
    for key in asking:
        status = requests[key]
        turn, snapshot = _turn(key, status, known, snapshot)
        assert turn.status is not None
        requests[key] = turn.status
        events += turn.events
    return replace(facts, requests=requests), snapshot, tuple(events)


def asks_for_more_time(status: GPRStatus) -> bool:
    """True if a running request asks for a longer extension than it has."""
    return status.phase is Phase.PROVISIONED and status.accepted_spec.extend > status.extended_by


def _turn(
    key: str, status: GPRStatus, known: tuple[Facts, Wanted, Undecided], snapshot: Snapshot
) -> tuple[Turn, Snapshot]:
    facts, wanted, tried = known
    asked, most = status.accepted_spec.extend, wanted.project.max_extension
    words = () if asked <= most else _words_for(key, status, wanted, facts.at)
    if asked > most and not words:
        message = (
            f"{format_duration(asked)} of extension exceeds the project's {format_duration(most)}; an admin "
            f"can approve it with `egs approve {key} --rule extension`"
        )
        return _refused(key, status, message, facts), snapshot
    longer = reserved(_with_longer_lease(key, asked - status.extended_by, snapshot), wanted, facts)
    lease = longer.leases[key]
    hurt = tried.hurt(key, lease, lambda: whom_it_delays(lease, (snapshot, longer), wanted, facts))
    if hurt is not None:
        message = f"it would delay {hurt} beyond its promised start"
        return _refused(key, status, message, facts), snapshot
    assert status.end_time is not None
    end = status.end_time + (asked - status.extended_by)
    granted = _with_words(without_condition(status, "ExtensionRefused"), words, facts.at).model_copy(
        update={"end_time": end, "estimated_end_time": end, "extended_by": asked}
    )
    text = f"{key} may run {format_duration(asked)} longer in total"
    return Turn(granted, (Event(facts.at, Told.EXTENDED, text, key),)), longer


def _words_for(key: str, status: GPRStatus, wanted: Wanted, now: datetime) -> tuple[Word, ...]:
    """Approvals that together allow the whole extension; () if insufficient."""
    spec, held = status.accepted_spec, gpus_of(status, wanted)
    found: dict[str, Word] = {}
    for word in sorted(wanted.words.get(key, ()), key=lambda w: (w.by, w.id)):
        limit = word.limit
        if (
            word.rule == "extension"
            and word.decision == "approve"
            and word.digest == status.spec_digest
            and (word.not_after is None or now < word.not_after)
            and limit is not None
            and limit.nodes >= spec.nodes
            and limit.gpus >= held
            and limit.extend is not None
            and limit.extend >= spec.extend
        ):
            found.setdefault(word.email.lower(), word)
    needed = admins_needed(wanted.project, spec.nodes, held)
    return tuple(found.values())[:needed] if len(found) >= needed else ()


def _with_words(status: GPRStatus, words: tuple[Word, ...], now: datetime) -> GPRStatus:
    """Adds the approvals of its extension to those it has used."""
    if not words:
        return status
    names, ids = tuple(word.by for word in words), tuple(word.id for word in words)
    known = status.approval
    if known is not None:
        state = known.model_copy(update={"ids": tuple(dict.fromkeys((*known.ids, *ids)))})
    else:
        state = ApprovalState(
            reasons=("ExtensionNeedsApproval",),
            decision="approve",
            by=", ".join(names),
            how=words[0].how,
            ids=ids,
            limit=words[0].limit,
            at=now,
        )
    return status.model_copy(update={"approval": state})


def _refused(key: str, status: GPRStatus, message: str, facts: Facts) -> Turn:
    if has_condition(status, "ExtensionRefused", message):
        return Turn(status)
    condition = Condition(type="ExtensionRefused", reason="ExtensionRefused", message=message, at=facts.at)
    told = Event(facts.at, Told.EXTENSION_REFUSED, f"{key} is not extended: {message}", key)
    return Turn(with_condition(status, condition), (told,))


def _with_longer_lease(key: str, by: timedelta, snapshot: Snapshot) -> Snapshot:
    lease, more = snapshot.leases[key], int(by.total_seconds())
    longer = replace(lease, end=lease.end + more, held_until=lease.held_until + more)
    return replace(snapshot, leases={**snapshot.leases, key: longer})
