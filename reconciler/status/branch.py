"""The status branch of this controller: facts in, commits out, under a term that fences other controllers off.

If controllers sign, the facts are those of the last commit signed by a controller, whatever is on top of it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from reconciler.documents.unread_files import is_request
from reconciler.model.cluster_port import Stamp
from reconciler.model.events import Event
from reconciler.model.facts import Facts
from reconciler.model.statuses import changed
from reconciler.settings import Settings
from reconciler.status.event_files import EventFile, Identity, age, appended, identity
from reconciler.status.history import History
from reconciler.status.kept_states import Bounds
from reconciler.status.parse import UNREADABLE, events_from
from reconciler.status.render import (
    EVENTS_KEPT,
    Files,
    event_path,
    event_rows,
    request_file,
    request_key,
    request_path,
)
from reconciler.status.status_cache import Remembered
from reconciler.status.tree import LOOKED_BACK, Loaded, Tree, Trees
from reconciler.store.believed_commit import Believes
from reconciler.store.branch_writer import BranchWriter
from reconciler.store.document_cache import DocumentCache
from reconciler.store.store_port import Entry, Outcome, Person, Store
from reconciler.store.trailers import parse_stamp
from reconciler.store.write_decision import WriterSettings
from reconciler.store.write_results import Postponed, Result, Written
from schemas.documents.base import Metadata
from schemas.status.gpr_status import GPRRecord

log = logging.getLogger(__name__)

EVENT_FILE = re.compile(r"events/(\d{4}-\d\d-\d\d)/\d\d-(0|[1-9]\d{0,8})\.yaml")
"""Other names below events/ are not ours."""
RECENT_FILES = 3
"""Event files that one push may have filled with events settled after it (see `telling.MOST_UNSURE`)."""
AUTHOR = Person("EGS controller", "controller@egs.dev")


class StatusBranch:
    """Reads and writes `egs/status`. One owner.

    A push may land after it was given up: then `is_current` is False, and nothing is written until `reload`.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        writer: str,
        believes: Believes | None = None,
        cache: DocumentCache | None = None,
        *,
        remembers: bool = False,
    ) -> None:
        """`believes` recognises controllers' commits by their signatures; None: every commit counts.

        `cache` serves the next process. `remembers`: the known state counts if the branch is deleted or reset.
        """
        self._store = store
        self._remembered = Remembered(store, cache)
        self._oids: dict[str, str] = {}  # blobs of records, by path
        self._branch = settings.status_branch
        budget = WriterSettings(pushes_per_minute=settings.pushes_per_minute)
        bounds = Bounds(settings.history, settings.history_bytes)
        history = History(store, settings.history_branch, AUTHOR, bounds, believes)
        self._writer = BranchWriter(
            store,
            self._branch,
            writer,
            AUTHOR,
            budget,
            believes=believes,
            remembers=remembers,
            keeps=history.keep,
        )
        self._belief = self._writer.belief
        self._trees = Trees(store, self._branch, self._belief, self._remembered)
        self._tip: str | None = None  # the commit of `facts`
        self._read: tuple[Tree, Loaded] | None = None  # the head read last
        self._unread: frozenset[str] = frozenset()  # unreadable request files, to be written again
        self._files: Files = {}
        self._stamped: tuple[str, datetime | None] | None = None  # a head, and when its decision was made
        self._event_path = ""
        self._event_rows: list[dict[str, str]] = []
        self._told: frozenset[Identity] = frozenset()  # events of the newest files
        self._event_paths: set[str] = set()
        self._outcome: Outcome | None = None  # of a failed take-over
        self.facts: Facts | None = None
        self.is_shut_out = False
        """The server refused us the branch, and no other controller has committed since: our facts are current."""

    @property
    def stamp(self) -> Stamp:
        """The stamp of every cluster write of this process."""
        return Stamp(self._writer.term, self._writer.seq)

    @property
    def leading(self) -> bool:
        """True until another process takes the branch over."""
        return self._writer.leading

    @property
    def superseded(self) -> bool:
        """True if another process has a later term; False for a foreign commit."""
        return self._writer.superseded

    @property
    def is_current(self) -> bool:
        return self.facts is not None and self._writer.tip == self._tip

    @property
    def put_back(self) -> str:
        """How the branch was damaged when it was last taken over; empty: it was not."""
        return self._writer.put_back

    @property
    def alarms(self) -> tuple[str, ...]:
        """Sentences about foreign commits."""
        return self._writer.alarms

    def exists(self) -> bool:
        """True when the remote has the branch, as of the last fetch."""
        return self._branch in self._store.tips()

    def counting(self) -> str | None:
        """The commit that counts as of the last fetch, usually the head. None: there is none."""
        return self._belief.newest(self._store.tips().get(self._branch))

    def decided_at(self) -> datetime | None:
        """When the last decision was made, by its controller's clock, as of the last fetch; None: unknown."""
        tip = self.counting()
        if tip is None:
            return None
        if self._stamped is None or self._stamped[0] != tip:
            self._stamped = (tip, self._trees.stamped_at(tip))
        return self._stamped[1]

    def complaint(self) -> str | None:
        """What is wrong with the branch's head, as of the last fetch; None: nothing."""
        return self._belief.complaint(self._store.tips().get(self._branch))

    def is_signed(self) -> bool:
        """True if the last controller commit has any signature; it is not verified here."""
        tip = self._store.tips().get(self._branch)
        commits = [] if tip is None else self._belief.history(tip, LOOKED_BACK)
        last = next((c for c in commits if parse_stamp(c.trailers) is not None), None)
        return last is not None and bool(last.signature)

    def has_lost(self) -> bool:
        """True if the branch, as of the last fetch, was deleted or reset behind the known state."""
        return self._belief.lacks(self._store.tips().get(self._branch))

    def intent_of(self, commit: str) -> str | None:
        """The commit of main that a status commit covers; None: unknown."""
        stamp = self._belief.stamp_of(commit)
        return None if stamp is None else stamp.intent

    def forget(self) -> None:
        """Forgets the known state of a branch that lost it."""
        self._belief.forget()

    def adopt(self) -> None:
        """An operator accepts the branch as it is, even if others wrote it."""
        self._belief.adopt(self._store.tips().get(self._branch))

    def skim(self) -> None:
        """From now on `read` looks at no finished request: for readers who need only the others."""
        self._remembered.skims = True

    def read(self, now: datetime) -> Loaded:
        """The facts that count; without a branch, no facts. Reads all files the first time, then only changes."""
        tip = self.counting()
        if tip is None:
            return Loaded(Facts(now), {})
        if self._read is None or self._read[0].tip != tip:
            tree = self._trees.at(tip, None if self._read is None else self._read[0])
            self._read = (tree, self._trees.loaded(tree))
            self._remembered.tidy(tree.oids.values())
        return self._read[1]

    @property
    def tree(self) -> Tree | None:
        """The files behind the last `read`; None: none were read."""
        return None if self._read is None else self._read[0]

    def take_over(self, now: datetime) -> Loaded | None:
        """Takes the next term and its facts; None if another controller was faster."""
        written = self._writer.take_over(now)
        refused = written.outcome is Outcome.REFUSED
        self.is_shut_out = refused and self.facts is not None and self.counting() in (None, self._tip)
        if not written.landed:
            if self._outcome is not written.outcome:
                log.warning(
                    "status branch not taken outcome=%s; check the permission to push it", written.outcome
                )
            self._outcome = written.outcome
            return None
        self._outcome = None
        loaded = self.reload()
        log.info("controller took over term=%d requests=%d", self._writer.term, len(loaded.facts.requests))
        return loaded

    def rise(self, now: datetime, above: int) -> Loaded | None:
        """Takes a term above `above`, used in a cluster, while the branch is ours; None: it no longer is."""
        written = self._writer.rise(now, above)
        return self.reload() if written is not None and written.landed else None

    def reload(self) -> Loaded:
        tip = self._writer.tip
        assert tip is not None
        last = None if self._read is None else self._read[0]
        tree, at = self._trees.at(tip, last), self._store.commit(tip).at
        loaded = self._trees.loaded(tree)
        entries = {e.path: e for e in self._store.diff(None, tip)}
        self._files = {p: b"" for p in entries if not (is_request(p) or p.startswith("events/"))}
        self._event_paths = {p for p in entries if EVENT_FILE.fullmatch(p)}
        alarms = (*loaded.alarms, *self._resume_events(entries, at))
        self._unread = frozenset(filter(is_request, tree.unread))
        self.facts, self._tip, self._read = loaded.facts, tip, None
        self._oids = dict(tree.oids)
        self._remembered.retain(self._oids.values())
        return replace(loaded, alarms=alarms)

    def _resume_events(self, entries: Mapping[str, Entry], now: datetime) -> tuple[str, ...]:
        """Continues the newest event file, or starts a new one if it is unreadable, with an alarm."""
        recent = sorted(self._event_paths, key=age)[-RECENT_FILES:]
        self._told = self._told_in({path: entries[path] for path in recent})
        self._event_path, self._event_rows = "", []
        parts = [path for path in self._event_paths if path.startswith(_hour(now))]
        if not parts:
            return ()
        last = max(parts, key=age)
        try:
            self._event_rows = events_from(self._trees.contents({last: entries[last]})[last])
            self._event_path = last
        except (KeyError, *UNREADABLE):
            return (f"branch {self._branch}: {last} cannot be read; events continue in the next file",)
        return ()

    def _told_in(self, files: Mapping[str, Entry]) -> frozenset[Identity]:
        """Events of these files, as far as readable."""
        found: set[Identity] = set()
        for data in self._trees.contents(files).values():
            with suppress(*UNREADABLE):
                found.update(map(identity, events_from(data)))
        return frozenset(found)

    def has_told(self, event: Event) -> bool:
        """True if one of the newest event files has it."""
        (wanted,) = event_rows([event])
        return identity(wanted) in self._told

    def check(self) -> bool:
        """True if the branch is still ours, by the last fetch."""
        return self._writer.check()

    def write(
        self, facts: Facts, files: Files, events: tuple[Event, ...], summary: str, *, urgent: bool
    ) -> Result:
        """Commits new facts and events; on success they are the current facts."""
        assert self.facts is not None
        if not self._writer.settled():
            return Written(Outcome.UNKNOWN)
        if self._writer.leading and not self.is_current:
            return Written(Outcome.CONFLICT)  # an earlier push of ours landed late: its facts count
        changes = self._changes(facts, files)
        written = self._event_files(event_rows(events, facts, self.facts), facts.at)
        changes |= {file.path: file.data for file in written}
        changes |= dict.fromkeys(self._too_old(facts.at) if written else ())
        result = self._writer.write(changes, facts.intent or None, facts.at, summary, urgent=urgent)
        if result.landed:
            self._remember(facts)
            self.facts, self._tip = facts, self._writer.tip
            self._files, self._unread = files, frozenset()
            if events:
                self._event_path, self._event_rows = written[-1].path, [*written[-1].rows]
                self._told = frozenset(identity(row) for file in written for row in file.rows)
                self._event_paths |= {file.path for file in written}
                self._event_paths -= self._too_old(facts.at)
        elif not isinstance(result, Postponed):
            log.warning("status not committed outcome=%s; planning again in the next cycle", result)
        return result

    def tell(self, events: tuple[Event, ...], at: datetime, summary: str) -> Result:
        assert self.facts is not None
        return self.write(replace(self.facts, at=at), self._files, events, summary, urgent=True)

    def note(self, notes: Mapping[str, str]) -> None:
        """Keeps notes on finished requests' files for the next process, by `slice/name`."""
        oids = {**({} if self._read is None else self._read[0].oids), **self._oids}
        paths = {request_path(key): note for key, note in notes.items()}
        self._remembered.note({oids[path]: note for path, note in paths.items() if path in oids})

    def _remember(self, facts: Facts) -> None:
        """Caches what was written, so that the next process need not read it; drops what that replaced."""
        assert self.facts is not None
        fresh: dict[str, GPRRecord] = {}
        replaced: set[str | None] = set()
        for key in changed(self.facts.requests, facts.requests):
            status, path = facts.requests.get(key), request_path(key)
            oid = None if status is None else self._writer.blob(path)
            if status is None or oid is not None:
                replaced.add(self._oids.pop(path, None))
            if status is not None and oid is not None:
                self._oids[path] = oid
                fresh[oid] = GPRRecord(metadata=Metadata(name=key.partition("/")[2]), status=status)
        self._remembered.keep(fresh)
        self._remembered.forget({oid for oid in replaced.difference(self._oids.values()) if oid is not None})

    def _changes(self, facts: Facts, files: Files) -> dict[str, bytes | None]:
        assert self.facts is not None
        changes: dict[str, bytes | None] = {
            path: data for path, data in files.items() if self._files.get(path) != data
        }
        changes |= dict.fromkeys(self._files.keys() - files.keys())
        changes |= dict.fromkeys(self._unread)  # written again below, if their requests are known
        old, unread = self.facts.requests, {request_key(path) for path in self._unread}
        for key in sorted(changed(old, facts.requests) | unread):
            status = facts.requests.get(key)
            if status is None:
                changes |= {request_path(key): None} if key in old else {}
            elif key in unread or old.get(key) != status:
                changes[request_path(key)] = request_file(key, status)
        return changes

    def _event_files(self, fresh: list[dict[str, str]], now: datetime) -> tuple[EventFile, ...]:
        path, rows = self._event_path, self._event_rows
        if not path.startswith(_hour(now)):
            path, rows = self._next_file(now), []
        return appended(path, rows, fresh) if fresh else ()

    def _next_file(self, now: datetime) -> str:
        """A new file name for that hour: clocks go back, and existing events stay."""
        parts = [age(path)[2] for path in self._event_paths if path.startswith(_hour(now))]
        return event_path(now, max(parts, default=-1) + 1)

    def _too_old(self, now: datetime) -> set[str]:
        oldest = f"events/{now - EVENTS_KEPT:%Y-%m-%d}/"
        return {path for path in self._event_paths if path < oldest}


def _hour(now: datetime) -> str:
    return f"events/{now:%Y-%m-%d}/{now:%H}-"
