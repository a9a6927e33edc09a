"""When the kubelet is told that a controller is alive and ready (health and readiness endpoints)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.processes.probes import PATIENCE, alive, ready
from reconciler.processes.wake import Progress
from tests.support.world import START

SECOND = timedelta(seconds=1)
RESTS = Progress(None, START + SECOND, 1, "", True)


@pytest.mark.parametrize(
    ("progress", "want"),
    [
        pytest.param(Progress(), "Ended", id="it was not started"),
        pytest.param(RESTS, "Resting", id="the next cycle is to come"),
        pytest.param(Progress(None, START - PATIENCE, 1), "Resting", id="it is a little late"),
        pytest.param(Progress(None, START - PATIENCE - SECOND, 1), "LoopStopped", id="nobody begins it"),
        pytest.param(
            Progress(START - PATIENCE, None, 1), "Turning", id="the first copy of a repository takes long"
        ),
        pytest.param(
            Progress(START - PATIENCE - SECOND, None, 1), "CycleHangs", id="it does not come to an end"
        ),
        pytest.param(
            Progress(None, START + 300 * SECOND, 9, "RemoteUnreachable"), "Resting", id="trouble is no hang"
        ),
    ],
)
def test_a_loop_that_turns_is_alive(progress, want):
    health = alive({"fleet": progress}, START)
    assert health.repositories["fleet"][0] == want
    assert health.ok == (want in {"Resting", "Turning"})


def test_one_loop_that_hangs_is_reason_to_begin_anew():
    """Starting anew costs the others nothing; nobody else would notice."""
    health = alive({"a": RESTS, "b": Progress(START - 2 * PATIENCE, None, 1)}, START)
    assert not health.ok
    assert health.document()["repositories"]["a"]["reason"] == "Resting"  # type: ignore[index]


@pytest.mark.parametrize(
    ("loops", "reasons", "want"),
    [
        pytest.param({"a": Progress(START, None, 1)}, ["Starting"], False, id="the first cycle runs"),
        pytest.param({"a": RESTS}, ["Leading"], True, id="it leads"),
        pytest.param({"a": Progress(None, START, 1, "", False)}, ["Following"], True, id="it follows"),
        pytest.param(
            {"a": Progress(None, START, 1, "RemoteUnreachable")},
            ["RemoteUnreachable"],
            False,
            id="never read",
        ),
        pytest.param(
            {"a": Progress(None, START, 5, "RemoteUnreachable", True)},
            ["Leading"],
            True,
            id="read before, down now",
        ),
        pytest.param(
            {"a": Progress(None, START, 1, "NotAdopted"), "b": RESTS},
            ["NotAdopted", "Leading"],
            True,
            id="one in trouble holds up no other",
        ),
    ],
)
def test_what_was_read_once_is_ready(loops, reasons, want):
    health = ready(loops)
    assert [reason for reason, _ in health.repositories.values()] == reasons
    assert health.ok is want
