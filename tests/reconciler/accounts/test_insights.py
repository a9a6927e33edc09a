"""What requests that are over have shown, and what is expected because of it (E1, E9, G6)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.accounts.insights import KEPT_DAYS, Ended, bucket, ended_of, with_ended
from reconciler.accounts.past_requests import history
from reconciler.model.facts import Facts
from reconciler.planning.forecast_inputs import lesson
from reconciler.planning.snapshot import build_snapshot
from scheduler.estimates.expected_starts import LEAST, Drawn
from schemas.reading.units import format_instant
from schemas.status.gpr_status import Phase
from tests.support.world import World, at, cluster, project

HOUR = timedelta(hours=1)


def lived(count: int = LEAST, *, release_after: int | None = None) -> World:
    """A world in which so many requests of half an hour have run, one after the other, each for as long as told."""
    world = World()
    for number in range(count):
        key = f"a/run{number}"
        world.file(key, nodes=2, duration="30m")
        world.run(world.now + timedelta(minutes=release_after or 60))
        if release_after:
            world.file(key, nodes=2, duration="30m", earlyRelease=True)
            world.run(world.now + timedelta(minutes=20))
    return world


@pytest.fixture(scope="module")
def early() -> World:
    """Everybody left about a third into their time; the first is long over, and now one runs and one waits."""
    world = lived(release_after=12)
    world.file("a/now", nodes=2, duration="30m")
    world.run(world.now + timedelta(minutes=3))
    world.file("b/waits", nodes=1, duration="30m")
    world.run(world.now + timedelta(minutes=1))
    return world


def test_every_request_that_is_over_is_counted_once(early: World) -> None:
    facts = early.facts()
    assert facts.insights is not None
    total = facts.insights.total
    assert (total.requests, total.ran, total.promised) == (LEAST, LEAST, LEAST)
    assert total.used_gpu_hours < total.asked_gpu_hours == LEAST * 16 * 0.5
    assert sum(total.waits) == LEAST
    for part in (facts.insights.shapes, facts.insights.slices, facts.insights.hours, facts.insights.days):
        assert sum(one.requests for one in part.values()) == LEAST
    assert sum(len(day.rows) for day in facts.ended.values()) == LEAST


def test_gpu_hours_of_days_are_those_of_leases(early: World) -> None:
    insights = early.facts().insights
    assert insights is not None
    held = sum(day.held_gpu_hours for day in insights.days.values())
    assert held == pytest.approx(insights.total.used_gpu_hours, abs=0.01)
    assert {day.gpus for day in insights.days.values()} == {16}


def test_a_promise_has_its_expectation_beside_it(early: World) -> None:
    """People leave early here: it will likely start before the plan says."""
    status = early.status("b/waits")
    assert status.phase is Phase.QUEUED
    assert status.forecast is not None
    assert status.estimated_start_time is not None
    assert status.forecast.p50 < status.estimated_start_time
    assert status.forecast.p10 <= status.forecast.p50 <= status.forecast.p90
    assert status.forecast.learnt_from == LEAST
    assert status.first_estimate is not None
    assert status.first_estimate.told == (status.forecast.p10, status.forecast.p50, status.forecast.p90)


def test_another_controller_reads_the_same(early: World) -> None:
    before = early.facts()
    early.controller = early.start()
    early.run(early.now + timedelta(seconds=1))
    assert (early.facts().insights, early.facts().ended) == (before.insights, before.ended)


def test_the_passing_of_time_changes_no_expectation(early: World) -> None:
    tips = early.people.fetch(["egs/status"])
    early.run(early.now + timedelta(minutes=2))
    assert early.people.fetch(["egs/status"]) == tips


def test_with_too_little_to_learn_from_nothing_is_expected() -> None:
    world = lived(2)
    world.file("a/long", nodes=2, duration="4h")
    world.run(world.now + timedelta(minutes=5))
    world.file("b/waits", nodes=2, duration="1h")
    world.run(world.now + timedelta(minutes=5))
    status = world.status("b/waits")
    assert status.forecast is None
    assert status.first_estimate is not None
    assert status.first_estimate.start == status.estimated_start_time


def test_what_was_cancelled_before_its_start_counts_as_demand_alone() -> None:
    world = World()
    world.file("a/long", nodes=2, duration="4h")
    world.run(at(5))
    world.file("b/gone", nodes=2, duration="1h")
    world.run(at(10))
    world.file("b/gone", nodes=2, duration="1h", earlyRelease=True)
    world.run(at(15))
    insights = world.facts().insights
    assert insights is not None
    assert (insights.total.requests, insights.total.ran, insights.slices["b"].asked_gpu_hours) == (1, 0, 16.0)


def test_a_request_that_made_room_is_counted_as_one() -> None:
    """It waited until its first start, not while it ran, and was served in all of its leases (E9, G6)."""
    policy = {"guaranteed": "0d0h10m", "spareLast": "0d0h5m", "leastGain": "0d0h5m"}
    world = World(
        {
            "project.yaml": project(scheduling={"preemption": policy}, maxExtension="1h"),
            "clusters/east.yaml": cluster(nodes=1),
        }
    )
    world.file("a/low", duration="2h", priority=50)
    world.run(at(20))
    world.file("a/low", duration="2h", priority=50, extend="30m")
    world.run(at(60))
    world.file("b/high", duration="1h", priority=250)
    world.run(at(400))
    facts, low = world.facts(), world.status("a/low")
    assert (low.phase, low.waited_s, low.served > timedelta()) == (Phase.COMPLETED, 120, True)
    assert facts.insights is not None
    tally = facts.insights.slices["a"]
    assert (tally.requests, tally.wait_s, tally.asked_gpu_hours) == (1, 120, 20.0)
    assert tally.used_gpu_hours == pytest.approx(20, abs=0.2)
    rows = [one for day in facts.ended.values() for row in day.rows if (one := ended_of(row)) is not None]
    row = next(one for one in rows if one.slice == "a")
    assert (row.start, row.duration) == (row.filed + 120, 9000)
    assert row.used == pytest.approx(9000, abs=60)
    held = sum(day.held_gpu_hours for day in facts.insights.days.values())
    assert held == pytest.approx(facts.insights.total.used_gpu_hours, abs=0.01)
    again = next(one for one in history(facts, _wanted(world)).arrivals if one.request.key == "a/low")
    assert again.actual == row.used


def test_time_before_a_request_wants_to_start_is_no_wait() -> None:
    world = World()
    world.file("a/later", duration="1h", notBefore=format_instant(at(90)))
    world.run(at(200))
    insights = world.facts().insights
    assert insights is not None
    assert (insights.total.ran, insights.total.wait_s) == (1, 0)


def test_rows_that_somebody_broke_are_left_out(early: World) -> None:
    facts = early.facts()
    day = max(facts.ended)
    broken = facts.ended[day].model_copy(update={"rows": ("what?", "1,2", *facts.ended[day].rows)})
    spoilt = {**facts.ended, day: broken}
    world = build_snapshot(_wanted(early), facts, None)
    assert lesson(_with(facts, spoilt), world).requests == lesson(facts, world).requests == LEAST


@pytest.mark.parametrize(
    "drawn", [pytest.param(None, id="nothing was drawn"), pytest.param(Drawn(1, 2, 3), id="something was")]
)
def test_a_row_is_read_as_it_was_written(drawn: Drawn | None) -> None:
    one = Ended(5, 9, "a", 'odd, "shape"', 2, 60, 30, 101, (("east", "h100"), ("west", "h,100")), 9, drawn)
    assert ended_of(one.row()) == one


def test_old_days_are_dropped(early: World) -> None:
    facts = early.facts()
    later = facts.at + timedelta(days=KEPT_DAYS + 1)
    status = early.status("a/run0").model_copy(update={"uid": "gpr-00000000-0000"})
    _, kept = with_ended(facts, {**facts.requests, "a/new": status}, _wanted(early), later)
    assert list(kept) == [f"{later:%Y-%m-%d}"]


@pytest.mark.parametrize(("wait_s", "place"), [(0, 0), (60, 0), (61, 1), (3600, 2), (10**9, 8)])
def test_a_wait_is_counted_under_the_least_bound_that_holds_it(wait_s: int, place: int) -> None:
    assert bucket(wait_s) == place


def _with(facts: Facts, ended: object) -> Facts:
    from dataclasses import replace

    return replace(facts, ended=ended)  # type: ignore[arg-type]


def _wanted(world: World):  # type: ignore[no-untyped-def]
    before = world.controller._leading.before
    assert before is not None
    return before
