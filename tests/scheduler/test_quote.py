"""What-if for a request that is not filed (design, section 7, `egs wait`; features D2, D3, D4)."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given

from scheduler.plan import plan
from scheduler.quote import quote
from scheduler.snapshot import Promise, Snapshot
from tests.scheduler.play import commit
from tests.scheduler.worlds import EAST, OUT, WEST, lease, pool, promised_worlds, request, world
from tests.support.profile import law

ASKED = request("a", 2, pools=(EAST, WEST))


def test_one_answer_for_each_pool_the_earliest_first() -> None:
    snapshot = world(pools=[pool(2), pool(3, WEST)], leases=[lease("b", ["h100-1"], 7)], now=1)
    answers = quote(snapshot, ASKED)
    assert [(q.pool, q.free_nodes, q.start, q.wait_s) for q in answers] == [(WEST, 3, 1, 0), (EAST, 1, 7, 6)]


def test_a_standing_promise_of_higher_rank_is_respected() -> None:
    held = request("b", 2, priority=300, promise=Promise(EAST, 0))
    assert [q.start for q in quote(world(held, pools=[pool(2)]), ASKED)] == [10]


def test_a_lower_rank_would_give_way() -> None:
    held = request("b", 2, priority=1, promise=Promise(EAST, 0))
    assert [q.start for q in quote(world(held, pools=[pool(2)]), ASKED)] == [0]


def test_a_pool_that_cannot_says_why_and_comes_last() -> None:
    pools = [replace(pool(2), windows={"h100-1": OUT}), pool(2, WEST)]
    answers = quote(world(pools=pools), ASKED)
    assert [(q.pool, q.start, q.reason) for q in answers] == [(WEST, 0, None), (EAST, None, "NodesOut")]


def test_the_need_for_an_approval_is_shown_beside_the_start() -> None:
    answers = quote(world(pools=[pool(2), pool(2, WEST)]), ASKED, {WEST: True})
    assert [(q.pool, q.needs_approval) for q in answers] == [(EAST, False), (WEST, True)]


def test_an_observed_pool_is_quoted_in_the_calendar_of_what_is_only_shown() -> None:
    held = request("b", 1, slice="a", promise=Promise(EAST, 0), priority=300)
    snapshot = world(held, pools=[pool(3), replace(pool(2, WEST), observed=True)])
    assert [(q.pool, q.start) for q in quote(snapshot, ASKED)] == [(WEST, 0), (EAST, 10)]


@law(300)
@given(promised_worlds(windows=True))
def test_a_quote_is_what_planning_gives_once_it_is_filed(snapshot: Snapshot) -> None:
    """On a world that has come to rest: what was committed would not move by itself."""
    for _ in range(8):
        settled, _ = commit(snapshot)
        if settled == snapshot:
            break
        snapshot = settled
    asked = replace(ASKED, priority=2, filed_at=9, slice="x", pools=tuple(snapshot.pools))
    for answer in quote(snapshot, asked):
        filed = replace(asked, pools=(answer.pool,))
        placement = plan(replace(snapshot, requests={**snapshot.requests, filed.key: filed})).placements.get(
            filed.key
        )
        assert answer.start == (placement and placement.start)
