"""Who is let in where a slice's hours of a month, or its places in the queue, are bounded (C4, E5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.accounts.gpu_hours import (
    Taken,
    month_of,
    returning,
    served_until,
    spent_in,
    under_way,
    with_spent,
)
from reconciler.accounts.monthly_limits import barred_pools, bounded_outcomes, bounded_slices, full_account
from reconciler.approvals.is_approved import OUTSIDE
from reconciler.model.facts import Context, Facts, Seen, Wanted
from reconciler.model.pools import manifest_pools
from reconciler.settings import Settings
from schemas.documents.base import Metadata
from schemas.documents.cluster import Cluster
from schemas.documents.gpr import RequestSpec
from schemas.documents.project import ProjectSpec
from schemas.documents.slice import Slice
from schemas.rules.limits import HourBound, hour_bounds
from schemas.status.gpr_status import Assignment, Cost, GPRStatus, Phase
from schemas.status.usage import UsageRecord
from tests.support.profile import law
from tests.support.world import START, cluster, parsed, slice_

HOUR = timedelta(hours=1)


def wanted_of(**bounds: Any) -> Wanted:
    """Slice `a` with these bounds, on east (4 nodes of 8 GPUs) and west (4 nodes of 4 GPUs)."""
    small = {"name": "small", "gpuShape": "A100-40GB", "gpusPerNode": 4, "memoryPerGpu": 40, "nodes": 4}
    texts = {"east": cluster("east", 4), "west": cluster("west", pools=[small])}
    clusters = {
        name: found.spec
        for name, text in texts.items()
        if isinstance(found := parsed(f"clusters/{name}.yaml", text), Cluster)
    }
    team = parsed("slices/a/slice.yaml", slice_("a", ("east", "west"), **bounds))
    assert isinstance(team, Slice)
    project = ProjectSpec.model_validate({"admins": [{"email": "ada@example.com"}]}, strict=False)
    return Wanted("c", project, clusters, {"a": team.spec}, {}, {}, manifest_pools(clusters))


def waiting(name: str, nodes: int = 1, hours: int = 1, **given: Any) -> GPRStatus:
    spec = RequestSpec(slice="a", nodes=nodes, duration=hours * HOUR)
    base = {"phase": Phase.QUEUED, "uid": name, "filed_at": START, "accepted_spec": spec, "spec_digest": "d"}
    return GPRStatus(**{**base, **given})


@dataclass
class Book:
    """The requests of slice `a` and its ledger, as cycles leave them."""

    wanted: Wanted
    facts: Facts = field(default_factory=lambda: Facts(START))

    @property
    def statuses(self) -> Mapping[str, GPRStatus]:
        return self.facts.requests

    @property
    def bounds(self) -> tuple[HourBound, ...]:
        return hour_bounds(self.wanted.slices["a"])

    def put(self, key: str, status: GPRStatus | None) -> None:
        requests = {k: s for k, s in self.statuses.items() if k != key}
        self.facts = replace(self.facts, requests=requests if status is None else {**requests, key: status})

    def cycle(self) -> None:
        context = Context(self.facts.at, Settings(repo="", state=Path()), self.wanted, Seen({}), {})
        for key, turn in bounded_outcomes(
            bounded_slices(self.wanted), self.statuses, self.facts.usage, context
        ):
            self.put(key, turn.status)

    def passes(self, time: timedelta) -> None:
        self.facts = replace(self.facts, at=self.facts.at + time)

    def start(self, key: str) -> None:
        """It gets nodes in the first pool that it may use."""
        status = self.statuses[key]
        free = [pool for pool in self.wanted.pools if pool not in barred_pools(status)]
        end = self.facts.at + status.accepted_spec.duration - status.served
        update = {
            "phase": Phase.PROVISIONED,
            "assignment": Assignment(cluster=free[0][0], pool=free[0][1], nodes=("n",)),
            "start_time": self.facts.at,
            "end_time": end,
        }
        self.put(key, status.model_copy(update=update))

    def end(self, key: str, after: timedelta) -> None:
        """Its lease is over so long after its start, maybe with grace."""
        self._left(key, after, phase=Phase.COMPLETED)

    def leave(self, key: str, after: timedelta, *, sent_away: bool) -> None:
        """Its nodes leave with time left: for another one, or because its people stopped it and started it again."""
        status = self.statuses[key]
        assert status.start_time is not None
        left = status.accepted_spec.duration - status.served - after
        again = {
            "phase": Phase.QUEUED,
            "remaining": left,
            "served": served_until(status, status.start_time + after),
            "charge": returning(status) if sent_away else None,
            "assignment": None,
            "start_time": None,
            "end_time": None,
        }
        self._left(key, after, **again)

    def _left(self, key: str, after: timedelta, **update: Any) -> None:
        status = self.statuses[key]
        assert status.assignment is not None
        pool = self.wanted.pools[status.assignment.cluster, status.assignment.pool]
        used = status.accepted_spec.nodes * pool.gpus_per_node * (after / HOUR)
        total = used + (0.0 if status.cost is None else status.cost.gpu_hours)
        cost = Cost(amount=0.0, currency="USD", gpu_hours=round(total, 4))  # as a status has it
        before = self.facts
        self.put(key, status.model_copy(update={**update, "cost": cost}))
        usage = {"a": before.usage.get("a") or UsageRecord(metadata=Metadata(name="a"), currency="USD")}
        usage = {
            "a": usage["a"].model_copy(update={"used": usage["a"].used + used})
        }  # as the ledger of costs does
        self.facts = replace(self.facts, usage=with_spent(before, self.statuses, usage, self.wanted))

    def is_in(self, key: str) -> bool:
        return self.statuses[key].charge is not None

    def taken(self, bound: HourBound) -> float:
        """What counts against the bound: used, under way, and charged wherever it may run."""
        account = full_account("a", self.facts, self.wanted)
        return account.taken.get(bound, 0.0)

    def recorded(self, bound: HourBound) -> float:
        """The most that the ledger has of any month under that bound."""
        record = self.facts.usage.get("a")
        months = {row.month for row in record.spent} if record else set()
        return max(
            (sum(t.gpu_hours for t in spent_in(record, m) if _is_under(t, bound)) for m in months),
            default=0.0,
        )


def _is_under(taken: Taken, bound: HourBound) -> bool:
    return bound.covers(taken.cluster, taken.gpu_shape)


STATES = ("cancel", "start", "release", "grace", "sent away", "stopped")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("file"), st.integers(1, 3), st.integers(1, 6)),
        st.tuples(st.sampled_from(STATES), st.integers(0, 9), st.just(0)),
        st.tuples(st.just("days"), st.integers(1, 20), st.just(0)),
    ),
    max_size=25,
)
BOUNDS = st.sampled_from(
    (
        {"limits": {"gpuHoursPerMonth": 60}},
        {"limits": {"gpuHoursPerMonth": 90, "where": [{"cluster": "east", "gpuHoursPerMonth": 40}]}},
        {"limits": {"maxWaiting": 3, "where": [{"gpuShape": "A100-40GB", "gpuHoursPerMonth": 20}]}},
        {
            "limits": {"where": [{"cluster": "east", "gpuHoursPerMonth": 50}]},
            "quota": {"gpuHoursPerMonth": 60},
        },
    )
)


def _play(book: Book, step: tuple[str, int, int], count: int) -> None:
    what, number, hours = step
    free = [k for k, s in sorted(book.statuses.items()) if s.phase is Phase.QUEUED]
    held = [k for k, s in sorted(book.statuses.items()) if s.phase is Phase.PROVISIONED]
    admitted = [key for key in free if book.is_in(key)]
    if what == "file":
        book.put(f"a/r{count}", waiting(f"r{count}", number, hours, filed_at=book.facts.at))
    elif what == "days":
        book.passes(timedelta(days=number))
    elif what == "cancel" and free:
        book.put(free[number % len(free)], None)
    elif what == "start" and admitted:
        book.start(admitted[number % len(admitted)])
    elif what in STATES and held:
        key = held[number % len(held)]
        lasts = book.statuses[key].accepted_spec.duration - book.statuses[key].served
        if what in ("release", "grace"):
            book.end(key, lasts / 2 if what == "release" else lasts + HOUR)
        elif lasts > HOUR / 2:
            book.leave(key, lasts // HOUR * HOUR / 2 or HOUR / 4, sent_away=what == "sent away")


@law(60)
@given(BOUNDS, STEPS)
def test_a_month_is_never_taken_beyond_its_bound_and_who_is_in_stays_in(
    bounds: dict[str, Any], steps: list[tuple[str, int, int]]
) -> None:
    """C4: with a policy that stays, whatever is filed, cancelled, released, extended, stopped or sent away."""
    book = Book(wanted_of(**bounds))
    for count, step in enumerate(steps):
        _play(book, step, count)
        was_in = {key for key in book.statuses if book.is_in(key)}
        book.cycle()
        assert was_in <= {key for key in book.statuses if book.is_in(key)}
        for bound in book.bounds:
            assert book.taken(bound) <= bound.gpu_hours + 1e-6
            assert book.recorded(bound) <= bound.gpu_hours + 1e-6 or not bound.is_hard
        most = book.wanted.slices["a"].limits.max_waiting
        waits = (s.charge for s in book.statuses.values() if s.phase is Phase.QUEUED)
        queued = [charge for charge in waits if charge is not None and charge.month is None]
        assert most is None or len(queued) <= most
        settled = dict(book.statuses)
        book.cycle()
        assert dict(book.statuses) == settled  # nothing happened, so nothing is written


@law(40)
@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 6)), max_size=8), st.integers(0, 10))
def test_room_is_never_left_for_a_request_that_waits_outside(asked: list[tuple[int, int]], gone: int) -> None:
    """What is given back is given on: to the first by time of filing that fits."""
    book = Book(wanted_of(limits={"gpuHoursPerMonth": 60}))
    for i, (nodes, hours) in enumerate(asked):
        book.put(f"a/r{i}", waiting(f"r{i}", nodes, hours, filed_at=START + i * HOUR))
    book.cycle()
    charged = sorted(key for key in book.statuses if book.is_in(key))
    if charged:
        book.put(charged[gone % len(charged)], None)
    book.cycle()
    left = 60 - book.taken(book.bounds[0])
    for key, status in book.statuses.items():
        if not book.is_in(key):
            assert 4 * status.accepted_spec.nodes * (status.accepted_spec.duration / HOUR) > left, key


@pytest.mark.parametrize(
    ("spent", "hours", "reason"),
    [
        pytest.param(0, 7, None, id="within the quota"),
        pytest.param(8, 7, "MonthlyQuotaExceeded", id="what ran leaves too little"),
        pytest.param(0, 8, "MonthlyQuotaExceeded", id="it alone is beyond it"),
    ],
)
def test_beyond_the_months_quota_an_admin_is_asked(spent: int, hours: int, reason: str | None) -> None:
    book = Book(wanted_of(quota={"gpuHoursPerMonth": 28}))
    if spent:
        book.put("a/ran", waiting("ran", 1, spent))
        book.put("a/ran", book.statuses["a/ran"].model_copy(update={"charge": None}))
        book.start("a/ran")
        book.end("a/ran", timedelta(minutes=30))
    book.put("a/asks", waiting("asks", 1, hours))
    book.cycle()
    status = book.statuses["a/asks"]
    assert (status.approval.reasons if status.approval else ()) == ((reason,) if reason else ())
    assert (status.phase is Phase.PENDING_APPROVAL) == (reason is not None)


def test_an_account_is_of_one_month() -> None:
    """A lease counts in the month in which it began; what waits counts in the month that is."""
    book = Book(wanted_of(limits={"gpuHoursPerMonth": 100}))
    book.put("a/runs", waiting("runs", 1, 5))
    book.cycle()
    book.start("a/runs")
    assert book.taken(book.bounds[0]) == 40
    book.passes(timedelta(days=20))
    assert book.taken(book.bounds[0]) == 0
    assert under_way(book.statuses["a/runs"], month_of(START), book.wanted) is not None
    book.end("a/runs", 6 * HOUR)
    (row,) = spent_in(book.facts.usage["a"], month_of(START))
    assert (row.cluster, row.gpu_hours) == ("east", 40.0)  # without the hour of grace


@law(40)
@given(st.lists(st.integers(1, 36_000), min_size=1, max_size=12))
def test_the_ledger_counts_every_second_however_many_leases_there_are(lasted: list[int]) -> None:
    """C4: four places of each sum tell GPU-seconds apart, so what rounding leaves over never adds up."""
    book = Book(wanted_of(limits={"gpuHoursPerMonth": 10_000}))
    for i, seconds in enumerate(lasted):
        book.put(f"a/r{i}", waiting(f"r{i}", 1, 10))
        book.start(f"a/r{i}")
        book.end(f"a/r{i}", timedelta(seconds=seconds))
    assert book.recorded(book.bounds[0]) == pytest.approx(8 * sum(lasted) / 3600, rel=0, abs=1e-9)


def _filed(name: str, hours: int, after: int, *clusters: str) -> GPRStatus:
    spec = RequestSpec(slice="a", nodes=1, duration=hours * HOUR, clusters=clusters)
    return waiting(name, accepted_spec=spec, filed_at=START + after * HOUR)


def test_room_that_appears_goes_to_nobody_at_the_cost_of_who_is_in() -> None:
    """An older and larger request, that had to wait outside, does not push out a smaller one that was let in."""
    book = Book(wanted_of(limits={"gpuHoursPerMonth": 60}))
    for i, (name, hours) in enumerate((("first", 5), ("large", 6), ("small", 2))):
        book.put(f"a/{name}", _filed(name, hours, i, "east"))
    book.cycle()
    assert [book.is_in(f"a/{name}") for name in ("first", "large", "small")] == [True, False, True]
    book.put("a/first", None)
    book.cycle()
    assert [book.is_in(f"a/{name}") for name in ("large", "small")] == [False, True]
    book.put("a/small", None)
    book.cycle()
    assert book.is_in("a/large")


def test_a_place_whose_hours_come_back_opens_to_who_had_to_do_without_when_nobody_needs_them() -> None:
    book = Book(wanted_of(limits={"where": [{"cluster": "west", "gpuHoursPerMonth": 20}]}))
    for i, (name, hours, *where) in enumerate(
        (("first", 4, "west"), ("either", 5, "west", "east"), ("small", 1, "west"))
    ):
        book.put(f"a/{name}", _filed(name, hours, i, *where))
    book.cycle()
    assert barred_pools(book.statuses["a/either"]) == {("west", "small")}
    book.put("a/first", None)
    book.cycle()
    assert book.is_in("a/small")
    assert barred_pools(book.statuses["a/either"]) == {("west", "small")}
    book.put("a/small", None)
    book.cycle()
    assert not barred_pools(book.statuses["a/either"])


def test_a_request_that_is_stopped_is_charged_nothing_and_takes_no_place() -> None:
    """D13."""
    book = Book(wanted_of(limits={"maxWaiting": 1}))
    spec = RequestSpec(slice="a", nodes=1, duration=HOUR, stopped=True)
    book.put("a/stopped", waiting("stopped", accepted_spec=spec))
    book.put("a/new", waiting("new", filed_at=START + HOUR))
    book.cycle()
    assert (book.is_in("a/stopped"), book.is_in("a/new")) == (False, True)


def test_who_waits_outside_says_so_once() -> None:
    book = Book(wanted_of(limits={"gpuHoursPerMonth": 4}))
    book.put("a/big", waiting("big", 1, 2))
    book.cycle()
    (condition,) = book.statuses["a/big"].conditions
    assert condition.type == OUTSIDE
    assert "this request needs 16; ask for fewer nodes or less time" in condition.message
    book.passes(HOUR)
    book.cycle()
    assert book.statuses["a/big"].conditions == (condition,)
