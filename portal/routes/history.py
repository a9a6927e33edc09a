"""`/blame`: which commits set a document or a status."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from portal.http.context import Asking, Envelope, Looking, Of, Wire, example, ok, optional
from portal.http.errors import bad_parameters
from portal.openapi.refusals import refusals
from portal.views.past.blame import blame
from portal.writes import gpr_changes
from reconciler.queries.past.blame import Blamed
from schemas.rules.view import gpr_path

router = APIRouter(tags=["History"])


class SetOnMain(Wire):
    """A commit of main that changed the file, or the field."""

    commit: str = Field(
        description="The commit that made the change, if a merge brought it that of its branch."
    )
    at: str
    name: str
    email: str
    subject: str
    pull_request: str | None = optional("`#12`, or `!12` of GitLab, if a message names it.")
    merged_by: str | None = optional("The merge that brought it to main.")
    was: Any = optional("The value of the field before; null: there was none.")
    now: Any = optional("The value of the field since.")


class Cause(Wire):
    """An event of that time about the request."""

    at: str
    reason: str
    message: str


class SetInStatus(Wire):
    """A commit of the controller that changed the record, or the field."""

    commit: str = Field(description="The status commit; `?at=` shows its state.")
    at: str
    after: str | None = optional("The change was after this kept state; null: it is the oldest one.")
    subject: str
    main: str | None = optional("The commit of main that it answers.")
    events: list[Cause] = Field(description="Why: at most 5 events.")
    was: Any = optional("The value of the field before; null: there was none.")
    now: Any = optional("The value of the field since.")


class Blame(Wire):
    """The answer of `egs blame -o json`."""

    model_config = example(
        {
            "path": "slices/vision/gprs/train.yaml",
            "field": "spec.priority",
            "main": [
                {
                    "commit": "8d5f0a1c6b7e4f2d9a3b5c7d9e1f2a3b4c5d6e7f",
                    "at": "2026-11-21T08:00:00Z",
                    "name": "Bo Ek",
                    "email": "bo@example.com",
                    "subject": "Raise the priority of train (#12)",
                    "pullRequest": "#12",
                    "mergedBy": None,
                    "was": 101,
                    "now": 180,
                }
            ],
            "status": [],
        }
    )

    path: str
    field: str | None = optional("Null: the whole file.")
    main: list[SetOnMain] = Field(description="The newest first.")
    status: list[SetInStatus] = Field(description="The newest first; of requests alone.")


@router.get("/blame", responses=refusals(404, 422), summary="Which commit set this.")
async def get_blame(  # noqa: PLR0913 - each is a parameter of the path
    view: Looking,
    caller: Asking,
    parts: Of,
    gpr_id: Annotated[
        str, Query(alias="gprId", max_length=200, description="A request: its id, or slice/name.")
    ] = "",
    path: Annotated[str, Query(max_length=300, description="Or a document: its path on main.")] = "",
    field: Annotated[
        str,
        Query(
            max_length=200,
            description="Only this field: `spec.…` of the file, `status.…` of the request's record.",
        ),
    ] = "",
    limit: Annotated[int, Query(ge=1, le=50, description="Most commits of each.")] = 10,
) -> Envelope[Blame]:
    """As `egs blame -o json`: who changed a request, a document, or one field, when, and by which pull request; of a
    status the controller's commits, with the events of that time."""
    if bool(gpr_id) == bool(path):
        raise bad_parameters("give either gprId or path")
    where = gpr_path(*gpr_changes.seen(view, caller, gpr_id).key.split("/", 1)) if gpr_id else path
    asked = Blamed(where, field or None, limit)
    found = await parts.costly.answer(blame, parts.store, parts.past.states, view, caller, asked)
    return ok(Blame.model_validate(found))
