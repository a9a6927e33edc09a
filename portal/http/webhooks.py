"""`POST /hooks/push`: a forge reports a push, and the portal fetches at once.

A hook is authenticated by its signature alone (`reconciler.processes.webhooks`) and only triggers a fetch; its content
is ignored. Held by tests/portal/http/test_app.py.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from pathlib import Path

from fastapi import APIRouter, Request

from portal.http.context import Envelope, Of, Wire, ok
from portal.http.errors import ApiError, unauthenticated, unavailable
from portal.openapi.refusals import refusals
from reconciler.processes.webhooks import HEADERS, refusal, secrets_of
from schemas.errors import UserError

router = APIRouter(tags=["health"])


class Woken(Wire):
    """The effect of a hook."""

    woken: bool


@router.post(
    "/hooks/push",
    summary="A forge's webhook",
    response_model=Envelope[Woken],
    status_code=202,
    responses=refusals(408, 413, "HooksOff", "SignatureMissing", "SignatureWrong"),
)
async def hooked(request: Request, parts: Of) -> Envelope[Woken]:
    """Fetch the repository now."""
    if parts.settings.hook_secrets is None:
        raise ApiError(HTTPStatus.NOT_FOUND, "HooksOff", "give the portal --hook-secrets FILE")
    secrets = await asyncio.to_thread(_secrets, parts.settings.hook_secrets)
    given = {name: request.headers[name] for name in HEADERS if name in request.headers}
    why = refusal(given, await request.body(), secrets)
    if why is not None:
        raise unauthenticated("sign the body with a secret of --hook-secrets", why)
    parts.reads.wake()
    return ok(Woken(woken=True), status=HTTPStatus.ACCEPTED)


def _secrets(file: Path) -> tuple[bytes, ...]:
    """Read every time, so that an operator can replace them."""
    try:
        return secrets_of(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, UserError) as error:
        raise unavailable("the webhook secrets cannot be read; ask the operator to look") from error
