"""Slices with their queues: what `tenancy` keeps in namespaces, and Kueue's objects beside it.

The slice's claim comes first, so an outdated controller changes no queue either; and a queue is kept although
something else of the slice is refused, because leases go on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from reconciler.clusters.kubernetes.api.api_client import Api
from reconciler.clusters.kubernetes.api.informer import Informer
from reconciler.clusters.kubernetes.queues.queue_writer import Queues
from reconciler.clusters.kubernetes.tenancy.slice_writer import Slices, Trouble, first_of
from reconciler.model.cluster_port import (
    Answer,
    ClusterView,
    Difference,
    Done,
    QueueView,
    Refused,
    SliceTerms,
    Stamp,
)

NOT_OURS = frozenset({"StaleStamp", "SliceTaken"})
"""Refusals by the claim: nothing of the slice may be changed."""


class QueuedSlices:
    """One project's slices in one cluster. Calls must come from one thread at a time."""

    def __init__(
        self, api: Api, project: str, namespace: str, cluster: str, wake: Callable[[], None] = lambda: None
    ) -> None:
        self.slices = Slices(api, project, namespace, wake)
        self.workloads = self.slices.workloads
        self._queues = Queues(api, project, cluster)

    @property
    def informers(self) -> tuple[Informer[Any], ...]:
        """Without those of queues: a cluster can be driven without them."""
        return self.slices.informers

    def start(self) -> None:
        self.slices.start()

    def stop(self) -> None:
        self.slices.stop()
        self._queues.stop()

    def shown(self, view: ClusterView, now: datetime) -> ClusterView:
        """With what there is of slices: their newest stamp, their queues, and what their workloads have placed."""
        fence, placed = self.slices.newest(), self.workloads.placed(now)
        return replace(view, fence=fence, placed=placed, queues=self.queues())

    def queues(self) -> Mapping[str, QueueView]:
        """By slice, of those that want one."""
        return self._queues.views()

    def namespaces(self) -> Mapping[str, tuple[str, ...]]:
        """As `Slices` has them, and slices that have nothing but a queue left."""
        found = self.slices.namespaces()
        left = self._queues.slices() - found.keys()
        return {**found, **dict.fromkeys(sorted(left), ())} if left else found

    def differences(self, slices: tuple[SliceTerms, ...], now: datetime) -> tuple[Difference, ...]:
        return (*self.slices.differences(slices, now), *self._queues.differences(slices, now))

    def ensure(self, terms: SliceTerms, stamp: Stamp, now: datetime) -> Answer:
        answer = self.slices.ensure(terms, stamp, now)
        if isinstance(answer, Refused) and answer.reason in NOT_OURS:
            return answer
        own = self.slices.namespaces().get(terms.name, ())
        return _joined(answer, self._queues.ensure(terms, own, stamp, now))

    def remove(self, name: str, holds_nodes: bool, stamp: Stamp, now: datetime) -> Answer:
        answer = self.slices.remove(name, holds_nodes, stamp, now)
        return answer if isinstance(answer, Refused) else _joined(answer, self._queues.remove(name, now))


def _joined(answer: Answer, troubles: list[Trouble]) -> Answer:
    found = [*([] if isinstance(answer, Done) else [answer]), *troubles]
    return first_of(found) if found else Done()
