"""Requests that break a policy as it is now, as rows of `egs get problems`.

Held by tests/commands/test_policies.py.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any

from reconciler.commands.source import Source
from reconciler.commands.state import read_state
from reconciler.facts import Facts, Wanted
from reconciler.violations import violations
from schemas.errors import UserError
from schemas.problems import Problem, quoted
from schemas.view import gpr_path


def problem_rows(source: Source, now: datetime) -> list[dict[str, Any]]:
    """An error for who is not planned because of it, a warning for who keeps the terms of a running lease."""
    try:
        state = read_state(source, now)
    except UserError:  # without a valid project.yaml there is no policy; that is a problem of its own
        return []
    return broken_rows(state.facts, state.wanted)


def broken_rows(facts: Facts, wanted: Wanted) -> list[dict[str, Any]]:
    """The same of facts and documents."""
    return [
        asdict(
            Problem(
                quoted(gpr_path(*found.key.split("/"))),
                1,
                1,
                found.rule,
                "error" if found.is_waiting else "warning",
                found.message,
                found.fix,
            )
        )
        for found in violations(facts, wanted)
    ]
