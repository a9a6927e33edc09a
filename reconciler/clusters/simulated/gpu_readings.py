"""GPU readings of a simulated node.

`readings_of` gives values for the simulated checks, `as_data` the plain mapping that the agent's simulated
reader uses like NVML's answers. Idle and busy figures follow from the GPU's uuid, so that they look measured
and are the same in every run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from zlib import crc32

from reconciler.clusters.simulated.scripted_faults import GpuFails, gpu_failures
from reconciler.clusters.simulated.simulated_workloads import busy_gpus
from reconciler.clusters.simulated.simulated_world import Fleet, World
from reconciler.model.cluster_port import GpuView
from schemas.reading.units import format_instant

IDLE_TEMP_C, BUSY_TEMP_C = 31, 62
IDLE_POWER_W, BUSY_POWER_W = 72, 610


@dataclass(frozen=True, slots=True)
class SimulatedGpu:
    """One GPU at one time; of a lost one only identity and events are valid."""

    gpu: GpuView
    xids: tuple[tuple[int, datetime], ...]
    lost: bool
    temp_c: int
    power_w: int
    utilisation_percent: int
    memory_used_mib: int
    ecc_uncorrectable: int
    remap_failure: bool
    recovery_action: int

    def trouble(self, max_temp_c: int) -> str | None:
        """Why a health check fails for this GPU, briefly; None if it is healthy."""
        found = {
            "lost": self.lost,
            f"recovery action {self.recovery_action}": self.recovery_action > 0,
            "row remapping failed": self.remap_failure,
            f"{self.ecc_uncorrectable} uncorrectable memory errors": self.ecc_uncorrectable > 0,
            f"{self.temp_c} °C": self.temp_c >= max_temp_c,
        }
        xids = "".join(f", Xid {xid}" for xid, _ in self.xids)
        return next((text + xids for text, holds in found.items() if holds), None)


def readings_of(world: World, fleet: Fleet, node: str, now: datetime) -> tuple[SimulatedGpu, ...]:
    """Every GPU of the node, with the Xid events of the active faults."""
    used = busy_gpus(world, node)
    failures = gpu_failures(world.faults, node, now)
    return tuple(
        _simulated(gpu, gpu.index < used, [f for f in failures if f.gpu == gpu.index])
        for gpu in fleet.views[node].gpus
    )


def _simulated(gpu: GpuView, busy: bool, failures: list[GpuFails]) -> SimulatedGpu:
    spread = crc32(gpu.uuid.encode()) % 7
    heat = [f.temp_c for f in failures if f.temp_c is not None]
    return SimulatedGpu(
        gpu=gpu,
        xids=tuple((f.xid, f.at) for f in failures if f.xid is not None),
        lost=any(f.lost for f in failures),
        temp_c=max([(BUSY_TEMP_C if busy else IDLE_TEMP_C) + spread, *heat]),
        power_w=(BUSY_POWER_W if busy else IDLE_POWER_W) + spread,
        utilisation_percent=90 + spread if busy else 0,
        memory_used_mib=gpu.memory_mib * 3 // 4 if busy else 0,
        ecc_uncorrectable=sum(f.ecc_uncorrectable for f in failures),
        remap_failure=any(f.remap_failure for f in failures),
        recovery_action=max((f.driver_action for f in failures), default=0),
    )


def as_data(state: SimulatedGpu) -> Mapping[str, object]:
    """A mapping for JSON; a lost GPU's missing values are absent."""
    known: dict[str, object] = {
        "uuid": state.gpu.uuid,
        "index": state.gpu.index,
        "product": state.gpu.product,
        "memory_mib": state.gpu.memory_mib,
        "xids": [{"xid": xid, "at": format_instant(at)} for xid, at in state.xids],
        "lost": state.lost,
    }
    if state.lost:
        return known
    return known | {
        "temp_c": state.temp_c,
        "power_w": state.power_w,
        "utilisation_percent": state.utilisation_percent,
        "memory_used_mib": state.memory_used_mib,
        "ecc_uncorrectable": state.ecc_uncorrectable,
        "remap_failure": state.remap_failure,
        "remap_pending": False,
        "recovery_action": state.recovery_action,
    }
