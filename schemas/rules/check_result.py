"""What the check of a repository found, as a value and as text for people's forges and machines. Imports no models."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from datetime import datetime

from schemas.rules.problems import Problem


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The number of documents, refused ones included, and every problem by file and place."""

    documents: int
    problems: tuple[Problem, ...]
    until: datetime | None = field(default=None, compare=False)
    """When the same files would first give something else; None: never."""

    @property
    def ok(self) -> bool:
        """Whether there is no error."""
        return not any(problem.severity == "error" for problem in self.problems)


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
