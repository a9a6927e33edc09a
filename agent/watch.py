"""One agent at work: read, judge, report, repeatedly.

A cycle never fails for what may pass: faults of driver or repository are logged, and the next cycle continues. Only an
error that an operator must fix (`UserError`) ends it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from agent.crossings import Crossings, crossed, recalled, with_crossings
from agent.idleness import Lull, lull_after
from agent.judge import Memory, Verdict, after_reboot, judge, judge_away, remembered, verdict_of
from agent.port import GpuReading, Reader
from agent.release import Release, never
from agent.report import Identity, Reporter, report_of
from reconciler.store.store_port import Outcome, Store
from schemas.documents.cluster import Cluster, ClusterSpec, Health
from schemas.documents.maintenance import Maintenance
from schemas.documents.pool import Pool
from schemas.documents.project import Project
from schemas.documents.scheduling import IdleReclaim
from schemas.documents.thresholds import Thresholds
from schemas.errors import Fault
from schemas.reading.reader import read_document
from schemas.rules.view import PROJECT
from schemas.status.xids import FATAL, class_of

log = logging.getLogger(__name__)

Observer = Callable[[tuple[GpuReading, ...], datetime], None]
"""Sees readings; never fails."""


@dataclass(frozen=True, slots=True)
class Orders:
    """What the cluster's manifest says about this node."""

    health: Health = field(default_factory=Health)
    gpus: int | None = None  # None: the manifest does not name this node
    idle_below: int = IdleReclaim().below  # percent; from the project
    alerts: Thresholds = field(default_factory=Thresholds)
    maintenance: tuple[Maintenance, ...] = ()  # windows that include this node

    def calm(self, now: datetime) -> bool:
        """Whether the node is in announced maintenance."""
        return any(item.covers(now) for item in self.maintenance)


def orders_of(spec: ClusterSpec, node: str) -> Orders:
    """Thresholds for every node; the number of GPUs and the limits of their shape for a node of a pool."""
    pool = next((pool for pool in spec.pools if node in pool.node_names()), None)
    windows = tuple(item for item in spec.maintenance if _includes(item, node, pool))
    if pool is None:
        return Orders(spec.health, alerts=spec.alerts, maintenance=windows)
    return Orders(
        spec.health.of_shape(pool.gpu_shape),
        pool.gpus_per_node,
        alerts=spec.alerts.of_shape(pool.gpu_shape),
        maintenance=windows,
    )


def _includes(item: Maintenance, node: str, pool: Pool | None) -> bool:
    whole_cluster = not (item.pools or item.nodes)
    return whole_cluster or node in item.nodes or (pool is not None and pool.name in item.pools)


class Manifest:
    """The last valid `clusters/<cluster>.yaml` on `main`; fetched at most once per `every`."""

    def __init__(self, store: Store, branch: str, who: Identity, every: timedelta) -> None:
        self._store, self._branch, self._who, self._every = store, branch, who, every
        self._orders = Orders()
        self._next: datetime | None = None

    def orders(self, now: datetime) -> Orders:
        """The orders in force; defaults until a valid manifest was read."""
        if self._next is None or now >= self._next:
            self._next = now + self._every
            self._orders = self._fetched() or self._orders
        return self._orders

    def _fetched(self) -> Orders | None:
        path = f"clusters/{self._who.cluster}.yaml"
        try:
            # The agent's own branch too: foreign changes of it are noticed this way, and overwritten.
            tip = self._store.fetch([self._branch, self._who.branch]).get(self._branch)
            data = None if tip is None else self._store.read_path(tip, path)
        except Fault as error:
            log.warning("thresholds not fetched path=%s error=%s", path, error)
            return None
        if data is None:
            log.warning("cluster unknown path=%s; the agent's operator should look at --cluster", path)
            return None
        document = read_document(path, data)
        if not isinstance(document, Cluster):
            log.warning("manifest not usable, the last valid one stays path=%s", path)
            return None
        orders = replace(orders_of(document.spec, self._who.node), idle_below=self._idle_below(tip))
        if orders.gpus is None:
            log.warning(
                "node unknown path=%s node=%s; the agent's operator should look at --node",
                path,
                self._who.node,
            )
        return orders

    def _idle_below(self, tip: str | None) -> int:
        """The project's threshold; unchanged if project.yaml cannot be read."""
        try:
            data = None if tip is None else self._store.read_path(tip, PROJECT)
        except Fault as error:
            log.warning("threshold not fetched path=%s error=%s", PROJECT, error)
            return self._orders.idle_below
        project = None if data is None else read_document(PROJECT, data)
        return project.spec.scheduling.idle.below if isinstance(project, Project) else self._orders.idle_below


class Watch:
    """The agent of one node."""

    def __init__(
        self,
        reader: Reader,
        reporter: Reporter,
        manifest: Manifest,
        who: Identity,
        observe: Observer = lambda *_: None,
        release: Release = never,
    ) -> None:
        """`observe` gets the readings of each cycle, before they are judged; `release` asks to let go of the driver."""
        self._reader, self._reporter, self._manifest, self._who = reader, reporter, manifest, who
        self._observe, self._release = observe, release
        self._released_at: datetime | None = None  # None: the GPUs are read
        self._memory: Memory | None = None  # None: the last report was not read yet
        self._crossings = Crossings()
        self._lull: Lull | None = None  # starts again after a restart: the use in between is unknown
        self.told = False
        """Whether the repository has the result of the last cycle."""
        self._trend = False

    def cycle(self, now: datetime, *, patient: bool = True) -> Verdict | None:
        """Read, judge and report once; None if the GPUs could not be read.

        Not `patient`: what this one reading shows counts at once, because there is no other.
        """
        self.told = False
        try:
            orders = self._manifest.orders(now)
            memory = replace(self._recalled(now), expected=orders.gpus)
        except Fault as error:
            log.warning("node not read node=%s reason=%s error=%s", self._who.node, error.reason, error)
            return None
        if self._lets_go(now):
            # What held still holds, and nothing is judged: the GPUs are being reset.
            self._memory, self._lull = memory, None
            self._report(with_crossings(verdict_of(memory, orders.health), self._crossings), now)
            return None
        calm = orders.calm(now)
        readings = self._read(now)
        if readings is None:
            self._lull = None
            self._memory, away = judge_away(memory, orders.health, now, calm=calm)
            away = with_crossings(away, self._crossings)
            if not away.healthy or away.gpus:  # an agent that never saw its GPUs has nothing to report
                self._report(away, now)
            return None
        self._observe(readings, now)
        for reading in readings:
            self._tell_xids(reading.uuid, tuple(x.xid for x in reading.xids))
        self._memory, verdict = judge(memory, readings, orders.health, now, calm=calm, patient=patient)
        self._crossings = crossed(self._crossings, readings, orders.alerts, now, calm=calm)
        verdict = with_crossings(verdict, self._crossings)
        verdict = replace(verdict, idle_since=self._idle_since(readings, orders, now))
        self._tell_trend(verdict)
        self._report(verdict, now)
        return verdict

    def _lets_go(self, now: datetime) -> bool:
        """Whether the driver is released; it is taken up again by the next read after the time asked for."""
        if not self._release(now):
            if self._released_at is not None:
                log.info("gpu driver taken up again node=%s", self._who.node)
            self._released_at = None
            return False
        if self._released_at is None:
            try:
                self._reader.release()
            except Fault as error:  # a hung call holds the driver, and a reset would hang too
                log.warning("gpu driver not released node=%s error=%s", self._who.node, error)
                return False
            self._released_at = now
            log.info("gpu driver released node=%s", self._who.node)
        return True

    def _read(self, now: datetime) -> tuple[GpuReading, ...] | None:
        """None: the driver cannot be reached, as while it is loaded again."""
        try:
            return self._reader.read(now)
        except Fault as error:
            log.warning("node not read node=%s reason=%s error=%s", self._who.node, error.reason, error)
            return None

    def _idle_since(self, readings: tuple[GpuReading, ...], orders: Orders, now: datetime) -> datetime | None:
        whole = len(readings) >= (orders.gpus or 0)
        self._lull = lull_after(self._lull, readings, orders.idle_below, now) if whole else None
        return self._lull.since if self._lull is not None and self._lull.idle else None

    def _recalled(self, now: datetime) -> Memory:
        if self._memory is None:
            found = self._reporter.previous()
            memory = Memory() if found is None else remembered(found.report)
            if found is not None and not found.rebooted:
                self._crossings = recalled(found.report)
            self._memory = after_reboot(memory, now) if found is not None and found.rebooted else memory
        return self._memory

    def _report(self, verdict: Verdict, now: datetime) -> None:
        try:
            outcome = self._reporter.publish(report_of(verdict, self._who, now, self._released_at))
            self.told = outcome in (None, Outcome.COMMITTED)
        except Fault as error:
            log.warning("report not written node=%s reason=%s error=%s", self._who.node, error.reason, error)

    def _tell_trend(self, verdict: Verdict) -> None:
        if verdict.fault_trend and not self._trend:
            log.warning(
                "faults pile up, an admin should look at the node node=%s faults=%d within_h=24",
                self._who.node,
                len(verdict.faults),
            )
        self._trend = verdict.fault_trend

    def _tell_xids(self, uuid: str, xids: tuple[int, ...]) -> None:
        for xid in xids:
            level = logging.WARNING if xid in FATAL else logging.INFO
            log.log(
                level, "xid seen node=%s gpu=%s xid=%d class=%s", self._who.node, uuid, xid, class_of(xid)
            )
