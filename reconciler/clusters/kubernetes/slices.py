"""Slices in a cluster: made, mended and removed by inventory; and how they differ from what they should be.

Every write first takes the slice's claim (see `claims`), which refuses older stamps, and then acts on single objects,
each on top of the version that is known. What takes time answers Busy; no slice waits for another. A namespace that
leaves a slice loses the mark and our objects; one that goes with its slice is deleted only when we made it and nobody
keeps it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from reconciler.clusters.kubernetes.api import Api, Rejected
from reconciler.clusters.kubernetes.claims import Claim, Claims
from reconciler.clusters.kubernetes.informer import Informer
from reconciler.clusters.kubernetes.names import SYSTEM_NAMESPACE
from reconciler.clusters.kubernetes.repairs import AGAIN, Item, Repairs
from reconciler.clusters.kubernetes.spaces import Space, Spaces, is_protected, taken
from reconciler.clusters.kubernetes.tenancy import KINDS, MEMBER_ROLE, differing, identity, objects
from reconciler.clusters.port import Answer, Busy, Difference, Done, Refused, SliceTerms, Stamp

LEAVING = timedelta(seconds=3)
"""How soon to look again at a namespace that is being deleted."""
FIRST_SYNC_S = 60.0

Trouble = Busy | Refused


class Slices:
    """Everything of one project's slices in one cluster. Calls may come from one thread at a time."""

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
        self._informers: tuple[Informer[Any], ...] = (
            self._spaces.informer,
            self._claims.informer,
            *self._repairs.informers,
        )
        self._synced = False
        self._found: Mapping[str, tuple[str, ...]] = {}
        self._read: tuple[Mapping[str, Any], ...] = ()  # what `_found` was made of

    def start(self) -> None:
        """Begin to watch; returns at once."""
        for informer in self._informers:
            informer.start()

    def stop(self) -> None:
        """No more watches."""
        for informer in self._informers:
            informer.stop()

    @property
    def informers(self) -> tuple[Informer[Any], ...]:
        """All that it watches."""
        return self._informers

    def _sync(self) -> None:
        if self._synced:
            return
        for informer in self._informers:
            informer.wait_synced(FIRST_SYNC_S)
        self._synced = True

    # --- what is ---

    def newest(self) -> Stamp | None:
        """The newest stamp on slices, also on what is left of those that are gone."""
        return self._claims.newest()

    def namespaces(self) -> Mapping[str, tuple[str, ...]]:
        """Slices with their namespaces; one of which no more than stray objects or an open claim is left has none."""
        self._sync()
        known = tuple(informer.items() for informer in self._informers)
        if len(known) != len(self._read) or any(a is not b for a, b in zip(known, self._read, strict=True)):
            self._found, self._read = self._look(), known
        return self._found

    def _look(self) -> Mapping[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {k: tuple(v) for k, v in self._spaces.by_slice().items()}
        for item in self._repairs.items():
            found.setdefault(item.slice, ())
        for claim in self._claims.informer.items().values():
            if claim.project == self._project and claim.namespaces is not None:
                found.setdefault(claim.slice, ())
        return dict(sorted(found.items()))

    def differences(
        self,
        slices: Iterable[SliceTerms],
        now: datetime,  # noqa: ARG002 - as the port has it
    ) -> tuple[Difference, ...]:
        """What of these slices `ensure` would change. Asks nobody: it is what the informers know."""
        self._sync()
        found: list[Difference] = []
        items = self._by_slice()
        for terms in slices:
            found += self._role_difference(terms.name)
            if self._claims.get(terms.name).leaving:
                # Whoever began it may be paused: its next write is only refused once the slice is taken back.
                found.append(
                    Difference(terms.name, f"Slice {terms.name}", "changed", "its removal has begun")
                )
            for namespace in sorted(set(terms.namespaces)):
                found += self._differing(terms, namespace)
            found += self._extra(terms, items.get(terms.name, ()))
        return tuple(found)

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
        if (withheld := self._withheld(space, terms.name)) is not None:
            yield Difference(terms.name, name, "changed", str(withheld.message))
            return
        if not self._spaces.is_marked(space, terms.name):
            yield Difference(terms.name, name, "changed", "it is not marked as the slice's")
        for want in objects(terms, self._project, namespace):
            have = self._repairs.find(namespace, identity(want))
            shown = f"{want['kind']} {namespace}/{want['metadata']['name']}"
            if have is None:
                yield Difference(terms.name, shown, "missing")
            elif fields := differing(KINDS[want["kind"]], want, have.body):
                by = f" (by {have.by})" if have.by else ""
                yield Difference(terms.name, shown, "changed", ", ".join(fields) + by)

    def _extra(self, terms: SliceTerms, items: Iterable[Item]) -> Iterator[Difference]:
        """Namespaces that left the slice, and objects with its labels that no terms ask for."""
        for namespace in self._spaces.of(terms.name):
            if namespace not in terms.namespaces:
                yield Difference(terms.name, f"Namespace {namespace}", "extra")
        for namespace, what in _strays(terms, items):
            kind, _, name = what.partition("/")
            yield Difference(terms.name, f"{kind} {namespace}/{name}", "extra")

    # --- what shall be ---

    def ensure(self, terms: SliceTerms, stamp: Stamp, now: datetime) -> Answer:
        """Exactly these namespaces are the slice's, each with all that it needs."""
        self._sync()
        refusal = self._claims.refusal(self._claims.get(terms.name), stamp) or self._taken(terms)
        if refusal is not None:
            return refusal
        claim = self._claims.take(terms.name, stamp, lambda c: self._claimed(c, terms))
        if isinstance(claim, Refused):
            return claim
        troubles = [*self._made_so(terms, claim, stamp, now)]
        if troubles:
            return _first(troubles)
        done = self._claims.take(terms.name, stamp, lambda c: self._settled(c, terms))
        return done if isinstance(done, Refused) else Done()

    def _taken(self, terms: SliceTerms) -> Refused | None:
        """Why one of its namespaces cannot be the slice's."""
        others = [
            c for c in self._claims.informer.items().values() if (c.slice, c.project) != self._key(terms)
        ]
        for namespace in sorted(set(terms.namespaces)):
            if is_protected(namespace, self._system):
                text = f"namespace {namespace} belongs to the cluster itself; give slice {terms.name} another one"
                return Refused("NamespaceProtected", text)
            space = self._spaces.find(namespace)
            refusal = None if space is None else self._spaces.taken(space, terms.name)
            if refusal is not None:
                return refusal
            # Also where somebody took the mark off: its objects are still the other slice's.
            owner = next((c for c in others if namespace in c.made), None)
            if owner is not None:
                return taken(namespace, owner.slice, "" if owner.project == self._project else owner.project)
            if space is not None and (refusal := self._withheld(space, terms.name)) is not None:
                return refusal
        return None

    def _withheld(self, space: Space, slice_: str) -> Refused | None:
        return self._spaces.withheld(space, slice_, self._claims.get(slice_).made.get(space.name))

    def _key(self, terms: SliceTerms) -> tuple[str, str]:
        return terms.name, self._project

    def _claimed(self, claim: Claim, terms: SliceTerms) -> Claim:
        """What may be ours from now on; whether we make a namespace is decided before it is made."""
        spaces = dict(claim.made)
        for namespace in terms.namespaces:
            there = self._spaces.find(namespace)
            made_before = spaces.get(namespace, there is None)
            spaces[namespace] = made_before if there is None else made_before and there.is_made
        for namespace in self._spaces.of(terms.name):
            spaces.setdefault(namespace, False)
        named = tuple(sorted({*claim.objects, *_names(terms)}))
        return replace(claim, namespaces=spaces, objects=named, leaving=False)

    def _settled(self, claim: Claim, terms: SliceTerms) -> Claim:
        """What is ours once all is as it should be."""
        spaces = {name: made for name, made in claim.made.items() if name in terms.namespaces}
        return replace(claim, namespaces=spaces, objects=tuple(sorted(_names(terms))))

    def _made_so(self, terms: SliceTerms, claim: Claim, stamp: Stamp, now: datetime) -> Iterator[Trouble]:
        """Take back, then give: whoever is out loses their rights before anybody new gets any."""
        for namespace in sorted(claim.made):
            if namespace not in terms.namespaces:
                yield from _tried(now, partial(self._released, namespace, claim))
        for namespace, what in self._surplus(terms, claim):
            yield from _tried(now, partial(self._repairs.drop, namespace, what, terms.name))
        yield from _tried(now, partial(self._repairs.put_role, now))
        for namespace in sorted(set(terms.namespaces)):
            yield from self._furnished(terms, namespace, claim, stamp, now)

    def _surplus(self, terms: SliceTerms, claim: Claim) -> list[tuple[str, str]]:
        """Objects that were asked for once, or bear the slice's labels, and are not asked for now."""
        before = {(n, what) for n in terms.namespaces for what in set(claim.objects) - _names(terms)}
        return sorted(before.union(_strays(terms, self._by_slice().get(terms.name, ()))))

    def _late(self, slice_: str, stamp: Stamp) -> Refused | None:
        """A newer controller has taken the slice while we were at it, as far as is known without asking."""
        return self._claims.refusal(self._claims.get(slice_), stamp)

    def _furnished(
        self, terms: SliceTerms, namespace: str, claim: Claim, stamp: Stamp, now: datetime
    ) -> Iterator[Trouble]:
        space = self._spaces.find(namespace)
        if space is not None and space.is_leaving:
            yield Busy(now + LEAVING, space.why_leaving)
            return
        made = claim.made.get(namespace)
        troubles = [*_tried(now, partial(self._spaces.mark, namespace, terms.name, stamp, made))]
        if troubles:
            yield from troubles  # what is not marked gets nothing
            return
        for want in objects(terms, self._project, namespace):
            if (late := self._late(terms.name, stamp)) is not None:
                yield late
                return
            yield from _tried(now, partial(self._repairs.put, want, stamp, now, is_new=space is None))

    # --- what shall be no more ---

    def remove(self, name: str, holds_nodes: bool, stamp: Stamp, now: datetime) -> Answer:
        """Nothing of ours is left of the slice but the claim that fences older stamps."""
        self._sync()
        refusal = self._claims.refusal(self._claims.get(name), stamp)
        if refusal is not None:
            return refusal
        if holds_nodes:
            return Refused("SliceHoldsNodes", f"slice {name} still has nodes; they come back first")
        claim = self._claims.take(name, stamp, self._leaving)
        if isinstance(claim, Refused):
            return claim
        troubles = [t for n in sorted(claim.made) for t in self._left(n, claim, stamp, now)]
        for item in self._by_slice().get(name, ()):
            if item.namespace not in claim.made:
                what = f"{item.kind}/{item.name}"
                troubles += _tried(now, partial(self._repairs.drop, item.namespace, what, name))
        if troubles:
            return _first(troubles)
        gone = self._claims.take(
            name, stamp, lambda c: replace(c, namespaces=None, objects=(), leaving=False)
        )
        return gone if isinstance(gone, Refused) else Done()

    def _leaving(self, claim: Claim) -> Claim:
        """Marked namespaces that the claim does not name were not made by us, as far as anybody knows."""
        marked = dict.fromkeys(self._spaces.of(claim.slice), False)
        spaces = {**marked, **claim.made} or claim.namespaces
        return replace(claim, namespaces=spaces, leaving=spaces is not None)

    def _left(self, namespace: str, claim: Claim, stamp: Stamp, now: datetime) -> Iterator[Trouble]:
        space = self._spaces.find(namespace)
        if space is None or not self._is_made(space, claim) or space.is_kept:
            yield from _tried(now, partial(self._released, namespace, claim))
            return
        yield from _tried(now, partial(self._spaces.delete, namespace, stamp))
        rest = self._spaces.find(namespace)
        if rest is not None:
            yield Busy(now + LEAVING, rest.why_leaving)

    def _is_made(self, space: Space, claim: Claim) -> bool:
        """By us and for this slice, as both its claim and the namespace itself say."""
        return claim.made[space.name] and space.is_made and self._spaces.is_marked(space, claim.slice)

    def _released(self, namespace: str, claim: Claim) -> None:
        """The namespace is the slice's no more; people's own work in it stays."""
        space = self._spaces.find(namespace)
        if space is None or space.is_leaving:
            return
        items = self._by_slice().get(claim.slice, ())
        ours = {f"{item.kind}/{item.name}" for item in items if item.namespace == namespace}
        for what in sorted({*claim.objects, *ours}):
            self._repairs.drop(namespace, what, claim.slice)
        if self._spaces.is_marked(space, claim.slice):
            self._spaces.unmark(namespace)


def _names(terms: SliceTerms) -> frozenset[str]:
    """Kind/name of everything that each of its namespaces has."""
    return frozenset(identity(want) for want in objects(terms, "", ""))


def _strays(terms: SliceTerms, items: Iterable[Item]) -> Iterator[tuple[str, str]]:
    """Objects with the slice's labels that it does not ask for: namespace, and Kind/name."""
    wanted = _names(terms)
    for item in items:
        what = f"{item.kind}/{item.name}"
        if item.namespace not in terms.namespaces or what not in wanted:
            yield item.namespace, what


def _tried(now: datetime, act: Callable[[], Trouble | None]) -> Iterator[Trouble]:
    """What came of one write; one that the server refuses stops no other, a server out of reach does."""
    try:
        trouble = act()
    except Rejected as no:
        if no.status >= 500 or no.status in {401, 429}:
            raise
        lacking = "; the controller needs all the rights that its chart and `egs install` list"
        text = f"{no}{lacking}" if no.status == 403 and "grant the controller" not in str(no) else str(no)
        trouble = Busy(now + AGAIN, text) if no.status == 409 else Refused(no.reason, text)
    if trouble is not None:
        yield trouble


def _first(troubles: list[Trouble]) -> Answer:
    """A refusal, for somebody has to act; else when to look again first, and what is waited for."""
    refused = next((t for t in troubles if isinstance(t, Refused)), None)
    if refused is not None:
        return refused
    busy = [t for t in troubles if isinstance(t, Busy)]
    return Busy(min(t.until for t in busy), "; ".join(t.message for t in busy[:3]))
