"""What Prometheus reads: names, values, and no label without a bound."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from reconciler.clock import ManualClock
from reconciler.cycle import Cycle
from reconciler.processes.metrics import Metrics
from reconciler.processes.wake import Attempt
from tests.support.world import START, World, at, gpr, gpr_path

DOCS = Path(__file__).parents[3] / "docs" / "reference" / "metrics.md"


def values(metrics: Metrics) -> dict[str, float]:
    """Every sample as Prometheus reads it, like `egs_leading{repo="fleet"}`."""
    text, kind = metrics.page("text/plain")
    assert kind.startswith("text/plain")
    found = {}
    for family in text_string_to_metric_families(text.decode()):
        for sample in family.samples:
            labels = ",".join(f'{k}="{v}"' for k, v in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}"] = sample.value
    return found


@pytest.fixture
def told() -> tuple[World, Metrics, ManualClock]:
    """Metrics that hear of every cycle of a world."""
    clock = ManualClock(START)
    metrics = Metrics(clock)
    metrics.expect("fleet")
    world = World({gpr_path("a/x"): gpr("a", "x", duration="20m")})

    def watch(cycle):
        clock.set(cycle.at)
        metrics.attempted("fleet", Attempt(0.2, cycle))

    world.watchers.append(watch)
    return world, metrics, clock


def test_a_leader_shows_how_its_fleet_is(told):
    world, metrics, _ = told
    world.run(at(5))
    found = values(metrics)
    want = {
        'egs_leading{repo="fleet"}': 1,
        'egs_repository_reachable{repo="fleet"}': 1,
        'egs_requests{phase="Provisioned",repo="fleet",slice="a"}': 1,
        'egs_leases{cluster="east",pool="h100",repo="fleet"}': 1,
        'egs_leased_nodes{cluster="east",pool="h100",repo="fleet"}': 1,
        'egs_nodes{cluster="east",pool="h100",repo="fleet",state="Ready"}': 2,
        'egs_cluster_reachable{cluster="east",repo="fleet"}': 1,
        'egs_starts_overdue{repo="fleet"}': 0,
        'egs_ends_overdue{cluster="east",repo="fleet"}': 0,
        'egs_start_delay_seconds_count{repo="fleet"}': 1,
        'egs_events_total{reason="GPRProvisioned",repo="fleet"}': 1,
        'egs_actions_total{action="add",answer="Done",repo="fleet"}': 1,
        'egs_slips_total{cause="HigherRankArrived",repo="fleet"}': 0,
        'egs_cycle_duration_seconds_bucket{le="0.25",repo="fleet"}': len(world.log),
    }
    assert {name: found.get(name) for name in want} == want
    assert found['egs_pushes_total{outcome="Committed",repo="fleet"}'] >= 3
    last = found['egs_last_successful_cycle_timestamp_seconds{repo="fleet"}']
    assert last == world.log[-1].at.timestamp()


def test_overdue_ends_are_seen_while_the_loop_hangs(told):
    world, metrics, clock = told
    world.run(at(5))
    clock.set(at(24))
    assert values(metrics)['egs_ends_overdue{cluster="east",repo="fleet"}'] == 1


def test_a_follower_shows_that_it_follows_and_no_fleet(told):
    world, metrics, _ = told
    world.run(at(5))
    old = world.controller
    world.start().cycle(world.now)
    metrics.attempted("fleet", Attempt(0.1, old.cycle(world.now)))
    found = values(metrics)
    assert found['egs_leading{repo="fleet"}'] == 0
    assert not [name for name in found if name.startswith("egs_nodes{")]


def test_a_slip_is_counted_with_its_cause(told):
    world, metrics, _ = told
    world.file("b/z", nodes=2)
    world.run(at(5))
    world.file("a/urgent", nodes=2, priority=290)
    world.run(at(6))
    assert values(metrics)['egs_slips_total{cause="HigherRankArrived",repo="fleet"}'] == 1


def test_a_cycle_that_fails_is_counted_with_its_reason(told):
    _, metrics, _ = told
    metrics.attempted("fleet", Attempt(3.0, None, "RemoteUnreachable"))
    assert values(metrics)['egs_cycle_failures_total{reason="RemoteUnreachable",repo="fleet"}'] == 1


def test_no_label_names_a_request(told):
    """The bound of every label is in manifests of admins or in a closed list."""
    world, metrics, _ = told
    world.file("a/very-special-name")
    world.run(at(30))
    text = metrics.page("")[0].decode()
    assert "very-special-name" not in text
    assert 'a/x"' not in text


def test_repositories_are_apart(told):
    _, metrics, _ = told
    metrics.expect("lab")
    metrics.attempted("lab", Attempt(0.1, None, "Bug"))
    found = values(metrics)
    assert found['egs_cycle_duration_seconds_count{repo="lab"}'] == 1
    assert found['egs_cycle_duration_seconds_count{repo="fleet"}'] == 0


def test_open_metrics_is_spoken_to_those_who_ask_for_it(told):
    _, metrics, _ = told
    text, kind = metrics.page("application/openmetrics-text; version=1.0.0")
    assert kind.startswith("application/openmetrics-text")
    assert text.endswith(b"# EOF\n")


def test_every_metric_is_documented_with_its_labels(told):
    _, metrics, _ = told
    docs = DOCS.read_text(encoding="utf-8")
    for family in metrics.registry.collect():
        name = family.name + ("_total" if family.type == "counter" else "")
        assert f"| `{name}` |" in docs, f"docs/reference/metrics.md lacks {name}"


def test_names_follow_the_conventions(told):
    """A prefix of ours, base units, `_total` on what counts up."""
    _, metrics, _ = told
    for family in metrics.registry.collect():
        assert re.fullmatch(r"egs_[a-z_]+", family.name)
        assert family.documentation.endswith(".")
        if family.type == "histogram":
            assert family.name.endswith("_seconds")


def test_other_clocks_are_shown_as_long_as_they_say_something():
    metrics = Metrics(ManualClock(START))
    metrics.attempted("fleet", Attempt(0.2, Cycle(START, False, START, clocks={"the forge": -3600.0})))
    shown = 'egs_clock_offset_seconds{clock="the forge",repo="fleet"}'
    assert values(metrics)[shown] == -3600
    metrics.attempted("fleet", Attempt(0.2, Cycle(START, False, START)))
    assert shown not in values(metrics)
