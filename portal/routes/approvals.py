"""`/approvals`: what waits for an admin, and the admin's word."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body

from portal.allowing import check_admin
from portal.approving import Decision, Pending, decided, pending
from portal.changing import seen
from portal.documenting import IdempotencyKey, refusals
from portal.gprs import id_of
from portal.gprwire import GprChanged
from portal.paging import Portioned, portion
from portal.serving import Asking, Envelope, Looking, Of, Page, changed, ok
from portal.view import View
from portal.writing import Changes, Tree, Wish

router = APIRouter(prefix="/approvals", tags=["Approvals"])

_EXAMPLE = {"gprId": "gpr-7c29e338-ebda", "decision": "approve", "reason": "the deadline is real"}


@router.get("", responses=refusals(422), summary="Requests that wait for an admin.")
async def list_approvals(view: Looking, caller: Asking, portioned: Portioned) -> Envelope[Page[Pending]]:
    """The longest waiting first; a caller sees those of their workspaces, an admin all."""
    chosen, more = portion(pending(view, caller), portioned, lambda one: one.name)
    return ok(Page(items=chosen, next=more))


@router.post("", responses=refusals(403, 404, 409, 422), summary="Approve or reject a request.")
async def decide(
    word: Annotated[Decision, Body(examples=[_EXAMPLE])],
    view: Looking,
    caller: Asking,
    parts: Of,
    idempotency: IdempotencyKey = "",
) -> Envelope[GprChanged]:
    """Writes the admin's approval, bound to the request exactly as it reads now: an edit afterwards needs another."""
    found = seen(view, caller, word.gpr_id)
    check_admin(caller, "decide about requests")
    now = parts.now()

    def make(view: View, _: Tree) -> Changes:
        return decided(view, found.key, word, caller.actor.handle, now)

    subject = f"{word.decision.capitalize()} {found.key}"
    landed = await parts.writer.submit(Wish(caller, subject, make, idempotency))
    return ok(GprChanged(gpr_id=id_of(view, found) or found.key, change=changed(landed)))
