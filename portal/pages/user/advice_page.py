"""`/workspaces/<name>/advice`: how many nodes a workspace will need, and by when to file for them."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from portal.identity.rights import seen_slice
from portal.pages.visit import Visiting
from portal.views.advice_rows import advice, served
from reconciler.queries.demand.slice_advice import Question
from schemas.errors import Fault, UserError
from schemas.reading.units import parse_instant

router = APIRouter(include_in_schema=False)

SPANS = {24: "next day", 48: "next two days", 168: "next week"}
LINES = {"nodes": "Nodes to have", "expected": "Expected use", "known": "Filed for already"}
Text = Annotated[str, Query(max_length=20)]


@router.get("/workspaces/{name}/advice")
async def advice_page(  # noqa: PLR0913 - each is a field of the form
    name: str,
    visit: Visiting,
    hours: Annotated[int, Query(ge=1, le=168)] = 24,
    patience: Text = "1h",
    cold_start: Text = "10m",
    gpus_per_node: Annotated[str, Query(alias="gpusPerNode", pattern="^([1-9][0-9]{0,3})?$")] = "",
    gpu_shape: Annotated[str, Query(alias="gpuShape", max_length=500)] = "",
    endpoint: Annotated[str, Query(max_length=63)] = "",
) -> Response:
    """The data of `GET advice/<name>` as a chart and a table, with a way to file for what is missing."""
    seen_slice(visit.view, visit.caller, name)
    shapes = tuple(word for shape in gpu_shape.split(",") if (word := shape.strip()))
    gpus = int(gpus_per_node) if gpus_per_node else None
    asked = Question(hours, patience, cold_start, gpus, shapes, endpoint)
    shared: dict[str, Any] = {
        "name": name,
        "asked": asked,
        "spans": SPANS,
        "lines": LINES,
        "offered": sorted(
            {pool.gpu_shape for spec in visit.view.wanted.clusters.values() for pool in spec.pools}
        ),
        "endpoints": [
            one.partition("/")[2] for one in sorted(visit.view.wanted.endpoints) if one.startswith(f"{name}/")
        ],
    }
    try:
        past = await served(visit.view, name, asked, visit.parts.sources.past)
        found = await visit.parts.costly.answer(advice, visit.view, name, asked, past)
    except Fault as error:
        return visit.page(
            "user/advice.html", HTTPStatus.SERVICE_UNAVAILABLE, found=None, refused=str(error), **shared
        )
    except UserError as error:
        return visit.page(
            "user/advice.html", HTTPStatus.UNPROCESSABLE_ENTITY, found=None, refused=str(error), **shared
        )
    return visit.page("user/advice.html", found=found, refused="", chart=_chart(found["hours"]), **shared)


def _chart(hours: list[dict[str, Any]]) -> str:
    """For the script: a value for each line and hour."""
    times = [int(parse_instant(hour["begin"]).timestamp()) for hour in hours]
    series = [{"name": text, "values": [hour[line] for hour in hours]} for line, text in LINES.items()]
    return json.dumps(
        {"times": times, "unit": "nodes", "limit": None, "series": series, "marks": []}, separators=(",", ":")
    )
