"""`/workspaces`: workspaces that the caller sees; each with people, use, limits, requests, access and API keys."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from portal.http.errors import ApiError
from portal.identity.callers import Caller
from portal.identity.rights import seen_slice
from portal.pages.forms import Form, Sent, filled, listed, whole
from portal.pages.html import fresh_key
from portal.pages.visit import Visit, Visiting
from portal.routes import workspaces
from portal.vendor import key_models, workspace_models
from portal.vendor.key_models import KeyMade, KeyShown
from portal.vendor.workspace_models import WorkspaceWish
from portal.views import table_rows
from portal.views.view import View
from schemas.status.gpr_status import HOLDING, WAITING

router = APIRouter(include_in_schema=False)

Row = dict[str, Any]
NEWEST = 10
"""Finished requests that the page of a workspace lists; the list of requests has all."""


@router.get("/workspaces")
def workspace_list(visit: Visiting) -> Response:
    """All of them, and what was asked for."""
    view, caller = visit.view, visit.caller
    found = workspace_models.workspaces(view, caller)
    asked = table_rows.requests(view, caller, visit.parts.store)
    month = f"{visit.now:%Y-%m}"
    costs = {one.name: _this_month(one, month) for one in found}
    return visit.page(
        "user/workspace_list.html", rows=found, asked=asked, costs=costs, may_ask=may_ask(caller)
    )


def _this_month(one: workspace_models.Workspace, month: str) -> float:
    """Of leases that ended in it, and of running ones."""
    ended = sum(each.amount for each in one.cost.months if each.month == month)
    return ended + one.cost.running_amount


def may_ask(caller: Caller) -> bool:
    """Whether the form is worth showing; the route decides."""
    return any(grant.role != "Viewer" and grant.slices is None for grant in caller.grants)


@router.get("/workspaces/new")
def new_workspace(visit: Visiting) -> Response:
    """The form; an admin makes one, any other user asks for one."""
    return _asked_for(visit, {"key": fresh_key()})


def _asked_for(visit: Visit, form: Form, error: ApiError | None = None) -> Response:
    status = HTTPStatus.OK if error is None else error.status
    clusters = sorted(visit.view.wanted.clusters)
    return visit.page("user/workspace_new.html", status, form=form, clusters=clusters, error=error)


@router.post("/workspaces/new")
async def ask_for_workspace(form: Sent, visit: Visiting) -> Response:
    """A slice for an admin, else a request for one, which an admin merges."""
    try:
        wish = filled(
            WorkspaceWish,
            {
                "workspaceName": form.get("name", ""),
                "clusters": [name for name in visit.view.wanted.clusters if f"cluster-{name}" in form],
                "namespaces": listed(form, "namespaces"),
                "description": form.get("description", ""),
                "members": listed(form, "members"),
                "quotaGPUs": whole(form, "quota"),
            },
        )
        await workspaces.create(wish, visit.view, visit.caller, visit.parts, form.get("key", ""))
    except ApiError as error:
        return _asked_for(visit, form, error)
    return visit.go("/workspaces", asked=wish.workspace_name)


@router.get("/workspaces/{name}")
def workspace(name: str, visit: Visiting) -> Response:
    """Everything about one of them."""
    return shown(visit, name)


def shown(
    visit: Visit,
    name: str,
    error: ApiError | None = None,
    made: KeyMade | None = None,
    form: Form | None = None,
) -> Response:
    """The page; `error`: what a form of it was refused for. `made`: a new key, whose text is shown only here."""
    view, caller = visit.view, visit.caller
    spec = seen_slice(view, caller, name)
    answer = visit.page(
        "user/workspace.html",
        HTTPStatus.OK if error is None else error.status,
        one=workspace_models.workspace_of(view, name),
        people={person.email: person.name for person in spec.people if person.name},
        # Costs as of the controller's last cycle, like those of the workspace.
        requests=_requests(table_rows.gprs(view, caller, name, None, view.facts.at)),
        drivers={each: _driver(view, each) for each in spec.clusters},
        admins=[admin.email for admin in view.wanted.project.admins],
        is_member=name in caller.actor.member_of,
        is_owner=caller.is_admin or name in caller.actor.owns,
        keys=_keys(visit, name),
        makes_keys=any(grant.role == "Owner" and grant.covers(name) for grant in caller.grants),
        error=error,
        made=made,
        form=form or {},
        fresh_key=fresh_key(),
    )
    if made is not None:
        answer.headers["Cache-Control"] = "no-store"
    return answer


def _requests(rows: list[Row]) -> list[Row]:
    """Running ones, then waiting ones by their start, then the newest that are over."""
    running = [row for row in rows if row["phase"] in HOLDING]
    waiting = [row for row in rows if row["phase"] in WAITING]
    waiting.sort(key=lambda row: (row["estimatedStartTime"] or "~", row["name"]))
    over = [row for row in rows if row["phase"] not in HOLDING | WAITING]
    over.sort(key=lambda row: row["endTime"] or row["startTime"] or "", reverse=True)
    return [*running, *waiting, *over[:NEWEST]]


def _driver(view: View, cluster: str) -> str:
    """Empty: there is no such cluster any more."""
    spec = view.wanted.clusters.get(cluster)
    return "" if spec is None else spec.driver


def _keys(visit: Visit, workspace: str) -> list[KeyShown]:
    """Keys that open this workspace, in force first."""
    found = key_models.keys_shown(visit.view, visit.caller, None, visit.now)
    opening = [key for key in found if not key.workspaces or workspace in key.workspaces]
    return sorted(opening, key=lambda key: (key.state != "Active", key.name))
