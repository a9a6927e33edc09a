"""Laws of the planner on random worlds in motion (design, section 6; D3, D6, D7, E1, E3, E10, F11)."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from scheduler.plan import plan
from scheduler.snapshot import Snapshot
from tests.scheduler.play import (
    BENIGN,
    HARMFUL,
    at,
    commit,
    decide_due,
    happen,
    later,
    names_overlap,
    next_instant,
    slices_overlap,
)
from tests.scheduler.worlds import promised_worlds, worlds
from tests.support.profile import law

STEPS = 6


@law(300)
@given(worlds(windows=True), st.data())
def test_as_time_passes_and_room_appears_nobody_is_ever_later(
    snapshot: Snapshot, data: st.DataObject
) -> None:
    """Starts are decided, leases end in time or early, requests are cancelled, nodes come: only ever earlier."""
    snapshot, planned = commit(snapshot)
    for _ in range(STEPS):
        moment = next_instant(snapshot, planned)
        snapshot = decide_due(snapshot, planned)
        assert not names_overlap(snapshot)
        if moment is not None and data.draw(st.booleans()):
            snapshot = at(snapshot, moment)
        if data.draw(st.booleans()):
            snapshot = happen(data.draw, snapshot, data.draw(st.sampled_from(BENIGN)))
        promised, (snapshot, planned) = snapshot, commit(snapshot)
        assert later(promised, planned) == []


@law(300)
@given(worlds(windows=True), st.data())
def test_no_node_and_no_slice_ever_serves_two(snapshot: Snapshot, data: st.DataObject) -> None:
    """Whatever happens, what is planned can be decided with concrete nodes."""
    snapshot, planned = commit(snapshot)
    held_twice = names_overlap(snapshot), slices_overlap(snapshot)
    for _ in range(STEPS):
        moment = next_instant(snapshot, planned)
        snapshot = decide_due(snapshot, planned)
        assert (names_overlap(snapshot), slices_overlap(snapshot)) == held_twice
        if moment is not None and data.draw(st.booleans()):
            snapshot = at(snapshot, moment)
            held_twice = names_overlap(snapshot), slices_overlap(snapshot)
        what = data.draw(st.sampled_from((*BENIGN, *HARMFUL)))
        snapshot, planned = commit(happen(data.draw, snapshot, what))


@law(300)
@given(worlds(windows=True), st.data())
def test_deciding_ahead_of_time_moves_nobody_later(snapshot: Snapshot, data: st.DataObject) -> None:
    """Nodes may be named before their hold begins: they then have calendars of their own, and all still holds."""
    snapshot, planned = commit(snapshot)
    for _ in range(STEPS):
        snapshot = decide_due(snapshot, planned, ahead=data.draw(st.integers(0, 5)))
        promised, (snapshot, planned) = snapshot, commit(snapshot)
        assert later(promised, planned) == []
        moment = next_instant(snapshot, planned)
        if moment is not None:
            snapshot = at(snapshot, moment)
            promised, (snapshot, planned) = snapshot, commit(snapshot)
            assert later(promised, planned) == []


@law(300)
@given(worlds(windows=True), st.data())
def test_from_nothing_a_lower_rank_never_delays_a_higher_one(snapshot: Snapshot, data: st.DataObject) -> None:
    whole = plan(snapshot)
    ahead = whole.order[: data.draw(st.integers(0, len(whole.order)))]
    alone = plan(replace(snapshot, requests={key: snapshot.requests[key] for key in ahead}))
    assert _starts(alone) == {key: start for key, start in _starts(whole).items() if key in ahead}


@law(300)
@given(promised_worlds(windows=True))
def test_planning_again_changes_nothing_for_the_worse(snapshot: Snapshot) -> None:
    snapshot, _ = commit(snapshot)
    assert later(snapshot, plan(snapshot)) == []


@law(300)
@given(promised_worlds(windows=True))
def test_every_request_is_placed_or_refused_with_words(snapshot: Snapshot) -> None:
    planned = plan(snapshot)
    assert sorted(planned.order) == sorted(snapshot.requests)
    assert set(planned.placements) | set(planned.refusals) == set(snapshot.requests)
    assert not set(planned.placements) & set(planned.refusals)
    assert all(refusal.reason and refusal.message for refusal in planned.refusals.values())


@law(300)
@given(promised_worlds(windows=True), st.randoms(use_true_random=False))
def test_the_order_of_the_snapshots_mappings_means_nothing(snapshot: Snapshot, random: object) -> None:
    def shuffled(entries):
        items = list(entries.items())
        random.shuffle(items)
        return dict(items)

    other = Snapshot(
        snapshot.now, shuffled(snapshot.pools), shuffled(snapshot.leases), shuffled(snapshot.requests)
    )
    assert plan(other) == plan(snapshot)


def _starts(planned) -> dict[str, int]:
    return {key: placement.start for key, placement in planned.placements.items()}
