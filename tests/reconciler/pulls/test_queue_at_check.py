"""The status as one look needs it: what is over is passed over, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.pulls.check_basis import queue_digest
from reconciler.pulls.queue_at_check import committed_status, over_at
from reconciler.settings import Settings
from reconciler.status.branch import StatusBranch
from reconciler.status.render import request_file
from reconciler.store.memory_store import MemoryStore
from schemas.status.gpr_status import TERMINAL, Phase
from tests.reconciler.pulls.pull import Pulls, request
from tests.support.world import at


@pytest.fixture(scope="module")
def pulls() -> Pulls:
    found = Pulls.on(request("a/done", 1, "10m"), request("b/long", 2, "9h"))
    found.world.run(at(30))
    found.then(request("b/next", 1, "1h"), request("a/big", 3, "1h"))
    found.world.commit({"slices/a/gprs/done.yaml": request("a/done", 1, "10m")["slices/a/gprs/done.yaml"]})
    return found


def tip(pulls: Pulls) -> tuple[MemoryStore, str]:
    store = MemoryStore(pulls.world.remote)
    return store, store.fetch(["egs/status"])["egs/status"]


def test_it_is_what_the_controller_reads_but_for_what_is_over(pulls: Pulls) -> None:
    store, oid = tip(pulls)
    full = StatusBranch(store, Settings(repo="", state=Path()), "reader").read(at(0)).facts
    found = committed_status(store, oid)
    live = {key: status for key, status in full.requests.items() if status.phase not in TERMINAL}
    assert found.facts.requests == live
    assert found.over == full.requests.keys() - live.keys() == {"a/done"}
    assert (found.facts.nodes, found.facts.clusters, found.facts.intent) == (
        full.nodes,
        full.clusters,
        full.intent,
    )
    assert over_at(store, oid) == found.over


def test_what_is_needed_is_read_whatever_it_is(pulls: Pulls) -> None:
    store, oid = tip(pulls)
    found = committed_status(store, oid, {"a/done"})
    assert found.facts.requests["a/done"].phase is Phase.COMPLETED
    assert found.over == frozenset()


@pytest.mark.parametrize("phase", list(Phase))
def test_every_phase_is_known_by_its_text(phase: Phase) -> None:
    pulls = Pulls.on(request("b/x"))
    status = pulls.world.status("b/x").model_copy(update={"phase": phase, "message": "phase: Completed"})
    pulls.world.commit({"slices/b/gprs/x.yaml": request_file("b/x", status).decode()}, "egs/status")
    store, oid = tip(pulls)
    assert ("b/x" in committed_status(store, oid).over) is (phase in TERMINAL)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("status: {phase: Completed}\n", id="another way to write it"),
        pytest.param("x:\n  status:\n    phase: Completed\n", id="deeper"),
        pytest.param("status:\n  message: x\n  phase: Completed\n", id="not the first field"),
        pytest.param("", id="empty"),
        pytest.param("status:\n  phase: Completed [\n", id="broken"),
    ],
)
def test_whatever_looks_otherwise_is_no_reason_to_pass_a_record_over(text: str) -> None:
    pulls = Pulls.on(request("b/x"))
    pulls.world.commit({"slices/b/gprs/x.yaml": text}, "egs/status")
    store, oid = tip(pulls)
    assert committed_status(store, oid).over == frozenset()


def test_the_queues_digest_moves_with_what_a_plan_begins_with(pulls: Pulls) -> None:
    facts = pulls.world.facts()
    before = queue_digest(facts.requests)
    assert before == queue_digest(committed_status(*tip(pulls)).facts.requests), (
        "what is over does not matter"
    )
    status = facts.requests["b/next"]
    for update in (
        {"phase": Phase.PENDING_APPROVAL},
        {"filed_at": at(-1)},
        {"estimated_start_time": at(999)},
    ):
        moved = {**facts.requests, "b/next": status.model_copy(update=update)}
        assert queue_digest(moved) != before
    same = {**facts.requests, "b/next": status.model_copy(update={"delayed_count": 9})}
    assert queue_digest(same) == before
