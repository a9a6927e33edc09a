"""Weak entity tags for answers that contain ticking values: made of the answer without those values.

Held by tests/portal/test_tags.py.
"""

from __future__ import annotations

import hashlib
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

REQUEST: dict[str, Any] = {"estimated_wait_time": True, "status": {"cost"}}
"""Ticking values of a request: its remaining wait, and its cost so far."""
WORKLOAD: dict[str, Any] = {
    **dict.fromkeys(("idle_seconds", "elapsed_seconds", "cost", "gpu_hours", "summary"), True),
    "runs": {"__all__": {"summary"}},
}
"""Ticking values of a workload: times, cost so far, and what its GPUs do just now."""
QUEUE_ROW: dict[str, Any] = {"estimated_wait_seconds": True}


@dataclass(slots=True)
class Stands:
    """The basis of one answer's tag; empty: its body."""

    digest: str = ""


STANDS: ContextVar[Stands] = ContextVar("stands")
"""Of the answer under way; `portal.http.headers` sets it and sends the tag."""


def of_each(ticking: dict[str, Any]) -> dict[str, Any]:
    """The same for a page of such items."""
    return {"items": {"__all__": ticking}}


def tag_without(ticking: dict[str, Any], data: BaseModel) -> None:
    """Make the answer's tag of these data without the ticking ones: 304 while only time has passed."""
    stands = data.model_dump_json(exclude=ticking)
    STANDS.get().digest = hashlib.sha256(stands.encode()).hexdigest()[:32]
