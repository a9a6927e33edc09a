"""How traffic moves to new weights, step by step, and back (J2)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.endpoints.rollout import Sight, advanced, begun_anew, first_rollout, is_watched, towards
from reconciler.model.observation import Observation
from schemas.status.endpoint_status import RolloutStatus
from tests.support.endpoints import spec_of, version
from tests.support.world import START

MINUTE = timedelta(minutes=1)
BOTH = [version("v1"), version("v2")]
READY = frozenset({"v1", "v2"})
WELL = {"v2": Observation(1000, 0.0, 0.2)}
BOUNDS = {"errorRate": 0.02, "timeToFirstToken": 1.5}
SLOWLY = {"step": 40, "interval": "5m", "bounds": BOUNDS}


def spec(v2: int, **more: Any) -> Any:
    return spec_of(versions=BOTH, weights={"v1": 100 - v2, "v2": v2}, **more)


def moved(minutes: int, sight: Sight, rollout: dict[str, Any] | None = SLOWLY) -> RolloutStatus:
    """From v1 to v2, looked at every minute."""
    known = first_rollout(spec(0), START)
    wanted = spec(100, rollout=rollout)
    for minute in range(minutes + 1):
        known = advanced(wanted, known, sight, START + minute * MINUTE)
    return known


@pytest.mark.parametrize(
    ("minutes", "v2", "state"),
    [
        pytest.param(0, 40, "Moving", id="the first step comes at once"),
        pytest.param(4, 40, "Moving", id="and is observed"),
        pytest.param(5, 80, "Moving", id="then comes the next"),
        pytest.param(10, 100, "Moving", id="the last one is smaller, and is observed too"),
        pytest.param(15, 100, "Steady", id="then it is over"),
    ],
)
def test_traffic_moves_in_steps(minutes: int, v2: int, state: str) -> None:
    found = moved(minutes, Sight(READY, WELL))
    assert (found.weights["v2"], found.state, found.before) == (v2, state, {"v1": 100, "v2": 0})


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        pytest.param(Observation(1000, 0.03, 0.2), "failed 3.0% of its requests", id="too many errors"),
        pytest.param(Observation(1000, 0.0, 1.6), "took 1.60 s to the first token", id="too slow"),
    ],
)
def test_a_broken_bound_brings_the_old_weights_back(seen: Observation, why: str) -> None:
    known = advanced(
        spec(100, rollout=SLOWLY), moved(6, Sight(READY, WELL)), Sight(READY, {"v2": seen}), START
    )
    assert (known.state, known.weights) == ("Returned", {"v1": 100, "v2": 0})
    assert why in str(known.message)
    later = advanced(spec(100, rollout=SLOWLY), known, Sight(READY, WELL), START + timedelta(days=1))
    assert later == known, "it stays so until the document's weights change"
    assert advanced(spec(0, rollout=SLOWLY), known, Sight(READY, WELL), START).state == "Steady"


def test_too_few_requests_prove_nothing_and_hold_the_step() -> None:
    found = moved(30, Sight(READY, {"v2": Observation(3, 1.0, 9.0)}))
    assert (found.state, found.weights["v2"]) == ("Moving", 40)
    assert "until v2 has answered 20 requests" in str(found.message)


@pytest.mark.parametrize(
    ("sight", "why"),
    [
        (Sight(READY, None), "Prometheus cannot be asked"),
        (Sight(READY, {"v2": Observation(100, None, 0.1)}), "how many requests of v2 fail"),
        (Sight(READY, {"v2": Observation(100, 0.0, None)}), "the time to the first token of v2"),
    ],
)
def test_what_cannot_be_judged_is_not_promoted(sight: Sight, why: str) -> None:
    found = moved(30, sight)
    assert (found.weights["v2"], found.state) == (40, "Moving")
    assert why in str(found.message)


def test_no_version_gains_traffic_without_a_ready_replica() -> None:
    found = moved(30, Sight(frozenset({"v1"}), WELL))
    assert (found.weights["v2"], found.message) == (0, "it waits until v2 has a ready replica")
    assert moved(30, Sight(frozenset({"v1"})), None).weights["v2"] == 0
    assert moved(0, Sight(READY), None) == RolloutStatus(
        state="Steady",
        weights={"v1": 0, "v2": 100},
        target={"v1": 0, "v2": 100},
        before={"v1": 100, "v2": 0},
        versions=first_rollout(spec(100), START).versions,
        at=START,
        steps=1,
    )


def test_a_version_that_is_gone_hands_over_at_once() -> None:
    known = first_rollout(spec(0), START)
    alone = spec_of(versions=[version("v2")], weights={"v2": 100}, rollout=SLOWLY)
    assert advanced(alone, known, Sight(READY, WELL), START).weights == {"v2": 100}


def test_what_a_deleted_version_had_goes_to_those_that_answer() -> None:
    """Not to versions that are still loading: the rest moves in steps."""
    three = {"v1": 50, "v2": 30, "v3": 20, "v4": 0}
    known = first_rollout(spec_of(versions=[version(name) for name in three], weights=three), START)
    left = [version(name) for name in ("v2", "v3", "v4")]
    wanted = spec_of(versions=left, weights={"v4": 100}, rollout=SLOWLY)
    found = advanced(wanted, known, Sight(frozenset({"v2", "v3"}), WELL), START)
    assert (found.state, found.weights) == ("Moving", {"v2": 60, "v3": 40, "v4": 0})
    found = advanced(wanted, known, Sight(frozenset({"v3"}), WELL), START)
    assert found.weights == {"v2": 30, "v3": 70, "v4": 0}
    assert advanced(wanted, known, Sight(), START).weights == {"v2": 0, "v3": 0, "v4": 100}, "none answers"
    ready = Sight(frozenset({"v2", "v3", "v4"}), {"v4": Observation(1000, 0.5, 0.1)})
    back = advanced(wanted, advanced(wanted, known, ready, START), ready, START + MINUTE)
    assert (back.state, back.weights) == ("Returned", {"v2": 60, "v3": 40, "v4": 0})


def test_a_version_that_stops_answering_loses_its_traffic_again() -> None:
    wanted, known = spec(100, rollout=SLOWLY), moved(1, Sight(READY, WELL))
    silent = Sight(frozenset({"v1"}), {"v2": Observation(0)})
    for minute in range(2, 7):
        known = advanced(wanted, known, silent, START + minute * MINUTE)
        assert (known.weights["v2"], known.message) == (40, "it waits until v2 has a ready replica")
    again = advanced(wanted, known, Sight(READY, {"v2": Observation(0)}), START + 7 * MINUTE)
    assert again.unready_since is None, "one that is back in time stays"
    known = advanced(wanted, known, silent, START + 7 * MINUTE)
    assert (known.state, known.weights["v2"]) == ("Returned", 0)
    assert known.message == "v2 has had no ready replica for 0d0h5m"


def test_silence_of_all_versions_undoes_nothing() -> None:
    """In the first minutes of a lease every version loads its model: the way back leads nowhere."""
    wanted, known = spec(100, rollout=SLOWLY), moved(6, Sight(READY, WELL))
    for minute in range(7, 60):
        known = advanced(wanted, known, Sight(frozenset(), {}), START + minute * MINUTE)
    assert (known.state, known.unready_since) == ("Moving", None)
    silent = Sight(frozenset({"v1"}), {})
    known = advanced(wanted, known, silent, START + 60 * MINUTE)
    assert known.unready_since == START + 60 * MINUTE, "v1 answers again: from now on it counts"
    again = begun_anew(known, START + 64 * MINUTE)
    assert advanced(wanted, again, silent, START + 65 * MINUTE).state == "Moving", (
        "in another run it begins anew"
    )
    assert advanced(wanted, known, silent, START + 65 * MINUTE).state == "Returned"
    assert begun_anew(first_rollout(wanted, START), START + MINUTE).at == START


def test_a_version_with_all_traffic_that_falls_silent_hands_it_back() -> None:
    wanted, known = spec(100, rollout=SLOWLY), moved(10, Sight(READY, WELL))
    assert known.weights == {"v1": 0, "v2": 100}
    for minute in range(11, 17):
        known = advanced(wanted, known, Sight(frozenset({"v1"}), {}), START + minute * MINUTE)
    assert (known.state, known.weights) == ("Returned", {"v1": 100, "v2": 0})


def test_a_bound_is_judged_while_a_version_is_not_ready() -> None:
    failing = Sight(frozenset({"v1"}), {"v2": Observation(1000, 0.5, 0.2)})
    assert (
        advanced(spec(100, rollout=SLOWLY), moved(1, Sight(READY, WELL)), failing, START).state == "Returned"
    )


def test_a_mended_version_is_tried_again_with_the_same_weights() -> None:
    bad = Sight(READY, {"v2": Observation(1000, 0.5, 0.2)})
    known = advanced(spec(100, rollout=SLOWLY), moved(1, Sight(READY, WELL)), bad, START)
    assert known.state == "Returned"
    mended = [version("v1"), version("v2", image="example.com/vllm:2")]
    wanted = spec_of(versions=mended, weights={"v2": 100}, rollout=SLOWLY)
    assert is_watched(wanted, known)
    found = advanced(wanted, known, Sight(READY, WELL), START)
    assert (found.state, found.weights["v2"]) == ("Moving", 40)
    edited = advanced(wanted, moved(1, Sight(READY, WELL)), Sight(READY, WELL), START + 3 * MINUTE)
    assert (edited.weights["v2"], edited.at) == (40, START + 3 * MINUTE), "it is observed anew"


@pytest.mark.parametrize(
    ("rollout", "v2"),
    [
        pytest.param({**SLOWLY, "bounds": {"errorRate": 0.6}}, 40, id="a looser bound is tried in steps"),
        pytest.param(None, 100, id="without a roll-out the document's weights hold"),
    ],
)
def test_weights_that_went_back_are_tried_again_by_other_rules(
    rollout: dict[str, Any] | None, v2: int
) -> None:
    """They went back because of a rule that is gone."""
    bad = Sight(READY, {"v2": Observation(1000, 0.5, 0.2)})
    known = advanced(spec(100, rollout=SLOWLY), moved(1, Sight(READY, WELL)), bad, START)
    assert known.state == "Returned"
    known = advanced(spec(100, rollout=rollout), known, bad, START + MINUTE)
    assert (known.state == "Steady", known.weights["v2"]) == (rollout is None, v2)


def test_a_new_target_on_the_way_keeps_what_it_returns_to() -> None:
    half = moved(6, Sight(READY, WELL))
    turned = advanced(spec(50, rollout=SLOWLY), half, Sight(READY, WELL), START)
    assert (turned.before, turned.weights["v2"]) == ({"v1": 100, "v2": 0}, 50)


def test_metrics_are_asked_for_only_while_weights_move() -> None:
    steady = first_rollout(spec(0, rollout=SLOWLY), START)
    assert not is_watched(spec(0, rollout=SLOWLY), steady)
    assert is_watched(spec(100, rollout=SLOWLY), steady)
    assert not is_watched(spec(100), steady)


@settings(max_examples=50)
@given(st.data(), st.integers(1, 100))
def test_steps_lose_nothing_and_arrive(data: st.DataObject, step: int) -> None:
    def shares() -> dict[str, int]:
        cuts = sorted(data.draw(st.lists(st.integers(0, 100), min_size=2, max_size=2)))
        return {"v1": cuts[0], "v2": cuts[1] - cuts[0], "v3": 100 - cuts[1]}

    weights, target = shares(), shares()
    for _ in range(100):
        before, weights = weights, towards(weights, target, step)
        assert sum(weights.values()) == 100
        assert sum(abs(weights[name] - before[name]) for name in weights) <= 2 * step
    assert weights == target
