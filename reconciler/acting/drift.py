"""Drift: foreign changes of a slice's objects in a cluster; how they are reported and how soon repaired.

Drift is a difference under terms that were fulfilled before: creating a slice, or changing its manifest, is
not drift. Each difference is reported once while it lasts. If a repair is undone again and again, the pauses
grow, per object and until the slice's terms change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from reconciler.acting.actions import Action, Do
from reconciler.model import backoff
from reconciler.model.cluster_port import Difference, SliceTerms
from reconciler.model.events import Event, EventReason

MOST_TOLD = 20
"""Differences of one slice in one cluster that are reported one by one."""

Place = tuple[str, str]
"""(cluster, slice)."""
FLEET = ""
"""In place of a slice: nodes' marks, and objects of the cluster as a whole."""


MENDS = frozenset({Do.ENSURE_SLICE, Do.ENSURE_FLEET})


@dataclass(frozen=True, slots=True)
class Looked:
    """What was compared: the terms in each cluster that answered, and the differences."""

    terms: Mapping[str, tuple[SliceTerms, ...]]
    differences: Mapping[str, tuple[Difference, ...]]
    paused: frozenset[str] = frozenset()  # clusters
    nodes: Mapping[str, Collection[str]] = field(default_factory=dict)  # the existing nodes, by cluster

    def places(self) -> Iterator[tuple[Place, SliceTerms, list[Difference]]]:
        """Every slice that was compared, and objects without a slice, with their differences."""
        for cluster, found in sorted(self.differences.items()):
            by_slice: dict[str, list[Difference]] = {}
            for difference in found:
                by_slice.setdefault(difference.slice, []).append(difference)
            fleet = SliceTerms(FLEET, (), paused=cluster in self.paused)
            for terms in (fleet, *self.terms.get(cluster, ())):
                yield (cluster, terms.name), terms, by_slice.pop(terms.name, [])
            for name, rest in sorted(by_slice.items()):  # of an unknown slice: shown, but never repaired
                yield (cluster, name), SliceTerms(name, (), paused=True), rest


@dataclass(frozen=True, slots=True)
class Repair:
    """The last repair of one object, and the number of repairs in a row."""

    terms: SliceTerms
    at: datetime
    count: int

    @property
    def pause(self) -> timedelta:
        return backoff.SLICE_REPAIRS.after(self.count)


@dataclass(slots=True)
class Drift:
    """Known drift of one process; lost in a crash, after which the first differences are repaired unreported."""

    _settled: dict[Place, SliceTerms] = field(default_factory=dict)
    _repairs: dict[tuple[str, str], Repair] = field(default_factory=dict)  # by cluster and object
    _told: set[tuple[EventReason, str, Difference]] = field(default_factory=set)  # still different
    _new: set[tuple[str, str]] = field(default_factory=set)  # nodes, by cluster, without our marks so far
    _marked: set[tuple[str, str]] = field(default_factory=set)  # nodes, by cluster, that have got them since

    def resting(self, looked: Looked, now: datetime) -> frozenset[Place]:
        """Slices not to repair now: repaired just before, or allowed to differ while paused."""
        found = set()
        for place, terms, differences in looked.places():
            is_left = terms.paused and place in self._settled
            if is_left or (differences and all(self._rests(place[0], terms, d, now) for d in differences)):
                found.add(place)
        return frozenset(found)

    def after(
        self, looked: Looked, begun: Iterable[Action], done: Iterable[Action], now: datetime
    ) -> list[Event]:
        """The events once this round's actions were `begun`, and some of them `done`."""
        mending = {(a.cluster, a.slice) for a in begun if a.do in MENDS}
        mended = {(a.cluster, a.slice) for a in done if a.do in MENDS}
        events: list[Event] = []
        standing: set[tuple[EventReason, str, Difference]] = set()
        places = set[Place]()
        for place, terms, differences in looked.places():
            places.add(place)
            drifted = self._drifted(place, terms, differences)
            if not differences:
                self._settled[place] = terms
            elif terms.paused and place not in mending:
                events += self._tell(EventReason.DRIFT_SEEN, place, differences, now)
            elif drifted and place in mending:
                events += self._tell(EventReason.DRIFT, place, drifted, now)
                for difference in drifted if place in mended else ():
                    self._repaired(place[0], terms, difference, now)
            standing |= {
                (told, place[0], d)
                for told in (EventReason.DRIFT, EventReason.DRIFT_SEEN)
                for d in differences
            }
        asked = set(looked.differences)
        self._told = {token for token in self._told if token in standing or token[1] not in asked}
        self._repairs = {
            k: r for k, r in self._repairs.items() if now - r.at < r.pause + backoff.SLICE_REPAIRS.longest
        }
        self._settled = {p: t for p, t in self._settled.items() if p in places or p[0] not in asked}
        self._forget_nodes(looked)
        return events

    def _forget_nodes(self, looked: Looked) -> None:
        """Removed nodes: one that returns with the same name is new."""
        there = {(cluster, f"Node {name}") for cluster, names in looked.nodes.items() for name in names}
        gone = {token for token in self._marked | self._new if token[0] in looked.nodes} - there
        self._marked -= gone
        self._new -= gone

    def _drifted(self, place: Place, terms: SliceTerms, differences: list[Difference]) -> list[Difference]:
        """Foreign changes; of nodes, which come and go, only lost marks."""
        if terms.name == FLEET:
            self._watch_nodes(place[0], differences)
        if self._settled.get(place) != terms:
            return []
        return [
            d
            for d in differences
            if d.found != "outdated"
            and (not _is_node(d) or (d.found == "changed" and (place[0], d.object) in self._marked))
        ]

    def _watch_nodes(self, cluster: str, differences: list[Difference]) -> None:
        now = {(cluster, d.object) for d in differences if _is_node(d)}
        marked = {token for token in self._new if token[0] == cluster} - now
        self._new = (self._new - marked) | (now - self._marked)
        self._marked |= marked

    def _rests(self, cluster: str, terms: SliceTerms, difference: Difference, now: datetime) -> bool:
        last = self._repairs.get((cluster, difference.object))
        return last is not None and last.terms == terms and now - last.at < last.pause

    def _repaired(self, cluster: str, terms: SliceTerms, difference: Difference, now: datetime) -> None:
        key = (cluster, difference.object)
        last = self._repairs.get(key)
        again = last is not None and last.terms == terms
        self._repairs[key] = Repair(terms, now, last.count + 1 if again and last is not None else 1)

    def _tell(
        self, told: EventReason, place: Place, differences: list[Difference], now: datetime
    ) -> Iterator[Event]:
        cluster, slice_ = place
        new = [d for d in differences if (told, cluster, d) not in self._told]
        self._told |= {(told, cluster, d) for d in new}
        what = "put right" if told is EventReason.DRIFT else "not repaired while it is paused"
        for difference in new[:MOST_TOLD]:
            text = f"{cluster}: {_sentence(difference)}; {what}"
            yield Event(now, told, text, cluster=cluster, slice=slice_)
        if len(new) > MOST_TOLD:
            owner = f" of slice {slice_}" if slice_ else ""
            text = f"{cluster}: {len(new) - MOST_TOLD} more objects{owner} differ; {what}"
            yield Event(now, told, text, cluster=cluster, slice=slice_)


def _is_node(difference: Difference) -> bool:
    return difference.slice == FLEET and difference.object.startswith("Node ")


def _sentence(difference: Difference) -> str:
    words = {
        "missing": "was missing",
        "changed": "was changed",
        "extra": "should not exist",
        "outdated": "is not up to date",
    }
    detail = f" ({difference.detail})" if difference.detail else ""
    owner = f" of slice {difference.slice}" if difference.slice else ""
    return f"{difference.object}{owner} {words[difference.found]}{detail}"
