"""From Prometheus' answers to samples and series. Pure.

What does not fit (a foreign node, a number that is none, a series without a GPU) is left out: exporters of many
releases write into one Prometheus. Values are scaled to our units.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import isfinite
from typing import Any

from reconciler.telemetry.dcgm_names import NAMES
from reconciler.telemetry.prometheus_queries import EXPORTED, METRIC, POD_LABELS
from reconciler.telemetry.telemetry_port import (
    GpuKey,
    GpuSample,
    Metric,
    PodRef,
    Point,
    Query,
    Series,
)
from schemas.errors import Fault

METRICS = {metric.value: metric for metric in Metric}
BY_NAME = {name: metric for metric, dcgm in NAMES.items() for name in dcgm.names}
AGES = {name: age for dcgm in NAMES.values() for age, name in enumerate(dcgm.names)}
"""How many newer names a metric has than this one."""
EXPORTERS = ("dcgm-exporter", "egs-agent")
"""Words in names of exporters' own pods: they stand in the labels of a GPU without a pod if labels are not honoured."""

Labels = Mapping[str, str]


def result_of(data: bytes, kind: str) -> list[dict[str, Any]]:
    """The rows of a result of that kind, vector or matrix. Raises `Fault` (`MetricsUnreadable`)."""
    try:
        found = json.loads(data)["data"]
        rows = found["result"]
        if found["resultType"] != kind or not isinstance(rows, list):
            raise ValueError(kind)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Fault(
            "the source of metrics does not answer like Prometheus; look at its address", "MetricsUnreadable"
        ) from error
    return [row for row in rows if isinstance(row, dict) and isinstance(row.get("metric"), dict)]


@dataclass(slots=True)
class _Seen:
    """What the labels of a GPU's newest series tell."""

    at_s: float
    index: int | None
    product: str
    pods: set[PodRef] = field(default_factory=set)


def samples_from(
    values: list[dict[str, Any]], seen: list[dict[str, Any]], cluster: str, nodes: Collection[str]
) -> tuple[GpuSample, ...]:
    """The answers to `latest` and `seen`, by GPU; a GPU without a time or without a value is left out."""
    known = _newest(seen, cluster, nodes)
    found: dict[GpuKey, dict[Metric, float]] = {}
    for row in sorted(values, key=lambda row: AGES.get(row["metric"].get("__name__", ""), 0), reverse=True):
        gpu, metric = _gpu(row["metric"], cluster, nodes), BY_NAME.get(row["metric"].get("__name__", ""))
        value = None if metric is None else _ours(metric, row.get("value"))
        if gpu in known and metric is not None and value is not None:
            found.setdefault(gpu, {})[metric] = value  # a newer name comes later, and counts
    return tuple(
        GpuSample(
            gpu,
            datetime.fromtimestamp(known[gpu].at_s, UTC),
            found[gpu],
            known[gpu].index,
            known[gpu].product,
            tuple(sorted(known[gpu].pods)),
        )
        for gpu in sorted(found)
    )


def series_from(rows: list[dict[str, Any]], cluster: str, query: Query) -> tuple[Series, ...]:
    """The answer to `over_time`, by GPU and in the query's order."""
    nodes = {node for its, node in query.nodes if its == cluster}
    order = {metric: number for number, metric in enumerate(query.metrics)}
    asked = {int(at.timestamp()): at for at in query.instants()}
    found = []
    for row in rows:
        gpu, metric = _gpu(row["metric"], cluster, nodes), METRICS.get(row["metric"].get(METRIC, ""))
        if gpu is not None and metric in order:
            points = tuple(_points(row.get("values"), metric, asked))
            if points:
                found.append(Series(gpu, metric, query.window, points))
    return tuple(sorted(found, key=lambda series: (series.gpu, order[series.metric])))


def _points(values: object, metric: Metric, asked: Mapping[int, datetime]) -> Iterator[Point]:
    for pair in values if isinstance(values, list) else ():
        value = _ours(metric, pair)
        at = None if value is None else asked.get(int(pair[0]))
        if at is not None and value is not None:
            yield Point(at, value)


def _newest(rows: list[dict[str, Any]], cluster: str, nodes: Collection[str]) -> dict[GpuKey, _Seen]:
    """By GPU; series that ended, because a pod did, count no more."""
    found: dict[GpuKey, _Seen] = {}
    for row in rows:
        labels, at_s = row["metric"], _number(row.get("value"))
        gpu = _gpu(labels, cluster, nodes)
        if gpu is None or at_s is None:
            continue
        known = found.get(gpu)
        if known is None or at_s > known.at_s:
            number = labels.get("gpu", "")
            known = _Seen(at_s, int(number) if number.isdecimal() else None, labels.get("modelName", ""))
            found[gpu] = known
        if at_s == known.at_s:
            known.pods |= set(_pods(labels))
    return found


def _pods(labels: Labels) -> Iterator[PodRef]:
    """The container of a series. Labels that the target has too are those of the exporter itself."""
    exported = {label: labels.get(EXPORTED + label, "") for label in POD_LABELS}
    plain = {label: labels.get(label, "") for label in POD_LABELS}
    given = exported if exported["pod"] else plain
    own = any(word in given[label] for word in EXPORTERS for label in ("pod", "container"))
    if given["pod"] and not own:
        yield PodRef(given["namespace"], given["pod"], given["container"])


def _gpu(labels: Labels, cluster: str, nodes: Collection[str]) -> GpuKey | None:
    node, uuid = labels.get("Hostname", ""), labels.get("UUID", "")
    return GpuKey(cluster, node, uuid) if node in nodes and uuid else None


def _number(pair: object) -> float | None:
    """The value of a pair of time and text; None where it is no number."""
    try:
        value = float(pair[1])  # type: ignore[index]
    except (TypeError, ValueError, IndexError, KeyError):
        return None
    return value if isfinite(value) else None


def _ours(metric: Metric, pair: object) -> float | None:
    """A value in our units; None where there is none."""
    value = _number(pair)
    if value is None or (metric is Metric.MEMORY_TEMPERATURE and value == 0):
        return None  # boards without that sensor say 0
    return value / NAMES[metric].scale
