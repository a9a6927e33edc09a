"""Drift is told once, mended at once, and in a quarrel ever later. Stories: tests/cases/reconciler/real.yaml."""

from __future__ import annotations

from datetime import datetime, timedelta

from reconciler.acting.actions import Action, Do
from reconciler.acting.drift import MOST_TOLD, Drift, Looked
from reconciler.model import backoff
from reconciler.model.cluster_port import Difference, SliceTerms
from reconciler.model.events import EventReason
from tests.support.world import at

TERMS = SliceTerms("a", ("a",))
ENSURE = Action(Do.ENSURE_SLICE, "east", slice="a", terms=TERMS)
ROLE = Difference("a", "Role a/egs", "changed", "rules by kubectl-edit")


def looked(*differences: Difference, terms: SliceTerms = TERMS) -> Looked:
    return Looked({"east": (terms,)}, {"east": differences})


def repaired(drift: Drift, found: Looked, now: datetime) -> list[str]:
    """One round in which the slice is mended unless it rests; what was told."""
    done = [] if drift.resting(found, now) else [ENSURE]
    return [event.message for event in drift.after(found, done, done, now)]


def test_the_first_making_of_a_slice_and_changed_terms_are_no_drift() -> None:
    drift = Drift()
    assert repaired(drift, looked(ROLE), at(0)) == []
    assert repaired(drift, looked(), at(1)) == []
    other = SliceTerms("a", ("a", "b"))
    assert repaired(drift, looked(ROLE, terms=other), at(2)) == []


def test_it_is_told_once_while_it_stands_and_again_when_it_comes_back() -> None:
    drift = Drift()
    repaired(drift, looked(), at(0))
    told = ["east: Role a/egs of slice a was changed (rules by kubectl-edit); put right"]
    assert repaired(drift, looked(ROLE), at(1)) == told
    assert repaired(drift, looked(ROLE), at(2)) == []
    assert repaired(drift, looked(), at(3)) == []
    assert repaired(drift, looked(ROLE), at(10)) == told


def test_a_repair_that_takes_its_time_is_carried_on_without_a_pause() -> None:
    drift = Drift()
    repaired(drift, looked(), at(0))
    drift.after(looked(ROLE), [ENSURE], [], at(1))
    assert drift.resting(looked(ROLE), at(1)) == frozenset()


def test_pauses_double_up_to_an_hour_and_are_forgotten_after_a_quiet_time() -> None:
    drift, now, pauses = Drift(), at(0), []
    repaired(drift, looked(), now)
    for _ in range(10):
        repaired(drift, looked(ROLE), now)
        begun = now
        while drift.resting(looked(ROLE), now):
            now += timedelta(seconds=10)
            repaired(drift, looked(), now)
        pauses.append(now - begun)
    assert pauses[:3] == [
        backoff.SLICE_REPAIRS.first,
        2 * backoff.SLICE_REPAIRS.first,
        4 * backoff.SLICE_REPAIRS.first,
    ]
    assert pauses[-1] == backoff.SLICE_REPAIRS.longest
    repaired(drift, looked(), now + 3 * backoff.SLICE_REPAIRS.longest)
    repaired(drift, looked(ROLE), now + 3 * backoff.SLICE_REPAIRS.longest)
    assert not drift.resting(
        looked(ROLE), now + 3 * backoff.SLICE_REPAIRS.longest + backoff.SLICE_REPAIRS.first
    )


def test_other_objects_of_the_slice_are_not_held_up_by_a_quarrel_nor_are_new_terms() -> None:
    drift = Drift()
    repaired(drift, looked(), at(0))
    repaired(drift, looked(ROLE), at(1))
    assert drift.resting(looked(ROLE), at(1)) == {("east", "a")}
    quota = Difference("a", "ResourceQuota a/egs", "missing")
    assert drift.resting(looked(ROLE, quota), at(1)) == frozenset()
    assert drift.resting(looked(ROLE, terms=SliceTerms("a", ("a",), gpus=8)), at(1)) == frozenset()


def test_in_a_pause_it_is_shown_and_left_also_when_everything_is_gone() -> None:
    drift, paused = Drift(), SliceTerms("a", ("a",), paused=True)
    assert drift.resting(looked(ROLE, terms=paused), at(0)) == frozenset()  # it was never made
    drift.after(looked(terms=paused), [], [], at(0))
    assert drift.resting(looked(ROLE, terms=paused), at(1)) == {("east", "a")}
    (event,) = drift.after(looked(ROLE, terms=paused), [], [], at(1))
    assert (event.reason, event.slice) == (EventReason.DRIFT_SEEN, "a")
    assert event.message.endswith("; not repaired while it is paused")
    assert drift.after(looked(ROLE, terms=paused), [], [], at(2)) == []


def test_a_flood_is_cut_short_and_what_is_nobodys_is_shown() -> None:
    drift = Drift()
    repaired(drift, looked(), at(0))
    many = [Difference("a", f"Role a/r{i}", "missing") for i in range(MOST_TOLD + 5)]
    told = repaired(drift, looked(*many), at(1))
    assert len(told) == MOST_TOLD + 1
    assert told[-1] == "east: 5 more objects of slice a differ; put right"
    stray = Difference("gone", "Role x/egs", "extra")
    (event,) = drift.after(looked(stray), [], [], at(2))
    assert event.message.startswith("east: Role x/egs of slice gone should not exist; not repaired")


FLEET = Action(Do.ENSURE_FLEET, "east")
TAINT = Difference("", "Node h100-1", "changed", "taint")


def fleet(drift: Drift, minute: int, *found: Difference) -> list[str]:
    """One round in which what bears no slice is mended."""
    events = drift.after(looked(*found), [FLEET], [FLEET], at(minute))
    return [event.message for event in events]


def test_a_node_that_comes_or_leaves_is_no_drift_and_marks_that_it_lost_are() -> None:
    """G5."""
    drift = Drift()
    assert fleet(drift, 0) == []
    assert fleet(drift, 1, TAINT) == []
    assert fleet(drift, 2, TAINT) == []  # the cluster shows it late
    assert fleet(drift, 3) == []
    assert fleet(drift, 4, TAINT) == ["east: Node h100-1 was changed (taint); put right"]
    assert fleet(drift, 5) == []
    assert (
        fleet(
            drift, 6, Difference("", "Node h100-1", "extra", "it has our marks but is in none of our pools")
        )
        == []
    )


def with_nodes(*names: str, differs: bool = False) -> Looked:
    return Looked({"east": (TERMS,)}, {"east": (TAINT,) if differs else ()}, nodes={"east": names})


def test_a_node_that_left_is_forgotten_and_a_new_one_when_it_comes_back() -> None:
    """Also so that clusters that make and drop nodes all day do not fill the memory."""
    drift = Drift()
    for minute, found in enumerate(
        (
            with_nodes("h100-1"),
            with_nodes("h100-1", differs=True),
            with_nodes("h100-1"),
            with_nodes(),
            with_nodes("h100-1", differs=True),
        )
    ):
        assert drift.after(found, [FLEET], [FLEET], at(minute)) == []
    assert drift.after(with_nodes("h100-1"), [], [], at(8)) == []
    (event,) = drift.after(with_nodes("h100-1", differs=True), [FLEET], [FLEET], at(9))
    assert "Node h100-1 was changed" in event.message


def test_a_slice_that_is_no_more_is_forgotten_but_not_while_its_cluster_does_not_answer() -> None:
    drift = Drift()
    repaired(drift, looked(), at(0))
    drift.after(Looked({}, {}), [], [], at(1))
    assert repaired(drift, looked(ROLE), at(2)) != []
    drift = Drift()
    repaired(drift, looked(), at(0))
    drift.after(Looked({"east": ()}, {"east": ()}), [], [], at(1))
    assert repaired(drift, looked(ROLE), at(2)) == []  # it is made for the first time


def test_what_a_cluster_needs_as_a_whole_drifts_like_a_slice() -> None:
    drift, policy = Drift(), Difference("", "MutatingAdmissionPolicy egs", "missing")
    assert fleet(drift, 0, policy) == []
    assert fleet(drift, 1) == []
    assert fleet(drift, 2, policy) == ["east: MutatingAdmissionPolicy egs was missing; put right"]
    assert drift.resting(looked(policy), at(2)) == {("east", "")}


def test_a_paused_cluster_is_left_as_a_whole() -> None:
    drift, policy = Drift(), Difference("", "MutatingAdmissionPolicy egs", "missing")
    found = Looked({"east": ()}, {"east": (policy,)}, paused=frozenset({"east"}))
    (event,) = drift.after(found, [], [], at(0))
    assert event.reason is EventReason.DRIFT_SEEN
