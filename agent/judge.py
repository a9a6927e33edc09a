"""Decide from readings whether a node's GPUs are healthy, and what to do about those that are not.

Pure: its state comes in as `Memory` and goes out as `Memory`. `agent.evidence` says what a reading says about each kind
of fault, `schemas.status.gpu_faults` how long that must last and what to do then. A fault ends only after
`readings_to_clear` good readings in a row. A value that a GPU cannot report counts neither way.

Held by tests/agent/test_judge.py and tests/cases/agent/*.yaml:
  * errors of applications and unknown errors never take a node out;
  * a fault never holds before the patience of its kind is over;
  * in announced maintenance no fault begins;
  * a memory that was read back from a report continues as if there had been no restart.

This agent does not quarantine a node that fails repeatedly: it reports when faults began, and the reconciler
quarantines, because only an admin ends a quarantine and the agent does not know about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from agent.evidence import Signal, Trace, followed, links_fail_at_once, mended, signals
from agent.port import GpuReading
from agent.signs import REST, Patience, Sign
from schemas.documents.cluster import Health
from schemas.status.gpu_faults import ALERT_NAMES, SEVERITY, GpuAction, fault_kind, kind_name, severity
from schemas.status.node_status import AgentReport, PastFault

FAULTS_KEPT = timedelta(days=1)
COMES_BACK_WITHIN = timedelta(days=1)
"""A fault that comes back so soon after it ended needs a new card, not another reset."""
PAST_KEPT = 8
"""Most ended faults of one GPU in its report."""

GPU_COUNT_LOW, DRIVER_AWAY = "GpuCountLow", "DriverAway"
"""Faults of the node itself."""

_GONE_AFTER_REBOOT = frozenset({"Xid", "Slow", "EccUncorrectable"})
"""Kinds that leave no state which a new reading could show."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU and its card, as far as known."""

    uuid: str
    index: int
    product: str
    memory_mib: int
    serial: str | None = None
    board_part: str | None = None
    vbios: str | None = None
    driver: str | None = None
    mig_enabled: bool | None = None
    mig_devices: int | None = None
    links: int | None = None
    links_up: int = 0


@dataclass(frozen=True, slots=True)
class GpuMemory:
    """What is remembered of one GPU: its card, its signs by reason, its readings, and the faults it had."""

    gpu: Gpu
    signs: Mapping[str, Sign] = field(default_factory=dict)
    trace: Trace = field(default_factory=Trace)
    past: tuple[PastFault, ...] = ()


@dataclass(frozen=True, slots=True)
class Memory:
    """The judge's state; `expected` is the number of GPUs in the manifest."""

    expected: int | None = None
    gpus: Mapping[str, GpuMemory] = field(default_factory=dict)  # by uuid
    node: Mapping[str, Sign] = field(default_factory=dict)  # GpuCountLow, DriverAway
    faults: tuple[datetime, ...] = ()  # when they began, within the last day, oldest first


@dataclass(frozen=True, slots=True)
class GpuVerdict:
    """One GPU: the faults that take it out, those that are only watched, and what to do; worst first."""

    gpu: Gpu
    reasons: tuple[str, ...]
    watched: tuple[str, ...] = ()
    action: GpuAction | None = None
    past: tuple[PastFault, ...] = ()


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
        return min(found, key=severity, default=None)

    @property
    def action(self) -> GpuAction | None:
        """The most that must be done on the node; None: nothing is wrong."""
        return _worst((g.action for g in self.gpus), (_action_of(r) for r in self.node_reasons))


@dataclass(frozen=True, slots=True)
class _Terms:
    """What holds for one reading of a node."""

    health: Health
    now: datetime
    calm: bool = False
    patient: bool = True

    def patience(self, reason: str, trace: Trace) -> Patience:
        """How long the evidence must last."""
        if reason in ("TooHot", "MemoryTooHot"):
            return Patience(self.health.readings_to_fail)
        kind = fault_kind(reason)
        if kind is None or not kind.patience or not self.patient:
            return Patience()
        if reason == "NvlinkDown" and links_fail_at_once(trace, self.now):
            return Patience()
        return Patience(2, kind.patience)  # one reading after a long silence proves nothing

    def after(self, sign: Sign, reason: str, signal: Signal, trace: Trace) -> Sign:
        """The sign after one more reading. In maintenance no fault begins, and patience starts anew after it."""
        is_quiet = signal is not Signal.BAD and not sign.bad  # as nearly all are
        if not sign.holds and (self.calm or is_quiet):
            return REST
        return sign.after(signal, self.now, self.patience(reason, trace), self.health.readings_to_clear)


def judge(
    memory: Memory,
    readings: tuple[GpuReading, ...],
    health: Health,
    now: datetime,
    *,
    calm: bool = False,
    patient: bool = True,
) -> tuple[Memory, Verdict]:
    """Judge one reading of all GPUs. O(GPUs²).

    `calm`: the node is in announced maintenance. Not `patient`: what this reading shows counts at once.
    """
    terms = _Terms(health, now, calm, patient)
    here = {r.uuid: r for r in readings}
    gpus = {
        uuid: _judge_gpu(memory.gpus.get(uuid), here.get(uuid), readings, terms)
        for uuid in {**memory.gpus, **here}
    }
    ordered = dict(sorted(gpus.items(), key=lambda item: (item[1].gpu.index, item[0])))
    node = _judge_node(memory, _count_signal(memory, readings), Signal.GOOD, terms)
    return _with_faults(memory, replace(memory, gpus=ordered, node=node), health, now)


def judge_away(
    memory: Memory, health: Health, now: datetime, *, calm: bool = False
) -> tuple[Memory, Verdict]:
    """Judge a node whose driver cannot be reached: nothing is known of its GPUs."""
    node = _judge_node(memory, Signal.UNKNOWN, Signal.BAD, _Terms(health, now, calm))
    return _with_faults(memory, replace(memory, node=node), health, now)


def verdict_of(memory: Memory, health: Health) -> Verdict:
    """The current verdict, without a new reading."""
    found = {uuid: _holding(g) for uuid, g in memory.gpus.items()}
    everywhere = bool(found) and all("FabricFailed" in reasons for reasons in found.values())
    gpus = tuple(_gpu_verdict(g, found[uuid], everywhere=everywhere) for uuid, g in memory.gpus.items())
    node = tuple(sorted((r for r, sign in memory.node.items() if sign.holds), key=severity))
    return Verdict(gpus, node, memory.faults, len(memory.faults) >= health.faults_to_quarantine)


def remembered(report: AgentReport) -> Memory:
    """The memory behind a report; counts restart, what held still holds."""
    held = Sign(holds=True, since=report.at)
    gpus = {
        g.uuid: GpuMemory(
            Gpu(
                g.uuid, g.index, g.product, g.memory_mib, g.serial, g.board_part, g.vbios, g.driver,
                g.mig_enabled, g.mig_devices,
                g.links, g.links_up,
            ),
            dict.fromkeys((*g.reasons, *filter(_is_judged, g.watched)), held),
            Trace(grew_at=report.at if "EccUncorrectable" in g.reasons else None, most_links=g.links_up),
            g.past,
        )
        for g in report.gpus
    }  # fmt: skip
    node = {r: held for r in (report.reason,) if r in (GPU_COUNT_LOW, DRIVER_AWAY)}
    return Memory(gpus=gpus, node=node, faults=report.faults)


def after_reboot(memory: Memory, now: datetime) -> Memory:
    """A reboot resets every GPU, and GPUs may have been swapped: forget what new readings cannot confirm."""
    gpus = {}
    for uuid, g in memory.gpus.items():
        if "GpuMissing" in g.signs:
            continue
        over = {r: s for r, s in g.signs.items() if kind_name(r) in _GONE_AFTER_REBOOT}
        signs = {r: s for r, s in g.signs.items() if r not in over}
        gpus[uuid] = GpuMemory(
            g.gpu, signs, Trace(most_links=g.trace.most_links), _with_past(g.past, over, now)
        )
    return replace(memory, gpus=gpus)


# --- one GPU ---


def _judge_gpu(
    before: GpuMemory | None, r: GpuReading | None, readings: tuple[GpuReading, ...], terms: _Terms
) -> GpuMemory:
    """One GPU after this reading; None: it is missing."""
    if r is None:
        assert before is not None  # it is in the memory, or it was read
        return _with_signs(before, {"GpuMissing": Signal.BAD}, terms)
    old = before or GpuMemory(_card(None, r))
    trace = followed(old.trace, r, terms.now, calm=terms.calm)
    peers = [p for p in readings if p.uuid != r.uuid and p.answers]
    found = signals(trace, r, peers, terms.health, terms.now)
    ended = {
        reason: _ended(reason, sign, trace, r) for reason, sign in old.signs.items() if reason not in found
    }
    return _with_signs(replace(old, gpu=_card(old.gpu, r), trace=trace), ended | found, terms)


def _ended(reason: str, sign: Sign, trace: Trace, r: GpuReading) -> Signal:
    """The signal for a numbered reason that this reading does not name."""
    if not _isolates(reason):
        return Signal.GOOD
    return mended(trace, r, trace.xids.get(_number(reason), None if sign.bad else sign.since))


def _number(reason: str) -> int:
    digits = reason[len(kind_name(reason)) :]
    return int(digits) if digits else 0


def _with_signs(g: GpuMemory, found: Mapping[str, Signal], terms: _Terms) -> GpuMemory:
    signs = dict(g.signs)
    over: dict[str, Sign] = {}
    for reason, signal in found.items():
        before = signs.pop(reason, REST)
        after = terms.after(before, reason, signal, g.trace)
        if after != REST:
            signs[reason] = after
        if before.holds and not after.holds and _isolates(reason):
            over[reason] = before
    if not over and signs == g.signs:
        return g
    return replace(g, signs=signs, past=_with_past(g.past, over, terms.now))


def _card(before: Gpu | None, r: GpuReading) -> Gpu:
    """The card as read; what a silent GPU does not tell stays as it was."""
    old = before or Gpu(r.uuid, r.index, r.product, r.memory_mib)
    return Gpu(
        r.uuid,
        r.index,
        r.product,
        r.memory_mib,
        r.serial or old.serial,
        r.board_part or old.board_part,
        r.vbios or old.vbios,
        r.driver or old.driver,
        old.mig_enabled if r.mig_enabled is None else r.mig_enabled,
        old.mig_devices if r.mig_devices is None else r.mig_devices,
        old.links if r.nvlinks is None else len(r.nvlinks),
        old.links_up if r.nvlinks is None else sum(r.nvlinks),
    )


def _with_past(past: tuple[PastFault, ...], over: Mapping[str, Sign], now: datetime) -> tuple[PastFault, ...]:
    ended = tuple(
        PastFault(
            reason=reason, began=(sign.since or now).replace(microsecond=0), ended=now.replace(microsecond=0)
        )
        for reason, sign in over.items()
    )
    return (*past, *ended)[-PAST_KEPT:]


# --- the node ---


def _judge_node(memory: Memory, count: Signal, away: Signal, terms: _Terms) -> dict[str, Sign]:
    signs = {
        reason: terms.after(memory.node.get(reason, REST), reason, signal, Trace())
        for reason, signal in ((GPU_COUNT_LOW, count), (DRIVER_AWAY, away))
    }
    return {reason: sign for reason, sign in signs.items() if sign != REST}


def _count_signal(memory: Memory, readings: tuple[GpuReading, ...]) -> Signal:
    if memory.expected is None:
        return Signal.GOOD
    return Signal.BAD if len(readings) < memory.expected else Signal.GOOD


def _with_faults(before: Memory, after: Memory, health: Health, now: datetime) -> tuple[Memory, Verdict]:
    recent = tuple(at for at in before.faults if now - at < FAULTS_KEPT)
    began = _unfit(after) - _unfit(before)
    after = replace(after, faults=(*recent, now) if began else recent)
    return after, verdict_of(after, health)


def _unfit(memory: Memory) -> set[str]:
    """The uuids of unhealthy GPUs; the empty string stands for the node itself."""
    found = {uuid for uuid, g in memory.gpus.items() if any(_isolates(r) for r in _holding(g))}
    return found | {""} if any(s.holds for s in memory.node.values()) else found


# --- verdicts ---


def _holding(g: GpuMemory) -> tuple[str, ...]:
    return tuple(sorted((r for r, sign in g.signs.items() if sign.holds), key=severity))


def _is_judged(watched: str) -> bool:
    """Neither a crossing of a threshold, nor something of a later release, which would count as a fault."""
    return watched not in ALERT_NAMES and fault_kind(watched) is not None


def _isolates(reason: str) -> bool:
    kind = fault_kind(reason)
    return kind is None or kind.isolates


def _gpu_verdict(g: GpuMemory, holding: tuple[str, ...], *, everywhere: bool) -> GpuVerdict:
    reasons = tuple(r for r in holding if _isolates(r))
    actions = [_action_here(g, r, everywhere=everywhere) for r in holding]
    return GpuVerdict(g.gpu, reasons, tuple(r for r in holding if not _isolates(r)), _worst(actions), g.past)


def _action_here(g: GpuMemory, reason: str, *, everywhere: bool) -> GpuAction:
    """What the kind asks for; a fault that came back after its reset needs a new card."""
    action = _action_of(reason)
    if reason == "FabricFailed" and not everywhere:
        action = GpuAction.RESET  # the fabric manager serves the others
    if action is GpuAction.RESET and _came_back(g, reason):
        return GpuAction.REPLACE
    return action


def _came_back(g: GpuMemory, reason: str) -> bool:
    since = g.signs[reason].since
    return since is not None and any(
        p.reason == reason and timedelta(0) <= since - p.ended <= COMES_BACK_WITHIN for p in g.past
    )


def _action_of(reason: str) -> GpuAction:
    kind = fault_kind(reason)
    return GpuAction.REBOOT if kind is None else kind.action


def _worst(*actions: Iterable[GpuAction | None]) -> GpuAction | None:
    found = [action for group in actions for action in group if action is not None]
    return max(found, key=SEVERITY.__getitem__, default=None)
