"""Decide from readings whether a node's GPUs are healthy.

Pure: its state comes in as `Memory` and goes out as `Memory`. Each possible fault of a GPU is a sign with its own
patience: hard ones (the driver's verdict, fatal Xids, memory errors, a lost or silent GPU) hold at once, soft ones
after some bad readings in a row; all end only after `readings_to_clear` good readings in a row. A value that a GPU
cannot report counts neither way.

Held by tests/agent/test_judge.py:
  * errors of applications and unknown errors never take a node out;
  * a soft sign never holds before `readings_to_fail` bad readings in a row;
  * a memory that was read back from a report continues as if there had been no restart.

This agent does not quarantine a node that fails repeatedly: it reports when faults began, and the reconciler
quarantines, because only an admin ends a quarantine and the agent does not know about it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum

from agent.port import GpuReading
from agent.xids import FATAL
from schemas.documents.cluster import Health
from schemas.status.gpr_status import AgentReport

FAULTS_KEPT = timedelta(days=1)
READINGS_TO_MISS = 2
"""A GPU may be missing from one reading without a fault: a driver shows fewer GPUs while it reloads."""

ORDER = (
    "GpuLost",
    "GpuMissing",
    "GpuWedged",
    "RecoveryAction",
    "RemapFailure",
    "EccUncorrectable",
    "Xid",
    "TooHot",
)
"""Kinds of reasons, worst first; an Xid or a recovery action ends in its number, as in `Xid79`."""

GPU_COUNT_LOW = "GpuCountLow"
"""The node has fewer GPUs than its manifest says."""


class Signal(Enum):
    """The result of one reading for one sign."""

    BAD = "bad"
    BETWEEN = "between"  # neither; ends a run of bad and a run of good readings
    GOOD = "good"
    UNKNOWN = "unknown"  # not answered; ends no run


@dataclass(frozen=True, slots=True)
class Sign:
    """State of one sign: readings in a row for and against it, and whether it holds."""

    bad: int = 0
    good: int = 0
    holds: bool = False

    def after(self, signal: Signal, to_fail: int, to_clear: int) -> Sign:
        """The sign after one more reading."""
        if signal is Signal.UNKNOWN:
            return self
        bad = self.bad + 1 if signal is Signal.BAD else 0
        good = self.good + 1 if signal is Signal.GOOD else 0
        holds = bad >= to_fail or (self.holds and good < to_clear)
        # Larger counts mean nothing more, and equal memories should compare equal.
        return Sign(min(bad, to_fail), min(good, to_clear) if holds else 0, holds)


HELD = Sign(holds=True)
REST = Sign()


@dataclass(frozen=True, slots=True)
class Gpu:
    """Identity of a GPU."""

    uuid: str
    index: int
    product: str
    memory_mib: int


@dataclass(frozen=True, slots=True)
class Memory:
    """The judge's state; `expected` is the number of GPUs in the manifest."""

    expected: int | None = None
    gpus: Mapping[Gpu, Mapping[str, Sign]] = field(default_factory=dict)
    node: Sign = REST  # GpuCountLow
    faults: tuple[datetime, ...] = ()  # when they began, within the last day, oldest first


@dataclass(frozen=True, slots=True)
class GpuVerdict:
    """One GPU and the reasons that hold against it, worst first."""

    gpu: Gpu
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The agent's verdict on the node."""

    gpus: tuple[GpuVerdict, ...]
    node_reasons: tuple[str, ...]
    faults: tuple[datetime, ...]
    fault_trend: bool  # so many faults within a day that an admin should look at the node
    idle_since: datetime | None = None  # since when no GPU is used; None: one is used, or it is unknown

    @property
    def healthy(self) -> bool:
        """Every GPU is healthy, and none is missing."""
        return not self.node_reasons and all(not g.reasons for g in self.gpus)

    @property
    def reason(self) -> str | None:
        found = [*(r for g in self.gpus for r in g.reasons), *self.node_reasons]
        return min(found, key=_severity, default=None)


def judge(
    memory: Memory, readings: tuple[GpuReading, ...], health: Health, now: datetime
) -> tuple[Memory, Verdict]:
    """Judge one reading of all GPUs. O(GPUs)."""
    here = {_gpu(r): r for r in readings}
    gpus = {
        gpu: _signs(memory.gpus.get(gpu, {}), here.get(gpu), health)
        for gpu in sorted({*memory.gpus, *here}, key=lambda g: (g.index, g.uuid))
    }
    node = memory.node.after(_count_signal(memory, readings), READINGS_TO_MISS, health.readings_to_clear)
    after = replace(memory, gpus=gpus, node=node)
    began = _unfit(after) - _unfit(memory)
    recent = tuple(at for at in memory.faults if now - at < FAULTS_KEPT)
    after = replace(after, faults=(*recent, now) if began else recent)
    return after, verdict_of(after, health)


def verdict_of(memory: Memory, health: Health) -> Verdict:
    """The current verdict, without a new reading."""
    gpus = tuple(
        GpuVerdict(gpu, tuple(sorted((r for r, s in signs.items() if s.holds), key=_severity)))
        for gpu, signs in memory.gpus.items()
    )
    node = (GPU_COUNT_LOW,) if memory.node.holds else ()
    return Verdict(gpus, node, memory.faults, len(memory.faults) >= health.faults_to_quarantine)


def remembered(report: AgentReport) -> Memory:
    """The memory behind a report; counts restart, what held still holds."""
    gpus = {
        Gpu(g.uuid, g.index, g.product, g.memory_mib): dict.fromkeys(g.reasons, HELD) for g in report.gpus
    }
    low = report.reason == GPU_COUNT_LOW
    return Memory(gpus=gpus, node=HELD if low else REST, faults=report.faults)


def after_reboot(memory: Memory) -> Memory:
    """A reboot resets every GPU, and GPUs may have been swapped: forget what new readings cannot confirm."""
    gpus = {
        gpu: {reason: sign for reason, sign in signs.items() if kind_of(reason) != "Xid"}
        for gpu, signs in memory.gpus.items()
        if "GpuMissing" not in signs
    }
    return replace(memory, gpus=gpus)


def _gpu(r: GpuReading) -> Gpu:
    return Gpu(r.uuid, r.index, r.product, r.memory_mib)


def _unfit(memory: Memory) -> set[str]:
    """The uuids of unhealthy GPUs; the empty string stands for the node itself."""
    found = {gpu.uuid for gpu, signs in memory.gpus.items() if any(s.holds for s in signs.values())}
    return found | {""} if memory.node.holds else found


def _count_signal(memory: Memory, readings: tuple[GpuReading, ...]) -> Signal:
    if memory.expected is None:
        return Signal.GOOD
    return Signal.BAD if len(readings) < memory.expected else Signal.GOOD


def _signs(before: Mapping[str, Sign], r: GpuReading | None, health: Health) -> dict[str, Sign]:
    """All signs of one GPU that are not at rest after this reading (None: the GPU is missing)."""
    numbered = {reason: _mended(r) for reason in before if kind_of(reason) != reason}
    signals = numbered | _signals(r, health)
    patience = {"TooHot": health.readings_to_fail, "GpuMissing": READINGS_TO_MISS}
    signs = dict(before) | {
        reason: before.get(reason, REST).after(signal, patience.get(reason, 1), health.readings_to_clear)
        for reason, signal in signals.items()
    }
    return {reason: sign for reason, sign in signs.items() if sign != REST}


def _signals(r: GpuReading | None, health: Health) -> dict[str, Signal]:
    if r is None:
        return {"GpuMissing": Signal.BAD}
    wanted = {f"RecoveryAction{r.recovery_action}": Signal.BAD} if r.recovery_action else {}
    xids = {f"Xid{e.xid}": Signal.BAD for e in r.xids if e.xid in FATAL}
    return {
        "GpuMissing": Signal.GOOD,
        "GpuLost": _signal(r.lost),
        "GpuWedged": _signal(r.wedged),
        "RemapFailure": _signal(r.remap_failure),
        "EccUncorrectable": _signal(None if r.ecc_uncorrectable is None else r.ecc_uncorrectable > 0),
        "TooHot": _heat(r.temp_c, health),
        **wanted,
        **xids,
    }


def _signal(bad: bool | None) -> Signal:
    if bad is None:
        return Signal.UNKNOWN
    return Signal.BAD if bad else Signal.GOOD


def _heat(temp_c: int | None, health: Health) -> Signal:
    if temp_c is None:
        return Signal.UNKNOWN
    if temp_c >= health.max_temperature:
        return Signal.BAD
    return Signal.GOOD if temp_c <= health.clear_temperature else Signal.BETWEEN


def _mended(r: GpuReading | None) -> Signal:
    """Xids and actions end when the driver asks for nothing more; if it cannot say, never."""
    if r is None or not r.answers or r.recovery_action is None:
        return Signal.UNKNOWN
    return Signal.GOOD if r.recovery_action == 0 else Signal.BETWEEN


def kind_of(reason: str) -> str:
    """The reason without a number at its end."""
    return reason.rstrip("0123456789")


def _severity(reason: str) -> tuple[int, str]:
    kind = kind_of(reason)
    return (ORDER.index(kind) if kind in ORDER else len(ORDER), reason)
