"""The world as it was is not worked out while nobody is late; whoever moved later is noticed (D3, E10)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.deciding.slips import may_be_late
from scheduler.causes.causes import slips
from scheduler.causes.changes import changes_between
from scheduler.plan import plan
from scheduler.promises import with_promises
from scheduler.snapshot import Snapshot
from schemas.documents.gpr import RequestSpec
from schemas.reading.units import instant
from schemas.status.gpr_status import GPRStatus, Phase
from tests.scheduler.play import BENIGN, HARMFUL, happen
from tests.scheduler.worlds import pool, request, world, worlds
from tests.support.profile import law


def committed(before: Snapshot) -> dict[str, GPRStatus]:
    """What is on record of those who wait in that world."""
    spec = RequestSpec(slice="a", nodes=1, duration=timedelta(hours=1))
    found = {}
    for key, asked in before.requests.items():
        start = None if asked.promise is None else instant(asked.promise.start)
        status = GPRStatus(
            phase=Phase.QUEUED, uid=key, filed_at=instant(0), accepted_spec=spec, spec_digest="sha256:0"
        )
        found[key] = status.model_copy(update={"estimated_start_time": start})
    return found


@given(worlds(), st.data())
@law(100)
def test_whoever_moved_later_is_noticed(found: Snapshot, data: st.DataObject) -> None:
    before = with_promises(found, plan(found))
    after = happen(data.draw, before, data.draw(st.sampled_from([*BENIGN, *HARMFUL])))
    planned = plan(after)
    late = slips(before, after, changes_between(before, after), planned)
    assert may_be_late(committed(before), after, planned) or not late


@pytest.mark.parametrize(
    ("phase", "promised", "want"),
    [
        pytest.param(Phase.QUEUED, True, True, id="a promise that is gone may have been earlier"),
        pytest.param(Phase.QUEUED, False, False, id="who was never promised a start is not late"),
        pytest.param(Phase.RELEASING, False, True, id="who comes back had a start"),
    ],
)
def test_who_has_no_promise_any_more(phase: Phase, *, promised: bool, want: bool) -> None:
    now = world(request("a"), pools=[pool(1)])
    ((key, status),) = committed(now).items()
    start = instant(0) if promised else None
    status = status.model_copy(update={"phase": phase, "estimated_start_time": start})
    assert may_be_late({key: status}, now, plan(now)) is want
    assert not may_be_late({}, now, plan(now)), "it is new"
