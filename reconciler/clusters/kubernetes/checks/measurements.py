"""Parses what the checks' image measured, and judges it. Pure, and safe for any output of an image.

The contract with the image is docs/reference/checks.md: it prints one JSON object per line and check. It only measures;
we judge, by the manifest's thresholds, so that a threshold can change without a new image.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite

from reconciler.model.cluster_port import CheckResult
from schemas.documents.cluster import Checks

LONGEST_TEXT = 65_536
"""Characters of a log that are parsed, from its end."""
LONGEST_LOG, LOG_LINES = 600, 6
"""Limits for the text kept of one check."""
LARGEST = 1e12
"""All valid figures are far below this."""
NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class Measured:
    """An image's output for one check; `ok` None: not measurable, and `log` says why."""

    ok: bool | None
    figures: Mapping[str, float]
    log: str


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of a check: its key and unit, and the threshold that bounds it."""

    key: str
    unit: str
    bound: str = ""  # field of the manifest's thresholds; empty: shown only

    def missed(self, value: float, limits: Mapping[str, float]) -> str:
        """Why the value is insufficient; empty: it is sufficient."""
        limit = limits.get(self.bound)
        if limit is None:
            return ""
        if self.bound.startswith("max"):
            return f"{value:.1f} {self.unit} is above {limit:g}" if value > limit else ""
        return f"{value:.1f} {self.unit} is below {limit:g}" if value < limit else ""


FIGURES: Mapping[str, tuple[Figure, ...]] = {
    "PersistentVolume": (Figure("write_mb_s", "MB/s"),),
    "Connectivity": (Figure("latency_ms", "ms"),),
    "Network": (Figure("latency_ms", "ms"),),
    "RdmaSubnet": (Figure("bandwidth_gbit_s", "Gb/s", "min_rdma_bandwidth"),),
    "NcclLatency": (
        Figure("latency_us", "us", "max_nccl_latency"),
        Figure("bandwidth_gb_s", "GB/s", "min_nccl_bandwidth"),
    ),
    "Latency": (Figure("latency_us", "us", "max_latency"),),
}
"""Figures of each check; the first is its value."""


def limits_of(checks: Checks, shape: str) -> dict[str, float]:
    """All thresholds in the manifest for nodes of this shape."""
    found = next((t for t in checks.thresholds if t.gpu_shape == shape), None)
    fields = ("max_nccl_latency", "min_nccl_bandwidth", "min_rdma_bandwidth")
    limits = {name: getattr(found, name) for name in fields} if found is not None else {}
    return {
        name: value
        for name, value in {**limits, "max_latency": checks.max_latency}.items()
        if value is not None
    }


def parsed(text: str) -> dict[str, Measured]:
    """Each check's last output; lines outside the contract are skipped."""
    found = {}
    for item in _objects(text[-LONGEST_TEXT:]):
        name, ok, log = item.pop("check", None), item.pop("ok", None), item.pop("log", None)
        if isinstance(name, str) and (ok is None or isinstance(ok, bool)):
            figures = {key: number for key, value in item.items() if (number := _number(value)) is not None}
            found[name] = Measured(ok, figures, plain(log))
    return found


def plain(text: object) -> str:
    """A few printable lines of untrusted text."""
    if not isinstance(text, str):
        return ""
    lines = ("".join(c for c in line if c.isprintable()).strip() for line in text.splitlines())
    return "\n".join([line for line in lines if line][:LOG_LINES])[:LONGEST_LOG]


def judged(name: str, said: Measured | None, limits: Mapping[str, float], silent: str) -> CheckResult:
    """The result of one check; `silent` says why there is no output, if there is none."""
    if said is None:
        return CheckResult(name, False, "", silent)
    figures = FIGURES.get(name, ())
    value = _value(figures, said)
    if said.ok is False:
        return CheckResult(name, False, value, said.log or f"{name} failed and its image does not say why")
    for figure in figures:
        if (why := _shortfall(figure, said, limits)) is not None:
            return CheckResult(name, False, value, f"{why}; {said.log}" if said.log else why)
    if said.ok is None:
        return CheckResult(name, True, NOT_MEASURED, said.log or "its image does not say why")
    return CheckResult(name, True, value or "passed", said.log or "passed")


def _shortfall(figure: Figure, said: Measured, limits: Mapping[str, float]) -> str | None:
    if figure.key in said.figures:
        return figure.missed(said.figures[figure.key], limits) or None
    if figure.bound in limits:
        # Otherwise a broken node that measures nothing would pass.
        return f"the manifest limits {figure.key} to {limits[figure.bound]:g} but it was not measured"
    return None


def _value(figures: tuple[Figure, ...], said: Measured) -> str:
    shown = next((f for f in figures if f.key in said.figures), None)
    return "" if shown is None else f"{said.figures[shown.key]:.4g} {shown.unit}"


def _objects(text: str) -> Iterator[dict[str, object]]:
    for line in text.splitlines():
        if not line.lstrip().startswith("{"):
            continue
        try:
            item = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(item, dict):
            yield item


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < LARGEST and isfinite(value) else None
