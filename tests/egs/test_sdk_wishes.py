"""From arguments to what goes over the wire: memory, priority, durations, and the three forms of `request_gpu`. K2."""

from __future__ import annotations

import warnings
from datetime import timedelta

import pytest

import egs
from egs.asking.requesting import request_gpu
from egs.asking.wishes import memory_gb, priority_in_range, span_text
from egs.exceptions import BadParameters, PriorityClamped
from tests.support.sdk import TOKEN, played, said, session

FILED = said(200, {"gprId": "gpr-1", "change": {"way": "pushed", "commit": "c1"}})
TEN = ("train", "vision", "east", 2, 8, 81920, "p5", "H100-80GB", "0d6h0m", 201)
BODY = {
    "gprName": "train",
    "sliceName": "vision",
    "clusterName": "east",
    "numberOfGPUNodes": 2,
    "numberOfGPUs": 8,
    "memoryPerGPU": 80,
    "instanceType": "p5",
    "gpuShape": "H100-80GB",
    "exitDuration": "0d6h0m",
    "priority": 201,
}
FOUR = {
    "idleTimeOutDuration": "0d0h30m",
    "enforceIdleTimeOut": True,
    "enableEviction": False,
    "requeueOnFailure": True,
}
KEYWORDS = {
    "request_name": "train",
    "workspace_name": "vision",
    "node_count": 1,
    "gpu_per_node_count": 8,
    "memory_per_gpu": 80,
    "exit_duration": "1h",
    "priority": 101,
    "idle_timeout_duration": "",
    "enforce_idle_timeout": False,
}
FOURTEEN = (*TEN, "0d0h30m", True, False, True)
FEW = {"node_count": 1, "gpu_per_node_count": 8, "exit_duration": "1h"}
SHORT_BY_PLACE = {
    "gprName": "train",
    "sliceName": "vision",
    "clusterName": "east",
    "numberOfGPUNodes": 1,
    "numberOfGPUs": 8,
    "exitDuration": "1h",
}
CHOOSE = {
    "enable_auto_cluster_selection": True,
    "enable_auto_gpu_selection": True,
    "preferred_clusters": ("a", "b"),
}
CHOSEN = {
    "enableAutoClusterSelection": True,
    "enableAutoGpuSelection": True,
    "preferredClusters": ["a", "b"],
}
SHORT = {
    "gprName": "train",
    "sliceName": "vision",
    "numberOfGPUNodes": 1,
    "numberOfGPUs": 8,
    "memoryPerGPU": 80,
    "exitDuration": "1h",
    "priority": 101,
    "enforceIdleTimeOut": False,
}


@pytest.mark.parametrize(
    ("memory", "want"), [(80, 80), (0, 0), (4096, 4096), (4097, 4), (15360, 15), (81920, 80), (81559, 80)]
)
def test_memory_above_4096_is_mib(memory, want):
    assert memory_gb(memory) == want


@pytest.mark.parametrize("priority", [1, 101, 300])
def test_a_priority_within_the_range_stays(priority):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert priority_in_range(priority) == priority


@pytest.mark.parametrize(
    ("span", "want"),
    [
        ("0d6h0m", "0d6h0m"),
        (timedelta(hours=30), "1d6h0m"),
        (timedelta(seconds=61), "0d0h2m"),
    ],
)
def test_durations(span, want):
    assert span_text(span) == want


def test_no_duration():
    with pytest.raises(BadParameters):
        span_text(timedelta(0))


@pytest.mark.parametrize(
    ("args", "kwargs", "want"),
    [
        pytest.param(TEN, {"authenticated_session": None}, BODY, id="ten, and the session by keyword"),
        pytest.param((*TEN, "S"), {}, BODY, id="ten and the session"),
        pytest.param((*FOURTEEN, "S"), {}, BODY | FOUR, id="fourteen and the session"),
        pytest.param(
            FOURTEEN, {"authenticated_session": "S"}, BODY | FOUR, id="fourteen, session by keyword"
        ),
        pytest.param(TEN[:3], FEW, SHORT_BY_PLACE, id="some by position"),
        pytest.param((), KEYWORDS, SHORT, id="all by keyword"),
        pytest.param((), KEYWORDS | CHOOSE, SHORT | CHOSEN, id="the planner chooses"),
    ],
)
def test_the_forms_of_a_request(args, kwargs, want):
    who = session()
    args = tuple(who if arg == "S" else arg for arg in args)
    kwargs = {name: who if value == "S" else value for name, value in kwargs.items()}
    egs.update_global_session(who)
    try:
        log = played(request_gpu(*args, **kwargs), [TOKEN, FILED])
    finally:
        egs.update_global_session(None)
    assert log.steps[-1].outgoing.body == want
    assert (log.result, log.result.change.way) == ("gpr-1", "pushed")


@pytest.mark.parametrize(
    ("args", "kwargs", "why"),
    [
        pytest.param(TEN[:9], {}, None, id="the priority may be left out"),
        pytest.param(TEN[:4], {}, "needs gpu_per_node_count, exit_duration", id="too little"),
        pytest.param(TEN, {"priority": 3}, "got priority twice", id="twice"),
        pytest.param((*TEN, 1, 2, 3, 4, None, 6), {}, "at most 15", id="too much"),
        pytest.param(TEN, {"colour": "red"}, "no such argument: colour", id="what nobody knows"),
    ],
)
def test_arguments_are_told_before_anything_is_sent(args, kwargs, why):
    if why is None:
        request_gpu(*args, **kwargs).close()
        return
    with pytest.raises(TypeError, match=why):
        request_gpu(*args, **kwargs)


def test_301_is_300_with_a_warning_at_the_line_that_said_it():
    with pytest.warns(PriorityClamped, match="301 is above the maximum and was set to 300") as told:
        script = request_gpu(*TEN[:9], 301, session())
    assert told[0].filename == __file__
    assert played(script, [TOKEN, FILED]).steps[-1].outgoing.body["priority"] == 300


def test_a_session_in_eleventh_place_that_is_none_is_the_default():
    who = session()
    egs.update_global_session(who)
    try:
        assert played(request_gpu(*TEN, None), [TOKEN, FILED]).result == "gpr-1"
    finally:
        egs.update_global_session(None)
