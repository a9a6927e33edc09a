"""How many more nodes bring waits under a target (E9: capacity forecast)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.accounts.capacity import FEWEST, fewest, needed
from scheduler.replay.trace import Arrival, Trace
from tests.scheduler.worlds import EAST, WEST, pool, request

HOUR = 3600


def trace(count: int = 20, nodes: int = 2) -> Trace:
    """One request each quarter of an hour, for one node and an hour each: four nodes serve them as they come."""
    arrivals = tuple(
        Arrival(replace(request(f"s{i}"), duration=HOUR, filed_at=i * 900, not_before=i * 900), HOUR)
        for i in range(count)
    )
    return Trace(0, {EAST: pool(nodes), WEST: pool(1, WEST, gpu_shape="A100-80GB")}, arrivals)


def test_the_fewest_nodes_that_meet_the_target_are_named() -> None:
    found = needed(trace(), "H100-80GB", 60, 100)
    assert found is not None
    assert (found.pool, found.nodes, found.requests) == (EAST, 2, 20)
    waits = {one.nodes: one.p90_s for one in found.tried}
    assert waits[2] == 0
    assert (waits[1] or 0) > 60


def test_a_target_that_is_met_needs_nothing() -> None:
    found = needed(trace(nodes=4), "H100-80GB", 60, 100)
    assert found is not None
    assert (found.nodes, len(found.tried)) == (0, 1)


def test_a_target_beyond_the_most_is_said_to_be() -> None:
    found = needed(trace(), "H100-80GB", 60, 1)
    assert found is not None
    assert found.nodes is None


@pytest.mark.parametrize(
    ("given", "shape"),
    [
        pytest.param(trace(FEWEST - 1), "H100-80GB", id="too few requests"),
        pytest.param(trace(), "A100-80GB", id="nobody asks for the shape"),
        pytest.param(trace(), "B200", id="no pool has the shape"),
    ],
)
def test_nothing_to_replay_gives_no_answer(given: Trace, shape: str) -> None:
    assert needed(given, shape, 60, 10) is None


@given(st.integers(0, 300), st.integers(1, 256))
def test_the_search_finds_the_least_that_is_enough(least: int, most: int) -> None:
    assert fewest(lambda nodes: nodes >= least, most) == (least if least <= most else None)
