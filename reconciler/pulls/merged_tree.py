"""What a pull request would make of main: its own changes, path by path, applied to current main.

A branch that is behind would otherwise seem to revert other merges. Its own changes are those since its merge
base; a path that both sides changed to different contents is a conflict, for which main's side is used. The
merge base is found by ancestry only, as in Git: commit dates can be forged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reconciler.store.store_port import Contents, Entry, Store
from schemas.errors import UserError

MOST_BEHIND = 1000
"""Limit for counting the commits that the branch is behind."""
MOST_FILES = 3000
"""Files one pull request may change; forges show reviewers no more."""


@dataclass(frozen=True, slots=True)
class Merged:
    """A pull request applied to main."""

    base: str  # current head of main
    head: str
    fork: str  # the merge base
    behind: int  # commits of main, by first parents, missing in the branch
    changes: Mapping[str, Entry]  # by path, as applied to main
    conflicts: tuple[str, ...] = ()  # paths that main and the branch changed differently


def merged(store: Store, base: str, head: str) -> Merged:
    """The pull request's own changes on current main.

    UserError `NoCommonHistory`, `SeveralMergeBases` or `TooManyFiles`.
    """
    fork = _fork(store, base, head)
    own = {entry.path: entry for entry in store.diff(fork, head)}
    if len(own) > MOST_FILES:
        text = f"{len(own)} files change at once, but at most {MOST_FILES} are allowed; split the change"
        raise UserError(text, "TooManyFiles")
    theirs = {entry.path: entry for entry in store.diff(fork, base)} if fork != base else {}
    conflicts = tuple(path for path in sorted(own.keys() & theirs.keys()) if own[path] != theirs[path])
    changes = {path: entry for path, entry in own.items() if path not in theirs}
    return Merged(base, head, fork, _behind(store, base, fork), changes, conflicts)


def _fork(store: Store, base: str, head: str) -> str:
    found = store.merge_bases(base, head)
    if not found:
        text = (
            f"{head[:12]} and {base[:12]} have no commit in common here; fetch the whole history "
            "(`fetch-depth: 0`, or `git fetch --unshallow`)"
        )
        raise UserError(text, "NoCommonHistory")
    if len(found) > 1:
        text = (
            f"{head[:12]} has {len(found)} merge bases with main, so its changes are ambiguous; update the "
            "branch: merge current main into it, or rebase it on main"
        )
        raise UserError(text, "SeveralMergeBases")
    return found[0]


def _behind(store: Store, base: str, fork: str) -> int:
    """Commits of main since the fork, at most `MOST_BEHIND`."""
    count, step = 0, base
    while step != fork and count < MOST_BEHIND:
        parents = store.commit(step).parents
        count += 1
        if not parents or parents[0] == fork:
            break
        step = parents[0]
    return count


class MergedContents:
    """A store's contents where main is `entries`, and the pull request's merge is `changes` on top of it.

    The caller leaves unneeded files out of `entries`.
    """

    def __init__(self, store: Contents, merge: Merged, entries: Sequence[Entry]) -> None:
        self._store, self._merge, self._entries = store, merge, entries

    def diff(self, old: str | None, new: str) -> Sequence[Entry]:
        """Knows main, and the merge on top of it."""
        if old is None and new == self._merge.base:
            return self._entries
        assert (old, new) == (self._merge.base, self._merge.head)
        return [entry for _, entry in sorted(self._merge.changes.items())]

    def sizes(self, oids: Iterable[str]) -> Mapping[str, int]:
        return self._store.sizes(oids)

    def read(self, oids: Iterable[str]) -> Mapping[str, bytes]:
        return self._store.read(oids)
