"""The compiled queue of large traces answers as the plain one: same starts, same slips, same causes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.replay.node_failures import Failing
from scheduler.replay.queue import Queue
from scheduler.replay.record import Run
from scheduler.replay.replay_rank import ByPolicy
from scheduler.replay.resident_queue import Resident
from scheduler.replay.simulation import Rules, Simulation, queue_for, simulate
from scheduler.replay.trace import Trace
from schemas.documents.scheduling import Ageing, Scheduling
from tests.scheduler.traces import Told, trace
from tests.support.profile import law

COMPILED = Rules(compiled_from=0)
FAILING = Failing(mean_s=60, mended_s=9, seed=2)


@st.composite
def alike(draw: st.DrawFn) -> Trace:
    """Traces whose slices bind nobody, on up to three pools with times of preparation and draining."""
    sizes = draw(st.sampled_from([{"a": 4}, {"a": 5, "b": 3}, {"a": 3, "b": 3, "c": 6}]))
    names, rows = sorted(sizes), []
    for i in range(draw(st.integers(0, 25))):
        pools = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
        duration, running = draw(st.integers(1, 14)), draw(st.sampled_from(["", "", "", "", "1"]))
        cells = (
            f"r{i}",
            pools[0] if running else "|".join(pools),
            draw(st.integers(0, 20)),
            1 if running else draw(st.integers(1, 4)),
            duration,
            draw(st.integers(1, 4)) * 70,
            "",
            running if i < 3 else "",
            draw(st.sampled_from(["", "", "", "25"])),
            draw(st.one_of(st.just(""), st.integers(0, duration))),
        )
        rows.append(",".join(map(str, cells)))
    times = draw(st.sampled_from([(0, 0), (0, 0), (2, 0), (0, 3), (1, 2)]))
    found = trace(*rows, sizes=sizes)
    return replace(
        found,
        pools={k: replace(p, prepare=times[0], drain=times[1]) for k, p in found.pools.items()},
        running={k: replace(held, held_until=held.end + times[1]) for k, held in found.running.items()},
    )


@st.composite
def crowded(draw: st.DrawFn) -> Trace:
    """A queue for one pool, so long that one arrival of a higher band moves dozens, and bounds are marked anew."""
    chance = draw(st.randoms(use_true_random=False))
    rows = []
    for i in range(draw(st.integers(30, 90))):
        duration = chance.randint(1, 400)
        submit, nodes, priority = (
            chance.randint(0, 200),
            chance.randint(1, 9),
            chance.choice((50, 50, 150, 250)),
        )
        rows.append(f"r{i},a,{submit},{nodes},{duration},{priority},,,,{chance.randint(1, duration)}")
    return trace(*rows, sizes={"a": 10})


def both(found: Trace, rules: Rules, policy: Scheduling | None = None) -> tuple[Run, Run]:
    def run(chosen: Rules) -> Run:
        ordering = None if policy is None else ByPolicy(policy, found.pools, {})
        return simulate(found, ordering, chosen)

    return run(replace(rules, compiled_from=10**9)), run(replace(rules, compiled_from=0))


@law(100)
@given(alike())
def test_everything_is_as_the_plain_queue_has_it(found: Trace) -> None:
    plain, compiled = both(found, Rules())
    assert compiled == plain


@law(15)
@given(crowded())
def test_also_where_one_arrival_moves_dozens(found: Trace) -> None:
    """E4, E9: the same slips, for the same causes."""
    plain, compiled = both(found, Rules())
    assert compiled == plain


@law(40)
@given(alike())
def test_also_while_nodes_fail(found: Trace) -> None:
    plain, compiled = both(found, Rules(FAILING))
    assert compiled == plain


@law(40)
@given(alike(), st.sampled_from([None, 1.5]))
def test_also_where_places_change_while_requests_wait(found: Trace, multiple: float | None) -> None:
    ageing = Ageing.model_validate({"every": "1m"})
    policy = Scheduling(ageing=ageing, max_displacements=2, max_wait_multiple=multiple)
    plain, compiled = both(found, Rules(), policy)
    assert compiled == plain


@law(30)
@given(alike())
def test_what_a_watcher_sees_is_the_same(found: Trace) -> None:
    plain, compiled = Told(), Told()
    simulate(found, rules=Rules(compiled_from=10**9), watcher=plain)
    simulate(found, rules=COMPILED, watcher=compiled)
    assert [(m.world, m.plan.placements) for m in compiled.moments.values()] == [
        (m.world, dict(m.plan.placements)) for m in plain.moments.values()
    ]
    assert compiled.leases == plain.leases


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        pytest.param(["r,a,0,1,9,101,s,,,", "q,a,0,1,9,101,t,,,"], Resident, id="slices of one request each"),
        pytest.param(["r,a,0,1,9,101,s,,,", "q,a,0,1,9,101,s,,,"], Queue, id="a slice of two requests"),
    ],
)
def test_which_queue_a_trace_has(rows: list[str], kind: type) -> None:
    assert isinstance(queue_for(trace(*rows), COMPILED), kind)


def test_a_small_trace_is_not_worth_a_compiler() -> None:
    assert isinstance(Simulation(trace("r,a,0,1,9,101,,,,"))._queue, Queue)
