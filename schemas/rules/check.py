"""Check a whole repository, and format the problems for people and machines.

Pure: files come in as bytes, problems go out as values or text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from schemas.reading.collector import collector_paused
from schemas.reading.reader import read_document, rule_of
from schemas.reading.strict_yaml import Positions, locate
from schemas.rules.edits import edit_problems
from schemas.rules.findings import Finding
from schemas.rules.offer_rules import expired
from schemas.rules.problems import Problem
from schemas.rules.repository import Outcome, Repository
from schemas.rules.view import gpr_path, key_path
from schemas.status.gpr_status import HOLDING, Phase

File = tuple[str, int, bytes]
"""Path, Git mode and content; the mode of a plain file is `reading.REGULAR`."""

Request = tuple[str, str]
"""Slice and name."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The number of documents, refused ones included, and every problem by file and place."""

    documents: int
    problems: tuple[Problem, ...]

    @property
    def ok(self) -> bool:
        """Whether there is no error."""
        return not any(problem.severity == "error" for problem in self.problems)


def check_files(
    files: Iterable[File],
    base: Repository | None = None,
    phases: Mapping[Request, Phase] | None = None,
    now: datetime | None = None,
    is_recorded: Callable[[str], bool] = lambda _: False,
) -> CheckResult:
    """Every problem of a repository.

    With `base` (the tree before the change) and the requests' phases forbidden edits too, with `now` expired keys.
    `is_recorded`: see `Repository`.
    """
    contents: dict[str, bytes] = {}
    outcomes: dict[str, Outcome] = {}
    repository = Repository()
    repository.is_recorded = is_recorded
    with collector_paused():
        for path, mode, data in files:
            contents[path] = data
            outcomes[path] = read_document(path, data, mode)
        older = set() if base is None else base.documents.keys() & outcomes.keys()
        repository.update({path: outcomes[path] for path in sorted(older)})
        repository.update({path: outcome for path, outcome in outcomes.items() if path not in older})

    def positions(path: str) -> Positions | None:
        return locate(contents[path]) if path in repository.documents else None

    def positions_in(paths: Sequence[str]) -> dict[str, Positions]:
        return {path: found for path in paths if (found := positions(path)) is not None}

    found = list(repository.problems(positions_in))
    if base is not None:
        edits = forbidden_edits(base, repository, phases or {})
        found += [edit.problem(positions(edit.file)) for edit in edits]
    if now is not None:
        over = (each for name, key in repository.keys.items() for each in expired(key_path(name), key, now))
        found += [each.problem(positions(each.file)) for each in over]
    return CheckResult(sum(rule_of(path) is not None for path in contents), tuple(sorted(found)))


def forbidden_edits(
    base: Repository, head: Repository, phases: Mapping[Request, Phase]
) -> tuple[Finding, ...]:
    """Edits of requests that hold nodes. Changes of their template or slice are allowed: they keep their terms."""
    found: list[Finding] = []
    for (slice_, name), phase in sorted(phases.items()):
        file = gpr_path(slice_, name)
        if phase in HOLDING and file in base.documents and head.absent(file):
            message = f"{slice_}/{name} is {phase}; deleting its file does not end it"
            found.append(Finding(file, "HeldFileDeleted", message))
        if head.gprs.get((slice_, name)) == base.gprs.get((slice_, name)):
            continue
        old, new = base.resolved(slice_, name), head.resolved(slice_, name)
        if old is not None and new is not None:
            found += edit_problems(file, old, new, phase)
    return tuple(found)


def as_json(result: CheckResult) -> str:
    """The stable form of `egs validate -o json`."""
    problems = [asdict(problem) for problem in result.problems]
    return json.dumps({"documents": result.documents, "problems": problems}, indent=2, ensure_ascii=False)


def as_annotations(result: CheckResult) -> str:
    """GitHub workflow commands that annotate each problem's line; one per line, empty without problems."""
    return "".join(f"{_annotation(problem)}\n" for problem in result.problems)


def _annotation(problem: Problem) -> str:
    properties = (
        ("file", problem.file),
        ("line", str(problem.line)),
        ("col", str(problem.column)),
        ("title", problem.rule),
    )
    named = ",".join(f"{name}={_property(value)}" for name, value in properties)
    return f"::{problem.severity} {named}::{_data(f'{problem.message}; {problem.fix}')}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
