"""A trace through the real planner (design, section 8): what always holds, and small traces by hand."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.replay.answers import requests_csv
from scheduler.replay.node_failures import Failing
from scheduler.replay.record import Run
from scheduler.replay.replay_rank import ByPolicy
from scheduler.replay.simulation import Rules, Simulation, simulate
from scheduler.replay.trace import Trace, arriving_faster, from_rows, releasing_early
from scheduler.snapshot import Lease
from schemas.documents.scheduling import Ageing, Scheduling
from tests.scheduler.traces import HEAD, Told, trace, traces
from tests.support.profile import law

FAIL_OFTEN = Rules(Failing(mean_s=40, mended_s=7, seed=3))


def lines(run: Run) -> list[str]:
    return requests_csv(run).splitlines()[1:]


@pytest.mark.parametrize(
    ("rows", "want"),
    [
        pytest.param(["r,a,0,1,10,101,,,,"], ["r,0,0,0,10,a,"], id="starts when it arrives"),
        pytest.param(["r,a,7,1,10,101,,,20,"], ["r,7,20,20,30,a,"], id="not before its wish"),
        pytest.param(
            ["r,a,0,4,10,101,,,,3", "s,a,1,4,10,101,,,,"],
            ["r,0,0,0,3,a,", "s,1,10,3,13,a,"],
            id="an early release moves the next one forward",
        ),
        pytest.param(
            ["r,a,0,4,10,101,,,,99", "s,a,1,4,10,101,,,,"],
            ["r,0,0,0,10,a,", "s,1,10,10,20,a,"],
            id="nobody runs past the strict end",
        ),
        pytest.param(
            ["r,a,0,4,10,101,,,,", "s,a,1,4,10,50,,,,", "t,a,2,4,10,250,,,,"],
            ["r,0,0,0,10,a,", "s,1,10,20,30,a,HigherRankArrived", "t,2,10,10,20,a,"],
            id="a later arrival of higher rank is the cause of a slip",
        ),
        pytest.param(
            ["r,a,0,1,10,101,s,,,", "s,b,0,1,10,101,s,,,"],
            ["r,0,0,0,10,a,", "s,0,10,10,20,b,"],
            id="a slice runs one at a time",
        ),
        pytest.param(
            ["r,a,5,4,10,101,,1,,4", "s,a,5,4,10,101,,,,"],
            ["r,5,5,5,9,a,", "s,5,15,9,19,a,"],
            id="who runs at the beginning gives back early, too",
        ),
        pytest.param(
            ["r,a,0,9,10,101,,,,", "s,a,0,1,10,101,,,,0"], ["r,0,,,,,", "s,0,0,0,0,a,"], id="too large"
        ),
        pytest.param([], [], id="nobody"),
    ],
)
def test_a_trace(rows: list[str], want: list[str]) -> None:
    assert lines(simulate(trace(*rows))) == want


@law(60)
@given(traces())
def test_a_node_serves_one_request_at_a_time_and_so_does_a_slice(given_trace: Trace) -> None:
    told = Told()
    simulate(given_trace, watcher=told)
    _no_two_at_once(given_trace, told)


@law(40)
@given(traces(strict=True))
def test_also_while_nodes_fail(given_trace: Trace) -> None:
    """E9: a node that is out serves nobody, and everybody gets their time in the end."""
    told = Told()
    run = simulate(given_trace, rules=FAIL_OFTEN, watcher=told)
    _no_two_at_once(given_trace, told)
    for record in run.records:
        if record.start is not None:
            assert record.used == record.duration


@law(60)
@given(traces(priorities=(150,), strict=True))
def test_with_strict_durations_and_nobody_of_higher_rank_later_every_start_is_the_first_estimate(
    given_trace: Trace,
) -> None:
    for record in simulate(given_trace).records:
        assert record.start == record.first_estimate
        assert not record.slips


@law(60)
@given(traces())
def test_who_starts_later_than_told_first_has_slipped_and_every_slip_has_a_true_cause(
    given_trace: Trace,
) -> None:
    """E4: promises move later only for a cause of the closed list that is shown to be one."""
    for record in simulate(given_trace).records:
        assert (record.error or 0) <= 0 or record.slips
        assert record.is_explained
        assert bool(record.causes) == bool(record.slips)


@law(40)
@given(traces())
def test_planning_at_instants_at_which_nothing_happened_changes_nothing(given_trace: Trace) -> None:
    often = Simulation(given_trace)
    for _ in often.instants():
        often._stale = True  # no instant goes by without a plan
    seldom = simulate(given_trace)
    assert lines(often.result()) == lines(seldom)
    assert often.plans >= seldom.plans


@law(30)
@given(traces())
def test_policies_of_the_queue_leave_all_of_that_true(given_trace: Trace) -> None:
    """E2, E3: fairness, ageing, protection and bounded waits under load."""
    policy = Scheduling(
        ageing=Ageing.model_validate({"every": "1m"}), max_displacements=1, max_wait_multiple=1.5
    )
    told = Told()
    simulate(given_trace, ByPolicy(policy, given_trace.pools, {}), watcher=told)
    _no_two_at_once(given_trace, told)


def test_shorter_service_comes_first_where_the_policy_says_so() -> None:
    rows = ["r,a,0,4,7200,101,,,,", "s,a,1,4,72000,101,,,,", "t,a,2,4,7200,101,,,,"]
    policy = Scheduling(order="shortest-service")
    found = trace(*rows)
    run = simulate(found, ByPolicy(policy, found.pools, {}))
    assert [record.start for record in run.records] == [0, 14400, 7200]


def test_a_slice_that_files_many_at_once_does_not_shut_the_others_out() -> None:
    """E2: shares are read when a request is filed."""
    rows = [f"m{i},a,0,4,36000,101,many{i % 2},,," for i in range(6)] + ["o,a,1,4,36000,101,one,,,"]
    found = trace(*rows)
    run = simulate(found, ByPolicy(Scheduling(), found.pools, {}))
    starts = {record.name: record.start for record in run.records}
    assert starts["o"] == 4 * 36000  # two of each of the others are within a step, and were filed before


def test_the_same_seed_gives_the_same_run() -> None:
    found = trace(*(f"r{i},a|b,{i},2,30,{100 + i % 3 * 80},,,," for i in range(20)))
    assert lines(simulate(found, rules=FAIL_OFTEN)) == lines(simulate(found, rules=FAIL_OFTEN))


def test_arrivals_come_faster_from_the_first_on() -> None:
    found = arriving_faster(trace("r,a,10,1,5,101,,,,", "s,a,30,1,5,101,,,90,"), 2)
    assert [(a.request.filed_at, a.request.not_before) for a in found.arrivals] == [(10, 10), (20, 80)]


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_larger_share_of_early_releases_only_adds_to_a_smaller_one(one: float, other: float) -> None:
    rows = [f"r{i},a,{i},1,1000,101,,,," for i in range(30)]
    few, many = sorted((one, other))
    early = [
        {a.name for a in releasing_early(trace(*rows), share, seed=5).arrivals if a.actual < 1000}
        for share in (few, many)
    ]
    assert early[0] <= early[1]


def test_the_answer_of_the_bare_engine_is_the_first_estimate_of_who_arrives_at_once() -> None:
    from scheduler.instance import parse, plan_instance

    text = "\n".join([HEAD, *(f"r{i},a|b,0,{1 + i % 4},{5 + i},101,,,," for i in range(12))])
    planned = plan_instance(text, [("a", 4), ("b", 4)], 0)
    run = simulate(from_rows(parse(text), {"a": 4, "b": 4}))
    assert [r.first_estimate for r in run.records] == [answer.start for answer in planned.answers]


def _no_two_at_once(given_trace: Trace, told: Told) -> None:
    """From the leases as they ended; one that was cut short counts until then."""
    held = list(told.ends)
    for pair in combinations(held, 2):
        one, other = pair
        if one.start < other.end and other.start < one.end:
            assert one.slice == "" or one.slice != other.slice
            assert one.pool != other.pool or not set(one.nodes) & set(other.nodes) or _replaced(told, pair)
    for lease in held:
        assert len(set(lease.nodes)) == len(lease.nodes)
        assert set(lease.nodes) <= set(given_trace.pools[lease.pool].nodes)


def _replaced(told: Told, pair: Iterable[Lease]) -> bool:
    """A node that took a bad one's place served somebody else before: the lease as it ended names the last ones."""
    begun = {(lease.key, lease.start): lease.nodes for lease in told.leases}
    return any(begun[lease.key, lease.start] != lease.nodes for lease in pair)
