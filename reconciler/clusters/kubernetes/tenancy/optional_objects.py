"""What a slice has of an API that a cluster may serve or not: kept where it is served, removed when it is not wanted.

The API may be installed, upgraded or removed at any time, so it is looked for again and again. Where it is missing,
or may not be used, a slice that wants it gets a sentence about that instead, and all else of the slice goes on. A
cluster in which no slice wants it, and none of its objects is ours, is asked once.

Objects are compared and written as those in namespaces are (`object_repair`): conditionally, never over a newer stamp.
The caller holds the slice's claim.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from reconciler.clusters.kubernetes.api.api_client import Api, Json, Rejected
from reconciler.clusters.kubernetes.api.informer import Informer
from reconciler.clusters.kubernetes.names import MANAGED_BY, MANAGER, NAMESPACE_SLICE, OWNER
from reconciler.clusters.kubernetes.tenancy.object_repair import Item, Repairs
from reconciler.clusters.kubernetes.tenancy.slice_objects import Kind, differing, identity
from reconciler.clusters.kubernetes.tenancy.slice_writer import Trouble, tried
from reconciler.model.cluster_port import Busy, Difference, SliceTerms, Stamp
from schemas.errors import Fault

LOOK = timedelta(minutes=1)
"""Interval of asking a cluster whether it serves the API, and as which version."""
LEAVING = timedelta(seconds=3)
"""Interval of looking at an object that is being deleted."""

S = TypeVar("S")


class Offer(Protocol[S]):
    """One such API: what a cluster has of it (`S`), and what slices have of that."""

    @property
    def markers(self) -> frozenset[str]:
        """Kinds of objects that tell that some of ours are left."""

    @property
    def following(self) -> frozenset[str]:
        """Kinds whose objects follow others in the cluster: a missing or surplus one is no foreign change."""

    @property
    def is_in_turn(self) -> bool:
        """True if old objects go only when all new ones are there; else a refused one keeps no other."""

    def wants(self, terms: SliceTerms) -> bool:
        """True if the slice is to have some of it."""

    def served(self, api: Api) -> S | None:
        """What the server has; None: not enough."""

    def kinds(self, served: S) -> tuple[Kind, ...]:
        """In the order in which objects are made; they are removed in the opposite one."""

    def beside(self, api: Api) -> tuple[Informer[Any], ...]:
        """New informers that are needed while some slice wants it, besides those of the objects."""

    def objects(self, terms: SliceTerms, served: S) -> tuple[Json, ...]:
        """All of the slice's, in the order in which they are made; none if it wants none."""

    def missing(self) -> str:
        """Why a slice that wants it has none, and what to do."""

    def forbidden(self, no: Fault) -> str:
        """The same where the server has it, and the controller may not use it."""

    def unread(self, no: Fault) -> str:
        """The same where it cannot be read just now."""


@dataclass(frozen=True, slots=True)
class _Kept(Generic[S]):
    """The API as it is served, and our objects there."""

    served: S
    kinds: Mapping[str, Kind]
    repairs: Repairs
    beside: tuple[Informer[Any], ...]

    @property
    def informers(self) -> tuple[Informer[Any], ...]:
        return (*self.repairs.informers, *self.beside)


class OptionalObjects(Generic[S]):
    """One project's objects of one such API in one cluster. Calls must come from one thread at a time."""

    def __init__(self, api: Api, project: str, offer: Offer[S]) -> None:
        self._api, self.project, self._offer = api, project, offer
        self._kept: _Kept[S] | None = None
        self._looked: datetime | None = None
        self._unread = False  # the last look found out nothing: some of ours may be left
        self.wanting: frozenset[str] = frozenset()
        """Slices that want it, as far as told."""
        self.problem = ""
        """Why they have none; empty if they have."""

    def stop(self) -> None:
        self._drop_watches()

    # --- what is ---

    @property
    def served(self) -> S | None:
        """What the server has; None while nothing is watched."""
        return None if self._kept is None else self._kept.served

    @property
    def is_unread(self) -> bool:
        """True if the last look found out nothing."""
        return self._unread

    def served_for(self, terms: SliceTerms, now: datetime) -> S | None:
        """What the server has for this slice, looked for if it is time; None: nothing, the problem says why."""
        self._tell(terms)
        kept = self._at(now)
        return None if kept is None else kept.served

    def _tell(self, terms: SliceTerms) -> None:
        self.wanting = (
            self.wanting | {terms.name} if self._offer.wants(terms) else self.wanting - {terms.name}
        )

    def find(self, namespace: str, what: str) -> Item | None:
        """One of ours, by Kind/name."""
        return None if self._kept is None else self._kept.repairs.find(namespace, what)

    def items(self) -> list[Item]:
        """Those of ours that are not being deleted."""
        if self._kept is None:
            return []
        return [item for item in self._kept.repairs.items() if not item.is_leaving]

    def slices(self) -> frozenset[str]:
        """Slices with an object of ours that is not being deleted."""
        return frozenset(item.slice for item in self.items())

    def differences(self, slices: tuple[SliceTerms, ...], now: datetime) -> tuple[Difference, ...]:
        """What `ensure` would change for these slices."""
        self.wanting = frozenset(terms.name for terms in slices if self._offer.wants(terms))
        kept = self._at(now)
        if kept is None:
            return ()
        by_slice: dict[str, list[Item]] = {}
        for item in self.items():
            by_slice.setdefault(item.slice, []).append(item)
        return tuple(
            found for terms in slices for found in self._differing(terms, kept, by_slice.get(terms.name, ()))
        )

    def _differing(self, terms: SliceTerms, kept: _Kept[S], items: Iterable[Item]) -> Iterator[Difference]:
        wanted = {_key(want): want for want in self._offer.objects(terms, kept.served)}
        for (namespace, what), want in wanted.items():
            have, name = kept.repairs.find(namespace, what), _name(namespace, what)
            if have is None and want["kind"] in self._offer.following:
                yield Difference(terms.name, name, "outdated", "it is not there yet")
            elif have is None:
                yield Difference(terms.name, name, "missing")
            elif have.is_leaving:
                yield Difference(terms.name, name, "changed", "it is being deleted")
            elif fields := differing(kept.kinds[want["kind"]], want, have.body):
                by = f" (by {have.by})" if have.by else ""
                yield Difference(terms.name, name, "changed", ", ".join(fields) + by)
        for item in items:
            what = f"{item.kind}/{item.name}"
            if (item.namespace, what) in wanted:
                continue
            if self._offer.wants(terms) and item.kind in self._offer.following:
                yield Difference(terms.name, _name(item.namespace, what), "outdated", "it is there no more")
            else:
                yield Difference(terms.name, _name(item.namespace, what), "extra")

    # --- what shall be ---

    def ensure(
        self, terms: SliceTerms, namespaces: Iterable[str], stamp: Stamp, now: datetime
    ) -> list[Trouble]:
        """The slice's objects and no others; in `namespaces` only, which it has for certain."""
        self._tell(terms)
        kept = self._at(now)
        if kept is None:
            return []
        own = replace(terms, namespaces=tuple(n for n in terms.namespaces if n in set(namespaces)))
        wanted = self._offer.objects(own, kept.served)
        troubles: list[Trouble] = []
        for want in wanted:
            troubles += tried(now, partial(self._put, kept, want, stamp, now))
        if not (troubles and self._offer.is_in_turn):
            troubles += self._cleared(kept, terms.name, {_key(want) for want in wanted}, now)
        return troubles

    def remove(self, slice_: str, now: datetime) -> list[Trouble]:
        """Nothing of ours is left, but for what others still hold back; Busy while that cannot be known."""
        self.wanting -= {slice_}
        kept = self._at(now)
        if self._unread:
            return [Busy(now + LOOK, self.problem)]
        return [] if kept is None else self._cleared(kept, slice_, set(), now)

    def _put(self, kept: _Kept[S], want: Json, stamp: Stamp, now: datetime) -> Trouble | None:
        have = kept.repairs.find(*_key(want))
        if have is not None and have.is_leaving:
            text = f"{identity(want)} is being deleted and will be made again; its controller waits for its workloads"
            return Busy(now + LEAVING, text)
        return kept.repairs.put(want, stamp, now, is_new=False)

    def _cleared(
        self, kept: _Kept[S], slice_: str, wanted: set[tuple[str, str]], now: datetime
    ) -> list[Trouble]:
        order = list(kept.kinds)[::-1]
        items = sorted(self.items(), key=lambda item: (order.index(item.kind), item.namespace, item.name))
        return [
            trouble
            for item in items
            if item.slice == slice_ and (item.namespace, f"{item.kind}/{item.name}") not in wanted
            for trouble in tried(
                now, partial(kept.repairs.drop, item.namespace, f"{item.kind}/{item.name}", slice_)
            )
        ]

    # --- the API ---

    def _at(self, now: datetime) -> _Kept[S] | None:
        """Our objects, if the API is served and watched; else the problem says why not."""
        kept, looked = self._kept, self._looked
        is_new = kept is None and not self.problem  # a slice began to want it
        is_over = kept is not None and _trouble(kept) is not None
        is_wanted = bool(self.wanting) and (is_new or is_over)
        is_due = looked is None or (now - looked >= LOOK and bool(self.wanting or kept or self._unread))
        if is_wanted or is_due:
            self._look(now)
        return self._kept

    def _look(self, now: datetime) -> None:
        self._looked, self._unread, self.problem = now, False, ""
        try:
            served = self._offer.served(self._api)
            if served is None:
                self._drop_watches()
                self.problem = self._offer.missing()
            elif self._kept is None or self._kept.served != served or _trouble(self._kept):
                self._drop_watches()
                if self.wanting or self._has_some(served):
                    self._kept = self._watched(served)
        except Fault as no:
            if isinstance(no, Rejected) and no.status == 401:
                self._looked = None
                raise  # it is the same for everything else
            self._drop_watches()
            self._unread = not (isinstance(no, Rejected) and no.status in {403, 404})
            self.problem = self._offer.unread(no) if self._unread else self._offer.forbidden(no)

    def _has_some(self, served: S) -> bool:
        """True if an object of ours was left by an earlier process."""
        ours = f"{MANAGED_BY}={MANAGER},{NAMESPACE_SLICE},{OWNER}={self.project}"
        markers = [kind for kind in self._offer.kinds(served) if kind.name in self._offer.markers]
        try:
            return any(True for kind in markers for _ in self._api.items(kind.path(), labelSelector=ours))
        except Rejected as no:
            if no.status in {403, 404}:  # without the right to read them we never made one
                return False
            raise

    def _watched(self, served: S) -> _Kept[S]:
        kinds = self._offer.kinds(served)
        repairs = Repairs(self._api, self.project, lambda: None, kinds)
        beside = self._offer.beside(self._api)
        kept = _Kept(served, {kind.name: kind for kind in kinds}, repairs, beside)
        for informer in kept.informers:
            informer.start()
        try:
            for informer in kept.informers:
                informer.wait_synced()
        except Fault:
            for informer in kept.informers:
                informer.stop()
            raise
        return kept

    def _drop_watches(self) -> None:
        if self._kept is not None:
            for informer in self._kept.informers:
                informer.stop()
        self._kept = None


def _trouble(kept: _Kept[S]) -> Fault | None:
    """Why its watches can see no more: the API is gone, or the right to it."""
    troubles = (informer.trouble for informer in kept.informers)
    return next((t for t in troubles if isinstance(t, Rejected) and t.status in {403, 404}), None)


def _key(want: Json) -> tuple[str, str]:
    """Its namespace, empty for the cluster as a whole, and Kind/name."""
    return want["metadata"].get("namespace", ""), identity(want)


def _name(namespace: str, what: str) -> str:
    kind, _, name = what.partition("/")
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"
