"""A GPR object's status: the committed status of its request, plus the door's own part. Pure.

A controller's status is copied; only without one the phase is the door's own: `Filed` (on main), `Proposed`
(on a branch that waits for a merge) or `Refused`. The same facts give the same status, so that nothing is
written while nothing changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from schemas.export.crds import NOT_MIRRORED
from schemas.reading.units import format_instant
from schemas.status.gpr_status import TERMINAL, Condition, GPRStatus, Phase

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an object's request is not filed, or not yet."""

    message: str
    reason: str


@dataclass(frozen=True, slots=True)
class ObjectState:
    generation: int
    author: str
    is_verified: bool
    key: str = ""  # slice/name; empty: the object belongs to no slice
    is_filed: bool = False
    branch: str = ""
    proposed: str = ""
    refusal: Refusal | None = None
    is_removed: bool = False  # people deleted its file on main


def object_status(state: ObjectState, request: GPRStatus | None, before: Mapping[str, Any]) -> Json:
    """The whole status; `before` is the object's present one."""
    found = _mirrored(request) if request is not None else _own(state, before)
    found |= {
        "observedGeneration": state.generation,
        "request": state.key,
        "filed": state.is_filed,
        "author": state.author,
        "authorVerified": state.is_verified,
        "branch": state.branch,
        "proposed": state.proposed,
        "conditions": [_accepted(state), *_conditions(request)],
    }
    return {field: value for field, value in found.items() if value not in ("", [], {})}


def _mirrored(request: GPRStatus) -> Json:
    content = request.model_dump(mode="json", by_alias=True, exclude_none=True, exclude=_HEAVY)
    found = {field: value for field, value in content.items() if field not in NOT_MIRRORED}
    start = request.start_time or request.estimated_start_time
    end = request.end_time or request.estimated_end_time
    found |= {name: format_instant(at) for name, at in (("start", start), ("end", end)) if at is not None}
    return found


_HEAVY: Any = {"checks": {"__all__": {"log"}}}
"""Logs are in the repository; watchers of an object receive every change."""


def _own(state: ObjectState, before: Mapping[str, Any]) -> Json:
    if state.is_removed:
        if before.get("phase") in TERMINAL:
            return {field: value for field, value in before.items() if field not in _ABOUT_DOOR}
        message = "its file was removed from main; delete this object; a new request needs a new object"
        return {"phase": str(Phase.CANCELLED), "reason": "FileRemoved", "message": message}
    if state.refusal is not None and not state.is_filed:
        return {"phase": "Refused", "reason": state.refusal.reason, "message": state.refusal.message}
    if state.branch and not state.is_filed:
        message = f"merge the branch {state.branch} to file it"
        return {"phase": "Proposed", "reason": "AwaitsMerge", "message": message}
    message = "it is on main; a controller will process it next"
    return {"phase": "Filed", "reason": "AwaitsController", "message": message}


_ABOUT_DOOR = frozenset({"branch", "proposed"})


def _accepted(state: ObjectState) -> Json:
    """Whether main has the object's current spec."""
    if state.refusal is not None:
        return _condition("Accepted", state.refusal.reason, state.refusal.message, holds=False)
    if state.branch:
        message = f"the branch {state.branch} waits to be merged"
        return _condition("Accepted", "AwaitsMerge", message, holds=False)
    if state.is_removed:
        return _condition("Accepted", "FileRemoved", "its file was removed from main", holds=False)
    return _condition("Accepted", "OnMain", f"main has it as {state.key}", holds=True)


def _conditions(request: GPRStatus | None) -> list[Json]:
    if request is None:
        return []
    found = [_of_request(condition) for condition in request.conditions]
    if request.phase is Phase.PROVISIONED and request.start_time is not None:
        provisioned = _condition("Provisioned", "Provisioned", "it has its nodes", holds=True)
        found.append(provisioned | {"lastTransitionTime": format_instant(request.start_time)})
    return found


def _of_request(condition: Condition) -> Json:
    found = _condition(condition.type, condition.reason, condition.message, holds=True)
    return found | {"lastTransitionTime": format_instant(condition.at)}


def _condition(type_: str, reason: str, message: str, *, holds: bool) -> Json:
    return {"type": type_, "status": "True" if holds else "False", "reason": reason, "message": message}
