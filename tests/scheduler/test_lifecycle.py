"""The table of phases (design, section 5)."""

from __future__ import annotations

import pytest

from scheduler.lifecycle import FIRST, NEXT, Event, IllegalMove, advance, diagram
from schemas.status.gpr_status import TERMINAL, Phase

LIVES = [
    pytest.param(
        [Event.DECIDE, Event.START, Event.END, Event.CLEAN], Phase.COMPLETED, id="served to its end"
    ),
    pytest.param(
        [Event.DECIDE, Event.START, Event.RELEASE, Event.CLEAN], Phase.COMPLETED, id="released early"
    ),
    pytest.param([Event.DECIDE, Event.RELEASE, Event.CLEAN], Phase.COMPLETED, id="released before its start"),
    pytest.param([Event.CANCEL], Phase.CANCELLED, id="cancelled while it waits"),
    pytest.param([Event.DECIDE, Event.CHECKS_FAILED], Phase.QUEUED, id="checks failed: it waits again"),
    pytest.param(
        [Event.DECIDE, Event.START, Event.EVICT, Event.REQUEUE], Phase.QUEUED, id="evicted: it waits again"
    ),
    pytest.param([Event.DECIDE, Event.STOP], Phase.QUEUED, id="stopped before its start: it waits"),
    pytest.param(
        [Event.DECIDE, Event.START, Event.NODES_FAILED], Phase.QUEUED, id="its nodes failed: it waits again"
    ),
    pytest.param(
        [Event.DECIDE, Event.START, Event.FAIL, Event.CLEAN_AFTER_FAILURE], Phase.FAILED, id="failed for good"
    ),
    pytest.param([Event.WITHHOLD, Event.APPROVE], Phase.QUEUED, id="an edit beyond quota, approved"),
    pytest.param([Event.WITHHOLD, Event.REJECT], Phase.REJECTED, id="an edit beyond quota, rejected"),
]


@pytest.mark.parametrize(("events", "want"), LIVES)
def test_life(events: list[Event], want: Phase) -> None:
    phase = Phase.QUEUED
    for event in events:
        phase = advance(phase, event)
    assert phase is want


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("event", Event)
def test_a_pair_that_is_not_in_the_table_is_illegal(phase: Phase, event: Event) -> None:
    if (phase, event) not in NEXT:
        with pytest.raises(IllegalMove, match=f"{phase} cannot {event}"):
            advance(phase, event)


def test_a_terminal_request_never_moves_again() -> None:
    assert not [phase for phase, _ in NEXT if phase in TERMINAL]


def test_every_phase_can_be_reached_and_every_event_happens() -> None:
    assert {*FIRST, *NEXT.values()} == set(Phase)
    assert {event for _, event in NEXT} == set(Event)


def test_the_diagram_shows_every_move() -> None:
    drawn = diagram().splitlines()
    assert drawn[0] == "stateDiagram-v2"
    assert "    Queued --> Provisioning: decide" in drawn
    assert "    Completed --> [*]" in drawn
    assert len(drawn) == 1 + len(FIRST) + len(NEXT) + len(TERMINAL)
