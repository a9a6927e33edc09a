"""When a request will likely start, from how requests like those before it ended and who arrives (E1, E9)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.estimates.expected_starts import (
    LEAST,
    MOST_FUTURES,
    WORK,
    Arrived,
    Drawn,
    Learnt,
    Past,
    drawn,
    drawn_quotes,
    futures,
    how_many,
    quantiles,
)
from scheduler.estimates.habits import Released
from scheduler.fairness.rank import service_of
from scheduler.plan import plan
from scheduler.snapshot import Promise, Snapshot
from tests.scheduler.worlds import EAST, lease, pool, request, world, worlds
from tests.support.profile import law

DAY, HOUR = 86_400, 3600
NOW = 20 * DAY
ONE = pool(1)


def past(*shares: float, length: int = 4 * HOUR, times: int = LEAST) -> Past:
    """Everybody ran so much of `length`, in turn."""
    used = [round(share * length) for share in shares]
    return Past(tuple(Released("a", "H100", length, used[i % len(used)]) for i in range(times)))


def busy(end: int = NOW + 4 * HOUR, **also: int) -> Snapshot:
    """One node that is held by b for four hours from now on, and a, which waits for it."""
    held = replace(lease("b", ["h100-1"], end, start=NOW), held_from=NOW)
    waiting = replace(request("a", 1), duration=4 * HOUR, **also)  # type: ignore[arg-type]
    return replace(world(waiting, pools=[ONE], leases=[held]), now=NOW)


@pytest.mark.parametrize(
    ("known", "want"),
    [
        pytest.param(past(1.0), NOW + 4 * HOUR, id="nobody releases early: as planned"),
        pytest.param(past(0.5), NOW + 2 * HOUR, id="everybody leaves half-way"),
    ],
)
def test_leases_end_as_those_before_them_did(known: Past, want: int) -> None:
    snapshot = busy()
    assert drawn(snapshot, plan(snapshot), Learnt(known))["a/r"] == Drawn(want, want, want)


def test_a_lease_that_ran_long_ends_like_those_that_ran_longer() -> None:
    ran = replace(busy(), now=NOW + 3 * HOUR)
    found = drawn(ran, plan(ran), Learnt(past(0.25, 0.5, 1.0, times=90)))
    assert found["a/r"] == Drawn(*[NOW + 4 * HOUR] * 3)


def test_too_little_to_learn_from_expects_nothing() -> None:
    snapshot = busy()
    assert drawn(snapshot, plan(snapshot), Learnt(past(0.5, times=LEAST - 1))) == {}


def test_who_arrives_above_makes_it_later() -> None:
    known = past(1.0)
    above = [Arrived(NOW - day * DAY + HOUR, "c", "H100", 1, 4 * HOUR, 250, (EAST,)) for day in range(1, 8)]
    old = Arrived(NOW - 8 * DAY, "c", "H100", 1, HOUR, 1, (EAST,))
    snapshot = busy()
    found = drawn(snapshot, plan(snapshot), Learnt(Past(known.released, (old, *reversed(above)))))
    assert found["a/r"].p50 == NOW + 8 * HOUR


def test_who_arrives_below_changes_nothing() -> None:
    below = tuple(
        Arrived(NOW - day * DAY + HOUR, "c", "H100", 1, HOUR, 1, (EAST,)) for day in (7, 6, 5, 4, 3, 2, 1)
    )
    snapshot = busy()
    assert (
        drawn(snapshot, plan(snapshot), Learnt(Past(past(1.0).released, below)))["a/r"].p90 == NOW + 4 * HOUR
    )


@pytest.mark.parametrize(
    ("hours", "want"),
    [
        pytest.param(1, NOW + 5 * HOUR, id="shorter than the one that waits: it goes first"),
        pytest.param(9, NOW + 4 * HOUR, id="longer: it goes behind"),
    ],
)
def test_where_shorter_service_comes_first_arrivals_are_ranked_by_theirs(hours: int, want: int) -> None:
    above = [
        Arrived(NOW - day * DAY + HOUR, "c", "H100", 1, hours * HOUR, 150, (EAST,)) for day in range(1, 8)
    ]
    waits = busy(priority=150, service=service_of(ONE.gpus_per_node, 4 * HOUR))
    found = drawn(waits, plan(waits), Learnt(Past(past(1.0).released, tuple(reversed(above)))))
    assert found["a/r"].p50 == want


def test_a_start_that_may_not_come_earlier_is_not_expected_earlier() -> None:
    snapshot = busy()
    kept = replace(snapshot.requests["a/r"], promise=Promise(EAST, NOW + 4 * HOUR), movable=False)
    snapshot = replace(snapshot, requests={"a/r": kept})
    assert drawn(snapshot, plan(snapshot), Learnt(past(0.5)))["a/r"].p10 == NOW + 4 * HOUR


def test_a_quote_says_what_a_filed_request_would_be_told() -> None:
    snapshot = busy()
    asked = snapshot.requests["a/r"]
    empty = replace(snapshot, requests={})
    found = drawn_quotes(empty, plan(empty), Learnt(past(0.5)), asked)
    assert found == {EAST: Drawn(*[NOW + 2 * HOUR] * 3)}


@given(worlds())
@law(100)
def test_where_everybody_uses_all_of_their_time_nobody_is_expected_after_the_plan(snapshot: Snapshot) -> None:
    bare = {
        key: replace(one, promise=None, may_displace=True, movable=True)
        for key, one in snapshot.requests.items()
    }
    snapshot = replace(snapshot, requests=bare)
    planned = plan(snapshot)
    full = Past(tuple(Released("s", "H100", 10, 10) for _ in range(LEAST)))
    found = drawn(snapshot, planned, Learnt(full))
    assert all(one.p90 <= planned.placements[key].start for key, one in found.items())


@given(worlds(), st.lists(st.floats(0.01, 1), min_size=1, max_size=8))
@law(100)
def test_nobody_is_expected_before_now(snapshot: Snapshot, shares: list[float]) -> None:
    found = drawn(snapshot, plan(snapshot), Learnt(past(*shares, length=10)))
    for key, one in found.items():
        assert max(snapshot.now, snapshot.requests[key].not_before) <= one.p10 <= one.p50 <= one.p90


def test_the_same_world_has_the_same_futures() -> None:
    snapshot, learnt = busy(), Learnt(past(0.1, 0.4, 0.9))
    assert list(futures(snapshot, learnt, HOUR, 4)) == list(futures(snapshot, learnt, HOUR, 4))


def test_futures_spread_over_all_that_is_known() -> None:
    snapshot, learnt = busy(), Learnt(past(*(part / 16 for part in range(1, 17)), times=32))
    ends = {one.ends["b/r"] for one in futures(snapshot, learnt, HOUR, 16)}
    assert len(ends) >= 8
    assert max(ends) - min(ends) > 2 * HOUR


@pytest.mark.parametrize(
    ("waiting", "count"), [(0, MOST_FUTURES), (500, MOST_FUTURES), (WORK // 2, 2), (WORK + 1, 1)]
)
def test_a_long_queue_is_looked_at_in_fewer_futures(waiting: int, count: int) -> None:
    assert how_many(waiting) == count


def test_quantiles_lie_at_weibulls_positions() -> None:
    assert quantiles(range(10, 100, 10)) == Drawn(10, 50, 90)
