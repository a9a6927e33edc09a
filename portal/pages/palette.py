"""`/palette`: one field that finds pages, requests, jobs, endpoints, nodes and workspaces, quotes a wish such as
"8 H100 for 2h", and answers when nodes are free and which GPU is the hottest.

Held by tests/portal/pages/test_palette.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from starlette.responses import Response

from portal.http.errors import ApiError
from portal.pages.html import counted, money, number, span, when
from portal.pages.palette_words import FreeAsk, Wish, asks_for_hottest, free_ask_in, wish_in
from portal.pages.plain_words import nearest_limit
from portal.pages.user.calendar_parts import free_times
from portal.pages.user.home import hottest_of
from portal.pages.visit import Visit, Visiting
from portal.routes.gpr import keys_of
from portal.views.inventories import pools_for
from portal.views.quotes import WaitAsk, WaitTime, quoted
from portal.views.table_rows import nodes
from reconciler.queries.running.endpoint_rows import known
from schemas.reading.units import format_instant

router = APIRouter(include_in_schema=False)

MOST = 8
"""Hits of one kind."""
QUOTES = 4
_DO = {"cancel": "cancel", "release": "release", "extend": "extend", "edit": "edit"}
"""What can be done with a request, and where on its page."""


@dataclass(frozen=True, slots=True)
class Hit:
    """Something to go to."""

    kind: str
    text: str
    note: str
    path: str


@router.get("/palette")
def palette(visit: Visiting, q: Annotated[str, Query(max_length=100)] = "") -> Response:
    """Hits by kind, best first; for a wish its quotes."""
    text = q.strip()
    return visit.page("palette.html", q=text, hits=[*_answers(visit, text), *_hits(visit, text)])


def _answers(visit: Visit, text: str) -> Iterator[Hit]:
    """To what is asked in words."""
    pools = pools_for(visit.view, visit.caller)
    wish, free = wish_in(text, pools, visit.now), free_ask_in(text, pools)
    if wish is not None:
        yield from _quotes(visit, wish)
    if free is not None:
        yield from _free(visit, free)
    if asks_for_hottest(text):
        yield from _hottest(visit)


def _free(visit: Visit, ask: FreeAsk) -> Iterator[Hit]:
    page = f"/calendar?need={ask.nodes}"
    for strip in free_times(visit, ask.shape, ask.nodes):
        what = f"{counted(ask.nodes, 'node')} {strip.shape}"
        if strip.windows:
            first, path = strip.windows[0], strip.windows[0].href.removeprefix(visit.frame.prefix)
            begin = "now" if first.begin is None else f"from {when(first.begin).striptags()}"
            end = "" if first.end is None else f" to {when(first.end).striptags()}"
            yield Hit("Free", f"{what}: free {begin}{end}", "ask for them", path)
        else:
            never = "never" if strip.nodes < ask.nodes else "not within two weeks"
            yield Hit("Free", f"{what}: {never}", f"of {counted(strip.nodes, 'node')}", page)
    yield Hit(
        "Page",
        f"Calendar: when {counted(ask.nodes, 'node is', 'nodes are')} free",
        "",
        f"/calendar?need={ask.nodes}",
    )


def _hottest(visit: Visit) -> Iterator[Hit]:
    row = hottest_of(visit).top
    if row is not None:
        near, limit = row["closeness"], nearest_limit(row, row["limits"])
        share = f"{number(100 * near)} % of its {limit} limit" if near is not None else ""
        query = urlencode({"gpu": row["uuid"], "workload": row["request"] or ""})
        yield Hit(
            "GPU",
            f"GPU {row['index']} on {row['node']}: {number(row['tempC'])} °C",
            ", ".join(part for part in (row["request"] or "", share) if part),
            f"/workloads/dashboard?{query}",
        )
    yield Hit(
        "Page",
        "GPUs, the nearest to their limits first",
        "" if row else "no value is known",
        "/workloads/gpus",
    )


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
            yield from _some(_jobs(visit, words))
            yield from _some(_endpoints(visit, words))
            yield from _some(_nodes(visit, words))


def _requests(visit: Visit, words: list[str], anchor: str) -> Iterator[Hit]:
    view, caller = visit.view, visit.caller
    for key in view.once(keys_of):
        if caller.may_see(key.partition("/")[0]) and _says(words, key):
            status = view.facts.requests.get(key)
            text = f"{anchor.capitalize()} {key}" if anchor else key
            note = "Filed" if status is None else str(status.phase)
            yield Hit("Request", text, note, f"/requests/{key}" + (f"#{anchor}" if anchor else ""))


def _jobs(visit: Visit, words: list[str]) -> Iterator[Hit]:
    view = visit.view
    for key in sorted({*view.wanted.workloads, *view.facts.workloads}):
        if visit.caller.may_see(key.partition("/")[0]) and _says(words, key):
            status = view.facts.workloads.get(key)
            yield Hit("Job", key, "Filed" if status is None else str(status.phase), f"/jobs/{key}")


def _endpoints(visit: Visit, words: list[str]) -> Iterator[Hit]:
    view = visit.view
    for key in sorted(known(view.state)):
        if visit.caller.may_see(key.partition("/")[0]) and _says(words, key):
            status = view.facts.endpoints.get(key)
            yield Hit("Endpoint", key, "Filed" if status is None else str(status.phase), f"/endpoints/{key}")


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
        not_before=None if wish.begin is None else format_instant(wish.begin),
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
    later = "" if wish.begin is None else f"&notBefore={wish.begin:%Y-%m-%dT%H:%M}Z"
    path = f"/requests/new{query}&duration={wish.duration}&cluster={one.cluster_name}{later}"
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
    for place, hit in enumerate(hits):
        if place == MOST:
            return
        yield hit


def _says(words: list[str], text: str) -> bool:
    lower = text.lower()
    return all(word in lower for word in words)
