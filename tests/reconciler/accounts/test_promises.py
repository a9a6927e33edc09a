"""The promise ledger: every promised start is settled once, with the cause if it slipped (A7, E9)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.accounts.promises import (
    KEPT_MONTHS,
    MOST_ROWS,
    UNEXPLAINED,
    Start,
    delaying,
    median_at_most,
    start_of,
    with_settled,
)
from reconciler.model.facts import Facts
from reconciler.queries.past.promise_rows import promises_json
from schemas.documents.base import Metadata
from schemas.reading.units import instant
from schemas.status.gpr_status import Cause, GPRStatus, Phase, Slip
from schemas.status.insights import FirstEstimate
from schemas.status.promises import PromisesRecord
from tests.support.world import World, at

MINUTE = timedelta(minutes=1)


@pytest.fixture(scope="module")
def world() -> World:
    """One starts at once, one is overtaken by a more urgent one, one is cancelled while it waits."""
    made = World()
    made.file("a/first", nodes=2, duration="1h")
    made.run(at(5))
    made.file("a/second", nodes=2, duration="30m", priority=50)
    made.file("a/leaves", nodes=2, duration="30m", priority=10)
    made.run(at(10))
    made.file("b/urgent", nodes=2, duration="30m", priority=250)
    made.run(at(20))
    made.file("a/leaves", nodes=2, duration="30m", priority=10, earlyRelease=True)
    made.run(at(200))
    return made


def test_kept_slipped_and_withdrawn_promises_are_counted_once(world: World) -> None:
    (record,) = world.facts().promises.values()
    assert (record.kept, record.slipped, record.withdrawn) == (2, 1, 1)
    assert record.causes == {Cause.HIGHER_RANK_ARRIVED: 1}
    assert sum(record.errors) == len(record.rows) == 3


def test_a_row_says_what_was_promised_and_why_it_slipped(world: World) -> None:
    late = [
        start
        for row in next(iter(world.facts().promises.values())).rows
        if (start := start_of(row)) and start.cause
    ]
    assert [(start.key, start.cause) for start in late] == [("a/second", "HigherRankArrived")]
    assert late[0].start - late[0].promised == 28 * MINUTE
    assert start_of(late[0].row()) == late[0]


def test_another_controller_reads_the_same_ledger(world: World) -> None:
    before = world.facts().promises
    world.controller = world.start()
    world.run(world.now + timedelta(seconds=1))
    assert world.facts().promises == before


def test_the_report_adds_up(world: World) -> None:
    found = promises_json(world.facts(), 12, None)
    assert found["total"] | {"month": found["months"][0]["month"]} == found["months"][0]
    assert (found["total"]["starts"], found["total"]["keptShare"]) == (3, 0.6667)
    assert [row["name"] for row in found["recent"]] == ["second", "urgent", "first"]
    assert {row["slice"] for row in promises_json(world.facts(), 12, {"b"})["recent"]} == {"b"}
    assert promises_json(world.facts(), 12, frozenset())["recent"] == []


def test_an_open_promise_that_moved_later_is_said() -> None:
    made = World()
    made.file("a/first", nodes=2, duration="1h")
    made.run(at(5))
    made.file("a/second", nodes=2, duration="30m", priority=50)
    made.run(at(10))
    assert promises_json(made.facts(), 12, None)["open"] == {"promises": 1, "later": 0}
    made.file("b/urgent", nodes=2, duration="30m", priority=250)
    made.run(at(20))
    assert promises_json(made.facts(), 12, None)["open"] == {"promises": 2, "later": 1}


def waiting(made: World) -> GPRStatus:
    made.file("a/runs", nodes=2, duration="1h")
    made.file("a/waits", nodes=2, duration="1h", priority=50)
    made.run(at(5))
    return made.status("a/waits")


def test_the_cause_is_the_one_that_delayed_it_most() -> None:
    status, promised = waiting(World()), at(0)
    slips = (
        Slip(was=at(-60), now=at(-30), cause=Cause.ADMIN_MOVED, at=at(-60)),  # before the promise
        Slip(was=at(0), now=at(10), cause=Cause.NODE_LOST, by="east/n1", at=at(-5)),
        Slip(was=at(10), now=at(40), cause=Cause.CHECKS_FAILED, by="east/n1", at=at(5)),
        Slip(was=at(40), now=None, cause=Cause.POLICY_CHANGED, at=at(6)),
    )
    assert delaying(status.edited(slips=slips), promised) == Cause.CHECKS_FAILED
    assert delaying(status.edited(slips=slips[3:]), promised) == Cause.POLICY_CHANGED
    assert delaying(status.edited(slips=slips[:1]), promised) == UNEXPLAINED


@pytest.mark.parametrize(
    ("late_s", "kept"), [(-600, 1), (0, 1), (60, 1), (61, 0)], ids=["early", "on time", "tolerated", "late"]
)
def test_the_tolerance_is_a_minute(late_s: int, kept: int) -> None:
    status = waiting(World())
    assert status.first_estimate is not None
    began = status.edited(
        phase=Phase.PROVISIONED, start_time=status.first_estimate.start + timedelta(seconds=late_s)
    )
    (record,) = with_settled(Facts(at(0), requests={"a/w": status}), {"a/w": began}, at(0), MINUTE).values()
    assert (record.kept, record.slipped) == (kept, 1 - kept)


def test_a_return_after_an_eviction_has_a_promise_of_its_own() -> None:
    status = waiting(World())
    first = status.first_estimate
    assert first is not None
    later = FirstEstimate(filed_at=first.filed_at, start=first.start + 90 * MINUTE, served=30 * MINUTE)
    back = status.edited(served=30 * MINUTE, remaining=30 * MINUTE, first_estimate=later)
    began = back.edited(phase=Phase.PROVISIONED, start_time=later.start)
    (record,) = with_settled(Facts(at(0), requests={"a/w": back}), {"a/w": began}, at(0), MINUTE).values()
    assert (record.kept, record.slipped) == (1, 0)
    unknown = began.edited(first_estimate=first)
    assert with_settled(Facts(at(0), requests={"a/w": back}), {"a/w": unknown}, at(0), MINUTE) == {}


def test_an_edit_that_takes_another_place_withdraws_the_promise() -> None:
    status = waiting(World())
    anew = status.edited(filed_at=at(6))
    (record,) = with_settled(Facts(at(0), requests={"a/w": status}), {"a/w": anew}, at(0), MINUTE).values()
    assert (record.kept, record.slipped, record.withdrawn) == (0, 0, 1)
    (record,) = with_settled(Facts(at(0), requests={"a/w": status}), {}, at(0), MINUTE).values()
    assert record.withdrawn == 1


def test_the_ledger_is_bounded() -> None:
    months = {
        f"{2000 + n // 12}-{n % 12 + 1:02}": PromisesRecord(metadata=Metadata(name="m")) for n in range(60)
    }
    status = waiting(World())
    assert status.first_estimate is not None
    began = status.edited(phase=Phase.PROVISIONED, start_time=status.first_estimate.start)
    full = PromisesRecord(metadata=Metadata(name=f"{at(0):%Y-%m}"), rows=("0,a/b,0,",) * MOST_ROWS)
    before = Facts(at(0), requests={"a/w": status}, promises={**months, full.metadata.name: full})
    after = with_settled(before, {"a/w": began}, at(0), MINUTE)
    assert len(after) == KEPT_MONTHS
    assert len(after[full.metadata.name].rows) == MOST_ROWS


def test_a_broken_row_is_left_out() -> None:
    assert [start_of(row) for row in ("", "x,y", "1,a/b,x,", f"{10**30},a/b,1,")] == [None] * 4
    assert start_of("60,a/b,0,NodeLost") == Start("a/b", instant(60), instant(0), "NodeLost")


def test_the_median_is_the_bound_that_half_do_not_exceed() -> None:
    assert median_at_most((0,) * 21) is None
    assert median_at_most((3, 1, 2, *(0,) * 18)) == 0
    assert median_at_most((1, 1, 2, *(0,) * 18)) == 60
    assert median_at_most((*(0,) * 20, 5)) is None
