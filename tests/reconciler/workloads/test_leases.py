"""A GPU's values belong to a caller for the time of their slice's lease, and not a second longer (A5)."""

from __future__ import annotations

from datetime import timedelta

from reconciler.telemetry.leased_time import Interval, visible_latest
from reconciler.telemetry.telemetry_port import Latest
from reconciler.workloads.leases import holding_now, leased_to
from schemas.status.gpr_status import Eviction, Phase
from tests.reconciler.workloads.gpus import HOUR, NOW, check, sample, status

NODE = ("east", "h100-1")
SECOND = timedelta(seconds=1)


def test_a_lease_counts_from_its_start_to_its_strict_end() -> None:
    one = status(NOW - HOUR, NOW + HOUR, "h100-1", held_from=NOW - 2 * HOUR)
    assert leased_to([one]) == {NODE: (Interval(NOW - HOUR, NOW + HOUR),)}
    for at, is_seen in [
        (NOW - HOUR - SECOND, False),
        (NOW - HOUR, True),
        (NOW + HOUR - SECOND, True),
        (NOW + HOUR, False),
    ]:
        latest = Latest((sample("h100-1", 0, at=at, use=50),))
        assert bool(visible_latest(latest, leased_to([one])).samples) is is_seen, at


def test_nodes_in_preparation_or_being_cleaned_are_no_lease() -> None:
    before = status(NOW, NOW + HOUR, "h100-1", phase=Phase.PROVISIONING, start_time=None)
    assert leased_to([before]) == {}
    after = status(NOW - 2 * HOUR, NOW - HOUR, "h100-1", phase=Phase.RELEASING)
    assert holding_now({"vision/train": after}, NOW) == {}
    assert leased_to([after]) == {NODE: (Interval(NOW - 2 * HOUR, NOW - HOUR),)}


def test_a_node_that_replaced_another_counts_from_its_own_checks() -> None:
    """Before them it may have run the work of others."""
    one = status(
        NOW - 2 * HOUR,
        NOW + HOUR,
        *("h100-1", "h100-3", "h100-4"),
        replaced_nodes=("h100-2",),
        checks=(check("h100-1", NOW - 2 * HOUR - SECOND), check("h100-3", NOW - HOUR)),
    )
    found = leased_to([one])
    assert found[NODE] == (Interval(NOW - 2 * HOUR, NOW + HOUR),)
    assert found["east", "h100-3"] == (Interval(NOW - HOUR, NOW + HOUR),)
    assert ("east", "h100-4") not in found, "nothing says since when it is theirs"
    assert ("east", "h100-2") not in found


def test_an_eviction_ends_the_lease_before_its_strict_end() -> None:
    one = status(NOW - HOUR, NOW + HOUR, "h100-1", eviction=Eviction(reason="Preempted", at=NOW))
    assert leased_to([one]) == {NODE: (Interval(NOW - HOUR, NOW),)}
    assert holding_now({"vision/train": one}, NOW) == {}


def test_leases_in_a_row_leave_no_gap() -> None:
    one, two = status(NOW - 2 * HOUR, NOW - HOUR, "h100-1"), status(NOW - HOUR, NOW, "h100-1")
    assert leased_to([two, one]) == {NODE: (Interval(NOW - 2 * HOUR, NOW),)}


def test_the_request_that_runs_on_a_node_is_known() -> None:
    held = holding_now({"vision/train": status(NOW - HOUR, NOW + HOUR, "h100-1")}, NOW)
    assert held[NODE].slice == "vision"
    assert held[NODE].request == "vision/train"
