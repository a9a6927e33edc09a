"""Whose signatures stand behind content on main, read from commits.

Who signed a commit stands behind everything that it brings to the line of main's first parents, a merge included. Of
the commits on a merge's other sides, those count that brought exactly the content that main has now (a commit that
differs from each of its parents there) and that no commit built on them changed again. What a merge makes up by itself
is its own signer's alone. Who merges main itself into their work (as `git pull` does) looks at their own side: that
speaks for nothing but what it makes up.

No date that a commit states is believed, and what is on a side is told by ancestry, never by the order of dates.

Held by tests/trust/test_gate.py and tests/trust/test_policy_matrix.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from reconciler.store.port import REGULAR_MODE, Commit, Store
from reconciler.trust.authority import SERVICE, is_machine
from reconciler.trust.keyring import Keyring
from reconciler.trust.model import GIT, Verifier, Voucher
from reconciler.trust.policy import is_governed

MOST_SIDE_COMMITS = 1000
"""Commits on the other sides of one merge that are looked at; a merge with more is vouched for by its signer alone."""
MOST_KEYS = 10_000
"""Commits whose signer is remembered."""

ON_BEHALF_OF = "On-Behalf-Of"
_NAMED = re.compile(r"[^<>]{0,200}<([!-;=?A-~]{1,64}@[!-;=?A-~]{1,189})>")
_TRAILER = re.compile(rf"^{ON_BEHALF_OF}\s*:", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class File:
    """What lies at a path."""

    oid: str
    mode: int = REGULAR_MODE


@dataclass(frozen=True, slots=True)
class Step:
    """One step of main: from `base`, which was judged, to `commit`."""

    base: str
    commit: Commit
    is_line: bool = True
    """False: main before is not on the line of first parents, so that nobody can be taken for the one who merged."""


class Signers:
    """Who signed commits, each checked once. One owner."""

    def __init__(self, verifier: Verifier) -> None:
        self._key = lru_cache(MOST_KEYS)(lambda commit: _key(verifier, commit))

    def vouchers(self, commit: Commit, keyring: Keyring, now: datetime) -> tuple[Voucher, ...]:
        """Who stands behind a commit by its signature: its signer, or whom a service that signed it names."""
        key = self._key(_Signed(commit.oid, commit.payload, commit.signature)) if commit.signature else None
        if key is None or keyring.revoked(key):
            return ()
        principals = keyring.principals(key, GIT, now)
        if any(principal.startswith(SERVICE) for principal in principals):
            email = on_behalf_of(commit)
            return () if email is None else (Voucher("signature", email=email),)
        if any(map(is_machine, principals)):
            return ()
        return (Voucher("signature", key=key),)


@dataclass(frozen=True, slots=True)
class _Signed:
    """A commit as far as its signature goes; the id stands for the rest."""

    oid: str
    payload: bytes
    signature: str

    def __hash__(self) -> int:
        return hash(self.oid)


def _key(verifier: Verifier, signed: _Signed) -> str | None:
    return verifier.key_of(GIT, signed.payload, signed.signature)


def on_behalf_of(commit: Commit) -> str | None:
    """The address that a service's commit names; None when it names none, or when its text names several."""
    named = _NAMED.fullmatch(commit.trailers.get(ON_BEHALF_OF, ""))
    if named is None or len(_TRAILER.findall(commit.message)) != 1:
        return None
    return named[1]


def is_of_main(commit: Commit, branch: str) -> bool:
    """Whether a merge says that it brought main itself into somebody's work, as git and forges word it."""
    subject = commit.message.partition("\n")[0]
    return re.match(rf"Merge (remote-tracking )?branch '([^']*/)?{re.escape(branch)}'", subject) is not None


class Behind:
    """The signatures behind one step's content; sides are looked at when they are first asked for."""

    def __init__(
        self, store: Store, step: Step, branch: str, of: Callable[[Commit], tuple[Voucher, ...]]
    ) -> None:
        self._store, self._step, self._branch, self._of = store, step, branch, of
        self._own: set[tuple[str, File | None]] | None = None
        self._brought: Sides | None = None
        self.looked_at = 0
        """Commits of other sides that were read."""

    def all(self, path: str, file: File | None) -> tuple[Voucher, ...]:
        """Everybody who stands behind that content (None: that it is gone)."""
        found = (*self.merger(path, file), *self.authors(path, file))
        return tuple(dict.fromkeys(found))

    def merger(self, path: str, file: File | None) -> tuple[Voucher, ...]:
        """Who signed the step itself, where that speaks for this path."""
        commit = self._step.commit
        if not self._step.is_line:
            return ()
        if len(commit.parents) > 1 and is_of_main(commit, self._branch) and not self._made_up(path, file):
            return ()
        return self._of(commit)

    def authors(self, path: str, file: File | None) -> tuple[Voucher, ...]:
        """Who signed commits of other sides that brought exactly this content, and that nothing built on changed."""
        commits = self._sides().latest(path).get(file, ())
        return tuple(dict.fromkeys(voucher for commit in commits for voucher in self._of(commit)))

    def passed_over(self, path: str, kept: str | None) -> dict[File | None, tuple[Voucher, ...]]:
        """Contents that the last commits of other sides brought there, and that the step does not have.

        `kept` is the id of what it has instead, as its base did. Where the base's own side changed the file beside
        them, that was a choice between two changes, and nothing was passed over.
        """
        return {
            file: tuple(dict.fromkeys(voucher for commit in commits for voucher in self._of(commit)))
            for file, commits in self._sides().latest(path).items()
            if (None if file is None else file.oid) != kept
            and not any(self._has_own_word(path, kept, commit) for commit in commits)
        }

    def side_paths(self) -> frozenset[str]:
        """Everything that commits of other sides changed."""
        return frozenset(self._sides().brought)

    def _has_own_word(self, path: str, kept: str | None, commit: Commit) -> bool:
        beside = beyond(self._store, (self._step.base,), commit.oid) or ()
        changes = (change for own in beside for change in _changes_of(self._store, own))
        return any(p == path and (None if file is None else file.oid) == kept for p, file in changes)

    def is_from_side(self, path: str, file: File | None) -> bool:
        """Whether a merge took this content from another side, and did not make it up."""
        return len(self._step.commit.parents) > 1 and not self._made_up(path, file)

    def _made_up(self, path: str, file: File | None) -> bool:
        if self._own is None:
            self._own = _changes_of(self._store, self._step.commit)
        return (path, file) in self._own

    def _sides(self) -> Sides:
        step = self._step
        if step.is_line and len(step.commit.parents) < 2:
            return NO_SIDES
        if self._brought is None:
            starts = step.commit.parents[1:] if step.is_line else (step.commit.oid,)
            self._brought = sides_of(self._store, beyond(self._store, starts, step.base) or ())
            self.looked_at = len(self._brought.commits)
        return self._brought


@dataclass(frozen=True, slots=True)
class Sides:
    """Commits of other sides, and who of them brought what, by path."""

    commits: Mapping[str, Commit]
    brought: Mapping[str, tuple[tuple[File | None, str], ...]]

    def latest(self, path: str) -> dict[File | None, tuple[Commit, ...]]:
        """Contents of a path that no commit built on the one that brought them changed again."""
        every = self.brought.get(path, ())
        below = {oid: self._below(oid) for _, oid in every} if len(every) > 1 else {}
        found: dict[File | None, tuple[Commit, ...]] = {}
        for file, oid in every:
            if not any(oid in below[other] for what, other in every if what != file):
                found[file] = (*found.get(file, ()), self.commits[oid])
        return found

    def _below(self, oid: str) -> set[str]:
        """The commits here that one was built on."""
        todo, known = [*self.commits[oid].parents], set[str]()
        while todo:
            step = todo.pop()
            if step in self.commits and step not in known:
                known.add(step)
                todo.extend(self.commits[step].parents)
        return known


NO_SIDES = Sides({}, {})


def sides_of(store: Store, commits: Iterable[Commit]) -> Sides:
    """What each of these commits brought. Costs a difference for each parent."""
    found = {commit.oid: commit for commit in commits}
    brought: dict[str, list[tuple[File | None, str]]] = {}
    for commit in found.values():
        for path, file in _changes_of(store, commit):
            if is_governed(path):
                brought.setdefault(path, []).append((file, commit.oid))
    return Sides(found, {path: tuple(every) for path, every in brought.items()})


def beyond(store: Store, starts: Iterable[str], old: str) -> tuple[Commit, ...] | None:
    """Every commit that one of `starts` was built on (or is) and `old` was not; None: more than are looked at."""
    todo, found = list(starts), dict[str, Commit]()
    known = set[str]()
    while todo:
        oid = todo.pop()
        if oid in known:
            continue
        known.add(oid)
        if store.is_ancestor(oid, old):
            continue
        if len(found) >= MOST_SIDE_COMMITS:
            return None
        found[oid] = store.commit(oid)
        todo.extend(found[oid].parents)
    return tuple(found.values())


def _changes_of(store: Store, commit: Commit) -> set[tuple[str, File | None]]:
    """What a commit itself brought: paths whose content is another than at each of its parents."""
    found: set[tuple[str, File | None]] | None = None
    for parent in commit.parents or (None,):
        changed = {(entry.path, file_of(entry.oid, entry.mode)) for entry in store.diff(parent, commit.oid)}
        found = changed if found is None else found & changed
    return found or set()


def file_of(oid: str | None, mode: int) -> File | None:
    """What an entry says of a path; None: nothing lies there."""
    return None if oid is None else File(oid, mode)
