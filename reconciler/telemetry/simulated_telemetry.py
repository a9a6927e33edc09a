"""Values of a simulated cluster's GPUs: computed when they are asked for, the past too."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from itertools import compress

import numpy as np

from reconciler.clusters.simulated.embedded import EmbeddedCluster
from reconciler.clusters.simulated.gpu_load import Board, Curves, Floats, board_of, curves, runs_of
from reconciler.clusters.simulated.scripted_faults import GpuFails, NodeDies
from reconciler.clusters.simulated.simulated_workloads import PAST_KEPT
from reconciler.clusters.simulated.simulated_world import Fleet, World
from reconciler.model.cluster_port import GpuView
from reconciler.telemetry.telemetry_port import (
    KEPT,
    GpuKey,
    GpuSample,
    Latest,
    Metric,
    NodeKey,
    PodRef,
    Point,
    Query,
    Ranges,
    Series,
    Silence,
    Summary,
)
from schemas.errors import Fault

SAMPLES = 4
"""Samples of a point's window."""


class SimulatedTelemetry:
    """`Telemetry` of one simulated cluster."""

    def __init__(self, name: str, cluster: EmbeddedCluster) -> None:
        self._name, self._cluster = name, cluster

    def latest(self, nodes: Collection[NodeKey], now: datetime) -> Latest:
        """A dead node's GPUs, or a lost one, as they last were."""
        try:
            world, fleet = self._cluster.history(now)
        except Fault as fault:
            return Latest(silences=(self._silence(fault),))
        gpus = _Gpus(self._name, world, fleet)
        found = (
            gpus.sample(node, gpu, now) for node in self._own(nodes, fleet) for gpu in fleet.views[node].gpus
        )
        return Latest(tuple(sorted((s for s in found if s is not None), key=lambda s: s.gpu)))

    def range(self, query: Query, now: datetime) -> Ranges:
        """As far back as the cluster remembers what ran."""
        try:
            world, fleet = self._cluster.history(now)
        except Fault as fault:
            return Ranges(silences=(self._silence(fault),))
        gpus = _Gpus(self._name, world, fleet)
        instants = tuple(at for at in query.instants() if now - PAST_KEPT <= at <= now)
        found = (
            series
            for node in self._own(query.nodes, fleet)
            for gpu in sorted(fleet.views[node].gpus, key=lambda gpu: gpu.uuid)
            for series in gpus.series(node, gpu, instants, query)
        )
        return Ranges(tuple(found) if instants else ())

    def close(self) -> None:
        """Nothing is held."""

    def _own(self, nodes: Collection[NodeKey], fleet: Fleet) -> list[str]:
        return sorted({node for cluster, node in nodes if cluster == self._name and node in fleet.views})

    def _silence(self, fault: Fault) -> Silence:
        return Silence(self._name, "MetricsUnreachable", str(fault))


class _Gpus:
    """All GPUs of one state."""

    def __init__(self, cluster: str, world: World, fleet: Fleet) -> None:
        self._cluster, self._world, self._fleet = cluster, world, fleet

    def sample(self, node: str, gpu: GpuView, now: datetime) -> GpuSample | None:
        at = self._last_seen(node, gpu, now)
        if now - at > KEPT:
            return None
        values = {
            metric: float(of_gpu[0])
            for metric, of_gpu in self._values(node, gpu, np.array([at.timestamp()])).items()
        }
        pods = tuple(
            PodRef(w.job.namespace, w.job.name)
            for w in self._world.workloads
            if w.uses_gpus_of == node and gpu.index in w.gpu_indices
        )
        return GpuSample(self._key(node, gpu), at, values, gpu.index, gpu.product, tuple(sorted(pods)))

    def series(
        self, node: str, gpu: GpuView, instants: tuple[datetime, ...], query: Query
    ) -> tuple[Series, ...]:
        ends = np.array([at.timestamp() for at in instants])
        back = query.window.total_seconds() / SAMPLES * np.arange(SAMPLES - 1, -1, -1)
        times = ends[:, np.newaxis] - back
        seen = self._seen(node, gpu, times)
        values = self._values(node, gpu, times.ravel())
        found = (
            Series(
                self._key(node, gpu),
                metric,
                query.window,
                _points(instants, _summarised(values[metric].reshape(times.shape), seen, metric.summary)),
            )
            for metric in query.metrics
        )
        return tuple(series for series in found if series.points)

    def _key(self, node: str, gpu: GpuView) -> GpuKey:
        return GpuKey(self._cluster, node, gpu.uuid)

    def _silent(self, node: str, gpu: GpuView) -> list[NodeDies | GpuFails]:
        """What keeps this GPU from answering, at some time."""
        return [
            fault
            for fault in self._world.faults
            if (isinstance(fault, NodeDies) and fault.node == node)
            or (
                isinstance(fault, GpuFails) and (fault.node, fault.gpu, fault.lost) == (node, gpu.index, True)
            )
        ]

    def _last_seen(self, node: str, gpu: GpuView, now: datetime) -> datetime:
        at = now
        for fault in sorted(self._silent(node, gpu), key=lambda f: f.at, reverse=True):
            if fault.at <= at and (fault.until is None or at < fault.until):
                at = fault.at - timedelta(seconds=1)
        return at

    def _seen(
        self, node: str, gpu: GpuView, times: Floats
    ) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        seen = np.ones(times.shape, dtype=np.bool_)
        for fault in self._silent(node, gpu):
            until = np.inf if fault.until is None else fault.until.timestamp()
            seen &= ~((times >= fault.at.timestamp()) & (times < until))
        return seen

    def _values(self, node: str, gpu: GpuView, times: Floats) -> Mapping[Metric, Floats]:
        faults = [
            f for f in self._world.faults if isinstance(f, GpuFails) and (f.node, f.gpu) == (node, gpu.index)
        ]
        board = board_of(gpu.product)
        found = curves(gpu.uuid, board, runs_of(self._world, node, gpu.index), faults, times)
        return _metrics(found, board, gpu.memory_mib) | _errors(faults, times)


def _metrics(found: Curves, board: Board, memory_mib: int) -> dict[Metric, Floats]:
    used = np.floor(found.memory_used * memory_mib)
    return {
        Metric.UTILISATION: found.utilisation,
        Metric.MEMORY_ACTIVITY: found.memory_activity,
        Metric.TEMPERATURE: found.temp_c,
        Metric.MEMORY_TEMPERATURE: found.memory_temp_c,
        Metric.POWER: found.power_w,
        Metric.POWER_LIMIT: np.full_like(used, board.max_w),
        Metric.ENERGY: found.energy_j,
        Metric.MEMORY_USED: used,
        Metric.MEMORY_FREE: memory_mib - used,
        Metric.SM_CLOCK: found.sm_mhz,
        Metric.MEMORY_CLOCK: np.full_like(used, board.memory_mhz),
        Metric.THROTTLE: found.throttle,
    }


def _errors(faults: list[GpuFails], times: Floats) -> dict[Metric, Floats]:
    nothing = np.zeros_like(times)
    xid, ecc, failure = nothing.copy(), nothing.copy(), nothing.copy()
    for fault in sorted(faults, key=lambda f: f.at):
        begun = times >= fault.at.timestamp()
        holds = begun if fault.until is None else begun & (times < fault.until.timestamp())
        if fault.xid is not None:
            xid = np.where(begun, fault.xid, xid)
        ecc = ecc + np.where(holds, fault.ecc_uncorrectable, 0)
        failure = np.where(holds & fault.remap_failure, 1, failure)
    zeros = (
        Metric.ECC_CORRECTED,
        Metric.REMAPPED_CORRECTABLE,
        Metric.REMAPPED_UNCORRECTABLE,
        Metric.PCIE_REPLAYS,
    )
    return {
        **dict.fromkeys(zeros, nothing),
        Metric.XID: xid,
        Metric.ECC_UNCORRECTABLE: ecc,
        Metric.REMAP_FAILURE: failure,
    }


def _points(instants: tuple[datetime, ...], values: Floats) -> tuple[Point, ...]:
    there = ~np.isnan(values)
    return tuple(map(Point, compress(instants, there), np.round(values[there], 2).tolist()))


def _summarised(
    values: Floats, seen: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], how: Summary
) -> Floats:
    """One value for each row, of its seen samples; NaN for none."""
    if how == "mean":
        total = np.where(seen, values, 0).sum(axis=1)
        counts = seen.sum(axis=1)
        return np.where(counts > 0, total / np.maximum(counts, 1), np.nan)
    if how == "highest":
        highest = np.where(seen, values, -np.inf).max(axis=1)
        return np.where(np.isinf(highest), np.nan, highest)
    newest = values.shape[1] - 1 - np.argmax(seen[:, ::-1], axis=1)
    last = values[np.arange(len(values)), newest]
    return np.where(seen.any(axis=1), last, np.nan)
