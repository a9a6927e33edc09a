"""Slips have true causes of the closed list (design, section 6; D3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.causes.causes import Moved, Starts, explained, slips
from scheduler.causes.changes import Known, changes_between, undo
from scheduler.plan import plan
from scheduler.snapshot import Change, ChangeKind, Displaced, Promise, Snapshot, Window
from schemas.status.gpr_status import Cause
from tests.scheduler.play import BENIGN, HARMFUL, at, commit, decide_due, happen, later, next_instant
from tests.scheduler.worlds import EAST, OUT, lease, pool, request, world, worlds
from tests.support.profile import law

TWO = pool(2)
HELD = request("a", 2, promise=Promise(EAST, 0))


def moved(before: Snapshot, after: Snapshot, **known: Known) -> list[tuple[str, int, int | None, set[str]]]:
    told = {(ChangeKind.REQUEST, f"{key}/r"): value for key, value in known.items()}
    found = slips(before, after, changes_between(before, after, told), plan(after))
    assert all(slip.proven for slip in found)
    return [(slip.key[0], slip.was, slip.now, {change.cause for change in slip.causes}) for slip in found]


@pytest.mark.parametrize(
    ("after", "want"),
    [
        pytest.param(world(HELD, pools=[TWO]), [], id="nothing changed, nobody moved"),
        pytest.param(
            world(HELD, request("b", priority=300), pools=[TWO]),
            [("a", 0, 10, {Cause.HIGHER_RANK_ARRIVED})],
            id="a new request of higher rank",
        ),
        pytest.param(
            world(HELD, request("b", priority=1), pools=[TWO]), [], id="a new request of lower rank"
        ),
        pytest.param(
            world(replace(HELD, not_before=50), pools=[TWO]),
            [("a", 0, 50, {Cause.REQUEST_CHANGED})],
            id="its own edit",
        ),
        pytest.param(
            world(HELD, pools=[replace(TWO, windows={"h100-1": OUT})]),
            [("a", 0, None, {Cause.NODE_LOST})],
            id="a node is out for good",
        ),
        pytest.param(
            world(HELD, pools=[replace(TWO, nodes=("h100-1",))]),
            [("a", 0, None, {Cause.NODE_LOST})],
            id="a node has left the manifest",
        ),
        pytest.param(
            world(HELD, pools=[replace(TWO, windows={"h100-1": (Window(5, 8),)})]),
            [("a", 0, 8, {Cause.MAINTENANCE_ADDED})],
            id="a maintenance window",
        ),
        pytest.param(
            world(HELD, pools=[replace(TWO, open=False)]),
            [("a", 0, None, {Cause.CLUSTER_UNREACHABLE})],
            id="its cluster cannot be reached",
        ),
        pytest.param(
            world(HELD, pools=[TWO], now=3), [("a", 0, 3, {Cause.CONTROLLER_ABSENT})], id="nobody was there"
        ),
        pytest.param(
            world(HELD, pools=[TWO], leases=[lease("b", ["h100-1"], 9)]),
            [("a", 0, 9, {Cause.REQUEST_CHANGED})],
            id="a lease that nobody was promised",
        ),
        pytest.param(
            world(replace(HELD, pools=()), pools=[TWO]),
            [("a", 0, None, {Cause.POLICY_CHANGED})],
            id="no pool is left to it",
        ),
        pytest.param(
            world(
                HELD,
                request("b", priority=300),
                pools=[replace(TWO, windows={"h100-1": (Window(0, 10),)})],
            ),
            [("a", 0, 10, {Cause.HIGHER_RANK_ARRIVED, Cause.MAINTENANCE_ADDED})],
            id="two changes, either of which is enough, are named together",
        ),
    ],
)
def test_cause(after: Snapshot, want: list[tuple[str, int, int | None, set[str]]]) -> None:
    assert moved(world(HELD, pools=[TWO]), after) == want


@pytest.mark.parametrize(
    ("was", "now", "want"),
    [
        pytest.param(lease("b", ["h100-1"], 5), lease("b", ["h100-2"], 5), Cause.NODE_REPLACED, id="a spare"),
        pytest.param(
            lease("b", ["h100-1"], 5),
            lease("b", ["h100-1"], 5, held_until=9),
            Cause.CHECKS_FAILED,
            id="cleaning takes longer",
        ),
        pytest.param(
            lease("b", ["h100-1"], 5), lease("b", ["h100-1"], 9), Cause.REQUEST_CHANGED, id="an extension"
        ),
    ],
)
def test_a_lease_that_holds_more_is_a_cause(was: object, now: object, want: Cause) -> None:
    held = request("a", promise=Promise(EAST, 5), movable=False)
    before, after = (world(held, pools=[pool(2)], leases=[it]) for it in (was, now))
    assert [change.cause for change in changes_between(before, after)] == [want]


def test_what_is_only_good_is_no_change() -> None:
    before = world(
        HELD,
        request("b"),
        pools=[replace(TWO, windows={"h100-1": OUT}, open=False)],
        leases=[lease("c", ["h100-1"], 9)],
    )
    after = world(
        HELD, pools=[replace(TWO, nodes=(*TWO.nodes, "h100-3"))], leases=[lease("c", ["h100-1"], 5)]
    )
    assert changes_between(before, after) == ()


def test_a_promise_that_became_a_lease_as_promised_is_no_change() -> None:
    after = world(pools=[TWO], leases=[lease("a", TWO.nodes, 10)])
    assert changes_between(world(HELD, pools=[TWO]), after) == ()


def test_a_lease_back_in_the_queue_is_requeued() -> None:
    before = world(HELD, pools=[TWO], leases=[lease("b", ["h100-1"], 0)])
    after = world(HELD, request("b", priority=300), pools=[TWO])
    assert moved(before, after) == [("a", 0, 10, {Cause.REQUEUED})]


def test_the_caller_knows_better() -> None:
    after = world(HELD, request("b", priority=300), pools=[TWO])
    told = moved(world(HELD, pools=[TWO]), after, b=Known(Cause.APPROVED, "ada"))
    assert told == [("a", 0, 10, {Cause.APPROVED})]


def test_a_slip_names_the_first_of_a_chain() -> None:
    """`c` gives way to `b`, which gives way to `a`: the cause is `a` alone."""
    b, c = request("b", 2, priority=200), request("c", 2, priority=100)
    before, _ = commit(world(b, c, pools=[TWO]))
    a = request("a", 2, priority=300)
    after = replace(before, requests={**before.requests, a.key: a})
    found = slips(before, after, changes_between(before, after), plan(after))
    assert [(slip.key, slip.causes[0].by) for slip in found] == [("b/r", "a/r"), ("c/r", "a/r")]


def test_when_the_budget_is_spent_the_likeliest_is_named_and_not_called_proven() -> None:
    before = world(HELD, pools=[TWO])
    after = world(HELD, request("b", priority=300), request("c", priority=290), pools=[TWO])
    found = slips(before, after, changes_between(before, after), plan(after), budget=0)
    assert found == (
        Moved(
            HELD.key,
            0,
            10,
            (Change(ChangeKind.REQUEST, "b/r", Cause.HIGHER_RANK_ARRIVED, "b/r"),),
            proven=False,
        ),
    )


@law(300)
@given(worlds(windows=True), st.data())
def test_every_slip_in_a_random_history_has_a_cause_that_is_true(
    snapshot: Snapshot, data: st.DataObject
) -> None:
    """True: planning again without what is named, the start is no later; and no less would do."""
    before, planned = commit(snapshot)
    for _ in range(5):
        moment = next_instant(before, planned)
        after = decide_due(before, planned)
        if moment is not None and data.draw(st.booleans()):
            after = at(after, moment + data.draw(st.sampled_from([0, 0, 1])))
        for what in data.draw(st.lists(st.sampled_from((*BENIGN, *HARMFUL, *HARMFUL)), max_size=3)):
            after = happen(data.draw, after, what)
        new = plan(after)
        found = slips(before, after, changes_between(before, after), new)
        assert set(later(after, new)) <= {slip.key for slip in found}
        for slip in found:
            assert slip.proven
            assert slip.causes
            _assert_true(before, after, slip)
        before, planned = commit(after)


def _assert_true(before: Snapshot, after: Snapshot, slip: Moved) -> None:
    def holds_without(undone: tuple[Change, ...]) -> bool:
        placement = plan(undo(before, after, undone)).placements.get(slip.key)
        return placement is not None and placement.start <= slip.was

    assert holds_without(slip.causes)
    if len(slip.causes) > 1:
        assert not any(holds_without((change,)) for change in slip.causes)


class Counted(str):
    """A key that counts how often it is looked up."""

    __slots__ = ()
    looked = 0

    def __hash__(self) -> int:
        Counted.looked += 1
        return super().__hash__()


def test_causes_of_a_flood_cost_no_more_than_its_changes_and_slips_together() -> None:
    """Each of 500 promises was taken by a request of its own, and 5,000 more arrived."""
    keys = [Counted(f"s{i}/r") for i in range(5_000)]
    changes = [Change(ChangeKind.REQUEST, key, Cause.HIGHER_RANK_ARRIVED, key) for key in keys]
    gone = [Displaced(f"d{i}/r", keys[i]) for i in range(500)]
    Counted.looked = 0
    found = explained([(one.key, 0, 5) for one in gone], changes, gone, never_planned, budget=0)
    assert [slip.causes for slip in found] == [(change,) for change in changes[:500]]
    assert not any(slip.proven for slip in found)
    assert Counted.looked < 5 * (5_000 + 500)


def never_planned(_: object) -> Starts:
    raise AssertionError("there is no budget for a plan")


@pytest.mark.parametrize(
    ("plans", "want"),
    [
        pytest.param(9, (True, {Cause.HIGHER_RANK_ARRIVED}), id="there is time: the cause is shown"),
        pytest.param(1, (False, {Cause.REQUEST_CHANGED}), id="time ends on the way: the likeliest is named"),
        pytest.param(0, (False, {Cause.REQUEST_CHANGED}), id="there is none at all: the likeliest is named"),
    ],
)
def test_trials_end_when_the_caller_has_no_more_time(plans: int, want: tuple[bool, set[Cause]]) -> None:
    before = world(HELD, pools=[TWO])
    edited = replace(HELD, duration=9)
    after = world(edited, request("b", 2, priority=300), pools=[TWO])
    asked = iter([True] * plans)
    slip = only_slip(before, after, lambda: next(asked, False))
    assert (slip.proven, {change.cause for change in slip.causes}) == want


def only_slip(before: Snapshot, after: Snapshot, has_time: Callable[[], bool]) -> Moved:
    (found,) = slips(before, after, changes_between(before, after), plan(after), has_time=has_time)
    return found


def test_a_single_change_needs_no_trial() -> None:
    """With nothing changed every promise holds, so that it can only be this one."""
    before, after = world(HELD, pools=[TWO]), world(HELD, request("b", priority=300), pools=[TWO])
    found = slips(before, after, changes_between(before, after), plan(after), budget=0)
    assert [([change.key for change in slip.causes], slip.proven) for slip in found] == [(["b/r"], True)]


def test_of_two_changes_both_together_need_no_trial() -> None:
    """Without changes every promise holds, so that two plans prove what two changes did."""
    before, _ = commit(world(request("a", 2), pools=[pool(2)]))
    filed = [request(name, 1, priority=300) for name in ("b", "c")]
    after = replace(before, requests={**before.requests, **{one.key: one for one in filed}})
    tried: list[Sequence[Change]] = []

    def without(undone: Sequence[Change]) -> Starts:
        tried.append(undone)
        return plan(undo(before, after, undone)).starts().get

    found = explained([("a/r", 0, 10)], changes_between(before, after), (), without)
    assert [({change.by for change in slip.causes}, slip.proven) for slip in found] == [
        ({"b/r", "c/r"}, True)
    ]
    assert [len(undone) for undone in tried] == [1, 1]


def test_undoing_a_flood_makes_one_world(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not one for each of its requests: each costs as much as there are requests."""
    made: list[object] = []
    monkeypatch.setattr(
        "scheduler.causes.changes.replace", lambda *a, **new: made.append(new) or replace(*a, **new)
    )
    flood = world(HELD, *(request(f"n{i}") for i in range(50)), pools=[TWO])
    before = world(HELD, pools=[TWO])
    changes = [Change(ChangeKind.REQUEST, f"n{i}/r", Cause.HIGHER_RANK_ARRIVED) for i in range(50)]
    assert undo(before, flood, changes) == before
    assert len(made) == 1
