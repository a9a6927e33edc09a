"""The documents that a check needs, of main and with the pull request applied, as the controller reads them.

The cost depends on the pull request's changes, not on the repository: unaffected requests only need to exist.
If a document changes that the rules of many requests read (the project, a cluster, a template), all
unfinished requests are read, for a slice those of the slice. Files of finished requests are not checked.

Held by tests/reconciler/pulls/test_before_and_after.py: the result equals that of reading everything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from reconciler.documents.in_force import Desired
from reconciler.documents.unread_files import recorded
from reconciler.pulls.merged_tree import Merged, MergedContents
from reconciler.store.document_cache import DocumentCache
from reconciler.store.store_port import Contents, Entry
from schemas.reading.reader import READER_VERSION, rule_of
from schemas.rules.problems import Problem
from schemas.rules.view import gpr_path
from schemas.status.judgements import TrustRecord

_OF_MANY = frozenset({"Project", "Cluster", "GPRTemplate", "WorkspaceRequest"})


@dataclass(frozen=True, slots=True)
class Known:
    """What the status says of main, so that less must be read."""

    since: Collection[str] | None = None  # paths that main changed since; None: unknown
    live: Collection[str] = ()  # requests (`slice/name`) that wait or run
    over: Collection[str] = ()  # finished requests
    trust: TrustRecord | None = None
    accepted: Mapping[str, bytes] = field(default_factory=dict)


class Documents:
    """Main, and after `merge` the pull request applied to it. One owner."""

    def __init__(self, store: Contents, merge: Merged, known: Known) -> None:
        self._merge, self._trust = merge, known.trust
        held = {change.path for change in known.trust.held} if known.trust is not None else set()
        moved = None if known.since is None else {*known.since, *merge.changes, *held}
        needs = _Needs(moved, known)
        chosen: list[Entry] = []
        left: list[str] = []
        for entry in store.diff(None, merge.base):
            if needs.read(entry.path):
                chosen.append(entry)
            elif rule_of(entry.path) is not None:
                left.append(entry.path)
        contents = MergedContents(store, merge, chosen)
        self.desired = Desired(contents, DocumentCache(None, READER_VERSION))
        self.desired.repository.leave_unread(left)
        self.desired.repository.is_recorded = recorded({*known.live, *known.over})
        self.desired.restore(known.accepted)
        self.desired.update(merge.base, self._trust)

    def merge(self) -> None:
        """Applies the pull request."""
        self.desired.update(self._merge.head, self._trust)

    def is_absent(self, key: str) -> bool:
        """True if that request has no file."""
        return self.desired.repository.absent(gpr_path(*key.split("/")))


def introduced(before: Iterable[Problem], after: Iterable[Problem], merge: Merged) -> set[Problem]:
    """Problems caused by the change: all in its files, elsewhere only new ones."""
    known = {(problem.file, problem.rule, problem.message) for problem in before}
    return {p for p in after if p.file in merge.changes or (p.file, p.rule, p.message) not in known}


def touches_many(paths: Iterable[str]) -> bool:
    """True if the rules of other requests read these files."""
    rules = [rule for path in paths if (rule := rule_of(path)) is not None]
    return any(rule.kind in {*_OF_MANY, "Slice"} for rule, _ in rules)


def keys_of(paths: Iterable[str]) -> set[str]:
    """The requests that these files define or concern."""
    found = set()
    for path in paths:
        match path.split("/"):
            case ["slices", slice_, "gprs", file]:
                found.add(f"{slice_}/{file.removesuffix('.yaml')}")
            case ["approvals", slice_, gpr, _]:
                found.add(f"{slice_}/{gpr}")
    return found


@dataclass(frozen=True, slots=True)
class Touched:
    """The requests whose judgement may change with some files."""

    keys: frozenset[str] = frozenset()
    slices: frozenset[str] = frozenset()  # all that are not over
    is_all: bool = False  # all that are not over

    @classmethod
    def by(cls, paths: Collection[str]) -> Touched:
        rules = [rule for path in paths if (rule := rule_of(path)) is not None]
        slices = frozenset(names["name"] for rule, names in rules if rule.kind == "Slice")
        return cls(frozenset(keys_of(paths)), slices, any(rule.kind in _OF_MANY for rule, _ in rules))

    @property
    def is_wide(self) -> bool:
        """Whether it may be more than `keys`."""
        return self.is_all or bool(self.slices)

    def widely(self, key: str) -> bool:
        """Whether an unfinished request may change, because of more than its own files."""
        return self.is_all or key.partition("/")[0] in self.slices


class _Needs:
    """The files to read if these paths changed (None: unknown which did)."""

    def __init__(self, moved: Collection[str] | None, known: Known) -> None:
        self._touched = Touched(is_all=True) if moved is None else Touched.by(moved)
        self._known = known

    def read(self, path: str) -> bool:
        """True if the result depends on this file's content."""
        touched, known = self._touched, self._known
        match path.split("/"):
            case ["slices", slice_, "gprs", file]:
                key = f"{slice_}/{file.removesuffix('.yaml')}"
                return key in touched.keys or (touched.widely(key) and key not in known.over)
            case ["approvals", slice_, gpr, _]:
                key = f"{slice_}/{gpr}"
                return key in touched.keys or (touched.widely(key) and key in known.live)
        return True
