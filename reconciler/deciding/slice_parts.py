"""What clusters show of slices' queues and exported Services, as facts; and events about what is missing. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from reconciler.documents.queue_terms import queue_rows
from reconciler.documents.service_terms import service_rows, troubles
from reconciler.documents.slice_terms import terms_in
from reconciler.model.cluster_port import ClusterView, SliceTerms
from reconciler.model.events import Event, EventReason
from reconciler.model.facts import Facts, Seen, Wanted
from schemas.documents.cluster import ClusterSpec
from schemas.status.inventory import SliceQueue, SliceServices

Row = TypeVar("Row", SliceQueue, SliceServices)
MOST_SAID = 3
"""Sentences in one event."""


def queues_shown(
    before: Facts, facts: Facts, wanted: Wanted, seen: Seen
) -> dict[str, tuple[SliceQueue, ...]]:
    """Slices' queues, as each cluster last showed them."""
    if not any(slice_.queues.kueue for slice_ in wanted.slices.values()):
        return {}
    return _shown(before.queues, facts, wanted, seen, queue_rows)


def services_shown(
    before: Facts, facts: Facts, wanted: Wanted, seen: Seen
) -> dict[str, tuple[SliceServices, ...]]:
    """Slices' exported Services, as each cluster last showed them."""
    if all(slice_.services.across == "none" for slice_ in wanted.slices.values()):
        return {}
    return _shown(before.services, facts, wanted, seen, service_rows)


def _shown(
    known: Mapping[str, tuple[Row, ...]],
    facts: Facts,
    wanted: Wanted,
    seen: Seen,
    rows: Callable[[ClusterSpec, tuple[SliceTerms, ...], ClusterView], Iterator[Row]],
) -> dict[str, tuple[Row, ...]]:
    """A cluster that does not answer keeps what it showed."""
    shown = {
        name: tuple(rows(wanted.clusters[name], terms_in(name, wanted, facts, view), view))
        for name, view in seen.views.items()
        if name in wanted.clusters
    }
    both = {**known, **shown}
    return {name: both[name] for name in sorted(wanted.clusters) if both.get(name)}


def service_events(before: Facts, after: Facts) -> Iterator[Event]:
    """One for each slice and cluster with something new that its other clusters cannot use."""
    for cluster, rows in after.services.items():
        told = troubles(before.services.get(cluster, ()))
        for slice_, found in troubles(rows).items():
            new = [text for text in found if text not in told.get(slice_, ())]
            if new:
                more = f"; and {len(new) - MOST_SAID} more" if len(new) > MOST_SAID else ""
                text = f"slice {slice_} in {cluster}: {'; '.join(new[:MOST_SAID])}{more}"
                yield Event(after.at, EventReason.NOT_EXPORTED, text, cluster=cluster, slice=slice_)
