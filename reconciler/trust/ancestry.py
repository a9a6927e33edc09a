"""The commits that a step brought from merged side branches, and what each was built on.

They are read once, then queried in memory.

Ancestry decides what is on a side, never dates. Git is asked about commits in the middle of the unknown part,
so that a chain of a thousand commits costs twenty queries; every read is counted, and a side beyond the
limits is not examined.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import TopologicalSorter

from reconciler.store.store_port import Commit, Entry, Store

MOST_SIDE_COMMITS = 1000
"""Side commits examined for one merge; for a larger merge only its own signature counts."""
MOST_PARENTS = 16
"""Parents of one merge; for a merge with more only its own signature counts."""
MOST_QUESTIONS = 200
"""Queries of one step that start a Git process each."""
MOST_CHANGES = 100_000
"""Changed files in all side commits of a step together."""
PROCESS = 10
"""A query that starts a process counts as this many reads."""


class TooMuch(Exception):  # noqa: N818 - not an error outside this module: less is known then
    """One step exceeds the limits."""


class Reads:
    """A store queried about one step, within limits. One owner."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._questions = self._changes = 0
        self.work = 0
        """Number of reads of one object or difference."""

    def commit(self, oid: str) -> Commit:
        self.work += 1
        return self._store.commit(oid)

    def diff(self, old: str | None, new: str) -> Sequence[Entry]:
        """Raises TooMuch."""
        self.work += 1
        found = self._store.diff(old, new)
        self._changes += len(found)
        if self._changes > MOST_CHANGES:
            raise TooMuch
        return found

    def is_ancestor(self, old: str, new: str) -> bool:
        """Raises TooMuch."""
        self._ask()
        return self._store.is_ancestor(old, new)

    def last_change(self, commit: str, path: str) -> str | None:
        """Raises TooMuch."""
        self._ask()
        return self._store.last_change(commit, path)

    def _ask(self) -> None:
        self.work += PROCESS
        self._questions += 1
        if self._questions > MOST_QUESTIONS:
            raise TooMuch


def parents_of(commit: Commit) -> tuple[str, ...]:
    """Without duplicates."""
    return tuple(dict.fromkeys(commit.parents))


@dataclass(frozen=True, slots=True)
class Below:
    """Each commit's ancestors, as bits."""

    place: Mapping[str, int] = field(default_factory=dict)
    bits: Mapping[str, int] = field(default_factory=dict)

    def of(self, oids: Iterable[str]) -> int:
        """All ancestors of these commits."""
        found = 0
        for oid in oids:
            found |= self.bits[oid]
        return found

    def has(self, bits: int, oid: str) -> bool:
        """True if the commit is among them."""
        return bits >> self.place[oid] & 1 == 1


@dataclass(frozen=True, slots=True)
class Side:
    """Commits that main was not built on, with their ancestry, and the commits where they branch off main."""

    commits: Mapping[str, Commit] = field(default_factory=dict)
    below: Below = field(default_factory=Below)
    forks: tuple[str, ...] = ()

    def forks_of(self, oid: str) -> tuple[str, ...]:
        """The first commits of main among its ancestors, on each path."""
        bits = self.below.bits[oid]
        return tuple(fork for fork in self.forks if self.below.has(bits, fork))


def side_of(reads: Reads, starts: Iterable[str], old: str) -> Side:
    """Every commit that is one of `starts` or an ancestor of one, but not of `old`. Raises TooMuch, and Faults."""
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
    """Commits back from `starts`, twice as many per query, until all open ends are ancestors of `old`.

    Also the answers of the ancestry queries: some of the commits read may be ancestors of `old` too.
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
    """`order` has parents before children; parents that were not read have bits, too."""
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
    """Commits that are not ancestors of `old`; neither are their descendants, so one answer settles many."""
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
