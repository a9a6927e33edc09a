"""What runs, as one caller may see it: the same data as the commands print.

Held by tests/portal/test_running.py.
"""

from __future__ import annotations

from datetime import datetime
from itertools import islice
from typing import Any

from portal.http.errors import not_found
from portal.identity.callers import Caller
from portal.identity.redaction import Redactor
from portal.views.view import View
from reconciler.model.facts import NodeKey
from reconciler.queries.event_search import EventRow, Filter
from reconciler.queries.running import ranges
from reconciler.queries.running.choose import Chosen, chosen
from reconciler.queries.running.diagnoses import diagnosis
from reconciler.queries.running.ranges import Span
from reconciler.queries.running.sight import Sight, Sources, Viewer, sight
from reconciler.queries.running.workload_details import pod_rows, run_row, with_runs
from reconciler.queries.workload_rows import rows_at
from reconciler.telemetry.leased_time import Leased, visible_ranges
from reconciler.telemetry.telemetry_port import GpuKey
from reconciler.workloads import gpu_rows
from reconciler.workloads.leases import leased_to
from reconciler.workloads.summary import time_lost
from schemas.status.gpr_status import TERMINAL, Phase

Row = dict[str, Any]

OVER = TERMINAL | {Phase.RELEASING}
"""Phases of requests whose lease is over."""
EVENTS = 200
"""Latest events of a request in which a diagnosis looks."""


def seen_by(
    sources: Sources,
    view: View,
    caller: Caller,
    now: datetime,
    slice_: str = "",
    *,
    waiting_too: bool = False,
) -> Sight:
    """All that the caller may see; asks clusters and sources, so never in the event loop."""
    viewer = Viewer(caller.may_see, caller.sees is None)
    return sight(sources, (view.wanted, view.facts, now), viewer, slice_ or None, waiting_too=waiting_too)


def found(seen: Sight, name: str) -> Chosen:
    """The workload or request of that id or name. Raises NotFound."""
    return chosen(seen, name)


def workload(sources: Sources, seen: Sight, about: Chosen) -> Row:
    """Everything about one workload or request: figures, GPUs, pods, and the time that was lost in the last hour."""
    gpus = about.gpus(seen)
    span = ranges.span_of(seen.now, None, None)
    keys = {GpuKey(gpu.cluster, gpu.node, gpu.uuid) for gpu in gpus}
    series = ranges.of_gpus(ranges.values(sources.telemetry, seen, span), keys) if keys else ()
    head = _request(seen, about.request) if about.is_whole and about.request else {}
    if not about.is_whole:
        head = run_row(seen, about.workloads[0])
    return {
        **head,
        "workload": about.name,
        "request": about.request or None,
        "summary": {**head.get("summary", {}), **time_lost(series, span.pace)},
        "gpus": [gpu_rows.row(gpu, seen.now) for gpu in gpus],
        "pods": pod_rows(seen, about.workloads),
        "silences": list(seen.silences),
    }


def _request(seen: Sight, key: str) -> Row:
    row = next(
        row for row in rows_at(seen.wanted, seen.facts, seen.now, key.partition("/")[0]) if row["name"] == key
    )
    return with_runs(seen, row)


def diagnosed(sources: Sources, view: View, caller: Caller, seen: Sight, about: Chosen) -> Row:
    """The data of `egs diagnose`, with messages redacted for the caller."""
    redactor = Redactor(caller, view)
    told: list[EventRow] = []
    if about.request:
        told = [
            {**event, "message": redactor.text(event["message"])}
            for event in islice(view.events.found(Filter(gpr=about.request)), EVENTS)
        ]
    return diagnosis(sources.telemetry, seen, about, told)


def over_time(sources: Sources, view: View, caller: Caller, seen: Sight, asked: tuple[str, str, Span]) -> Row:
    """Values of one GPU, or of all GPUs of a workload or request; `asked`: GPU, workload, range.

    A finished request of the caller's own shows its GPUs too, for its own time.
    """
    gpu, name, span = asked
    if not name:
        keys = {GpuKey(one.cluster, one.node, one.uuid) for one in seen.gpus if gpu in ("", one.uuid)}
        if gpu and not keys:
            raise not_found("GPU with the uuid", gpu)
        return _shown(sources, seen, (keys, span))
    past = _past(view, caller, name)
    if past is not None:
        got = visible_ranges(ranges.values(sources.telemetry, seen, span, past), past)
        own = [one for one in got.series if gpu in ("", one.gpu.uuid)]
        return ranges.data(own, span, [one.message for one in got.silences])
    about = found(seen, name)
    keys = {GpuKey(one.cluster, one.node, one.uuid) for one in about.gpus(seen) if gpu in ("", one.uuid)}
    return _shown(sources, seen, (keys, span))


def _shown(sources: Sources, seen: Sight, asked: tuple[set[GpuKey], Span]) -> Row:
    keys, span = asked
    ranges.check_count(len(keys))
    nodes: set[NodeKey] = {key.at_node for key in keys}
    leased = {node: spans for node, spans in seen.leased.items() if node in nodes}
    if seen.viewer.sees_all:
        leased = {node: leased.get(node, ()) for node in nodes}
    got = ranges.values(sources.telemetry, seen, span, leased)
    return ranges.data(ranges.of_gpus(got, keys), span, [one.message for one in got.silences])


def _past(view: View, caller: Caller, name: str) -> Leased | None:
    """When a finished request of the caller's slices had its nodes; None: it is not one."""
    key = view.ids.get(name, name)
    status = view.facts.requests.get(key)
    if status is None or status.phase not in OVER or not caller.may_see(key.partition("/")[0]):
        return None
    return leased_to([status])
