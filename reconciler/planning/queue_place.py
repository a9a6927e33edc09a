"""The queue position of a request: the inputs of its rank, and who gets a new position now. Pure.

Its slice's usage and open requests are read when it is filed or asks for more or something else, and kept
through approvals, moves and requeues. What follows from them and from waiting is computed, never stored.

Held by tests/cases/reconciler/fairness.yaml.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from reconciler.accounts.monthly_limits import is_out
from reconciler.lifecycle.requeue import came_back
from reconciler.model.facts import Facts, Wanted
from reconciler.model.holdings import gpus_of, gpus_per_node
from reconciler.model.status_edits import lease_duration, waits_since
from reconciler.model.statuses import Records, changed, live, records
from scheduler.fairness.rank import RankInputs, mover, overtaking, rank_key, room_in_band, service_of
from scheduler.fairness.usage_share import Demand, Scale, ahead, counted, decayed, of_lease, share
from scheduler.fairness.wait_bounds import PROTECTED, aged, first_come, latest
from scheduler.plan import plan
from scheduler.reasons import Reason
from scheduler.snapshot import FOREVER, Snapshot
from schemas.documents.gpr import RequestSpec
from schemas.documents.scheduling import Fairness, Scheduling
from schemas.reading.units import instant, seconds
from schemas.status.gpr_status import HOLDING, WAITING, GPRStatus, Phase, Place


def placed(before: Facts, after: Facts, wanted: Wanted) -> Facts:
    """`after` with a position for requests filed, or changed to ask for more or something else, since `before`."""
    fresh = _takers(before, after)
    if not fresh:
        return after
    found = _places(after, wanted, frozenset(fresh))
    requests = records(after.requests)
    for key in fresh:
        requests[key] = requests[key].edited(place=found.get(key), displaced_count=0)
    return replace(after, requests=requests)


def _takers(before: Facts, after: Facts) -> list[str]:
    return [
        key
        for key in sorted(changed(before.requests, after.requests))
        if (status := after.requests.get(key)) is not None
        and status.phase in WAITING
        and (
            (old := before.requests.get(key)) is None
            or old.uid != status.uid
            or old.filed_at != status.filed_at
        )
    ]


def _places(facts: Facts, wanted: Wanted, fresh: Collection[str]) -> dict[str, Place]:
    fairness = wanted.project.scheduling.fairness
    if fairness is None:
        return {}
    slices = {facts.requests[key].accepted_spec.slice for key in fresh}
    waiting: dict[str, list[Demand]] = {name: [] for name in slices}
    used = {name: _used(facts, name, fairness) for name in slices}
    for key, status in live(facts.requests).items():
        name = status.accepted_spec.slice
        if name not in waiting:
            continue
        if status.phase in WAITING:
            waiting[name].append(_asked(key, status, wanted))
        elif status.phase in HOLDING:  # the ledger has a lease once its nodes are clean
            used[name] += _held(status, wanted, facts.at, fairness)
    found: dict[str, Place] = {}
    for name in sorted(slices):
        found |= _places_in(waiting[name], used[name], fresh, facts, fairness)
    return found


def _places_in(
    waiting: Iterable[Demand], used: float, fresh: Collection[str], facts: Facts, fairness: Fairness
) -> dict[str, Place]:
    """New positions in one slice, none better than those of its earlier requests.

    Otherwise a slice that cancels its first request would delay its own promises with the next one.
    """
    found, least = {}, 0.0
    for key, hours in ahead(waiting):
        status = facts.requests[key]
        if key in fresh:
            found[key] = Place(used=round(used, 2), ahead=round(max(hours, least - used), 2))
        elif status.place is not None:
            waited, half_life = facts.at - status.filed_at, fairness.half_life
            old = (status.place.used, status.place.ahead)
            least = max(least, counted(*old, waited.total_seconds(), half_life.total_seconds()))
    return found


def place_of_unfiled(
    key: str, spec: RequestSpec, filed_at: int, facts: Facts, wanted: Wanted
) -> Place | None:
    """The position it would get; independent of its spec if all others were filed before it."""
    among = replace(facts, requests={**live(facts.requests), key: _unfiled(spec, filed_at)})
    return _places(among, wanted, {key}).get(key)


def unfiled_at(
    place: Place | None, asked: tuple[str, RequestSpec, int], wanted: Wanted, now: datetime
) -> RankInputs:
    """The rank's inputs for a known position; `asked`: its key, spec and filing time."""
    key, spec, filed_at = asked
    status = _unfiled(spec, filed_at).edited(place=place)
    return standing(key, status, gpus_per_node(spec, wanted), wanted, now)


def _unfiled(spec: RequestSpec, filed_at: int) -> GPRStatus:
    return GPRStatus(
        phase=Phase.QUEUED, uid="", filed_at=instant(filed_at), accepted_spec=spec, spec_digest=""
    )


def scale_of(slice_: str, wanted: Wanted, fairness: Fairness) -> Scale:
    """The scale for a slice's usage; a slice without a manifest has weight 1."""
    found = wanted.slices.get(slice_)
    weight = 1.0 if found is None else found.weight
    return Scale(weight, fairness.step, fairness.half_life.total_seconds())


def _used(facts: Facts, slice_: str, fairness: Fairness) -> float:
    """GPU-hours of ended leases, each decayed until now."""
    record = facts.usage.get(slice_)
    if record is None or record.at is None:
        return 0.0
    age = (facts.at - record.at).total_seconds()
    return decayed(record.used, age, fairness.half_life.total_seconds())


def _asked(key: str, status: GPRStatus, wanted: Wanted) -> Demand:
    duration = int(lease_duration(status).total_seconds())
    return Demand(key, seconds(status.filed_at), gpus_of(status, wanted), duration)


def _held(status: GPRStatus, wanted: Wanted, now: datetime, fairness: Fairness) -> float:
    begin = status.start_time or status.estimated_start_time
    end = status.end_time or status.estimated_end_time
    if begin is None or end is None:
        return 0.0
    span = (begin.timestamp(), end.timestamp())
    return of_lease(gpus_of(status, wanted), *span, now.timestamp(), fairness.half_life.total_seconds())


def standing(key: str, status: GPRStatus, gpus: int, wanted: Wanted, now: datetime) -> RankInputs:
    """The rank's inputs at `now`, for nodes with this many GPUs each."""
    spec, filed_at, policy = status.accepted_spec, seconds(status.filed_at), wanted.project.scheduling
    waited = seconds(now) - filed_at if filed_at > 0 else 0  # 0: filing time not recorded
    boost = 0 if policy.ageing is None else aged(spec.priority, waited - _idle(status), policy.ageing)
    if status.displaced_count >= policy.max_displacements:
        boost, part, length = max(boost, _protection(spec, wanted)), PROTECTED, 0
    else:
        part = _share(status, waited, wanted, policy.fairness)
        left = int(lease_duration(status).total_seconds())
        length = service_of(spec.nodes * gpus, left) if policy.order == "shortest-service" else 0
    return RankInputs(key, spec.priority, boost, spec.move, part, length, filed_at)


def _idle(status: GPRStatus) -> int:
    """Seconds since filing during which its `notBefore` was in the future: these do not count as waiting."""
    if status.accepted_spec.not_before is None and status.waits_from is None:  # true for nearly all
        return 0
    return seconds(waits_since(status)) - seconds(status.filed_at)


def _protection(spec: RequestSpec, wanted: Wanted) -> int:
    """Protected up to the top priority of its band, or of its slice if lower: no request there can ask for more."""
    slice_ = wanted.slices.get(spec.slice)
    room = room_in_band(spec.priority)
    return room if slice_ is None else max(0, min(room, slice_.limits.max_priority - spec.priority))


def _share(status: GPRStatus, waited: int, wanted: Wanted, fairness: Fairness | None) -> int:
    if fairness is None or status.place is None:
        return 0
    scale = scale_of(status.accepted_spec.slice, wanted, fairness)
    return share(status.place.used, status.place.ahead, waited, scale)


def standings(requests: Mapping[str, GPRStatus], wanted: Wanted, now: datetime) -> dict[str, RankInputs]:
    reads_gpus = wanted.project.scheduling.order == "shortest-service"
    return {
        key: standing(key, s, gpus_per_node(s.accepted_spec, wanted) if reads_gpus else 0, wanted, now)
        for key, s in requests.items()
    }


def latest_of(status: GPRStatus, policy: Scheduling) -> int:
    """The time after which no later-filed request of its band may delay it; FOREVER: none."""
    place = status.place
    if policy.max_wait_multiple is None or place is None or place.first_come is None:
        return FOREVER
    return latest(seconds(waits_since(status)), seconds(place.first_come), policy.max_wait_multiple)


def with_first_come(
    requests: Mapping[str, GPRStatus], anew: Iterable[str], world: Snapshot, policy: Scheduling
) -> Records:
    """`requests`, with first-come-first-served starts for those in `anew`. One plan if the project bounds waits."""
    found = records(requests)
    fresh = [] if policy.max_wait_multiple is None else [k for k in sorted(anew) if _is_unread(found.get(k))]
    starts = plan(first_come(world)).placements if fresh else {}
    for key in fresh:
        if key in starts:
            place = found[key].place or Place()
            read = place.edited(first_come=instant(starts[key].start))
            found[key] = found[key].edited(place=read)
    return found


def _is_unread(status: GPRStatus | None) -> bool:
    return (
        status is not None
        and status.phase is Phase.QUEUED
        and (status.place is None or status.place.first_come is None)
    )


def asked_anew(before: Facts, after: Facts, wanted: Wanted) -> frozenset[str]:
    """Requests waiting in `after` that got their position since `before`, or that an admin's move put ahead.

    Also those that were outside their slice's limits; not an evicted request that returns: it has a promise.
    """
    return (
        frozenset(let_past(before, after, wanted))
        | _let_in(before, after, wanted)
        | frozenset(
            key
            for key in changed(before.requests, after.requests)
            if (status := after.requests.get(key)) is not None
            and status.phase is Phase.QUEUED
            and (
                (old := before.requests.get(key)) is None
                or (old.phase is not Phase.QUEUED and not came_back(old, status))
                or old.filed_at != status.filed_at
            )
        )
    )


def _let_in(before: Facts, after: Facts, wanted: Wanted) -> frozenset[str]:
    """Requests that were outside their slice's limits and no longer violate them."""
    return frozenset(
        key
        for key, old in live(before.requests).items()
        if old.reason == Reason.LIMIT_EXCEEDED
        and (status := after.requests.get(key)) is not None
        and status.phase is Phase.QUEUED
        and not status.accepted_spec.stopped
        and status.accepted_spec.slice in wanted.slices
        and not is_out(status, wanted)
    )


def moved(before: Facts, after: Facts) -> frozenset[str]:
    """Waiting requests that an admin moved within their priority."""
    return frozenset(
        key
        for key in changed(before.requests, after.requests)
        if (old := before.requests.get(key)) is not None
        and (status := after.requests.get(key)) is not None
        and old.accepted_spec.move != status.accepted_spec.move
        and _keeps_place(old, status)
    )


def let_past(before: Facts, after: Facts, wanted: Wanted) -> dict[str, str]:
    """Requests ahead of others because an admin, not time, moved one of the two; with the moved request."""
    by_admin = moved(before, after)
    if not by_admin:
        return {}
    waiting = {
        key: (old, status)
        for key, status in live(after.requests).items()
        if (old := before.requests.get(key)) is not None and _keeps_place(old, status)
    }
    sides = (standings({key: pair[i] for key, pair in waiting.items()}, wanted, after.at) for i in (0, 1))
    ranks, then = ({key: rank_key(place) for key, place in side.items()} for side in sides)
    return {key: mover(key, by_admin, ranks, then) for key in sorted(overtaking(ranks, then))}


def _keeps_place(old: GPRStatus, new: GPRStatus) -> bool:
    """True if it waited and still waits, and only a move can have changed its position."""
    return (
        old.phase is Phase.QUEUED
        and new.phase is Phase.QUEUED
        and old.filed_at == new.filed_at
        and old.accepted_spec.priority == new.accepted_spec.priority
    )
