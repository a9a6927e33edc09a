"""Which cards failed, by serial number: the memory of a GPU across nodes and years. Pure.

A node's history ends when its card is taken out; a card's history goes where the card goes. A card that failed three
times within 30 days, or whose fault came back after a reset, is a lemon: its node is handed out last, and when it fails
once more the node is quarantined until an admin clears it.

Held by tests/reconciler/health/test_cards.py: one outage counts once, and a swapped card takes its history along.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta

from reconciler.model.events import Event, EventReason
from reconciler.model.facts import NodeKey
from schemas.documents.cluster import ClusterSpec
from schemas.status.cards import Card, CardFault
from schemas.status.gpu_faults import came_back
from schemas.status.node_status import AgentReport, GpuReport

LEMON_WITHIN = timedelta(days=30)
LEMON_FAULTS = 3
MOST_FAULTS, MOST_CARDS = 20, 5_000
"""Kept: so many outages of one card, and so many cards; those that failed last stay."""

LAST = 1_000
"""Counts as so many faults where nodes are chosen: more than any node without a lemon has."""

Cards = Mapping[str, Card]
"""By serial number."""


def with_cards(
    before: Cards, reports: Mapping[NodeKey, AgentReport], clusters: Mapping[str, ClusterSpec], now: datetime
) -> Cards:
    """The cards after these reports; the same object if nothing changed. O(GPUs reported)."""
    changed: dict[str, Card] = {}
    for key, report in reports.items():
        if report.healthy and not before:
            continue
        for gpu in report.gpus:
            if gpu.serial is None:
                continue
            old = before.get(gpu.serial)
            new = _card_after(old, gpu, key, _cleared(clusters, key), now)
            if new is not None and new != old:
                changed[gpu.serial] = new
    if not changed:
        return before
    cards = {serial: card for serial, card in {**before, **changed}.items() if card.faults}
    if len(cards) > MOST_CARDS:
        last = sorted(cards.values(), key=lambda card: (card.faults[-1].at, card.serial))
        cards = {card.serial: card for card in last[-MOST_CARDS:]}
    return cards


def lemons(cards: Cards, now: datetime) -> Iterator[Card]:
    """Cards that failed too often before their present outage."""
    return (card for card in cards.values() if _is_lemon(card, now))


def with_lemons(
    faults: Mapping[NodeKey, tuple[datetime, ...]], cards: Cards, now: datetime
) -> Mapping[NodeKey, tuple[datetime, ...]]:
    """The faults by which nodes are chosen: a node with a lemon comes after every node without one."""
    found = {(card.cluster, card.node): (now,) * LAST for card in lemons(cards, now)}
    return {**faults, **found} if found else faults


def lemon_events(before: Cards, after: Cards, now: datetime) -> tuple[Event, ...]:
    """An event for each card that became a lemon."""
    if before is after:
        return ()
    known = {card.serial for card in lemons(before, now)}
    return tuple(
        Event(
            now,
            EventReason.LEMON_FOUND,
            f"card {card.serial} of {card.cluster}/{card.node} failed {len(card.faults)} times, last "
            f"{_told(card.faults[-1:])}; its node is handed out last",
            "",
            card.cluster,
            card.node,
        )
        for card in lemons(after, now)
        if card.serial not in known
    )


def failing_lemons(cards: Cards, now: datetime) -> dict[NodeKey, str]:
    """Why a node must be quarantined: one of its cards is a lemon and fails again."""
    return {(card.cluster, card.node): _advice(card) for card in lemons(cards, now) if card.failing}


def _card_after(
    old: Card | None, gpu: GpuReport, key: NodeKey, cleared: datetime | None, now: datetime
) -> Card | None:
    if old is None and gpu.healthy:
        return None
    card = old or Card(
        serial=gpu.serial or "", product=gpu.product, board_part=gpu.board_part, cluster=key[0], node=key[1]
    )
    faults = card.faults
    if cleared is not None and cleared <= now:  # an admin says that what was wrong before is repaired
        faults = tuple(f for f in faults if (f.cluster, f.node) != key or f.at > cleared)
    if not gpu.healthy and not card.failing:
        faults = (*faults, _fault(gpu, key, now))[-MOST_FAULTS:]
    return card.edited(cluster=key[0], node=key[1], failing=not gpu.healthy, faults=faults)


def _fault(gpu: GpuReport, key: NodeKey, now: datetime) -> CardFault:
    reason = gpu.reasons[0] if gpu.reasons else "Unhealthy"
    return CardFault(
        reason=reason, at=now, cluster=key[0], node=key[1], again=came_back(gpu.reasons, gpu.action)
    )


def _cleared(clusters: Mapping[str, ClusterSpec], key: NodeKey) -> datetime | None:
    spec = clusters.get(key[0])
    return None if spec is None else max((c.at for c in spec.cleared if c.node == key[1]), default=None)


def _is_lemon(card: Card, now: datetime) -> bool:
    earlier = card.faults[:-1] if card.failing else card.faults
    recent = [fault for fault in earlier if now - fault.at < LEMON_WITHIN]
    return len(recent) >= LEMON_FAULTS or any(fault.again for fault in recent)


def _advice(card: Card) -> str:
    part = "" if card.board_part is None else f", part {card.board_part}"
    return (
        f"card {card.serial} ({card.product}{part}) fails again: {_told(card.faults)}; ask the vendor to replace it "
        "(RMA), then list the node under spec.cleared"
    )


def _told(faults: Iterable[CardFault]) -> str:
    return ", ".join(f"{fault.reason} on {fault.node} on {fault.at:%Y-%m-%d}" for fault in [*faults][-4:])
