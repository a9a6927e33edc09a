"""`egs why`: what a request waits for, why its start moved, and what it needs to proceed, in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from egs.commands.output import spoken, working
from reconciler.approvals.file_evidence import NOT_AUTHORISED
from reconciler.approvals.is_approved import hard_violations
from reconciler.deciding.extension import Room, room_for
from reconciler.planning.forecast import expected
from reconciler.planning.forecast_inputs import is_enough
from reconciler.queries import holds
from reconciler.queries.alternatives import GoesOn, Tried, always, tried
from reconciler.queries.rank_words import place_of
from reconciler.queries.schedule import full_plan
from reconciler.queries.state import State, clock, read_state, split
from reconciler.sources.command_errors import NotFound
from reconciler.sources.open_source import opened
from scheduler.calendars.elastic import existing, is_placeholder
from scheduler.choices.fit import approval_reasons
from scheduler.snapshot import Plan, PoolKey
from scheduler.why import why
from schemas.reading.units import format_instant, instant
from schemas.status.gpr_status import HOLDING, GPRStatus, Phase, Slip
from schemas.status.insights import Forecast

_SOON_S = 300
"""If the start is this close, no likely start is given besides the plan."""
_SLIPS = 3
"""Number of latest start changes shown; `egs describe gpr` has them all."""


def reasons(state: State, key: str, known: Plan | None = None) -> list[str]:
    """The sentences, the most immediate first; at least one. `known` is this state's whole plan. Raises NotFound."""
    split(key)
    status = state.facts.requests.get(key)
    filed, held = state.wanted.filed.get(key), holds.hold_of(state.committed, key)
    said = [] if held is None else holds.sentences(key, held)
    if status is None:
        refused = [] if filed is None else [f"Its file is refused: {filed.problem}."]
        if not said and not refused:
            raise NotFound("request", key, {*state.facts.requests, *state.wanted.filed})
        return [*said, *refused]
    conditions = (c for c in status.conditions if held is None or c.type != NOT_AUTHORISED)
    found = [*_of_phase(state, key, status, known), *said, *(f"{c.message}." for c in conditions)]
    return [*found, *_room(state, key, status), *slips_of(status)]


def _room(state: State, key: str, status: GPRStatus) -> Iterator[str]:
    """After a refused extension: how long one could be."""
    if all(condition.type != "ExtensionRefused" for condition in status.conditions):
        return
    room = room_for(key, state.facts, state.wanted, state.snapshot)
    if room is not None:
        yield room_sentence(room, status)


def room_sentence(room: Room, status: GPRStatus) -> str:
    """The longest extension without an admin, until when, and what ends it."""
    end = status.end_time
    if room.most <= status.extended_by:
        if room.before:
            return f"No longer extension is possible: {room.before} starts right after it, and would have to move."
        return "It has the longest extension that the project allows. For more, ask an admin."
    until = "" if end is None else f", until {format_instant(end + room.most - status.extended_by)}"
    could = f"It can have an extension of {spoken(room.most)} in all{until}"
    if room.before:
        return f"{could}: {room.before} starts then, and would have to move for more."
    return f"{could}, the project's limit. For more, ask an admin."


def _of_phase(state: State, key: str, status: GPRStatus, known: Plan | None) -> Iterator[str]:
    if status.phase is Phase.QUEUED:
        yield from _of_queued(state, key, status, known)
    elif status.phase in HOLDING:
        yield from _of_holding(state, status)
    elif status.phase is Phase.PENDING_APPROVAL:
        yield from _of_pending(state, key, status)
    else:
        why_so = f": {status.message}" if status.message else ""
        yield f"It is {status.phase} and never runs again{why_so}."


def _of_pending(state: State, key: str, status: GPRStatus) -> Iterator[str]:
    """The violations, who may approve, and what is wrong with approvals that do not count."""
    reason, _, doubts = (status.message or "the project's rules").partition("; ")
    slice_ = state.wanted.slices.get(status.accepted_spec.slice)
    spec, project, pools = status.accepted_spec, state.wanted.project, state.wanted.pools
    needs = () if slice_ is None else approval_reasons(spec, slice_, project, pools)
    what = " and ".join(need.message for need in needs) or reason
    yield f"It waits for an admin: {what}."
    if project.admins:
        who = ", ".join(admin.handle for admin in project.admins)
        but = "" if project.approval.own_requests else " (never their own request)"
        yield f"{who} may approve it{but}, with `egs approve {key}`."
    else:
        yield "No person may approve it: the project has no admin."
    if doubts:
        yield f"{doubts}."


def _of_queued(state: State, key: str, status: GPRStatus, known: Plan | None) -> Iterator[str]:
    if key not in state.snapshot.requests:
        why_not = () if status.accepted_spec.stopped else hard_violations(status, state.wanted)
        yield f"It is not planned: {'; '.join(why_not) or status.message or 'its slice is gone'}."
        return
    planned = known or whole_plan(state)
    sentences = why(state.snapshot, planned, key)
    yield from _starts(state, planned, key)
    yield from sentences
    place = planned.placements.get(key)
    if place is not None and state.snapshot.pools[place.pool].observed:
        return  # on an observed cluster no node is checked or handed over, and no planned start comes true
    if place is not None and not sentences:
        yield _what_is_left(state, status, place.pool)
    yield place_of(state, key)
    yield from _expected(state, planned, key, is_known=known is not None)
    if status.retry_count and status.message:
        yield f"It was {status.message}."


def _what_is_left(state: State, status: GPRStatus, pool: PoolKey) -> str:
    """For a request that no other one blocks: its checks, or nodes that the pool does not have yet."""
    nodes = existing(state.snapshot.pools[pool])
    taken = {name for lease in state.snapshot.leases.values() if lease.pool == pool for name in lease.nodes}
    missing = status.accepted_spec.nodes - len(set(nodes) - taken)
    if missing <= 0:
        return "Its nodes are free; it waits only for the checks before its start."
    which = "a node that does" if missing == 1 else f"{missing} nodes that do"
    return f"It waits for {which} not exist yet: {'/'.join(pool)} grows for it."


def _starts(state: State, planned: Plan, key: str) -> Iterator[str]:
    place = planned.placements.get(key)
    if place is None:
        return
    start, pool = instant(place.start), "/".join(place.pool)
    rank = sum(other not in state.snapshot.leases for other in planned.order[: planned.order.index(key) + 1])
    wait = spoken(start - state.now)
    if state.snapshot.pools[place.pool].observed:
        yield (
            f"It would start at {format_instant(start)} in {pool}, but that cluster is only observed; "
            "an admin sets its mode to manage."
        )
        return
    yield f"It is number {rank} in the queue and starts at {format_instant(start)} ({wait}) in {pool}."


def _expected(state: State, planned: Plan, key: str, *, is_known: bool) -> Iterator[str]:
    """The likely start, besides the plan; if the plan is known, as committed with it."""
    place = planned.placements.get(key)
    if place is None or place.start - state.snapshot.now < _SOON_S or state.committed is None:
        return
    if is_known and is_enough(state.facts):
        said = state.facts.requests[key].forecast
        if said is None:  # computing one takes about as long as planning the queue
            return
    else:
        found = expected(state.facts, state.facts.requests, state.snapshot, planned, [key]).get(key)
        said = None if found is None else found.forecast
    if said is None:
        yield "Its likely start is unknown: too few requests have ended so far."
        return
    p10, p50, p90 = (format_instant(at) for at in (said.p10, said.p50, said.p90))
    yield (
        f"It will likely start around {p50}, with 80 % probability between {p10} and {p90}, based on the last "
        f"{said.learnt_from} requests that ended."
    )


def _of_holding(state: State, status: GPRStatus) -> Iterator[str]:
    held = status.assignment
    nodes = "its nodes" if held is None else f"{', '.join(held.nodes)} of {held.cluster}"
    start = status.start_time or status.estimated_start_time
    end = status.end_time or status.estimated_end_time
    if status.phase is Phase.PROVISIONING and start is not None:
        yield from coming_nodes(status, nodes, format_instant(start))
    elif status.phase is Phase.PROVISIONED and end is not None:
        left = spoken(max(timedelta(), end - state.now))
        yield f"It is running: it has {nodes} until {format_instant(end)} ({left} left)."
        yield from _comes_back(status)
    else:
        is_one = held is not None and len(held.nodes) == 1
        yield f"Its time is over; {nodes} {'is' if is_one else 'are'} being cleaned."
        yield from _comes_back(status)


def coming_nodes(status: GPRStatus, nodes: str, start: str) -> Iterator[str]:
    """For nodes of a growing pool, which have no names before they exist."""
    held = status.assignment
    absent = [] if held is None else [name for name in held.nodes if is_placeholder(name)]
    if held is None or not absent:
        yield f"It has {nodes}; their checks run, and it starts at {start}."
        return
    there = [name for name in held.nodes if name not in absent]
    coming = f"{len(absent)} node{'s' if len(absent) > 1 else ''}"
    also = f"It has {', '.join(there)}, and " if there else "It waits for "
    yield (
        f"{also}{coming} of {held.cluster}/{held.pool} that the pool is still adding"
        f"{' are on their way' if there else ''}; their checks come then, and it starts at {start}."
    )


def _comes_back(status: GPRStatus) -> Iterator[str]:
    back = None if status.eviction is None else status.eviction.back
    if back is not None and status.eviction is not None:
        yield (
            f"It was evicted for {status.eviction.by} and resumes at {format_instant(back.start)} in "
            f"{back.cluster}/{back.pool}, for its remaining time."
        )


def slips_of(status: GPRStatus) -> Iterator[str]:
    """Its latest moves to later, last first; and the current start if it has moved earlier since."""
    start = status.start_time or status.estimated_start_time
    for i, slip in enumerate(status.slips[-_SLIPS:][::-1]):
        is_old = i == 0 and start is not None and slip.now is not None and start < slip.now
        if is_old and start is not None:
            verb = "started" if status.start_time is not None else "starts"
            yield f"Its start has moved earlier since: it {verb} at {format_instant(start)}."
        yield _slip(slip)


def _slip(slip: Slip) -> str:
    now = "an unknown time" if slip.now is None else format_instant(slip.now)
    causes = " and ".join(map(str, slip.causes))
    return f"Its start moved from {format_instant(slip.was)} to {now} because of {causes}."


def whole_plan(state: State) -> Plan:
    """The plan of this state; a request that fits nowhere also gets what would fit."""
    return full_plan(state.facts.requests, state.snapshot, state.wanted)


def changes(state: State, key: str, known: Plan | None = None, goes_on: GoesOn = always) -> Tried:
    """Changes that would start a waiting request earlier; empty for any other request."""
    status = state.facts.requests.get(key)
    if status is None or status.phase is not Phase.QUEUED or key not in state.snapshot.requests:
        return Tried()
    return tried(state, known or whole_plan(state), key, goes_on)


def why_json(repo: str | None, now: str | None, key: str) -> dict[str, Any]:
    """The answer of `egs why -o json`. Raises NotFound and WrongUse."""
    slice_, name = split(key)
    with opened(repo) as source:
        state = read_state(source, clock(now, source))
        sentences = reasons(state, key)
        with working("Trying changes"):
            helps = changes(state, key)
    status = state.facts.requests.get(key)
    return {
        "slice": slice_,
        "name": name,
        "phase": None if status is None else str(status.phase),
        "reasons": sentences,
        "forecast": forecast_json(None if status is None else status.forecast),
        "alternatives": [one.json() for one in helps.found],
        "untried": helps.untried,
    }


def forecast_json(found: Forecast | None) -> dict[str, Any] | None:
    """As the controller recorded it with the promise; None: too few data, or the request does not wait."""
    return None if found is None else found.model_dump(mode="json", by_alias=True)
