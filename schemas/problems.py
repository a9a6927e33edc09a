"""What is wrong with a repository, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "notice"]


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One finding: where, what, and what to do. Lines and columns count from 1."""

    file: str
    line: int
    column: int
    rule: str
    severity: Severity
    message: str
    fix: str
