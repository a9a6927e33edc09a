"""The words of pages: a slice is a workspace, and a reason is said in plain English.

Files, the API, the log and commands keep "slice" and names such as `HigherRankArrived`; a page has them where an admin
would search for them. A sentence from elsewhere goes through `said`, and a name through `reason_words`. Pure.

Held by tests/portal/pages/test_plain_words.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from scheduler.reasons import Reason
from schemas.rules.event_reasons import EventReason
from schemas.status.gpr_status import Cause

CAUSES: Mapping[str, str] = {
    Cause.HIGHER_RANK_ARRIVED: "a more urgent request came",
    Cause.APPROVED: "an approval put another request first",
    Cause.REQUEUED: "another request came back after a failure",
    Cause.REQUEST_CHANGED: "the request itself was changed",
    Cause.ADMIN_MOVED: "an admin moved requests",
    Cause.POLICY_CHANGED: "a policy was changed",
    Cause.MAINTENANCE_ADDED: "maintenance was planned",
    Cause.NODE_LOST: "a node was lost",
    Cause.NODE_REPLACED: "a node was replaced",
    Cause.CHECKS_FAILED: "checks of nodes failed",
    Cause.CLUSTER_UNREACHABLE: "a cluster did not answer",
    Cause.CONTROLLER_ABSENT: "the controller was away",
}
"""Why a promise moved to later; docs/reference/kinds/gpr.md explains them."""
WAITS_FOR: Mapping[str, str] = {
    Reason.FITS_NOWHERE: "a pool in which it fits",
    Reason.NODES_OUT: "nodes that are out of service",
    Reason.CLUSTER_UNREACHABLE: "a cluster that does not answer",
    Reason.NEEDS_APPROVAL: "an approval",
    Reason.LIMIT_EXCEEDED: "a higher limit of its workspace",
}
"""What a request without a start waits for."""
APPROVALS: Mapping[str, str] = {
    "QuotaExceeded": "it holds more than its workspace may without approval",
    "MonthlyQuotaExceeded": "the workspace's GPU-hours of this month are used up",
    "NodeLimitExceeded": "it asks for more nodes than one request may hold without approval",
    "DurationNeedsApproval": "it runs longer than the project allows without approval",
    "PriorityNeedsApproval": "its priority is higher than the project allows without approval",
    "GpuHoursNeedApproval": "it takes more GPU-hours than the project allows without approval",
    "ShapeNeedsApproval": "GPUs of this shape need an approval",
    "ExtensionNeedsApproval": "it wants more grace than the project allows without approval",
}
"""Rules in words; docs/reference/kinds/approval.md says where each is set."""
_NAMES: Mapping[str, str] = {
    EventReason.FILED: "filed",
    EventReason.MARK_25: "a quarter of its time used",
    EventReason.MARK_50: "half of its time used",
    EventReason.MARK_75: "three quarters of its time used",
    EventReason.PREEMPTED: "evicted",
    EventReason.PREEMPTION_OFF: "eviction called off",
    EventReason.IDLE_RECLAIMED: "nodes taken back, they were idle",
    EventReason.CHECK_FAILED: "check before the start failed",
    EventReason.CHECKS_PASSED: "checks before the start passed",
    EventReason.POST_CHECK_FAILED: "check after the end failed",
    EventReason.LATENCY_HIGH: "slow start",
    EventReason.NODE_OUT: "node out of service",
    EventReason.NODE_SUSPECT: "node under suspicion",
    EventReason.NODE_BACK: "node back in service",
    EventReason.LEMON_FOUND: "node fails again and again",
    EventReason.THROTTLED: "GPU slowed down",
    EventReason.POWER_HIGH: "GPU near its power limit",
    EventReason.GPU_XID: "GPU error (Xid)",
    EventReason.RESET_BEGAN: "GPU reset began",
    EventReason.REMEDIATED: "node mended itself",
    EventReason.REMEDIATION_FAILED: "reset or reboot did not help",
    EventReason.MENDED: "status written anew",
    EventReason.CLOCK_DOUBTED: "clock in doubt",
    EventReason.FOLLOWED: "main is followed again",
    EventReason.TRUST_BEGAN: "verification of main began",
    "NodesOut": "nodes out of service",
    "GpuLost": "GPU fell off the bus",
    "Throttled": "GPU slowed down",
}
"""Where taking the name apart does not say it well."""
_KEPT = {
    "gpu": "GPU",
    "nccl": "NCCL",
    "rdma": "RDMA",
    "gpus": "GPUs",
    "xid": "Xid",
    "ecc": "ECC",
    "hbm": "HBM",
    "pcie": "PCIe",
    "nvlink": "NVLink",
}
_IN_SENTENCES = re.compile(
    r"(?P<because>because of )?\b(?P<name>"
    + "|".join(sorted({*CAUSES, *(str(one) for one in EventReason)}, key=len, reverse=True))
    + r")\b"
)
_SLICE = re.compile(r"(?<![\w./\-])(?P<first>[Ss])lice(?P<many>s?)(?![\w/\-]|\.\w)")
_DURATION = re.compile(r"\b\d+d\d+h\d+m(?:\d+s)?\b")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_CODE = re.compile(r"(`[^`]*`)")


def said(sentence: str) -> str:
    """A sentence as pages say it; what stands in `backticks` is a command, and stays."""
    parts = _CODE.split(sentence)
    return "".join(part if number % 2 else _plain(part) for number, part in enumerate(parts))


def _plain(text: str) -> str:
    named = _DURATION.sub(_short, _IN_SENTENCES.sub(_phrase, text))
    return _SLICE.sub(
        lambda found: ("W" if found["first"] == "S" else "w") + f"orkspace{found['many']}", named
    )


def _short(found: re.Match[str]) -> str:
    """`0d6h0m` as `6h`."""
    return "".join(re.findall(r"[1-9]\d*[dhms]", found[0])) or "0m"


def _phrase(found: re.Match[str]) -> str:
    words = CAUSES.get(found["name"]) or _lower(found["name"])
    return f"{'because ' if found['because'] else ''}{words}"


def reason_words(name: str) -> str:
    """A reason, a state or another name of programs, such as `GPRDuration50`: `Half of its time used`."""
    words = _lower(name)
    return words[:1].upper() + words[1:]


def _lower(name: str) -> str:
    known = _NAMES.get(name) or CAUSES.get(name)
    if known:
        return known
    parts = _PARTS.findall(name.removeprefix("GPR") or name)
    return " ".join(_KEPT.get(part.lower(), part.lower()) for part in parts) or name


def cause_words(cause: str, by: str = "") -> str:
    """Why a promise moved, with what is behind it."""
    words = CAUSES.get(cause, cause)
    return f"{words} ({by})" if by else words


_LIMITS = (("tempC", "temperature"), ("memoryTempC", "memory temperature"), ("powerW", "power"))


def nearest_limit(values: Mapping[str, Any], limits: Mapping[str, Any]) -> str:
    """Which limit of a GPU its `closeness` is about; both as in a row of `metrics/gpus`. Empty: none."""
    shares = [
        (values[name] / limits[name], words)
        for name, words in _LIMITS
        if limits.get(name) and values.get(name) is not None
    ]
    return max(shares)[1] if shares else ""
