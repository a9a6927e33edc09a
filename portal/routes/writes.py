"""`/writes/{id}`: the outcome of a change that was accepted before it was pushed, or whose answer was lost.

A landed change is found in main's history, so any replica knows it; why one was refused is known only to the replica
that took it.
"""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path

from portal.http.context import Asking, Changed, Envelope, Of, changed, ok
from portal.http.errors import not_found
from portal.openapi.refusals import CHANGES, refusals

router = APIRouter(tags=["writes"])

Id = Annotated[
    str,
    Path(
        pattern="^[0-9a-f]{32}$",
        description="Request id of the change: `X-Request-Id` of its answer.",
        examples=["5b0c4f6a1d8e4a7f9d3c2b1a0f9e8d7c"],
    ),
]


@router.get(
    "/writes/{id}",
    summary="Follow a change",
    response_model=Envelope[Changed],
    responses=refusals(*CHANGES, "WriteNotFound"),
)
async def followed(id: Id, caller: Asking, parts: Of) -> Envelope[Changed]:
    """Where it is now, or the refusal; 404 if no change of this caller has that id."""
    landed = await asyncio.to_thread(parts.writer.follow, id, caller)
    if landed is None:
        raise not_found("change", id, "WriteNotFound")
    return ok(changed(landed))
