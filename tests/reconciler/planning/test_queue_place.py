"""What the rank reads of a request, when it is read, and who takes a place (E4, F11; design section 6)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.model.facts import Facts, Wanted
from reconciler.model.pools import manifest_pools
from reconciler.planning.queue_place import (
    asked_anew,
    latest_of,
    place_of_unfiled,
    placed,
    standing,
    unfiled_at,
)
from scheduler.fairness.rank import Rank, rank_key
from scheduler.snapshot import FOREVER
from schemas.documents.base import Metadata, Person
from schemas.documents.cluster import Cluster
from schemas.documents.gpr import RequestSpec
from schemas.documents.project import ProjectSpec
from schemas.documents.scheduling import Ageing, Fairness, Scheduling
from schemas.documents.slice import SliceLimits, SliceSpec
from schemas.reading.units import seconds
from schemas.status.gpr_status import Assignment, GPRStatus, Phase, Place
from schemas.status.usage import UsageRecord
from tests.support import world as build
from tests.support.world import START, at

ADA = (Person(email="ada@example.com"),)
EAST = build.parsed("clusters/east.yaml", build.cluster())
assert isinstance(EAST, Cluster)
STEP = Fairness(half_life=timedelta(days=7), step=1)


def wanted(weight: float = 1.0, **policy: object) -> Wanted:
    """One cluster of 8-GPU nodes and the slice `a`, fairness in steps of one GPU-hour."""
    assert isinstance(EAST, Cluster)
    clusters = {"east": EAST.spec}
    slice_ = SliceSpec(members=ADA, clusters=("east",), namespaces=("a",), weight=weight)
    scheduling = Scheduling(**{"fairness": STEP, **policy})  # type: ignore[arg-type]
    project = ProjectSpec(admins=ADA, scheduling=scheduling)
    return Wanted("c", project, clusters, {"a": slice_}, {}, {}, manifest_pools(clusters))


def filed(minute: float = 0, *, hours: int = 1, **update: object) -> GPRStatus:
    """A request of `a` for one node of eight GPUs."""
    spec = RequestSpec(slice="a", nodes=1, duration=timedelta(hours=hours))
    status = GPRStatus(
        phase=Phase.QUEUED, uid="gpr-1", filed_at=at(minute), accepted_spec=spec, spec_digest="x"
    )
    return status.model_copy(update=update)


def protected(
    key: str,
    ceiling: int,
    *,
    priority: int = 101,
    move: int = 0,
    minute: float = -5,
    used: float = 0.0,
    displaced: int = 5,
) -> Rank:
    """The rank of a request that was displaced to the limit, in a slice with this `maxPriority`."""
    status = filed(minute, place=Place(used=used), displaced_count=displaced)
    spec = status.accepted_spec.model_copy(update={"priority": priority, "move": move})
    slice_ = wanted().slices["a"].model_copy(update={"limits": SliceLimits(max_priority=ceiling)})
    there = replace(wanted(), slices={"a": slice_})
    return rank_key(standing(key, status.model_copy(update={"accepted_spec": spec}), 8, there, at(0)))


def running(begin: float, hours: int) -> GPRStatus:
    held = Assignment(cluster="east", pool="h100", nodes=("h100-1",))
    times = {"start_time": at(begin), "end_time": at(begin + 60 * hours)}
    return filed(begin, hours=hours, phase=Phase.PROVISIONED, assignment=held, **times)


def place_of(requests: dict[str, GPRStatus], key: str, minute: float = 0, **facts: object) -> Place | None:
    """The place of one request, all of them having been filed just now."""
    now = Facts(at(minute), requests=requests, **facts)  # type: ignore[arg-type]
    return placed(Facts(START), now, wanted()).requests[key].place


def test_whoever_files_first_has_nothing_ahead() -> None:
    assert place_of({"a/x": filed()}, "a/x") == Place(used=0, ahead=0)


def test_what_its_slice_filed_before_is_ahead_and_what_it_filed_after_is_not() -> None:
    """Of those filed at one instant the name decides, as in the rank."""
    requests = {"a/x": filed(1), "a/w": filed(1, hours=2), "a/z": filed(2), "b/y": filed(0)}
    requests["b/y"] = filed(0, accepted_spec=requests["b/y"].accepted_spec.model_copy(update={"slice": "b"}))
    assert place_of(requests, "a/x") == Place(used=0, ahead=16)
    assert place_of(requests, "a/w") == Place(used=0, ahead=0)
    assert place_of(requests, "a/z") == Place(used=0, ahead=24)


def test_a_slice_never_passes_its_own_earlier_request_by_cancelling_what_was_before_it() -> None:
    """Forty GPU-hours were ahead of x when it was filed; they are gone, and y still stands behind x."""
    old = filed(0, place=Place(used=0.0, ahead=40.0))
    now = Facts(at(9), requests={"a/x": old, "a/y": filed(9)})
    after = placed(Facts(START, requests={"a/x": old}), now, wanted()).requests
    x, y = (standing(key, after[key], 8, wanted(), at(9)) for key in ("a/x", "a/y"))
    assert x.share <= y.share == 39


def test_requests_that_wait_for_approval_are_ahead_too() -> None:
    """Else a hundred of them, approved together, would all stand where the first does."""
    pending = filed(0, phase=Phase.PENDING_APPROVAL)
    assert place_of({"a/w": pending, "a/x": filed(1)}, "a/x") == Place(used=0, ahead=8)


def test_a_lease_counts_with_all_that_it_holds_and_a_ledger_with_what_is_left_of_it() -> None:
    old = UsageRecord(metadata=Metadata(name="a"), currency="USD", used=100.0, at=START - timedelta(days=7))
    found = place_of({"a/run": running(0, 2), "a/x": filed(0)}, "a/x", usage={"a": old})
    assert found == Place(used=66, ahead=0)


@pytest.mark.parametrize(
    ("phase", "used"),
    [
        pytest.param(
            Phase.RELEASING, 16, id="until its nodes are clean a lease counts with all that it held"
        ),
        pytest.param(Phase.COMPLETED, 0, id="then the ledger alone says what it had"),
    ],
)
def test_a_lease_that_is_over_is_counted_once(phase: Phase, used: float) -> None:
    over = running(0, 2).model_copy(update={"phase": phase})
    assert place_of({"a/run": over, "a/x": filed(0)}, "a/x") == Place(used=used, ahead=0)


@pytest.mark.parametrize(
    ("change", "is_read"),
    [
        pytest.param({"filed_at": at(5)}, True, id="it asks for more or something else"),
        pytest.param({"uid": "gpr-2"}, True, id="it is another request under the same name"),
        pytest.param({"phase": Phase.PENDING_APPROVAL}, False, id="it waits for approval"),
        pytest.param({"retry_count": 1}, False, id="its checks failed"),
        pytest.param({"filed_at": at(5), "phase": Phase.CANCELLED}, False, id="it waits no more"),
    ],
)
def test_a_place_is_read_when_a_request_takes_it_and_kept(change: dict[str, object], is_read: bool) -> None:
    kept = Place(used=7.0, ahead=9.0)
    old = filed(1, place=kept, displaced_count=3)
    new = old.model_copy(update=change)
    found = placed(
        Facts(START, requests={"a/x": old}), Facts(at(9), requests={"a/x": new}), wanted()
    ).requests["a/x"]
    expected = (Place(used=0, ahead=0), 0) if is_read else (kept, 3)
    assert (found.place, found.displaced_count) == expected


def test_facts_in_which_nobody_takes_a_place_are_the_same_facts() -> None:
    facts = Facts(START, requests={"a/x": filed(1)})
    assert placed(facts, facts, wanted()) is facts


def test_a_move_keeps_what_was_read_and_plans_anew() -> None:
    old = {"a/x": filed(1, place=Place(used=9.0)), "b/y": filed(0)}
    spec = old["a/x"].accepted_spec.model_copy(update={"move": 1})
    new = {**old, "a/x": old["a/x"].model_copy(update={"accepted_spec": spec})}
    before, after = Facts(START, requests=old), Facts(at(2), requests=new)
    assert placed(before, after, wanted()).requests["a/x"].place == Place(used=9.0)
    assert asked_anew(before, after, wanted()) == {"a/x"}


def test_time_lets_nobody_past_when_an_admin_moves_somebody_else() -> None:
    """Ageing changed the order of x and y since the last look; only the move is an admin's word."""
    ageing = wanted(ageing=Ageing(every=timedelta(minutes=10), step=5))
    x, y = filed(0), filed(5)
    y = y.model_copy(update={"accepted_spec": y.accepted_spec.model_copy(update={"priority": 103})})
    z = filed(1)
    moved = z.model_copy(update={"accepted_spec": z.accepted_spec.model_copy(update={"move": -1})})
    before = Facts(at(9), requests={"a/x": x, "a/y": y, "a/z": z})
    after = Facts(at(12), requests={"a/x": x, "a/y": y, "a/z": moved})
    assert asked_anew(before, after, ageing) == frozenset()


@pytest.mark.parametrize(
    ("status", "policy", "expected"),
    [
        pytest.param(
            filed(0, place=Place(used=10.0, ahead=8.0)), {}, (0, 18, 0), id="use and what is ahead, in steps"
        ),
        pytest.param(filed(0, place=Place(used=10.0)), {"fairness": None}, (0, 0, 0), id="no fairness"),
        pytest.param(filed(0), {}, (0, 0, 0), id="filed before places were read"),
        pytest.param(
            filed(-60), {"ageing": Ageing(every=timedelta(minutes=30), step=7)}, (14, 0, 0), id="two steps"
        ),
        pytest.param(filed(-60), {"ageing": None}, (0, 0, 0), id="no ageing"),
        pytest.param(filed(0, hours=3), {"order": "shortest-service"}, (0, 0, 24), id="GPU-hours of service"),
        pytest.param(
            filed(-90, hours=3, place=Place(used=99.0), displaced_count=5),
            {"order": "shortest-service"},
            (99, -1, 0),
            id="displaced often enough: the head of its band",
        ),
        pytest.param(
            filed(0, displaced_count=5), {"max_displacements": 6}, (0, 0, 0), id="not yet often enough"
        ),
    ],
)
def test_what_policies_add(status: GPRStatus, policy: dict[str, object], expected: tuple[int, ...]) -> None:
    found = standing("a/x", status, 8, wanted(**policy), START)
    assert (found.boost, found.share, found.service) == expected


@pytest.mark.parametrize(
    ("ceiling", "waited", "boost"),
    [
        pytest.param(300, 0, 99, id="to the end of its band"),
        pytest.param(111, 0, 10, id="to what its slice may ask for, where that is lower"),
        pytest.param(111, 120, 40, id="no lower than where its wait has put it"),
    ],
)
def test_protection_lifts_and_never_lowers(ceiling: int, waited: float, boost: int) -> None:
    known = wanted(ageing=Ageing(every=timedelta(hours=1), step=20))
    capped = known.slices["a"].model_copy(update={"limits": SliceLimits(max_priority=ceiling)})
    status = filed(-waited, displaced_count=5)
    found = standing("a/x", status, 8, replace(known, slices={"a": capped}), START)
    assert (found.boost, found.share) == (boost, -1)


def test_where_nobody_records_the_filing_nothing_ages() -> None:
    """A plain folder has no status: all are filed at 0, and have not waited since 1970."""
    epoch = filed().model_copy(update={"filed_at": START - timedelta(seconds=seconds(START))})
    found = standing("a/x", epoch.model_copy(update={"place": Place(ahead=8.0)}), 8, wanted(), START)
    assert (found.boost, found.share) == (0, 8)


def test_twice_the_weight_is_half_the_share_at_once_when_it_changes() -> None:
    status = filed(0, place=Place(used=10.0, ahead=8.0))
    assert standing("a/x", status, 8, wanted(weight=2.0), START).share == 9


def test_a_quote_stands_where_the_request_would_were_it_filed_now() -> None:
    facts = Facts(at(9), requests={"a/run": running(9, 2), "a/w": filed(1)})
    spec = filed().accepted_spec
    asked, policy = ("a/~", spec, seconds(at(9))), wanted(order="shortest-service")
    quoted = unfiled_at(place_of_unfiled(*asked, facts, policy), asked, policy, at(9))
    after = replace(facts, requests={**facts.requests, "a/~": filed(9)})
    status = placed(facts, after, wanted()).requests["a/~"]
    assert quoted == standing("a/~", status, 8, wanted(order="shortest-service"), at(9))
    assert quoted.share == 24


@pytest.mark.parametrize(
    ("place", "multiple", "bound"),
    [
        pytest.param(Place(first_come=at(30)), 2.0, seconds(at(50)), id="twice the twenty minutes"),
        pytest.param(Place(first_come=at(30)), None, FOREVER, id="the project sets no bound"),
        pytest.param(Place(), 2.0, FOREVER, id="filed before there was one"),
        pytest.param(None, 2.0, FOREVER, id="filed before places were read"),
    ],
)
def test_the_bound_counts_from_the_filing(place: Place | None, multiple: float | None, bound: int) -> None:
    policy = Scheduling(max_wait_multiple=multiple)
    assert latest_of(filed(10, place=place), policy) == bound


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(
            protected("b/y", 200, priority=101),
            protected("a/x", 150, priority=150),
            id="where it is lifted to",
        ),
        pytest.param(protected("b/y", 200, move=1), protected("a/x", 200), id="then an admin's move"),
        pytest.param(
            protected("b/y", 200, minute=-9, used=99.0),
            protected("a/x", 200),
            id="then filing, whatever was used",
        ),
        pytest.param(
            protected("a/x", 200),
            protected("b/y", 200, displaced=50),
            id="then the name, however often displaced",
        ),
    ],
)
def test_protected_requests_stand_in_one_total_order(first: Rank, second: Rank) -> None:
    assert first < second
