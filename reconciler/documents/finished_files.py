"""Filters out problems of finished requests' files, which are not checked. Pure.

Limits are tightened, admins leave, clusters are removed; these files and their approvals stay until pruned.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from reconciler.model.statuses import Records
from schemas.rules.problems import Problem
from schemas.status.gpr_status import TERMINAL, GPRStatus


def standing(problems: Iterable[Problem], requests: Mapping[str, GPRStatus]) -> tuple[Problem, ...]:
    """All problems except those in files of finished requests."""
    return tuple(problem for problem in problems if not _is_over(_request_of(problem.file), requests))


def brought(
    problems: Iterable[Problem],
    requests: Mapping[str, GPRStatus],
    before: Iterable[Problem],
    changed: Collection[str],
) -> tuple[Problem, ...]:
    """The same for the problems a change causes; new problems in files that it changes do count."""
    found, known = tuple(problems), {_told(problem) for problem in before}
    kept = set(standing(found, requests))
    return tuple(p for p in found if p in kept or (p.file in changed and _told(p) not in known))


def _told(problem: Problem) -> tuple[str, str, str]:
    """Without its line, which moves with every line above it."""
    return problem.file, problem.rule, problem.message


def _is_over(key: str, requests: Mapping[str, GPRStatus]) -> bool:
    """True if the request never runs again; reads no record."""
    if isinstance(requests, Records):
        return key in requests.over
    status = requests.get(key)
    return status is not None and status.phase in TERMINAL


def _request_of(path: str) -> str:
    """`slice/name` of the request that a file defines or approves; empty: none."""
    match path.split("/"):
        case ["slices", slice_, "gprs", file]:
            return f"{slice_}/{file.removesuffix('.yaml')}"
        case ["approvals", slice_, request, _]:
            return f"{slice_}/{request}"
    return ""
