"""Decide from readings whether a node's GPUs are fit to serve.

Pure: what it has to remember arrives as `Memory` and leaves as `Memory`. Each reason for which a GPU can be unfit
is a sign with its own patience: hard ones (the driver's verdict, fatal Xids, memory errors, a GPU that is lost or
does not answer) hold at once, soft ones after some bad readings in a row, and all of them end only after
`readings_to_clear` good readings in a row. A question that a GPU cannot answer speaks neither for nor against it.

Held by tests/agent/test_judge.py:
  * errors of applications and unknown errors never take a node out;
  * a soft sign never holds before `readings_to_fail` bad readings in a row;
  * a memory that was read back from a report goes on as if there had been no restart.

A node that fails again and again is not held unfit by this agent: it tells when faults began, and the reconciler
quarantines, because only people end a quarantine and their word is not on this node.
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
"""A GPU may be absent from one reading without a fault: a driver that reloads shows fewer for a moment."""

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
"""Kinds of reasons, worst first; those of an Xid or a recovery action end in its number, as in `Xid79`."""

GPU_COUNT_LOW = "GpuCountLow"
"""The node has fewer GPUs than its manifest says."""


class Signal(Enum):
    """What one reading says about one sign."""

    BAD = "bad"
    BETWEEN = "between"  # neither: breaks a row of bad ones and one of good ones
    GOOD = "good"
    UNKNOWN = "unknown"  # not answered: breaks nothing


@dataclass(frozen=True, slots=True)
class Sign:
    """How one reason stands: readings in a row for and against it, and whether it holds."""

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
        # Counts past their limit say nothing more, and memories that say the same should be equal.
        return Sign(min(bad, to_fail), min(good, to_clear) if holds else 0, holds)


HELD = Sign(holds=True)
REST = Sign()


@dataclass(frozen=True, slots=True)
class Gpu:
    """Which GPU it is."""

    uuid: str
    index: int
    product: str
    memory_mib: int


@dataclass(frozen=True, slots=True)
class Memory:
    """What the judge remembers; `expected` is the number of GPUs that the manifest promises."""

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
    """What the node's agent says of it."""

    gpus: tuple[GpuVerdict, ...]
    node_reasons: tuple[str, ...]
    faults: tuple[datetime, ...]
    fault_trend: bool  # so many faults within a day that people should look at the node
    idle_since: datetime | None = None  # since when no GPU is used; None: one is, or nobody knows

    @property
    def healthy(self) -> bool:
        """Every GPU is fit, and none is missing."""
        return not self.node_reasons and all(not g.reasons for g in self.gpus)

    @property
    def reason(self) -> str | None:
        """The worst reason of all."""
        found = [*(r for g in self.gpus for r in g.reasons), *self.node_reasons]
        return min(found, key=_severity, default=None)


def judge(
    memory: Memory, readings: tuple[GpuReading, ...], health: Health, now: datetime
) -> tuple[Memory, Verdict]:
    """Weigh one reading of all GPUs. O(GPUs)."""
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
    """What holds now, without a new reading."""
    gpus = tuple(
        GpuVerdict(gpu, tuple(sorted((r for r, s in signs.items() if s.holds), key=_severity)))
        for gpu, signs in memory.gpus.items()
    )
    node = (GPU_COUNT_LOW,) if memory.node.holds else ()
    return Verdict(gpus, node, memory.faults, len(memory.faults) >= health.faults_to_quarantine)


def remembered(report: AgentReport) -> Memory:
    """The memory that wrote a report; counts of readings start anew, what held still holds."""
    gpus = {
        Gpu(g.uuid, g.index, g.product, g.memory_mib): dict.fromkeys(g.reasons, HELD) for g in report.gpus
    }
    low = report.reason == GPU_COUNT_LOW
    return Memory(gpus=gpus, node=HELD if low else REST, faults=report.faults)


def after_reboot(memory: Memory) -> Memory:
    """A reboot resets every GPU, and others may be in the slots: what readings cannot show anew is over."""
    gpus = {
        gpu: {reason: sign for reason, sign in signs.items() if kind_of(reason) != "Xid"}
        for gpu, signs in memory.gpus.items()
        if "GpuMissing" not in signs
    }
    return replace(memory, gpus=gpus)


def _gpu(r: GpuReading) -> Gpu:
    return Gpu(r.uuid, r.index, r.product, r.memory_mib)


def _unfit(memory: Memory) -> set[str]:
    """The GPUs that are unfit, by uuid; the node itself goes by the empty name."""
    found = {gpu.uuid for gpu, signs in memory.gpus.items() if any(s.holds for s in signs.values())}
    return found | {""} if memory.node.holds else found


def _count_signal(memory: Memory, readings: tuple[GpuReading, ...]) -> Signal:
    if memory.expected is None:
        return Signal.GOOD
    return Signal.BAD if len(readings) < memory.expected else Signal.GOOD


def _signs(before: Mapping[str, Sign], r: GpuReading | None, health: Health) -> dict[str, Sign]:
    """All signs of one GPU that are not at rest after this reading (None: it was not there)."""
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
    """Xids and actions are over when the driver asks for nothing more; for one that cannot say, never."""
    if r is None or not r.answers or r.recovery_action is None:
        return Signal.UNKNOWN
    return Signal.GOOD if r.recovery_action == 0 else Signal.BETWEEN


def kind_of(reason: str) -> str:
    """The reason without the number it may end in."""
    return reason.rstrip("0123456789")


def _severity(reason: str) -> tuple[int, str]:
    kind = kind_of(reason)
    return (ORDER.index(kind) if kind in ORDER else len(ORDER), reason)
