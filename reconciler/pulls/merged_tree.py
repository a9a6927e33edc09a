"""What a pull request would make of main: its own changes, path by path, on top of main as it is now.

A branch that is behind would otherwise seem to undo what others merged meanwhile. Its own changes are those since it
left main; a path that both sides changed, and not to the same content, is a conflict, and main's side is looked at.
Where it left main is told by ancestry alone, as git tells it: whoever makes a commit chooses its dates.

Held by tests/reconciler/pulls/test_merged_tree.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reconciler.store.store_port import Entry, Store
from schemas.errors import UserError

MOST_BEHIND = 1000
"""Commits of main that are counted for a branch that lacks them."""
MOST_FILES = 3000
"""Files one pull request may change; forges show no more of it to whoever has to judge it."""


@dataclass(frozen=True, slots=True)
class Merged:
    """A pull request on top of main."""

    base: str  # main now
    head: str
    fork: str  # where the branch left main
    behind: int  # commits of main, by first parents, that the branch does not have
    changes: Mapping[str, Entry]  # by path, as they would come to main
    conflicts: tuple[str, ...] = ()  # paths that main and the branch changed, each otherwise


def merged(store: Store, base: str, head: str) -> Merged:
    """The pull request's own changes on main as it is.

    UserError `NoCommonHistory`, `SeveralMergeBases` or `TooManyFiles`.
    """
    fork = _fork(store, base, head)
    own = {entry.path: entry for entry in store.diff(fork, head)}
    if len(own) > MOST_FILES:
        text = f"{len(own)} files change at once, at most {MOST_FILES} are looked at; split the change"
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
            f"{head[:12]} left main in {len(found)} places, so that nobody can say what it changes; update the "
            "branch: merge main as it is now into it, or rebase it on main"
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
    """A store's contents in which main is `entries`, and the pull request's merge is `changes` on top of it.

    What nobody needs is left out of `entries` by whoever makes it.
    """

    def __init__(self, store: Store, merge: Merged, entries: Sequence[Entry]) -> None:
        self._store, self._merge, self._entries = store, merge, entries

    def diff(self, old: str | None, new: str) -> Sequence[Entry]:
        """See `port.Store.diff`; knows main, and the head on top of it."""
        if old is None and new == self._merge.base:
            return self._entries
        assert (old, new) == (self._merge.base, self._merge.head)
        return [entry for _, entry in sorted(self._merge.changes.items())]

    def sizes(self, oids: Iterable[str]) -> Mapping[str, int]:
        """See `port.Store.sizes`."""
        return self._store.sizes(oids)

    def read(self, oids: Iterable[str]) -> Mapping[str, bytes]:
        """See `port.Store.read`."""
        return self._store.read(oids)
