"""Rules of routes: a route says whom it notifies, of which events, when, and in what form."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from datetime import timedelta
from difflib import get_close_matches
from functools import cache, lru_cache
from itertools import islice
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from schemas.documents.base import Document
from schemas.documents.notifications import Profile, QuietHours, Route
from schemas.documents.project import Project
from schemas.documents.slice import Slice
from schemas.reading.strict_yaml import Path
from schemas.reading.units import format_duration
from schemas.rules.event_reasons import TEMPLATE_WORDS, WARNINGS, EventReason
from schemas.rules.findings import Finding
from schemas.rules.view import View, profile_key, profile_path

LONGEST_DIGEST = timedelta(days=7)
"""A longer digest would report events too late."""
MOST = 50
"""Most findings per document; after fixing fifty people run the check again."""
MOST_GUESSES = 5
"""Findings that suggest the nearest name; searching for it is slow."""

AT: Path = ("spec", "notifications")
_ZONE = re.compile(r"[A-Za-z0-9_+-]{1,32}(/[A-Za-z0-9_+-]{1,32}){0,2}")
_WORD = re.compile(r"\$(?:\$|([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]{0,63})\})")
"""As `string.Template` reads it: `$$` is a dollar, and a `$` without a name stands for itself."""


class _Unknown(NamedTuple):
    """An unknown name, and the known ones."""

    rule: str
    message: str
    at: Path
    name: str
    known: Callable[[], Collection[str]]
    otherwise: str

    def finding(self, file: str, *, guessed: bool) -> Finding:
        """With the nearest known name as advice, if it is searched for and found."""
        near = _near(self.name, self.known()) if guessed else None
        return Finding(
            file, self.rule, self.message, self.at, f"did you mean {near}?" if near else self.otherwise
        )


def routes_of(document: Document) -> tuple[Route, ...]:
    """The routes in a document."""
    return document.spec.notifications if isinstance(document, Profile | Project | Slice) else ()


def inside_routes(file: str, document: Document) -> Iterator[Finding]:
    """Problems of a document's routes by themselves."""
    routes = routes_of(document)
    unknown = islice((each for i, route in enumerate(routes) for each in _unknown(route, (*AT, i))), MOST)
    for n, each in enumerate(unknown):
        yield each.finding(file, guessed=n < MOST_GUESSES)
    seen: set[str] = set()
    for i, route in enumerate(routes):
        if route.name in seen:
            yield Finding(file, "DuplicateRoute", f"several routes are named {route.name}", (*AT, i, "name"))
        seen.add(route.name)
        yield from _of_times(file, route, (*AT, i))


def _of_times(file: str, route: Route, at: Path) -> Iterator[Finding]:
    if route.digest is not None and route.digest > LONGEST_DIGEST:
        message = f"messages would wait for {format_duration(route.digest)}"
        yield Finding(file, "DigestTooLong", message, (*at, "digest"))
    if route.quiet is not None and route.quiet.begin == route.quiet.end:
        message = f"quiet hours begin and end at {route.quiet.begin}: all day, or never"
        yield Finding(file, "QuietWithoutLength", message, (*at, "quiet", "end"))


def _unknown(route: Route, at: Path) -> Iterator[_Unknown]:
    for field, names in (("events", route.events), ("urgent", route.urgent)):
        for j, name in enumerate(names):
            if name not in _REASONS:
                message = f"no event has the reason {name[:64]!r}"
                yield _Unknown(
                    "UnknownEvent", message, (*at, field, j), name, lambda: _REASONS, _WHERE_REASONS
                )
    if route.quiet is not None:
        yield from _unknown_zone(route.quiet, (*at, "quiet", "timeZone"))
    for field, text in (("title", route.template.title), ("body", route.template.body)):
        word = next((word for word in _words(text) if word not in TEMPLATE_WORDS), None)
        if word is not None:
            message = f"${word[:64]} is not a field of an event"
            at_text = (*at, "template", field)
            yield _Unknown("UnknownWord", message, at_text, word, lambda: TEMPLATE_WORDS, _WORDS)


_REASONS = (*EventReason, WARNINGS)
_WHERE_REASONS = (
    f"docs/reference/events.md lists the reasons of events; {WARNINGS} stands for all that ask for action"
)
_WORDS = f"write one of {', '.join(f'${word}' for word in TEMPLATE_WORDS)}; $$ is a dollar"


def _unknown_zone(quiet: QuietHours, at: Path) -> Iterator[_Unknown]:
    if not is_zone(quiet.time_zone):
        message = f"there is no time zone {quiet.time_zone[:64]!r}"
        advice = "write a name of the IANA database like Europe/Berlin, or UTC"
        yield _Unknown("UnknownTimeZone", message, at, quiet.time_zone, _zones, advice)


@cache
def _zones() -> tuple[str, ...]:
    return tuple(sorted(available_timezones()))


@lru_cache(maxsize=1024)
def is_zone(name: str) -> bool:
    """Whether the time zone is known. Names that could leave the folder of zones are refused."""
    if name == "UTC":
        return True
    if not _ZONE.fullmatch(name):
        return False
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return False
    return True


def _words(text: str) -> Iterator[str]:
    for found in _WORD.finditer(text):
        word = found[1] or found[2]
        if word:
            yield word


def _near(name: str, known: Collection[str]) -> str | None:
    by_lower = {each.lower(): each for each in known}
    near = get_close_matches(name[:64].lower(), by_lower, 1, 0.6)
    return by_lower[near[0]] if near else None


def across_routes(file: str, document: Document, view: View) -> Iterator[Finding]:
    """Problems of a document's routes in relation to other documents."""
    for i, route in enumerate(routes_of(document)):
        yield from of_slices(file, route.slices, (*AT, i, "slices"), view)


def of_slices(file: str, names: Collection[str], at: Path, view: View) -> Iterator[Finding]:
    """Names of slices that do not exist."""
    for j, name in enumerate(names):
        if view.no_slice(name):
            yield Finding(file, "UnknownSlice", f"there is no slice {name}", (*at, j))


def of_profile(file: str, profile: Profile, view: View) -> Iterator[Finding]:
    """A person has only one profile."""
    own = profile_path(profile.metadata.name)
    others = [path for path in view.parts(profile_key(profile.spec.email)) if path != own]
    if others:
        message = f"{profile.spec.email} also has the profile {others[0]}"
        yield Finding(file, "DuplicateProfile", message, ("spec", "email"))
