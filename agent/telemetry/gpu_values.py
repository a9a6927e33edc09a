"""From a reading to the values that others see. Pure."""

from __future__ import annotations

from agent.port import GpuReading
from reconciler.telemetry.telemetry_port import Metric

Values = dict[Metric, float]

SAME_NAMES = tuple(
    metric
    for metric in Metric
    if metric not in (Metric.XID, Metric.MEMORY_FREE)  # of several fields, or of earlier readings
)


def values_of(reading: GpuReading, last_xid: int) -> Values:
    """What the reading knows; empty for a GPU that does not answer."""
    if not reading.answers:
        return {}
    found = {metric: getattr(reading, metric.value) for metric in SAME_NAMES}
    values: Values = {metric: float(value) for metric, value in found.items() if value is not None}
    if reading.memory_used_mib is not None:
        values[Metric.MEMORY_FREE] = float(max(0, reading.memory_mib - reading.memory_used_mib))
    values[Metric.XID] = float(last_xid)
    return values
