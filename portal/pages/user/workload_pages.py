"""`/workloads`: from what runs, over a model's details and its pods, to the GPU that is hot.

A page never waits for a cluster or for Prometheus: it shows what the repository knows, and a script puts values in as
soon as there are any, by asking for the same page with `values=now`. Without scripts a browser opens that page itself.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from starlette.responses import Response

from portal.pages.visit import Visit, Visiting
from portal.views import running_work
from portal.views.workload_rows import Workload, workload, workloads
from reconciler.queries.running.choose import Chosen
from reconciler.queries.running.sight import Sight
from reconciler.queries.running.workload_details import pod_rows
from reconciler.queries.workload_rows import rows_at
from reconciler.workloads import gpu_rows

router = APIRouter(include_in_schema=False)

Row = dict[str, Any]
Values = Literal["", "now"]
Text = Annotated[str, Query(max_length=200)]


@router.get("/workloads")
def workload_list(visit: Visiting, values: Values = "", q: Text = "") -> Response:
    """Requests that have their nodes, each with what it runs."""
    rows = _measured(visit) if values else _known(visit)
    found = [one for one in rows if q.lower() in _text(one).lower()]
    return beside(visit, "user/workload_list.html", values, rows=found, total=len(rows), q=q)


def _measured(visit: Visit) -> list[Workload]:
    seen = seen_by(visit, visit.workspace)
    return workloads(seen, visit.redactor, visit.workspace)


def _known(visit: Visit) -> list[Workload]:
    """What the repository knows: no pods, no values."""
    rows = rows_at(visit.view.wanted, visit.view.facts, visit.now, visit.workspace or None)
    unknown: Row = {"summary": {}, "runs": [], "podsUnknown": ""}
    mine = [row for row in rows if visit.caller.may_see(row["sliceName"])]
    return [workload({**row, **unknown}, visit.redactor) for row in mine]


def _text(one: Workload) -> str:
    runs = " ".join(f"{run['kind']} {run['name']} {_value(run['model']['name'])}" for run in one.runs)
    return f"{one.name} {one.gpr_name} {one.model.name} {one.model.framework} {one.gpu_shape} {one.cluster_name} {runs}"


def seen_by(visit: Visit, workspace: str = "", *, waiting_too: bool = False) -> Sight:
    """What the caller may see now; asks clusters and sources."""
    parts, view, caller = visit.parts, visit.view, visit.caller
    return running_work.seen_by(parts.sources, view, caller, visit.now, workspace, waiting_too=waiting_too)


def beside(visit: Visit, template: str, values: Values, **data: Any) -> Response:
    """A page whose values come after it; the address never keeps `values`."""
    answer = visit.page(template, values=values, **data)
    if values and "HX-Request" in visit.request.headers:
        query = {name: value for name, value in visit.request.query_params.items() if name != "values"}
        answer.headers["HX-Replace-Url"] = visit.link(visit.frame.path, **query)
    return answer


@router.get("/workloads/{id:path}/pods")
def workload_pods(id: str, visit: Visiting, values: Values = "") -> Response:
    """Its pods, each with its GPUs."""
    rows: list[Row] = []
    about = seen = None
    if values:
        seen, about = _found(visit, id)
        rows = [{**row, "gpus": _by_index(row["gpus"])} for row in pod_rows(seen, about.workloads)]
    return beside(visit, "user/workload_pods.html", values, id=id, about=about, seen=seen, rows=rows)


def _by_index(gpus: list[Row]) -> list[Row]:
    return sorted(gpus, key=lambda gpu: (gpu["index"] is None, gpu["index"]))


@router.get("/workloads/{id:path}/gpus")
def workload_gpus(id: str, visit: Visiting, values: Values = "", q: Text = "", hot: str = "") -> Response:
    """Its GPUs, the nearest to their own limits first."""
    rows: list[Row] = []
    about = seen = None
    if values:
        seen, about = _found(visit, id)
        rows = [gpu_rows.row(gpu, seen.now) for gpu in about.gpus(seen)]
    shown = [row for row in rows if (row["hot"] or not hot) and (not q or gpu_rows.matches(row, q))]
    told = {"id": id, "about": about, "seen": seen, "rows": shown, "total": len(rows)}
    return beside(visit, "user/workload_gpus.html", values, **told, q=q, hot=hot)


@router.get("/workloads/{id:path}")
def workload_details(id: str, visit: Visiting, values: Values = "") -> Response:
    """Its model, its figures, and what is wrong with it in a sentence."""
    known = next((one for one in _known(visit) if id in (one.name, one.gpr_id)), None)
    about = seen = found = diagnosis = None
    if values:
        view, caller, sources = visit.view, visit.caller, visit.parts.sources
        seen, about = _found(visit, id)
        found = running_work.workload(sources, seen, about)
        diagnosis = running_work.diagnosed(sources, view, caller, seen, about)
    told = {"id": id, "known": known, "about": about, "seen": seen, "found": found, "diagnosis": diagnosis}
    return beside(visit, "user/workload.html", values, **told, model=_model(found, known))


def _found(visit: Visit, id: str) -> tuple[Sight, Chosen]:
    seen = seen_by(visit, waiting_too=True)
    return seen, running_work.found(seen, id)


def _model(found: Row | None, known: Workload | None) -> list[tuple[str, str, str]]:
    """Name, value and source of everything that is known about the model."""
    model = (found or {}).get("model")
    if model is None or isinstance(model.get("name"), str):
        if known is None:
            return []
        own = known.model
        named = [("Model", own.name), ("Framework", own.framework), *sorted(own.parameters.items())]
        return [(name, value, "request") for name, value in named if value]
    said: Row = {"Model": model["name"], "Framework": model["framework"], **model["parameters"]}
    return [(name, one["value"], one["source"]) for name, one in said.items() if one]


def _value(said: Row | None) -> str:
    return "" if said is None else str(said["value"])
