"""Which GPUs are beyond a threshold: hot, hungry, slowed down, idle, or with an error that needs no repair.

Pure: its state comes in as `Crossings` and goes out as `Crossings`. A crossing takes no GPU out of service; it is
reported once when it begins and once when it is over. Each change of the report is a push, so a crossing begins only
after the patience of its kind, is over only after ten minutes without it, and begins again no sooner than ten minutes
after it was over: a value that flaps is one crossing.

Held by tests/agent/test_crossings.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from agent.judge import Verdict
from agent.port import GpuReading
from reconciler.workloads.thresholds import BRAKE_BIT, HEAT_BITS, Card, Limits, limits_by
from schemas.documents.thresholds import Thresholds
from schemas.status.gpu_faults import ALERT_NAMES, GpuAction, fault_kind
from schemas.status.node_status import AgentReport
from schemas.status.xids import FATAL, WATCHED, class_of

REST_FOR = timedelta(minutes=10)
"""Shortest time between two changes of one crossing, and time without it after which it is over."""
IDLE_FOR = timedelta(minutes=30)
XID_KEPT = timedelta(hours=1)
LONGEST_GAP = timedelta(minutes=2)
"""After a longer gap between two readings, what happened in between is unknown."""
COOLER_C, LESS_POWER, BUSIER = 5, 0.95, 2
"""A crossing ends this far from the threshold: degrees, a share of it, percent of use."""


@dataclass(frozen=True, slots=True)
class Crossing:
    """One kind of one GPU: whether it holds, since when readings have said the opposite, and its last change."""

    holds: bool = False
    since: datetime | None = None
    changed_at: datetime | None = None

    def after(self, is_over: bool | None, patience: timedelta, now: datetime) -> Crossing:
        """After one reading: beyond the threshold, clear of it, or None: neither or unknown."""
        if is_over is None or is_over == self.holds:
            return replace(self, since=None)
        since = self.since or now
        long_enough = now - since >= (REST_FOR if self.holds else patience)
        rested = self.changed_at is None or now - self.changed_at >= REST_FOR
        if long_enough and rested:
            return Crossing(not self.holds, None, now)
        return replace(self, since=since)


@dataclass(frozen=True, slots=True)
class GpuCrossings:
    """What is remembered of one GPU; `used_at` is when it was last used, or first seen."""

    kinds: Mapping[str, Crossing] = field(default_factory=dict)
    used_at: datetime | None = None
    xids: Mapping[int, datetime] = field(default_factory=dict)

    @property
    def reasons(self) -> tuple[str, ...]:
        """What holds, in a fixed order."""
        held = (name for name in ALERT_NAMES if name in self.kinds and self.kinds[name].holds)
        return (*held, *(f"Xid{number}" for number in sorted(self.xids)))


@dataclass(frozen=True, slots=True)
class Crossings:
    """The state of a node's GPUs, by uuid."""

    gpus: Mapping[str, GpuCrossings] = field(default_factory=dict)
    read_at: datetime | None = None


def crossed(
    before: Crossings, readings: Sequence[GpuReading], own: Thresholds, now: datetime, *, calm: bool = False
) -> Crossings:
    """The state after one reading of all GPUs. `calm`: the node is in announced maintenance, where none begins."""
    is_fresh = before.read_at is None or now - before.read_at > LONGEST_GAP
    idle_for = IDLE_FOR if own.idle_for is None else own.idle_for
    limits = {r.uuid: _limits(own, r) for r in readings}
    old = {r.uuid: _known(before.gpus.get(r.uuid), now, is_fresh=is_fresh) for r in readings}
    used = {r.uuid: _used_at(old[r.uuid], r, limits[r.uuid], now) for r in readings}
    found = {}
    for r in readings:
        others = [at for uuid, at in used.items() if uuid != r.uuid and at is not None]
        over = _beyond(r, limits[r.uuid]) | {
            "GpuIdle": _idle(r, limits[r.uuid], used[r.uuid], others, idle_for, now)
        }
        kinds = {
            name: after
            for name, is_over in over.items()
            for was in (old[r.uuid].kinds.get(name, Crossing()),)
            for after in (was if calm and not was.holds else was.after(is_over, _patience(name), now),)
            if after != Crossing()
        }
        xids = _xids(old[r.uuid].xids, r, limits[r.uuid], now, calm=calm)
        found[r.uuid] = GpuCrossings(kinds, used[r.uuid], xids)
    return Crossings(found, now)


def with_crossings(verdict: Verdict, crossings: Crossings) -> Verdict:
    """The verdict in which each GPU is watched for what it has crossed, too."""
    gpus = []
    for g in verdict.gpus:
        known = crossings.gpus.get(g.gpu.uuid)
        watched = tuple(dict.fromkeys((*g.watched, *(() if known is None else known.reasons))))
        gpus.append(replace(g, watched=watched, action=g.action or (GpuAction.WATCH if watched else None)))
    return replace(verdict, gpus=tuple(gpus))


def recalled(report: AgentReport) -> Crossings:
    """What held when the last process reported; errors are forgotten, for their time is not in the report."""
    return Crossings(
        {
            g.uuid: GpuCrossings(
                {name: Crossing(True, None, report.at) for name in g.watched if name in ALERT_NAMES}
            )
            for g in report.gpus
        }
    )


def _limits(own: Thresholds, r: GpuReading) -> Limits:
    return limits_by(
        own, r.product, Card(r.slowdown_temp_c, r.max_memory_temp_c, r.max_power_w or r.power_limit_w)
    )


def _known(old: GpuCrossings | None, now: datetime, *, is_fresh: bool) -> GpuCrossings:
    """After a gap every run begins anew."""
    if old is None:
        return GpuCrossings(used_at=now)
    if not is_fresh:
        return old
    kinds = {name: replace(crossing, since=None) for name, crossing in old.kinds.items()}
    return replace(old, kinds=kinds, used_at=now)


def _patience(name: str) -> timedelta:
    kind = fault_kind(name)
    return timedelta(0) if kind is None else kind.patience


def _beyond(r: GpuReading, limits: Limits) -> dict[str, bool | None]:
    return {
        "GpuHot": _between(r.temp_c, limits.temp_c, COOLER_C),
        "MemoryHot": _between(r.memory_temp_c, limits.memory_temp_c, COOLER_C),
        "PowerHigh": _between(r.power_w, limits.power_w, (1 - LESS_POWER) * (limits.power_w or 0)),
        "Throttled": _slowed(r, limits),
    }


def _between(value: float | None, limit: float | None, margin: float) -> bool | None:
    if value is None or limit is None:
        return None
    if value >= limit:
        return True
    return False if value <= limit - margin else None


def _slowed(r: GpuReading, limits: Limits) -> bool | None:
    if not limits.throttled:
        return False
    return None if r.throttle is None else r.throttle & (HEAT_BITS | BRAKE_BIT) != 0


def _used_at(old: GpuCrossings, r: GpuReading, limits: Limits, now: datetime) -> datetime | None:
    """None: its use is unknown, which is not idle."""
    if r.utilisation_percent is None or not r.answers:
        return None
    return now if r.utilisation_percent >= limits.idle_percent or old.used_at is None else old.used_at


def _idle(
    r: GpuReading,
    limits: Limits,
    used_at: datetime | None,
    others: Iterable[datetime],
    idle_for: timedelta,
    now: datetime,
) -> bool | None:
    """Idle while others of the node work. A node that is idle as a whole is `agent.idleness`'s."""
    if used_at is None or r.utilisation_percent is None:
        return None
    last = max(others, default=None)
    if last is None or now - last >= REST_FOR or r.utilisation_percent >= limits.idle_percent + BUSIER:
        return False
    return True if last == now and now - used_at >= idle_for else None


def _xids(
    old: Mapping[int, datetime], r: GpuReading, limits: Limits, now: datetime, *, calm: bool
) -> dict[int, datetime]:
    """Errors of the last hour that the judge does not judge, of the classes that count."""
    seen = () if calm else (x.xid for x in r.xids if x.xid not in FATAL | WATCHED)
    new = {number: now for number in seen if class_of(number) in limits.xids}
    return {number: at for number, at in old.items() if now - at < XID_KEPT} | new
