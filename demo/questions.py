"""What people ask in the story: the answers of `egs get`, `egs diagnose` and `egs describe node`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import Any

from demo.system import System
from egs.commands.backend import Where
from reconciler.cli.answers.running import diagnosed, running_rows
from reconciler.cli.repository import Repository
from schemas.reading.units import format_instant

LINES = 2
"""Most lines of one answer."""
_NO_FILTERS = {**dict.fromkeys(("slice", "cluster", "node", "grep")), "hot": False}


def hottest(system: System, now: datetime) -> Iterator[str]:
    """`egs get gpus`: the nearest to their limits first."""
    for row in islice(_rows(system, now, "gpus"), LINES):
        mark = ", hot" if row["hot"] else ""
        yield f"{row['node']} GPU {row['index']}: {row['tempC']} °C, {row['powerW']:.0f} W{mark}"


def alerts(system: System, now: datetime) -> Iterator[str]:
    """`egs get alerts`."""
    for row in islice(_rows(system, now, "alerts"), LINES):
        yield f"{row['kind']}: {row['message']}; {row['advice']}"


def models(system: System, now: datetime) -> Iterator[str]:
    """`egs get workloads`: what runs on each request's nodes, and where its model's name was found."""
    for request in _rows(system, now, "workloads"):
        for run in request["runs"]:
            model = run["model"]
            yield f"{request['name']}: {run['kind']} {run['name']}, {_model(model)}"


def diagnosis(slice_: str, workload: str, system: System, now: datetime) -> Iterator[str]:
    """`egs diagnose`: what is wrong with a workload, the worst first."""
    for found in islice(diagnosed(_where(system, now), workload, slice_)["findings"], LINES):
        yield f"{found['sentence']} ({'; '.join(found['evidence'])}): {found['advice']}"


def card(node: str, system: System, now: datetime) -> Iterator[str]:
    """`egs describe node`: the cards in it that failed before."""
    for row in Repository(_where(system, now)).whole("node", node)["cards"]:
        faults = ", ".join(f"{fault['reason']} at {fault['at']}" for fault in row["faults"])
        yield f"card {row['serial']} ({row['product']}): {faults}"


def _model(model: dict[str, Any] | None) -> str:
    if model is None or model.get("name") is None:
        return "model unknown"
    return f"model {model['name']['value']} (from {model['name']['source']})"


def _rows(system: System, now: datetime, kind: str) -> list[dict[str, Any]]:
    return running_rows(_where(system, now), kind, _NO_FILTERS)


def _where(system: System, now: datetime) -> Where:
    return Where(repo=str(system.repository), now=format_instant(now), state=str(system.root))
