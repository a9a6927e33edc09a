"""Laws on what clusters show, against what was committed at that instant (docs/explain/architecture.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime, timedelta

from tests.simulation.auditor.commits import HOLDS
from tests.simulation.auditor.reading import Page, Status, end_of, start_of

AGREE = timedelta(minutes=1)
"""docs/guides/high-availability.md: clocks may differ by this much, and a hand-over this late counts as on time."""


@dataclass(frozen=True, slots=True)
class Lease:
    """What a node says of the lease that it serves."""

    uid: str
    request: str
    slice: str
    start: datetime | None
    end: datetime


@dataclass(frozen=True, slots=True)
class Shown:
    """One cluster at one instant."""

    cluster: str
    at: datetime
    leases: Mapping[str, Lease]  # by node
    stamps: Mapping[str, tuple[int, int]]  # by node
    checked: Mapping[str, str]  # for which lease, by id, a node last passed its checks


def came(before: Shown | None, after: Shown) -> Iterator[tuple[str, Lease]]:
    """Nodes that came to a lease."""
    old = {} if before is None else before.leases
    for node, lease in after.leases.items():
        if node not in old or old[node].uid != lease.uid:
            yield node, lease


def left(before: Shown | None, after: Shown) -> Iterator[tuple[str, Lease]]:
    """Nodes that left a lease."""
    for node, lease in () if before is None else before.leases.items():
        if node not in after.leases or after.leases[node].uid != lease.uid:
            yield node, lease


def changed_hands(before: Shown | None, after: Shown) -> Iterator[str]:
    """A node is given back before it is given on."""
    for node, lease in came(before, after):
        if before is not None and node in before.leases:
            yield f"{node} went from {before.leases[node].request} straight to {lease.request}"


def unchecked(before: Shown | None, after: Shown) -> Iterator[str]:
    """A node comes to a lease only after it passed the checks for it."""
    for node, lease in came(before, after):
        if after.checked.get(node) != lease.uid:
            yield f"{node} came to {lease.request} without its checks"


def stamps_grow(before: Shown | None, after: Shown) -> Iterator[str]:
    """A node obeys no controller older than the last one that it obeyed."""
    for node, stamp in after.stamps.items():
        old = stamp if before is None else before.stamps.get(node, stamp)
        if stamp < old:
            yield f"{node} obeyed {stamp} after {old}"


def unjustified(page: Page, before: Shown | None, after: Shown, tolerance: timedelta) -> Iterator[str]:
    """What is done to a node is committed by then."""
    by_uid = {status["uid"]: (key, status) for key, status in page.requests.items()}
    for node, lease in came(before, after):
        found = by_uid.get(lease.uid)
        if found is None or not _serves(found[1], after.cluster, node):
            yield f"{node} came to {lease.request} and that is not committed"
        else:
            start = start_of(found[1])
            if start is not None and after.at + tolerance < start:
                yield f"{node} came to {lease.request} at {after.at}, before its start {start}"
    for node, lease in left(before, after):
        found = by_uid.get(lease.uid)
        if (
            found is not None
            and found[1]["phase"] == "Provisioned"
            and _serves(found[1], after.cluster, node)
        ):
            end = end_of(found[1])
            if end is not None and after.at + tolerance < end:
                yield f"{node} left {lease.request} at {after.at}, before its end {end}"


def _serves(status: Status, cluster: str, node: str) -> bool:
    held = status.get("assignment") or {}
    return status["phase"] in HOLDS and held.get("cluster") == cluster and node in (held.get("nodes") or ())


def slice_twice(page: Page, shown: Mapping[str, Shown], now: datetime, tolerance: timedelta) -> Iterator[str]:
    """Across all clusters a slice has the nodes of one running request; what drains does not count."""
    running: dict[str, set[str]] = {}
    by_uid = {status["uid"]: status for status in page.requests.values()}
    for cluster in shown.values():
        for lease in cluster.leases.values():
            status = by_uid.get(lease.uid)
            if (
                status is not None
                and status["phase"] in {"Provisioning", "Provisioned"}
                and now + tolerance < lease.end
            ):
                running.setdefault(lease.slice, set()).add(lease.request)
    for slice_, requests in sorted(running.items()):
        if len(requests) > 1:
            yield f"slice {slice_} has nodes for {' and '.join(sorted(requests))}"


def has_its_nodes(
    before: Page | None, after: Page, served: AbstractSet[tuple[str, str, str]]
) -> Iterator[str]:
    """What is Provisioned has had every node of it; `served`: cluster, node and id of all leases so far."""
    for key, status in after.requests.items():
        was = None if before is None else before.requests.get(key)
        if before is None or status["phase"] != "Provisioned" or (was or {}).get("phase") == "Provisioned":
            continue
        held = status["assignment"]
        lacking = [n for n in held["nodes"] if (held["cluster"], n, status["uid"]) not in served]
        if lacking:
            yield f"{key} is Provisioned and never had {', '.join(lacking)}"
