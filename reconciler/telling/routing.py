"""Which routes get an event. Pure.

The project's routes see every event, a slice's those of the slice and its requests, a person's those of the
slices where the person is a member or owner: as a person, an admin only gets events of slices that list the
admin. Events about no slice, such as those of a node or the repository, go to the project's routes only. Deny
by default: a route gets an event only if a rule here allows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from reconciler.model.events import Event, EventReason
from reconciler.model.facts import Wanted
from schemas.documents.notifications import Route
from schemas.status.outbox import Entry

Scope = Literal["project", "slice", "person"]

OWN = frozenset({EventReason.ROUTE_SILENT, EventReason.NOTICES_LOST})
"""Events about messages are not sent by routes, so that no route reports its own failure."""
WARNINGS = "warnings"
"""Matches every event that is a warning."""


@dataclass(frozen=True, slots=True)
class Way:
    """One route, and its owner."""

    scope: Scope
    owner: str  # the slice or the profile; empty: the project
    route: Route

    @property
    def key(self) -> str:
        """The name of its outbox: `project.<route>`, `slice.<slice>.<route>`, `person.<name>.<route>`."""
        return ".".join(filter(None, (self.scope, self.owner, self.route.name)))

    @property
    def shown(self) -> str:
        return self.key.replace(".", "/")

    @property
    def secret(self) -> str:
        """The operator's file with its addresses: no route can use another owner's."""
        return ".".join(filter(None, (self.scope, self.owner, self.route.secret)))


@dataclass(slots=True)
class Ways:
    """Every route in force. Made for each look, because it caches the slices' people."""

    wanted: Wanted
    _by_key: dict[str, Way] = field(default_factory=dict)
    _of_project: list[Way] = field(default_factory=list)
    _of_slice: dict[str, list[Way]] = field(default_factory=dict)
    _of_person: dict[str, list[Way]] = field(default_factory=dict)  # by address
    _people: dict[str, frozenset[str]] = field(default_factory=dict)  # addresses, by slice

    def __post_init__(self) -> None:
        """Costs the slices and the profiles; those without routes cost little."""
        self._of_project = self._add("project", "", self.wanted.project.notifications)
        for name, slice_ in self.wanted.slices.items():
            self._of_slice[name] = self._add("slice", name, slice_.notifications)
        for name, profile in self.wanted.profiles.items():
            if profile.notifications:
                ways = self._add("person", name, profile.notifications)
                self._of_person[profile.email] = [*self._of_person.get(profile.email, ()), *ways]

    def get(self, key: str) -> Way | None:
        """The route of that outbox; None: it was removed."""
        return self._by_key.get(key)

    def of(self, entry: Entry) -> Iterator[Way]:
        """The routes that get an event."""
        about = entry.about
        found = [*self._of_project, *self._of_slice.get(about, ())]
        for address in sorted(self._people_of(about) & self._of_person.keys()):
            found += self._of_person[address]
        return (way for way in found if _asks_for(way.route, entry))

    def may_see(self, way: Way, entry: Entry) -> bool:
        """True if the route may see the event, whatever it asks for."""
        if way.scope == "project":
            return True
        if way.scope == "slice":
            return entry.about == way.owner
        profile = self.wanted.profiles.get(way.owner)
        return profile is not None and profile.email in self._people_of(entry.about)

    def _add(self, scope: Scope, owner: str, routes: Iterable[Route]) -> list[Way]:
        ways = [Way(scope, owner, route) for route in routes]
        return [self._by_key.setdefault(way.key, way) for way in ways if way.key not in self._by_key]

    def _people_of(self, name: str) -> frozenset[str]:
        if name not in self._people:
            slice_ = self.wanted.slices.get(name)
            self._people[name] = frozenset(() if slice_ is None else (p.email for p in slice_.people))
        return self._people[name]


def _asks_for(route: Route, entry: Entry) -> bool:
    if route.slices and entry.about not in route.slices:
        return False
    return not route.events or names(route.events, entry)


def names(words: Iterable[str], entry: Entry) -> bool:
    """True if a list of reasons, or the word `warnings` in it, matches that event."""
    return any(word == entry.reason or (word == WARNINGS and entry.type == "Warning") for word in words)


def grouped(entries: Iterable[Entry], ways: Ways) -> Mapping[str, tuple[Way, list[Entry]]]:
    """Events by outbox, in order."""
    found: dict[str, tuple[Way, list[Entry]]] = {}
    for entry in entries:
        for way in ways.of(entry):
            found.setdefault(way.key, (way, []))[1].append(entry)
    return found


def is_own(event: Event) -> bool:
    return event.reason in OWN
