"""`/approvals`: requests that wait for an admin, and the admin's decision."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body

from portal.http.context import Asking, Envelope, Looking, Of, Page, changed, ok
from portal.http.paging import Portioned, portion
from portal.identity.rights import check_admin
from portal.openapi.refusals import NAMED, refusals
from portal.vendor.approval_models import Decision, Pending, decided, pending
from portal.vendor.gpr_answers import id_of
from portal.vendor.gpr_models import GprChanged
from portal.views.view import View
from portal.writes.gpr_changes import seen
from portal.writes.replayed_answers import Named, id_then
from portal.writes.write_request import Changes, Tree, WriteRequest

router = APIRouter(prefix="/approvals", tags=["Approvals"])

_EXAMPLE = {
    "gprId": "gpr-7c29e338-ebda",
    "decision": "approve",
    "specDigest": "sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
    "reason": "the deadline is real",
}


@router.get("", responses=refusals(422), summary="Requests that wait for an admin.")
async def list_approvals(view: Looking, caller: Asking, portioned: Portioned) -> Envelope[Page[Pending]]:
    """The longest waiting first; a caller sees those of their workspaces, an admin all."""
    chosen, more = portion(pending(view, caller), portioned, lambda one: one.name)
    return ok(Page(items=chosen, next=more))


@router.post(
    "",
    responses=refusals(
        404,
        *NAMED,
        "OwnRequest",
        "NothingToDecide",
        "NotSeenYet",
        "GpuAlreadyProvisioned",
        "GpuAlreadyReleased",
    ),
    summary="Approve or reject a request.",
)
async def decide(
    word: Annotated[Decision, Body(examples=[_EXAMPLE])],
    view: Looking,
    caller: Asking,
    parts: Of,
    named: Named,
) -> Envelope[GprChanged]:
    """Writes the admin's approval, bound to the request as shown: 409 if the request has changed since.

    A later edit needs a new approval. Another admin must approve what an admin wrote in whole or in part.
    """
    if named.landed is not None:
        id_ = id_then(view, parts.store, named.landed.commit, word.gpr_id)
        return ok(GprChanged(gpr_id=id_, change=changed(named.landed)))
    found = seen(view, caller, word.gpr_id)
    check_admin(caller, "decide about requests")
    now = parts.now()

    def make(view: View, tree: Tree) -> Changes:
        return decided(view, tree, found.key, word, caller, now)

    subject = f"{word.decision.capitalize()} {found.key}"
    landed = await parts.writer.submit(WriteRequest(caller, subject, make, named.key))
    return ok(GprChanged(gpr_id=id_of(view, found) or found.key, change=changed(landed)))
