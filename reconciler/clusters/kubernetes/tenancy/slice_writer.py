"""Slices in a cluster: created, repaired and removed by inventory; and how they differ from their terms.

Every write first takes the slice's claim (`slice_inventory`), which refuses older stamps, and then changes single
objects, each conditional on the known version. What takes time answers Busy; no slice waits for another. A
namespace that leaves a slice loses the mark and our objects; when its slice is removed it is deleted only if
we created it and it is not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from reconciler.clusters.kubernetes.api.api_client import Api, Rejected, refused
from reconciler.clusters.kubernetes.api.informer import Informer
from reconciler.clusters.kubernetes.names import SYSTEM_NAMESPACE
from reconciler.clusters.kubernetes.tenancy.namespace_owner import holds, made
from reconciler.clusters.kubernetes.tenancy.namespaces import Space, Spaces, is_protected, taken
from reconciler.clusters.kubernetes.tenancy.object_repair import AGAIN, Item, Repairs
from reconciler.clusters.kubernetes.tenancy.slice_inventory import Claim, Claims
from reconciler.clusters.kubernetes.tenancy.slice_objects import (
    BINDING,
    KINDS,
    MEMBER_ROLE,
    MEMBERS,
    PEERS_IN,
    differing,
    identity,
    objects,
)
from reconciler.clusters.kubernetes.workloads.workload_writer import Workloads
from reconciler.model.cluster_port import Answer, Busy, Difference, Done, Refused, SliceTerms, Stamp

LEAVING = timedelta(seconds=3)
"""Interval of looking at a namespace that is being deleted."""

Trouble = Busy | Refused


class Slices:
    """One project's slices in one cluster. Calls must come from one thread at a time."""

    def __init__(
        self,
        api: Api,
        project: str,
        namespace: str = SYSTEM_NAMESPACE,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        self._project, self._system = project, namespace
        self._spaces = Spaces(api, project, wake)
        self._claims = Claims(api, namespace, project, wake)
        self._repairs = Repairs(api, project, wake)
        self.workloads = Workloads(api, namespace, project, self._claims, wake)
        own = (self._spaces.informer, self._claims.informer, self.workloads.informer)
        self.informers: tuple[Informer[Any], ...] = (*own, *self._repairs.informers)
        self._synced = False
        self._found: Mapping[str, tuple[str, ...]] = {}
        self._read: tuple[Mapping[str, Any], ...] = ()  # the inputs of `_found`

    def start(self) -> None:
        for informer in self.informers:
            informer.start()

    def stop(self) -> None:
        for informer in self.informers:
            informer.stop()

    def _sync(self) -> None:
        if self._synced:
            return
        for informer in self.informers:
            informer.wait_synced()
        self._synced = True

    # --- what is ---

    def newest(self) -> Stamp | None:
        """The newest stamp on slices, including remains of removed ones."""
        return self._claims.newest()

    def namespaces(self) -> Mapping[str, tuple[str, ...]]:
        """Slices with their namespaces; empty for one that only has stray objects or an open claim left."""
        self._sync()
        known = tuple(informer.items() for informer in self.informers)
        if len(known) != len(self._read) or any(a is not b for a, b in zip(known, self._read, strict=True)):
            self._found, self._read = self._look(), known
        return self._found

    def _look(self) -> Mapping[str, tuple[str, ...]]:
        found: dict[str, list[str]] = {}
        for claim in self._claims.informer.items().values():
            if claim.project == self._project and claim.namespaces is not None:
                found.setdefault(claim.slice, [])
        for slice_ in (*self._spaces.by_slice(), *(item.slice for item in self._repairs.items())):
            found.setdefault(slice_, [])
        for name, space in sorted(self._spaces.informer.items().items()):
            holder = self._holder(space)
            if holder is not None and holder.project == self._project:
                found.setdefault(holder.slice, []).append(name)
        return {slice_: tuple(names) for slice_, names in sorted(found.items())}

    def _holds(self, claim: Claim, space: Space) -> bool:
        rights = self._repairs.find(space.name, f"{BINDING.name}/{MEMBERS}")
        return holds(claim, space, is_furnished=rights is not None and rights.slice == claim.slice)

    def _holder(self, space: Space) -> Claim | None:
        """The claim that owns the namespace; None: none does."""
        claims = self._claims.naming(space.name)
        if space.slice:
            claims = (*claims, self._claims.get(space.slice))
        return next((claim for claim in claims if self._holds(claim, space)), None)

    def _loose(self, slice_: str) -> list[str]:
        """Namespaces with the slice's mark that belong to no other slice: only this one may release them."""
        return [
            space.name
            for space in self._spaces.marked(slice_)
            if (holder := self._holder(space)) is None or self._is_own(holder, slice_)
        ]

    def _is_own(self, claim: Claim, slice_: str) -> bool:
        return (claim.slice, claim.project) == (slice_, self._project)

    def differences(
        self,
        slices: Iterable[SliceTerms],
        now: datetime,  # noqa: ARG002 - as the port has it
    ) -> tuple[Difference, ...]:
        """What `ensure` would change for these slices. Uses the informers only, without calls."""
        self._sync()
        found: list[Difference] = []
        items = self._by_slice()
        for terms in slices:
            found += self._role_difference(terms.name)
            if self._claims.get(terms.name).leaving:
                # The controller that began it may be paused; its writes are refused once we take the slice back.
                text = "its removal has begun"
                found.append(Difference(terms.name, f"Slice {terms.name}", "changed", text))
            for namespace in sorted(set(terms.namespaces)):
                found += self._differing(terms, namespace)
            found += self._extra(terms, items.get(terms.name, ()))
        return tuple(found)

    def is_open_to_peers(self, slice_: str) -> bool:
        """True if some of its pods are open to the addresses of other clusters now."""
        return any(item.slice == slice_ and item.name == PEERS_IN for item in self._repairs.items())

    def _by_slice(self) -> dict[str, list[Item]]:
        found: dict[str, list[Item]] = {}
        for item in self._repairs.items():
            found.setdefault(item.slice, []).append(item)
        return found

    def _role_difference(self, slice_: str) -> Iterator[Difference]:
        fields, name = self._repairs.role(), f"ClusterRole {MEMBER_ROLE}"
        if fields is None:
            yield Difference(slice_, name, "missing")
        elif fields:
            yield Difference(slice_, name, "changed", ", ".join(fields))

    def _differing(self, terms: SliceTerms, namespace: str) -> Iterator[Difference]:
        space, name = self._spaces.find(namespace), f"Namespace {namespace}"
        if space is None:
            yield Difference(terms.name, name, "missing")
            return
        if space.is_leaving:
            yield Difference(terms.name, name, "changed", space.why_leaving)
            return
        if (withheld := self._withheld(namespace, terms.name)) is not None:
            yield Difference(terms.name, name, "changed", withheld.message)
            return
        if not self._spaces.is_whole(
            space, terms.name, self._claims.get(terms.name).made.get(namespace, False)
        ):
            other = space.slice not in {"", terms.name} or space.project not in {"", self._project}
            text = f"it has the labels of slice {space.slice} of project {space.project}" if other else ""
            yield Difference(terms.name, name, "changed", text or "it is not marked as the slice's")
        for want in objects(terms, self._project, namespace):
            have = self._repairs.find(namespace, identity(want))
            shown = f"{want['kind']} {namespace}/{want['metadata']['name']}"
            if have is None:
                yield Difference(terms.name, shown, "missing")
            elif fields := differing(KINDS[want["kind"]], want, have.body):
                by = f" (by {have.by})" if have.by else ""
                yield Difference(terms.name, shown, "changed", ", ".join(fields) + by)

    def _extra(self, terms: SliceTerms, items: Iterable[Item]) -> Iterator[Difference]:
        """Namespaces that left the slice, and objects with its labels that are not in its terms."""
        for namespace in self._loose(terms.name):
            if namespace not in terms.namespaces:
                yield Difference(terms.name, f"Namespace {namespace}", "extra")
        for namespace, what in _strays(terms, items):
            kind, _, name = what.partition("/")
            yield Difference(terms.name, f"{kind} {namespace}/{name}", "extra")

    # --- what shall be ---

    def ensure(self, terms: SliceTerms, stamp: Stamp, now: datetime) -> Answer:
        """Ensures exactly these namespaces, each with all its objects."""
        self._sync()
        refusal = self._claims.refusal(self._claims.get(terms.name), stamp) or self._taken(terms)
        if refusal is not None:
            return refusal
        claim = self._claims.take(terms.name, stamp, lambda c: self._claimed(c, terms))
        if isinstance(claim, Refused):
            return claim
        troubles = [*self._made_so(terms, claim, stamp, now)]
        if troubles:
            return first_of(troubles)
        done = self._claims.take(terms.name, stamp, lambda c: self._settled(c, terms))
        return done if isinstance(done, Refused) else Done()

    def _taken(self, terms: SliceTerms) -> Refused | None:
        """Why one of its namespaces cannot belong to the slice."""
        for namespace in sorted(set(terms.namespaces)):
            if is_protected(namespace, self._system):
                text = f"namespace {namespace} belongs to the cluster itself; give slice {terms.name} another one"
                return Refused("NamespaceProtected", text)
            if (refusal := self._withheld(namespace, terms.name)) is not None:
                return refusal
        return None

    def _withheld(self, namespace: str, slice_: str) -> Refused | None:
        """Also if the mark was changed: a namespace in an inventory belongs to that slice."""
        named = self._claims.naming(namespace)
        owner = next((claim for claim in named if not self._is_own(claim, slice_)), None)
        if owner is not None:
            return taken(namespace, owner.slice, "" if owner.project == self._project else owner.project)
        space = self._spaces.find(namespace)
        if space is None or self._holds(self._claims.get(slice_), space):
            return None
        return self._spaces.withheld(space, slice_)

    def _claimed(self, claim: Claim, terms: SliceTerms) -> Claim:
        """What may be ours from now on; whether we create a namespace is decided before creating it."""
        spaces, uids = dict(claim.made), dict(claim.uids)
        for namespace in terms.namespaces:
            there = self._spaces.find(namespace)
            if there is None:
                spaces.setdefault(namespace, True)
                uids.pop(namespace, None)  # the next one has another uid
            else:
                spaces[namespace] = made(claim, there, is_held=self._holds(claim, there))
                uids[namespace] = there.uid
        named = tuple(sorted({*claim.objects, *_names(terms)}))
        return replace(claim, namespaces=spaces, objects=named, leaving=False, uids=uids)

    def _settled(self, claim: Claim, terms: SliceTerms) -> Claim:
        """What is ours once everything is in place."""
        spaces = {name: made for name, made in claim.made.items() if name in terms.namespaces}
        there = {name: self._spaces.find(name) for name in spaces}
        uids = {name: space.uid for name, space in there.items() if space is not None}
        return replace(claim, namespaces=spaces, objects=tuple(sorted(_names(terms))), uids=uids)

    def _made_so(self, terms: SliceTerms, claim: Claim, stamp: Stamp, now: datetime) -> Iterator[Trouble]:
        """Removes first, then adds: former members lose their permissions before new ones get any."""
        for namespace in sorted({*claim.made, *self._loose(terms.name)}):
            if namespace not in terms.namespaces:
                yield from tried(now, partial(self._released, namespace, claim))
        for namespace, what in self._surplus(terms, claim):
            yield from tried(now, partial(self._repairs.drop, namespace, what, terms.name))
        yield from tried(now, partial(self._repairs.put_role, now))
        for namespace in sorted(set(terms.namespaces)):
            yield from self._furnished(terms, namespace, claim, stamp, now)

    def _surplus(self, terms: SliceTerms, claim: Claim) -> list[tuple[str, str]]:
        """Objects that were wanted once, or have the slice's labels, and are not wanted now."""
        before = {(n, what) for n in terms.namespaces for what in set(claim.objects) - _names(terms)}
        return sorted(before.union(_strays(terms, self._by_slice().get(terms.name, ()))))

    def _furnished(
        self, terms: SliceTerms, namespace: str, claim: Claim, stamp: Stamp, now: datetime
    ) -> Iterator[Trouble]:
        space = self._spaces.find(namespace)
        if space is not None and space.is_leaving:
            yield Busy(now + LEAVING, space.why_leaving)
            return
        withheld = partial(self._withheld, namespace, terms.name)
        mark = partial(
            self._spaces.mark, namespace, terms.name, stamp, made=claim.made[namespace], withheld=withheld
        )
        troubles = [*tried(now, mark)]
        if troubles:
            yield from troubles  # a namespace without the mark gets no objects
            return
        for want in objects(terms, self._project, namespace):
            # A newer controller may have taken the slice meanwhile, as far as known without a call.
            if (late := self._claims.refusal(self._claims.get(terms.name), stamp)) is not None:
                yield late
                return
            yield from tried(now, partial(self._repairs.put, want, stamp, now, is_new=space is None))

    # --- what shall be no more ---

    def remove(self, name: str, holds_nodes: bool, stamp: Stamp, now: datetime) -> Answer:
        """Removes everything of ours except the claim that fences older stamps."""
        self._sync()
        refusal = self._claims.refusal(self._claims.get(name), stamp)
        if refusal is not None:
            return refusal
        if holds_nodes:
            return Refused("SliceHoldsNodes", f"slice {name} still has nodes; these must be released first")
        claim = self._claims.take(name, stamp, self._leaving)
        if isinstance(claim, Refused):
            return claim
        spaces = sorted({*claim.made, *self._loose(name)})
        troubles = [t for n in spaces for t in self._left(n, claim, stamp, now)]
        for item in self._by_slice().get(name, ()):
            if item.namespace not in spaces:
                what = f"{item.kind}/{item.name}"
                troubles += tried(now, partial(self._repairs.drop, item.namespace, what, name))
        if troubles:
            return first_of(troubles)
        gone = self._claims.take(
            name, stamp, lambda c: replace(c, namespaces=None, objects=(), leaving=False, uids={})
        )
        return gone if isinstance(gone, Refused) else Done()

    def _leaving(self, claim: Claim) -> Claim:
        """Marked namespaces not in the claim are released without being added: their mark is enough."""
        if claim.namespaces is None and not self._spaces.marked(claim.slice):
            return replace(claim, leaving=False)
        return replace(claim, namespaces=dict(claim.made), leaving=True)

    def _left(self, namespace: str, claim: Claim, stamp: Stamp, now: datetime) -> Iterator[Trouble]:
        space = self._spaces.find(namespace)
        if space is None or not self._is_made(space, claim) or space.is_kept:
            yield from tried(now, partial(self._released, namespace, claim))
            return
        yield from tried(now, partial(self._spaces.delete, namespace, stamp))
        rest = self._spaces.find(namespace)
        if rest is not None:
            yield Busy(now + LEAVING, rest.why_leaving)

    def _is_made(self, space: Space, claim: Claim) -> bool:
        """True if created by us for this slice, by both its claim and the namespace's labels."""
        return space.is_made and made(claim, space, is_held=self._holds(claim, space))

    def _released(self, namespace: str, claim: Claim) -> None:
        """Releases the namespace from the slice; users' objects in it stay."""
        space = self._spaces.find(namespace)
        if space is None or space.is_leaving:
            return
        items = self._by_slice().get(claim.slice, ())
        ours = {f"{item.kind}/{item.name}" for item in items if item.namespace == namespace}
        for what in sorted({*claim.objects, *ours}):
            self._repairs.drop(namespace, what, claim.slice)
        holder = self._holder(space)
        is_unclaimed = holder is None and self._spaces.is_marked(space, claim.slice)
        if is_unclaimed or (holder is not None and self._is_own(holder, claim.slice)):
            self._spaces.unmark(namespace)


def _names(terms: SliceTerms) -> frozenset[str]:
    """Kind/name of every object in each of its namespaces."""
    return frozenset(identity(want) for want in objects(terms, "", ""))


def _strays(terms: SliceTerms, items: Iterable[Item]) -> Iterator[tuple[str, str]]:
    """Objects with the slice's labels that are not wanted: namespace, and Kind/name."""
    wanted = _names(terms)
    for item in items:
        what = f"{item.kind}/{item.name}"
        if item.namespace not in terms.namespaces or what not in wanted:
            yield item.namespace, what


def tried(now: datetime, act: Callable[[], Trouble | None]) -> Iterator[Trouble]:
    """The result of each write; a refused one stops no other, an unreachable server does."""
    try:
        trouble = act()
    except Rejected as no:
        answer = refused(no)
        lacking = "; the controller needs all the rights that its chart and `egs install` list"
        text = f"{no}{lacking}" if no.status == 403 and "grant the controller" not in str(no) else str(no)
        trouble = Busy(now + AGAIN, text) if no.status == 409 else replace(answer, message=text)
    if trouble is not None:
        yield trouble


def first_of(troubles: list[Trouble]) -> Answer:
    """The first refusal, because it needs action; else the next time to look, and what is waited for."""
    refused = next((t for t in troubles if isinstance(t, Refused)), None)
    if refused is not None:
        return refused
    busy = [t for t in troubles if isinstance(t, Busy)]
    return Busy(min(t.until for t in busy), "; ".join(t.message for t in busy[:3]))
