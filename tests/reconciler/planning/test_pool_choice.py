"""Hours of a burst cluster: for all slices together, in the order of who needs them (F14), on worlds of chance."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.facts import Facts, Wanted
from reconciler.planning.pool_choice import NOBODY, Offering, contended, offering, shut_now
from reconciler.planning.snapshot import build_snapshot
from scheduler.plan import plan
from scheduler.snapshot import Placement
from schemas.documents.base import Metadata
from schemas.documents.elastic import Burst
from schemas.documents.gpr import RequestSpec
from schemas.documents.slice import SliceSpec
from schemas.reading.units import instant
from schemas.status.gpr_status import Assignment, Eviction, GPRStatus, Phase
from schemas.status.usage import MonthSpent, UsageRecord
from tests.reconciler.accounts.test_monthly_limits import wanted_of
from tests.support.profile import law
from tests.support.world import START

HOUR = timedelta(hours=1)
MOST = 60


def _world() -> Wanted:
    """Five slices; west (4 nodes of 4 GPUs) is a burst cluster with so many hours a month, after an hour's wait."""
    found = wanted_of()
    burst = Burst(after=HOUR, gpu_hours_per_month=MOST)
    clusters = {
        name: spec.model_copy(update={"burst": burst}) if name == "west" else spec
        for name, spec in found.clusters.items()
    }
    slices: dict[str, SliceSpec] = dict.fromkeys("abcde", found.slices["a"])
    return replace(found, clusters=clusters, slices=slices)


WANTED = _world()


def _status(name: str, hours: int, filed_at: datetime) -> GPRStatus:
    spec = RequestSpec(slice=name, nodes=1, duration=hours * HOUR)
    return GPRStatus(phase=Phase.QUEUED, uid=name, filed_at=filed_at, accepted_spec=spec, spec_digest="d")


def _promised(facts: Facts) -> Facts:
    """The next cycle, as far as promises go: what the plan gives is published."""
    placed = plan(build_snapshot(WANTED, facts, None)).placements
    requests = {
        key: status.model_copy(
            update={
                "estimated_start_time": instant(place.start),
                "estimated_cluster": place.pool[0],
                "estimated_pool": place.pool[1],
            }
        )
        if (place := placed.get(key)) is not None
        else status
        for key, status in facts.requests.items()
    }
    return replace(facts, requests=requests)


def _in_burst(facts: Facts) -> float:
    return sum(
        4 * (status.accepted_spec.duration / HOUR)
        for status in facts.requests.values()
        if status.estimated_cluster == "west"
    )


@law(40)
@given(
    st.lists(st.tuples(st.sampled_from("abcde"), st.integers(1, 6)), max_size=9),
    st.integers(0, MOST),
    st.integers(4, 12),
)
def test_what_is_used_and_promised_there_is_never_beyond_the_months_hours(
    asked: list[tuple[str, int]], spent: int, busy: int
) -> None:
    """All the others are taken for `busy` hours; then requests come one by one, or at once."""
    row = MonthSpent(month="2026-11", cluster="west", gpu_shape="A100-40GB", gpu_hours=float(spent))
    record = UsageRecord(metadata=Metadata(name="a"), currency="USD", spent=(row,))
    for at_once in (True, False):
        facts = Facts(START, usage={"a": record}, requests={"z/holds": _holding(busy)})
        for i, (name, hours) in enumerate(asked):
            facts = replace(
                facts,
                requests={**facts.requests, f"{name}/r{i}": _status(name, hours, START + i * HOUR / 60)},
            )
            if not at_once:
                facts = _promised(facts)
                assert spent + _in_burst(facts) <= MOST
        for _ in range(3):
            facts = _promised(facts)
            assert spent + _in_burst(facts) <= MOST


def _holding(hours: int) -> GPRStatus:
    """Somebody who has all of east."""
    held = Assignment(cluster="east", pool="h100", nodes=("h100-1", "h100-2", "h100-3", "h100-4"))
    spec = RequestSpec(slice="z", nodes=4, duration=hours * HOUR)
    return GPRStatus(
        phase=Phase.PROVISIONED,
        uid="holds",
        filed_at=START,
        accepted_spec=spec,
        spec_digest="d",
        assignment=held,
        held_from=START,
        start_time=START,
        end_time=START + hours * HOUR,
    )


def test_who_needs_the_hours_comes_before_who_is_served_elsewhere_in_time() -> None:
    """A request with a start elsewhere within the hour keeps none from one that would wait."""
    timely = _status("a", 15, START).model_copy(
        update={"estimated_start_time": START, "estimated_cluster": "east", "estimated_pool": "h100"}
    )
    facts = Facts(START, requests={"a/timely": timely, "b/waits": _status("b", 14, START + HOUR)})
    assert offering(WANTED, facts, WANTED.pools).shut == {"a/timely": frozenset({"west"})}


@pytest.mark.parametrize(
    ("phase", "hours", "is_shut"),
    [
        pytest.param(Phase.PROVISIONED, 3, False, id="before it leaves: 48 hours are its own, 12 are left"),
        pytest.param(Phase.PROVISIONED, 4, True, id="before it leaves: 16 are too many"),
        pytest.param(Phase.RELEASING, 3, False, id="while its nodes are cleaned: the same"),
        pytest.param(Phase.RELEASING, 4, True, id="while its nodes are cleaned: 16 are too many"),
    ],
)
def test_what_is_left_of_a_lease_that_makes_room_counts_once(phase: Phase, hours: int, is_shut: bool) -> None:
    """E7, F14: twelve hours on west, of which two were used; the other ten are planned already."""
    leaves = START + 2 * HOUR
    evicted = Eviction(reason="Preempted", at=leaves, by="c/high")
    held = _holding(12).model_copy(
        update={
            "phase": phase,
            "accepted_spec": RequestSpec(slice="a", nodes=1, duration=12 * HOUR),
            "assignment": Assignment(cluster="west", pool="small", nodes=("small-1",)),
            "eviction": evicted,
            **({"end_time": leaves, "remaining": 10 * HOUR} if phase is Phase.RELEASING else {}),
        }
    )
    facts = Facts(leaves, requests={"a/goes": held, "b/waits": _status("b", hours, START)})
    shut = {"b/waits": frozenset({"west"})} if is_shut else {}
    assert offering(WANTED, facts, WANTED.pools).shut == shut


def test_a_request_that_is_filed_now_meets_what_is_left() -> None:
    facts = Facts(START, requests={"a/waits": _status("a", 10, START)})
    fits, too_much = (RequestSpec(slice="b", nodes=1, duration=hours * HOUR) for hours in (5, 6))
    placed = {"a/waits": Placement("a/waits", ("west", "small"), 0, 36_000)}
    assert shut_now(fits, WANTED, facts, placed) == frozenset()
    assert shut_now(too_much, WANTED, facts, placed) == frozenset({"west"})


def test_hours_are_kept_for_nobody_who_would_not_be_served_there() -> None:
    """The first one takes all hours that there are; where it would not start there, the second one has them."""
    facts = Facts(
        START, requests={"a/huge": _status("a", 14, START), "b/small": _status("b", 2, START + HOUR)}
    )
    everyone = offering(WANTED, facts, WANTED.pools)
    assert everyone.shut == {"b/small": frozenset({"west"})}
    placed = {"b/small": Placement("b/small", ("west", "small"), 0, 7200)}
    assert contended(everyone, facts, lambda _: placed).shut == {"a/huge": frozenset({"west"})}
    both = placed | {"a/huge": Placement("a/huge", ("west", "small"), 0, 50_400)}

    def planned(offered: Offering) -> dict[str, Placement]:
        return {key: place for key, place in both.items() if key not in offered.shut}

    assert contended(everyone, facts, planned).shut == {"b/small": frozenset({"west"})}
    asks = RequestSpec(slice="c", nodes=1, duration=14 * HOUR)
    assert shut_now(asks, WANTED, facts, NOBODY) == frozenset()


def test_hours_are_kept_for_nobody_whose_request_is_too_long_for_the_cluster() -> None:
    """It never goes there, whatever is free (F14)."""
    burst = Burst(after=HOUR, max_duration=3 * HOUR, gpu_hours_per_month=MOST)
    clusters = dict(WANTED.clusters) | {"west": WANTED.clusters["west"].model_copy(update={"burst": burst})}
    requests = {"a/long": _status("a", 14, START), "b/small": _status("b", 2, START + HOUR)}
    main = replace(WANTED, clusters=clusters)
    assert offering(main, Facts(START, requests=requests), main.pools).shut == {}


def test_what_holds_nodes_there_counts_in_the_month_in_which_it_began() -> None:
    runs = _holding(14).model_copy(
        update={
            "accepted_spec": RequestSpec(slice="z", nodes=1, duration=14 * HOUR),
            "assignment": Assignment(cluster="west", pool="small", nodes=("small-1",)),
        }
    )
    asks = RequestSpec(slice="b", nodes=1, duration=2 * HOUR)
    assert shut_now(asks, WANTED, Facts(START, requests={"z/runs": runs}), NOBODY) == frozenset({"west"})
    december = START + timedelta(days=20)
    assert shut_now(asks, WANTED, Facts(december, requests={"z/runs": runs}), NOBODY) == frozenset()
