"""The check of a change that was not pushed: what a pull request with it would be told.

Main was read already, so only the changed files are read and only what depends on them is judged again. Nothing is
written, in the store or in a cache.

Held by tests/reconciler/pulls/test_proposed_change.py: the result equals the check of a pull request with the change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from reconciler.documents.in_force import Desired
from reconciler.model.evidence import Actor
from reconciler.model.facts import Facts, Wanted
from reconciler.model.statuses import Records, live
from reconciler.pulls.before_and_after import (
    Sight,
    Sights,
    edited,
    judged_again,
    paths_since,
    sight,
    with_files_of,
)
from reconciler.pulls.change_rights import changes_of, judged_for
from reconciler.pulls.check import check_pull
from reconciler.pulls.check_basis import stamps_of
from reconciler.pulls.check_repository import PullToCheck, checked_merge
from reconciler.pulls.merged_tree import Merged
from reconciler.pulls.proposed_effect import Proposed, proposed
from reconciler.pulls.pull_documents import Touched
from reconciler.pulls.queue_at_check import CommittedStatus
from reconciler.store.git.git_objects import blob_oid
from reconciler.store.store_port import Commit, Entry, Store
from reconciler.trust.authority import Authority
from scheduler.causes.compare import as_planned
from scheduler.snapshot import Snapshot
from schemas.documents.cluster import Cluster, is_same_but_for_maintenance
from schemas.reading.collector import collector_paused
from schemas.rules.view import gpr_path

Changes = Mapping[str, bytes | None]
"""New contents by path; None deletes the file."""
HEAD = "a change that was not pushed"
"""Stands for the commit that there is not."""


class StandingMain:
    """Main and its status at one time, ready for any change. One owner.

    Costs a plan, and judging what main changed since the status; a check then costs by the change, and a plan or two.
    """

    def __init__(
        self, store: Store, documents: Desired, committed: CommittedStatus | None, now: datetime
    ) -> None:
        """`documents` are those of main, and not updated any more; `committed` None: there is no status."""
        self._store, self._documents, self.now = store, documents, now
        self._committed = Facts(now) if committed is None else committed.facts
        self._is_first = committed is None
        self._main = documents.commit or ""
        self._moved = self._requests_since()
        self._settled: set[str] = set()  # judged again on main, without a change
        with collector_paused():
            self._base = self._sight(documents, self._moved)
            self._promised = as_planned(self._base.snapshot)
        self._stamps = stamps_of(_merged(self._main, {}), committed)

    def proposed(self, changes: Changes, actor: Actor, authority: Authority) -> Proposed:
        """The check as of `actor`, who is known. Faults of the store, and UserError `NoProject`."""
        merge = _merged(self._main, self._differing(changes))
        with collector_paused():
            contents = _WithTexts(self._store, merge.changes, changes)
            after = self._documents.over(contents)
            after.update(HEAD, self._committed.trust)
            loud = [path for path in merge.changes if not _is_quiet(path, self._documents, after)]
            touched = self._touched(Touched.by(loud))
            base, promised = self._before(touched)
            head = self._sight(after, self._moved | touched, base.wanted)
            edits = edited(contents, merge, base, head)
            sights = Sights(base, head, promised, self._stamps, edits)
            judged = judged_for(changes_of(sights, merge, {}), actor, authority)
            return proposed(check_pull(sights, merge, judged, self.now), sights)

    def _sight(self, documents: Desired, moved: set[str], beside: Wanted | None = None) -> Sight:
        known, now = self._committed, self.now
        return sight(documents, known, moved, now, is_first=self._is_first, beside=beside)

    def _differing(self, changes: Changes) -> Changes:
        """Without files that main has already."""
        return {
            path: data for path, data in changes.items() if self._store.read_path(self._main, path) != data
        }

    def _before(self, touched: set[str]) -> tuple[Sight, Snapshot]:
        """Main with these requests judged again, as the check does: the same as without, as far as we know yet."""
        unknown = {key for key in touched - self._moved - self._settled if self._is_there(key)}
        if unknown:
            self._judge(unknown)
        if unknown <= self._settled:
            files = with_files_of(self._moved | touched, self._documents.wanted(self._committed)).filed
            return replace(self._base, wanted=replace(self._base.wanted, filed=files)), self._promised
        base = self._sight(self._documents, self._moved | touched)
        return base, as_planned(base.snapshot)

    def _judge(self, unknown: set[str]) -> None:
        """Finds out which of these requests stay on main as they are."""
        _, facts = judged_again(self._documents, self._committed, unknown, self.now, is_first=self._is_first)
        known = self._committed.requests
        self._settled |= {key for key in unknown if facts.requests.get(key) == known.get(key)}

    def _is_there(self, key: str) -> bool:
        return key in self._committed.requests or not self._documents.repository.absent(
            gpr_path(*key.split("/"))
        )

    def _requests_since(self) -> set[str]:
        """Requests that main changed since the status, or whose files are gone."""
        requests = self._committed.requests
        since = paths_since(self._store, self._committed.intent, self._main) if not self._is_first else None
        trust = self._committed.trust
        held = set() if trust is None else {change.path for change in trust.held}
        moved = Touched(is_all=True) if since is None else Touched.by({*since, *held})
        repository = self._documents.repository
        gone = {key for key in live(requests) if repository.absent(gpr_path(*key.split("/")))}
        return self._touched(moved) | gone

    def _touched(self, by: Touched) -> set[str]:
        requests = self._committed.requests
        over = requests.over if isinstance(requests, Records) else {}
        found = set(by.keys)
        if by.is_wide:
            there = {*self._documents.wanted(self._committed).filed, *live(requests)}
            found |= {key for key in there if key not in over and by.widely(key)}
        return found


def _is_quiet(path: str, before: Desired, after: Desired) -> bool:
    """Whether no request is judged by what changes: windows of maintenance alone."""
    old, new = (side.repository.documents.get(path) for side in (before, after))
    if not isinstance(old, Cluster) or not isinstance(new, Cluster):
        return False
    return is_same_but_for_maintenance(old.spec, new.spec)


def proposed_once(store: Store, asked: PullToCheck, changes: Changes, now: datetime) -> Proposed:
    """The answer for files on top of `asked.base`, for a single question: reads only what it needs.

    `asked.head` does not matter. Raises as `reconciler.pulls.check_repository.checked`.
    """
    differing = {path: data for path, data in changes.items() if store.read_path(asked.base, path) != data}
    merge = _merged(asked.base, differing)
    check, sights = checked_merge(_WithTexts(store, merge.changes, changes), merge, asked, now)
    return proposed(check, sights)


def _merged(main: str, changes: Changes) -> Merged:
    entries = {
        path: Entry(path, None if data is None else blob_oid(data)) for path, data in sorted(changes.items())
    }
    return Merged(main, HEAD, main, 0, entries)


class _WithTexts:
    """A store with the changed files in it, and `HEAD` as their commit."""

    def __init__(self, store: Store, changes: Mapping[str, Entry], texts: Changes) -> None:
        self._store, self._changes = store, changes
        self._own = {
            entry.oid: data
            for path, entry in changes.items()
            if entry.oid is not None and (data := texts[path]) is not None
        }

    def diff(self, old: str | None, new: str) -> Sequence[Entry]:
        return list(self._changes.values()) if new == HEAD else self._store.diff(old, new)

    def commit(self, oid: str) -> Commit:
        return self._store.commit(oid)

    def sizes(self, oids: Iterable[str]) -> Mapping[str, int]:
        own, others = self._split(oids)
        return {
            **{oid: len(data) for oid, data in own.items()},
            **(self._store.sizes(others) if others else {}),
        }

    def read(self, oids: Iterable[str]) -> Mapping[str, bytes]:
        own, others = self._split(oids)
        return {**own, **(self._store.read(others) if others else {})}

    def _split(self, oids: Iterable[str]) -> tuple[dict[str, bytes], list[str]]:
        wanted = set(oids)
        return {oid: self._own[oid] for oid in wanted & self._own.keys()}, sorted(wanted - self._own.keys())
