"""Advice from the requests' own history (J3): what is learnt, what is known, and what would be filed."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from reconciler.accounts.insights import Ended
from reconciler.queries.demand.request_load import by_hour, known_needs, load_of
from reconciler.queries.demand.slice_advice import Question, check, slice_advice
from reconciler.queries.state import State, read_state
from reconciler.sources.command_errors import NotAllowed, NotFound, WrongUse
from reconciler.sources.open_source import opened
from scheduler.plan import plan
from schemas.documents.base import Metadata
from schemas.reading.units import seconds
from schemas.status.insights import EndedRecord
from tests.reconciler.cli.rig import fleet, folder, request
from tests.support.world import START, cluster

HOUR = 3600
NOW = seconds(START)

MOMENT = timedelta()


def used(begin_h: float, hours: float, nodes: int, slice_: str = "a") -> str:
    """A request that ended: it began so many hours before now."""
    start = NOW - int(begin_h * HOUR)
    return Ended(start, start, slice_, "H100", nodes, HOUR, int(hours * HOUR), 101, (), None, None).row()


def state_of(tmp_path: Path, rows: tuple[str, ...] = (), late: timedelta = MOMENT, **files: str) -> State:
    with opened(str(folder(tmp_path / "repo", fleet(**files)))) as source:
        state = read_state(source, START + late)
    record = EndedRecord(metadata=Metadata(name="2026-11-20"), rows=rows)
    return replace(state, facts=replace(state.facts, ended={"2026-11-20": record}))


def answer(state: State, slice_: str = "a", **asked: Any) -> dict[str, Any]:
    return slice_advice(state, slice_, Question(**asked), plan(state.snapshot))


DAILY = tuple(used(24 * day - 2, 6, 3) for day in range(1, 11)) + tuple(
    used(24 * day - 8, 18, 1) for day in range(1, 11)
)
"""Ten days: one node, and three more for six hours from two hours after this time of day."""


def test_use_by_hour() -> None:
    uses = [(0, 2 * HOUR, 1), (HOUR + HOUR // 2, 3 * HOUR, 2)]
    assert by_hour(uses, 0, 4 * HOUR).tolist() == [1.0, 2.0, 2.0, 0.0]


def test_the_load_is_that_of_the_slice_alone(tmp_path: Path) -> None:
    state = state_of(tmp_path, (used(5, 2, 3), used(4, 4, 1), used(5, 5, 9, "b")))
    assert load_of(state.facts, "a", NOW).nodes.tolist() == [3.0, 4.0, 1.0, 1.0, 1.0]
    assert len(load_of(state.facts, "c", NOW).nodes) == 0


def test_filed_requests_are_known_needs(tmp_path: Path) -> None:
    """A waiting request needs its nodes from when it wanted to start until its planned end."""
    later = {"notBefore": f"{START + timedelta(hours=2):%Y-%m-%dT%H:%M:%SZ}"}
    files = {**request("a/one", nodes=2, duration="2h"), **request("a/two", nodes=1, duration="1h", **later)}
    state = state_of(tmp_path, **files, **request("b/other", nodes=1, duration="9h"))
    found = known_needs("a", state.facts, state.snapshot, plan(state.snapshot), 5)
    assert found == [2, 2, 1, 0, 0]


def test_the_shape_of_the_day_is_advised_and_by_when_to_file(tmp_path: Path) -> None:
    found = answer(state_of(tmp_path, DAILY), hours=24, patience="10m", cold_start="30m")
    assert found["method"] in ("learnt-quantile", "threshold")
    assert found["historyHours"] >= 9 * 24
    assert found["leadSeconds"] == 1800 + found["promisedWaitSeconds"]
    assert found["tooSmall"] == 0
    nodes = [hour["nodes"] for hour in found["hours"]]
    assert max(nodes[3:7]) >= 3
    assert min(nodes[10:20]) < max(nodes[3:7])
    assert found["hours"][0]["fileBy"] == found["at"]
    assert [hour["provisional"] for hour in found["hours"][:3]] == [False, True, True]


def test_what_would_be_filed_fills_what_is_missing(tmp_path: Path) -> None:
    found = answer(state_of(tmp_path, DAILY), hours=12, gpus_per_node=8, shapes=("H100-80GB",))
    begins = [hour["begin"] for hour in found["hours"]]
    held = [0] * 12
    for row in found["proposals"]:
        assert (row["gpusPerNode"], row["gpuShape"]) == (8, ["H100-80GB"])
        first = begins.index(row["notBefore"])
        for place in range(first, first + int(row["duration"].removesuffix("h"))):
            held[place] += row["nodes"]
    assert all(has >= hour["nodes"] for has, hour in zip(held, found["hours"], strict=True))
    names = [row["name"] for row in found["proposals"]]
    assert names
    assert len(set(names)) == len(names)


def test_the_same_question_a_minute_later_has_the_same_names(tmp_path: Path) -> None:
    """So that `--propose` files nothing twice."""
    once, again = (state_of(tmp_path / f"{late}", DAILY, late) for late in (MOMENT, timedelta(minutes=1)))
    names = [row["name"] for row in answer(once, hours=12)["proposals"]]
    assert names
    assert names == [row["name"] for row in answer(again, hours=12)["proposals"]]


def test_a_new_slice_is_advised_what_it_filed_for(tmp_path: Path) -> None:
    found = answer(state_of(tmp_path, **request("a/one", nodes=2, duration="2h")), hours=3)
    assert found["method"] == "known-needs"
    assert [hour["nodes"] for hour in found["hours"]] == [2, 2, 0]
    assert found["proposals"] == []
    assert "3 are needed" in found["sentence"]


def test_another_slices_history_changes_nothing(tmp_path: Path) -> None:
    """B10: what the neighbours used is not in the answer."""
    mine = answer(state_of(tmp_path / "1", DAILY))
    others = tuple(used(24 * day, 20, 4, "b") for day in range(1, 12))
    assert answer(state_of(tmp_path / "2", (*DAILY, *others))) == mine


def test_a_slice_that_no_pool_serves_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(NotAllowed, match="egs wait --slice a"):
        answer(state_of(tmp_path, **{"clusters/east.yaml": cluster(nodes=4)}), gpus_per_node=64)
    with pytest.raises(NotFound):
        answer(state_of(tmp_path), "nowhere")


@pytest.mark.parametrize(
    "asked",
    [
        Question(hours=0),
        Question(hours=169),
        Question(patience="0h"),
        Question(cold_start="soon"),
        Question(cold_start="169h"),
    ],
)
def test_terms_that_mean_nothing(asked: Question) -> None:
    with pytest.raises(WrongUse):
        check(asked)


def test_a_request_that_is_too_small_is_named_and_nothing_is_filed_beside_it(tmp_path: Path) -> None:
    """A slice runs one request at a time; its own lease is no wait of the lead."""
    rows = tuple(used(24 * day, 24, 3) for day in range(1, 11))
    state = state_of(tmp_path, rows, **request("a/one", nodes=1, duration="5h"))
    found = answer(state, hours=8, cold_start="30m")
    assert found["tooSmall"] == 5
    assert found["promisedWaitSeconds"] < 600
    first = min(row["notBefore"] for row in found["proposals"])
    assert first == found["hours"][5]["begin"]
