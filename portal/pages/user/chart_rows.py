"""From series of values to charts and the tables beside them. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from reconciler.telemetry.telemetry_port import Metric
from schemas.reading.units import parse_instant

Row = dict[str, Any]
TITLES: Mapping[Metric, str] = {
    Metric.UTILISATION: "Utilisation",
    Metric.TEMPERATURE: "Temperature",
    Metric.POWER: "Power",
    Metric.MEMORY_USED: "Memory in use",
}
LIMITS: Mapping[Metric, str] = {Metric.TEMPERATURE: "tempC", Metric.POWER: "powerW"}
"""The limit of a GPU that its chart shows."""


def chart_of(found: Row, metric: Metric, wanted: Sequence[str], gpus: Sequence[Row]) -> Row:
    """One metric of these GPUs, in this order; `gpus` are their rows, as far as they are held now.

    `data` is for the script: values on whole steps, null where there is none.
    """
    rows = {row["uuid"]: row for row in gpus}
    series = [
        one
        for uuid in wanted
        for one in found["series"]
        if one["uuid"] == uuid and one["metric"] == metric and one["points"]
    ]
    limits = {
        rows[one["uuid"]]["limits"].get(LIMITS[metric])
        for one in series
        if one["uuid"] in rows and metric in LIMITS
    }
    limit = limits.pop() if len(limits) == 1 else None
    return {
        "title": TITLES[metric],
        "unit": series[0]["unit"] if series else "",
        "limit": limit,
        "series": [_summary(one, rows) for one in series],
        "data": _data(found, series, rows, limit),
    }


def name_of(place: Mapping[str, Any], rows: Mapping[str, Row]) -> str:
    """`GPU 3 on h100-1`; a GPU that is not held any more is called by its uuid."""
    row = rows.get(place["uuid"])
    return f"GPU {place['uuid'][:12] if row is None else row['index']} on {place['node']}"


def _summary(series: Row, rows: Mapping[str, Row]) -> Row:
    values = [value for _, value in series["points"]]
    return {
        "name": name_of(series, rows),
        "uuid": series["uuid"],
        "lowest": min(values),
        "mean": fmean(values),
        "highest": max(values),
        "last": values[-1],
        "at": series["points"][-1][0],
    }


def _data(found: Row, series: Sequence[Row], rows: Mapping[str, Row], limit: float | None) -> str:
    step = found["stepSeconds"]
    begin, end = (int(parse_instant(found[name]).timestamp()) // step for name in ("since", "until"))
    uuids = {one["uuid"] for one in series}
    return json.dumps(
        {
            "times": [place * step for place in range(begin, end + 1)],
            "unit": series[0]["unit"] if series else "",
            "limit": limit,
            "series": [
                {"name": name_of(one, rows), "values": _on_steps(one, step, begin, end)} for one in series
            ],
            "marks": [
                [parse_instant(mark["at"]).timestamp(), mark["what"]]
                for mark in found["marks"]
                if mark["uuid"] in uuids
            ],
        },
        separators=(",", ":"),
    )


def _on_steps(series: Row, step: int, begin: int, end: int) -> list[float | None]:
    values = {int(parse_instant(at).timestamp()) // step: value for at, value in series["points"]}
    return [values.get(place) for place in range(begin, end + 1)]


def every_value(found: Row, uuid: str) -> list[Row]:
    """All values of one GPU by time, newest first: the charts as a table."""
    times: dict[str, Row] = {}
    for series in found["series"]:
        if series["uuid"] == uuid:
            for at, value in series["points"]:
                times.setdefault(at, {"at": at})[series["metric"]] = value
    return [times[at] for at in sorted(times, reverse=True)]
