"""What a node did: its leases so far and to come, with the checks of each. Pure.

Held by tests/portal/pages/test_admin_pages.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from portal.views.view import View
from reconciler.model.facts import NodeKey
from schemas.documents.maintenance import Maintenance
from schemas.status.cards import Card
from schemas.status.gpr_status import HOLDING, Check, GPRStatus
from schemas.status.remedies import Remedy


@dataclass(frozen=True, slots=True)
class PastLease:
    """A request that had the node, or has it."""

    request: str
    phase: str
    start: datetime | None
    end: datetime | None
    """When the node was given back; of a running one its strict end."""
    is_over: bool
    was_replaced: bool
    """The node was taken out while the request ran."""
    checks: tuple[Check, ...]
    """Of this node."""


def leases(view: View, node: NodeKey) -> list[PastLease]:
    """Of requests whose files are still there, the newest first."""
    found = list(_leases(view, node))
    never = datetime.min.replace(tzinfo=view.facts.at.tzinfo)
    return sorted(found, key=lambda one: (one.start or never, one.request), reverse=True)


def _leases(view: View, node: NodeKey) -> Iterator[PastLease]:
    cluster, name = node
    for key, status in view.facts.requests.items():
        held = status.assignment
        checks = tuple(check for check in status.checks if check.node == name)
        is_its = held is not None and held.cluster == cluster and name in held.nodes
        was_replaced = name in status.replaced_nodes and held is not None and held.cluster == cluster
        if is_its or was_replaced:
            yield PastLease(
                key,
                str(status.phase),
                status.start_time or status.held_from,
                _end(status),
                status.phase not in HOLDING,
                was_replaced,
                checks,
            )


def _end(status: GPRStatus) -> datetime | None:
    if status.released_at is not None:
        return status.released_at
    return status.end_time if status.eviction is None else status.eviction.at


def windows_of(view: View, node: NodeKey) -> list[Maintenance]:
    """Windows of its cluster that name it, its pool, or all of the cluster."""
    spec = view.wanted.clusters[node[0]]
    pools = {
        key[1] for key, found in view.wanted.pools.items() if key[0] == node[0] and node[1] in found.nodes
    }
    return [
        window
        for window in spec.maintenance
        if not (window.pools or window.nodes) or node[1] in window.nodes or pools & set(window.pools)
    ]


def cards_of(view: View, node: NodeKey) -> list[Card]:
    """Cards that failed and were in the node at that time, or are now; by serial number."""
    return [
        card
        for _, card in sorted(view.facts.cards.items())
        if (card.cluster, card.node) == node
        or any((fault.cluster, fault.node) == node for fault in card.faults)
    ]


def remedies_of(view: View, node: NodeKey) -> tuple[Remedy, ...]:
    """Resets and reboots of the last day, the newest first."""
    return tuple(reversed(view.facts.remedies.get(node, ())))
