"""From readings to evidence: what each reading says for or against every kind of fault.

Pure. A `Trace` holds what of earlier readings is needed to judge the next one: counters grow, links were up once,
errors were contained. The growth of a counter is evidence, its presence is not: a count may be years old. The other
GPUs of the node (`peers`) tell a fault of one card from a property of the machine.

Limits and sources: `schemas.status.gpu_faults`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum
from math import ceil
from statistics import median

from agent.port import GpuReading
from schemas.documents.cluster import Health
from schemas.status.xids import CONTAINED, FATAL, LINK_ERROR, WATCHED


class Signal(Enum):
    """The result of one reading for one kind of fault."""

    BAD = "bad"
    BETWEEN = "between"  # neither; ends a run of bad and a run of good readings
    GOOD = "good"
    UNKNOWN = "unknown"  # not answered; ends no run


MINUTE = timedelta(minutes=1)
REPLAY_MINUTES = 10
"""Minutes of PCIe replays that are remembered."""
STORM_MINUTES = 3
"""Minutes above the limit that make a storm; a single burst is none."""
REPLAYS_PER_LANE = {1: 0.15, 2: 0.3, 3: 0.48, 4: 0.96, 5: 1.92, 6: 3.84}
"""DCGM: tolerated replays per lane and minute, by PCIe generation."""
CRC_ERRORS_PER_S = 100
MOST_REMAPPED_ROWS, MOST_RETIRED_PAGES = 512, 63
COOL_DOWN_C, MEMORY_COOL_DOWN_C = 7, 3
"""A GPU counts as cool this many degrees below the limit: otherwise it would change with every reading."""
BUSY_PERCENT, SLOW_SHARE, LEAST_PEERS = 80, 0.75, 2
THERMAL_SLOWDOWN, POWER_BRAKE, IDLE = 0x40, 0x80, 0x1
"""Bits of `GpuReading.throttle`."""
CONTAINED_WITHIN = timedelta(minutes=1)
"""An error count and the Xid 94 that explains it belong together if they come within this time."""
XID_KEPT = timedelta(hours=1)
LINK_ERROR_COUNTS = timedelta(minutes=10)
FABRIC_COMPLETE = 3

_COUNTERS = ("ecc_corrected", "ecc_uncorrectable", "pcie_replays", "nvlink_crc_errors", "energy_j")
"""Counts since the driver was loaded or the GPU was reset: one that falls proves a reset."""
_SWITCHED = re.compile(r"SXM|HBM3|H200(?! NVL)|H[28]0(0)?(?! (PCIe|NVL))\b|GH200|G?B[23]00")
"""Products on boards on which NVLink joins all GPUs."""
_BRIDGED = re.compile(r"PCIe|NVL\b|RTX|\bA(10|16|30|40)\b|\bL(4|20|40S?)\b")
"""Products whose NVLink needs a bridge that not every GPU has."""


@dataclass(frozen=True, slots=True)
class Trace:
    """What is remembered of one GPU's readings."""

    counts: Mapping[str, float] = field(default_factory=dict)  # last known, by name of the counter
    read_at: datetime | None = None
    pending: bool = False  # rows or pages wait for a reset
    attached_at: datetime | None = None
    mig_enabled: bool | None = None
    most_links: int = 0
    most_lanes: int = 0
    minute: datetime | None = None  # begin of the newest entry of `replays`
    replays: tuple[int, ...] = ()  # growth in each of the last minutes, newest last
    crc_per_s: float | None = None
    xids: Mapping[int, datetime] = field(default_factory=dict)  # last time of each, within the last hour
    grew_at: datetime | None = None  # when the uncorrectable count last grew
    reset_at: datetime | None = None  # the last proof of a reset

    def since_reset(self, at: datetime | None) -> bool:
        """Whether the GPU was reset after that instant; None: before the agent started."""
        return self.reset_at is not None and (at is None or self.reset_at >= at)


def followed(trace: Trace, r: GpuReading, now: datetime, *, calm: bool) -> Trace:
    """The trace after one more reading. `calm`: in announced maintenance errors are expected and not remembered."""
    grown = _growth(trace, r)
    pending = bool(r.remap_pending or r.retire_pending)
    answered = r.remap_pending is not None or r.retire_pending is not None
    was_reset = (
        any(by < 0 for by in grown.values())
        or (trace.pending and answered and not pending)
        or _changed(trace.attached_at, r.attached_at)
        or _changed(trace.mig_enabled, r.mig_enabled)
    )
    # A reset starts the counters anew: when an error that they show now came is unknown.
    errors = 0 if was_reset else grown.get("ecc_uncorrectable", 0)
    seen = dict.fromkeys((x.xid for x in r.xids if x.xid in FATAL | WATCHED), now)
    kept = {xid: at for xid, at in trace.xids.items() if now - at < XID_KEPT}
    seconds = (now - trace.read_at).total_seconds() if trace.read_at is not None else 0.0
    crc = None if was_reset else grown.get("nvlink_crc_errors")
    return replace(
        _counting_replays(trace, 0 if was_reset else int(grown.get("pcie_replays", 0)), now),
        # A GPU that answers without a counter has lost it, as in MIG mode; a silent one keeps what it had.
        counts=_counts(r) if r.answers else {**trace.counts, **_counts(r)},
        read_at=now if r.answers else trace.read_at,
        pending=pending if answered else trace.pending,
        attached_at=r.attached_at or trace.attached_at,
        mig_enabled=trace.mig_enabled if r.mig_enabled is None else r.mig_enabled,
        most_links=max(trace.most_links, sum(r.nvlinks or ())),
        most_lanes=max(trace.most_lanes, r.pcie_width or 0),
        crc_per_s=crc / seconds if crc is not None and seconds > 0 else None,
        xids=kept if calm else kept | seen,
        grew_at=now if errors > 0 and not calm else trace.grew_at,
        reset_at=now if was_reset else trace.reset_at,
    )


def _changed(before: object, after: object) -> bool:
    return before is not None and after is not None and before != after


def _counts(r: GpuReading) -> dict[str, float]:
    return {name: value for name in _COUNTERS if (value := getattr(r, name)) is not None}


def _growth(trace: Trace, r: GpuReading) -> dict[str, float]:
    """By how much each counter grew since it was last known."""
    return {name: value - trace.counts[name] for name, value in _counts(r).items() if name in trace.counts}


def _counting_replays(trace: Trace, grown: int, now: datetime) -> Trace:
    if trace.minute is None:
        return replace(trace, minute=now, replays=(grown,))
    passed = int((now - trace.minute) / MINUTE)
    if passed <= 0:
        return replace(trace, replays=(*trace.replays[:-1], trace.replays[-1] + grown))
    empty = (0,) * min(passed - 1, REPLAY_MINUTES)
    replays = (*trace.replays, *empty, grown)[-REPLAY_MINUTES:]
    return replace(trace, minute=trace.minute + passed * MINUTE, replays=replays)


def signals(
    trace: Trace, r: GpuReading, peers: Sequence[GpuReading], health: Health, now: datetime
) -> dict[str, Signal]:
    """What one reading says about every kind of fault; `trace` includes it. `peers`: the node's other GPUs."""
    return {
        "GpuMissing": Signal.GOOD,
        "GpuLost": _signal(r.lost),
        "GpuWedged": _signal(r.wedged),
        "RemapFailure": _signal(r.remap_failure),
        "SramThreshold": _signal(r.sram_threshold_exceeded),
        "RowsExhausted": _signal(_at_least(r.remapped_uncorrectable, MOST_REMAPPED_ROWS)),
        "PagesExhausted": _signal(_at_least(r.retired_pages, MOST_RETIRED_PAGES)),
        "EccUncorrectable": _memory_errors(trace, r),
        "TooHot": _heat(r, health),
        "MemoryTooHot": _memory_heat(r, health),
        "ThermalSlowdown": _bit(r.throttle, THERMAL_SLOWDOWN),
        "PowerBrake": _power_brake(r, peers),
        "Slow": _slow(trace, r, peers),
        "FabricFailed": _fabric(r),
        "NvlinkDown": _links(trace, r, peers),
        "NvlinkErrors": _signal(None if trace.crc_per_s is None else trace.crc_per_s >= CRC_ERRORS_PER_S),
        "PcieReplays": _replays(trace, r),
        **_lanes(trace, r, peers),
        "RemapPending": _signal(r.remap_pending),
        "RetirePending": _signal(r.retire_pending),
        **({f"RecoveryAction{r.recovery_action}": Signal.BAD} if r.recovery_action else {}),
        **{f"Xid{x.xid}": Signal.BAD for x in r.xids if x.xid in FATAL},
        **{f"Xid{xid}": _watched(at, now) for xid, at in trace.xids.items() if xid in WATCHED},
    }


def mended(trace: Trace, r: GpuReading, since: datetime | None) -> Signal:
    """Whether an error that left no state is over: the driver asks for nothing more, or there was a reset."""
    if not r.answers:
        return Signal.UNKNOWN
    if r.recovery_action is None:
        return Signal.GOOD if trace.since_reset(since) else Signal.UNKNOWN
    return Signal.GOOD if r.recovery_action == 0 else Signal.BETWEEN


def links_fail_at_once(trace: Trace, now: datetime) -> bool:
    """Whether the driver reported a link error just now, so that links that are down need no patience."""
    at = trace.xids.get(LINK_ERROR)
    return at is not None and now - at < LINK_ERROR_COUNTS


def _signal(bad: bool | None) -> Signal:
    if bad is None:
        return Signal.UNKNOWN
    return Signal.BAD if bad else Signal.GOOD


def _bit(bits: int | None, bit: int) -> Signal:
    return _signal(None if bits is None else bits & bit != 0)


def _at_least(value: int | None, limit: int) -> bool | None:
    return None if value is None else value >= limit


def _watched(at: datetime, now: datetime) -> Signal:
    return Signal.BAD if at == now else Signal.BETWEEN


def _memory_errors(trace: Trace, r: GpuReading) -> Signal:
    """An uncorrectable error counts unless the driver contained it: then only one application had it."""
    at = trace.grew_at
    if at is None or trace.since_reset(at):
        return Signal.UNKNOWN if r.ecc_uncorrectable is None else Signal.GOOD
    contained = trace.xids.get(CONTAINED)
    if contained is not None and abs(contained - at) <= CONTAINED_WITHIN:
        return Signal.GOOD
    if trace.read_at is not None and trace.read_at - at > CONTAINED_WITHIN and r.recovery_action == 0:
        return Signal.GOOD
    return Signal.BAD


def _heat(r: GpuReading, health: Health) -> Signal:
    """The product's own limit first; a cluster's limit is for products that name none."""
    if r.temp_c is None:
        return Signal.UNKNOWN
    if r.slowdown_temp_c is not None:
        return _between(r.temp_c, r.slowdown_temp_c, r.slowdown_temp_c - COOL_DOWN_C)
    if r.thermal_margin_c is not None and r.slowdown_margin_c is not None:
        return _between(-r.thermal_margin_c, -r.slowdown_margin_c, -r.slowdown_margin_c - COOL_DOWN_C)
    return _between(r.temp_c, health.max_temperature, health.clear_temperature)


def _memory_heat(r: GpuReading, health: Health) -> Signal:
    limit = r.max_memory_temp_c if r.max_memory_temp_c is not None else health.max_memory_temperature
    if r.memory_temp_c is None or limit is None:
        return Signal.UNKNOWN
    return _between(r.memory_temp_c, limit + 1, limit - MEMORY_COOL_DOWN_C)  # the limit itself is allowed


def _between(value: int, bad: int, good: int) -> Signal:
    if value >= bad:
        return Signal.BAD
    return Signal.GOOD if value <= good else Signal.BETWEEN


def _power_brake(r: GpuReading, peers: Sequence[GpuReading]) -> Signal:
    """A brake of most GPUs is the rack's power, not this card's."""
    mine = _bit(r.throttle, POWER_BRAKE)
    known = [p.throttle & POWER_BRAKE != 0 for p in peers if p.throttle is not None]
    if mine is Signal.BAD and (not known or sum(known) * 2 >= len(known)):
        return Signal.BETWEEN
    return mine


def _slow(trace: Trace, r: GpuReading, peers: Sequence[GpuReading]) -> Signal:
    busy = [p for p in peers if p.product == r.product and _busy(p)]
    if not _busy(r) or len(busy) < LEAST_PEERS or r.throttle is None:
        return Signal.GOOD if trace.since_reset(None) and r.answers else Signal.BETWEEN
    if r.throttle & ~IDLE:
        return Signal.BETWEEN  # the driver says why
    clocks = (
        (r.sm_clock_mhz, [p.sm_clock_mhz for p in busy]),
        (r.memory_clock_mhz, [p.memory_clock_mhz for p in busy]),
    )
    behind = any(mine is not None and mine < SLOW_SHARE * _median(others) for mine, others in clocks)
    behind = behind or (r.pcie_generation or 99) < _median([p.pcie_generation for p in busy])
    return _signal(behind)


def _busy(r: GpuReading) -> bool:
    return r.answers and r.utilisation_percent is not None and r.utilisation_percent >= BUSY_PERCENT


def _median(values: Sequence[int | None]) -> float:
    return median([v for v in values if v is not None] or [0])


def _fabric(r: GpuReading) -> Signal:
    if r.fabric_state is None:
        return Signal.UNKNOWN
    if r.fabric_state == 0:
        return Signal.GOOD  # the product has no fabric
    return _signal(r.fabric_state != FABRIC_COMPLETE or r.fabric_status not in (None, 0))


def _links(trace: Trace, r: GpuReading, peers: Sequence[GpuReading]) -> Signal:
    """A GPU in MIG mode has no links; a bridge joins only some GPUs, so their peers prove nothing."""
    if r.nvlinks is None:
        return Signal.UNKNOWN
    if r.mig_enabled or not r.nvlinks:
        return Signal.GOOD
    alike = [p for p in peers if p.product == r.product and not p.mig_enabled]
    expected = trace.most_links
    if not _BRIDGED.search(r.product):
        expected = max(expected, *(sum(p.nvlinks or ()) for p in alike), 0)
    if alike and _SWITCHED.search(r.product):
        expected = max(expected, 1)
    return _signal(sum(r.nvlinks) < expected)


def _over(trace: Trace, r: GpuReading) -> int:
    """In how many of the remembered minutes there were more replays than the link allows."""
    generation = min(r.max_pcie_generation or r.pcie_generation or 4, max(REPLAYS_PER_LANE))
    limit = ceil((r.max_pcie_width or r.pcie_width or 16) * REPLAYS_PER_LANE.get(generation, 0.96))
    return sum(grown > limit for grown in trace.replays)


def _replays(trace: Trace, r: GpuReading) -> Signal:
    if r.pcie_replays is None:
        return Signal.UNKNOWN
    over = _over(trace, r)
    if over >= STORM_MINUTES:
        return Signal.BAD
    return Signal.BETWEEN if over else Signal.GOOD


def _lanes(trace: Trace, r: GpuReading, peers: Sequence[GpuReading]) -> dict[str, Signal]:
    """Lanes that are gone count with replays only: a slot may have been built with fewer."""
    if r.pcie_width is None:
        return {}
    alike = [p.pcie_width for p in peers if p.product == r.product and p.pcie_width is not None]
    narrow = r.pcie_width < max(trace.most_lanes, *alike, 0)
    below_product = r.max_pcie_width is not None and r.pcie_width < r.max_pcie_width
    failing = (narrow and sum(trace.replays) > 0) or (below_product and _over(trace, r) > 0)
    return {"PcieWidth": _signal(failing), "PcieNarrow": _signal(narrow and not failing)}
