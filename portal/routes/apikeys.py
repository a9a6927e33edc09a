"""`/api-key`: API keys."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from portal.http.context import Asking, Envelope, Looking, Of, changed, ok
from portal.http.errors import conflict, not_found
from portal.identity.rights import seen_slice
from portal.openapi.refusals import CHANGES, refusals
from portal.vendor import key_models
from portal.vendor.key_models import KeyMade, KeyNamed, KeyRevoked, KeysShown, KeyWish
from portal.views.view import View
from portal.writes.write_request import Changes, Tree, WriteRequest
from portal.writes.yaml_files import standing
from reconciler.changes.keys import new_text
from reconciler.documents.yaml_edit import with_field
from schemas.documents.apikey import ApiKey
from schemas.reading.units import format_instant
from schemas.rules.view import key_path

router = APIRouter(prefix="/api-key", tags=["keys"])

Workspace = Annotated[
    str | None,
    Query(alias="workspaceName", min_length=1, max_length=253, description="Only keys for this workspace."),
]


@router.post("", summary="Make an API key", responses=refusals(*CHANGES, "ApiKeyAlreadyExists"))
async def create(body: KeyWish, view: Looking, caller: Asking, of: Of) -> Envelope[KeyMade]:
    """The answer holds the key's text; the repository stores only its SHA-256.

    There is no Idempotency-Key here, because the text is not kept and cannot be returned again; each name is used once.
    """
    spec = key_models.spec_of(body, caller, view, of.now())
    text, path = new_text(), key_path(body.name)

    def make(view: View, tree: Tree) -> Changes:
        key_models.check_number(view, spec.email, of.now())
        if tree.read(path) is not None:
            raise conflict(
                f"an API key {body.name} exists or existed already; choose another name",
                "ApiKeyAlreadyExists",
            )
        return {path: key_models.document(body.name, spec, text)}

    landed = await of.writer.submit(
        WriteRequest(caller, f"Create API key {body.name} for {spec.email}", make)
    )
    assert spec.not_after is not None
    end = format_instant(spec.not_after)
    return ok(KeyMade(api_key=text, name=body.name, expires_at=end, change=changed(landed)))


@router.delete("", summary="Revoke an API key", responses=refusals(404, *CHANGES))
async def delete(body: KeyNamed, view: Looking, caller: Asking, of: Of) -> Envelope[KeyRevoked]:
    """The key is refused as soon as the change is read; its manifest stays, marked as revoked."""
    name = key_models.named(body, caller, view)

    def make(_: View, tree: Tree) -> Changes:
        found = standing(tree, key_path(name), ApiKey)
        if found is None:
            raise not_found("API key", name)
        data, document = found
        return {} if document.spec.revoked else {key_path(name): with_field(data, ("spec", "revoked"), True)}

    write = WriteRequest(caller, f"Revoke API key {name}", make, must_push=True)
    return ok(KeyRevoked(name=name, change=changed(await of.writer.submit(write))))


@router.get("/list", summary="API keys without their secrets", responses=refusals(404, 422))
async def list_all(
    view: Looking, caller: Asking, of: Of, workspace_name: Workspace = None
) -> Envelope[KeysShown]:
    """Your own keys for workspaces that you see; an admin sees all. By name."""
    if workspace_name is not None:
        seen_slice(view, caller, workspace_name)
    found = key_models.keys_shown(view, caller, workspace_name, of.now())
    return ok(KeysShown(api_keys=tuple(found)))
