"""What slices used, and what follows for the order: E4, F11, design section 6."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.fairness.usage_share import HOUR, Demand, Scale, ahead, decayed, of_lease, share, used
from scheduler.plan import plan
from scheduler.promises import with_promises
from scheduler.snapshot import Lease, Request, Snapshot
from tests.scheduler import play
from tests.scheduler.worlds import EAST, pool, request, starts, world

DAY = 24 * HOUR
WEEK = 7 * DAY


@pytest.mark.parametrize(
    ("age", "left"),
    [
        pytest.param(0, 80.0, id="nothing is forgotten at once"),
        pytest.param(WEEK, 40.0, id="half after a half-life"),
        pytest.param(3 * WEEK, 10.0, id="an eighth after three"),
        pytest.param(-5, 80.0, id="a clock that went back adds nothing"),
    ],
)
def test_what_was_used_is_forgotten_by_halves(age: int, left: float) -> None:
    assert decayed(80.0, age, WEEK) == pytest.approx(left)


@given(
    st.integers(1, 64), st.integers(0, WEEK), st.integers(0, WEEK), st.integers(0, WEEK), st.integers(0, WEEK)
)
def test_a_lease_counts_the_same_in_one_piece_and_in_two(
    gpus: int, begin: int, first: int, second: int, rest: int
) -> None:
    """So a ledger that is written when leases end, in any order, agrees with one that is written all the time."""
    middle, end = begin + first, begin + first + second
    at = end + rest
    early = decayed(used(gpus, begin, middle, middle, WEEK), at - middle, WEEK)
    whole = used(gpus, begin, end, at, WEEK)
    assert early + used(gpus, middle, end, at, WEEK) == pytest.approx(whole)
    assert 0 <= whole <= gpus * (end - begin) / HOUR + 1e-6


@given(st.integers(1, 64), st.integers(1, WEEK), st.integers(0, 2 * WEEK))
def test_a_running_lease_counts_what_it_used_and_all_that_it_has_yet_to_use(
    gpus: int, length: int, at: int
) -> None:
    """No slice gains by filing while its own requests run: they count from the moment they hold nodes."""
    counted, all_of_it = of_lease(gpus, 0, length, at, WEEK), gpus * length / HOUR
    assert counted <= all_of_it + 1e-6
    if at == 0:
        assert counted == pytest.approx(all_of_it)
    if at >= length:
        assert counted == pytest.approx(used(gpus, 0, length, at, WEEK))


@pytest.mark.parametrize(
    ("gpu_hours", "weight", "steps"),
    [
        pytest.param(0.0, 1.0, 0, id="who used nothing"),
        pytest.param(49.9, 1.0, 0, id="less than a step is equal to nothing"),
        pytest.param(50.0, 1.0, 1, id="a whole step"),
        pytest.param(199.0, 2.0, 1, id="twice the weight, half the share"),
        pytest.param(25.0, 0.5, 1, id="half the weight, twice the share"),
    ],
)
def test_a_share_is_use_over_weight_in_whole_steps(gpu_hours: float, weight: float, steps: int) -> None:
    assert share(gpu_hours, 0.0, 0, Scale(weight, 50, WEEK)) == steps
    assert share(0.0, gpu_hours, 0, Scale(weight, 50, WEEK)) == steps


@given(st.integers(0, 5000), st.integers(0, 5000), st.integers(0, WEEK), st.integers(0, WEEK))
def test_a_share_only_falls_while_its_request_waits(
    used_h: int, ahead_h: int, waited: int, more: int
) -> None:
    """So that waiting never makes a rank worse beside requests that are filed later."""
    scale = Scale(1.0, 10, WEEK)
    sooner, later = (share(used_h, ahead_h, wait, scale) for wait in (waited, waited + more))
    assert 0 <= later <= sooner


def test_what_was_used_counts_half_after_a_half_life_of_waiting_and_what_is_promised_less_than_halved() -> (
    None
):
    """What its own requests before it hold is used during the wait, some of it just now."""
    scale = Scale(1.0, 1, WEEK)
    assert share(100.0, 0.0, WEEK, scale) == 50
    assert share(0.0, 100.0, WEEK, scale) == 72  # the mean of 2^-t for t in [0, 1): 1 / (2 ln 2)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=8),
    st.randoms(),
)
def test_what_counts_as_ahead_of_a_request_are_those_filed_before_it_alone(
    given_: list[tuple[int, int, int]], order: object
) -> None:
    asked = [Demand(f"s/{i}", filed, gpus, hours * HOUR) for i, (filed, gpus, hours) in enumerate(given_)]
    shuffled = list(asked)
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    found = dict(ahead(shuffled))
    for one in asked:
        before = [a.gpu_hours for a in asked if (a.filed_at, a.key) < (one.filed_at, one.key)]
        assert found[one.key] == sum(before)


def filed(snapshot: Snapshot, fresh: Request) -> Snapshot:
    """One more request, planned and committed."""
    found = replace(snapshot, requests={**snapshot.requests, fresh.key: fresh})
    return with_promises(found, plan(found))


def test_a_slice_that_files_a_hundred_at_once_does_not_shut_the_others_out() -> None:
    """Its second request waits behind the first of a slice that comes later; who comes first keeps the start."""
    crowd = [Demand(f"a/{i:03}", 1, 8, 10 * HOUR) for i in range(100)]
    scale, before = Scale(1.0, 50, WEEK), dict(ahead(crowd))
    many = [
        request(
            "a", key=one.key, duration=one.duration, filed_at=1, share=share(0, before[one.key], 0, scale)
        )
        for one in crowd
    ]
    snapshot = world(*many, pools=[pool(1)])
    snapshot = with_promises(snapshot, plan(snapshot))
    late = request("b", duration=10 * HOUR, filed_at=2)
    planned = plan(filed(snapshot, late))
    assert planned.placements["a/000"].start == 0
    assert starts(planned)["b"] == 10 * HOUR


HALF_LIFE = 2 * DAY


@pytest.mark.parametrize(
    ("weights", "backlog"),
    [
        pytest.param({"a": 1.0, "b": 1.0}, 4, id="two alike, whose requests differ in length"),
        pytest.param({"a": 1.0, "b": 3.0}, 4, id="two, one of three times the weight"),
        pytest.param({"a": 1.0, "b": 2.0, "c": 2.0}, 4, id="three"),
        pytest.param(
            {"a": 1.0, "b": 3.0}, 20, id="a long queue, which the lighter slice waits in three times as long"
        ),
        pytest.param({"a": 1.0, "b": 1.0}, 20, id="a long queue, of longer requests for one"),
    ],
)
def test_a_saturated_fleet_is_shared_by_weight(weights: Mapping[str, float], backlog: int) -> None:
    """Within 5 % over two half-lives, counted from the first on, with everybody always waiting for more."""
    got = Saturated(weights, backlog).held(begin=HALF_LIFE, end=3 * HALF_LIFE)
    whole, total = sum(weights.values()), sum(got.values())
    for name, weight in weights.items():
        assert got[name] / total == pytest.approx(weight / whole, rel=0.05)


class Saturated:
    """A pool that is never idle, real plans all along, and each slice always with as many requests waiting.

    The planner is told no slices: the rule of one request at a time would keep a heavy slice from its share.
    """

    def __init__(self, weights: Mapping[str, float], backlog: int) -> None:
        self.weights, self.backlog = weights, backlog
        self.lengths = dict(zip(weights, (HOUR, 2 * HOUR, HOUR // 2), strict=False))
        self.ledger, self.counted_at = dict.fromkeys(weights, 0.0), 0
        self.places: dict[str, tuple[float, float]] = {}
        self.snapshot = world(pools=[pool(4)])

    def held(self, begin: int, end: int) -> dict[str, float]:
        """Node-hours that each slice held on [begin, end)."""
        got = dict.fromkeys(self.weights, 0.0)
        while self.snapshot.now < end:
            for name in self.weights:
                self.file(name)
            self.read_shares()
            planned = plan(self.snapshot)
            self.snapshot = play.decide_due(with_promises(self.snapshot, planned), planned)
            for lease in self.to_next_end():
                name = lease.key.partition("/")[0]
                self.ledger[name] += used(1, lease.start, lease.end, self.snapshot.now, HALF_LIFE)
                got[name] += max(0, min(lease.end, end) - max(lease.start, begin)) / HOUR
        return got

    def file(self, name: str) -> None:
        """New requests behind those of this slice that wait."""
        theirs = [r for key, r in self.snapshot.requests.items() if key.startswith(f"{name}/")]
        held = [lease for key, lease in self.snapshot.leases.items() if key.startswith(f"{name}/")]
        now, requests = self.snapshot.now, dict(self.snapshot.requests)
        counted = self.ledger[name] + sum(of_lease(1, x.start, x.end, now, HALF_LIFE) for x in held)
        before = sum(r.duration for r in theirs) / HOUR
        for _ in range(self.backlog - len(theirs)):
            key = f"{name}/{len(self.places):06}"
            self.places[key] = (counted, before)
            before += self.lengths[name] / HOUR
            requests[key] = replace(request("", duration=self.lengths[name], filed_at=now), key=key, slice="")
        self.snapshot = replace(self.snapshot, requests=requests)

    def read_shares(self) -> None:
        """As `reconciler.planning.queue_place.standing` has them at this instant."""
        found = {}
        for key, one in self.snapshot.requests.items():
            scale = Scale(self.weights[key.partition("/")[0]], 1, HALF_LIFE)
            waited = self.snapshot.now - one.filed_at
            found[key] = replace(one, share=share(*self.places[key], waited, scale))
        self.snapshot = replace(self.snapshot, requests=found)

    def to_next_end(self) -> list[Lease]:
        """Time passes until a lease ends; those that did."""
        now = min(lease.held_until for lease in self.snapshot.leases.values())
        age, self.counted_at = now - self.counted_at, now
        self.ledger = {name: decayed(value, age, HALF_LIFE) for name, value in self.ledger.items()}
        over = [lease for lease in self.snapshot.leases.values() if lease.held_until <= now]
        self.snapshot = play.at(self.snapshot, now)
        return over


def test_the_order_of_different_priorities_is_never_touched() -> None:
    """Fairness is a word among equals."""
    high = request("a", duration=5, priority=102, share=1000)
    low = request("b", duration=5, priority=101)
    assert starts(plan(world(high, low, pools=[pool(1, EAST)]))) == {"a": 0, "b": 5}
