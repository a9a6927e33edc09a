"""`/gpr`: file, read, change and cancel requests."""

from __future__ import annotations

import asyncio
import secrets
from bisect import bisect_left
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Body, Query

from portal.http import etags
from portal.http.context import Asking, Envelope, Looking, Of, Page, Parts, changed, ok
from portal.http.errors import bad_parameters
from portal.http.etags import of_each, tag_without
from portal.http.names import checked_name, listed
from portal.http.paging import Portioned, portion
from portal.http.past import Then
from portal.identity.callers import Caller
from portal.identity.redaction import Redactor
from portal.identity.rights import check_member, seen_slice
from portal.openapi.refusals import NAMED, IdempotencyKey, refusals
from portal.vendor.gpr_answers import FILED, Found, data_of, id_of
from portal.vendor.gpr_filing import asked, file_name, nonce_of
from portal.vendor.gpr_models import GprAsk, GprChanged, GprData, GprEdit, GprFiled, GprNamed
from portal.views.view import View
from portal.views.why import Why, why
from portal.writes import gpr_changes
from portal.writes.counted_changes import check_counts
from portal.writes.replayed_answers import Named, id_then
from portal.writes.write_request import Changes, Landed, Tree, WriteRequest
from schemas.documents.identity import uid_of
from schemas.status.gpr_status import Phase

router = APIRouter(prefix="/gpr", tags=["Requests"])

_ID = "The request's id, or slice/name."
GprId = Annotated[str, Query(alias="gprId", max_length=200, description=_ID, examples=["gpr-7c29e338-ebda"])]
_EXAMPLE = {
    "gprName": "gpt-4o-workload",
    "sliceName": "vision",
    "clusterName": "east",
    "numberOfGPUs": 8,
    "numberOfGPUNodes": 2,
    "memoryPerGPU": 80,
    "gpuShape": "H100-80GB",
    "exitDuration": "0d6h0m",
    "priority": 101,
}


@router.post("", responses=refusals(404, *NAMED, "GprAlreadyExists"), summary="File a request.")
async def file_gpr(
    ask: Annotated[GprAsk, Body(examples=[_EXAMPLE])],
    view: Looking,
    caller: Asking,
    parts: Of,
    idempotency: IdempotencyKey = "",
) -> Envelope[GprFiled]:
    """Writes the file of a request and answers with its id, which is valid at once.

    Absent fields come from the named template, or from the one that the workspace is bound to.
    """
    seen_slice(view, caller, ask.slice_name)
    check_member(caller, ask.slice_name, "file requests there")
    wanted = asked(ask)
    nonce = nonce_of(caller.email, idempotency) if idempotency else secrets.token_hex(16)
    key = f"{ask.slice_name}/{checked_name('name', file_name(ask, nonce))}"

    def make(view: View, tree: Tree) -> Changes:
        return gpr_changes.filed(view, tree, key, nonce, wanted)

    landed = await parts.writer.submit(WriteRequest(caller, f"Create {key}", make, idempotency))
    filed = GprFiled(gpr_id=uid_of(key, nonce), name=key, change=changed(landed))
    return ok(filed, "; ".join(wanted.notes) or "Success")


@router.put(
    "",
    responses=refusals(
        404, *NAMED, "GpuAlreadyProvisioned", "GpuAlreadyReleased", "NotProvisioned", "Unchanged"
    ),
    summary="Change a request, or give its nodes back.",
)
async def edit_gpr(
    edit: Annotated[GprEdit, Body(examples=[{"gprId": "gpr-7c29e338-ebda", "priority": 180}])],
    view: Looking,
    caller: Asking,
    parts: Of,
    again: Named,
) -> Envelope[GprChanged]:
    """Changes the named fields and nothing else in the file.

    409 GpuAlreadyProvisioned: it has its nodes and keeps its terms; with `data.commit` it got them while the change was
    on its way, so the change is on main but has no effect. 409 NotProvisioned: `earlyRelease` of a waiting request. 409
    GpuAlreadyReleased: it is over. If the file of a live request was deleted, the change restores it.
    """
    if again.landed is not None:
        return _again(view, parts, again.landed, edit.gpr_id, asked(edit).notes)
    found = _to_change(view, caller, edit.gpr_id)
    wanted = asked(edit)
    gpr_changes.check_edit(found, wanted.fields)

    def make(view: View, tree: Tree) -> Changes:
        return gpr_changes.edited(view, tree, found.key, wanted.fields)

    subject = _subject(found.key, edit)
    # Idle GPUs cost money, so giving them back needs no review.
    hurries = bool(edit.early_release or edit.stopped)
    landed = await parts.writer.submit(WriteRequest(caller, subject, make, again.key, must_push=hurries))
    if landed.way == "pushed" and gpr_changes.has_terms(wanted.fields):
        # The controller may have handed nodes over on the old content of main; then the lease keeps its terms.
        told = await parts.reads.asked()
        await asyncio.to_thread(check_counts, told, parts.store, found.key, landed.commit)
    data = GprChanged(gpr_id=id_of(view, found) or found.key, change=changed(landed))
    return ok(data, "; ".join(wanted.notes) or "Success")


@router.delete(
    "",
    responses=refusals(404, *NAMED, "GpuAlreadyProvisioned", "GpuAlreadyReleased"),
    summary="Cancel a waiting request.",
)
async def cancel_gpr(
    view: Looking,
    caller: Asking,
    parts: Of,
    again: Named,
    gpr_id: Annotated[str, Query(alias="gprId", max_length=200, description=_ID)] = "",
    named: Annotated[GprNamed | None, Body()] = None,
) -> Envelope[GprChanged]:
    """Writes `earlyRelease` into its file, which also ends it if it has got its nodes meanwhile.

    409 GpuAlreadyProvisioned: it has its nodes; release it. 409 GpuAlreadyReleased: it is over.
    """
    id_ = gpr_id or ("" if named is None else named.gpr_id)
    if not id_:
        raise bad_parameters("gprId: name the request, as a parameter or in the body")
    if again.landed is not None:
        return _again(view, parts, again.landed, id_)
    found = _to_change(view, caller, id_)

    def make(view: View, tree: Tree) -> Changes:
        return gpr_changes.cancelled(view, tree, found.key)

    landed = await parts.writer.submit(
        WriteRequest(caller, f"Cancel {found.key}", make, again.key, must_push=True)
    )
    return ok(GprChanged(gpr_id=id_of(view, found) or found.key, change=changed(landed)))


@router.post(
    "/restore",
    responses=refusals(404, *NAMED, "GpuAlreadyReleased", "NotSeenYet", "Unchanged"),
    summary="Restore the file of a request.",
)
async def restore_gpr(
    named: Annotated[GprNamed, Body(examples=[{"gprId": "gpr-7c29e338-ebda"}])],
    view: Looking,
    caller: Asking,
    parts: Of,
    again: Named,
) -> Envelope[GprChanged]:
    """Writes the file with the terms in force if main has none, a broken one, or one with other terms than the lease.

    409 GpuAlreadyReleased: it is over. 409 Unchanged: the file already has the terms in force.
    """
    if again.landed is not None:
        return _again(view, parts, again.landed, named.gpr_id)
    found = _to_change(view, caller, named.gpr_id)

    def make(view: View, tree: Tree) -> Changes:
        return gpr_changes.restored(view, tree, found.key)

    landed = await parts.writer.submit(WriteRequest(caller, f"Restore {found.key}", make, again.key))
    return ok(GprChanged(gpr_id=id_of(view, found) or found.key, change=changed(landed)))


@router.get("", responses=refusals(404, 410, 422), summary="Status of a request.")
async def get_gpr(gpr_id: GprId, view: Then, caller: Asking, parts: Of) -> Envelope[GprData]:
    """Its terms, phase and reason, promise and how it moved, nodes and cost."""
    found = gpr_changes.seen(view, caller, gpr_id)
    data = data_of(view, found, view.clock(parts.now()), Redactor(caller, view))
    tag_without(etags.REQUEST, data)
    return ok(data)


@router.get("/list", responses=refusals(404, 410, 422), summary="Requests of a workspace, or of all.")
async def list_gprs(
    view: Then,
    caller: Asking,
    parts: Of,
    portioned: Portioned,
    slice_name: Annotated[
        str, Query(alias="sliceName", max_length=63, description="Only of this workspace; empty: of all.")
    ] = "",
    phase: Annotated[str, Query(max_length=40, description="Only in this phase, such as Queued.")] = "",
) -> Envelope[Page[GprData]]:
    """By workspace and name, in every phase, including those that the controller has not seen yet."""
    if slice_name:
        seen_slice(view, caller, slice_name)
    if phase and phase not in {FILED, *Phase}:
        raise bad_parameters(f"phase: there is no phase {phase}; phases are {listed([FILED, *Phase])}")
    keys = [key for key in _keys_in(view, slice_name) if _is_wanted(view, caller, key, phase)]
    chosen, more = portion(keys, portioned, lambda key: key)
    redactor, now = Redactor(caller, view), view.clock(parts.now())
    items = [data_of(view, gpr_changes.seen(view, caller, key), now, redactor) for key in chosen]
    page = Page[GprData](items=items, next=more)
    tag_without(of_each(etags.REQUEST), page)
    return ok(page)


@router.get("/why", responses=refusals(404), summary="Why a request is where it is.")
async def why_gpr(gpr_id: GprId, view: Looking, caller: Asking, parts: Of) -> Envelope[Why]:
    """What it waits for, why its start moved, and what would start it earlier: as `egs why -o json`.

    Changes are tried for at most half a second; `untried` counts the rest.
    """
    found = gpr_changes.seen(view, caller, gpr_id)
    return ok(await parts.costly.answer(why, view, found, Redactor(caller, view)))


def keys_of(view: View) -> tuple[str, ...]:
    """All requests as slice/name, sorted; call it through `view.once`."""
    filed = (key for key, file in view.wanted.filed.items() if file.spec is not None)
    return tuple(sorted({*view.facts.requests, *filed}))


def _keys_in(view: View, slice_: str) -> Sequence[str]:
    """Keys of one workspace, found by bisection; empty: all keys."""
    keys = view.once(keys_of)
    if not slice_:
        return keys
    return keys[bisect_left(keys, f"{slice_}/") : bisect_left(keys, f"{slice_}0")]  # 0 follows / in ASCII


def _is_wanted(view: View, caller: Caller, key: str, phase: str) -> bool:
    if not caller.may_see(key.partition("/")[0]):
        return False
    status = view.facts.requests.get(key) if phase else None
    return not phase or (FILED if status is None else status.phase) == phase


def _to_change(view: View, caller: Caller, id_: str) -> Found:
    found = gpr_changes.seen(view, caller, id_)
    check_member(caller, found.slice, "change requests there")
    return found


def _again(
    view: View, parts: Parts, landed: Landed, id_: str, notes: Sequence[str] = ()
) -> Envelope[GprChanged]:
    """The first answer to a change that has landed."""
    data = GprChanged(gpr_id=id_then(view, parts.store, landed.commit, id_), change=changed(landed))
    return ok(data, "; ".join(notes) or "Success")


def _subject(key: str, edit: GprEdit) -> str:
    if edit.early_release:
        return f"Release {key}"
    names = sorted(GprEdit.model_fields[field].alias or field for field in edit.model_fields_set - {"gpr_id"})
    return f"Edit {key}: {', '.join(names)}"
