"""The files of facts at one commit of the status branch, each read once, and the resulting facts.

A broken file counts as last readable, or as absent, with an alarm. Reads only what differs from the commit read
before; a new process reads what is not cached (`reconciler.status.status_cache`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from reconciler.documents.in_force import ACCEPTED
from reconciler.documents.unread_files import Surroundings, is_request
from reconciler.model.facts import Facts
from reconciler.model.statuses import Records, UnreadRecord, records
from reconciler.status.parse import OWN_BYTES, RECORDS, UNREADABLE, Record, facts_of, record_from, tells_over
from reconciler.status.recognised_leases import EVERYWHERE
from reconciler.status.render import request_key
from reconciler.status.status_cache import Remembered
from reconciler.store.believed_commit import Belief
from reconciler.store.branch_writer import RECOVERY, TAKE_OVER
from reconciler.store.store_port import REGULAR_MODE, Commit, Entry, Store
from reconciler.store.trailers import parse_stamp
from schemas.errors import Fault
from schemas.status.gpr_status import GPRRecord

LOOKED_BACK = 20
"""Commits searched for the last decision: more take-overs in a row mean a crash loop, not an absence."""
CONTROLLER = "controller.yaml"
"""Part of every commit with a decision."""
HISTORY = 50
"""Commits searched for the last readable version of a request's file."""
MOST_ALARMS = 20
"""Unreadable files that are reported one by one."""
_READ_IT = "-"
"""A note that no file has."""
FACT = re.compile(f"{RECORDS.pattern}|accepted/.+")
"""Files that are read back: records, and what was accepted of main."""


@dataclass(frozen=True, slots=True)
class Loaded:
    facts: Facts
    accepted: Mapping[str, bytes]
    alarms: tuple[str, ...] = ()  # sentences about unreadable files
    notes: Mapping[str, str] = field(default_factory=dict)
    """On files of main, by path; see `reconciler.documents.unread_files`."""


@dataclass(frozen=True, slots=True)
class Tree:
    """The files of facts at one head, each read once."""

    tip: str
    records: Mapping[str, Record]
    accepted: Mapping[str, bytes]
    unread: frozenset[str]
    over: Mapping[str, UnreadRecord] = field(default_factory=dict)  # records of requests, by path
    notes: Mapping[str, str] = field(default_factory=dict)
    oids: Mapping[str, str] = field(default_factory=dict)  # blobs of all request records, by path


class Trees:
    """Reads commits of one status branch. One owner."""

    def __init__(self, store: Store, branch: str, belief: Belief, remembered: Remembered) -> None:
        self._store, self._branch, self._belief = store, branch, belief
        self._remembered = remembered

    def at(self, tip: str, last: Tree | None) -> Tree:
        """The files of facts at `tip`; unchanged files are taken from `last`."""
        try:
            entries = self._store.diff(last.tip if last else None, tip)
        except Fault:
            if last is None:
                raise
            return self.at(tip, None)  # the old head is gone: its history was replaced
        changed = {e.path: e for e in entries if FACT.fullmatch(e.path)}
        before = last or Tree(tip, {}, {}, frozenset())
        records = {p: r for p, r in before.records.items() if p not in changed}
        accepted = {p: d for p, d in before.accepted.items() if ACCEPTED + p not in changed}
        present = {p: e for p, e in changed.items() if e.oid is not None}
        oids = {p: e.oid for p, e in present.items() if e.oid and is_request(p) and e.mode == REGULAR_MODE}
        known, notes = self._remembered.of(oids)
        records |= known
        data = self.contents({p: e for p, e in present.items() if p not in known and p not in notes})
        if self._remembered.skims and self._judged(tip):
            over_now = {path for path, content in data.items() if path in oids and tells_over(content)}
            data = {path: content for path, content in data.items() if path not in over_now}
            notes |= dict.fromkeys(over_now, "")
        unread = {p for p in before.unread if p not in changed}
        unread |= present.keys() - data.keys() - known.keys() - notes.keys()
        fresh: dict[str, GPRRecord] = {}
        for path, content in data.items():
            if path.startswith(ACCEPTED):
                accepted[path.removeprefix(ACCEPTED)] = content
            elif (record := _record(path, content)) is not None:
                records[path] = record
                if isinstance(record, GPRRecord) and path in oids:
                    fresh[oids[path]] = record
            else:
                unread.add(path)
        for path in sorted(p for p in unread & changed.keys() if p.startswith(("slices/", "approvals/"))):
            if (earlier := self._earlier(tip, path)) is not None:
                records[path] = earlier
        self._remembered.keep(fresh)
        over = {p: UnreadRecord(oids[p], self._remembered.status) for p in notes}
        return Tree(
            tip,
            records,
            accepted,
            frozenset(unread),
            {p: u for p, u in before.over.items() if p not in changed} | over,
            {p: n for p, n in before.notes.items() if p not in changed} | notes,
            {p: o for p, o in before.oids.items() if p not in changed} | oids,
        )

    def contents(self, entries: Mapping[str, Entry]) -> dict[str, bytes]:
        """Plain files not larger than ours can be."""
        plain = {p: e.oid for p, e in entries.items() if e.oid is not None and e.mode == REGULAR_MODE}
        sizes = self._store.sizes(set(plain.values()))
        blobs = self._store.read({oid for oid, size in sizes.items() if size <= OWN_BYTES})
        return {path: blobs[oid] for path, oid in plain.items() if oid in blobs}

    def _earlier(self, tip: str, path: str) -> Record | None:
        for commit in filter(self._belief.counts, self._belief.history(tip, HISTORY)[1:]):
            data = self._store.read_path(commit.oid, path)
            if data is not None and (record := _record(path, data)) is not None:
                return record
        return None

    def loaded(self, tree: Tree) -> Loaded:
        stamp = parse_stamp(self._store.commit(tree.tip).trailers)
        intent = (stamp.intent if stamp is not None else None) or ""
        alarms = [
            f"branch {self._branch}: {path} cannot be read; {_instead(path, tree)}"
            for path in sorted(tree.unread)
        ]
        more = len(alarms) - MOST_ALARMS
        if more > 0:
            alarms = [*alarms[:MOST_ALARMS], f"branch {self._branch}: {more} more files cannot be read"]
        since = self._since_deciding(tree.tip)
        facts = facts_of(tree.records, since[-1].at, intent)
        if CONTROLLER not in tree.records.keys() | tree.unread or any(
            c.message.startswith(RECOVERY) for c in since
        ):
            facts = replace(facts, unread=EVERYWHERE)  # no decision here yet, or none since a loss
        requests = records(facts.requests)
        over = {request_key(path): unread for path, unread in tree.over.items()}
        facts = replace(facts, requests=Records(requests.live, {**requests.over, **over}))
        return Loaded(facts, tree.accepted, tuple(alarms), self._notes(tree, facts))

    def _notes(self, tree: Tree, facts: Facts) -> Mapping[str, str]:
        """The notes; a reader who skims takes them from the commit of main that the controller judged.

        A finished request's file has been acted on there, and its problems never count. Of held changes nothing is
        known: the controller judged something else than main's files.
        """
        unknown = {path for path, note in tree.notes.items() if not note}
        if not self._remembered.skims or not unknown or (facts.trust is not None and facts.trust.held):
            return tree.notes
        judged = self._judged(tree.tip)
        entries = self._store.diff(None, judged) if judged else []
        around, found = Surroundings(entries), dict.fromkeys(unknown, _READ_IT)
        for entry in entries:
            if entry.path in unknown and entry.mode == REGULAR_MODE:
                found[entry.path] = around.note(entry) or _READ_IT
        self._remembered.skimmed({tree.oids[path]: note for path, note in found.items()})
        return {**tree.notes, **found}

    def _judged(self, tip: str) -> str:
        """The commit of main that the controller judged; empty: somebody else wrote `tip`, or main was replaced."""
        stamp = parse_stamp(self._store.commit(tip).trailers)
        try:
            return "" if stamp is None or not stamp.intent else self._store.commit(stamp.intent).oid
        except Fault:
            return ""

    def stamped_at(self, tip: str) -> datetime | None:
        """When a controller last made a decision, by its clock; foreign commits do not count."""
        commits = [c for c in self._belief.history(tip, LOOKED_BACK) if self._belief.counts(c)]
        stamped = (c for c in commits if parse_stamp(c.trailers) is not None)
        return next((c.at for c in stamped if not c.message.startswith(TAKE_OVER)), None)

    def _since_deciding(self, tip: str) -> list[Commit]:
        """The newest commits, back to the last decision; take-overs are none, so that an absence stays visible."""
        commits = [c for c in self._belief.history(tip, LOOKED_BACK) if self._belief.counts(c)]
        decided = (n for n, c in enumerate(commits, 1) if not c.message.startswith(TAKE_OVER))
        return commits[: next(decided, len(commits))]


def _record(path: str, data: bytes) -> Record | None:
    try:
        return record_from(path, data)
    except UNREADABLE:
        return None


def _instead(path: str, tree: Tree) -> str:
    if path in tree.records:
        return "its last readable version counts, and is written again"
    return "it counts as absent; protect the branch"
