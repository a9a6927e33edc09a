"""dcgm-exporter's names and units of our metrics: the agent writes them, and Prometheus is asked for them. Pure.

Names differ between releases of DCGM; the first one is written, all are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from reconciler.telemetry.telemetry_port import Metric


class DcgmName(NamedTuple):
    """A metric's names, what one of ours is in theirs, and the text that explains it."""

    names: tuple[str, ...]
    help: str
    scale: int = 1  # theirs = ours × scale
    rises: bool = False  # a counter


NAMES: Mapping[Metric, DcgmName] = {
    Metric.SM_CLOCK: DcgmName(("DCGM_FI_DEV_SM_CLOCK",), "SM clock frequency (in MHz)."),
    Metric.MEMORY_CLOCK: DcgmName(("DCGM_FI_DEV_MEM_CLOCK",), "Memory clock frequency (in MHz)."),
    Metric.MEMORY_TEMPERATURE: DcgmName(("DCGM_FI_DEV_MEMORY_TEMP",), "Memory temperature (in C)."),
    Metric.TEMPERATURE: DcgmName(("DCGM_FI_DEV_GPU_TEMP",), "GPU temperature (in C)."),
    Metric.POWER: DcgmName(("DCGM_FI_DEV_POWER_USAGE",), "Power draw (in W)."),
    Metric.POWER_LIMIT: DcgmName(
        ("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", "DCGM_FI_DEV_POWER_MGMT_LIMIT"), "Enforced power limit (in W)."
    ),
    Metric.ENERGY: DcgmName(
        ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",),
        "Total energy consumption since the driver was loaded (in mJ).",
        scale=1000,
        rises=True,
    ),
    Metric.PCIE_REPLAYS: DcgmName(
        ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER",), "Total number of PCIe retries.", rises=True
    ),
    Metric.UTILISATION: DcgmName(("DCGM_FI_DEV_GPU_UTIL",), "GPU utilization (in %)."),
    Metric.MEMORY_ACTIVITY: DcgmName(("DCGM_FI_DEV_MEM_COPY_UTIL",), "Memory utilization (in %)."),
    Metric.XID: DcgmName(("DCGM_FI_DEV_XID_ERRORS",), "Value of the last XID error encountered."),
    Metric.MEMORY_FREE: DcgmName(("DCGM_FI_DEV_FB_FREE",), "Framebuffer memory free (in MiB)."),
    Metric.MEMORY_USED: DcgmName(("DCGM_FI_DEV_FB_USED",), "Framebuffer memory used (in MiB)."),
    Metric.REMAPPED_UNCORRECTABLE: DcgmName(
        ("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",),
        "Number of remapped rows for uncorrectable errors",
        rises=True,
    ),
    Metric.REMAPPED_CORRECTABLE: DcgmName(
        ("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",),
        "Number of remapped rows for correctable errors",
        rises=True,
    ),
    Metric.REMAP_FAILURE: DcgmName(
        ("DCGM_FI_DEV_ROW_REMAP_FAILURE",), "Whether remapping of rows has failed"
    ),
    Metric.ECC_CORRECTED: DcgmName(
        ("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL",), "Total number of single-bit volatile ECC errors.", rises=True
    ),
    Metric.ECC_UNCORRECTABLE: DcgmName(
        ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",), "Total number of double-bit volatile ECC errors.", rises=True
    ),
    Metric.THROTTLE: DcgmName(
        ("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"),
        "Current clock event reasons (bitmask).",
    ),
}
