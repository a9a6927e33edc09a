"""The port through which the judge sees a node's GPUs.

Two readers implement it: `agent.nvml.NvmlReader` (the vendor's library) and `agent.simulated.SimulatedReader`.
A value that a GPU does not support, or did not report this time, is None and never 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class XidEvent:
    """One error that the driver reported, by the vendor's number."""

    xid: int
    at: datetime


@dataclass(frozen=True, slots=True)
class GpuReading:
    """One GPU at one instant. Temperatures are in °C, clocks in MHz, limits are the product's own."""

    uuid: str
    index: int
    product: str
    memory_mib: int
    lost: bool | None = False  # the driver says it fell off the bus
    wedged: bool | None = False  # it did not answer before the deadline; None: it was not probed in time

    # --- identity of the card ---
    serial: str | None = None
    board_part: str | None = None
    vbios: str | None = None
    inforom: str | None = None
    driver: str | None = None  # version of the driver that answered
    mig_enabled: bool | None = None
    mig_devices: int | None = None  # MIG devices that exist now
    mig_uuids: tuple[str, ...] = ()  # of those, where the driver tells them

    # --- heat, power, work ---
    temp_c: int | None = None
    slowdown_temp_c: int | None = None  # the hardware slows down at it
    shutdown_temp_c: int | None = None
    memory_temp_c: int | None = None
    max_memory_temp_c: int | None = None
    thermal_margin_c: int | None = None  # degrees left before the product slows down
    slowdown_margin_c: int | None = None  # margin at which the hardware slows down; mostly below 0
    power_w: float | None = None
    power_limit_w: float | None = None  # enforced now
    max_power_w: float | None = None  # highest limit that the board allows
    energy_j: float | None = None  # since the driver was loaded
    throttle: int | None = None  # bits, nvmlClocksEventReason*; 0: nothing slows it down
    sm_clock_mhz: int | None = None
    max_sm_clock_mhz: int | None = None
    memory_clock_mhz: int | None = None
    utilisation_percent: int | None = None
    memory_activity_percent: int | None = None  # share of the time in which memory was read or written
    memory_used_mib: int | None = None

    # --- memory errors: volatile counts start at 0 when the driver is loaded or the GPU is reset ---
    ecc_corrected: int | None = None  # volatile
    ecc_uncorrectable: int | None = None  # volatile
    ecc_dram_uncorrectable: int | None = None  # aggregate, over the card's life
    ecc_sram_uncorrectable: int | None = None  # aggregate, over the card's life
    sram_threshold_exceeded: bool | None = None  # the vendor's own limit for replacing the card
    remapped_correctable: int | None = None  # rows, over the card's life
    remapped_uncorrectable: int | None = None
    remap_failure: bool | None = None
    remap_pending: bool | None = None
    retired_pages: int | None = None  # for double bit errors, on cards older than Ampere
    retire_pending: bool | None = None

    # --- links ---
    pcie_generation: int | None = None  # now; it falls while the GPU rests
    pcie_width: int | None = None  # lanes in use
    max_pcie_generation: int | None = None
    max_pcie_width: int | None = None
    pcie_replays: int | None = None  # since the driver was loaded
    nvlinks: tuple[bool, ...] | None = None  # whether each link is up; empty: the product has none
    nvlink_crc_errors: int | None = None  # of all links, since the driver was loaded
    nvlink_recoveries: int | None = None  # of all links, since the driver was loaded
    fabric_state: int | None = None  # 0 no fabric, 1 not started, 2 in progress, 3 complete
    fabric_status: int | None = None  # return code of the registration once it is complete; 0: success

    # --- the driver's words ---
    recovery_action: int | None = None  # the driver's own verdict, see agent.xids
    attached_at: datetime | None = None  # since when this agent holds the driver
    xids: tuple[XidEvent, ...] = ()  # since the previous reading

    @property
    def answers(self) -> bool:
        """The GPU is present and responds."""
        return self.lost is False and self.wedged is False


class Reader(Protocol):
    """Reads all GPUs of this node. Never blocks longer than its own deadline."""

    def read(self, now: datetime) -> tuple[GpuReading, ...]:
        """Every GPU that is present, by index; empty if even counting them took too long.

        Raises `UserError` if an operator must install or change something, `Fault` if it may pass.
        """

    def release(self) -> None:
        """Release the driver, so that a GPU can be reset; the next `read` attaches again."""
