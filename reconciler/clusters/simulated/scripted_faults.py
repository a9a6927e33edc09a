"""Scripted faults of a simulated cluster, as data: what fails, on what, from when until when.

A fault holds on [at, until); without `until` it holds forever. Nothing here acts: the simulation asks which
faults hold at a time, so a script can be given beforehand, extended at run time, and replayed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

RESET_XIDS = frozenset({46, 48, 62, 64, 79, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158})
"""After these the simulated driver requests a reset (recovery action 1), like the real one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDies:
    """The node is not Ready; its workloads stop."""

    node: str
    at: datetime
    until: datetime | None = None
    kind: Literal["NodeDies"] = "NodeDies"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCordoned:
    """A person cordons the node, and uncordons it at `until`."""

    node: str
    at: datetime
    until: datetime | None = None
    kind: Literal["NodeCordoned"] = "NodeCordoned"


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFails:
    """One GPU fails in one or more ways; at `until` it is repaired.

    An Xid of `RESET_XIDS` implies recovery action 1 unless `recovery_action` says otherwise.
    """

    node: str
    gpu: int
    at: datetime
    until: datetime | None = None
    xid: int | None = None
    temp_c: int | None = None
    lost: bool = False
    ecc_uncorrectable: int = 0
    remap_failure: bool = False
    recovery_action: int | None = None
    kind: Literal["GpuFails"] = "GpuFails"

    @property
    def driver_action(self) -> int:
        """The recovery action that the simulated driver reports."""
        if self.recovery_action is not None:
            return self.recovery_action
        return int(self.xid in RESET_XIDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiFails:
    """Calls time out; with `acted`, writes take effect and only their answer is lost."""

    at: datetime
    until: datetime
    acted: bool = False
    kind: Literal["ApiFails"] = "ApiFails"


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainHangs:
    """A drain running at `at` or begun later does not finish before `until`."""

    node: str
    at: datetime
    until: datetime
    kind: Literal["DrainHangs"] = "DrainHangs"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckFails:
    """A check of this node fails `times` times, or always."""

    node: str
    check: str
    at: datetime
    until: datetime | None = None
    stage: Literal["pre", "run", "post"] = "pre"
    times: int | None = None
    kind: Literal["CheckFails"] = "CheckFails"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceDeleted:
    """A person deletes a slice's namespace; it is back when the slice is ensured after that."""

    namespace: str
    at: datetime
    until: datetime | None = None
    kind: Literal["NamespaceDeleted"] = "NamespaceDeleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignPod:
    """A pod outside slices uses GPUs of the node."""

    node: str
    pod: str  # namespace/name
    at: datetime
    until: datetime | None = None
    kind: Literal["ForeignPod"] = "ForeignPod"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTainted:
    """A foreign taint repels pods of slices."""

    node: str
    taint: str  # key=value:effect
    at: datetime
    until: datetime | None = None
    kind: Literal["NodeTainted"] = "NodeTainted"


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverUpgrade:
    """The GPU driver is upgraded, or waits for that."""

    node: str
    state: str  # as the GPU operator names it
    at: datetime
    until: datetime | None = None
    kind: Literal["DriverUpgrade"] = "DriverUpgrade"


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuReset:
    """GPUs of the node were reset, which ends what a reset can end; done by the cluster, not scripted by people."""

    node: str
    gpus: tuple[int, ...]
    at: datetime
    until: datetime | None = None
    kind: Literal["GpuReset"] = "GpuReset"

    def ends(self, fault: GpuFails) -> bool:
        """Heat, a lost GPU and a memory without spare rows stay."""
        stays = fault.lost or fault.remap_failure or fault.temp_c is not None
        return not stays and fault.gpu in self.gpus and fault.at <= self.at


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetFails:
    """Resets and reboots of the node fail."""

    node: str
    at: datetime
    until: datetime | None = None
    kind: Literal["ResetFails"] = "ResetFails"


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainAsked:
    """NVSentinel asks for the node to be drained, until it is done with it."""

    node: str
    at: datetime
    until: datetime | None = None
    kind: Literal["DrainAsked"] = "DrainAsked"


Scripted = (
    NodeDies
    | NodeCordoned
    | NodeTainted
    | GpuFails
    | GpuReset
    | ResetFails
    | ApiFails
    | DrainHangs
    | CheckFails
    | NamespaceDeleted
    | ForeignPod
    | DriverUpgrade
    | DrainAsked
)


def holds(fault: Scripted, now: datetime) -> bool:
    return fault.at <= now and (fault.until is None or now < fault.until)


def dead_nodes(faults: Iterable[Scripted], now: datetime) -> frozenset[str]:
    return frozenset(f.node for f in faults if isinstance(f, NodeDies) and holds(f, now))


def cordoned_nodes(faults: Iterable[Scripted], now: datetime) -> frozenset[str]:
    return frozenset(f.node for f in faults if isinstance(f, NodeCordoned) and holds(f, now))


def taints(faults: Iterable[Scripted], now: datetime) -> dict[str, str]:
    """Foreign taints, one per node."""
    return {f.node: f.taint for f in faults if isinstance(f, NodeTainted) and holds(f, now)}


def upgrades(faults: Iterable[Scripted], now: datetime) -> dict[str, str]:
    """States of upgrades of GPU drivers, by node."""
    return {f.node: f.state for f in faults if isinstance(f, DriverUpgrade) and holds(f, now)}


def drains(faults: Iterable[Scripted], now: datetime) -> dict[str, datetime]:
    """Nodes to drain, and since when."""
    return {f.node: f.at for f in faults if isinstance(f, DrainAsked) and holds(f, now)}


def foreign_pods(faults: Iterable[Scripted], now: datetime) -> dict[str, tuple[str, ...]]:
    """Pods outside slices that use GPUs, by node."""
    found: dict[str, tuple[str, ...]] = {}
    for f in faults:
        if isinstance(f, ForeignPod) and holds(f, now):
            found[f.node] = (*found.get(f.node, ()), f.pod)
    return found


def lost_namespaces(faults: Iterable[Scripted], ensured: datetime, now: datetime) -> frozenset[str]:
    """Namespaces that people deleted after they were made."""
    return frozenset(
        f.namespace for f in faults if isinstance(f, NamespaceDeleted) and holds(f, now) and f.at > ensured
    )


def api_failure(faults: Iterable[Scripted], now: datetime) -> ApiFails | None:
    """Why a call at `now` gets no answer."""
    return next((f for f in faults if isinstance(f, ApiFails) and holds(f, now)), None)


def drain_end(faults: Iterable[Scripted], node: str, planned: datetime) -> datetime:
    """When a drain that should end at `planned` really does."""
    hangs = [f.until for f in faults if isinstance(f, DrainHangs) and f.node == node and f.at <= planned]
    return max([planned, *hangs])


def gpu_failures(faults: Iterable[Scripted], node: str, now: datetime) -> list[GpuFails]:
    resets = [f for f in faults if isinstance(f, GpuReset) and f.node == node and holds(f, now)]
    return [
        f
        for f in faults
        if isinstance(f, GpuFails) and f.node == node and holds(f, now)
        if not any(reset.ends(f) for reset in resets)
    ]


def turning_points(faults: Iterable[Scripted]) -> list[datetime]:
    """Times at which a fault changes where workloads can run."""
    movers = [f for f in faults if isinstance(f, NodeDies | NodeCordoned | DrainHangs)]
    return [t for f in movers for t in (f.at, f.until) if t is not None]
