"""The controller's commits as a reader uses them to act: facts, documents in force, events, the stamp.

Never goes back: if the status branch is reset, replaced or deleted, the last good state stays in force, so that
its strict ends still happen and nothing else does.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from reconciler.documents.in_force import Desired
from reconciler.documents.unread_files import recorded
from reconciler.model.cluster_port import Stamp
from reconciler.model.events import Event, EventReason
from reconciler.model.facts import Facts, Wanted
from reconciler.settings import Settings
from reconciler.status.branch import EVENT_FILE, StatusBranch
from reconciler.status.event_files import age
from reconciler.status.parse import OWN_BYTES, UNREADABLE, events_from
from reconciler.status.tree import Loaded, Tree
from reconciler.store.believed_commit import Believes
from reconciler.store.document_cache import DocumentCache
from reconciler.store.store_port import REGULAR_MODE, Store
from reconciler.store.trailers import parse_stamp
from reconciler.telling.cluster_notes import TOLD_AGAIN
from schemas.errors import Fault, UserError
from schemas.reading.units import parse_instant
from schemas.rules.problems import Problem
from schemas.status.judgements import TrustRecord

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Decided:
    stamp: Stamp
    facts: Facts
    wanted: Wanted


@dataclass(slots=True)
class _Tip:
    """The status commit that counts."""

    oid: str
    stamp: Stamp
    loaded: Loaded


class Committed:
    """Reads `main` and the status branch as last fetched. One owner."""

    def __init__(
        self,
        store: Store,
        cache: DocumentCache,
        settings: Settings,
        writer: str,
        *,
        believes: Believes | None = None,
    ) -> None:
        """`believes` recognises controllers' commits by their signatures; None: every commit with a stamp counts."""
        self._store, self._cache, self._settings = store, cache, settings
        self._branch = StatusBranch(store, settings, writer, believes)
        self._desired = Desired(store, cache)
        self._accepted: Mapping[str, bytes] | None = None
        self._tip: _Tip | None = None
        self._odd: str | None = None  # the ignored head, as last logged; empty: none
        self._events = _Events(store)

    def read(self, now: datetime) -> Decided | None:
        """The last decision that counts; None: there never was one. Raises UserError `NoProject`."""
        self._advance(now)
        if self._tip is None:
            return None
        facts = self._tip.loaded.facts
        self._follow_main(self._tip.loaded)
        return Decided(self._tip.stamp, facts, self._desired.wanted(facts))

    @property
    def tip(self) -> str:
        """The status commit that counts, as of the last `read`; empty: there is none."""
        return "" if self._tip is None else self._tip.oid

    @property
    def tree(self) -> Tree | None:
        """The status files as of the last `read`; None: there is no status."""
        return self._branch.tree

    def documents(self) -> Desired:
        """A copy of the documents as of the last `read`. O(documents)."""
        return self._desired.over(self._store)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """All problems of main as it was followed."""
        return self._desired.problems

    def news(self, now: datetime) -> list[Event]:
        """Events committed since the last call; the first call returns recent ones only."""
        return [] if self._tip is None else self._events.since(self._tip.oid, now)

    def _advance(self, now: datetime) -> None:
        """Advances to the branch's head, if it is a controller's commit and not older than the last one."""
        tip = self._branch.counting()
        if (complaint := self._branch.complaint()) is not None:
            self._complain(self._store.tips().get(self._settings.status_branch) or "", complaint)
        if tip is None or (self._tip is not None and tip == self._tip.oid):
            return
        found = parse_stamp(self._store.commit(tip).trailers)
        stamp = None if found is None else Stamp(found.term, found.seq)
        if stamp is None or (self._tip is not None and stamp < self._tip.stamp):
            old = "it is older than what was done already"
            self._complain(tip, "it has no stamp of a controller" if stamp is None else old)
            return
        self._tip = _Tip(tip, stamp, self._branch.read(now))

    def _complain(self, tip: str, why: str) -> None:
        if self._odd != tip:
            log.warning("status not followed tip=%s why=%s; protect the branch", tip[:12], why)
        self._odd = tip

    def _follow_main(self, loaded: Loaded) -> None:
        """The decision's documents, and valid later changes on main; of a judged main only what was judged."""
        trust = loaded.facts.trust
        if loaded.accepted != self._accepted:
            # A document broken on main counts as the controller keeps it, whatever version we have seen.
            self._desired = Desired(self._store, self._cache)
            self._desired.repository.is_recorded = recorded(loaded.facts.requests)
            self._desired.restore(loaded.accepted)
            if loaded.facts.intent:
                self._update(loaded.facts.intent, trust)
            self._accepted = loaded.accepted
        self._desired.repository.is_recorded = recorded(loaded.facts.requests)
        if trust is not None or self._settings.trust.level != "none":
            self._update(trust.main if trust is not None else loaded.facts.intent, trust)
            return
        main = self._store.tips().get(self._settings.main_branch)
        if main is not None and self._goes_on(main):
            self._update(main, None)

    def _goes_on(self, main: str) -> bool:
        """True if main is built on the followed commit; the controller reports a rewritten one."""
        followed = self._desired.commit
        try:
            return followed is None or followed == main or self._store.is_ancestor(followed, main)
        except Fault as error:
            log.debug("main not followed reason=%s; its last good commit stays in force", error.reason)
            return False

    def _update(self, commit: str, trust: TrustRecord | None) -> None:
        try:
            if commit:
                self._desired.update(commit, trust)
        except (Fault, UserError) as error:
            log.debug("main not read reason=%s; its last good commit stays in force", error.reason)


@dataclass(slots=True)
class _Events:
    """The event files and how far each was read."""

    store: Store
    _tip: str | None = None
    _read: dict[str, int] = field(default_factory=dict)  # rows read, by file

    def since(self, tip: str, now: datetime) -> list[Event]:
        """Events on the branch at `tip` that are new since the last call."""
        if tip == self._tip:
            return []
        try:
            entries = self.store.diff(self._tip, tip)
        except Fault:  # the old head is gone: its history was replaced
            entries = self.store.diff(None, tip)
        self._tip, found = tip, list[Event]()
        oldest = f"events/{now - TOLD_AGAIN:%Y-%m-%d/%H}"
        plain = {e.path: e.oid for e in entries if e.mode == REGULAR_MODE and e.oid is not None}
        self._read = {path: rows for path, rows in self._read.items() if path >= oldest}
        told = (path for path in plain if EVENT_FILE.fullmatch(path) and path >= oldest)
        for path in sorted(told, key=age):
            oid = plain[path]
            rows = self._rows(oid)
            found += _events_in(rows[self._read.get(path, 0) :])
            self._read[path] = len(rows)
        return [event for event in found if now - event.at <= TOLD_AGAIN]

    def _rows(self, oid: str) -> list[dict[str, str]]:
        if self.store.sizes([oid])[oid] > OWN_BYTES:
            return []
        try:
            return events_from(self.store.read([oid])[oid])
        except UNREADABLE:
            return []


def _events_in(rows: list[dict[str, str]]) -> Iterator[Event]:
    for row in rows:
        texts = {name: str(row.get(name, "")) for name in ("message", "request", "cluster", "node", "slice")}
        try:
            yield Event(parse_instant(row.get("at")), EventReason(row.get("reason", "")), **texts)
        except ValueError:
            continue  # an event of a later release that we do not know
