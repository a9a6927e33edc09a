"""The status branch as this controller has it: facts in, commits out, under a term that fences others off."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from reconciler.clusters.port import Stamp
from reconciler.desired import ACCEPTED
from reconciler.events import Event
from reconciler.facts import Facts
from reconciler.settings import Settings
from reconciler.status import (
    EVENTS_KEPT,
    EVENTS_PER_FILE,
    Files,
    event_file,
    event_path,
    event_rows,
    events_from,
    facts_from,
    request_file,
    request_path,
)
from reconciler.store.port import Outcome, Person, Store
from reconciler.store.trailers import parse_stamp
from reconciler.store.turns import WriterSettings
from reconciler.store.writer import TAKE_OVER, BranchWriter, Postponed, Result, Written

log = logging.getLogger(__name__)

LOOKED_BACK = 20
"""Commits that are searched for the last decision: more take-overs in a row are no absence but a crash loop."""
AUTHOR = Person("EGS controller", "controller@egs.dev")


@dataclass(frozen=True, slots=True)
class Loaded:
    """A status commit, read back."""

    facts: Facts
    accepted: Mapping[str, bytes]


class StatusBranch:
    """Reads and writes `egs/status`. One owner.

    A push of ours may land after its outcome was given up: then the tip is ours and `facts` are not of it
    (`is_current` is False). Nothing is written until `reload` has read them.
    """

    def __init__(self, store: Store, settings: Settings, writer: str) -> None:
        self._store = store
        self._branch = settings.status_branch
        budget = WriterSettings(pushes_per_minute=settings.pushes_per_minute)
        self._writer = BranchWriter(store, self._branch, writer, AUTHOR, budget)
        self._tip: str | None = None  # the commit that `facts` are of
        self._read: tuple[str, Loaded] | None = None  # the tip that was read last
        self._files: Files = {}
        self._event_path = ""
        self._event_rows: list[dict[str, str]] = []
        self._event_days: set[str] = set()
        self.facts: Facts | None = None

    @property
    def stamp(self) -> Stamp:
        """What every cluster write of this process bears."""
        return Stamp(self._writer.term, self._writer.seq)

    @property
    def leading(self) -> bool:
        """True while nobody took the branch over."""
        return self._writer.leading

    @property
    def superseded(self) -> bool:
        """True when another process has a later term; False for a stranger's commit."""
        return self._writer.superseded

    @property
    def is_current(self) -> bool:
        """True when `facts` are what the tip of our branch says."""
        return self.facts is not None and self._writer.tip == self._tip

    @property
    def alarms(self) -> tuple[str, ...]:
        """Sentences about commits that nobody should have made."""
        return self._writer.alarms

    def exists(self) -> bool:
        """True when the remote has the branch, as of the last fetch."""
        return self._branch in self._store.tips()

    def read(self, now: datetime) -> Loaded:
        """The tip's facts; no branch: no facts. Costs all files, once for each tip."""
        tip = self._store.tips().get(self._branch)
        if tip is None:
            return Loaded(Facts(now), {})
        if self._read is None or self._read[0] != tip:
            self._read = (tip, self._load(tip))
        return self._read[1]

    def _load(self, tip: str) -> Loaded:
        entries = {e.path: e.oid for e in self._store.diff(None, tip) if e.oid is not None}
        wanted = {p: o for p, o in entries.items() if _is_fact(p)}
        blobs = self._store.read(set(wanted.values()))
        files = {path: blobs[oid] for path, oid in wanted.items()}
        stamp = parse_stamp(self._store.commit(tip).trailers)
        intent = (stamp.intent if stamp is not None else None) or ""
        accepted = {p.removeprefix(ACCEPTED): d for p, d in files.items() if p.startswith(ACCEPTED)}
        return Loaded(facts_from(files, self._decided_at(tip), intent), accepted)

    def _decided_at(self, tip: str) -> datetime:
        """When the tip's facts were decided; taking over decides nothing, so that an absence stays visible."""
        commits = self._store.log(tip, LOOKED_BACK)
        return next((c.at for c in commits if not c.message.startswith(TAKE_OVER)), commits[-1].at)

    def take_over(self, now: datetime) -> Loaded | None:
        """Take the next term and the facts that go with it; None when somebody else was faster."""
        if not self._writer.take_over(now).landed:
            return None
        loaded = self.reload()
        log.info("controller took over term=%d requests=%d", self._writer.term, len(loaded.facts.requests))
        return loaded

    def reload(self) -> Loaded:
        """Read anew what the tip says, which is ours."""
        tip = self._writer.tip
        assert tip is not None
        loaded, at = self._load(tip), self._store.commit(tip).at
        paths = [e.path for e in self._store.diff(None, tip)]
        self._files = {p: b"" for p in paths if not p.startswith(("slices/", "events/"))}
        self._event_days = {p.split("/")[1] for p in paths if p.startswith("events/")}
        self._resume_events(paths, tip, at)
        self.facts, self._tip, self._read = loaded.facts, tip, None
        return loaded

    def _resume_events(self, paths: Iterable[str], tip: str, now: datetime) -> None:
        parts = [p for p in paths if p.startswith(f"events/{now:%Y-%m-%d}/{now:%H}-")]
        last = max(parts, key=_part, default=event_path(now, 0))
        data = self._store.read_path(tip, last)
        self._event_path, self._event_rows = last, events_from(data) if data is not None else []

    def has_told(self, event: Event) -> bool:
        """True when the newest file of events has it."""
        return event_rows([event])[0] in self._event_rows

    def check(self) -> bool:
        """Whether the branch is still ours, by the last fetch."""
        return self._writer.check()

    def write(
        self, facts: Facts, files: Files, events: tuple[Event, ...], summary: str, *, urgent: bool
    ) -> Result:
        """Commit new facts and what happened; on success they are the facts."""
        assert self.facts is not None
        if not self._writer.settled():
            return Written(Outcome.UNKNOWN)
        if self._writer.leading and not self.is_current:
            return Written(Outcome.CONFLICT)  # with a push of our own that came late: its facts count
        changes = self._changes(facts, files)
        rows, event_changes = self._with_events(events, facts.at)
        changes |= event_changes
        result = self._writer.write(changes, facts.intent or None, facts.at, summary, urgent=urgent)
        if result.landed:
            self.facts, self._tip = facts, self._writer.tip
            self._files = files
            if events:
                self._event_path, self._event_rows = rows
                self._event_days |= {f"{facts.at:%Y-%m-%d}"}
                self._event_days -= self._too_old(facts.at)
        elif not isinstance(result, Postponed):
            log.warning("status not committed outcome=%s; planned again in the next cycle", result)
        return result

    def _changes(self, facts: Facts, files: Files) -> dict[str, bytes | None]:
        assert self.facts is not None
        changes: dict[str, bytes | None] = {
            path: data for path, data in files.items() if self._files.get(path) != data
        }
        changes |= dict.fromkeys(self._files.keys() - files.keys())
        old = self.facts.requests
        for key, status in facts.requests.items():
            if old.get(key) is not status and old.get(key) != status:
                changes[request_path(key)] = request_file(key, status)
        changes |= {request_path(key): None for key in old.keys() - facts.requests.keys()}
        return changes

    def _with_events(
        self, events: tuple[Event, ...], now: datetime
    ) -> tuple[tuple[str, list[dict[str, str]]], dict[str, bytes | None]]:
        if not events:
            return (self._event_path, self._event_rows), {}
        path, rows = self._event_path, self._event_rows
        if not path.startswith(f"events/{now:%Y-%m-%d}/{now:%H}-"):
            path, rows = event_path(now, 0), []
        elif len(rows) >= EVENTS_PER_FILE:
            path, rows = event_path(now, _part(path) + 1), []
        rows = [*rows, *event_rows(events)]
        changes: dict[str, bytes | None] = {path: event_file(rows)}
        for day in self._too_old(now):
            changes |= dict.fromkeys(self._paths_of(day))
        return (path, rows), changes

    def _too_old(self, now: datetime) -> set[str]:
        oldest = f"{now - EVENTS_KEPT:%Y-%m-%d}"
        return {day for day in self._event_days if day < oldest}

    def _paths_of(self, day: str) -> list[str]:
        tip = self._store.tips()[self._branch]
        return [e.path for e in self._store.diff(None, tip) if e.path.startswith(f"events/{day}/")]


def _is_fact(path: str) -> bool:
    return path == "controller.yaml" or path.startswith(("slices/", "nodes/", "usage/", ACCEPTED))


def _part(path: str) -> int:
    return int(path.removesuffix(".yaml").rpartition("-")[2])


def with_time(facts: Facts, now: datetime) -> Facts:
    """The same facts, seen at another instant."""
    return replace(facts, at=now)
