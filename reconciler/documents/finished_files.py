"""What is wrong with the file of a request that never runs again is nobody's trouble: the problems without it.

Limits are tightened, admins go, clusters are taken away. The files of requests that are over stay as they are until
somebody prunes them, and with them the approvals that were given. Pure.

Held by tests/reconciler/documents/test_finished_files.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from reconciler.model.statuses import Records
from schemas.rules.problems import Problem
from schemas.status.gpr_status import TERMINAL, GPRStatus


def standing(problems: Iterable[Problem], requests: Mapping[str, GPRStatus]) -> tuple[Problem, ...]:
    """All but those in files of requests that are over."""
    return tuple(problem for problem in problems if not _is_over(_request_of(problem.file), requests))


def brought(
    problems: Iterable[Problem],
    requests: Mapping[str, GPRStatus],
    before: Iterable[Problem],
    changed: Collection[str],
) -> tuple[Problem, ...]:
    """The same of what a change brings; what is new in a file that it changes counts all the same."""
    found, known = tuple(problems), {_told(problem) for problem in before}
    kept = set(standing(found, requests))
    return tuple(p for p in found if p in kept or (p.file in changed and _told(p) not in known))


def _told(problem: Problem) -> tuple[str, str, str]:
    """Without its place, which moves with every line above it."""
    return problem.file, problem.rule, problem.message


def _is_over(key: str, requests: Mapping[str, GPRStatus]) -> bool:
    """Whether that request never runs again; no record is read for it."""
    if isinstance(requests, Records):
        return key in requests.over
    status = requests.get(key)
    return status is not None and status.phase in TERMINAL


def _request_of(path: str) -> str:
    """`slice/name` of the request that a file is, or speaks for; empty: of none."""
    match path.split("/"):
        case ["slices", slice_, "gprs", file]:
            return f"{slice_}/{file.removesuffix('.yaml')}"
        case ["approvals", slice_, request, _]:
            return f"{slice_}/{request}"
    return ""
