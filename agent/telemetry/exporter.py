"""What one node shows: the last reading, the ring behind it, and the pods that use the GPUs.

The agent's cycle puts readings in; the server's threads ask. A GPU that stopped answering is shown as it last was for
five minutes with the time of that reading, and in `/metrics`, which has no such time, for one minute.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from threading import Lock

from agent.port import GpuReading
from agent.telemetry.gpu_values import Values, values_of
from agent.telemetry.openmetrics import ShownGpu, text_of
from agent.telemetry.ring import COARSE_S, Ring
from reconciler.telemetry.ring_format import latest_text, range_text
from reconciler.telemetry.telemetry_port import KEPT, STALE_AFTER, GpuKey, GpuSample, NodeKey, PodRef, Query

Pods = Callable[[Sequence[GpuReading]], Mapping[str, tuple[PodRef, ...]]]


@dataclass(frozen=True, slots=True)
class _Seen:
    reading: GpuReading
    values: Values
    at: datetime


class Exporter:
    """Thread-safe."""

    def __init__(self, node: NodeKey, pods: Pods = lambda _: {}) -> None:
        self._node, self._pods = node, pods
        self._lock = Lock()
        self._ring = Ring()
        self._seen: dict[str, _Seen] = {}
        self._xids: dict[str, int] = {}

    def observe(self, readings: tuple[GpuReading, ...], now: datetime) -> None:
        """The readings of one cycle."""
        with self._lock:
            self._xids |= {r.uuid: r.xids[-1].xid for r in readings if r.xids}
            values = {r.uuid: values_of(r, self._xids.get(r.uuid, 0)) for r in readings}
            new = {r.uuid: _Seen(r, values[r.uuid], now) for r in readings if values[r.uuid]}
            self._seen = {u: seen for u, seen in self._seen.items() if now - seen.at <= KEPT} | new
            self._ring.put(values, now)

    def metrics(self, now: datetime) -> str:
        """`/metrics`."""
        recent = [seen for seen in self._shown() if now - seen.at <= STALE_AFTER]
        pods = self._pods([seen.reading for seen in recent])
        gpus = [
            ShownGpu(r.uuid, r.index, r.product, seen.values, pods.get(r.uuid, ()))
            for seen in recent
            for r in (seen.reading,)
        ]
        return text_of(gpus, self._node[1])

    def latest(self, now: datetime) -> bytes:
        """The newest sample of each GPU."""
        recent = [seen for seen in self._shown() if now - seen.at <= KEPT]
        pods = self._pods([seen.reading for seen in recent])
        return latest_text(
            GpuSample(
                GpuKey(*self._node, seen.reading.uuid),
                seen.at,
                seen.values,
                seen.reading.index,
                seen.reading.product,
                pods.get(seen.reading.uuid, ()),
            )
            for seen in recent
        )

    def range(self, query: Query) -> bytes:
        """Series of all GPUs."""
        instants, window_s = _seconds(query), int(query.window.total_seconds())
        with self._lock:
            rows = [
                (uuid, metric, points)
                for uuid in self._ring.uuids()
                for metric in query.metrics
                for points in (self._ring.points(uuid, metric, instants, window_s),)
            ]
            coarse = bool(instants) and instants[0] - window_s < self._ring.fine_since_s
        # An old sample is of a whole minute: a window that is not may begin within one.
        reach_s = window_s + COARSE_S if coarse and instants.step % COARSE_S else window_s
        return range_text(instants, reach_s, [row for row in rows if any(v is not None for v in row[2])])

    def _shown(self) -> list[_Seen]:
        with self._lock:
            return sorted(self._seen.values(), key=lambda seen: (seen.reading.index, seen.reading.uuid))


def _seconds(query: Query) -> range:
    step_s = int(query.step.total_seconds())
    instants = [int(at.timestamp()) for at in query.instants()]
    return range(instants[0], instants[-1] + 1, step_s) if instants else range(0, 0, step_s)
