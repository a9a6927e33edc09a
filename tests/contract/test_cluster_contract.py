"""What every cluster driver must do, whatever is behind it; a driver joins in `tests.reconciler.clusters.rig`."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from reconciler.model.cluster_port import (
    Busy,
    ClusterView,
    Done,
    LeaseRef,
    QueueTerms,
    QueueView,
    Refused,
    SliceTerms,
    Stamp,
    WorkloadView,
)
from reconciler.model.service_port import ExportsView, Peer
from schemas.errors import Fault
from schemas.reading.units import format_instant
from tests.reconciler.clusters.rig import FIRST, NOW, Rig

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
SECOND_TERM = Stamp(2, 1)
VISION = LeaseRef("gpr-00000001-aaaa", "vision/train", "vision", NOW + HOUR)
SPEECH = LeaseRef("gpr-00000002-bbbb", "speech/tune", "speech", NOW + HOUR)
A = "h100-1"


def workload(rig: Rig, name: str, now: datetime) -> WorkloadView:
    """The workload of that name as it is."""
    return workloads(rig.driver.observe(now))[name]


def workloads(view: ClusterView) -> dict[str, WorkloadView]:
    """By the name that a person gave; a StatefulSet's only pod bears it with a number."""
    return {w.name.removesuffix("-0"): w for w in view.workloads}


def finish(call, now: datetime):
    """Call again whenever Busy says so; the last answer and its instant."""
    for _ in range(10):
        answer = call(now)
        if not isinstance(answer, Busy):
            return answer, now
        assert answer.until > now, "Busy names an instant that is still to come"
        now = answer.until
    raise AssertionError("still Busy after ten calls")


def check(rig: Rig, node: str, stage, lease: LeaseRef, now: datetime):
    """The results of a stage, waited for."""
    return finish(lambda t: rig.driver.check(node, stage, lease, FIRST, t), now)


# --- what is ---


def test_the_fleet_is_seen_with_its_gpus(rig):
    """G1: nodes, devices and what they belong to."""
    view = rig.driver.observe(NOW)
    assert view.at == NOW
    assert list(view.nodes) == ["h100-1", "h100-2", "h100-3", "small"]
    node = view.nodes[A]
    assert (node.pool, node.ready, node.lease, node.draining) == ("h100", True, None, False)
    assert [(g.index, g.product, g.memory_mib) for g in node.gpus] == [
        (i, "H100-80GB", 81920) for i in range(8)
    ]
    assert len({g.uuid for n in view.nodes.values() for g in n.gpus}) == 25


def test_a_silent_node_is_not_ready(rig):
    """G4: what the cluster says of a node follows the node."""
    rig.kill(A, NOW + HOUR)
    assert rig.driver.observe(NOW).nodes[A].ready
    assert not rig.driver.observe(NOW + HOUR).nodes[A].ready


def test_slices_are_seen_with_exactly_their_namespaces(rig):
    """C2: namespaces come, and go again."""
    rig.driver.ensure_slice(SliceTerms("vision", ("vision-train", "vision-dev")), FIRST, NOW)
    assert rig.driver.observe(NOW).slices["vision"] == ("vision-dev", "vision-train")
    rig.driver.ensure_slice(SliceTerms("vision", ("vision-dev",)), FIRST, NOW)
    assert rig.driver.observe(NOW).slices["vision"] == ("vision-dev",)


def test_a_namespace_of_another_slice_is_not_taken_over(rig):
    """C1: a slice is a boundary."""
    answer = rig.driver.ensure_slice(SliceTerms("speech", ("vision-train",)), SECOND_TERM, NOW)
    assert isinstance(answer, Refused)
    assert answer.reason == "NamespaceTaken"


def test_a_slice_goes_only_when_it_holds_no_node(rig):
    """C2: safe delete."""
    rig.driver.add(A, VISION, FIRST, NOW)
    refused = rig.driver.remove_slice("vision", FIRST, NOW)
    assert isinstance(refused, Refused)
    assert refused.reason == "SliceHoldsNodes"
    rig.driver.remove(A, VISION.uid, FIRST, NOW)
    answer, at = finish(lambda t: rig.driver.remove_slice("vision", FIRST, t), NOW)
    assert answer == Done()
    assert list(rig.driver.observe(at).slices) == ["speech"]


def test_a_queue_is_as_wanted_or_the_cluster_says_why_there_is_none(rig):
    """A9: and the slice is whole either way; the control plane of the contract has no Kueue."""
    wanted = SliceTerms("vision", ("vision-train",), queue=QueueTerms(8, "Hold"))
    assert rig.driver.ensure_slice(wanted, FIRST, NOW) == Done()
    assert rig.driver.differences((wanted,), NOW) == ()
    found = rig.driver.observe(NOW).queues
    assert list(found) == ["vision"]
    assert found["vision"].problem or found["vision"] == QueueView(8, "Hold")
    none = replace(wanted, queue=None)
    assert rig.driver.ensure_slice(none, FIRST, NOW) == Done()
    assert rig.driver.differences((none,), NOW) == ()
    assert rig.driver.observe(NOW).queues == {}


def test_services_are_exported_or_the_cluster_says_why_not(rig):
    """C7: and the slice is whole either way; the control plane of the contract has no such API."""
    wanted = SliceTerms("vision", ("vision-train",), peers=(Peer("west", "west", ("10.8.0.0/14",)),))
    assert rig.driver.ensure_slice(wanted, FIRST, NOW) == Done()
    assert rig.driver.differences((wanted,), NOW) == ()
    found = rig.driver.observe(NOW).exports
    assert list(found) == ["vision"]
    assert found["vision"].problem or found["vision"] == ExportsView(by_name=True)
    none = replace(wanted, peers=None)
    # Without exports there were no ways for them either.
    left = set() if found["vision"].problem else {"extra"}
    assert {d.found for d in rig.driver.differences((none,), NOW)} == left
    assert rig.driver.ensure_slice(none, FIRST, NOW) == Done()
    assert rig.driver.differences((none,), NOW) == ()
    assert rig.driver.observe(NOW).exports == {}


# --- handing over and taking back ---


def test_a_node_serves_a_lease_until_it_is_removed(rig):
    """F2, F9: entry and exit of a node."""
    assert rig.driver.add(A, VISION, FIRST, NOW) == Done()
    node = rig.driver.observe(NOW).nodes[A]
    assert (node.lease, node.stamp) == (VISION, FIRST)
    assert rig.driver.remove(A, VISION.uid, FIRST, NOW) == Done()
    assert rig.driver.observe(NOW).nodes[A].lease is None


def test_a_node_s_mark_has_what_a_lost_status_branch_cannot_tell(rig):
    """Whose the lease is, since when, until when and how it is cut; an older mark without a start is read too."""
    lease = replace(VISION, start=NOW - HOUR, mig="")
    assert rig.driver.add(A, VISION, FIRST, NOW) == Done()
    assert rig.driver.observe(NOW).nodes[A].lease == VISION
    assert rig.driver.add(A, lease, FIRST, NOW) == Done()
    assert rig.driver.observe(NOW).nodes[A].lease == lease


def test_the_newest_stamp_is_seen_whatever_bears_it(rig):
    """A controller whose branch was lost takes its term above it."""
    assert rig.driver.observe(NOW).newest == FIRST
    rig.driver.ensure_slice(SliceTerms("speech", ("speech-dev",)), Stamp(3, 1), NOW)
    assert rig.driver.observe(NOW).newest == Stamp(3, 1)
    rig.driver.add(A, VISION, Stamp(4, 2), NOW)
    assert rig.driver.observe(NOW).newest == Stamp(4, 2)


def test_a_held_node_is_given_to_nobody_else(rig):
    """C6: one node, one slice."""
    rig.driver.add(A, VISION, FIRST, NOW)
    answer = rig.driver.add(A, SPEECH, SECOND_TERM, NOW)
    assert isinstance(answer, Refused)
    assert answer.reason == "NodeHeld"
    assert rig.driver.observe(NOW).nodes[A].lease == VISION


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        pytest.param("nowhere", "NodeGone", id="a node that the cluster does not know"),
        pytest.param("h100-2", "NodeNotReady", id="a node that is silent"),
    ],
)
def test_a_node_that_cannot_serve_is_refused_with_the_reason(rig, node, reason):
    rig.kill("h100-2", NOW)
    answer = rig.driver.add(node, VISION, FIRST, NOW)
    assert isinstance(answer, Refused)
    assert answer.reason == reason


def test_every_write_may_be_repeated(rig):
    """A controller that crashed repeats what it may have done."""
    d = rig.driver
    writes = [
        lambda: d.ensure_slice(SliceTerms("vision", ("vision-train",)), FIRST, NOW),
        lambda: d.add(A, VISION, FIRST, NOW),
        lambda: d.isolate(A, "Xid79", FIRST, NOW),
        lambda: d.restore(A, FIRST, NOW),
        lambda: d.evict(A, VISION.uid, NOW, FIRST, NOW),
        lambda: d.remove(A, VISION.uid, FIRST, NOW),
        lambda: finish(lambda t: d.remove_slice("vision", FIRST, t), NOW)[0],
    ]
    for write in writes:
        assert write() == Done()
        once = d.observe(NOW)
        assert write() == Done()
        assert d.observe(NOW) == once


def test_a_lease_may_get_another_end(rig):
    """D10: an extension is written on the node too."""
    later = replace(VISION, end=NOW + 2 * HOUR)
    rig.driver.add(A, VISION, FIRST, NOW)
    assert rig.driver.add(A, later, FIRST, NOW) == Done()
    assert rig.driver.observe(NOW).nodes[A].lease == later


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(lambda d, s: d.add(A, VISION, s, NOW), id="add"),
        pytest.param(lambda d, s: d.show_end(VISION, s, NOW), id="show_end"),
        pytest.param(lambda d, s: d.evict(A, VISION.uid, NOW, s, NOW), id="evict"),
        pytest.param(lambda d, s: d.remove(A, VISION.uid, s, NOW), id="remove"),
        pytest.param(lambda d, s: d.isolate(A, "Xid79", s, NOW), id="isolate"),
        pytest.param(lambda d, s: d.restore(A, s, NOW), id="restore"),
        pytest.param(
            lambda d, s: d.ensure_slice(SliceTerms("vision", ("other",)), s, NOW), id="ensure_slice"
        ),
        pytest.param(lambda d, s: d.remove_slice("speech", s, NOW), id="remove_slice"),
    ],
)
def test_an_older_controller_changes_nothing(rig, write):
    """A paused leader wakes up after another one acted."""
    rig.driver.add(A, VISION, SECOND_TERM, NOW)
    rig.driver.ensure_slice(SliceTerms("vision", ("vision-train",)), SECOND_TERM, NOW)
    rig.driver.ensure_slice(SliceTerms("speech", ("speech-dev",)), SECOND_TERM, NOW)
    before = rig.driver.observe(NOW)
    answer = write(rig.driver, Stamp(1, 99))
    assert isinstance(answer, Refused)
    assert answer.reason == "StaleStamp"
    assert rig.driver.observe(NOW) == before


def test_a_write_with_nothing_to_do_fences_older_ones_too(rig):
    """The new leader found the node free; the old one must not hand it over afterwards."""
    assert rig.driver.remove(A, VISION.uid, SECOND_TERM, NOW) == Done()
    assert isinstance(rig.driver.add(A, VISION, FIRST, NOW), Refused)


def test_removing_an_earlier_lease_leaves_the_present_one_alone(rig):
    rig.driver.add(A, SPEECH, FIRST, NOW)
    assert rig.driver.remove(A, VISION.uid, FIRST, NOW) == Done()
    assert rig.driver.observe(NOW).nodes[A].lease == SPEECH


def test_a_removed_slice_is_not_brought_back_by_an_older_controller(rig):
    finish(lambda t: rig.driver.remove_slice("vision", SECOND_TERM, t), NOW)
    assert isinstance(rig.driver.ensure_slice(SliceTerms("vision", ("vision-train",)), FIRST, NOW), Refused)
    assert "vision" not in rig.driver.observe(NOW).slices


# --- workloads ---


def test_gpu_workloads_wait_for_nodes_and_cpu_workloads_do_not(rig):
    """C3, C11: a new slice has no GPU, and its CPU workloads run all the same."""
    rig.submit("vision-train", "train", 8, NOW)
    rig.submit("vision-train", "web", 0, NOW)
    assert workload(rig, "train", NOW).phase == "Pending"
    assert workload(rig, "web", NOW).phase == "Running"
    rig.driver.add(A, VISION, FIRST, NOW)
    assert (workload(rig, "train", NOW).phase, workload(rig, "train", NOW).node) == ("Running", A)


def test_a_node_of_another_slice_is_of_no_use(rig):
    """C6."""
    rig.submit("vision-train", "train", 8, NOW)
    rig.driver.add(A, SPEECH, FIRST, NOW)
    assert workload(rig, "train", NOW).phase == "Pending"


def test_removal_sends_gpu_workloads_back_to_pending_and_leaves_cpu_ones(rig):
    """D12: evicted, restartable, and nothing else is touched."""
    rig.submit("vision-train", "train", 8, NOW)
    rig.submit("vision-train", "web", 0, NOW)
    rig.driver.add(A, VISION, FIRST, NOW)
    busy = rig.driver.remove(A, VISION.uid, FIRST, NOW)
    assert isinstance(busy, Busy)
    assert busy.until <= NOW + 5 * MINUTE
    assert rig.driver.observe(NOW).nodes[A].draining
    answer, at = finish(lambda t: rig.driver.remove(A, VISION.uid, FIRST, t), NOW)
    assert answer == Done()
    view = rig.driver.observe(at)
    assert (view.nodes[A].lease, view.nodes[A].draining) == (None, False)
    assert {name: w.phase for name, w in workloads(view).items()} == {"train": "Pending", "web": "Running"}


def test_eviction_has_gpus_free_at_the_instant_given(rig):
    """D7: at the strict end no workload of the slice uses a GPU, and the lease is still there to be ended."""
    end = NOW + HOUR
    rig.submit("vision-train", "train", 8, NOW)
    rig.driver.add(A, VISION, FIRST, NOW)
    assert rig.driver.evict(A, VISION.uid, end, FIRST, end - 2 * MINUTE) == Done()
    assert workload(rig, "train", end).phase == "Pending"
    assert rig.driver.observe(end).nodes[A].lease == VISION
    assert rig.driver.remove(A, VISION.uid, FIRST, end) == Done()


def test_a_gpu_workload_shows_the_end_of_its_lease_and_another_when_that_moves(rig):
    """J4: nothing is stopped by it; a workload without GPUs, and one of another slice, are left alone."""
    rig.submit("vision-train", "train", 8, NOW)
    rig.submit("vision-train", "cpu", 0, NOW)
    rig.submit("speech-dev", "other", 8, NOW)
    rig.driver.add(A, VISION, FIRST, NOW)
    rig.driver.add("h100-2", SPEECH, FIRST, NOW)
    for end in (NOW + HOUR, NOW + 2 * HOUR, NOW + MINUTE):
        assert rig.driver.show_end(replace(VISION, end=end), FIRST, NOW) == Done()
        assert workload(rig, "train", NOW).ends_at == format_instant(end)
    assert workload(rig, "train", NOW).phase == "Running"
    assert workload(rig, "cpu", NOW).ends_at is None
    assert workload(rig, "other", NOW).ends_at is None


def test_nothing_new_lands_on_a_node_that_is_being_evicted(rig):
    rig.driver.add(A, VISION, FIRST, NOW)
    rig.driver.evict(A, VISION.uid, NOW + HOUR, FIRST, NOW)
    rig.submit("vision-train", "late", 1, NOW)
    assert workload(rig, "late", NOW).phase == "Pending"


def test_adding_the_same_lease_again_calls_an_eviction_off(rig):
    """D10: the end moved later after the notice."""
    rig.submit("vision-train", "train", 8, NOW)
    rig.driver.add(A, VISION, FIRST, NOW)
    rig.driver.evict(A, VISION.uid, NOW + MINUTE, FIRST, NOW)
    rig.driver.add(A, replace(VISION, end=NOW + 2 * HOUR), FIRST, NOW)
    assert workload(rig, "train", NOW + HOUR).phase == "Running"


def test_a_hanging_drain_is_busy_until_it_is_over(rig):
    rig.submit("vision-train", "train", 8, NOW)
    rig.driver.add(A, VISION, FIRST, NOW)
    rig.hang(A, NOW, NOW + HOUR)
    assert isinstance(rig.driver.remove(A, VISION.uid, FIRST, NOW), Busy)
    assert isinstance(rig.driver.remove(A, VISION.uid, FIRST, NOW + 59 * MINUTE), Busy)
    assert rig.driver.remove(A, VISION.uid, FIRST, NOW + HOUR) == Done()


def test_isolation_keeps_what_runs_and_takes_nothing_new(rig):
    """H14: a bad node gets no new work."""
    rig.submit("vision-train", "train", 4, NOW)
    rig.driver.add(A, VISION, FIRST, NOW)
    rig.driver.isolate(A, "Xid79", FIRST, NOW)
    rig.submit("vision-train", "more", 4, NOW)
    assert rig.driver.observe(NOW).nodes[A].isolated
    assert workload(rig, "train", NOW).phase == "Running"
    assert workload(rig, "more", NOW).phase == "Pending"
    rig.driver.restore(A, FIRST, NOW)
    assert workload(rig, "more", NOW).phase == "Running"


def test_restore_never_undoes_what_a_person_cordoned(rig):
    rig.cordon(A, NOW)
    rig.driver.isolate(A, "Xid79", FIRST, NOW)
    rig.driver.restore(A, FIRST, NOW)
    node = rig.driver.observe(NOW).nodes[A]
    assert (node.cordoned, node.isolated) == (True, False)


# --- upgrades of the GPU driver ---


def keeps_driver(rig: Rig, now: datetime) -> bool:
    """Whether no upgrade may begin on the node."""
    return rig.driver.observe(now).nodes[A].keeps_driver


def test_no_upgrade_of_the_driver_begins_from_before_a_lease_until_its_node_is_clean(rig):
    """H14: driver upgrades happen only between leases."""
    assert not keeps_driver(rig, NOW)
    rig.driver.check(A, "pre", VISION, FIRST, NOW)
    assert keeps_driver(rig, NOW)
    _, at = check(rig, A, "pre", VISION, NOW)
    assert rig.driver.add(A, VISION, FIRST, at) == Done()
    assert keeps_driver(rig, at)
    rig.driver.evict(A, VISION.uid, at + MINUTE, FIRST, at)
    assert keeps_driver(rig, at + MINUTE)
    _, at = finish(lambda t: rig.driver.remove(A, VISION.uid, FIRST, t), at + MINUTE)
    assert keeps_driver(rig, at)
    rig.driver.check(A, "post", VISION, FIRST, at)
    assert keeps_driver(rig, at)
    _, at = check(rig, A, "post", VISION, at)
    assert not keeps_driver(rig, at)


def test_a_node_whose_lease_never_began_is_open_to_upgrades_again(rig):
    _, at = check(rig, A, "pre", VISION, NOW)
    assert keeps_driver(rig, at)
    for _ in range(2):
        at += HOUR
        rig.driver.differences((), at)
        rig.driver.ensure_fleet(FIRST, at)
    assert not keeps_driver(rig, at)


def test_a_replaced_node_is_open_to_upgrades_although_it_has_no_checks(rig):
    rig.driver.add(A, VISION, FIRST, NOW)
    _, at = finish(lambda t: rig.driver.remove(A, VISION.uid, FIRST, t), NOW)
    assert keeps_driver(rig, at)
    for _ in range(2):
        at += 5 * MINUTE
        rig.driver.differences((), at)
        rig.driver.ensure_fleet(FIRST, at)
    assert not keeps_driver(rig, at)


def test_a_node_whose_checks_failed_is_open_to_upgrades(rig):
    rig.kill(A, NOW)
    results, at = check(rig, A, "pre", VISION, NOW)
    assert not all(result.passed for result in results)
    assert not keeps_driver(rig, at)


@pytest.mark.parametrize(
    ("state", "runs"),
    [
        ("upgrade-required", False),
        ("cordon-required", True),
        ("wait-for-jobs-required", True),
        ("pod-deletion-required", True),
        ("drain-required", True),
        ("pod-restart-required", True),
        ("validation-required", True),
        ("uncordon-required", True),
        ("upgrade-failed", False),
    ],
)
def test_an_upgrade_of_the_driver_is_seen_and_checks_wait_for_it(rig, state, runs):
    """H14: what an upgrade breaks meanwhile is no failed check."""
    rig.upgrade(A, state, NOW)
    node = rig.driver.observe(NOW).nodes[A]
    assert (node.upgrade, node.upgrade_runs, node.usable) == (state, runs, not runs)
    answer = rig.driver.check(A, "pre", VISION, FIRST, NOW)
    assert isinstance(answer, Busy)
    assert (state in answer.message) == runs
    assert keeps_driver(rig, NOW) == (not runs)


# --- trouble ---


def test_an_api_that_does_not_answer_is_a_fault_with_its_reason(rig):
    rig.cut(NOW, NOW + MINUTE, acted=False)
    for call in (
        lambda: rig.driver.observe(NOW),
        lambda: rig.driver.add(A, VISION, FIRST, NOW),
        lambda: rig.driver.check(A, "pre", VISION, FIRST, NOW),
    ):
        with pytest.raises(Fault) as caught:
            call()
        assert caught.value.reason == "ClusterUnreachable"
    assert rig.driver.observe(NOW + MINUTE).nodes[A].lease is None


def test_a_lost_answer_is_settled_by_asking_again(rig):
    """It was done although nobody heard of it."""
    rig.cut(NOW, NOW + MINUTE, acted=True)
    with pytest.raises(Fault):
        rig.driver.add(A, VISION, FIRST, NOW)
    assert rig.driver.observe(NOW + MINUTE).nodes[A].lease == VISION
    assert rig.driver.add(A, VISION, FIRST, NOW + MINUTE) == Done()


def test_everything_survives_a_restart(rig):
    rig.submit("vision-train", "train", 8, NOW)
    rig.driver.add(A, VISION, FIRST, NOW)
    rig.driver.isolate("h100-2", "Xid79", FIRST, NOW)
    results, at = check(rig, "h100-3", "pre", SPEECH, NOW)
    before = rig.driver.observe(at)
    rig.restart()
    assert rig.driver.observe(at) == before
    assert rig.driver.check("h100-3", "pre", SPEECH, FIRST, at) == results


def test_two_controllers_see_one_cluster(rig):
    """What the one writes the other reads at its next call."""
    other = rig.driver
    rig.restart()
    rig.driver.add(A, VISION, SECOND_TERM, NOW)
    assert other.observe(NOW).nodes[A].lease == VISION
    assert isinstance(other.remove(A, VISION.uid, FIRST, NOW), Refused)
