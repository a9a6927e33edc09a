"""Weights that people ask for, and how many replicas are needed (J2, J3)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.endpoints.rollout import Sight, advanced, first_rollout
from reconciler.endpoints.weights import NoSuchWeights, needed, promoted, rolled_back, with_weights
from schemas.documents.endpoint import EndpointSpec, Replicas
from schemas.status.endpoint_status import EndpointPhase, EndpointStatus, RolloutStatus
from schemas.status.workload_status import WorkloadPhase, WorkloadStatus
from tests.support.endpoints import document, spec_of, version
from tests.support.world import START


def spec(**weights: int) -> EndpointSpec:
    names = ("v1", "v2", "v3")
    return spec_of(versions=[version(name) for name in names], weights=weights)


@pytest.mark.parametrize(
    ("before", "percent", "after"),
    [
        pytest.param({"v1": 100}, 100, {"v2": 100}, id="all of it"),
        pytest.param({"v1": 100}, 10, {"v1": 90, "v2": 10}, id="a part of it"),
        pytest.param(
            {"v1": 60, "v3": 40}, 50, {"v1": 30, "v2": 50, "v3": 20}, id="others keep their proportion"
        ),
        pytest.param(
            {"v1": 50, "v3": 50}, 1, {"v1": 50, "v2": 1, "v3": 49}, id="the first takes what rounding leaves"
        ),
        pytest.param({"v1": 90, "v2": 10}, 20, {"v1": 80, "v2": 20}, id="more than it had"),
    ],
)
def test_a_version_gets_its_share(before: dict[str, int], percent: int, after: dict[str, int]) -> None:
    assert promoted(spec(**before), "v2", percent) == after


def test_what_cannot_be_is_refused_with_advice() -> None:
    with pytest.raises(NoSuchWeights, match="no version v9; choose among v1, v2, v3"):
        promoted(spec(v1=100), "v9", 100)
    with pytest.raises(NoSuchWeights, match="no other version has traffic to share the 60 % that are left"):
        promoted(spec(v2=100), "v2", 40)


@settings(max_examples=30)
@given(st.integers(0, 100), st.integers(0, 100), st.integers(1, 100))
def test_shares_are_always_whole(one: int, cut: int, percent: int) -> None:
    first, third = min(one, cut), 100 - max(one, cut)
    before = {"v1": first, "v2": 100 - first - third, "v3": third}
    if percent < 100 and before["v2"] == 100:
        return
    after = promoted(spec(**before), "v2", percent)
    assert sum(after.values()) == 100
    assert after["v2"] == percent


def status(rollout: RolloutStatus) -> EndpointStatus:
    run = WorkloadStatus(phase=WorkloadPhase.RUNNING, gpr="x", since=START)
    return EndpointStatus(phase=EndpointPhase.SERVING, since=START, rollout=rollout, run=run)


def test_the_weights_from_before_come_back() -> None:
    old, new = spec(v1=100), spec(v2=100)
    moved = advanced(new, first_rollout(old, START), Sight(frozenset({"v1", "v2"})), START)
    assert rolled_back("a/chat", new, status(moved)) == {"v1": 100}


def test_without_weights_from_before_there_is_nothing_to_bring_back() -> None:
    first = first_rollout(spec(v1=100), START)
    for known in (None, status(first)):
        with pytest.raises(NoSuchWeights, match="no weights of endpoint a/chat stood before"):
            rolled_back("a/chat", spec(v1=100), known)
    gone = status(first.edited(before={"v0": 100}))
    with pytest.raises(NoSuchWeights, match="version v0 had traffic before, and is gone"):
        rolled_back("a/chat", spec(v1=100), gone)
    same = status(first.edited(before={"v1": 100}))
    with pytest.raises(NoSuchWeights, match="has the weights from before already"):
        rolled_back("a/chat", spec(v1=100), same)


def test_only_the_weights_of_the_file_change() -> None:
    text = document().replace("  weights:", "  # who gets what\n  weights:")
    edited = with_weights(text.encode(), {"v1": 40, "v2": 60}).decode()
    assert edited == text.replace("  weights:\n    v1: 100\n", "  weights: {v1: 40, v2: 60}\n")


@pytest.mark.parametrize(("load", "replicas"), [(0, 2), (32, 2), (33, 3), (64, 4), (1000, 4)])
def test_replicas_follow_the_requests_within_the_lease(load: float, replicas: int) -> None:
    assert needed(Replicas(min=2, max=4), load, 16) == replicas
