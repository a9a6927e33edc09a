"""`egs diagnose`: gathers an episode and has it explained.

Held by tests/contract/test_running_contract.py, on a repository and on a server.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from reconciler.model.facts import Facts
from reconciler.model.statuses import live
from reconciler.queries.running.choose import Chosen
from reconciler.queries.running.ranges import Span, of_gpus, values
from reconciler.queries.running.sight import Sight
from reconciler.queries.running.workload_details import model_row
from reconciler.telemetry.telemetry_port import GpuKey, Metric, Telemetry
from reconciler.workloads.diagnosis.diagnose import diagnose, row
from reconciler.workloads.diagnosis.episode import Episode, Replaced
from reconciler.workloads.summary import summary, time_lost
from schemas.reading.units import format_instant, parse_instant
from schemas.status.gpr_status import Phase

Row = dict[str, Any]

LOOKED_AT = timedelta(hours=1)
STEP = timedelta(minutes=1)
METRICS = (
    Metric.UTILISATION,
    Metric.POWER,
    Metric.SM_CLOCK,
    Metric.THROTTLE,
    Metric.XID,
    Metric.ECC_UNCORRECTABLE,
)
REPLACED = "NodeReplaced"


def episode(
    telemetry: Telemetry, seen: Sight, about: Chosen, events: Iterable[Mapping[str, Any]] = ()
) -> Episode:
    """Everything known about it; `events` are rows about its request."""
    status = seen.requests.get(about.request)
    bare = Episode(
        seen.now,
        request=about.request,
        waiting=about.waiting,
        next_start=_next_start(seen.facts, about),
        pods=tuple(pod for workload in about.workloads for pod in workload.pods),
        troubles=tuple(trouble for workload in about.workloads for trouble in workload.troubles),
        silences=tuple(silence.message for silence in seen.latest.silences),
        is_whole=about.is_whole,
    )
    if status is None or status.assignment is None:
        told = tuple(one.silence for _, one in sorted(seen.pods.items()) if one.silence)
        return replace(bare, pods_silence="" if bare.pods or not told else told[0])
    held, gpus = status.assignment, about.gpus(seen)
    span = Span(max(seen.now - LOOKED_AT, status.start_time or seen.now), seen.now, STEP, METRICS)
    keys = {GpuKey(gpu.cluster, gpu.node, gpu.uuid) for gpu in gpus}
    own = {
        node: spans
        for node, spans in seen.leased.items()
        if node[1] in held.nodes and node[0] == held.cluster
    }
    pool = seen.wanted.pools.get((held.cluster, held.pool))
    per_node = 0 if pool is None else pool.gpus_per_node
    known = seen.pods.get(held.cluster)
    return replace(
        bare,
        since=status.start_time,
        eviction=status.eviction,
        gpus=gpus,
        allocated=len(held.nodes) * per_node,
        per_node=per_node,
        series=of_gpus(values(telemetry, seen, span, own), keys) if gpus and span.since < span.until else (),
        checks=status.checks,
        replaced=_replaced(events, status.start_time),
        pods_silence="" if known is None else known.silence,
        troubles=bare.troubles
        if known is None or not about.is_whole
        else _troubles(seen, about, held.cluster),
    )


def _troubles(seen: Sight, about: Chosen, cluster: str) -> tuple[Any, ...]:
    """Also of objects that could not make a pod, and so belong to no workload."""
    spec = seen.wanted.slices.get(about.slice)
    own = frozenset() if spec is None else frozenset(spec.namespaces)
    return tuple(trouble for trouble in seen.pods[cluster].troubles if trouble.namespace in own)


def _next_start(facts: Facts, about: Chosen) -> datetime | None:
    """The promise of the request, else the earliest one of the slice."""
    if about.waiting:
        return facts.requests[about.waiting].estimated_start_time
    starts = [
        status.estimated_start_time
        for key, status in live(facts.requests).items()
        if key.partition("/")[0] == about.slice and status.phase in (Phase.QUEUED, Phase.PROVISIONING)
    ]
    return min((start for start in starts if start is not None), default=None)


def _replaced(events: Iterable[Mapping[str, Any]], since: datetime | None) -> tuple[Replaced, ...]:
    found = []
    for event in events:
        at = parse_instant(event["at"])
        if event["reason"] == REPLACED and event.get("node") and (since is None or at >= since):
            found.append(Replaced(event["node"], event["message"], at))
    return tuple(found)


def diagnosis(
    telemetry: Telemetry, seen: Sight, about: Chosen, events: Iterable[Mapping[str, Any]] = ()
) -> Row:
    """The data of `egs diagnose`."""
    found = episode(telemetry, seen, about, events)
    one = about.workloads[0] if len(about.workloads) == 1 else None
    return {
        "workload": about.name,
        "kind": "Request" if about.is_whole else about.workloads[0].key.kind,
        "request": about.request or None,
        "at": format_instant(seen.now),
        "model": None if one is None else model_row(one.model),
        "summary": {**summary(found.gpus, found.allocated), **time_lost(found.series, STEP)},
        "findings": [row(finding) for finding in diagnose(found)],
    }
