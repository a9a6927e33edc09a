"""Whole slices: what `tenancy` keeps in namespaces, and beside it their queues and exported Services.

The slice's claim comes first, so an outdated controller changes none of them either; and they are kept although
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
from reconciler.clusters.kubernetes.services.exported_services import Exports
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
from reconciler.model.service_port import ExportsView

NOT_OURS = frozenset({"StaleStamp", "SliceTaken"})
"""Refusals by the claim: nothing of the slice may be changed."""


class WholeSlices:
    """One project's slices in one cluster. Calls must come from one thread at a time."""

    def __init__(
        self, api: Api, project: str, namespace: str, cluster: str, wake: Callable[[], None] = lambda: None
    ) -> None:
        self.slices = Slices(api, project, namespace, wake)
        self.workloads = self.slices.workloads
        self._queues = Queues(api, project, cluster)
        self._exports = Exports(api, project, cluster, wake)

    @property
    def informers(self) -> tuple[Informer[Any], ...]:
        """Without those of queues and exports: a cluster can be driven without them."""
        return self.slices.informers

    def start(self) -> None:
        self.slices.start()

    def stop(self) -> None:
        self.slices.stop()
        self._queues.stop()
        self._exports.stop()

    def shown(self, view: ClusterView, now: datetime) -> ClusterView:
        """With what there is of slices: their newest stamp, queues, exports, and what their workloads have placed."""
        fence, placed = self.slices.newest(), self.workloads.placed(now)
        return replace(view, fence=fence, placed=placed, queues=self.queues(), exports=self.exports(now))

    def queues(self) -> Mapping[str, QueueView]:
        """By slice, of those that want one."""
        return self._queues.views()

    def exports(self, now: datetime) -> Mapping[str, ExportsView]:
        """By slice, of those that want it."""
        return self._exports.views(now)

    def namespaces(self) -> Mapping[str, tuple[str, ...]]:
        """As `Slices` has them, and slices that have nothing but a queue or exports left."""
        found = self.slices.namespaces()
        left = (self._queues.slices() | self._exports.slices()) - found.keys()
        return {**found, **dict.fromkeys(sorted(left), ())} if left else found

    def differences(self, slices: tuple[SliceTerms, ...], now: datetime) -> tuple[Difference, ...]:
        narrowed = tuple(self._narrowed(terms, now) for terms in slices)
        return (
            *self.slices.differences(narrowed, now),
            *self._queues.differences(slices, now),
            *self._exports.differences(slices, now),
        )

    def ensure(self, terms: SliceTerms, stamp: Stamp, now: datetime) -> Answer:
        answer = self.slices.ensure(self._narrowed(terms, now), stamp, now)
        if isinstance(answer, Refused) and answer.reason in NOT_OURS:
            return answer
        own = self.slices.namespaces().get(terms.name, ())
        queues = self._queues.ensure(terms, own, stamp, now)
        return _joined(answer, queues + self._exports.ensure(terms, own, stamp, now))

    def _narrowed(self, terms: SliceTerms, now: datetime) -> SliceTerms:
        return self._exports.narrowed(terms, now, self.slices.is_open_to_peers(terms.name))

    def remove(self, name: str, holds_nodes: bool, stamp: Stamp, now: datetime) -> Answer:
        answer = self.slices.remove(name, holds_nodes, stamp, now)
        if isinstance(answer, Refused):
            return answer
        return _joined(answer, self._queues.remove(name, now) + self._exports.remove(name, now))


def _joined(answer: Answer, troubles: list[Trouble]) -> Answer:
    found = [*([] if isinstance(answer, Done) else [answer]), *troubles]
    return first_of(found) if found else Done()
