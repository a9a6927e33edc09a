"""The memory of cards by serial number (H14)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from reconciler.health.cards import (
    MOST_CARDS,
    MOST_FAULTS,
    failing_lemons,
    lemon_events,
    lemons,
    with_cards,
    with_lemons,
)
from schemas.documents.cluster import Cleared, Cluster
from schemas.status.gpu_faults import GpuAction
from schemas.status.node_status import AgentReport, GpuReport, NodeMetadata
from tests.support.world import cluster, parsed

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
EAST = parsed("clusters/east.yaml", cluster("east"))
assert isinstance(EAST, Cluster)
SPEC = EAST.spec


def report(
    node: str = "h100-1", *reasons: str, serial: str | None = "1652", again: bool = False
) -> AgentReport:
    action = (GpuAction.REPLACE if again else GpuAction.RESET) if reasons else None
    gpu = GpuReport(
        uuid="GPU-a", index=0, product="H100", memory_mib=1, healthy=not reasons, reasons=reasons, serial=serial,
        action=action, board_part="692-2G520",
    )  # fmt: skip
    return AgentReport(
        metadata=NodeMetadata(name=node), cluster="east", node=node, at=NOW, healthy=not reasons, gpus=(gpu,)
    )


def told(*steps, spec=SPEC):
    """The cards after reports at times; each step is (when, report)."""
    cards: dict = {}
    for at, said in steps:
        cards = with_cards(cards, {("east", said.node): said}, {"east": spec}, at)
    return cards


def outages(count: int, every: timedelta = DAY, node: str = "h100-1"):
    """So many outages of an hour, the last one over."""
    return [
        step
        for i in range(count)
        for step in ((NOW + i * every, report(node, "Xid95")), (NOW + i * every + HOUR, report(node)))
    ]


def test_a_card_that_never_failed_is_not_remembered():
    assert told((NOW, report())) == {}
    assert told((NOW, report("h100-1", "Xid95", serial=None))) == {}


def test_one_outage_counts_once_whatever_it_turns_into():
    cards = told(
        (NOW, report("h100-1", "Xid95")),
        (NOW + HOUR, report("h100-1", "GpuLost", "Xid95")),
        (NOW + 2 * HOUR, report()),
    )
    (fault,) = cards["1652"].faults
    assert (fault.reason, fault.at, cards["1652"].failing) == ("Xid95", NOW, False)


def test_three_outages_within_a_month_make_a_lemon():
    assert not [*lemons(told(*outages(2)), NOW + 3 * DAY)]
    cards = told(*outages(3))
    assert [card.serial for card in lemons(cards, NOW + 4 * DAY)] == ["1652"]
    assert not [*lemons(cards, NOW + 40 * DAY)]
    assert not [*lemons(told(*outages(3, every=20 * DAY)), NOW + 41 * DAY)]


def test_a_fault_that_came_back_after_its_reset_makes_a_lemon():
    cards = told((NOW, report("h100-1", "Xid95", again=True)), (NOW + HOUR, report()))
    assert [card.serial for card in lemons(cards, NOW + DAY)] == ["1652"]


def test_a_lemon_that_fails_again_has_its_node_quarantined_with_what_the_vendor_asks():
    healthy = told(*outages(3))
    assert failing_lemons(healthy, NOW + 3 * DAY) == {}
    cards = told(*outages(3), (NOW + 3 * DAY, report("h100-1", "Xid79")))
    (text,) = failing_lemons(cards, NOW + 3 * DAY).values()
    for word in ("1652", "692-2G520", "Xid79", "RMA", "spec.cleared"):
        assert word in text


def test_the_third_outage_alone_is_no_quarantine():
    cards = told(*outages(2), (NOW + 2 * DAY, report("h100-1", "Xid95")))
    assert failing_lemons(cards, NOW + 2 * DAY) == {}


def test_a_swapped_card_takes_its_history_along():
    cards = told(*outages(3), (NOW + 3 * DAY, report("h100-7")), (NOW + 4 * DAY, report("h100-7", "Xid95")))
    assert list(failing_lemons(cards, NOW + 4 * DAY)) == [("east", "h100-7")]
    assert [fault.node for fault in cards["1652"].faults] == ["h100-1"] * 3 + ["h100-7"]


def test_faults_before_an_admin_cleared_the_node_no_longer_count():
    spec = SPEC.edited(cleared=(Cleared(node="h100-1", at=NOW + 3 * DAY),))
    cards = told(*outages(3))
    cards = with_cards(cards, {("east", "h100-1"): report()}, {"east": spec}, NOW + 4 * DAY)
    assert cards == {}


def test_a_node_with_a_lemon_is_handed_out_last_and_that_is_told_once():
    before, after = told(*outages(2)), told(*outages(3))
    faults = with_lemons({("east", "h100-2"): (NOW,) * MOST_FAULTS}, after, NOW + 3 * DAY)
    assert len(faults["east", "h100-1"]) > len(faults["east", "h100-2"])
    (event,) = lemon_events(before, after, NOW + 3 * DAY)
    assert (event.reason, event.node) == ("LemonFound", "h100-1")
    assert lemon_events(after, after, NOW + 3 * DAY) == ()


def test_the_memory_is_bounded():
    cards = told(*outages(MOST_FAULTS + 5))
    assert len(cards["1652"].faults) == MOST_FAULTS
    one = cards["1652"]
    many = {f"{i:05}": one.edited(serial=f"{i:05}") for i in range(MOST_CARDS)}
    later = with_cards(
        many, {("east", "h100-1"): report("h100-1", "Xid95", serial="new")}, {"east": SPEC}, NOW + 400 * DAY
    )
    assert len(later) == MOST_CARDS
    assert "new" in later


def test_nothing_new_is_the_same_object():
    """Equal facts cost no commit."""
    cards = told(*outages(1))
    assert with_cards(cards, {("east", "h100-1"): report()}, {"east": SPEC}, NOW + DAY) is cards


@pytest.mark.parametrize("healthy", [True, False])
def test_reports_without_serials_change_nothing(healthy):
    said = report("h100-1", *(() if healthy else ("Xid95",)), serial=None)
    assert with_cards({}, {("east", "h100-1"): said}, {"east": SPEC}, NOW) == {}
