"""The documents of one tree and the findings of the rules, updated at the cost of what changed.

Rules read other documents only through a `View`, which records what they read. A change runs the rules of the changed
documents and of those that had read something that changed. A refused file is remembered as refused, so that
documents that refer to it are not blamed for its absence.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from types import MappingProxyType
from typing import Any

from schemas.documents.apikey import ApiKey
from schemas.documents.approval import Approval
from schemas.documents.base import Document
from schemas.documents.binding import GPRTemplateBinding
from schemas.documents.cluster import Cluster, is_same_but_for_maintenance
from schemas.documents.gpr import GPR, GPRTemplate, RequestSpec, resolve
from schemas.documents.notifications import Profile
from schemas.documents.project import Project
from schemas.documents.slice import Slice
from schemas.documents.workspace import WorkspaceRequest
from schemas.reading.reader import Reading
from schemas.reading.strict_yaml import Positions
from schemas.rules.findings import Finding
from schemas.rules.problems import Problem
from schemas.rules.rules_across import across
from schemas.rules.rules_inside import inside
from schemas.rules.view import PROJECT, Key, View, approvals_key, facts_of, keys_of, slice_path

Outcome = Reading | None
"""The result of reading one file; None: it was deleted."""
PositionsIn = Callable[[Sequence[str]], Mapping[str, Positions]]
"""Lines and columns in files, by path; files that cannot be read are left out."""


class Repository:
    """One tree's documents. A single owner updates them in place."""

    def __init__(self) -> None:
        self._documents: dict[str, Document] = {}
        self._others: dict[str, Document] = {}  # all but requests: few, and enough for most lookups
        self._refused: dict[str, tuple[Problem, ...]] = {}
        self._named: dict[type[Document], dict[Any, Any]] = {kind: {} for kind in _NAMES}
        self._parts: defaultdict[Key, set[str]] = defaultdict(set)
        self._readers: defaultdict[Key, set[str]] = defaultdict(set)
        self._read: dict[str, set[Key]] = {}
        self._findings: dict[str, tuple[Finding, ...]] = {}
        self._arrived: dict[str, int] = {}  # number of the update in which a request's file came
        self._updates = 0
        self.is_recorded: Callable[[str], bool] = lambda _: False
        """Whether the request of a file was accepted before; asked if a slice has too many of them."""
        self.rules_run = 0
        """Number of documents on which the last update ran the rules."""

    @property
    def documents(self) -> Mapping[str, Document]:
        """Every valid document, by path."""
        return MappingProxyType(self._documents)

    @property
    def others(self) -> Mapping[str, Document]:
        """Every valid document that is not a request, by path."""
        return MappingProxyType(self._others)

    @property
    def refused(self) -> Mapping[str, tuple[Problem, ...]]:
        """Every file that is not a valid document, or has a warning for its place, by path."""
        return MappingProxyType(self._refused)

    def absent(self, path: str) -> bool:
        """Whether there is no file at that path, not even a refused one."""
        return path not in self._documents and path not in self._refused

    @property
    def project(self) -> Project | None:
        found = self._documents.get(PROJECT)
        return found if isinstance(found, Project) else None

    @property
    def clusters(self) -> Mapping[str, Cluster]:
        return MappingProxyType(self._named[Cluster])

    @property
    def slices(self) -> Mapping[str, Slice]:
        """By name: slice files, and slices made by workspace requests."""
        asked = self._named[WorkspaceRequest]
        if not asked:
            return MappingProxyType(self._named[Slice])
        made = {name: request.as_slice() for name, request in asked.items() if self.absent(slice_path(name))}
        return MappingProxyType(made | self._named[Slice])

    @property
    def workspaces(self) -> Mapping[str, WorkspaceRequest]:
        return MappingProxyType(self._named[WorkspaceRequest])

    @property
    def templates(self) -> Mapping[str, GPRTemplate]:
        return MappingProxyType(self._named[GPRTemplate])

    @property
    def bindings(self) -> Mapping[str, GPRTemplateBinding]:
        """By the name of their slice."""
        return MappingProxyType(self._named[GPRTemplateBinding])

    @property
    def keys(self) -> Mapping[str, ApiKey]:
        return MappingProxyType(self._named[ApiKey])

    @property
    def profiles(self) -> Mapping[str, Profile]:
        return MappingProxyType(self._named[Profile])

    @property
    def gprs(self) -> Mapping[tuple[str, str], GPR]:
        """By slice and name."""
        return MappingProxyType(self._named[GPR])

    def approvals(self, slice_: str, gpr: str) -> tuple[Approval, ...]:
        """All approvals of a request, by name."""
        paths = sorted(self._parts.get(approvals_key(slice_, gpr), ()))
        return tuple(found for path in paths if isinstance(found := self._documents[path], Approval))

    def resolved(self, slice_: str, name: str) -> RequestSpec | None:
        """A request with its template expanded; None if either is missing, or nodes or duration are."""
        gpr = self.gprs.get((slice_, name))
        if gpr is None:
            return None
        template = self.templates.get(gpr.spec.template or "")
        if gpr.spec.template and template is None:
            return None
        found = resolve(gpr.spec, template.spec if template else None)
        return found if isinstance(found, RequestSpec) else None

    def copy(self) -> Repository:
        """A repository with the same documents, updated independently. O(documents)."""
        other = copy(self)
        for name, value in vars(self).items():
            if isinstance(value, dict):
                setattr(other, name, copy(value))
        other._named = {kind: dict(named) for kind, named in self._named.items()}
        for there, own in ((self._parts, other._parts), (self._readers, other._readers)):
            own.update((key, set(paths)) for key, paths in there.items())
        return other

    def update(self, changes: Mapping[str, Outcome]) -> None:
        """Add, replace and remove files, then run the affected rules."""
        changed: set[Key] = set()
        self._updates += 1
        quiet = set[Key]()
        for path, outcome in changes.items():
            old = self._documents.get(path)
            changed |= self._put(path, outcome)
            if _is_quiet(old, self._documents.get(path)):
                quiet.add(path)
        touched = {path for path in changed if isinstance(path, str)}
        for key in changed - quiet:
            touched |= self._readers.get(key, set())
        self.rules_run = 0
        for path in touched:
            self._run(path)

    def leave_unread(self, paths: Iterable[str]) -> None:
        """Documents whose content is not needed: they exist and count in their folder, but no rule runs on them.

        Call it before anything else; a later `update` of such a path stores its content.
        """
        for path in paths:
            self._refused[path] = ()
            for key in keys_of(path):
                self._parts[key].add(path)
                self._arrived.setdefault(path, self._updates)

    def _put(self, path: str, outcome: Outcome) -> set[Key]:
        """Store one result; returns the keys whose readers must run again."""
        old = self._documents.pop(path, None)
        refused = self._refused.pop(path, None)
        was_refused, was_unread = refused is not None, refused == ()
        new = outcome if isinstance(outcome, Document) else None
        self._others.pop(path, None)
        if new is not None:
            self._documents[path] = new
            if not isinstance(new, GPR):
                self._others[path] = new
        elif isinstance(outcome, tuple) and outcome:
            self._refused[path] = outcome
        if old == new and was_refused == (path in self._refused):
            return set()
        before = keys_of(path) if was_unread else facts_of(old)
        after = facts_of(new)
        for key in before - after:
            self._parts[key].discard(path)
        for key in after - before:
            self._parts[key].add(path)
        if isinstance(new, GPR):
            self._arrived.setdefault(path, self._updates)
        else:
            self._arrived.pop(path, None)
        self._name(old, new)
        return {path} | (before ^ after)

    def _name(self, old: Document | None, new: Document | None) -> None:
        if old is not None and type(old) in _NAMES:
            del self._named[type(old)][_NAMES[type(old)](old)]
        if new is not None and type(new) in _NAMES:
            self._named[type(new)][_NAMES[type(new)](new)] = new

    def _run(self, path: str) -> None:
        for key in self._read.pop(path, ()):
            self._readers[key].discard(path)
        self._findings.pop(path, None)
        document = self._documents.get(path)
        if document is None:
            return
        self.rules_run += 1
        view = View(self._documents, self._refused, self._parts, self._age)
        found = (*inside(path, document), *across(path, document, view))
        if found:
            self._findings[path] = found
        self._read[path] = view.read
        for key in view.read:
            self._readers[key].add(path)

    def _age(self, path: str) -> tuple[bool, int]:
        return not self.is_recorded(path), self._arrived.get(path, 0)

    def is_clean(self, path: str) -> bool:
        """Whether the rules found nothing in the document there."""
        return path not in self._findings

    def reads(self, path: str) -> frozenset[Key]:
        """Keys that the rules of the document there have read."""
        return frozenset(self._read.get(path, ()))

    def findings(self) -> tuple[Finding, ...]:
        """Findings in the valid documents, in a stable order."""
        found = [finding for findings in self._findings.values() for finding in findings]
        if self.absent(PROJECT):
            found.append(Finding(PROJECT, "ProjectMissing", "there is no project.yaml"))
        return tuple(sorted(found, key=lambda finding: (finding.file, finding.rule, finding.message)))

    def problems(self, positions: PositionsIn = lambda _: {}) -> tuple[Problem, ...]:
        """All errors, warnings and notices, sorted by file and place."""
        found = [problem for problems in self._refused.values() for problem in problems]
        findings = self.findings()
        places = positions(list(dict.fromkeys(finding.file for finding in findings)))
        found += [finding.problem(places.get(finding.file)) for finding in findings]
        return tuple(sorted(found))


def _is_quiet(old: Document | None, new: Document | None) -> bool:
    """Whether the change matters to the document's own rules alone."""
    if not isinstance(old, Cluster) or not isinstance(new, Cluster):
        return False
    return old.metadata == new.metadata and is_same_but_for_maintenance(old.spec, new.spec)


_NAMES: dict[type[Document], Callable[[Any], str | tuple[str, str]]] = {
    Cluster: lambda document: document.metadata.name,
    Slice: lambda document: document.metadata.name,
    WorkspaceRequest: lambda document: document.metadata.name,
    GPRTemplate: lambda document: document.metadata.name,
    GPRTemplateBinding: lambda document: document.metadata.name,
    ApiKey: lambda document: document.metadata.name,
    Profile: lambda document: document.metadata.name,
    GPR: lambda document: (document.spec.slice, document.metadata.name),
}
"""The key of a document in the table of its kind."""
