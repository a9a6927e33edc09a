"""The compiled planner is made ready once, and only for a long queue (E1)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from reconciler.cycle import Cycle
from reconciler.model.facts import Facts
from reconciler.processes.compiled_engine import LONG_QUEUE, Warming
from schemas.documents.gpr import RequestSpec
from schemas.status.gpr_status import GPRStatus, Phase

AT = datetime(2026, 11, 21, tzinfo=UTC)
SPEC = RequestSpec(slice="a", nodes=1, duration=timedelta(hours=1))
WAITS = GPRStatus(phase=Phase.QUEUED, uid="gpr-1", filed_at=AT, accepted_spec=SPEC, spec_digest="sha256:0")


def cycle_with(waiting: int, over: int = 0) -> Cycle:
    done = WAITS.model_copy(update={"phase": Phase.COMPLETED})
    requests = {f"a/w{i}": WAITS for i in range(waiting)} | {f"a/o{i}": done for i in range(over)}
    return replace(Cycle(AT, True, AT), facts=Facts(AT, requests=requests))


def test_it_begins_once_with_the_first_long_queue() -> None:
    begun: list[int] = []
    warming = Warming(lambda: begun.append(1))
    for waiting in (10, LONG_QUEUE - 1):
        warming.after(cycle_with(waiting, over=LONG_QUEUE))
    assert begun == []
    for _ in range(3):
        warming.after(cycle_with(LONG_QUEUE))
    assert begun == [1]


def test_a_controller_that_only_reads_needs_none() -> None:
    warming = Warming(lambda: (_ for _ in ()).throw(AssertionError))
    warming.after(Cycle(AT, False, AT))
