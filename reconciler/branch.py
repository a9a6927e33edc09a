"""The status branch as this controller has it: facts in, commits out, under a term that fences others off.

Where controllers sign, facts are those of the last commit that a controller signed, whatever lies on top of it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from reconciler.clusters.port import Stamp
from reconciler.desired import ACCEPTED
from reconciler.events import Event
from reconciler.facts import Facts
from reconciler.settings import Settings
from reconciler.status import (
    EVENTS_KEPT,
    EVENTS_PER_FILE,
    OWN_BYTES,
    UNREADABLE,
    Files,
    Record,
    event_file,
    event_path,
    event_rows,
    events_from,
    facts_of,
    record_from,
    request_file,
    request_path,
)
from reconciler.store.believing import Believes
from reconciler.store.port import REGULAR_MODE, Entry, Outcome, Person, Store
from reconciler.store.trailers import parse_stamp
from reconciler.store.turns import WriterSettings
from reconciler.store.writer import TAKE_OVER, BranchWriter, Postponed, Result, Written
from schemas.errors import Fault

log = logging.getLogger(__name__)

LOOKED_BACK = 20
"""Commits that are searched for the last decision: more take-overs in a row are no absence but a crash loop."""
HISTORY = 50
"""Commits that are searched for the last readable version of a request's file."""
MOST_ALARMS = 20
"""Unreadable files that are told one by one."""
EVENT_FILE = re.compile(r"events/(\d{4}-\d\d-\d\d)/\d\d-(0|[1-9]\d{0,8})\.yaml")
"""Other names below events/ are not ours."""
AUTHOR = Person("EGS controller", "controller@egs.dev")


@dataclass(frozen=True, slots=True)
class Loaded:
    """A status commit, read back."""

    facts: Facts
    accepted: Mapping[str, bytes]
    alarms: tuple[str, ...] = ()  # sentences about files that could not be read


@dataclass(frozen=True, slots=True)
class _Tree:
    """The files of facts at one tip, each read once."""

    tip: str
    records: Mapping[str, Record]
    accepted: Mapping[str, bytes]
    unread: frozenset[str]


class StatusBranch:
    """Reads and writes `egs/status`. One owner.

    A push of ours may land after its outcome was given up: then the tip is ours and `facts` are not of it
    (`is_current` is False). Nothing is written until `reload` has read them.
    """

    def __init__(
        self, store: Store, settings: Settings, writer: str, believes: Believes | None = None
    ) -> None:
        """`believes` tells commits of controllers by their signatures; None: every commit counts."""
        self._store = store
        self._branch = settings.status_branch
        budget = WriterSettings(pushes_per_minute=settings.pushes_per_minute)
        self._writer = BranchWriter(store, self._branch, writer, AUTHOR, budget, believes=believes)
        self._belief = self._writer.belief
        self._tip: str | None = None  # the commit that `facts` are of
        self._read: tuple[_Tree, Loaded] | None = None  # the tip that was read last
        self._unread: frozenset[str] = frozenset()  # request files that wait to be written anew
        self._files: Files = {}
        self._event_path = ""
        self._event_rows: list[dict[str, str]] = []
        self._event_days: set[str] = set()
        self._outcome: Outcome | None = None  # of a take-over that failed
        self.facts: Facts | None = None
        self.is_shut_out = False
        """The server refused us the branch, and nobody committed since: our facts are the last there are."""

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

    def counting(self) -> str | None:
        """The commit that counts, as of the last fetch: mostly the tip. None: there is none."""
        return self._belief.newest(self._store.tips().get(self._branch))

    def complaint(self) -> str | None:
        """What is wrong with the branch's tip, as of the last fetch; None: nothing."""
        return self._belief.complaint(self._store.tips().get(self._branch))

    def is_signed(self) -> bool:
        """True when the last commit that a controller made of it bears a signature, whosever; nothing is verified."""
        tip = self._store.tips().get(self._branch)
        commits = [] if tip is None else self._belief.history(tip, LOOKED_BACK)
        last = next((c for c in commits if parse_stamp(c.trailers) is not None), None)
        return last is not None and bool(last.signature)

    def adopt(self) -> None:
        """A person says that the branch counts as it is, by whomever it was written."""
        self._belief.adopt(self._store.tips().get(self._branch))

    def read(self, now: datetime) -> Loaded:
        """The facts that count; no branch: no facts. Costs all files at first, then what changed."""
        tip = self.counting()
        if tip is None:
            return Loaded(Facts(now), {})
        if self._read is None or self._read[0].tip != tip:
            tree = self._tree(tip, None if self._read is None else self._read[0])
            self._read = (tree, self._loaded(tree))
        return self._read[1]

    def _tree(self, tip: str, last: _Tree | None) -> _Tree:
        """The files of facts at `tip`, those that are as in `last` not read again."""
        try:
            entries = self._store.diff(last.tip if last else None, tip)
        except Fault:
            if last is None:
                raise
            return self._tree(tip, None)  # the old tip is gone: histories are replaced now and then
        changed = {e.path: e for e in entries if _is_fact(e.path)}
        before = last or _Tree(tip, {}, {}, frozenset())
        records = {p: r for p, r in before.records.items() if p not in changed}
        accepted = {p: d for p, d in before.accepted.items() if ACCEPTED + p not in changed}
        present = {p: e for p, e in changed.items() if e.oid is not None}
        data = self._contents(present)
        unread = {p for p in before.unread if p not in changed} | (present.keys() - data.keys())
        for path, content in data.items():
            if path.startswith(ACCEPTED):
                accepted[path.removeprefix(ACCEPTED)] = content
            elif (record := _record(path, content)) is not None:
                records[path] = record
            else:
                unread.add(path)
        for path in sorted(p for p in unread & changed.keys() if p.startswith(("slices/", "approvals/"))):
            if (earlier := self._earlier(tip, path)) is not None:
                records[path] = earlier
        return _Tree(tip, records, accepted, frozenset(unread))

    def _contents(self, entries: Mapping[str, Entry]) -> dict[str, bytes]:
        """What is a plain file and no larger than ours are."""
        plain = {p: e.oid for p, e in entries.items() if e.oid is not None and e.mode == REGULAR_MODE}
        sizes = self._store.sizes(set(plain.values()))
        blobs = self._store.read({oid for oid, size in sizes.items() if size <= OWN_BYTES})
        return {path: blobs[oid] for path, oid in plain.items() if oid in blobs}

    def _earlier(self, tip: str, path: str) -> Record | None:
        """The last readable version of a file that somebody broke."""
        for commit in filter(self._belief.counts, self._belief.history(tip, HISTORY)[1:]):
            data = self._store.read_path(commit.oid, path)
            if data is not None and (record := _record(path, data)) is not None:
                return record
        return None

    def _loaded(self, tree: _Tree) -> Loaded:
        stamp = parse_stamp(self._store.commit(tree.tip).trailers)
        intent = (stamp.intent if stamp is not None else None) or ""
        alarms = [
            f"branch {self._branch}: {path} cannot be read; {_instead(path, tree)}"
            for path in sorted(tree.unread)
        ]
        more = len(alarms) - MOST_ALARMS
        if more > 0:
            alarms = [*alarms[:MOST_ALARMS], f"branch {self._branch}: {more} more files cannot be read"]
        facts = facts_of(tree.records, self._decided_at(tree.tip), intent)
        return Loaded(facts, tree.accepted, tuple(alarms))

    def _decided_at(self, tip: str) -> datetime:
        """When the tip's facts were decided; taking over decides nothing, so that an absence stays visible."""
        commits = [c for c in self._belief.history(tip, LOOKED_BACK) if self._belief.counts(c)]
        return next((c.at for c in commits if not c.message.startswith(TAKE_OVER)), commits[-1].at)

    def take_over(self, now: datetime) -> Loaded | None:
        """Take the next term and the facts that go with it; None when somebody else was faster."""
        written = self._writer.take_over(now)
        refused = written.outcome is Outcome.REFUSED
        self.is_shut_out = refused and self.facts is not None and self.counting() in (None, self._tip)
        if not written.landed:
            if self._outcome is not written.outcome:
                log.warning(
                    "status branch not taken outcome=%s; check the rights to push it", written.outcome
                )
            self._outcome = written.outcome
            return None
        self._outcome = None
        loaded = self.reload()
        log.info("controller took over term=%d requests=%d", self._writer.term, len(loaded.facts.requests))
        return loaded

    def reload(self) -> Loaded:
        """Read anew what the tip says, which is ours."""
        tip = self._writer.tip
        assert tip is not None
        tree, at = self._tree(tip, None), self._store.commit(tip).at
        loaded = self._loaded(tree)
        entries = {e.path: e for e in self._store.diff(None, tip)}
        self._files = {p: b"" for p in entries if not p.startswith(("slices/", "events/"))}
        self._event_days = {found[1] for p in entries if (found := EVENT_FILE.fullmatch(p))}
        alarms = (*loaded.alarms, *self._resume_events(entries, at))
        self._unread = frozenset(p for p in tree.unread if p.startswith("slices/"))
        self.facts, self._tip, self._read = loaded.facts, tip, None
        return Loaded(loaded.facts, loaded.accepted, alarms)

    def _resume_events(self, entries: Mapping[str, Entry], now: datetime) -> tuple[str, ...]:
        """Go on in the newest file of events, or beside it when it cannot be read; that is an alarm."""
        hour = f"events/{now:%Y-%m-%d}/{now:%H}-"
        parts = [p for p in entries if p.startswith(hour) and EVENT_FILE.fullmatch(p)]
        self._event_path, self._event_rows = event_path(now, 0), []
        if not parts:
            return ()
        last = max(parts, key=_part)
        try:
            self._event_rows = events_from(self._contents({last: entries[last]})[last])
            self._event_path = last
        except (KeyError, *UNREADABLE):
            self._event_path = event_path(now, _part(last) + 1)
            return (f"branch {self._branch}: {last} cannot be read; events go on in the next file",)
        return ()

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
            self._files, self._unread = files, frozenset()
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
        changes |= dict.fromkeys(self._unread)  # written anew below where their requests are known
        old = {k: s for k, s in self.facts.requests.items() if request_path(k) not in self._unread}
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
        tip = self._writer.tip
        assert tip is not None, "a leader has a branch"
        return [e.path for e in self._store.diff(None, tip) if e.path.startswith(f"events/{day}/")]


FACT = re.compile(
    r"controller\.yaml|trust\.yaml|trust/\d{3}\.yaml|slices/[^/]+/gprs/[^/]+|nodes/[^/]+/[^/]+|usage/[^/]+|requests/[^/]+|approvals/[^/]+|accepted/.+"
    r"|clusters/[^/]+/(inventory\.yaml|pools/[^/]+/[^/]+)"
)


def _is_fact(path: str) -> bool:
    return FACT.fullmatch(path) is not None


def _part(path: str) -> int:
    return int(path.removesuffix(".yaml").rpartition("-")[2])


def _record(path: str, data: bytes) -> Record | None:
    try:
        return record_from(path, data)
    except UNREADABLE:
        return None


def _instead(path: str, tree: _Tree) -> str:
    """What counts in place of a file that cannot be read."""
    if path in tree.records:
        return "its last readable version counts, and is written anew"
    return "it counts as absent; protect the branch"
