"""The commits that a step brought from other sides, and what each was built on; read once, then asked in memory.

What is on a side is told by ancestry, never by dates. Git is asked in the middle of what is not known yet, so that a
thousand commits in a row cost twenty questions; every read is counted, and beyond its bounds a side is not looked at.

Held by tests/reconciler/trust/test_ancestry.py.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import TopologicalSorter

from reconciler.store.store_port import Commit, Entry, Store

MOST_SIDE_COMMITS = 1000
"""Commits on the other sides of one merge that are looked at; a merge with more is vouched for by its signer alone."""
MOST_PARENTS = 16
"""Of one merge; one with more is vouched for by its signer alone."""
MOST_QUESTIONS = 200
"""Questions of one step that start a git process each."""
MOST_CHANGES = 100_000
"""Changed files of all commits of a step's sides together."""
PROCESS = 10
"""As much work as so many reads: a question that starts a process."""


class TooMuch(Exception):  # noqa: N818 - no error to anybody outside: less is known then
    """More than is looked at for one step."""


class Reads:
    """A store as it is asked about one step, within bounds. One owner."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._questions = self._changes = 0
        self.work = 0
        """What was read, in reads of one object or difference."""

    def commit(self, oid: str) -> Commit:
        """See `port.Store.commit`."""
        self.work += 1
        return self._store.commit(oid)

    def diff(self, old: str | None, new: str) -> Sequence[Entry]:
        """See `port.Store.diff`; raises TooMuch."""
        self.work += 1
        found = self._store.diff(old, new)
        self._changes += len(found)
        if self._changes > MOST_CHANGES:
            raise TooMuch
        return found

    def is_ancestor(self, old: str, new: str) -> bool:
        """See `port.Store.is_ancestor`; raises TooMuch."""
        self._ask()
        return self._store.is_ancestor(old, new)

    def last_change(self, commit: str, path: str) -> str | None:
        """See `port.Store.last_change`; raises TooMuch."""
        self._ask()
        return self._store.last_change(commit, path)

    def _ask(self) -> None:
        self.work += PROCESS
        self._questions += 1
        if self._questions > MOST_QUESTIONS:
            raise TooMuch


def parents_of(commit: Commit) -> tuple[str, ...]:
    """Each once."""
    return tuple(dict.fromkeys(commit.parents))


@dataclass(frozen=True, slots=True)
class Below:
    """What commits were built on, as bits."""

    place: Mapping[str, int] = field(default_factory=dict)
    bits: Mapping[str, int] = field(default_factory=dict)

    def of(self, oids: Iterable[str]) -> int:
        """Everything that one of these was built on."""
        found = 0
        for oid in oids:
            found |= self.bits[oid]
        return found

    def has(self, bits: int, oid: str) -> bool:
        """Whether a commit is among them."""
        return bits >> self.place[oid] & 1 == 1


@dataclass(frozen=True, slots=True)
class Side:
    """Commits that main was not built on, those before that others were built on; and where they leave main."""

    commits: Mapping[str, Commit] = field(default_factory=dict)
    below: Below = field(default_factory=Below)
    forks: tuple[str, ...] = ()

    def forks_of(self, oid: str) -> tuple[str, ...]:
        """The commits of main that one was built on first, on each way back."""
        bits = self.below.bits[oid]
        return tuple(fork for fork in self.forks if self.below.has(bits, fork))


def side_of(reads: Reads, starts: Iterable[str], old: str) -> Side:
    """Every commit that one of `starts` was built on (or is) and `old` was not. Raises TooMuch, and Faults."""
    read, answers = _walked(reads, starts, old)
    graph = {oid: [p for p in parents_of(commit) if p in read] for oid, commit in read.items()}
    order = list(TopologicalSorter(graph).static_order())
    below = _below(read, order)
    new = _beyond(reads, order, below, answers, old)
    if len(new) > MOST_SIDE_COMMITS:
        raise TooMuch
    commits = {oid: read[oid] for oid in order if oid in new}
    forks = dict.fromkeys(p for commit in commits.values() for p in parents_of(commit) if p not in new)
    return Side(commits, below, tuple(forks))


def _walked(reads: Reads, starts: Iterable[str], old: str) -> tuple[dict[str, Commit], dict[str, bool]]:
    """Commits back from `starts`, every ask twice as many, until all that is left is known to be `old`'s.

    With them whether `old` was built on those that were asked about: some that were read may be its too.
    """
    todo = deque(dict.fromkeys(starts))
    seen, read, answers, parents = set(todo), dict[str, Commit](), dict[str, bool](), 0
    while True:
        for oid in todo:
            if oid not in answers:
                answers[oid] = oid == old or reads.is_ancestor(oid, old)
        todo = deque(oid for oid in todo if not answers[oid])
        if not todo:
            return read, answers
        for _ in range(max(1, len(read))):
            if not todo:
                break
            commit = reads.commit(todo.popleft())
            read[commit.oid], fresh = commit, parents_of(commit)
            parents += len(fresh)
            if len(fresh) > MOST_PARENTS or parents > 4 * MOST_SIDE_COMMITS:
                raise TooMuch
            todo.extend(oid for oid in fresh if oid not in seen)
            seen.update(fresh)


def _below(read: Mapping[str, Commit], order: Iterable[str]) -> Below:
    """Of commits with their parents before them; parents that were not read have bits, too."""
    place, bits = dict[str, int](), dict[str, int]()
    for oid in order:
        found = 0
        for parent in parents_of(read[oid]):
            found |= 1 << place.setdefault(parent, len(place)) | bits.get(parent, 0)
        place.setdefault(oid, len(place))
        bits[oid] = found
    return Below(place, bits)


def _beyond(
    reads: Reads, order: Iterable[str], below: Below, answers: Mapping[str, bool], old: str
) -> set[str]:
    """Those that `old` was not built on: what rests on such a one is such a one, what is below others is not."""
    new: set[str] = set()
    known = 0
    for oid in order:
        if answers.get(oid) is False or below.bits[oid] & known:
            new.add(oid)
            known |= 1 << below.place[oid]
    open_ = [oid for oid in order if oid not in new]
    while open_:
        middle = open_[len(open_) // 2]
        if reads.is_ancestor(middle, old):
            bits = below.bits[middle]
            open_ = [oid for oid in open_ if oid != middle and not below.has(bits, oid)]
        else:
            found = {oid for oid in open_ if oid == middle or below.has(below.bits[oid], middle)}
            new |= found
            open_ = [oid for oid in open_ if oid not in found]
    return new
