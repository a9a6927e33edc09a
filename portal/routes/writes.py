"""`/writes/{id}`: the outcome of a change that was accepted before it was pushed, or whose answer was lost; `/undo`.

A landed change is found in main's history, so any replica knows it; why one was refused is known only to the replica
that took it.
"""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Body, Path, Query

from portal.http.context import Asking, Changed, Envelope, Looking, Of, changed, ok
from portal.http.errors import not_found
from portal.openapi.refusals import CHANGES, NAMED, IdempotencyKey, refusals
from portal.views.view import View
from portal.writes.undo import UndoAsk, UndoProposed, UndoShown, commit_of, undo_changes, undo_shown
from portal.writes.write_request import Changes, Tree, WriteRequest
from reconciler.changes.undo import subject_of

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


@router.get(
    "/undo", responses=refusals(403, 404, 422, "Conflict"), summary="Show what taking a commit back would do."
)
async def show_undo(
    view: Looking,
    caller: Asking,
    parts: Of,
    commit: Annotated[
        str, Query(min_length=7, max_length=64, description="A commit of main, or its first 7 characters.")
    ],
) -> Envelope[UndoShown]:
    """The files and fields that get their earlier values, and the effect as `POST whatif` gives it. Writes nothing.

    409: a later commit changed the same field, or the undo would remove the file of a request that has its nodes.
    """
    return ok(await parts.costly.answer(undo_shown, parts.store, view, caller, commit, parts.now()))


@router.post("/undo", responses=refusals(404, *NAMED), summary="Take a commit back.")
async def file_undo(
    ask: Annotated[UndoAsk, Body()],
    view: Looking,
    caller: Asking,
    parts: Of,
    idempotency: IdempotencyKey = "",
) -> Envelope[UndoProposed]:
    """Proposes the reverting change as a pull request, whoever asks. Give the `digest` that was shown."""
    store = parts.store
    commit = await asyncio.to_thread(commit_of, store, view, caller, ask.commit)

    def make(view: View, tree: Tree) -> Changes:
        return undo_changes(store, view, tree, commit, ask.digest)

    landed = await parts.writer.submit(WriteRequest(caller, subject_of(commit), make, idempotency, asks=True))
    return ok(UndoProposed(undoes=commit.oid, change=changed(landed)))
