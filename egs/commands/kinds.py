"""What `egs get` lists: the columns of each kind, those of `-o wide`, and the names of rows.

The rows are the same on a repository and on a server (docs/reference/commands/look.md), and so are the tables.

Held by tests/egs/test_listing.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from egs.commands import output
from egs.commands.output import Column, Row, at, field, key, place


@dataclass(frozen=True, slots=True)
class Kind:
    """How one kind is listed: `noun` names it in a sentence, `empty` is printed if there is none."""

    noun: str
    empty: str
    columns: tuple[Column, ...]
    wide: tuple[Column, ...] = ()
    """Further columns of `-o wide`."""
    name: Callable[[Row], str] = lambda row: str(row["name"])
    passing: tuple[str, ...] = ()
    """Columns that change with time alone; `-w` does not report them."""


def _money(row: Row) -> str | None:
    return None if row["cost"] is None else f"{row['cost']:.2f} {row.get('currency', '')}".rstrip()


def _share(version: Row) -> str:
    """A version's share now, what it goes to, and its ready replicas."""
    now, wanted, ready = (version[name] for name in ("weight", "wanted", "ready"))
    share = f"{now} %" if now == wanted else f"{now} of {wanted} %"
    return f"{version['name']} {share}" + ("" if ready is None else f" ({ready} ready)")


def _node(row: Row) -> str:
    return f"{row['cluster']}/{row['name']}"


def _until(row: Row) -> Any:
    ends = [entry["end"] for entry in row["schedule"] if entry["request"] == row["lease"] is not None]
    return output.time(ends[0]) if ends else None


def _next(row: Row) -> str | None:
    later = [e for e in row["schedule"] if e["request"] is None or e["request"] != row["lease"]]
    if not later:
        return None
    likely = " (likely)" if later[0]["tentative"] else ""
    begin = output.shown(output.time(later[0]["begin"]))
    return f"{later[0]['request'] or 'maintenance'}{likely} at {begin}"


def _pool(name: str) -> Callable[[Row], Any]:
    return lambda row: row["pool"][name]


def _models(row: Row) -> list[str]:
    """As found in what runs, else as the request says."""
    found = [run["model"]["name"]["value"] for run in row["runs"] if run["model"]["name"]]
    return list(dict.fromkeys(found)) or [row["model"]["name"]]


def _percent(value: float | None) -> str | None:
    return None if value is None else f"{value:.0f} %"


def _degrees(hottest: Row | None) -> str | None:
    return None if hottest is None else f"{hottest['tempC']:g} °C {hottest['node']}/{hottest['index']}"


def by_pool(rows: list[Row]) -> list[Row]:
    """Clusters as their table has them: a row for each pool."""
    return [{**row, "pool": pool} for row in rows for pool in row["pools"]]


GPRS = Kind(
    "request",
    "no request",
    (
        ("REQUEST", key),
        ("PHASE", field("phase")),
        ("PRIORITY", field("priority")),
        ("NODES", lambda row: f"{row['nodes']} x {row['gpusPerNode']}"),
        ("SHAPE", lambda row: row["gpuShapes"] or "any"),
        ("DURATION", field("duration")),
        ("START", lambda row: output.time(row["startTime"] or row["estimatedStartTime"])),
        ("END", lambda row: output.time(row["endTime"] or row["estimatedEndTime"])),
        ("WHERE", place),
        ("REASON", field("reason")),
        ("COST", _money),
    ),
    (
        ("ON", field("nodeNames")),
        ("MOVED", lambda row: row["delayedCount"] or None),
        ("RETRIES", lambda row: row["retryCount"] or None),
        ("WARNED", at("warnedAt")),
        ("CHECKPOINT", at("checkpointedAt")),
        ("DISPLAY NAME", field("displayName")),
        ("MESSAGE", field("message")),
    ),
    key,
    ("COST",),
)
SLICES = Kind(
    "slice",
    "no slice",
    (
        ("SLICE", field("name")),
        ("CLUSTERS", field("clusters")),
        ("QUOTA", lambda row: "none" if row["quotaGpus"] is None else row["quotaGpus"]),
        ("WAITING", field("waiting")),
        ("HOLDING", field("holding")),
        ("GPUS HELD", field("gpusHeld")),
        ("GPU HOURS", lambda row: f"{row['gpuHours']:g}"),
        ("COST", _money),
    ),
    (("WEIGHT", field("weight")), ("MEMBERS", field("members"))),
    passing=("GPU HOURS", "COST"),
)
CLUSTERS = Kind(
    "cluster",
    "no cluster",
    (
        ("CLUSTER", field("name")),
        ("MODE", field("mode")),
        ("ANSWERS", lambda row: "unknown" if row["reachable"] is None else row["reachable"]),
        ("SINCE", at("since")),
        ("STATUS OF", at("statusTime")),
        ("POOL", _pool("name")),
        ("SHAPE", lambda row: f"{row['pool']['gpusPerNode']} x {row['pool']['gpuShape']}"),
        ("NODES", _pool("nodes")),
        ("LEASED", _pool("leased")),
        ("FREE", _pool("free")),
        ("OUT", _pool("out")),
    ),
    (
        ("DRIVER", field("driver")),
        ("MEMORY/GPU", lambda row: f"{row['pool']['memoryPerGpu']} GB"),
        ("PRICE/GPU/H", _pool("pricePerGpuHour")),
    ),
    passing=("STATUS OF",),
)
NODES = Kind(
    "node",
    "no node",
    (
        ("NODE", _node),
        ("POOL", field("pool")),
        ("STATE", field("state")),
        ("REASON", lambda row: row["reason"] or (row["message"] if row["pool"] is None else None)),
        ("LEASE", field("lease")),
        ("UNTIL", _until),
        ("NEXT", _next),
    ),
    (
        ("SINCE", at("since")),
        ("MESSAGE", lambda row: row["message"] if row["pool"] is not None else None),
        ("LATER", lambda row: max(0, len(row["schedule"]) - (row["lease"] is not None))),
    ),
    _node,
)
REQUESTS = Kind(
    "request for a slice called",
    "no request for a slice",
    (
        ("SLICE", field("name")),
        ("PHASE", field("phase")),
        ("SINCE", at("since")),
        ("REQUESTER", field("requester")),
        ("CLUSTERS", field("clusters")),
        ("NAMESPACES", field("namespaces")),
        ("QUOTA", lambda row: "none" if row["quotaGpus"] is None else row["quotaGpus"]),
        ("REASON", field("reason")),
    ),
    (("MEMBERS", field("members")), ("MESSAGE", field("message"))),
)
JOBS = Kind(
    "workload",
    "no workload",
    (
        ("WORKLOAD", key),
        ("PHASE", field("phase")),
        ("SINCE", at("since")),
        ("REQUEST", field("gpr")),
        ("CLUSTER", field("cluster")),
        (
            "OBJECTS",
            lambda row: [f"{each['kind']}/{each['name']} {each['state']}" for each in row["objects"]],
        ),
        ("REASON", field("reason")),
    ),
    (("NAMESPACE", field("namespace")), ("MESSAGE", field("message"))),
    name=key,
)
ENDPOINTS = Kind(
    "endpoint",
    "no endpoint",
    (
        ("ENDPOINT", key),
        ("PHASE", field("phase")),
        ("SINCE", at("since")),
        ("REQUEST", field("gpr")),
        ("CLUSTER", field("cluster")),
        ("VERSIONS", lambda row: [_share(each) for each in row["versions"]]),
        ("REASON", field("reason")),
    ),
    (("BACKEND", field("backend")), ("HOSTNAMES", field("hostnames")), ("MESSAGE", field("message"))),
    name=key,
)
QUEUE = Kind(
    "waiting request",
    "no request waits",
    (
        ("RANK", field("rank")),
        ("POSITION", field("position")),
        ("REQUEST", key),
        ("PHASE", field("phase")),
        ("PRIORITY", field("priority")),
        ("NODES", field("nodes")),
        ("START", at("estimatedStartTime")),
        ("WAIT", lambda row: output.seconds(row["estimatedWaitSeconds"])),
        ("WHERE", place),
        ("MOVED", lambda row: row["delayedCount"] or None),
        ("REASON", field("reason")),
    ),
    (("PROMISED", field("promised")),),
    key,
    ("WAIT",),
)
EVENTS = Kind(
    "event",
    "no such event",
    (
        ("AT", at("at")),
        ("REASON", field("reason")),
        ("TYPE", field("type")),
        (
            "ABOUT",
            lambda row: (
                row["request"] or (f"{row['cluster']}/{row['node']}" if row["node"] else row["cluster"])
            ),
        ),
        ("MESSAGE", field("message")),
    ),
    (("CLUSTER", field("cluster")), ("NODE", field("node"))),
    lambda row: json.dumps(row, sort_keys=True),
)
PROBLEMS = Kind(
    "problem",
    "nothing is wrong",
    (
        ("WHERE", lambda row: f"{row['file']}:{row['line']}:{row['column']}"),
        ("SEVERITY", field("severity")),
        ("RULE", field("rule")),
        ("PROBLEM", field("message")),
        ("WHAT TO DO", field("fix")),
    ),
    name=lambda row: json.dumps(row, sort_keys=True),
)
WORKLOADS = Kind(
    "workload",
    "nothing runs",
    (
        ("REQUEST", field("name")),
        ("PHASE", field("phase")),
        (
            "RUNS",
            lambda row: (
                [f"{run['kind']}/{run['name']}" for run in row["runs"]] or (row["podsUnknown"] and "?")
            ),
        ),
        ("MODEL", _models),
        ("USE", lambda row: _percent(row["summary"]["averageUtilisationPercent"])),
        ("HOTTEST", lambda row: _degrees(row["summary"]["hottest"])),
        ("WHERE", lambda row: f"{row['clusterName']}/{row['pool']}"),
        ("NODES", lambda row: [node["name"] for node in row["nodes"]]),
        ("GPUS", lambda row: f"{row['numGPUs']} x {row['gpuShape']}" if row["gpuShape"] else row["numGPUs"]),
        ("HEALTHY", lambda row: row["failedChecks"] or row["healthy"]),
        ("IDLE", lambda row: output.seconds(row["idleSeconds"]) if row["idleSince"] else None),
        ("START", at("startTime")),
        ("END", at("endTime")),
        ("COST", field("cost")),
    ),
    (
        ("IDLE GPUS", lambda row: row["summary"]["idleGpus"]),
        ("FRAMEWORK", lambda row: row["model"]["framework"]),
        ("NAMESPACES", field("namespaces")),
        ("GPU HOURS", field("gpuHours")),
        ("DISPLAY NAME", field("gprName")),
    ),
    passing=("IDLE", "COST", "GPU HOURS", "USE", "IDLE GPUS", "HOTTEST"),
)

CHECKS = Kind(
    "check",
    "no node of it was checked yet",
    (
        ("STAGE", field("stage")),
        ("NODE", field("node")),
        ("CHECK", field("name")),
        ("PASSED", field("passed")),
        ("VALUE", field("value")),
        ("AT", at("at")),
        ("LOG", lambda row: " | ".join(row["log"].splitlines())),
    ),
)
"""Of `egs describe gpr --checks`."""

SINGULAR = {
    "gprs": "gpr",
    "slices": "slice",
    "clusters": "cluster",
    "nodes": "node",
    "gpus": "gpu",
    "alerts": "alert",
    "requests": "request",
    "jobs": "job",
    "endpoints": "endpoint",
    "events": "event",
    "problems": "problem",
    "workloads": "workload",
}
"""A kind may be called by either: `egs get node`, `egs describe nodes`."""
