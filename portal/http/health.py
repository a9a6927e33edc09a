"""Liveness and readiness for kubelets, load balancers and people. No caller needed.

Alive: it answers. Ready: the repository was read completely, and the remote answered within the last three polls. A
replica that is not ready would give old answers, so it gets no requests until it is ready.

Held by tests/portal/http/test_app.py.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Response

from portal.http.context import HealthOut, Of

router = APIRouter(tags=["health"])


@router.get("/healthz", summary="Whether the process lives", response_model=HealthOut)
async def healthz() -> HealthOut:
    """200 while the process answers."""
    return HealthOut(ok=True, reason="Alive", message="the portal answers")


_UNREADY: dict[int | str, dict[str, Any]] = {
    503: {
        "model": HealthOut,
        "description": "Not ready: the repository was not read yet, or the remote does not answer.",
    }
}


@router.get("/readyz", summary="Whether it is ready", response_model=HealthOut, responses=_UNREADY)
async def readyz(parts: Of, response: Response) -> HealthOut:
    """200 when the repository was read and the remote answered within three polls, else 503."""
    found = parts.reads.ready()
    response.status_code = (HTTPStatus.OK if found.ok else HTTPStatus.SERVICE_UNAVAILABLE).value
    return found
