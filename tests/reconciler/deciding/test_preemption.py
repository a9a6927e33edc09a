"""Laws of preemption over whole controllers: decided once, paid by nobody else, and everybody comes back (E7, J4)."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.laws import Laws
from tests.support.profile import law
from tests.support.world import World, at, cluster, project, slice_

SLICES = "abcd"
FILED = st.fixed_dictionaries(
    {
        "slice": st.sampled_from(SLICES),
        "nodes": st.integers(1, 2),
        "minutes": st.integers(20, 900),
        "priority": st.sampled_from((30, 60, 120, 160, 250)),
        "preemptible": st.booleans(),
        "after": st.integers(0, 90),
    }
)
POLICIES = st.fixed_dictionaries(
    {
        "notice": st.sampled_from(("1m", "10m", "3h")),
        "guaranteed": st.sampled_from(("0m", "30m")),
        "leastGain": st.sampled_from(("1m", "30m")),
        "spareLast": st.sampled_from(("0m", "30m")),
    }
)


def played(policy: dict[str, str], filed: list[dict[str, Any]]) -> World:
    """Requests that come one after the other, and the quiet hours behind them."""
    files = {
        "project.yaml": project(scheduling={"preemption": policy}),
        "clusters/east.yaml": cluster(nodes=2),
    }
    files |= {f"slices/{name}/slice.yaml": slice_(name) for name in SLICES}
    world = World(files, poll=timedelta(minutes=5))
    laws, minute = Laws(world), 0
    for number, one in enumerate(filed):
        minute += one["after"]
        world.run(at(minute))
        terms = {key: one[key] for key in ("nodes", "priority", "preemptible")}
        world.file(f"{one['slice']}/r{number}", duration=f"{one['minutes']}m", **terms)
    world.run(at(minute + 360), limit=20_000)
    laws.reads_back()
    assert laws.broken == []
    return world


@law(10)
@given(POLICIES, st.lists(FILED, min_size=2, max_size=6))
def test_a_preemption_is_decided_once_and_costs_nobody_who_waits(
    policy: dict[str, str], filed: list[dict[str, Any]]
) -> None:
    """Nobody is cancelled, so nothing is called off but for a better start; no slip names one who came back."""
    world = played(policy, filed)
    told = Counter(
        (str(event.reason), event.request)
        for cycle in world.log
        for event in cycle.events
        if "Preempt" in str(event.reason)
    )
    off = {key for reason, key in told if reason == "GPRPreemptionCalledOff"}
    requeued = Counter(e.request for c in world.log for e in c.events if str(e.reason) == "GPRRequeued")
    for (reason, key), times in told.items():
        if reason == "GPRPreempted" and key not in off:
            assert times <= requeued[key] + 1, f"{key} was told {times} times that it makes room"
    assert all(told["GPRPreemptionCalledOff", key] <= len(filed) for key in off)
    for key, status in world.facts().requests.items():
        causes = [slip for slip in status.slips if slip.cause == "Requeued" and slip.by != key]
        assert causes == [], f"{key} is later for somebody who came back: {causes}"
