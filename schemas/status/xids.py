"""What the driver's error numbers and its own verdict mean, as data.

Sources: NVIDIA, "Analyzing Xid Errors with the Xid Catalog" (Ampere and later, as of 2025-10-29), immediate
actions; NVML header 12.8 for the recovery actions (field 230). Public tools disagree on most of these numbers, so
the driver's own verdict takes precedence if there is one. A number in no class here is unknown, and an unknown error
never takes a node out: every new driver adds some.
"""

from __future__ import annotations

from enum import StrEnum


class XidClass(StrEnum):
    """Who must act on an error."""

    APPLICATION = "Application"  # the job; the GPU is fine
    INFORMATIONAL = "Informational"  # no action
    DEPENDS = "Depends"  # needs link state or sub-codes: the driver's verdict decides
    RESET = "Reset"  # the GPU must be reset
    SERVICE = "Service"  # the machine or its vendor
    UNKNOWN = "Unknown"


XIDS: dict[XidClass, frozenset[int]] = {
    XidClass.APPLICATION: frozenset(
        {8, 11, 13, 25, 31, 32, 39, 40, 41, 60, *range(68, 73), 75, 76, 77, 80, *range(82, 87), 88, 89, 94}
        | {*range(96, 106), *range(126, 136), 139}
    ),
    XidClass.INFORMATIONAL: frozenset(
        {14, 37, 38, 43, 44, 63, 66, 67, 92, 93, 106, 107, 108, 121, 137, 141, 152, 153, 157, 160, 161}
    ),
    XidClass.DEPENDS: frozenset({45, 74, *range(144, 151), 154}),
    XidClass.RESET: frozenset({46, 48, 62, 64, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158}),
    XidClass.SERVICE: frozenset({54, 78, 79, 142, 151, 159}),
}

VGPU_START = 78
"""A vGPU that does not start is a matter of its software: the GPU is fine."""

FATAL = XIDS[XidClass.RESET] | XIDS[XidClass.SERVICE] - {VGPU_START}
"""Errors after which a GPU is not used until it is repaired."""

CONTAINED, LINK_ERROR = 94, 74
"""An uncorrectable memory error that only one application had; an NVLink error, where the link's state decides."""

WATCHED = frozenset({63, 92, CONTAINED, LINK_ERROR, VGPU_START, *range(144, 151)})
"""Errors of the hardware that take no GPU out but are shown for a while."""

REBOOTING = frozenset({151, 159})
"""Errors of the service class that a restart of the machine ends; the others need a person at the machine."""

RECOVERY_ACTIONS = {
    1: "reset the GPU",
    2: "reboot the node",
    3: "stop peer-to-peer traffic and reset",
    4: "drain the GPU and reset it",
    5: "recover the IMEX domain",
    6: "reset the bus",
    7: "reboot the system",
}
"""NVML_GPU_RECOVERY_ACTION_*; 0 is none. An unlisted number also calls for action."""

RESETTING = frozenset({1, 3, 4, 6})
"""Recovery actions that a reset of the GPU carries out; the others need the whole node."""


def class_of(xid: int) -> XidClass:
    return next((name for name, xids in XIDS.items() if xid in xids), XidClass.UNKNOWN)
