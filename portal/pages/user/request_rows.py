"""Finding and ordering requests among thousands. Pure.

What a request is found by is worked out once per view, for all callers; a whole row costs ten times as much and is made
only for rows that are shown.

Held by tests/portal/pages/test_request_list.py and `python -m benchmarks.pages`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from portal.identity.redaction import Redactor
from portal.pages.user.request_choices import Choice, choices_of
from portal.routes.gpr import keys_of
from portal.vendor.gpr_answers import FILED, data_of, found_in, pool_of, shape_of, start_of
from portal.vendor.gpr_models import GprData
from portal.views.queues import line_of
from portal.views.view import View
from reconciler.queries.costs import cost_so_far
from schemas.documents.gpr import RequestSpec
from schemas.reading.units import instant
from schemas.status.gpr_status import HOLDING, TERMINAL, WAITING, GPRStatus, Phase

WHICH: Mapping[str, frozenset[str]] = {
    "open": frozenset({FILED, *WAITING, *HOLDING}),
    "waiting": frozenset({FILED, *WAITING}),
    "running": frozenset(HOLDING),
    "over": frozenset(TERMINAL),
    "all": frozenset({FILED, *Phase}),
    FILED: frozenset({FILED}),
    **{str(phase): frozenset({str(phase)}) for phase in Phase},
}
"""Phases by what a reader chooses."""
Column = Literal["", "name", "state", "wants", "starts", "ends", "priority", "place", "cost"]
COLUMNS: Mapping[Column, str] = {
    "name": "Request",
    "state": "State",
    "wants": "Wants",
    "starts": "Starts",
    "ends": "Ends",
    "priority": "Priority",
    "place": "Place",
    "cost": "Cost",
}
"""Headings by column, in order."""
_STATES: Mapping[str, int] = {name: number for number, name in enumerate((FILED, *Phase))}
_FORMULA = "=+-@\t\r"
"""A cell that begins with one of these is a formula for a spreadsheet."""


@dataclass(frozen=True, slots=True)
class Brief:
    """What a request is found and ordered by."""

    key: str
    slice: str
    phase: str
    shape: str
    nodes: int
    priority: int
    text: str
    """All words that a search looks in, in lower case."""
    start: datetime | None
    end: datetime | None
    rank: int | None
    status: GPRStatus | None


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a reader wants to see, as in the address of the page."""

    which: str = "open"
    shape: str = ""
    q: str = ""
    sort: Column = ""
    desc: bool = False

    @property
    def is_all(self) -> bool:
        """Whether nothing is left out by choice."""
        return self.which in ("open", "all") and not self.shape and not self.q


def briefs(view: View) -> Mapping[str, Brief]:
    """Of all requests by slice/name; call it through `view.once`."""
    found = {}
    for key in view.once(keys_of):
        status = view.facts.requests.get(key)
        spec = _spec(view, key, status)
        if spec is not None:
            found[key] = _brief(view, key, spec, status)
    return found


def _spec(view: View, key: str, status: GPRStatus | None) -> RequestSpec | None:
    if status is not None:
        return status.accepted_spec
    filed = view.wanted.filed.get(key)
    return None if filed is None else filed.spec


def _brief(view: View, key: str, spec: RequestSpec, status: GPRStatus | None) -> Brief:
    line = view.once_planned(line_of)
    turn, place = line.turns.get(key), line.planned.placements.get(key)
    cluster, name = (turn and turn.pool) or (None, None)
    pool = pool_of(view, status, {"cluster": cluster, "pool": name})
    shape, phase = shape_of(spec, pool), FILED if status is None else str(status.phase)
    clusters = (pool.key[0],) if pool is not None else spec.clusters
    words = (key, spec.display_name or "", shape, *clusters, phase, spec.model.name)
    return Brief(
        key=key,
        slice=spec.slice,
        phase=phase,
        shape=shape,
        nodes=spec.nodes,
        priority=spec.priority,
        text=" ".join(words).lower(),
        start=start_of(status, None if place is None or turn is None else instant(place.start)),
        end=None if status is None else status.end_time or status.estimated_end_time,
        rank=None if turn is None else turn.rank,
        status=status,
    )


def chosen(view: View, sees: Callable[[str], bool], wanted: Chosen, now: datetime) -> list[str]:
    """Keys of requests that match, in the wanted order; only of slices for which `sees` is true."""
    return [one.key for one in ordered(view, matching(view, sees, wanted), wanted, now)]


def matching(view: View, sees: Callable[[str], bool], wanted: Chosen) -> list[Brief]:
    """All words of the search must be found."""
    phases, words = WHICH[wanted.which], wanted.q.lower().split()
    return [
        one
        for one in view.once(briefs).values()
        if one.phase in phases
        and sees(one.slice)
        and wanted.shape in ("", one.shape)
        and all(word in one.text for word in words)
    ]


def ordered(view: View, found: list[Brief], wanted: Chosen, now: datetime) -> list[Brief]:
    """By that column; what has no value there comes last in either direction."""
    if not wanted.sort:
        return sorted(found, key=_usual)
    value = _values(view, now)[wanted.sort]
    by_value = [(value(one), one) for one in found]
    known = [(each, one.key, one) for each, one in by_value if each is not None]
    known.sort(key=lambda each: each[:2], reverse=wanted.desc)
    absent = sorted((one for each, one in by_value if each is None), key=lambda one: one.key)
    return [*(one for _, _, one in known), *absent]


def _values(view: View, now: datetime) -> Mapping[str, Callable[[Brief], tuple[float | str, ...] | None]]:
    """How each column is compared; None: it has no value there."""
    return {
        "name": lambda one: (one.key,),
        "state": lambda one: (_STATES[one.phase],),
        "wants": lambda one: (one.shape, one.nodes),
        "starts": lambda one: None if one.start is None else (one.start.timestamp(),),
        "ends": lambda one: None if one.end is None else (one.end.timestamp(),),
        "priority": lambda one: (one.priority,),
        "place": lambda one: None if one.rank is None else (one.rank,),
        "cost": lambda one: (_amount(view, one.status, now),),
    }


def _amount(view: View, status: GPRStatus | None, now: datetime) -> float:
    cost = None if status is None else cost_so_far(view.wanted, status, now)
    return 0.0 if cost is None else cost.amount


def _usual(one: Brief) -> tuple[int, float, str]:
    """Waiting ones first, by their start; then running ones by their end; then what is over, the latest first."""
    if one.phase in WHICH["waiting"]:
        return 0, float("inf") if one.start is None else one.start.timestamp(), one.key
    if one.phase in HOLDING:
        return 1, float("inf") if one.end is None else one.end.timestamp(), one.key
    return 2, 0.0 if one.end is None else -one.end.timestamp(), one.key


def rows(
    view: View, keys: Iterable[str], now: datetime, redactor: Redactor
) -> list[tuple[GprData, frozenset[Choice]]]:
    """Whole rows of these requests, each with what the caller may do with it."""
    found = [one for one in (found_in(view, key) for key in keys) if one is not None]
    caller = redactor.caller
    return [(data_of(view, one, now, redactor), choices_of(view, caller, one)) for one in found]


def wants(row: GprData) -> str:
    return f"{row.number_of_gpu_nodes} × {row.number_of_gpus} {row.gpu_shape}"


def as_csv(found: Iterable[GprData]) -> str:
    """The columns of the screen, with the request's full name, its cluster and exact times."""
    text = io.StringIO()
    lines = csv.writer(text)
    lines.writerow([*COLUMNS.values(), "Workspace", "File", "Cluster"])
    for row in found:
        cells = (
            row.gpr_name,
            row.phase,
            wants(row),
            row.estimated_start_time,
            row.end_time,
            row.priority,
            row.rank,
            row.status.cost if row.status.start_timestamp else "",
            row.slice_name,
            row.name,
            row.cluster_name,
        )
        lines.writerow([_cell(each) for each in cells])
    return text.getvalue()


def _cell(value: object) -> object:
    """A name may be any text, so that one of them could be taken for a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(tuple(_FORMULA)) else value
