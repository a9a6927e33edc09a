"""GPU readings of a simulated node.

`readings_of` gives values for the simulated checks, `as_data` the plain mapping that the agent's simulated
reader uses like NVML's answers. The figures are those of `gpu_load`, so that they look measured and are the same in
every run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from zlib import crc32

import numpy as np

from reconciler.clusters.simulated.gpu_load import (
    MAX_MEMORY_C,
    SHUTDOWN_C,
    SLOWDOWN_C,
    Board,
    board_of,
    curves,
    runs_of,
)
from reconciler.clusters.simulated.scripted_faults import GpuFails, gpu_failures
from reconciler.clusters.simulated.simulated_world import Fleet, World
from reconciler.model.cluster_port import GpuView
from schemas.reading.units import format_instant


@dataclass(frozen=True, slots=True)
class SimulatedGpu:
    """One GPU at one time; of a lost one only identity and events are valid."""

    gpu: GpuView
    board: Board
    xids: tuple[tuple[int, datetime], ...]
    lost: bool
    temp_c: int
    memory_temp_c: int
    power_w: float
    energy_j: float
    utilisation_percent: int
    memory_activity_percent: int
    memory_used_mib: int
    sm_clock_mhz: int
    throttle: int
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
    failures = gpu_failures(world.faults, node, now)
    return tuple(
        _simulated(world, node, gpu, [f for f in failures if f.gpu == gpu.index], now)
        for gpu in fleet.views[node].gpus
    )


def _simulated(
    world: World, node: str, gpu: GpuView, failures: list[GpuFails], now: datetime
) -> SimulatedGpu:
    board = board_of(gpu.product)
    found = curves(gpu.uuid, board, runs_of(world, node, gpu.index), failures, np.array([now.timestamp()]))
    return SimulatedGpu(
        gpu=gpu,
        board=board,
        xids=tuple((f.xid, f.at) for f in failures if f.xid is not None),
        lost=any(f.lost for f in failures),
        temp_c=int(found.temp_c[0]),
        memory_temp_c=int(found.memory_temp_c[0]),
        power_w=float(found.power_w[0]),
        energy_j=float(found.energy_j[0]),
        utilisation_percent=int(found.utilisation[0]),
        memory_activity_percent=int(found.memory_activity[0]),
        memory_used_mib=int(found.memory_used[0] * gpu.memory_mib),
        sm_clock_mhz=int(found.sm_mhz[0]),
        throttle=int(found.throttle[0]),
        ecc_uncorrectable=sum(f.ecc_uncorrectable for f in failures),
        remap_failure=any(f.remap_failure for f in failures),
        recovery_action=max((f.driver_action for f in failures), default=0),
    )


def as_data(state: SimulatedGpu) -> Mapping[str, object]:
    """A mapping for JSON; a lost GPU's missing values are absent."""
    known: dict[str, object] = {
        **_identity(state),
        "xids": [{"xid": xid, "at": format_instant(at)} for xid, at in state.xids],
        "lost": state.lost,
    }
    return known if state.lost else known | _work(state) | _errors(state) | _links(state.board)


def _identity(state: SimulatedGpu) -> dict[str, object]:
    return {
        "uuid": state.gpu.uuid,
        "index": state.gpu.index,
        "product": state.gpu.product,
        "memory_mib": state.gpu.memory_mib,
        "serial": f"{crc32(state.gpu.uuid.encode()):013d}",
        "driver": "575.57.08",
        "mig_enabled": False,
    }


def _work(state: SimulatedGpu) -> dict[str, object]:
    return {
        "temp_c": state.temp_c,
        "slowdown_temp_c": SLOWDOWN_C,  # only a GPU that a script heats reaches it
        "shutdown_temp_c": SHUTDOWN_C,
        "memory_temp_c": state.memory_temp_c,
        "max_memory_temp_c": MAX_MEMORY_C,
        "power_w": state.power_w,
        "power_limit_w": state.board.max_w,
        "max_power_w": state.board.max_w,
        "energy_j": state.energy_j,
        "throttle": state.throttle,
        "sm_clock_mhz": state.sm_clock_mhz,
        "max_sm_clock_mhz": state.board.sm_mhz,
        "memory_clock_mhz": state.board.memory_mhz,
        "utilisation_percent": state.utilisation_percent,
        "memory_activity_percent": state.memory_activity_percent,
        "memory_used_mib": state.memory_used_mib,
    }


def _errors(state: SimulatedGpu) -> dict[str, object]:
    return {
        "ecc_corrected": 0,
        "ecc_uncorrectable": state.ecc_uncorrectable,
        "remapped_correctable": 0,
        "remapped_uncorrectable": 0,
        "remap_failure": state.remap_failure,
        "remap_pending": False,
        "recovery_action": state.recovery_action,
    }


def _links(board: Board) -> dict[str, object]:
    return {
        "pcie_generation": board.pcie,
        "pcie_width": 16,
        "max_pcie_generation": board.pcie,
        "max_pcie_width": 16,
        "pcie_replays": 0,
        "nvlinks": [True] * board.links,
    }
