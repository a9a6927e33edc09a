"""What main says, kept up to date at the cost of what changed, and which documents are in force.

A document that main breaks or deletes while it is needed stays in force as it was last valid; it is then kept
under `accepted/` on the status branch, so that a controller started anywhere knows it. For requests the same
lives in their own status.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from reconciler.facts import Facts, Filed, Wanted
from reconciler.store.cache import DocumentCache
from reconciler.store.port import Entry, Store
from reconciler.world import manifest_pools
from schemas.approval import Approval
from schemas.base import Document
from schemas.cluster import Cluster
from schemas.errors import UserError
from schemas.gpr import GPR, GPRTemplate, resolve
from schemas.problems import Problem
from schemas.project import Project
from schemas.reading import from_json, parse_to_json, read_document
from schemas.repository import Outcome, Repository
from schemas.slice import Slice
from schemas.status import TERMINAL
from schemas.strictyaml import MAX_BYTES, Refused

MAX_DOCUMENTS = 200_000
"""Files of one tree that are looked at; more is refused before anything is read."""
ACCEPTED = "accepted/"
PROJECT = "project.yaml"


@dataclass(frozen=True, slots=True)
class InForce:
    """A document that counts, and its bytes."""

    document: Document
    data: bytes


class Desired:
    """The documents of main. One owner; `update` moves it from commit to commit."""

    def __init__(self, store: Store, cache: DocumentCache) -> None:
        self._store = store
        self._cache = cache
        self.commit: str | None = None
        self._repository = Repository()
        self._force: dict[str, InForce] = {}
        self._filed: dict[str, Filed] = {}
        self._refused: dict[str, str] = {}
        self._accepted: dict[str, bytes] = {}

    def restore(self, accepted: Mapping[str, bytes]) -> None:
        """Documents that are in force instead of what main has, from the status branch."""
        for path, data in accepted.items():
            document = read_document(path, data)
            if isinstance(document, Document):
                self._force[path] = InForce(document, data)

    def update(self, commit: str) -> bool:
        """Read what changed since the last commit; False when it is the same one."""
        if commit == self.commit:
            return False
        entries = self._store.diff(self.commit, commit)
        outcomes, data = self._read(entries)
        self._repository.update(outcomes)
        self._judge(outcomes, data)
        self.commit = commit
        return True

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Everything wrong with main as it is."""
        return tuple(self._repository.problems())

    def has_requests(self) -> bool:
        """True when main holds any GPR."""
        return bool(self._filed)

    def accepted_files(self) -> dict[str, bytes]:
        """What the status branch must keep: documents in force that main does not have so."""
        return {ACCEPTED + path: data for path, data in self._accepted.items()}

    def wanted(self, facts: Facts) -> Wanted:
        """The documents in force; raises UserError NoProject while there never was a valid project.yaml."""
        self._drop_unused(facts)
        project = self._force.get(PROJECT)
        if project is None or not isinstance(project.document, Project):
            raise UserError("main has no valid project.yaml yet; `egs init` writes one", "NoProject")
        documents = [kept.document for kept in self._force.values()]
        clusters = {d.metadata.name: d.spec for d in documents if isinstance(d, Cluster)}
        return Wanted(
            commit=self.commit or "",
            project=project.document.spec,
            clusters=clusters,
            slices={d.metadata.name: d.spec for d in documents if isinstance(d, Slice)},
            filed=self._filed,
            approvals=self._approvals(documents),
            pools=manifest_pools(clusters),
        )

    @staticmethod
    def _approvals(documents: Iterable[Document]) -> dict[str, tuple[Approval, ...]]:
        found: dict[str, tuple[Approval, ...]] = {}
        for document in documents:
            if isinstance(document, Approval):
                key = f"{document.spec.slice}/{document.spec.gpr}"
                found[key] = (*found.get(key, ()), document)
        return found

    def _read(self, entries: Iterable[Entry]) -> tuple[dict[str, Outcome], dict[str, bytes]]:
        """Outcomes of all changed files, and the bytes of those that are documents other than GPRs."""
        outcomes: dict[str, Outcome] = {}
        wanted: dict[str, Entry] = {}
        for entry in entries:
            if entry.oid is None:
                outcomes[entry.path] = None
            else:
                wanted[entry.path] = entry
        if len(wanted) > MAX_DOCUMENTS:
            raise UserError(
                f"main changed {len(wanted)} files at once, at most {MAX_DOCUMENTS} are read", "TooMany"
            )
        oids = {e.oid for e in wanted.values() if e.oid is not None and e.mode in (0o100644, 0o100755)}
        known = self._cache.get_many(oids)
        sizes = self._store.sizes(oids - set(known))
        blobs = self._store.read(oid for oid, size in sizes.items() if size <= MAX_BYTES)
        fresh: dict[str, bytes] = {}
        kept: dict[str, bytes] = {}
        for path, entry in wanted.items():
            assert entry.oid is not None
            outcomes[path] = self._outcome(entry, known, blobs, fresh)
            if isinstance(outcomes[path], Document) and not isinstance(outcomes[path], GPR):
                kept[path] = blobs.get(entry.oid) or self._store.read([entry.oid])[entry.oid]
        self._cache.put_many(fresh)
        return outcomes, kept

    def _outcome(
        self, entry: Entry, known: Mapping[str, bytes], blobs: Mapping[str, bytes], fresh: dict[str, bytes]
    ) -> Outcome:
        assert entry.oid is not None
        text = known.get(entry.oid) or fresh.get(entry.oid)
        if text is not None and entry.mode == 0o100644:
            outcome = from_json(entry.path, text)
            if isinstance(outcome, Document) or not outcome:
                return outcome
        data = blobs.get(entry.oid)
        if data is None:
            data = b"" if entry.mode not in (0o100644, 0o100755) else self._bounded(entry.oid)
        outcome = read_document(entry.path, data, entry.mode)
        if isinstance(outcome, Document):
            try:
                fresh[entry.oid] = parse_to_json(data)
            except Refused:  # pragma: no cover
                pass
        return outcome

    def _bounded(self, oid: str) -> bytes:
        """The blob, or as many zero bytes as make the reader say TooLarge without reading it."""
        size = self._store.sizes([oid])[oid]
        return self._store.read([oid])[oid] if size <= MAX_BYTES else bytes(MAX_BYTES + 1)

    def _judge(self, outcomes: Mapping[str, Outcome], data: Mapping[str, bytes]) -> None:
        """Which of the changed documents come into force, and what each request's file says."""
        errors = {p.file: p for p in reversed(self.problems) if p.severity == "error"}
        for path, outcome in outcomes.items():
            if isinstance(outcome, Document) and not isinstance(outcome, GPR):
                if path not in errors or path not in self._force:
                    self._come_into_force(path, InForce(outcome, data[path]), path in errors)
        self._refresh_accepted(errors)
        self._refile(errors)

    def _come_into_force(self, path: str, entry: InForce, broken: bool) -> None:
        if not broken:
            self._force[path] = entry

    def _refresh_accepted(self, errors: Mapping[str, Problem]) -> None:
        tip = self._repository.documents
        for path in [p for p, kept in self._force.items() if isinstance(kept.document, Approval)]:
            if path not in tip or path in errors:
                del self._force[path]
        self._accepted = {
            path: kept.data for path, kept in self._force.items() if tip.get(path) != kept.document
        }

    def _refile(self, errors: Mapping[str, Problem]) -> None:
        refused = {p: e for p, e in errors.items() if "/gprs/" in p}
        filed: dict[str, Filed] = {}
        for path, document in self._repository.documents.items():
            if isinstance(document, GPR):
                key = f"{document.spec.slice}/{document.metadata.name}"
                filed[key] = self._file(document, refused.get(path))
        for path, error in refused.items():
            parts = path.removesuffix(".yaml").split("/")
            if len(parts) == 4:
                filed.setdefault(f"{parts[1]}/{parts[3]}", Filed(None, _sentence(error)))
        self._filed = filed

    def _file(self, document: GPR, error: Problem | None) -> Filed:
        if error is not None:
            return Filed(None, _sentence(error))
        template = self._force.get(f"templates/{document.spec.template}.yaml")
        wish = template.document.spec if template and isinstance(template.document, GPRTemplate) else None
        resolved = resolve(document.spec, wish)
        return Filed(None, resolved) if isinstance(resolved, str) else Filed(resolved)

    def _drop_unused(self, facts: Facts) -> None:
        """What main no longer has goes as soon as no request needs it."""
        tip = self._repository.documents
        live = [s for s in facts.requests.values() if s.phase not in TERMINAL]
        slices = {s.accepted_spec.slice for s in live}
        clusters = {s.assignment.cluster for s in live if s.assignment is not None}
        for path in [p for p in self._force if p not in tip]:
            document = self._force[path].document
            needed = (
                isinstance(document, Project)
                or (isinstance(document, Slice) and document.metadata.name in slices)
                or (isinstance(document, Cluster) and document.metadata.name in clusters)
            )
            if not needed and path not in self._refused_paths():
                del self._force[path]
                self._accepted.pop(path, None)

    def _refused_paths(self) -> frozenset[str]:
        return frozenset(p.file for p in self.problems if p.severity == "error")


def _sentence(problem: Problem) -> str:
    return f"{problem.file}:{problem.line}: {problem.message}; {problem.fix}"
