"""What bounds a wait: ageing, protection, a multiple of first come, first served (E4, F11, issue of starvation)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.fairness.rank import BAND, band, rank_key
from scheduler.fairness.wait_bounds import aged, first_come, guarded, latest, protected
from scheduler.plan import plan
from scheduler.quote import quote
from scheduler.snapshot import FOREVER, Request, Snapshot
from schemas.documents.scheduling import Ageing
from tests.scheduler import play
from tests.scheduler.worlds import pool, request, starts, world, worlds

DAY = 24 * 3600
DAILY = Ageing(every=timedelta(days=1), step=10)


@pytest.mark.parametrize(
    ("priority", "waited", "boost"),
    [
        pytest.param(101, DAY - 1, 0, id="nothing before the first whole step"),
        pytest.param(101, DAY, 10, id="one step"),
        pytest.param(101, 3 * DAY + 5, 30, id="three whole steps and a bit"),
        pytest.param(195, 9 * DAY, 5, id="never beyond its band"),
        pytest.param(200, 9 * DAY, 0, id="nothing at the top of it"),
        pytest.param(1, 900 * DAY, 99, id="low stays low"),
        pytest.param(101, -5, 0, id="a clock that went back takes nothing"),
    ],
)
def test_waiting_adds_whole_steps_within_the_band(priority: int, waited: int, boost: int) -> None:
    assert aged(priority, waited, DAILY) == boost


@given(st.integers(1, 300), st.integers(0, 400 * DAY))
def test_ageing_changes_no_band(priority: int, waited: int) -> None:
    assert band(priority + aged(priority, waited, DAILY)) == band(priority)


@given(worlds(), st.data())
def test_time_alone_delays_nobody(snapshot: Snapshot, data: st.DataObject) -> None:
    """Whatever ageing and decay make of every rank, standing promises are kept or become earlier."""
    committed, _ = play.commit(snapshot)
    requests = {
        key: replace(one, boost=data.draw(st.integers(0, 9)), share=data.draw(st.integers(-1, 3)))
        for key, one in committed.requests.items()
    }
    assert play.later(committed, plan(replace(committed, requests=requests))) == []


def filed_later(draw: st.DrawFn, snapshot: Snapshot, most: int = 3) -> dict[str, Request]:
    """Requests of the same band, filed after all others, that no admin moved."""
    keys, found = sorted(snapshot.pools), {}
    for i in range(draw(st.integers(1, most))):
        fresh = draw(play.fresh_requests(keys, snapshot.now))
        found[f"new/{i}"] = replace(
            fresh,
            key=f"new/{i}",
            priority=draw(st.sampled_from([fresh.priority, BAND])),  # as high as the band goes
            filed_at=10 + i,
            share=draw(st.integers(0, 2)),
        )
    return found


@given(worlds(), st.data())
def test_a_protected_promise_gives_way_to_nobody_of_its_band(snapshot: Snapshot, data: st.DataObject) -> None:
    committed, _ = play.commit(snapshot)
    chosen = data.draw(st.sampled_from(sorted(committed.requests)))
    safe = replace(protected(committed.requests[chosen]), move=0)
    fresh = data.draw(st.composite(filed_later)(committed))
    after = replace(committed, requests={**committed.requests, chosen: safe, **fresh})
    assert chosen not in play.later(committed, plan(after))


def test_a_protected_promise_gives_way_to_a_higher_band_and_to_an_admins_move() -> None:
    committed, _ = play.commit(world(request("a", filed_at=1), pools=[pool(1)]))
    safe = protected(committed.requests["a/r"])
    for arrival in (request("b", priority=201), request("b", priority=200, move=1)):
        after = replace(committed, requests={"a/r": safe, "b/r": arrival})
        assert starts(plan(after)) == {"b": 0, "a": 10}


@given(worlds(), st.data())
def test_nobody_is_pushed_past_the_bound_by_those_of_the_band_who_filed_later(
    snapshot: Snapshot, data: st.DataObject
) -> None:
    """Not even by way of others that are pushed themselves."""
    committed, _ = play.commit(snapshot)
    bounds = {key: data.draw(st.integers(0, 30) | st.just(FOREVER)) for key in sorted(committed.requests)}
    bounded = {key: replace(one, latest=bounds[key], move=0) for key, one in committed.requests.items()}
    fresh = data.draw(st.composite(filed_later)(committed))
    planned = plan(replace(committed, requests={**bounded, **fresh}))
    for key, one in bounded.items():
        if one.promise is not None:
            start = planned.placements[key].start if key in planned.placements else FOREVER
            assert start <= max(one.promise.start, one.latest)


def test_who_would_have_pushed_waits_behind() -> None:
    """b has used less and would start first; a may be pushed once, and not twice."""
    a = request("a", duration=10, filed_at=1, share=5, latest=15)
    committed, _ = play.commit(world(a, pools=[pool(1)]))
    first = replace(committed, requests={**committed.requests, "b/r": request("b", filed_at=2)})
    assert starts(plan(first)) == {"b": 0, "a": 10}
    committed, _ = play.commit(first)
    second = replace(committed, requests={**committed.requests, "c/r": request("c", filed_at=3)})
    assert starts(plan(second)) == {"b": 0, "c": 20, "a": 10}
    unbounded = {k: replace(r, latest=FOREVER) for k, r in second.requests.items()}
    assert starts(plan(replace(second, requests=unbounded))) == {"b": 0, "c": 10, "a": 20}


def test_a_quote_pushes_nobody_who_may_not_be_pushed_any_further() -> None:
    """As the plan would have it once the request is filed."""
    a, b = request("a", filed_at=1, latest=0), request("b", filed_at=2, latest=FOREVER)
    committed, _ = play.commit(world(a, b, pools=[pool(1)]))
    asked = request("c", priority=102, filed_at=3)
    filed = replace(committed, requests={**committed.requests, "c/r": asked})
    assert [quoted.start for quoted in quote(guarded(committed), asked)] == [10]
    assert starts(plan(filed)) == {"a": 0, "c": 10, "b": 20}


def test_a_higher_band_pushes_past_every_bound() -> None:
    a = request("a", filed_at=1, latest=0)
    committed, _ = play.commit(world(a, pools=[pool(1)]))
    high = request("b", priority=201, filed_at=2)
    after = replace(committed, requests={**committed.requests, "b/r": high})
    assert starts(plan(after)) == {"b": 0, "a": 10}


@given(worlds())
def test_first_come_serves_each_band_in_the_order_of_filing(snapshot: Snapshot) -> None:
    mixed = {
        key: replace(one, priority=one.priority * 60, share=one.nodes, service=one.duration)
        for key, one in snapshot.requests.items()
    }
    turn = first_come(replace(snapshot, requests=mixed)).requests
    order = sorted(turn, key=lambda key: rank_key(turn[key]))
    assert order == sorted(turn, key=lambda k: (-band(mixed[k].priority), mixed[k].filed_at, k))
    assert all(one.promise is None and one.latest == FOREVER for one in turn.values())


@pytest.mark.parametrize(
    ("first", "multiple", "bound"),
    [
        pytest.param(300, 2.0, 500, id="twice the wait, counted from the filing"),
        pytest.param(300, 1.0, 300, id="once: never later than first come, first served"),
        pytest.param(100, 3.0, 100, id="no wait at all stays none"),
        pytest.param(200, 1.5, 250, id="fractions are whole seconds"),
    ],
)
def test_the_bound_is_a_multiple_of_the_wait(first: int, multiple: float, bound: int) -> None:
    assert latest(100, first, multiple) == bound
