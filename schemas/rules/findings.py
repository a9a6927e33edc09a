"""Findings of the rules, by the path of the value inside its document.

A finding becomes a `Problem`, with line and column, only when it is shown: places cost a second pass over the
file, which the controller never needs.
"""

from __future__ import annotations

from dataclasses import dataclass

from schemas.reading.strict_yaml import Path, Positions
from schemas.rules.problems import Problem, quoted
from schemas.rules.rule_list import fix_of, severity_of


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken rule; `fix` overrides the rule's general advice, `on_key` points at the key, not its value."""

    file: str
    rule: str
    message: str
    path: Path = ()
    fix: str | None = None
    on_key: bool = False

    def problem(self, positions: Positions | None) -> Problem:
        """With line and column; without positions the file's first character."""
        line, column = (1, 1)
        if positions is not None:
            line, column = positions.key(self.path) if self.on_key else positions.value(self.path)
        fix = fix_of(self.rule) if self.fix is None else self.fix
        severity = severity_of(self.rule)
        return Problem(
            quoted(self.file), line, column, self.rule, severity, quoted(self.message), quoted(fix)
        )
