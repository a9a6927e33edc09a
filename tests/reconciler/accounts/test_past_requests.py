"""A repository's own requests as a trace (E11, F15): with the pools that the controller would choose among."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from reconciler.accounts.past_requests import history
from reconciler.model.facts import Facts, Wanted
from scheduler.calendars.elastic import is_placeholder
from scheduler.replay.replay_fleet import Fleet
from scheduler.replay.simulation import simulate
from scheduler.replay.trace import arriving_faster
from scheduler.snapshot import Promise
from schemas.documents.elastic import Burst
from schemas.documents.gpr import RequestSpec
from schemas.reading.units import seconds
from schemas.status.gpr_status import GPRStatus, Phase
from tests.reconciler.accounts.test_monthly_limits import wanted_of
from tests.reconciler.planning.test_elastic_pools import wanted as elastic
from tests.support.world import START

HOUR = timedelta(hours=1)
FILED = seconds(START)


def _ran(spec: RequestSpec, filed_at: timedelta = timedelta()) -> GPRStatus:
    start = START + filed_at
    return GPRStatus(
        phase=Phase.COMPLETED,
        uid="x",
        filed_at=start,
        accepted_spec=spec,
        spec_digest="d",
        start_time=start,
        end_time=start + spec.duration,
    )


def _bursting() -> Wanted:
    """West is used when the wait elsewhere would be more than an hour."""
    found = wanted_of()
    west = found.clusters["west"].model_copy(update={"burst": Burst(after=HOUR)})
    return replace(found, clusters={**found.clusters, "west": west})


def test_a_burst_cluster_is_held_back_as_by_the_controller() -> None:
    spec = RequestSpec(slice="a", nodes=1, duration=HOUR)
    trace = history(Facts(START, requests={"a/x": _ran(spec, HOUR)}), _bursting())
    (one,) = trace.arrivals
    assert one.request.fallback == {("west", "small"): FILED + 7200}
    assert one.request.pools[-1] == ("west", "small")
    faster = arriving_faster(replace(trace, begin=FILED), 2).arrivals[0].request
    assert (faster.filed_at, faster.fallback) == (FILED + 1800, {("west", "small"): FILED + 5400})


def test_a_preference_is_replayed_as_it_was_chosen() -> None:
    """With no `maxWait` those that cost more never serve it."""
    spec = RequestSpec(slice="a", nodes=1, duration=HOUR, prefer="memory")
    main = wanted_of()
    (one,) = history(Facts(START, requests={"a/x": _ran(spec)}), main).arrivals
    least = min(main.pools[key].memory_per_gpu for key in main.pools)
    assert {main.pools[key].memory_per_gpu for key in one.request.pools} == {least}


def test_nodes_that_do_not_exist_serve_nobody() -> None:
    main, spec = elastic(there=1), RequestSpec(slice="a", nodes=1, duration=HOUR)
    wide = spec.model_copy(update={"nodes": 2})
    facts = Facts(START, requests={"a/fits": _ran(spec), "a/wide": _ran(wide), "b/next": _ran(spec)})
    trace = history(facts, main)
    assert [pool.nodes for pool in trace.pools.values()] == [("h100-1",)]
    assert {arrival.request.key for arrival in trace.arrivals} <= {"a/fits", "b/next"}
    run = simulate(trace)
    assert all(record.start is not None for record in run.records)


def test_a_fleet_gives_nobody_a_placeholder() -> None:
    """Also of pools that have some, with windows or without."""
    pool = elastic(there=1).pools["east", "h100"]
    assert any(map(is_placeholder, pool.nodes))
    fleet = Fleet({pool.key: pool}, {})
    assert fleet.free(pool.key) == 1
    (one,) = history(
        Facts(START, requests={"a/x": _ran(RequestSpec(slice="a", nodes=1, duration=HOUR))}), elastic(there=1)
    ).arrivals
    wide = replace(one.request, nodes=2, promise=Promise(pool.key, FILED))
    assert fleet.take(wide, FILED) is None
    lease = fleet.take(replace(wide, nodes=1), FILED)
    assert lease is not None
    assert lease.nodes == ("h100-1",)
