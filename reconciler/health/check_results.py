"""What a request's status keeps of its nodes' checks: every one, passing or not, with value and log. Pure.

The last run of each stage on each node. Bounded, so that the status of a thousand nodes stays readable: logs
are cut, and with many rows a node that passed has only one. Possible secrets are removed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime

from reconciler.model.cluster_port import CheckResult, Stage
from schemas.status.gpr_status import Check

LONGEST_LOG = 600
"""Characters of one log: six lines of a hundred; the end is kept, as it says what went wrong."""
MOST_CHARACTERS = 200_000
"""Of all rows of one status, a fifth of the largest file; failed checks are kept beyond it."""
_OF_A_ROW = 160
"""Characters of a row besides its texts."""
_SECRETS = (
    (re.compile(r"egs_[A-Za-z0-9_-]{16,}|AKIA[0-9A-Z]{16}|eyJ[\w-]{8,}\.[\w-]+\.[\w-]+"), "***"),
    (re.compile(r"(://)[^/\s@]+@"), r"\1***@"),
    (re.compile(r"(?i)\b(bearer )\S+"), r"\1***"),
    (re.compile(r"(?i)\b([\w-]*(?:password|passwd|token|secret|api[_-]?key)[\"']?\s*[:=]\s*)\S+"), r"\1***"),
)


def rows(
    results: Iterable[CheckResult], of: tuple[Stage, str, datetime], held: Iterable[Check] = ()
) -> list[Check]:
    """Rows of one run on a node; `held` are the rows that the status has already, for its size."""
    stage, node, at = of
    found = [
        Check(stage=stage, node=node, name=r.name, passed=r.passed, value=r.value, log=cut(r.log), at=at)
        for r in results
    ]
    if _size(held) + _size(found) <= MOST_CHARACTERS:
        return found
    bad = [row for row in found if not row.passed]
    log = "not listed one by one: the request has too many nodes"
    return bad or [Check(stage=stage, node=node, name=f"{len(found)} checks", passed=True, log=log, at=at)]


def cut(log: str) -> str:
    """The end of a log, without possible secrets."""
    for pattern, instead in _SECRETS:
        log = pattern.sub(instead, log)
    if len(log) <= LONGEST_LOG:
        return log
    return f"[{len(log) - LONGEST_LOG} characters cut] {log[-LONGEST_LOG:]}"


def _size(found: Iterable[Check]) -> int:
    return sum(_OF_A_ROW + len(row.name) + len(row.node) + len(row.value) + len(row.log) for row in found)
