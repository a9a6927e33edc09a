"""The documents of main with a round's changes on top: which problems a change brings, and how it is taken back.

The API, the command line and the door for GPR objects judge each change here, on top of the earlier ones. Pure,
except that it updates `repository`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from reconciler.documents.finished_files import brought
from reconciler.documents.restored_files import ends, says
from reconciler.sources.source import Changes
from schemas.documents.gpr import GPR, Wish
from schemas.reading.reader import Reading, read_document, rule_of
from schemas.rules.edits import edit_problems
from schemas.rules.problems import Problem
from schemas.rules.repository import Outcome, Repository
from schemas.status.gpr_status import HOLDING, GPRStatus

Undo = Mapping[str, Outcome]
"""The previous results of reading the changed files."""


@dataclass(slots=True)
class MainDocuments:
    """One owner. Changes are tried in memory, so an invalid one fails alone and costs no commit."""

    repository: Repository
    read: Callable[[str, bytes], Reading] = read_document
    """How a file is read; a caller that reads files several times gives one with a cache."""
    _errors: frozenset[Problem] | None = None

    def judged(self, changes: Changes, requests: Mapping[str, GPRStatus]) -> tuple[tuple[Problem, ...], Undo]:
        """The problems that refuse the change; without any it stays on top, and `Undo` takes it back.

        `requests` are the statuses by `slice/name`. A problem counts if it is in a changed file, or new elsewhere.
        """
        before = self.errors()
        errors, undo = self.tried(changes)
        found = [*brought(errors, requests, before, changes), *self._forbidden(changes, requests, undo)]
        ending = {path for path, data in changes.items() if ends(path, data)}
        # Nothing else matters in a file that ends its request, nor in others if the change does nothing else.
        kept = () if len(ending) == len(changes) else tuple(p for p in found if p.file not in ending)
        if kept:
            self.take_back(undo)
        return kept, undo

    def _forbidden(
        self, changes: Changes, requests: Mapping[str, GPRStatus], before: Undo
    ) -> Iterator[Problem]:
        """Changed terms of requests that hold nodes."""
        templates = self.templates
        for path, data in changes.items():
            found = rule_of(path)
            if found is None or found[0].kind != "GPR" or data is None:
                continue
            names: Mapping[str, str] = found[1]
            status = requests.get(f"{names['slice']}/{names['name']}")
            new = self.repository.resolved(names["slice"], names["name"])
            if status is not None and status.phase in HOLDING and new is not None:
                old = before.get(path)
                said = says(old if isinstance(old, GPR) else None, templates)
                for each in edit_problems(path, status.accepted_spec, new, status.phase, said):
                    yield each.problem(None)

    @property
    def templates(self) -> Mapping[str, Wish]:
        return {name: template.spec for name, template in self.repository.templates.items()}

    def tried(self, changes: Changes) -> tuple[tuple[Problem, ...], Undo]:
        """Adds the changes, whatever they break; returns the errors that they bring."""
        before = self.errors()
        undo = {path: self._outcome(path) for path in changes}
        self.update({path: None if data is None else self.read(path, data) for path, data in changes.items()})
        found = (p for p in self.errors() if p.file in changes or p not in before)
        return tuple(sorted(found)), undo

    def take_back(self, undo: Undo) -> None:
        """Undo `tried` or `judged`."""
        self.update(undo)

    def update(self, outcomes: Mapping[str, Outcome]) -> None:
        self.repository.update(outcomes)
        self._errors = None

    def errors(self) -> frozenset[Problem]:
        """Errors of the documents, including the changes on top."""
        if self._errors is None:
            self._errors = frozenset(p for p in self.repository.problems() if p.severity == "error")
        return self._errors

    def _outcome(self, path: str) -> Outcome:
        found = self.repository.documents.get(path)
        return self.repository.refused.get(path) if found is None else found


def sentence(problem: Problem) -> str:
    return f"{problem.file}: {problem.message} ({problem.rule}; {problem.fix})"
