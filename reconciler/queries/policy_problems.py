"""Requests that violate a policy now, as rows of `egs get problems`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from datetime import datetime
from typing import Any

from reconciler.deciding.violations import violations
from reconciler.model.facts import Facts, Wanted
from reconciler.queries.state import read_state
from reconciler.sources.source import Source
from schemas.errors import UserError
from schemas.rules.problems import Problem, Severity, quoted
from schemas.rules.view import gpr_path
from schemas.status.gpr_status import Phase

NEEDS_APPROVAL, REJECTED = "NeedsApproval", "Rejected"
"""Rules of notices: the request needs an approval, or an admin rejected it."""


def problem_rows(source: Source, now: datetime) -> list[dict[str, Any]]:
    """An error per request that a policy keeps from being planned, a warning per lease that keeps its old terms."""
    try:
        state = read_state(source, now)
    except UserError:  # without a valid project.yaml there is no policy; that problem is reported elsewhere
        return []
    return broken_rows(state.facts, state.wanted)


def broken_rows(facts: Facts, wanted: Wanted) -> list[dict[str, Any]]:
    """Violations in these facts and documents, and rejected requests with the admin's reason."""
    return list(map(asdict, _problems(facts, wanted)))


def without_rejected(problems: Iterable[Problem], broken: Iterable[dict[str, Any]]) -> list[Problem]:
    """Document problems that are not in `broken` already; a rejected request needs no NeedsApproval notice."""
    told = {(row["file"], row["rule"]) for row in broken}
    rejected = {(file, NEEDS_APPROVAL) for file, rule in told if rule == REJECTED}
    return [one for one in problems if (one.file, one.rule) not in told | rejected]


def _problems(facts: Facts, wanted: Wanted) -> Iterator[Problem]:
    for key, status in sorted(facts.requests.items()):
        if status.phase is Phase.REJECTED:
            why = f": {status.message}" if status.message else ""
            fix = "file a new request under a new name; `egs prune` removes this file"
            yield _problem(key, REJECTED, "notice", f"{key} is Rejected and never runs{why}", fix)
    for found in violations(facts, wanted):
        severity: Severity = "error" if found.is_waiting else "warning"
        yield _problem(found.key, found.rule, severity, found.message, found.fix)


def _problem(key: str, rule: str, severity: Severity, message: str, fix: str) -> Problem:
    return Problem(quoted(gpr_path(*key.split("/"))), 1, 1, rule, severity, message, fix)
