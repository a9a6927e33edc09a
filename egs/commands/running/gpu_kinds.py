"""Columns of GPUs and alerts. A value that is not measured is an empty cell, never 0.

Held by tests/egs/test_running_commands.py.
"""

from __future__ import annotations

from typing import Any

from egs.commands import output
from egs.commands.kinds import Kind
from egs.commands.output import Row, field


def gpu_name(row: Row) -> str:
    """`cluster/node/index`."""
    return f"{row['cluster']}/{row['node']}/{row['uuid'] if row['index'] is None else row['index']}"


def _of(value: Any, limit: Any, unit: str) -> str | None:
    """A value and its limit: `86 / 87 °C`."""
    if value is None:
        return None
    return f"{value:g} {unit}" if limit is None else f"{value:g} / {limit:g} {unit}"


def _memory(row: Row) -> str | None:
    used, whole = row["memoryUsedMib"], row["memoryMib"]
    if used is None:
        return None
    return f"{used / 1024:.0f} GiB" if whole is None else f"{used / 1024:.0f} / {whole / 1024:.0f} GiB"


def _mig(row: Row) -> str | None:
    """Devices of a divided GPU; empty: it is whole, or nothing is known."""
    return f"{row['migDevices'] or 0} devices" if row["migEnabled"] else None


def _marks(row: Row) -> list[str]:
    """Words for what is not as it should be."""
    found = [*row["reasons"], *row["watched"], *row["slowedBy"]]
    return [*(["HOT"] if row["hot"] else []), *found, *(["stale"] if row["stale"] else [])]


GPUS = Kind(
    "GPU",
    "no GPU to show",
    (
        ("GPU", gpu_name),
        ("SHAPE", field("gpuShape")),
        ("REQUEST", field("request")),
        ("PODS", lambda row: [("" if row["podsCertain"] else "? ") + pod for pod in row["pods"]]),
        ("USE", lambda row: _of(row["utilisationPercent"], None, "%")),
        ("TEMP", lambda row: _of(row["tempC"], row["limits"]["tempC"], "°C")),
        ("POWER", lambda row: _of(row["powerW"], row["limits"]["powerW"], "W")),
        ("MEMORY", _memory),
        ("OF LIMIT", lambda row: None if row["closeness"] is None else f"{row['closeness']:.0%}"),
        ("MARKS", _marks),
    ),
    (
        ("UUID", field("uuid")),
        ("SERIAL", field("serial")),
        ("PRODUCT", field("product")),
        ("DRIVER", field("driver")),
        ("MIG", _mig),
        ("LINKS", lambda row: None if row["links"] is None else f"{row['linksUp']} / {row['links']}"),
        ("CLOCK", lambda row: _of(row["smClockMhz"], None, "MHz")),
        ("MEMORY TEMP", lambda row: _of(row["memoryTempC"], None, "°C")),
        ("XID", lambda row: row["xid"] or None),
        ("AT", lambda row: output.time(row["at"])),
    ),
    gpu_name,
    ("USE", "TEMP", "POWER", "MEMORY", "OF LIMIT", "CLOCK", "MEMORY TEMP", "AT"),
)
CAPACITY = Kind(
    "shape",
    "no node to show",
    (
        ("SHAPE", field("gpuShape")),
        ("FROM", lambda row: output.time(row["begin"])),
        ("NODES", field("nodes")),
        ("FREE", field("free")),
        ("LIKELY FREE", field("likelyFree")),
    ),
    name=lambda row: f"{row['gpuShape']}/{row['begin']}",
)
ALERTS = Kind(
    "alert",
    "no alert",
    (
        ("SEVERITY", field("severity")),
        ("ALERT", field("kind")),
        ("GPU", gpu_name),
        ("REQUEST", field("request")),
        ("MESSAGE", field("message")),
    ),
    (("ADVICE", field("advice")), ("AT", lambda row: output.time(row["at"]))),
    lambda row: f"{row['kind']}/{gpu_name(row)}",
    ("MESSAGE", "AT"),
)
