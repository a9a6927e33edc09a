"""Whose signatures stand behind content on main, read from commits.

Who signed a commit stands behind everything that it brings to the line of main's first parents, a merge included. Of
the commits on a merge's other sides, those count that brought exactly the content that main has now (a commit that
differs from each of its parents there), that no commit built on them changed again, and that were built on the last
change of that file on main: what main took back since does not come back by an old signature. What a merge makes up by
itself is its own signer's alone. Who merges main itself into their work (as `git pull` does) looks at their own side:
that speaks for nothing but what it makes up.

No date that a commit states is believed, and what is on a side is told by ancestry, never by the order of dates.

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


Of = Callable[[Commit], tuple[Voucher, ...]]
"""Who stands behind a commit by its signature."""


class Behind:
    """The signatures behind one step's content; sides are looked at when they are first asked for."""

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
        """What was read, in reads of one object or difference."""
        return self._reads.work

    def all(self, path: str, file: File | None) -> tuple[Voucher, ...]:
        """Everybody who stands behind that content (None: that it is gone)."""
        found = (*self.merger(path, file), *self.authors(path, file))
        return tuple(dict.fromkeys(found))

    # -- who merged ------------------------------------------------------------------------------------------

    def merger(self, path: str, file: File | None) -> tuple[Voucher, ...]:
        """Who signed the step itself, where that speaks for this path."""
        if not self._step.is_line:
            return ()
        if len(self._parents) > 1 and not self._speaks_for_sides() and not self._made_up(path, file):
            return ()
        return self._of(self._step.commit)

    def _speaks_for_sides(self) -> bool:
        """Whether who merged looked at what other sides brought, and not at work of their own beside main's."""
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
        """Whether a merge took this content from another side, and did not make it up."""
        return 1 < len(self._parents) <= MOST_PARENTS and not self._made_up(path, file)

    def _made_up(self, path: str, file: File | None) -> bool:
        if self._own is None:
            self._own = self._own_changes()
        return (path, file) in self._own

    def _own_changes(self) -> set[tuple[str, File | None]]:
        """Of a merge with too many parents, or too much in them, nothing is known to be made up."""
        if len(self._parents) > MOST_PARENTS:
            return set()
        try:
            return _changes_of(self._reads, self._step.commit)
        except TooMuch:
            return set()

    # -- who wrote -------------------------------------------------------------------------------------------

    def authors(self, path: str, file: File | None) -> tuple[Voucher, ...]:
        """Who signed commits of other sides that brought exactly this content, and that nothing built on changed.

        And that know what main did to the file last.
        """
        sides = self._sides()
        speaking = [(commit, self._of(commit)) for commit in sides.latest(path, file)]
        try:
            found = [
                v for commit, vouchers in speaking if vouchers and self._knows(commit, path) for v in vouchers
            ]
        except TooMuch:
            return ()
        return tuple(dict.fromkeys(found))

    def writers(self, path: str) -> tuple[tuple[Voucher, ...], ...]:
        """Who signed each commit of other sides that changed this path, whatever it made of it."""
        return tuple(self._of(commit) for commit in self._sides().every(path))

    def side_paths(self) -> frozenset[str]:
        """Everything that commits of other sides changed."""
        return frozenset(self._sides().brought)

    def unreplaced(
        self, path: str, is_entitled: Callable[[File | None, tuple[Voucher, ...]], bool]
    ) -> tuple[File, ...]:
        """What somebody entitled brought there on other sides, and nobody entitled changed again after it."""
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
        """Whether a commit of a side was built on main's last change of that path."""
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
        """Nothing where there is more than is looked at: then who merged speaks alone."""
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
"""Faults that say the same of one commit."""


@dataclass(frozen=True, slots=True)
class Sides:
    """Commits of other sides, and who of them brought what, by path."""

    side: Side = field(default_factory=Side)
    brought: Mapping[str, tuple[tuple[File | None, str], ...]] = field(default_factory=dict)

    def every(self, path: str) -> tuple[Commit, ...]:
        """Those that changed a path."""
        return tuple(self.side.commits[oid] for _, oid in self.brought.get(path, ()))

    def latest(self, path: str, file: File | None) -> tuple[Commit, ...]:
        """Those that brought this content, unless a commit built on them brought another."""
        every, below = self.brought.get(path, ()), self.side.below
        changed = below.of(oid for what, oid in every if what != file)
        return tuple(
            self.side.commits[oid] for what, oid in every if what == file and not below.has(changed, oid)
        )


NO_SIDES = Sides()


def sides_of(reads: Reads, side: Side) -> Sides:
    """What each of these commits brought. Costs a difference for each parent; raises TooMuch."""
    brought: dict[str, list[tuple[File | None, str]]] = {}
    for commit in side.commits.values():
        for path, file in _changes_of(reads, commit):
            if is_governed(path):
                brought.setdefault(path, []).append((file, commit.oid))
    return Sides(side, {path: tuple(every) for path, every in brought.items()})


def _changes_of(reads: Reads, commit: Commit) -> set[tuple[str, File | None]]:
    """What a commit itself brought: paths whose content is another than at each of its parents."""
    found: set[tuple[str, File | None]] | None = None
    for parent in parents_of(commit) or (None,):
        changed = {(entry.path, file_of(entry.oid, entry.mode)) for entry in reads.diff(parent, commit.oid)}
        found = changed if found is None else found & changed
    return found or set()


def file_of(oid: str | None, mode: int) -> File | None:
    """What an entry says of a path; None: nothing lies there."""
    return None if oid is None else File(oid, mode)
