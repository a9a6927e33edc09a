"""`/jobs/<workspace>/<name>`: one workload with its objects, pods, events and checkpoints; its deletion.

Pods come after the page, as values of GPUs do: the page never waits for a cluster.

Held by tests/portal/pages/test_job_pages.py.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool
from starlette.responses import Response

from portal.http.errors import ApiError
from portal.pages.forms import Sent
from portal.pages.outcome_page import elsewhere
from portal.pages.user.jobs.job_list import workspaces_to_file
from portal.pages.user.workload_pages import Values, beside, seen_by
from portal.pages.visit import Visit, Visiting
from portal.routes.workloads import delete_workload
from portal.vendor.gpr_answers import data_of, found_in
from portal.vendor.gpr_models import GprData
from portal.views import table_rows
from portal.views.file_history import file_history
from portal.writes.replayed_answers import naming_of
from reconciler.queries.running.sight import Sight
from reconciler.queries.running.workload_details import pod_rows

router = APIRouter(include_in_schema=False)

Row = dict[str, Any]


@router.get("/jobs/{slice_}/{name}")
def job_page(visit: Visiting, slice_: str, name: str, values: Values = "") -> Response:
    """What the repository knows; with `values` its pods too."""
    return _page(visit, f"{slice_}/{name}", values)


def _page(visit: Visit, key: str, values: Values = "", error: ApiError | None = None) -> Response:
    view, caller = visit.view, visit.caller
    row = table_rows.described_job(view, caller, key)
    text = visit.parts.store.read_path(view.main, row["file"])
    seen = seen_by(visit, row["slice"], waiting_too=True) if values else None
    answer = beside(
        visit,
        "user/job.html",
        values,
        row=row,
        key=key,
        request=_request(visit, row),
        seen=seen,
        pods=[] if seen is None else _pods(seen, row),
        history=file_history(visit.parts.store, view.main, row["file"]),
        ways=_ways(key, text),
        may_delete=text is not None and row["slice"] in workspaces_to_file(view, caller),
        error=error,
    )
    if error is not None:
        answer.status_code = error.status
    return answer


def _request(visit: Visit, row: Row) -> GprData | None:
    """Its request, which may still come or be gone."""
    found = found_in(visit.view, f"{row['slice']}/{row['gpr']}")
    return None if found is None else data_of(visit.view, found, visit.now, visit.redactor)


def _pods(seen: Sight, row: Row) -> list[Row]:
    """Pods with GPUs that its objects have made, as the owners of the pods say."""
    own = {(each["kind"], each["name"]) for each in row["objects"]}
    runs = [
        one
        for one in seen.workloads
        if (one.key.cluster, one.key.namespace) == (row["cluster"], row["namespace"])
        and (one.key.kind, one.key.name) in own
    ]
    return pod_rows(seen, runs)


def _ways(key: str, text: bytes | None) -> list[tuple[str, str]]:
    """The same for other doors."""
    python = f"import egs\n\njob = egs.job({key!r})\nprint(job.phase, job.objects)\n"
    ways = [("CLI", f"egs describe job {key}\n"), ("Python", python)]
    return ways if text is None else [("YAML", text.decode(errors="replace")), *ways]


@router.post("/jobs/{slice_}/{name}/delete")
async def delete_job(visit: Visiting, slice_: str, name: str, form: Sent) -> Response:
    """The list again; a refusal is shown on the page."""
    view, caller, parts, key = visit.view, visit.caller, visit.parts, f"{slice_}/{name}"
    try:
        again = await naming_of(caller, parts, form.get("key", ""))
        change = (await delete_workload(view, caller, parts, again, name=key)).data.change
    except ApiError as error:
        if (
            page := await elsewhere(visit, error, f"Delete workload {key}", HTTPStatus.NOT_FOUND)
        ) is not None:
            return page
        return await run_in_threadpool(_page, visit, key, "", error)
    return visit.landed("/jobs", change, did="delete-job")
