"""How near a lease is to its end: the warning before the notice (J4)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.lease_end import LeaseEnd, LeasePhase, end_of, lease_end
from schemas.documents.cluster import ClusterSpec
from schemas.documents.gpr import RequestSpec
from schemas.documents.pool import Pool
from schemas.status.gpr_status import Eviction, GPRStatus, Phase

START = datetime(2026, 11, 21, 8, tzinfo=UTC)
END = START + timedelta(hours=6)
MINUTE = timedelta(minutes=1)
POOL = Pool(name="h100", gpu_shape="H100-80GB", gpus_per_node=8, memory_per_gpu=80, nodes=4)


def cluster(warning: timedelta | None = 30 * MINUTE, notice: timedelta = 5 * MINUTE) -> ClusterSpec:
    return ClusterSpec(driver="embedded", pools=(POOL,), notice=notice, warning=warning)


def running() -> GPRStatus:
    spec = RequestSpec(slice="vision", nodes=1, duration=END - START)
    times = {"filed_at": START, "start_time": START, "end_time": END}
    return GPRStatus(phase=Phase.PROVISIONED, uid="gpr-1", accepted_spec=spec, spec_digest="d", **times)  # type: ignore[arg-type]


def test_the_warning_comes_before_the_notice() -> None:
    assert lease_end(START, END, cluster()) == LeaseEnd(END - 35 * MINUTE, END - 5 * MINUTE, END)


@pytest.mark.parametrize(
    ("before_end", "want"),
    [
        pytest.param(timedelta(hours=6), "running", id="at its start"),
        pytest.param(timedelta(minutes=35, seconds=1), "running", id="just before the warning"),
        pytest.param(timedelta(minutes=35), "warning", id="at the warning"),
        pytest.param(timedelta(minutes=5, seconds=1), "warning", id="just before the notice"),
        pytest.param(timedelta(minutes=5), "notice", id="at the notice"),
        pytest.param(timedelta(seconds=1), "notice", id="just before its end"),
        pytest.param(timedelta(), "over", id="at its end"),
    ],
)
def test_phase(before_end: timedelta, want: LeasePhase) -> None:
    assert lease_end(START, END, cluster()).phase(END - before_end) == want


def test_without_a_warning_it_runs_until_the_notice() -> None:
    end = lease_end(START, END, cluster(warning=None))
    assert end.warns_at is None
    assert end.phase(END - 6 * MINUTE) == "running"
    assert end.phase(END - 5 * MINUTE) == "notice"


def test_half_of_a_short_lease_is_before_its_warning() -> None:
    end = lease_end(START, START + 25 * MINUTE, cluster())
    assert end.warns_at == START + 10 * MINUTE


def test_a_decided_eviction_is_its_end_but_an_idle_request_may_be_used_again() -> None:
    for reason, hours in {"Preempted": 3, "Stopped": 3, "Idle": 6}.items():
        early = {"reason": reason, "at": START + timedelta(hours=3)}
        end = end_of(running().edited(eviction=Eviction.model_validate(early)), cluster())
        assert end is not None
        assert end.ends_at == START + timedelta(hours=hours)


def test_a_request_that_has_not_started_has_no_end() -> None:
    assert end_of(running().edited(start_time=None), cluster()) is None


@given(lasts=st.integers(1, 100_000), notice=st.integers(0, 10_000), warning=st.integers(1, 10_000))
def test_instants_are_in_order_and_a_warning_leaves_half_of_the_lease(
    lasts: int, notice: int, warning: int
) -> None:
    """Whatever the durations: warning, notice, end; at least half of the time before the notice is unwarned."""
    ends_at = START + lasts * MINUTE
    end = lease_end(START, ends_at, cluster(warning * MINUTE, notice * MINUTE))
    assert end.warns_at is not None
    assert end.warns_at <= end.notice_at <= end.ends_at == ends_at
    assert end.notice_at - end.warns_at <= max(timedelta(), (end.notice_at - START) / 2)
