"""What pods say of their checkpoints: what counts of it, and how often it is written (J4)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from reconciler.lifecycle.checkpoints import (
    LAST_STEP,
    NAMED,
    NOTHING_SAID,
    STEP,
    Said,
    checkpoint_outcome,
    newest,
    said_in,
    saved_at,
)
from reconciler.model.cluster_port import ClusterView, WorkloadView
from reconciler.model.facts import Context, Seen, Wanted
from reconciler.settings import Settings
from schemas.documents.base import Person
from schemas.documents.cluster import ClusterSpec
from schemas.documents.gpr import RequestSpec
from schemas.documents.pool import Pool
from schemas.documents.project import ProjectSpec
from schemas.status.gpr_status import Assignment, GPRStatus, Phase
from tests.support.profile import law

START = datetime(2026, 11, 21, 8, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
END = START + 4 * HOUR
POOL = Pool(name="h100", gpu_shape="H100-80GB", gpus_per_node=8, memory_per_gpu=80, nodes=4)
EAST = ClusterSpec(driver="embedded", pools=(POOL,), warning=30 * MINUTE, notice=5 * MINUTE)
WANTED = Wanted("c0", ProjectSpec(admins=(Person(email="ada@example.com"),)), {"east": EAST}, {}, {}, {}, {})


def running(**more: object) -> GPRStatus:
    spec = RequestSpec(slice="vision", nodes=1, duration=END - START)
    held = Assignment(cluster="east", pool="h100", nodes=("h100-1",))
    status = GPRStatus(
        phase=Phase.PROVISIONED,
        uid="gpr-1",
        filed_at=START - HOUR,
        start_time=START,
        end_time=END,
        assignment=held,
        accepted_spec=spec,
        spec_digest="d",
    )
    return status.edited(**more)


def said(*stamps: datetime | None, slice_: str = "vision") -> Said:
    """Pods train-0, train-1, … on nodes of the same numbers."""
    pods = tuple(
        WorkloadView(f"train-{i}", slice_, slice_, 8, "Running", f"h100-{i}", checkpointed_at=at)
        for i, at in enumerate(stamps)
    )
    return said_in({"east": ClusterView(START, {}, {}, pods)})


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def test_the_newest_counts_with_the_pods_that_said_it() -> None:
    found = newest(running(), said(at(10), at(20), None, at(20)), at(30))
    assert found is not None
    assert (found.at, found.pods, found.nodes) == (
        at(20),
        ("vision/train-1", "vision/train-3"),
        ("h100-1", "h100-3"),
    )


def test_a_thousand_pods_are_not_named() -> None:
    found = newest(running(), said(*[at(10)] * 1000), at(30))
    assert found is not None
    assert len(found.pods) == len(found.nodes) == NAMED


def test_another_slice_says_nothing_of_it() -> None:
    assert newest(running(), said(at(10), slice_="nlp"), at(30)) is None


def test_a_pod_that_is_gone_takes_no_checkpoint_back() -> None:
    kept = newest(running(), said(at(20)), at(30))
    assert newest(running(checkpoint=kept), said(at(10)), at(30)) is kept
    assert newest(running(checkpoint=kept), NOTHING_SAID, at(30)) is kept


def test_a_checkpoint_of_an_earlier_lease_saves_nothing_of_this_one() -> None:
    kept = newest(running(), said(at(20)), at(30))
    again = running(checkpoint=kept, start_time=at(60), end_time=at(300))
    assert saved_at(again, NOTHING_SAID, at(70)) is None
    assert saved_at(again, said(at(20), at(65)), at(70)) == at(65)


@law(200)
@given(st.lists(st.none() | st.integers(-300, 600), max_size=4), st.integers(0, 240))
def test_what_counts_lies_in_the_lease_and_not_in_the_future(stamps: list[int | None], now: int) -> None:
    """Whatever pods say."""
    words = said(*(None if stamp is None else at(stamp) for stamp in stamps))
    found = saved_at(running(), words, at(now))
    valid = [stamp for stamp in stamps if stamp is not None and 0 <= stamp <= now]
    assert found == (at(max(valid)) if valid else None)


@law(50)
@given(st.lists(st.integers(1, 600), min_size=1, max_size=200))
def test_however_often_pods_say_it_few_commits_tell_it(gaps_s: list[int]) -> None:
    """At most one for each step of the lease's time, and one; and none is older than a step."""
    status, written, now = running(), 0, START
    for gap_s in gaps_s:
        now = min(now + timedelta(seconds=gap_s), END - timedelta(seconds=1))
        context = Context(now, Settings(repo="", state=Path("state")), WANTED, Seen({}), {})
        after = checkpoint_outcome(status, said(now), context).status
        assert after is not None
        written += after is not status
        status = after
        assert status.checkpoint is not None
        assert now - status.checkpoint.at < STEP
    warns = END - EAST.notice - 30 * MINUTE
    assert written <= 1 + (min(now, warns) - START) // STEP + max(timedelta(), now - warns) // LAST_STEP + 1
