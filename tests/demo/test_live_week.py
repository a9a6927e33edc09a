"""The live demo has something to see on every page of the portal (D3)."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path

from demo.story import LIVE
from demo.system import System
from reconciler.model.facts import Facts
from reconciler.settings import Settings
from schemas.status.endpoint_status import EndpointPhase
from schemas.status.gpr_status import Phase
from schemas.status.node_status import NodeState
from tests.support.world import START


def after_two_hours(root: Path) -> tuple[Facts, set[str]]:
    """What the controller committed, and the reasons of all events."""
    system = System(root, Settings(repo=str(root / "fleet.git"), state=root, pushes_per_minute=None))
    system.create(START)
    controller = system.start_controller()
    cycle = controller.cycle(START)
    for act in LIVE:
        act(system, START)
    reasons: set[str] = set()
    for minute in range(1, 121, 2):
        now = START + timedelta(minutes=minute)
        system.watch_nodes(now)
        cycle = controller.cycle(now)
        reasons |= {str(event.reason) for event in cycle.events}
    assert cycle.facts is not None
    system.close()
    return cycle.facts, reasons


def test_after_two_hours_every_page_has_content(tmp_path: Path):
    facts, reasons = after_two_hours(tmp_path)
    phases = Counter(status.phase for status in facts.requests.values())
    assert phases[Phase.PROVISIONED] >= 3, "running"
    assert phases[Phase.QUEUED] >= 5, "waiting"
    assert phases[Phase.PENDING_APPROVAL] >= 1, "waiting for an admin"
    assert any(status.slips for status in facts.requests.values()), "a promise that moved"
    assert facts.nodes["east", "h100-3"].state is not NodeState.READY
    assert "GPRDelayed" in reasons
    chat = facts.endpoints["nlp/chat"]
    assert (chat.phase, [(each.weight, each.ready) for each in chat.versions]) == (
        EndpointPhase.SERVING,
        [(90, 1), (10, 1)],
    )
