"""Whose signatures vouch for content on main, read from commits.

A commit's signer vouches for everything that the commit brings to main's line of first parents, even as a
merge. Among the commits on a merge's other sides, those count that brought exactly the content that main has
now (a commit that differs from each of its parents there), were not overwritten by a later commit on the
side, and were built on main's last change of that file: an old signature cannot restore what main has
reverted since. Content that only the merge itself has is vouched for by its signer alone. A signer who merges
main into their own work (as `git pull` does) has reviewed their own side: such a merge only vouches for its
own content.

Commit dates are never trusted; ancestry decides what is on a side, never the order of dates.

Held by tests/reconciler/trust/test_vouchers.py, tests/reconciler/trust/test_gate.py and
tests/reconciler/trust/test_policy_matrix.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache

from reconciler.model.evidence import GIT, Verifier, Voucher
from reconciler.store.store_port import REGULAR_MODE, Commit, Store
from reconciler.trust.ancestry import MOST_PARENTS, Reads, Side, TooMuch, parents_of, side_of
from reconciler.trust.authority import SERVICE, is_machine, is_narrow
from reconciler.trust.keyring import Keyring
from reconciler.trust.merge_subjects import merges_main, names_another
from reconciler.trust.policy import is_governed
from schemas.errors import Fault

MOST_KEYS = 10_000
"""Commits whose signer is cached."""

ON_BEHALF_OF = "On-Behalf-Of"
"""The trailer by which a service names the person it acts for; see `speaking_for`."""
_NAMED = re.compile(r"[^<>]{0,200}<([!-;=?A-~]{1,64}@[!-;=?A-~]{1,189})>")
_TRAILER = re.compile(rf"^{ON_BEHALF_OF}\s*:", re.MULTILINE | re.IGNORECASE)


def speaking_for(name: str, email: str) -> str:
    """The trailer of a commit that a service makes for that person."""
    return f"{ON_BEHALF_OF}: {name} <{email}>"


@dataclass(frozen=True, slots=True)
class File:
    oid: str
    mode: int = REGULAR_MODE


@dataclass(frozen=True, slots=True)
class Step:
    """One step of main: from `base`, which was judged, to `commit`."""

    base: str
    commit: Commit
    is_line: bool = True
    """False: the judged commit is not on the line of first parents, so the merger is unknown."""


class Signers:
    """Who signed commits; each commit is checked once. One owner."""

    def __init__(self, verifier: Verifier) -> None:
        self._key = lru_cache(MOST_KEYS)(lambda commit: _key(verifier, commit))

    def vouchers(self, commit: Commit, keyring: Keyring, now: datetime) -> tuple[Voucher, ...]:
        """Who a commit's signature identifies: its signer, or the person named by a service that signed it."""
        key = self._key(_Signed(commit.oid, commit.payload, commit.signature)) if commit.signature else None
        if key is None or keyring.bars(key, now):
            return ()
        principals = keyring.principals(key, GIT, now)
        if any(principal.startswith(SERVICE) for principal in principals):
            email = on_behalf_of(commit)
            voucher = Voucher("signature", email=email or "", is_narrow=is_narrow(principals))
            return () if email is None else (voucher,)
        if any(map(is_machine, principals)):
            return ()
        return (Voucher("signature", key=key),)


@dataclass(frozen=True, slots=True)
class _Signed:
    """The parts of a commit that its signature depends on; the id stands for the rest."""

    oid: str
    payload: bytes
    signature: str

    def __hash__(self) -> int:
        return hash(self.oid)


def _key(verifier: Verifier, signed: _Signed) -> str | None:
    return verifier.key_of(GIT, signed.payload, signed.signature)


def on_behalf_of(commit: Commit) -> str | None:
    """The address that a service's commit names; None if it names none, or the text names several."""
    named = _NAMED.fullmatch(commit.trailers.get(ON_BEHALF_OF, ""))
    if named is None or len(_TRAILER.findall(commit.message)) != 1:
        return None
    return named[1]


Of = Callable[[Commit], tuple[Voucher, ...]]
"""Who a commit's signature identifies."""


class Behind:
    """The signatures that vouch for one step's content; sides are examined on first use."""

    def __init__(self, store: Store, step: Step, branch: str, of: Of) -> None:
        self._reads, self._step, self._branch, self._of = Reads(store), step, branch, of
        self._parents = parents_of(step.commit)
        self._own: set[tuple[str, File | None]] | None = None
        self._brought: Sides | None = None
        self._last: dict[str, str | None] = {}
        self._older: dict[tuple[str, str], bool] = {}
        self._speaks: bool | None = None

    @property
    def work(self) -> int:
        """Number of reads of one object or difference."""
        return self._reads.work

    def all(self, path: str, file: File | None) -> tuple[Voucher, ...]:
        """Everyone who vouches for that content (None: its deletion)."""
        found = (*self.merger(path, file), *self.authors(path, file))
        return tuple(dict.fromkeys(found))

    # -- who merged ------------------------------------------------------------------------------------------

    def merger(self, path: str, file: File | None) -> tuple[Voucher, ...]:
        """The signer of the step itself, if that vouches for this path."""
        if not self._step.is_line:
            return ()
        if len(self._parents) > 1 and not self._speaks_for_sides() and not self._made_up(path, file):
            return ()
        return self._of(self._step.commit)

    def _speaks_for_sides(self) -> bool:
        """True if the merger reviewed what the other sides brought, not just their own work beside main."""
        if self._speaks is None:
            subject = self._step.commit.message.partition("\n")[0]
            self._speaks = not merges_main(subject, self._branch) and (
                names_another(subject, self._branch) or not self._rests_on_own()
            )
        return self._speaks

    def _rests_on_own(self) -> bool:
        own = self._of(self._step.commit)
        return bool(own) and not set(own).isdisjoint(self._of(self._reads.commit(self._parents[0])))

    def is_from_side(self, path: str, file: File | None) -> bool:
        """True if a merge took this content from another side, rather than making its own."""
        return 1 < len(self._parents) <= MOST_PARENTS and not self._made_up(path, file)

    def _made_up(self, path: str, file: File | None) -> bool:
        if self._own is None:
            self._own = self._own_changes()
        return (path, file) in self._own

    def _own_changes(self) -> set[tuple[str, File | None]]:
        """For a merge with too many parents or commits, its own content is unknown."""
        if len(self._parents) > MOST_PARENTS:
            return set()
        try:
            return _changes_of(self._reads, self._step.commit)
        except TooMuch:
            return set()

    # -- who wrote -------------------------------------------------------------------------------------------

    def authors(self, path: str, file: File | None) -> tuple[Voucher, ...]:
        """Signers of side commits that brought exactly this content, not overwritten by later side commits.

        Only commits built on main's last change of the file.
        """
        speaking = [(commit, self._of(commit)) for commit in self._sides().latest(path, file)]
        try:
            found = [
                v for commit, vouchers in speaking if vouchers and self._knows(commit, path) for v in vouchers
            ]
        except TooMuch:
            return ()
        return tuple(dict.fromkeys(found))

    def writers(self, path: str) -> tuple[tuple[Voucher, ...], ...]:
        """The signers of each side commit that changed this path, whatever the content."""
        return tuple(self._of(commit) for commit in self._sides().every(path))

    def side_paths(self) -> frozenset[str]:
        return frozenset(self._sides().brought)

    def unreplaced(
        self, path: str, is_entitled: Callable[[File | None, tuple[Voucher, ...]], bool]
    ) -> tuple[File, ...]:
        """Contents from entitled people on other sides that no entitled person changed afterwards."""
        sides = self._sides()
        side = sides.side
        theirs = [
            (file, oid)
            for file, oid in sides.brought.get(path, ())
            if is_entitled(file, self._of(side.commits[oid]))
        ]
        return tuple(
            file
            for file, oid in theirs
            if file is not None
            and not side.below.has(side.below.of(o for what, o in theirs if what != file), oid)
            and self._is_known(side.commits[oid], path)
        )

    def _is_known(self, commit: Commit, path: str) -> bool:
        try:
            return self._knows(commit, path)
        except TooMuch:
            return False

    def _knows(self, commit: Commit, path: str) -> bool:
        """True if a side commit was built on main's last change of that path."""
        if path not in self._last:
            self._last[path] = self._reads.last_change(self._step.base, path)
        last = self._last[path]
        return last is None or any(
            self._is_older(last, fork) for fork in self._sides().side.forks_of(commit.oid)
        )

    def _is_older(self, last: str, fork: str) -> bool:
        if fork in (last, self._step.base):
            return True
        known = (last, fork)
        if known not in self._older:
            self._older[known] = self._reads.is_ancestor(last, fork)
        return self._older[known]

    def _sides(self) -> Sides:
        if self._brought is None:
            self._brought = self._looked_at()
        return self._brought

    def _looked_at(self) -> Sides:
        """Empty if the limits are exceeded: then only the merger vouches."""
        step = self._step
        starts = self._parents[1:] if step.is_line else (step.commit.oid,)
        if not starts or len(self._parents) > MOST_PARENTS:
            return NO_SIDES
        try:
            return sides_of(self._reads, side_of(self._reads, starts, step.base))
        except TooMuch:
            return NO_SIDES
        except Fault as fault:
            if fault.reason not in _TOO_MUCH:
                raise
            return NO_SIDES


_TOO_MUCH = frozenset({"TooLarge", "TooManyFiles"})
"""Faults that mean the same for one commit."""


@dataclass(frozen=True, slots=True)
class Sides:
    """Side commits, and which of them brought what, by path."""

    side: Side = field(default_factory=Side)
    brought: Mapping[str, tuple[tuple[File | None, str], ...]] = field(default_factory=dict)

    def every(self, path: str) -> tuple[Commit, ...]:
        return tuple(self.side.commits[oid] for _, oid in self.brought.get(path, ()))

    def latest(self, path: str, file: File | None) -> tuple[Commit, ...]:
        """The commits that brought this content, unless a commit built on them brought another."""
        every, below = self.brought.get(path, ()), self.side.below
        changed = below.of(oid for what, oid in every if what != file)
        return tuple(
            self.side.commits[oid] for what, oid in every if what == file and not below.has(changed, oid)
        )


NO_SIDES = Sides()


def sides_of(reads: Reads, side: Side) -> Sides:
    """What each of these commits brought. Costs a difference per parent; raises TooMuch."""
    brought: dict[str, list[tuple[File | None, str]]] = {}
    for commit in side.commits.values():
        for path, file in _changes_of(reads, commit):
            if is_governed(path):
                brought.setdefault(path, []).append((file, commit.oid))
    return Sides(side, {path: tuple(every) for path, every in brought.items()})


def _changes_of(reads: Reads, commit: Commit) -> set[tuple[str, File | None]]:
    """What a commit itself brought: paths whose content differs from each of its parents."""
    found: set[tuple[str, File | None]] | None = None
    for parent in parents_of(commit) or (None,):
        changed = {(entry.path, file_of(entry.oid, entry.mode)) for entry in reads.diff(parent, commit.oid)}
        found = changed if found is None else found & changed
    return found or set()


def file_of(oid: str | None, mode: int) -> File | None:
    """The content an entry gives for a path; None: deleted."""
    return None if oid is None else File(oid, mode)
