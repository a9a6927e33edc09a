"""The documents of main, updated at the cost of what changed, and which of them are in force.

A document that main breaks or deletes while it is needed stays in force as it was last valid. It is kept under
`accepted/` on the status branch for controllers started anywhere; a request's own status serves for its file.
A missing or broken approval, API key, profile or binding does not count.

A held change (`reconciler.trust.gate`) is not even read: the last authorised content is used instead.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from reconciler.documents.held_edits import Overlay, overlaid
from reconciler.documents.read_ahead import Ahead
from reconciler.documents.unread_files import LeftOut, is_quiet, key_of
from reconciler.model.differing import differing
from reconciler.model.facts import Facts, Filed, Wanted, Workspace
from reconciler.model.pools import manifest_pools
from reconciler.model.request_files import Filings, UnreadFile
from reconciler.model.selected_nodes import with_found
from reconciler.model.statuses import live
from reconciler.store.document_cache import DocumentCache
from reconciler.store.store_port import REGULAR_MODE, Contents, Entry
from schemas.documents.apikey import ApiKey
from schemas.documents.approval import Approval
from schemas.documents.base import Document
from schemas.documents.binding import GPRTemplateBinding
from schemas.documents.cluster import Cluster
from schemas.documents.endpoint import Endpoint
from schemas.documents.gpr import GPR, GPRTemplate, resolve
from schemas.documents.identity import NONCE
from schemas.documents.notifications import Profile
from schemas.documents.project import Project
from schemas.documents.slice import Slice
from schemas.documents.workload import Workload
from schemas.documents.workspace import WorkspaceRequest
from schemas.errors import UserError
from schemas.reading.collector import collector_paused
from schemas.reading.reader import READER_VERSION, from_json, read_document, read_with_text, rule_of
from schemas.reading.strict_yaml import MAX_BYTES, Positions, locate
from schemas.rules.limits import in_project
from schemas.rules.problems import Problem
from schemas.rules.repository import Outcome, Repository
from schemas.rules.view import gpr_path, template_path
from schemas.status.gpr_status import Provenance
from schemas.status.judgements import TrustRecord

ACCEPTED = "accepted/"
PROJECT = "project.yaml"
ONLY_AS_IT_IS = (Approval, ApiKey, Profile, GPRTemplateBinding)
"""Kinds that are never kept in an older version than main's: above all a revoked key."""
QUEUES_ANYWAY = frozenset({"FitsNowhere", "UnknownShape"})
"""Errors that a change of the fleet can fix: the request queues without an estimate and says what would fit."""
NOTHING: Mapping[str, Provenance] = {}
_READ_AT_ONCE = 500
"""Files whose lines are located together: each may have a mebibyte."""
_OF_THE_STORE = frozenset({"_store", "_cache", "_ahead"})

Kind = TypeVar("Kind", bound=Document)


@dataclass(frozen=True, slots=True)
class InForce:
    document: Document
    data: bytes


class Desired:
    """The documents of main. One owner; `update` moves it from commit to commit."""

    def __init__(self, store: Contents, cache: DocumentCache) -> None:
        self._store = store
        self._cache = cache
        self._ahead = Ahead(store, cache, self._read)
        self._repository = Repository()
        self._entries: dict[str, Entry] = {}  # files that count, by path
        self._overlay = Overlay()
        self._trust: TrustRecord | None = None
        self._provenance: Mapping[str, Provenance] = {}
        self._force: dict[str, InForce] = {}
        self._filed = Filings({})
        self._unread = LeftOut()
        self._left: frozenset[str] = frozenset()  # neither read nor filed yet
        self._notes: Mapping[str, str] = {}
        self._errors: dict[str, Problem] = {}
        self._templates: dict[str, InForce] = {}
        self._at: str | None = None  # the commit that the repository is at
        self._changed: set[str] = set()  # in the repository but not in force yet
        self._wanted: Wanted | None = None
        self._last: Wanted | None = None  # the previous result for the documents in force now
        self.commit: str | None = None
        self.problems: tuple[Problem, ...] = ()  # all of main

    def restore(self, accepted: Mapping[str, bytes]) -> None:
        """Documents in force that differ from main, from the status branch."""
        for path, data in accepted.items():
            document = read_document(path, data)
            if isinstance(document, Document):
                self._force[path] = InForce(document, data)
        self._wanted = self._last = None

    def twin(self) -> Desired:
        """A copy that shares everything read, with nothing in force yet."""
        other = Desired(self._store, self._cache)
        other._repository = self._repository.copy()
        other._entries, other._unread, other._overlay = self._entries, self._unread, self._overlay
        # A request's filing follows from its file, template and problems: requests that differ are filed again.
        other._at, other._filed, other._errors = self._at, self._filed, self._errors
        other._templates = self._templates
        other._changed = set(self._repository.others)
        return other

    def over(self, contents: Contents) -> Desired:
        """A copy of its own as it is now, in force included, that reads what changes from `contents`. O(documents)."""
        other = Desired(contents, DocumentCache(None, READER_VERSION))
        for name, value in vars(self).items():
            if name not in _OF_THE_STORE:
                setattr(other, name, value)
        other._repository, other._force = self._repository.copy(), dict(self._force)
        other._changed = set(self._changed)
        return other

    def leave_unread(self, notes: Mapping[str, str]) -> None:
        """Notes of an earlier process about files, by path; set before the first `update`."""
        self._notes = notes if self._at is None else {}

    def note_of(self, key: str) -> str | None:
        """The note for the file of a finished request that needs no further check; None: it needs one."""
        path = gpr_path(*key.split("/"))
        entry, around = self._entries.get(path), self._unread.around
        if entry is None or around is None or path in self._provenance or path in self._overlay.held:
            return None
        return around.note(entry) if is_quiet(path, self._repository) else None

    def read_ahead(self, commit: str, trust: TrustRecord | None = None) -> bool:
        """Reads a portion of what an `update` to this commit needs; True: there is more. Nothing is in force yet."""
        if self._at in (None, commit):
            return False
        found, holds = self._ahead.changes(self._at, commit), () if trust is None else trust.held
        return self._ahead.has_more(commit, lambda: overlaid(found, holds, self._overlay, self._entries)[0])

    def update(
        self,
        commit: str,
        trust: TrustRecord | None = None,
        provenance: Mapping[str, Provenance] = NOTHING,
    ) -> None:
        """Reads what changed since the last commit. Raises UserError `TooManyFiles`, or a Fault of the store.

        After an error the old documents stay in force, and the next call resumes. `trust` has the held changes,
        `provenance` who made or approved the requests' files, by path.
        """
        if commit == self.commit and trust == self._trust:
            return
        found, holds = self._ahead.changes(self._at, commit), () if trust is None else trust.held
        entries, overlay = overlaid(found, holds, self._overlay, self._entries)
        tree = dict(self._entries)
        for entry in entries:
            tree.pop(entry.path, None)
            if entry.oid is not None:
                tree[entry.path] = entry
        unread = self._unread.after(entries, tree, self._notes, {*overlay.held, *provenance})
        with collector_paused():
            outcomes = self._ahead.outcomes(unread.to_read)
            self._repository.leave_unread(unread.left)
            self._repository.update(outcomes)
        self._entries, self._unread, self._notes = tree, unread, {}
        self._left = (self._left | unread.left) & unread.paths
        if self._at is None:
            # Once per process suffices to keep the cache as large as the repository instead of its history.
            self._cache.retain(entry.oid for entry in self._entries.values() if entry.oid is not None)
        self._at, self._overlay, self._provenance = commit, overlay, provenance
        self._ahead.over()
        self._changed |= outcomes.keys()
        problems = self._repository.problems(self._positions)
        errors = {p.file: p for p in reversed(problems) if p.severity == "error"}
        self._put_in_force(self._changed, errors)
        self._file_anew(errors)
        self.problems, self.commit, self._trust = problems, commit, trust
        self._changed, self._left, self._wanted = set(), frozenset(), None

    @property
    def store(self) -> Contents:
        return self._store

    @property
    def repository(self) -> Repository:
        """All documents of main, valid or not; read-only."""
        return self._repository

    def in_force(self, path: str) -> Document | None:
        found = self._force.get(path)
        return None if found is None else found.document

    def has_requests(self) -> bool:
        return bool(self._filed)

    def accepted_files(self) -> dict[str, bytes]:
        """What the status branch must keep: documents in force that differ from main."""
        tip = self._repository.others
        return {
            ACCEPTED + path: kept.data for path, kept in self._force.items() if tip.get(path) != kept.document
        }

    def wanted(self, facts: Facts) -> Wanted:
        """The documents in force; raises UserError NoProject until there is a valid project.yaml."""
        self._drop_unused(facts)
        if self._wanted is None:
            self._wanted = self._resolved() if self._last is None else self._refiled(self._last)
        self._wanted = self._last = with_found(self._wanted, facts.found)
        return self._wanted

    def _refiled(self, last: Wanted) -> Wanted:
        """The same documents with other requests: what was derived from the documents stays valid."""
        commit, spaces = self.commit or "", self._workspaces()
        return replace(last, commit=commit, filed=self._filed, trust=self._trust, workspaces=spaces)

    def _resolved(self) -> Wanted:
        project = self._force.get(PROJECT)
        if project is None or not isinstance(project.document, Project):
            raise UserError("main has no valid project.yaml yet; `egs init` writes one", "NoProject")
        clusters = {d.metadata.name: d.spec for d in self._all(Cluster)}
        made = {d.metadata.name: d.as_slice().spec for d in self._all(WorkspaceRequest)}
        slices = made | {d.metadata.name: d.spec for d in self._all(Slice)}
        approvals: dict[str, tuple[Approval, ...]] = {}
        for word in self._all(Approval):
            key = f"{word.spec.slice}/{word.spec.gpr}"
            approvals[key] = (*approvals.get(key, ()), word)
        return Wanted(
            commit=self.commit or "",
            project=project.document.spec,
            clusters=clusters,
            slices={name: in_project(spec, project.document.spec) for name, spec in slices.items()},
            filed=self._filed,
            approvals=approvals,
            pools=manifest_pools(clusters),
            manifests=clusters,
            trust=self._trust,
            workspaces=self._workspaces(),
            project_name=project.document.metadata.name,
            templates={d.metadata.name: d.spec for d in self._all(GPRTemplate)},
            bindings={d.metadata.name: d.spec for d in self._all(GPRTemplateBinding)},
            keys={d.metadata.name: d.spec for d in self._all(ApiKey)},
            profiles={d.metadata.name: d.spec for d in self._all(Profile)},
            endpoints={f"{d.spec.slice}/{d.metadata.name}": d.spec for d in self._all(Endpoint)},
            workloads={f"{d.spec.slice}/{d.metadata.name}": d.spec for d in self._all(Workload)},
        )

    def _workspaces(self) -> dict[str, Workspace]:
        """Requests for slices: those in force, and those whose files are refused."""
        asked = {d.metadata.name: d.spec for d in self._all(WorkspaceRequest)}
        own = {d.metadata.name for d in self._all(Slice)}
        refused = {
            rule[1]["name"]: problem.sentence
            for path, problem in self._errors.items()
            if (rule := rule_of(path)) is not None and rule[0].kind == "WorkspaceRequest"
        }
        return {
            name: Workspace(asked.get(name), refused.get(name, ""), name in own)
            for name in sorted({*asked, *refused})
        }

    def _all(self, kind: type[Kind]) -> list[Kind]:
        return [k.document for _, k in sorted(self._force.items()) if isinstance(k.document, kind)]

    # -- reading ---------------------------------------------------------------------------------------------

    def _read(self, entries: Iterable[Entry]) -> dict[str, Outcome]:
        present = [e for e in entries if e.oid is not None]
        regular = {e.oid for e in present if e.oid is not None and e.mode == REGULAR_MODE}
        known = self._cache.get_many(regular)
        sizes = self._store.sizes(regular - known.keys())
        blobs = self._store.read(oid for oid, size in sizes.items() if size <= MAX_BYTES)
        fresh: dict[str, bytes] = {}
        outcomes: dict[str, Outcome] = {e.path: None for e in entries if e.oid is None}
        for entry in present:
            assert entry.oid is not None
            if entry.mode == REGULAR_MODE and entry.oid in known:
                outcome = from_json(entry.path, known[entry.oid])
                # A refusal is explained with lines and columns, which only the bytes provide.
                if isinstance(outcome, Document) or not outcome:
                    outcomes[entry.path] = outcome
                    continue
            data = self._bytes(entry, blobs)
            outcomes[entry.path], text = read_with_text(entry.path, data, entry.mode)
            if text is not None:
                fresh[entry.oid] = text
        self._cache.put_many(fresh)
        return outcomes

    def _bytes(self, entry: Entry, blobs: Mapping[str, bytes]) -> bytes:
        """The file's content; a non-file is not read, and an oversized file is reported by its size."""
        assert entry.oid is not None
        if entry.oid in blobs:
            return blobs[entry.oid]
        if entry.mode != REGULAR_MODE:
            return b""
        if self._store.sizes([entry.oid])[entry.oid] > MAX_BYTES:
            return bytes(MAX_BYTES + 1)
        return self._store.read([entry.oid])[entry.oid]

    def _positions(self, paths: Sequence[str]) -> dict[str, Positions]:
        """Lines and columns in these files, read together: a limit may concern thousands of them."""
        found: dict[str, Positions] = {}
        for first in range(0, len(paths), _READ_AT_ONCE):
            oids = {
                path: oid for path in paths[first:][:_READ_AT_ONCE] if (oid := self._oid(path)) is not None
            }
            data = self._store.read(set(oids.values()))
            found |= {path: locate(data[oid]) for path, oid in oids.items()}
        return found

    def _oid(self, path: str) -> str | None:
        entry = self._entries.get(path)
        return None if entry is None else entry.oid

    # -- what counts -----------------------------------------------------------------------------------------

    def _put_in_force(self, touched: Collection[str], errors: Mapping[str, Problem]) -> None:
        """Every valid document of main; an invalid or missing one stays as it was, except `ONLY_AS_IT_IS`."""
        others = self._repository.others
        sound = {path: document for path, document in others.items() if path not in errors}
        changed = {
            path: document for path, document in sound.items() if path in touched or path not in self._force
        }
        oids = {path: oid for path in changed if (oid := self._oid(path)) is not None}
        data = self._store.read(set(oids.values()))
        self._force |= {path: InForce(changed[path], data[oid]) for path, oid in oids.items()}
        gone = [p for p, k in self._force.items() if isinstance(k.document, ONLY_AS_IT_IS) and p not in sound]
        for path in gone:
            del self._force[path]
        if oids or gone:
            self._last = None

    def _drop_unused(self, facts: Facts) -> None:
        """A document deleted on main is dropped once no request needs it."""
        documents, refused = self._repository.others, self._repository.refused
        gone = [path for path in self._force if path not in documents and path not in refused]
        if not gone:
            return
        there = live(facts.requests).values()
        slices = {s.accepted_spec.slice for s in there}
        clusters = {s.assignment.cluster for s in there if s.assignment is not None}
        for path in gone:
            document = self._force[path].document
            name, of_slice = document.metadata.name, isinstance(document, Slice | WorkspaceRequest)
            is_held = (of_slice and name in slices) or (isinstance(document, Cluster) and name in clusters)
            if not (is_held or isinstance(document, Project)):
                del self._force[path]
                self._wanted = self._last = None

    def _file_anew(self, errors: dict[str, Problem]) -> None:
        """Files the requests again whose file, template or error changed; all others stay as filed."""
        templates = {p: k for p, k in self._force.items() if isinstance(k.document, GPRTemplate)}
        stale = self._changed | differing(self._errors, errors)
        if others := differing(self._templates, templates):
            gprs = self._repository.gprs.items()
            stale |= {gpr_path(*key) for key, gpr in gprs if template_path(gpr.spec.template or "") in others}
        filed = dict(self._filed.raw)
        for path in sorted(stale):
            match path.split("/"):
                case ["slices", slice_, "gprs", file]:
                    key = f"{slice_}/{file.removesuffix('.yaml')}"
                    filed.pop(key, None)
                    if (found := self._file_at(path, errors.get(path))) is not None:
                        behind, held = self._provenance.get(path), self._overlay.held.get(path)
                        filed[key] = replace(found, provenance=behind, held=held) if behind or held else found
        for path in self._left:
            oid = self._entries[path].oid
            filed[key_of(path)] = UnreadFile(oid or "", partial(self._file_unread, self._entries[path]))
        self._filed, self._errors, self._templates = Filings(filed), errors, templates

    def _file_at(self, path: str, error: Problem | None) -> Filed | None:
        """None if the path has no request."""
        document = self._repository.documents.get(path)
        if isinstance(document, GPR):
            return self._file(document, error)
        if error is None or path not in self._repository.refused:
            return None
        return Filed(None, error.sentence)

    def _file_unread(self, entry: Entry) -> Filed:
        """The filing of an unread file, whose problems across files do not count."""
        outcome = self._read([entry])[entry.path]
        if isinstance(outcome, GPR):
            return self._file(outcome, None)
        return Filed(None, outcome[0].sentence if isinstance(outcome, tuple) and outcome else "")

    def _file(self, document: GPR, error: Problem | None) -> Filed:
        if error is not None and error.rule not in QUEUES_ANYWAY:
            return Filed(None, error.sentence, ends=document.spec.early_release)
        template = self._force.get(template_path(document.spec.template or ""))
        wish = template.document.spec if template and isinstance(template.document, GPRTemplate) else None
        resolved = resolve(document.spec, wish)
        if isinstance(resolved, str):
            return Filed(None, resolved, ends=document.spec.early_release)
        return Filed(resolved, nonce=document.metadata.labels.get(NONCE, ""))
