"""Keeps slices' Kueue objects where a cluster serves Kueue's API, and removes them.

Kueue may be installed, upgraded or removed at any time, so the API is looked for again and again. Where it is
missing, or may not be used, a slice that wants a queue gets a sentence about that instead, and all else of the slice
goes on. A cluster in which no slice wants a queue, and none of ours is left, is asked once.

Objects are compared and written as those in namespaces are (`object_repair`): conditionally, never over a newer stamp.
The caller holds the slice's claim.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from reconciler.clusters.kubernetes.api.api_client import Api, Json, Rejected
from reconciler.clusters.kubernetes.names import MANAGED_BY, MANAGER, NAMESPACE_SLICE, OWNER
from reconciler.clusters.kubernetes.queues.queue_objects import (
    CLUSTER_QUEUE,
    GROUP,
    PLURALS,
    TOPOLOGY,
    VERSIONS,
    Served,
    base_name,
    queue_objects,
    shown,
)
from reconciler.clusters.kubernetes.tenancy.object_repair import Item, Repairs
from reconciler.clusters.kubernetes.tenancy.slice_objects import Kind, differing, identity
from reconciler.clusters.kubernetes.tenancy.slice_writer import Trouble, tried
from reconciler.model.cluster_port import Busy, Difference, QueueView, SliceTerms, Stamp
from schemas.errors import Fault

LOOK = timedelta(minutes=1)
"""Interval of asking a cluster whether it serves Kueue's API, and as which version."""
LEAVING = timedelta(seconds=3)
"""Interval of looking at an object that is being deleted."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """The API as it is served, and our objects there."""

    served: Served
    kinds: Mapping[str, Kind]
    repairs: Repairs


class Queues:
    """One project's queues in one cluster. Calls must come from one thread at a time."""

    def __init__(self, api: Api, project: str, cluster: str) -> None:
        self._api, self._project, self._cluster = api, project, cluster
        self._kept: _Kept | None = None
        self._looked: datetime | None = None
        self._wanting: frozenset[str] = frozenset()
        self._problem = ""

    def stop(self) -> None:
        self._drop_watches()

    # --- what is ---

    def views(self) -> dict[str, QueueView]:
        """By slice, of those that want a queue."""
        found: dict[str, QueueView] = {}
        for slice_ in sorted(self._wanting):
            if self._problem:
                found[slice_] = QueueView(problem=self._problem)
            elif self._kept is not None:
                have = self._kept.repairs.find("", f"{CLUSTER_QUEUE}/{base_name(self._project, slice_)}")
                if have is not None:
                    found[slice_] = shown(have.body.get("spec") or {})
        return found

    def slices(self) -> frozenset[str]:
        """Slices with an object of ours that is not being deleted."""
        return frozenset(item.slice for item in self._items())

    def differences(self, slices: tuple[SliceTerms, ...], now: datetime) -> tuple[Difference, ...]:
        """What `ensure` would change for these slices."""
        self._wanting = frozenset(terms.name for terms in slices if terms.queue is not None)
        kept = self._at(now)
        if kept is None:
            return ()
        by_slice: dict[str, list[Item]] = {}
        for item in self._items():
            by_slice.setdefault(item.slice, []).append(item)
        return tuple(
            found for terms in slices for found in self._differing(terms, kept, by_slice.get(terms.name, ()))
        )

    def _differing(self, terms: SliceTerms, kept: _Kept, items: Iterable[Item]) -> Iterator[Difference]:
        wanted = {_key(want): want for want in queue_objects(terms, self._project, kept.served)}
        for (namespace, what), want in wanted.items():
            have = kept.repairs.find(namespace, what)
            if have is None:
                yield Difference(terms.name, _name(namespace, what), "missing")
            elif have.is_leaving:
                yield Difference(terms.name, _name(namespace, what), "changed", "it is being deleted")
            elif fields := differing(kept.kinds[want["kind"]], want, have.body):
                by = f" (by {have.by})" if have.by else ""
                yield Difference(terms.name, _name(namespace, what), "changed", ", ".join(fields) + by)
        for item in items:
            if (item.namespace, f"{item.kind}/{item.name}") not in wanted:
                yield Difference(terms.name, _name(item.namespace, f"{item.kind}/{item.name}"), "extra")

    # --- what shall be ---

    def ensure(
        self, terms: SliceTerms, namespaces: Iterable[str], stamp: Stamp, now: datetime
    ) -> list[Trouble]:
        """The slice's queue and nothing else; LocalQueues only in `namespaces`, which it has for certain."""
        self._wanting = self._wanting - {terms.name} if terms.queue is None else self._wanting | {terms.name}
        kept = self._at(now)
        if kept is None:
            return []
        own = replace(terms, namespaces=tuple(n for n in terms.namespaces if n in set(namespaces)))
        wanted = queue_objects(own, self._project, kept.served)
        troubles: list[Trouble] = []
        for want in wanted:
            troubles += tried(now, partial(self._put, kept, want, stamp, now))
        if not troubles:  # the old ones go when the new ones are there
            troubles += self._cleared(kept, terms.name, {_key(want) for want in wanted}, now)
        return troubles

    def remove(self, slice_: str, now: datetime) -> list[Trouble]:
        """Nothing of ours is left, but for what Kueue still holds back."""
        self._wanting -= {slice_}
        kept = self._at(now)
        return [] if kept is None else self._cleared(kept, slice_, set(), now)

    def _put(self, kept: _Kept, want: Json, stamp: Stamp, now: datetime) -> Trouble | None:
        have = kept.repairs.find(*_key(want))
        if have is not None and have.is_leaving:
            text = f"{identity(want)} is being deleted and will be made again; Kueue waits for its workloads"
            return Busy(now + LEAVING, text)
        return kept.repairs.put(want, stamp, now, is_new=False)

    def _cleared(
        self, kept: _Kept, slice_: str, wanted: set[tuple[str, str]], now: datetime
    ) -> list[Trouble]:
        order = list(reversed(PLURALS))
        items = sorted(self._items(), key=lambda item: (order.index(item.kind), item.namespace, item.name))
        return [
            trouble
            for item in items
            if item.slice == slice_ and (item.namespace, f"{item.kind}/{item.name}") not in wanted
            for trouble in tried(
                now, partial(kept.repairs.drop, item.namespace, f"{item.kind}/{item.name}", slice_)
            )
        ]

    def _items(self) -> list[Item]:
        if self._kept is None:
            return []
        return [item for item in self._kept.repairs.items() if not item.is_leaving]

    # --- the API ---

    def _at(self, now: datetime) -> _Kept | None:
        """Our objects, if the API is served and watched; else the problem says why not."""
        kept, looked = self._kept, self._looked
        is_new = kept is None and not self._problem  # a slice began to want one
        is_over = kept is not None and self._trouble(kept) is not None
        is_wanted = bool(self._wanting) and (is_new or is_over)
        is_due = looked is None or (now - looked >= LOOK and bool(self._wanting or kept))
        if is_wanted or is_due:
            self._look(now)
        return self._kept

    def _look(self, now: datetime) -> None:
        self._looked, self._problem = now, ""
        try:
            served = self._served()
            if served is None:
                self._drop_watches()
                self._problem = self._missing()
            elif self._kept is None or self._kept.served != served or self._trouble(self._kept):
                self._drop_watches()
                if self._wanting or self._has_some(served):
                    self._kept = self._watched(served)
        except Fault as no:
            if isinstance(no, Rejected) and no.status == 401:
                raise  # it is the same for everything else
            self._drop_watches()
            is_right = isinstance(no, Rejected) and no.status in {403, 404}
            self._problem = self._forbidden(no) if is_right else self._unread(no)

    def _served(self) -> Served | None:
        """The preferred version that the server has; it counts only if it has what a queue needs."""
        group = self._api.find(f"/apis/{GROUP}")
        there = {found["version"] for found in (group or {}).get("versions") or ()}
        for version in VERSIONS:
            if version not in there:
                continue
            listed = (self._api.find(f"/apis/{GROUP}/{version}") or {}).get("resources") or ()
            names = {found["name"] for found in listed}
            if names >= {plural for kind, plural in PLURALS.items() if kind != TOPOLOGY}:
                return Served(version, PLURALS[TOPOLOGY] in names)
        return None

    def _has_some(self, served: Served) -> bool:
        """True if a queue of ours was left by an earlier process."""
        ours = f"{MANAGED_BY}={MANAGER},{NAMESPACE_SLICE},{OWNER}={self._project}"
        queues = next(kind for kind in served.kinds if kind.name == CLUSTER_QUEUE)
        try:
            return any(True for _ in self._api.items(queues.path(), labelSelector=ours))
        except Rejected as no:
            if no.status in {403, 404}:  # without the right to read queues we never made one
                return False
            raise

    def _watched(self, served: Served) -> _Kept:
        kinds = served.kinds
        repairs = Repairs(self._api, self._project, lambda: None, kinds)
        for informer in repairs.informers:
            informer.start()
        kept = _Kept(served, {kind.name: kind for kind in kinds}, repairs)
        try:
            for informer in repairs.informers:
                informer.wait_synced()
        except Fault:
            for informer in repairs.informers:
                informer.stop()
            raise
        return kept

    def _trouble(self, kept: _Kept) -> Fault | None:
        """Why its watches can see no more: the API is gone, or the right to it."""
        troubles = (informer.trouble for informer in kept.repairs.informers)
        return next((t for t in troubles if isinstance(t, Rejected) and t.status in {403, 404}), None)

    def _drop_watches(self) -> None:
        if self._kept is not None:
            for informer in self._kept.repairs.informers:
                informer.stop()
        self._kept = None

    def _missing(self) -> str:
        versions = " nor ".join(VERSIONS)
        return (
            f"cluster {self._cluster} serves {GROUP} neither as {versions}, so the slice has no queue there; install "
            "Kueue in the cluster, or set spec.queues.kueue of the slice to false"
        )

    def _unread(self, no: Fault) -> str:
        return f"the queues in cluster {self._cluster} cannot be read ({no}); the controller looks again in a minute"

    def _forbidden(self, no: Fault) -> str:
        return (
            f"the controller may not keep queues in cluster {self._cluster} ({no}); set `kueue: true` in the values of "
            "its installation there, or set spec.queues.kueue of the slice to false"
        )


def _key(want: Json) -> tuple[str, str]:
    """Its namespace, empty for the cluster as a whole, and Kind/name."""
    return want["metadata"].get("namespace", ""), identity(want)


def _name(namespace: str, what: str) -> str:
    kind, _, name = what.partition("/")
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"
