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
    """One GPU at one instant."""

    uuid: str
    index: int
    product: str
    memory_mib: int
    lost: bool | None = False  # the driver says it fell off the bus
    wedged: bool | None = False  # it did not answer before the deadline; None: it was not probed in time
    temp_c: int | None = None
    power_w: float | None = None
    utilisation_percent: int | None = None
    memory_used_mib: int | None = None
    ecc_uncorrectable: int | None = None  # since the driver was loaded or the GPU reset
    remap_failure: bool | None = None
    remap_pending: bool | None = None
    recovery_action: int | None = None  # the driver's own verdict, see agent.xids
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
