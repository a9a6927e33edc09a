"""The state of the objects that only endpoints have, and how many replicas are ready. Pure.

Tested on statuses in the documented form: no Gateway, KEDA or KServe runs in tests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from schemas.status.workload_status import ObjectState

Told = tuple[ObjectState, str, str]
"""State, reason, message."""
Status = Mapping[str, Any]

_ROUTED = frozenset({"Accepted", "ResolvedRefs"})
"""Conditions that each Gateway gives a route."""


def ready_of(kind: str, item: Mapping[str, Any]) -> int | None:
    """Replicas that are ready; None: objects of this kind have none, or do not say."""
    if kind != "Deployment":
        return None
    return int((item.get("status") or {}).get("readyReplicas") or 0)


def _route(status: Status) -> Told:
    """Ready once every Gateway has accepted it; why one has not, as it says."""
    parents = status.get("parents") or ()
    found = [c for parent in parents for c in parent.get("conditions") or ()]
    refused = next((c for c in found if c.get("type") in _ROUTED and c.get("status") == "False"), None)
    if refused is not None:
        return _said(refused)
    accepted = [c for c in found if c.get("type") == "Accepted" and c.get("status") == "True"]
    state = ObjectState.READY if parents and len(accepted) == len(parents) else ObjectState.PENDING
    return state, "", ""


def _by_condition(type_: str, then: ObjectState) -> Callable[[Status], Told]:
    """The state once that condition is true; what its own controller says until then."""

    def told(status: Status) -> Told:
        found = next((c for c in status.get("conditions") or () if c.get("type") == type_), None)
        if found is None:
            return ObjectState.PENDING, "", ""
        return (then, "", "") if found.get("status") == "True" else _said(found)

    return told


def _said(condition: Status) -> Told:
    reason, message = str(condition.get("reason") or ""), str(condition.get("message") or "")
    return ObjectState.PENDING, reason, message


SERVED: Mapping[str, Callable[[Status], Told]] = {
    "HTTPRoute": _route,
    "HorizontalPodAutoscaler": _by_condition("ScalingActive", ObjectState.READY),
    "InferenceService": _by_condition("Ready", ObjectState.RUNNING),
    "ScaledObject": _by_condition("Ready", ObjectState.READY),
}
