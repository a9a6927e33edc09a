"""Dashboards of Grafana from few words: panels flow from left to right, each with its questions to Prometheus. Pure.

The data source is a variable, so a dashboard works wherever it is imported. What is written here is the part of
Grafana's format (schema 39, Grafana 10 and later) that these dashboards need.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

Json = dict[str, Any]

COLUMNS = 24
SOURCE: Json = {"type": "prometheus", "uid": "${datasource}"}
ALL = ".*"
"""What a variable stands for while everything is selected."""
COLOURS = ("green", "yellow", "red")


@dataclass(frozen=True, slots=True)
class Ask:
    """One question; `legend` names a series by its labels, as in `{{Hostname}}`."""

    expr: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart. `steps`: from these values on it turns yellow, then red."""

    title: str
    asks: tuple[Ask, ...]
    text: str  # what it shows and what to do
    kind: Literal["timeseries", "stat", "bargauge", "table"] = "timeseries"
    unit: str = "short"
    width: int = 12
    height: int = 8
    steps: tuple[float, ...] = ()
    most: float | None = None
    stacked: bool = False


@dataclass(frozen=True, slots=True)
class Variable:
    """A choice above the charts: the values of a label of these series, every one of them at first."""

    name: str
    series: str
    title: str
    label: str = ""  # empty: named like the variable
    is_expr: bool = False  # more than the name of a metric and matchers

    @property
    def query(self) -> str:
        return f"query_result({self.series})" if self.is_expr else f"label_values({self.series}, {self.read})"

    @property
    def regex(self) -> str:
        """Finds the value in what `query_result` answers, which is a series as text."""
        return f'/{self.read}="([^"]+)"/' if self.is_expr else ""

    @property
    def read(self) -> str:
        """The label whose values are offered."""
        return self.label or self.name


@dataclass(frozen=True, slots=True)
class Dashboard:
    """`uid` is its address in Grafana."""

    uid: str
    title: str
    text: str
    variables: tuple[Variable, ...]
    panels: tuple[Panel, ...]


def text_of(board: Dashboard) -> str:
    """The file that Grafana imports; the same bytes for the same dashboard."""
    return json.dumps(_board(board), indent=1, ensure_ascii=False) + "\n"


def _board(board: Dashboard) -> Json:
    return {
        "uid": board.uid,
        "title": board.title,
        "description": board.text,
        "tags": ["egs"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "links": [
            {"title": "EGS", "type": "dashboards", "tags": ["egs"], "asDropdown": True, "keepTime": True}
        ],
        "templating": {"list": [_datasource(), *map(_variable, board.variables)]},
        "panels": list(_placed(board.panels)),
    }


def _datasource() -> Json:
    return {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}


def _variable(one: Variable) -> Json:
    return {
        "name": one.name,
        "label": one.title,
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": one.query, "refId": one.name},
        "regex": one.regex,
        "refresh": 2,  # with the time range
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ALL,
        "current": {"text": "All", "value": "$__all"},
    }


def _placed(panels: Iterable[Panel]) -> Iterable[Json]:
    """Left to right; a row ends where the next panel has no room, and is as high as its highest panel."""
    x = y = row = 0
    for number, panel in enumerate(panels, 1):
        if x + panel.width > COLUMNS:
            x, y, row = 0, y + row, 0
        yield _panel(panel, number, {"x": x, "y": y, "w": panel.width, "h": panel.height})
        x, row = x + panel.width, max(row, panel.height)


def _panel(panel: Panel, number: int, place: Json) -> Json:
    now_only = panel.kind != "timeseries"
    return {
        "id": number,
        "title": panel.title,
        "description": panel.text,
        "type": panel.kind,
        "datasource": SOURCE,
        "gridPos": place,
        "targets": [
            _target(ask, ref, now_only, panel.kind) for ask, ref in zip(panel.asks, "ABCDEFGH", strict=False)
        ],
        "fieldConfig": {"defaults": _field(panel), "overrides": []},
        "options": _options(panel),
    }


def _target(ask: Ask, ref: str, now_only: bool, kind: str) -> Json:
    return {
        "refId": ref,
        "datasource": SOURCE,
        "expr": ask.expr,
        "legendFormat": ask.legend or "__auto",
        "instant": now_only,
        "range": not now_only,
        "format": "table" if kind == "table" else "time_series",
    }


def _field(panel: Panel) -> Json:
    steps: list[Json] = [{"color": "green", "value": None}]
    steps += [
        {"color": colour, "value": value}
        for colour, value in zip(COLOURS[-len(panel.steps) :], panel.steps, strict=False)
    ]
    field: Json = {
        "unit": panel.unit,
        "min": 0,
        "color": {"mode": "thresholds" if panel.kind != "timeseries" else "palette-classic"},
        "thresholds": {"mode": "absolute", "steps": steps if panel.steps else steps[:1]},
    }
    if panel.most is not None:
        field["max"] = panel.most
    if panel.kind == "timeseries":
        field["custom"] = {
            "fillOpacity": 30 if panel.stacked else 0,
            "stacking": {"mode": "normal" if panel.stacked else "none"},
            "spanNulls": False,  # a gap is a gap: an absent value is not 0
            "thresholdsStyle": {"mode": "line" if panel.steps else "off"},
        }
    return field


def _options(panel: Panel) -> Json:
    if panel.kind == "timeseries":
        return {
            "legend": {"displayMode": "list", "placement": "bottom"},
            "tooltip": {"mode": "multi", "sort": "desc"},
        }
    if panel.kind == "table":
        return {"showHeader": True}
    return {
        "reduceOptions": {"calcs": ["lastNotNull"], "values": False},
        "orientation": "horizontal" if panel.kind == "bargauge" else "auto",
    }
