"""Entity tags of answers that time alone moves: made of the rest, and weak, since no two such answers are one text.

Held by tests/portal/test_tags.py.
"""

from __future__ import annotations

import hashlib
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

REQUEST: dict[str, Any] = {"estimated_wait_time": True, "status": {"cost"}}
"""What the clock moves of a request: how long it still waits, and what it costs so far."""
WORKLOAD: dict[str, Any] = {"idle_seconds": True, "elapsed_seconds": True, "cost": True, "gpu_hours": True}
QUEUE_ROW: dict[str, Any] = {"estimated_wait_seconds": True}
PLAN: dict[str, Any] = {"now": True, "requests": {"__all__": {"estimatedWaitSeconds"}}}


@dataclass(slots=True)
class Stands:
    """What the tag of one answer is made of; empty: of its body."""

    digest: str = ""


STANDS: ContextVar[Stands] = ContextVar("stands")
"""Of the answer that is being made; `portal.http.headers` sets it and sends the tag."""


def of_each(ticking: dict[str, Any]) -> dict[str, Any]:
    """The same of a page of them."""
    return {"items": {"__all__": ticking}}


def tag_without(ticking: dict[str, Any], data: BaseModel) -> None:
    """The answer's tag is made of these data but for what ticks: 304 while nothing but time went by."""
    stands = data.model_dump_json(exclude=ticking)
    STANDS.get().digest = hashlib.sha256(stands.encode()).hexdigest()[:32]
