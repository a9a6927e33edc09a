"""What runs: GPUs, alerts, pods, values over time, diagnoses. A value that is not measured is None, never 0.

Held by tests/egs/test_sdk_running.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from egs.data.records import Record, one, record, wire


@record
class Gpu(Record):
    """One GPU of a lease, as its agent and its source of values know it."""

    cluster: str = ""
    node: str = ""
    index: int | None = None
    uuid: str = ""
    pool: str | None = None
    gpu_shape: str | None = None
    product: str | None = None
    memory_mib: int | None = None
    serial: str | None = None
    board_part: str | None = None
    vbios: str | None = None
    driver: str | None = None
    mig_enabled: bool | None = None
    mig_devices: int | None = None
    links: int | None = None
    links_up: int | None = None
    healthy: bool | None = None
    """The agent's verdict; None: no agent reports it."""
    reasons: tuple[str, ...] = wire("reasons", default=(), read=tuple)
    watched: tuple[str, ...] = wire("watched", default=(), read=tuple)
    """What is noticed but takes no GPU out of service."""
    action: str | None = None
    """What to do about it: watch, reset, reboot or replace."""
    slice: str | None = None
    request: str | None = None
    workloads: tuple[Mapping[str, Any], ...] = wire("workloads", default=(), read=tuple)
    pods: tuple[str, ...] = wire("pods", default=(), read=tuple)
    pods_certain: bool = False
    """False: `pods` are all pods of the node; one of them may use it."""
    at: str | None = None
    """When the values were measured."""
    stale: bool | None = None
    utilisation_percent: float | None = None
    memory_activity_percent: float | None = None
    memory_used_mib: float | None = None
    temp_c: float | None = None
    memory_temp_c: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    sm_clock_mhz: float | None = None
    xid: int | None = None
    ecc_uncorrectable: int | None = None
    slowed_by: tuple[str, ...] = wire("slowedBy", default=(), read=tuple)
    limits: Mapping[str, Any] | None = None
    closeness: float | None = None
    """The largest share of one of its limits; 1: at the limit."""
    hot: bool = False
    idle: bool | None = None


@record
class Alert(Record):
    """What is wrong with a GPU now, and what to do."""

    kind: str = ""
    severity: str = ""
    cluster: str = ""
    node: str = ""
    index: int | None = None
    uuid: str = ""
    slice: str | None = None
    request: str | None = None
    workloads: tuple[str, ...] = wire("workloads", default=(), read=tuple)
    message: str = ""
    advice: str = ""
    value: float | None = None
    limit: float | None = None
    at: str | None = None


@record
class FreeNodes(Record):
    """The nodes of a shape in one hour."""

    gpu_shape: str = ""
    begin: str = ""
    nodes: int = 0
    free: int = 0
    """By the plan: nothing needs them in any part of the hour."""
    likely_free: int | None = None
    """If requests end when they likely do; None: too few have ended to tell."""


@record
class WorkloadPod(Record):
    """A pod of a workload, with its GPUs."""

    name: str = ""
    namespace: str = ""
    cluster_name: str = ""
    workload: str = ""
    phase: str = ""
    reason: str = ""
    message: str = ""
    node: str | None = None
    num_gpus: int = wire("numGPUs", default=0)
    restarts: int = 0
    start_time: str = ""
    gpus: tuple[Mapping[str, Any], ...] = wire("gpus", default=(), read=tuple)


@record
class Values(Record):
    """Values of GPUs over time; `rows` gives each point, for a DataFrame."""

    since: str = ""
    until: str = ""
    step_seconds: int = 0
    series: tuple[Mapping[str, Any], ...] = wire("series", default=(), read=tuple)
    """Of each GPU and metric: its place, unit, and `points` of time and value."""
    marks: tuple[Mapping[str, Any], ...] = wire("marks", default=(), read=tuple)
    """When an error was reported and when a slowdown began."""
    silences: tuple[str, ...] = wire("silences", default=(), read=tuple)
    """Why values are missing."""

    def rows(self) -> Iterator[dict[str, Any]]:
        """Each point: `at`, `cluster`, `node`, `uuid`, `metric`, `value`."""
        for series in self.series:
            place = {name: series[name] for name in ("cluster", "node", "uuid", "metric")}
            for at, value in series["points"]:
                yield {"at": at, **place, "value": value}


@record
class Finding(Record):
    """One sentence of a diagnosis; prints as such."""

    cause: str = ""
    severity: str = ""
    sentence: str = ""
    evidence: tuple[str, ...] = wire("evidence", default=(), read=tuple)
    advice: str = ""
    gpus: int = 0

    def __str__(self) -> str:
        return self.sentence


def _findings(rows: Any) -> tuple[Finding, ...]:
    return tuple(map(one(Finding), rows))


@record
class Diagnosis(Record):
    """What is wrong with a workload, the most severe first; prints as sentences."""

    workload: str = ""
    kind: str = ""
    request: str | None = None
    at: str = ""
    model: Mapping[str, Any] | None = None
    summary: Mapping[str, Any] | None = None
    findings: tuple[Finding, ...] = wire("findings", default=(), read=_findings)

    def __str__(self) -> str:
        return "\n".join(f"{found.sentence}. {found.advice}." for found in self.findings)
