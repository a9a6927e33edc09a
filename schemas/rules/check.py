"""Check a whole repository. Pure: files come in as bytes, problems go out as values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from schemas.reading.collector import collector_paused
from schemas.reading.reader import read_document, rule_of
from schemas.reading.strict_yaml import Positions, locate
from schemas.rules.check_result import CheckResult
from schemas.rules.edits import edit_problems
from schemas.rules.findings import Finding
from schemas.rules.offer_rules import expired
from schemas.rules.repository import Outcome, Repository
from schemas.rules.view import gpr_path, key_path
from schemas.status.gpr_status import HOLDING, Phase

File = tuple[str, int, bytes]
"""Path, Git mode and content; the mode of a plain file is `reading.REGULAR`."""

Request = tuple[str, str]
"""Slice and name."""


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
    ends = [key.spec.not_after for key in repository.keys.values() if key.spec.not_after is not None]
    until = min((end for end in ends if now is not None and end > now), default=None)
    return CheckResult(sum(rule_of(path) is not None for path in contents), tuple(sorted(found)), until)


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
