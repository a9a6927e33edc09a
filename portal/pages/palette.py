"""`/palette`: one field that finds pages, requests, nodes and workspaces, and quotes a wish such as "8 H100 for 2h".

Held by tests/portal/pages/test_palette.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import ceil
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from portal.http.errors import ApiError
from portal.pages.html import counted, money, span, when
from portal.pages.visit import Visit, Visiting
from portal.routes.gpr import keys_of
from portal.views.inventories import pools_for
from portal.views.quotes import WaitAsk, WaitTime, quoted
from portal.views.table_rows import nodes
from scheduler.snapshot import Pool

router = APIRouter(include_in_schema=False)

MOST = 8
"""Hits of one kind."""
QUOTES = 4
_WISH = re.compile(
    r"(?:ask\s+for\s+)?(?P<count>\d{1,5})\s*(?:(?P<nodes>nodes?(?:\s+of)?)\s+|(?:x|×)\s*(?P<each>\d{1,3})\s*|\s+)?"
    r"(?P<shape>[a-z][\w.-]*)\b(?:\s*(?:gpus?|nodes?))?\s*(?:for)?\s*"
    r"(?P<length>\d{1,4}(?:\.\d)?)\s*(?P<unit>m|min|minutes?|h|hours?|d|days?|w|weeks?)\??",
    re.IGNORECASE,
)
_MINUTES = {"m": 1, "h": 60, "d": 1440, "w": 10_080}
_DO = {"cancel": "cancel", "release": "release", "extend": "extend", "edit": "edit"}
"""What can be done with a request, and where on its page."""


@dataclass(frozen=True, slots=True)
class Wish:
    """So many nodes of a shape for so long."""

    nodes: int
    gpus_per_node: int
    shape: str
    minutes: int

    @property
    def duration(self) -> str:
        return f"{self.minutes // 1440}d{self.minutes // 60 % 24}h{self.minutes % 60}m"


@dataclass(frozen=True, slots=True)
class Hit:
    """Something to go to."""

    kind: str
    text: str
    note: str
    path: str


def wish_in(text: str, pools: Iterable[Pool]) -> Wish | None:
    """The wish that the text says. `8 H100` are GPUs, `2 nodes H100` and `2x8 H100` are nodes; None: it says none."""
    found = _WISH.fullmatch(" ".join(text.split()))
    if found is None:
        return None
    alike = [pool for pool in pools if pool.gpu_shape.lower().startswith(found["shape"].lower())]
    if not alike:
        return None
    pool = max(alike, key=lambda each: each.gpus_per_node)
    count, per_node = int(found["count"]), int(found["each"] or 0)
    if found["nodes"]:
        per_node = pool.gpus_per_node
    elif not per_node:
        count, per_node = ceil(count / pool.gpus_per_node), min(count, pool.gpus_per_node)
    minutes = round(float(found["length"]) * _MINUTES[found["unit"][0].lower()])
    return Wish(count, per_node, pool.gpu_shape, minutes) if count and minutes else None


@router.get("/palette")
def palette(visit: Visiting, q: Annotated[str, Query(max_length=100)] = "") -> Response:
    """Hits by kind, best first; for a wish its quotes."""
    text = q.strip()
    wish = wish_in(text, pools_for(visit.view, visit.caller))
    quotes = list(_quotes(visit, wish)) if wish is not None else []
    return visit.page("palette.html", q=text, hits=[*quotes, *_hits(visit, text)], wish=wish)


def _hits(visit: Visit, text: str) -> Iterator[Hit]:
    frame, (verb, _, rest) = visit.frame, text.partition(" ")
    anchor = _DO.get(verb.lower(), "")
    words = (rest if anchor else text).lower().split()
    if not anchor:
        for place in (*frame.places, *frame.admin_places):
            if _says(words, place.text):
                yield Hit("Page", place.text, "", place.path)
    if words:
        yield from _some(_requests(visit, words, anchor))
        if not anchor:
            mine = (name for name in frame.workspaces if _says(words, name))
            yield from _some(Hit("Workspace", name, "", f"/workspaces/{name}") for name in mine)
            yield from _some(_nodes(visit, words))


def _requests(visit: Visit, words: list[str], anchor: str) -> Iterator[Hit]:
    view, caller = visit.view, visit.caller
    for key in view.once(keys_of):
        if caller.may_see(key.partition("/")[0]) and _says(words, key):
            status = view.facts.requests.get(key)
            text = f"{anchor.capitalize()} {key}" if anchor else key
            note = "Filed" if status is None else str(status.phase)
            yield Hit("Request", text, note, f"/requests/{key}" + (f"#{anchor}" if anchor else ""))


def _nodes(visit: Visit, words: list[str]) -> Iterator[Hit]:
    for row in nodes(visit.view, visit.caller, "", ""):
        name = f"{row['cluster']}/{row['name']}"
        if visit.caller.is_admin and _says(words, name):
            yield Hit("Node", name, str(row["state"]), f"/admin/nodes/{name}")


def _quotes(visit: Visit, wish: Wish) -> Iterator[Hit]:
    slice_ = visit.workspace or next(iter(visit.frame.workspaces), "")
    if not slice_:
        return
    ask = WaitAsk(
        slice_name=slice_,
        number_of_gpu_nodes=wish.nodes,
        number_of_gpus=wish.gpus_per_node,
        gpu_shape=wish.shape,
        exit_duration=wish.duration,
    )
    try:
        found = quoted(visit.view, ask, visit.now)
    except ApiError as error:
        yield Hit("Quote", str(error), slice_, "/requests/new")
        return
    for one in found.items[:QUOTES]:
        yield _quote(visit, wish, slice_, one)


def _quote(visit: Visit, wish: Wish, slice_: str, one: WaitTime) -> Hit:
    what = f"{counted(wish.nodes, 'node')} × {wish.gpus_per_node} {wish.shape} for {span(wish.minutes * 60)}"
    query = f"?workspace={slice_}&nodes={wish.nodes}&gpus={wish.gpus_per_node}&shape={wish.shape}"
    path = f"/requests/new{query}&duration={wish.duration}&cluster={one.cluster_name}"
    if not one.estimated_start_time:
        return Hit("Quote", f"{what} in {one.cluster_name}: no start", one.message, path)
    cost = one.price_per_gpu_hour * wish.nodes * one.gpus_per_node * wish.minutes / 60
    start = when(one.estimated_start_time).striptags()
    price = money(cost, visit.view.wanted.project.currency) if cost else ""
    asks = "needs approval" if one.needs_approval else ""
    return Hit(
        "Quote",
        f"{what} in {one.cluster_name}: starts {start}",
        ", ".join(part for part in (f"wait {span(one.estimated_wait_seconds)}", price, asks, slice_) if part),
        path,
    )


def _some(hits: Iterable[Hit]) -> Iterator[Hit]:
    for number, hit in enumerate(hits):
        if number == MOST:
            return
        yield hit


def _says(words: list[str], text: str) -> bool:
    lower = text.lower()
    return all(word in lower for word in words)
