"""Controllers, and the appliers inside of clusters in pull mode, as simulated processes on the product's own code."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from reconciler.clusters.pulled_cluster import PullCluster, ReportBranches
from reconciler.loop import Reconciler
from reconciler.model.cluster_port import ClusterDriver
from reconciler.ports import Ports
from reconciler.processes.applier import Applier
from reconciler.status.status_cache import RECORDS_VERSION
from reconciler.store.document_cache import DocumentCache
from reconciler.store.store_port import Store
from schemas.documents.cluster import ClusterSpec
from schemas.reading.reader import READER_VERSION
from schemas.status.gpr_status import GPRStatus
from tests.simulation.clusters import Door
from tests.simulation.process import Process

if TYPE_CHECKING:
    from tests.simulation.system import System


class Controller(Process):
    """`egs-reconciler run`."""

    def __init__(self, system: System, name: str) -> None:
        super().__init__(system, name)
        self._reconciler: Reconciler | None = None
        self._store: Store | None = None
        self._caches: tuple[DocumentCache, DocumentCache] | None = None
        self._doors: dict[str, Door] = {}
        self._pulled: dict[str, tuple[ClusterSpec, ClusterDriver]] = {}
        self.leads = False
        self.last: Mapping[str, GPRStatus] | None = None
        """The requests as it last committed or read them."""

    def begin(self, *, keeps: bool) -> None:
        """See `Process.begin`."""
        if not keeps or self._store is None:
            self._store = self.system.remote.store(self)
            self._caches = (
                DocumentCache(None, READER_VERSION),
                DocumentCache(None, RECORDS_VERSION),
            )
        assert self._caches is not None
        reports = ReportBranches(self._store)
        self._doors, self._pulled, self.leads = {}, {}, False
        election = self.system.election
        ports = Ports(
            self._store,
            self._caches[0],
            partial(self._drivers, reports),
            records=self._caches[1],
            may_lead=None if election is None else partial(election.leads, self),
            settled=reports.settled,
            clock=self.clock,
        )
        self._reconciler = Reconciler(ports, self.system.settings, f"{self.name}-{self.lives}", adopt=True)

    def _drivers(
        self, reports: ReportBranches, specs: Mapping[str, ClusterSpec]
    ) -> Mapping[str, ClusterDriver]:
        return {name: self._driver(reports, name, spec) for name, spec in specs.items()}

    def _driver(self, reports: ReportBranches, name: str, spec: ClusterSpec) -> Any:
        if spec.access is not None and spec.access.pull:
            if name not in self._pulled or self._pulled[name][0] != spec:
                read = partial(reports.read, name, spec)
                self._pulled[name] = (spec, cast(ClusterDriver, PullCluster(name, spec, read)))
            return self._pulled[name][1]
        if name not in self._doors:
            self._doors[name] = Door(self.system.cluster(name, spec), self)
        return self._doors[name]

    def step(self) -> datetime:
        """See `Process.step`."""
        assert self._reconciler is not None
        cycle = self._reconciler.cycle(self.clock.now())
        self.leads, self.last = cycle.leading, None if cycle.facts is None else cycle.facts.requests
        self.system.acted(self, cycle)
        return cycle.wake

    def beside(self) -> None:
        """Committed actions during a long call, unless that call uses the clusters."""
        assert self._reconciler is not None
        hands = self._reconciler.hands
        if not hands.mine.locked():
            hands.round(self.clock.now())


class ApplierProcess(Process):
    """`egs-reconciler apply` inside of one cluster."""

    def __init__(self, system: System, cluster: str) -> None:
        super().__init__(system, f"applier-{cluster}")
        self._cluster = cluster
        self._applier: Applier | None = None
        self._store: Store | None = None
        self._cache: DocumentCache | None = None

    def begin(self, *, keeps: bool) -> None:
        """See `Process.begin`."""
        if not keeps or self._store is None or self._cache is None:
            self._store, self._cache = self.system.remote.store(self), DocumentCache(None, READER_VERSION)
        self._applier = Applier(
            self._store,
            self._cache,
            self._cluster,
            lambda spec: cast(ClusterDriver, Door(self.system.cluster(self._cluster, spec), self)),
            self.system.settings,
            f"{self.name}-{self.lives}",
            clock=self.clock,
        )

    def step(self) -> datetime:
        """See `Process.step`."""
        assert self._applier is not None
        cycle = self._applier.cycle(self.clock.now())
        self.system.acted(self, cycle)
        return cycle.wake
