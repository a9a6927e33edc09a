"""`/admin/health`: which GPUs are hot or broken, which cards fail again and again, and what to do about nodes."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from portal.pages.visit import AdminVisiting
from portal.views.fleet import fleet_state, heat_map
from portal.views.fleet.heat_map import By, NodeRow
from portal.views.running_work import seen_by
from reconciler.health.cards import lemons
from reconciler.workloads import alerts

router = APIRouter(include_in_schema=False)

PAGE = "/admin/health"
NODES = 200
"""Rows of the map on one page."""
HOTTEST = 15
CARDS = 50


@router.get(PAGE)
def health(
    visit: AdminVisiting,
    by: By = "limit",
    cluster: Annotated[str, Query(max_length=63)] = "",
    pool: Annotated[str, Query(max_length=63)] = "",
    trouble: bool = False,
    first: Annotated[int, Query(ge=0)] = 0,
) -> Response:
    """The map with its hot spots, faults, cards and nodes; all of one moment."""
    view, now = visit.view, visit.now
    seen = seen_by(visit.parts.sources, view, visit.caller, now)
    gpus = [gpu for gpu in seen.gpus if cluster in ("", gpu.cluster) and pool in ("", gpu.pool)]
    rows = [row for row in heat_map.rows(gpus, view.facts.nodes, by) if not trouble or _is_trouble(row)]
    cards = sorted(view.facts.cards.values(), key=lambda card: (-len(card.faults), card.serial))
    return visit.page(
        "admin/health.html",
        rows=rows[first : first + NODES],
        total=len(rows),
        shown=NODES,
        width=max((len(row.cells) for row in rows), default=0),
        hottest=[gpu for gpu in gpus if gpu.closeness is not None][:HOTTEST],
        faults=heat_map.faults(gpus),
        alerts=alerts.alerts_of(gpus, now),
        bad=list(fleet_state.bad_nodes(view)),
        cards=cards[:CARDS],
        card_count=len(cards),
        lemons={card.serial for card in lemons(view.facts.cards, now)},
        ways=heat_map.WAYS,
        clusters=sorted(view.wanted.clusters),
        pools=sorted({key[1] for key in view.wanted.pools if cluster in ("", key[0])}),
        chosen={"by": by, "cluster": cluster, "pool": pool, "trouble": "true" if trouble else ""},
        first=first,
        measured=sum(bool(gpu.values) for gpu in gpus),
        silences=seen.silences,
        week=f"{now + timedelta(days=7):%Y-%m-%dT%H:%M}",
    )


def _is_trouble(row: NodeRow) -> bool:
    return row.state != "Ready" or any(cell.is_bad or cell.gpu.is_hot for cell in row.cells)
