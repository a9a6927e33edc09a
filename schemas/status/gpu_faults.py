"""Kinds of GPU faults: the one table that the agent judges by, that docs print and that `egs describe node` explains.

A kind says what proves it, how long that must last, when it is over, and what to do. Most faults take a GPU out of
service; a kind with the action watch is only shown. A fault that comes back within a day of its reset needs a new card.

Sources, by the letters in the table:
  X  NVIDIA, "Analyzing Xid Errors with the Xid Catalog" (Ampere and later, as of 2025-10-29): the immediate action
  N  nvml.h of driver 575 and later: recovery action (field 230), fabric state, SRAM threshold, temperature thresholds
  M  NVIDIA, "GPU Memory Error Management": row remapping, contained errors, page retirement
  D  DCGM, health watches and error_thresholds.yaml: limits of PCIe replays, NVLink errors, pages and rows
  G  gpud, hardware slowdown over ten minutes
  E  this project: the time within which operators expect a verdict (docs/reference/health.md)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import cache

from schemas.status.xids import FATAL, REBOOTING, RECOVERY_ACTIONS, RESETTING, XIDS, XidClass


class GpuAction(StrEnum):
    """What to do about a fault, least first."""

    WATCH = "watch"  # nothing: the GPU stays in service
    RESET = "reset"  # reset the GPU when it is not used
    REBOOT = "reboot"  # restart the node
    REPLACE = "replace"  # take the card or the node to service


SEVERITY = {action: number for number, action in enumerate(GpuAction)}


@dataclass(frozen=True, slots=True)
class FaultKind:
    """One row of the table. `patience` is how long the evidence must last without a pause."""

    name: str
    sentence: str  # continues "GPU 3 (GPU-…) "
    evidence: str
    clears: str
    action: GpuAction
    source: str
    patience: timedelta = timedelta(0)

    @property
    def isolates(self) -> bool:
        """Whether it takes the GPU out of service."""
        return self.action is not GpuAction.WATCH


_SERVICE_OVER = "the driver asks for nothing any more, or the GPU was reset"
_OPPOSITE = "readings without it, as many as spec.health.readingsToClear"


def _s(seconds: int) -> timedelta:
    return timedelta(seconds=seconds)


FAULT_KINDS: tuple[FaultKind, ...] = (
    FaultKind(
        "GpuLost",
        "fell off the bus; the machine needs service",
        "the driver answers that it lost the GPU",
        _OPPOSITE,
        GpuAction.REPLACE,
        "X (79), E",
        _s(60),
    ),
    FaultKind(
        "GpuMissing",
        "was present and is missing now; the machine needs service",
        "the driver does not list a GPU that it listed before",
        _OPPOSITE,
        GpuAction.REPLACE,
        "E",
        _s(100),
    ),
    FaultKind(
        "RemapFailure",
        "has no spare memory rows left; it must be replaced",
        "the driver reports that remapping a row failed",
        _OPPOSITE,
        GpuAction.REPLACE,
        "M",
    ),
    FaultKind(
        "SramThreshold",
        "has more SRAM errors than the vendor tolerates; it must be replaced",
        "the driver reports that the SRAM error threshold is exceeded",
        _OPPOSITE,
        GpuAction.REPLACE,
        "N",
    ),
    FaultKind(
        "RowsExhausted",
        "has remapped 512 memory rows; it must be replaced",
        "512 or more rows were remapped after uncorrectable errors",
        _OPPOSITE,
        GpuAction.REPLACE,
        "D",
    ),
    FaultKind(
        "PagesExhausted",
        "has retired 63 memory pages; it must be replaced",
        "63 or more pages were retired after double bit errors",
        _OPPOSITE,
        GpuAction.REPLACE,
        "D",
    ),
    FaultKind(
        "PcieReplays",
        "sends much of its PCIe traffic again; check its seat and its riser",
        "more replays a minute than the link's generation and width allow, in three of the last ten minutes",
        "ten minutes without one such minute",
        GpuAction.REPLACE,
        "D",
    ),
    FaultKind(
        "PcieWidth",
        "uses fewer PCIe lanes than it has, and sends traffic again; check its seat and its riser",
        "fewer lanes than the product has, and replays within the last ten minutes",
        _OPPOSITE,
        GpuAction.REPLACE,
        "D",
        _s(60),
    ),
    FaultKind(
        "MemoryTooHot",
        "has memory that is too hot; check its cooling",
        "memory above the product's limit, else above the cluster's for its shape",
        _OPPOSITE + ", 3 °C below the limit",
        GpuAction.REPLACE,
        "N",
    ),
    FaultKind(
        "TooHot",
        "is too hot; check its cooling",
        "at the product's slowdown temperature, else at the cluster's limit for its shape",
        _OPPOSITE + ", 7 °C below the limit",
        GpuAction.REPLACE,
        "N",
    ),
    FaultKind(
        "ThermalSlowdown",
        "is slowed down by heat; check its cooling",
        "the hardware's thermal slowdown without a pause",
        _OPPOSITE,
        GpuAction.REPLACE,
        "G",
        _s(600),
    ),
    FaultKind(
        "PowerBrake",
        "is slowed down by its power supply, and others of the node are not; check its power cables",
        "the external power brake, while less than half of the node's other GPUs have it",
        _OPPOSITE,
        GpuAction.REPLACE,
        "N, E",
        _s(180),
    ),
    FaultKind(
        "Slow",
        "is slower under load than the other GPUs of its node, for no reason that the driver gives",
        "with at least two busy peers: a clock below 75 % of their median, or a lower PCIe generation; no throttling",
        _OPPOSITE,
        GpuAction.REPLACE,
        "E",
        _s(600),
    ),
    FaultKind(
        "GpuWedged",
        "gets no answer from the driver; reboot the node",
        "a call to the driver does not return",
        _OPPOSITE,
        GpuAction.REBOOT,
        "E",
        _s(120),
    ),
    FaultKind(
        "FabricFailed",
        "is not part of the NVLink fabric; restart the fabric manager, or reboot the node",
        "registration with the fabric manager failed, or does not end",
        _OPPOSITE,
        GpuAction.REBOOT,
        "N",
        _s(100),
    ),
    FaultKind(
        "NvlinkDown",
        "has NVLink links that are down; reset it when it is idle",
        "fewer links up than before, than its peers, or than the product always has; with Xid 74 at once",
        _OPPOSITE,
        GpuAction.RESET,
        "D, E",
        _s(80),
    ),
    FaultKind(
        "NvlinkErrors",
        "has too many NVLink errors; reset it when it is idle",
        "100 or more CRC errors a second for a minute",
        _OPPOSITE,
        GpuAction.RESET,
        "D",
        _s(60),
    ),
    FaultKind(
        "EccUncorrectable",
        "has memory errors that cannot be corrected; reset it when it is idle",
        "the volatile count grows, and no Xid 94 says that the error was contained",
        _SERVICE_OVER,
        GpuAction.RESET,
        "M",
        _s(20),
    ),
    FaultKind(
        "RemapPending",
        "has memory rows to be remapped; reset it when it is idle",
        "the driver reports a pending remap",
        _OPPOSITE,
        GpuAction.WATCH,
        "M",
    ),
    FaultKind(
        "RetirePending",
        "has memory pages to be retired; reset it when it is idle",
        "the driver reports a pending retirement",
        _OPPOSITE,
        GpuAction.WATCH,
        "M",
    ),
    FaultKind(
        "PcieNarrow",
        "uses fewer PCIe lanes than the other GPUs of its node",
        "fewer lanes than its peers of the same product, without replays",
        _OPPOSITE,
        GpuAction.WATCH,
        "E",
        _s(60),
    ),
)
"""Kinds of faults of a GPU, worst first; numbered ones come from `fault_kind`."""

NODE_FAULT_KINDS: tuple[FaultKind, ...] = (
    FaultKind(
        "GpuCountLow",
        "fewer GPUs answer than the cluster's manifest says",
        "fewer GPUs than gpusPerNode of the node's pool",
        _OPPOSITE,
        GpuAction.REPLACE,
        "E",
        _s(100),
    ),
    FaultKind(
        "DriverAway",
        "the GPU driver does not answer; load it again, or reboot the node",
        "the driver cannot be reached; a reload or an upgrade takes less time",
        _OPPOSITE,
        GpuAction.REBOOT,
        "E",
        _s(600),
    ),
)
"""Kinds of faults of a whole node, worst first."""

_CLEAR = "ten minutes clear of the threshold"
ALERT_KINDS: tuple[FaultKind, ...] = (
    FaultKind(
        "GpuHot",
        "is hot; check the node's cooling and its neighbours in the rack",
        "at the cluster's threshold, else 87 °C, else five degrees before the card slows down",
        _CLEAR + ", five degrees below it",
        GpuAction.WATCH,
        "E",
        _s(60),
    ),
    FaultKind(
        "MemoryHot",
        "has hot memory; check the node's cooling",
        "at the cluster's threshold, else the card's own maximum, else 95 °C",
        _CLEAR + ", five degrees below it",
        GpuAction.WATCH,
        "E",
        _s(60),
    ),
    FaultKind(
        "Throttled",
        "is slowed down by heat or the power brake; its work takes longer",
        "the driver's or the hardware's thermal slowdown, or the external power brake",
        "ten minutes without",
        GpuAction.WATCH,
        "E",
        _s(60),
    ),
    FaultKind(
        "PowerHigh",
        "draws nearly as much power as its board may; usual under full load",
        "at the cluster's share of the board's limit, else 87 %",
        _CLEAR + ", five percent below it",
        GpuAction.WATCH,
        "E",
        _s(600),
    ),
    FaultKind(
        "GpuIdle",
        "is idle while others of its node work; use it, or ask for fewer GPUs",
        "below the cluster's use, else 5 %, for idleFor, else 30 minutes, while another GPU of the node is used",
        "used, or the whole node idle, for ten minutes",
        GpuAction.WATCH,
        "E",
    ),
)
"""What deserves attention and takes no GPU out of service, the most urgent first (`agent.crossings`)."""
ALERT_NAMES = tuple(kind.name for kind in ALERT_KINDS)

_BY_NAME = {kind.name: kind for kind in (*FAULT_KINDS, *NODE_FAULT_KINDS, *ALERT_KINDS)}
_ORDER = (
    *(name for name in ("GpuLost", "GpuMissing", "GpuWedged", "RecoveryAction", "RemapFailure")),
    *("SramThreshold", "RowsExhausted", "PagesExhausted", "EccUncorrectable", "Xid"),
)


def kind_name(reason: str) -> str:
    """The reason without the number at its end: `Xid` for `Xid79`."""
    return reason.rstrip("0123456789")


@cache
def fault_kind(reason: str) -> FaultKind | None:
    """The row for one reason of a report, also of a numbered one; None: not of this release."""
    name = kind_name(reason)
    number = reason[len(name) :]
    if name == "Xid" and number:
        return _xid(int(number))
    if name == "RecoveryAction" and number:
        return _recovery(int(number))
    return _BY_NAME.get(reason)


def came_back(reasons: Iterable[str], action: GpuAction | None) -> bool:
    """Whether a card must be replaced although none of its faults asks for that: one came back after its reset."""
    kinds = [kind for reason in reasons if (kind := fault_kind(reason)) is not None]
    return action is GpuAction.REPLACE and bool(kinds) and all(k.action is not action for k in kinds)


def severity(reason: str) -> tuple[int, str]:
    """Sorts reasons, worst first."""
    name = kind_name(reason)
    if name in _ORDER:
        return _ORDER.index(name), reason
    kind = _BY_NAME.get(name)
    place = len(_BY_NAME) if kind is None else list(_BY_NAME).index(kind.name)
    return len(_ORDER) + place, reason


def _xid(number: int) -> FaultKind:
    name, evidence = f"Xid{number}", f"the driver reports Xid {number}"
    if number not in FATAL:
        sentence = f"had error Xid {number}, which takes no GPU out of service"
        return FaultKind(name, sentence, evidence, "an hour without another", GpuAction.WATCH, "X")
    if number in XIDS[XidClass.RESET]:
        sentence = f"had error Xid {number}; see the vendor's Xid catalog, and reset it when it is idle"
        return FaultKind(name, sentence, evidence, _SERVICE_OVER, GpuAction.RESET, "X")
    reboots = number in REBOOTING
    action = GpuAction.REBOOT if reboots else GpuAction.REPLACE
    advice = "reboot the node" if reboots else "the machine needs service"
    sentence = f"had error Xid {number}; see the vendor's Xid catalog; {advice}"
    return FaultKind(name, sentence, evidence, _SERVICE_OVER, action, "X")


def _recovery(number: int) -> FaultKind:
    asked = RECOVERY_ACTIONS.get(number, f"action {number}")
    return FaultKind(
        f"RecoveryAction{number}",
        f"needs action according to the driver: {asked}",
        f"the driver asks: {asked}",
        "the driver asks for nothing any more",
        GpuAction.RESET if number in RESETTING else GpuAction.REBOOT,
        "N",
    )
