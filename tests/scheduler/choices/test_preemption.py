"""Who is sent away for whom (E7): the laws on random worlds, and the choice against every other that there is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.choices.preemption import (
    NOTHING_SAVED,
    Preemption,
    Terms,
    _Room,
    lost_work,
    preempted,
    with_ends,
)
from scheduler.fairness.rank import band
from scheduler.plan import plan
from scheduler.promises import with_promises
from scheduler.snapshot import FOREVER, Lease, Plan, Pool, PoolKey, Request, Snapshot, Window
from tests.scheduler.brute import Job, assignable, busy_seconds
from tests.scheduler.play import later
from tests.scheduler.worlds import EAST, WEST, pool, request, world
from tests.support.profile import law

NOW = 40
TERMS = Terms(notice=4, guaranteed=10, spare_last=3, least_gain=2)
PRIORITIES = (50, 150, 250)


@st.composite
def worlds(draw: st.DrawFn, *, windows: bool) -> tuple[Snapshot, Mapping[str, int]]:
    """Pools that are mostly leased, requests of all bands with promises and without, and who may go."""
    pools, leases, may_go = [], {}, {}
    for key in (EAST, WEST)[: draw(st.integers(1, 2))]:
        fresh = pool(
            draw(st.integers(1, 5)), key, prepare=draw(st.integers(0, 2)), drain=draw(st.integers(0, 2))
        )
        free = list(fresh.nodes)
        while free:
            taken, free = free[: (many := draw(st.integers(1, 3)))], free[many:]
            if draw(st.integers(0, 4)) == 0:
                continue
            name = f"run{len(leases)}"
            end = NOW + draw(st.integers(1, 40))
            begin = draw(st.integers(0, NOW))
            slice_ = name if draw(st.integers(0, 3)) else draw(st.sampled_from(["", "s0"]))
            leases[f"{name}/r"] = Lease(
                f"{name}/r", slice_, key, tuple(taken), begin, begin, end, end + fresh.drain
            )
            if draw(st.integers(0, 4)):
                may_go[f"{name}/r"] = draw(st.sampled_from(PRIORITIES))
        pools.append(replace(fresh, windows=draw(calendars(fresh)) if windows else {}))
    keys = [p.key for p in pools]
    asked = {f"w{i}/r": draw(waiting(f"w{i}", keys)) for i in range(draw(st.integers(1, 5)))}
    found = Snapshot(NOW, {p.key: p for p in pools}, leases, asked)
    if draw(st.booleans()):
        found = with_promises(found, plan(found))
        if draw(st.booleans()):
            fresh = draw(waiting("new", keys))
            found = replace(found, requests={**found.requests, fresh.key: fresh})
    return found, may_go


@st.composite
def calendars(draw: st.DrawFn, among: Pool) -> dict[str, tuple[Window, ...]]:
    found = {}
    for name in among.nodes:
        if draw(st.integers(0, 3)) == 0:
            begin = NOW + draw(st.integers(1, 40))
            found[name] = (Window(begin, draw(st.sampled_from([begin + 5, FOREVER]))),)
    return found


@st.composite
def waiting(draw: st.DrawFn, name: str, keys: list[PoolKey]) -> Request:
    return Request(
        key=f"{name}/r",
        slice=draw(st.sampled_from(["", name, "s0"])),
        nodes=draw(st.integers(1, 4)),
        duration=draw(st.integers(1, 30)),
        pools=tuple(draw(st.permutations(keys))),
        priority=draw(st.sampled_from(PRIORITIES)),
        filed_at=draw(st.integers(0, 3)),
    )


# -- laws ------------------------------------------------------------------------------------------------------------


@law(150)
@given(worlds(windows=True))
def test_only_strictly_lower_bands_go_that_have_run_long_enough_and_are_not_about_to_end(known) -> None:
    snapshot, may_go = known
    for found in preempted(snapshot, plan(snapshot), may_go, TERMS).preemptions:
        assert found.at == NOW + TERMS.notice
        assert found.victims
        for key in found.victims:
            lease = snapshot.leases[key]
            assert band(may_go[key]) < band(snapshot.requests[found.by].priority)
            assert found.at - lease.start >= TERMS.guaranteed
            assert lease.end - found.at >= TERMS.spare_last


@law(150)
@given(worlds(windows=True))
def test_nobody_who_waits_starts_later_and_the_one_for_whom_room_is_made_gains(known) -> None:
    snapshot, may_go = known
    before = plan(snapshot)
    found = preempted(snapshot, before, may_go, TERMS)
    promised = {key for key, asked in snapshot.requests.items() if asked.promise is not None}
    assert set(later(snapshot, found.plan)) <= set(later(snapshot, before)) | _displaced(found.plan, promised)
    assert found.plan == plan(found.snapshot)
    for preemption in found.preemptions:
        was, now = before.placements[preemption.by], found.plan.placements[preemption.by]
        assert now.start < was.start
    victims = [key for preemption in found.preemptions for key in preemption.victims]
    assert len(victims) == len(set(victims))


def room_for(
    snapshot: Snapshot,
    planned: Plan,
    key: str,
    may_go: Mapping[str, int],
    terms: Terms,
    saved: Mapping[str, int] = NOTHING_SAVED,
) -> Preemption | None:
    """The cheapest choice for one request that waits, not tried yet; None where there is none, or no gain."""
    return _Room(snapshot, planned, may_go, terms, saved).made_for(key)


def _displaced(planned: Plan, promised: set[str]) -> set[str]:
    """Whom a request that takes its place now displaces, as it may without any preemption."""
    return {displaced.key for displaced in planned.displaced if displaced.by and displaced.key in promised}


@law(150)
@given(worlds(windows=True))
def test_where_everybody_has_a_promise_no_promise_moves_later(known) -> None:
    snapshot, may_go = known
    settled = with_promises(snapshot, plan(snapshot))
    assert later(settled, preempted(settled, plan(settled), may_go, TERMS).plan) == []


@law(150)
@given(worlds(windows=False), st.data())
def test_no_other_choice_makes_the_room_with_fewer_or_at_less_cost(known, data) -> None:
    """J4: what some leases saved counts as saved, but only inside of their time."""
    snapshot, may_go = known
    said = (
        st.dictionaries(st.sampled_from(sorted(may_go)), st.integers(-9, NOW + 99)) if may_go else st.just({})
    )
    saved = data.draw(said)
    planned = plan(snapshot)
    for key in planned.order:
        if key in planned.placements:
            found = room_for(snapshot, planned, key, may_go, TERMS, saved)
            got = None if found is None else _cost(snapshot, found.victims, saved)
            assert got == _least(snapshot, planned, key, may_go, saved)


@law(150)
@given(st.integers(0, 100), st.integers(0, 100), st.none() | st.integers(-50, 250), st.integers(0, 100))
def test_nobody_loses_more_than_its_age_or_less_than_nothing_whatever_it_says(start, age, said, more) -> None:
    """J4: a word from outside of the lease counts as none, and a newer checkpoint never loses more."""
    lease, at = _held("x", 1, start, start + 200), start + age
    lost = lost_work(lease, said, at)
    assert 0 <= lost <= age == lost_work(lease, None, at)
    if said is None or not start <= said <= at:
        assert lost == age
    elif said + more <= at:
        assert lost_work(lease, said + more, at) <= lost


@law(100)
@given(worlds(windows=True), st.data())
def test_saying_nothing_of_checkpoints_changes_no_choice(known, data) -> None:
    """J4: words from outside of the leases choose as no words do."""
    snapshot, may_go = known
    outside = st.integers(-99, -1) | st.integers(NOW + TERMS.notice + 1, NOW + 99)
    saved = {key: data.draw(outside) for key in sorted(may_go)}
    planned = plan(snapshot)
    assert preempted(snapshot, planned, may_go, TERMS, saved) == preempted(snapshot, planned, may_go, TERMS)


@law(100)
@given(worlds(windows=True))
def test_deciding_again_decides_nothing_more(known) -> None:
    snapshot, may_go = known
    found = preempted(snapshot, plan(snapshot), may_go, TERMS)
    gone = {key for preemption in found.preemptions for key in preemption.victims}
    left = {key: priority for key, priority in may_go.items() if key not in gone}
    committed = with_promises(found.snapshot, found.plan)
    again = preempted(committed, plan(committed), left, TERMS)
    beneficiaries = {preemption.by for preemption in found.preemptions}
    assert not beneficiaries & {preemption.by for preemption in again.preemptions}


# -- by trying everything ----------------------------------------------------------------------------------------------


def _cost(snapshot: Snapshot, victims: tuple[str, ...], saved: Mapping[str, int]) -> tuple[int, int, int]:
    leases, at = [snapshot.leases[key] for key in victims], NOW + TERMS.notice
    valid = {x.key: said for x in leases if (said := saved.get(x.key)) is not None and x.start <= said <= at}
    lost = [
        snapshot.pools[x.pool].gpus_per_node * len(x.nodes) * (at - valid.get(x.key, x.start)) for x in leases
    ]
    return (len(leases), sum(lost), -sum(lease.start for lease in leases))


def _least(
    snapshot: Snapshot, planned: Plan, key: str, may_go: Mapping[str, int], saved: Mapping[str, int]
) -> tuple[int, int, int] | None:
    asked, at = snapshot.requests[key], NOW + TERMS.notice
    costs = []
    for where in asked.pools:
        among = snapshot.pools[where]
        start = max(at + among.drain + among.prepare, asked.not_before)
        if planned.placements[key].start - start < TERMS.least_gain:
            continue
        can_go = [
            lease.key
            for lease in snapshot.leases.values()
            if lease.key in may_go
            and band(may_go[lease.key]) < band(asked.priority)
            and at - lease.start >= TERMS.guaranteed
            and lease.end - at >= TERMS.spare_last
            and (lease.pool == where or (asked.slice and lease.slice == asked.slice))
        ]
        for many in range(1, len(can_go) + 1):
            costs += [
                _cost(snapshot, victims, saved)
                for victims in combinations(can_go, many)
                if _makes_room(with_ends(snapshot, victims, at), planned, asked, among, start)
            ]
        if _makes_room(snapshot, planned, asked, among, start):
            return None
    return min(costs, default=None)


def _makes_room(snapshot: Snapshot, planned: Plan, asked: Request, among: Pool, start: int) -> bool:
    """Whether nodes can be named for it at that start, with everybody else where the plan has them."""
    runs = [(x.start, x.end) for x in snapshot.leases.values() if asked.slice and x.slice == asked.slice]
    jobs = [_job(among, asked.nodes, start, start + asked.duration)]
    for key, place in planned.placements.items():
        other = snapshot.requests[key]
        if key != asked.key:
            runs += [(place.start, place.end)] if asked.slice and other.slice == asked.slice else []
            jobs += [_job(among, other.nodes, place.start, place.end)] if place.pool == among.key else []
    meets = any(begin < start + asked.duration and start < end for begin, end in runs)
    return not meets and assignable(jobs, busy_seconds(snapshot, among))


def _job(among: Pool, nodes: int, start: int, end: int) -> Job:
    return Job(range(max(NOW, start - among.prepare), end + among.drain), nodes, among.nodes)


# -- examples --------------------------------------------------------------------------------------------------------


def _held(name: str, nodes: int, start: int, end: int, first: int = 1) -> Lease:
    names = tuple(f"h100-{i}" for i in range(first, first + nodes))
    return Lease(f"{name}/r", name, EAST, names, start, start, end, end)


FULL = {
    "wide/r": _held("wide", 2, 0, 90),
    "old/r": _held("old", 1, 0, 90, 3),
    "young/r": _held("young", 1, 25, 90, 4),
}
LOW = dict.fromkeys(FULL, 50)


@pytest.mark.parametrize(
    ("asked", "may_go", "want"),
    [
        pytest.param(request("h", priority=250), LOW, {"young/r"}, id="the one that has used the least goes"),
        pytest.param(request("h", 2, priority=250), LOW, {"wide/r"}, id="one goes rather than two"),
        pytest.param(request("h", 3, priority=250), LOW, {"wide/r", "young/r"}, id="as many as are needed"),
        pytest.param(request("h", 5, priority=250), LOW, set(), id="nobody where it fits nowhere"),
        pytest.param(request("h", priority=100), LOW, set(), id="nobody of its own band"),
        pytest.param(request("h", priority=101), LOW, {"young/r"}, id="the band decides, not the distance"),
        pytest.param(request("h", priority=250), {"old/r": 50}, {"old/r"}, id="nobody who may not go"),
        pytest.param(
            request("h", priority=250, not_before=70),
            LOW,
            set(),
            id="nobody long before it is wanted",
        ),
        pytest.param(
            request("h", priority=250, fallback={EAST: 500}),
            LOW,
            set(),
            id="nobody in a pool it falls back on",
        ),
        pytest.param(
            request("young", priority=250, key="young/next"),
            LOW,
            {"young/r"},
            id="its own slice's lease, which it has to wait for",
        ),
        pytest.param(
            request("old", 2, priority=250, key="old/next"),
            LOW,
            {"old/r", "young/r"},
            id="its own slice's lease and the cheapest beside it",
        ),
    ],
)
def test_who_goes(asked: Request, may_go: Mapping[str, int], want: set[str]) -> None:
    snapshot = world(asked, pools=[pool(4)], leases=FULL.values(), now=NOW)
    found = preempted(snapshot, plan(snapshot), may_go, TERMS)
    assert {key for preemption in found.preemptions for key in preemption.victims} == want


def test_nobody_goes_where_somebody_else_would_move_into_the_room() -> None:
    held = [_held("kept", 1, 0, 60), _held("low", 1, 0, 90, 2)]
    first, second = request("first", priority=250), request("second", priority=250, filed_at=1)
    snapshot = world(first, second, pools=[pool(2)], leases=held, now=NOW)
    settled = with_promises(snapshot, plan(snapshot))
    terms = replace(TERMS, least_gain=20)
    assert room_for(settled, plan(settled), "second/r", {"low/r": 50}, terms) is not None
    assert preempted(settled, plan(settled), {"low/r": 50}, terms).preemptions == ()
