"""What an agent's ring answers, as JSON: written by the agent, read by whoever shows it. Pure.

A node speaks only of itself: cluster and node of every value are those that the reader asked, whatever the answer says.
Times are seconds since 1970.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from math import isfinite
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from reconciler.telemetry.telemetry_port import (
    MOST_POINTS,
    GpuKey,
    GpuSample,
    Metric,
    NodeKey,
    PodRef,
    Point,
    Query,
    Series,
)
from schemas.errors import Fault, UserError

LATEST, RANGE = "/gpus/latest", "/gpus/range"
"""The routes."""
MOST_GPUS = 64

Text = Annotated[str, Field(max_length=253)]
Instant = Annotated[float, Field(ge=0, lt=1e11)]


class _Wire(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")


class GpuWire(_Wire):
    uuid: Annotated[str, Field(min_length=1, max_length=128)]
    index: Annotated[int, Field(ge=0, le=1024)] | None
    product: Text
    at: Instant
    values: dict[Text, float]
    pods: Annotated[tuple[tuple[Text, Text, Text], ...], Field(max_length=1000, strict=False)]


class LatestWire(_Wire):
    gpus: Annotated[tuple[GpuWire, ...], Field(max_length=MOST_GPUS, strict=False)]


class SeriesWire(_Wire):
    uuid: Annotated[str, Field(min_length=1, max_length=128)]
    metric: Text
    values: Annotated[tuple[float | None, ...], Field(max_length=MOST_POINTS + 1, strict=False)]


class RangeWire(_Wire):
    first: Instant
    step: Annotated[int, Field(ge=1)]
    window: Annotated[int, Field(ge=1)]
    series: Annotated[tuple[SeriesWire, ...], Field(max_length=MOST_GPUS * len(Metric), strict=False)]


def latest_text(samples: Iterable[GpuSample]) -> bytes:
    gpus = (
        GpuWire(
            uuid=s.gpu.uuid,
            index=s.index,
            product=s.product,
            at=s.at.timestamp(),
            values={metric.value: value for metric, value in s.values.items()},
            pods=tuple((p.namespace, p.pod, p.container) for p in s.pods),
        )
        for s in samples
    )
    return LatestWire(gpus=tuple(gpus)).model_dump_json().encode()


def samples_from(data: bytes, node: NodeKey) -> tuple[GpuSample, ...]:
    """The samples of a node, by GPU. Raises `Fault` (`MetricsUnreadable`)."""
    try:
        wire = LatestWire.model_validate_json(data)
    except ValidationError as error:
        raise _unreadable(node) from error
    found = (
        GpuSample(
            GpuKey(*node, gpu.uuid),
            _instant(gpu.at),
            {
                _METRICS[name]: value
                for name, value in gpu.values.items()
                if name in _METRICS and isfinite(value)
            },
            gpu.index,
            gpu.product,
            tuple(sorted(PodRef(*pod) for pod in gpu.pods)),
        )
        for gpu in wire.gpus
    )
    return tuple(sorted(found, key=lambda s: s.gpu))


def range_text(
    instants: range, window_s: int, rows: Iterable[tuple[str, Metric, Sequence[float | None]]]
) -> bytes:
    """Each row has a value or None for each instant."""
    series = tuple(
        SeriesWire(uuid=uuid, metric=metric.value, values=tuple(values)) for uuid, metric, values in rows
    )
    first = instants[0] if instants else 0
    return (
        RangeWire(first=first, step=instants.step, window=window_s, series=series).model_dump_json().encode()
    )


def series_from(data: bytes, node: NodeKey, query: Query) -> tuple[Series, ...]:
    """The series of a node, by GPU and in the query's order. Raises `Fault` (`MetricsUnreadable`)."""
    try:
        wire = RangeWire.model_validate_json(data)
    except ValidationError as error:
        raise _unreadable(node) from error
    asked = set(query.instants())
    order = {metric.value: number for number, metric in enumerate(query.metrics)}
    rows = sorted((s for s in wire.series if s.metric in order), key=lambda s: (s.uuid, order[s.metric]))
    window = max(query.window, timedelta(seconds=wire.window))
    found = (Series(GpuKey(*node, s.uuid), _METRICS[s.metric], window, _points(wire, s, asked)) for s in rows)
    return tuple(series for series in found if series.points)


def _points(wire: RangeWire, series: SeriesWire, asked: set[datetime]) -> tuple[Point, ...]:
    found = (
        Point(_instant(wire.first + number * wire.step), value)
        for number, value in enumerate(series.values)
        if value is not None and isfinite(value)
    )
    return tuple(point for point in found if point.at in asked)


def question(query: Query) -> dict[str, str]:
    """The parameters of `RANGE`."""
    return {
        "metrics": ",".join(metric.value for metric in query.metrics),
        "since": str(query.since.timestamp()),
        "until": str(query.until.timestamp()),
        "step": str(int(query.step.total_seconds())),
    }


def asked(parameters: dict[str, str], node: NodeKey) -> Query:
    """The inverse of `question`. Raises `UserError` (`BadRange`)."""
    try:
        return Query(
            frozenset({node}),
            tuple(Metric(name) for name in parameters["metrics"].split(",")),
            _instant(float(parameters["since"])),
            _instant(float(parameters["until"])),
            timedelta(seconds=int(parameters["step"])),
        )
    except (KeyError, ValueError, OverflowError, OSError) as error:
        text = "give metrics, since and until in seconds since 1970, and step in seconds"
        raise UserError(text, "BadRange") from error


_METRICS = {metric.value: metric for metric in Metric}


def _instant(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _unreadable(node: NodeKey) -> Fault:
    return Fault(
        f"the agent of node {node[1]} in cluster {node[0]} answers in no format of this release; update it",
        "MetricsUnreadable",
    )
