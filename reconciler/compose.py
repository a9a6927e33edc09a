"""Put the parts of a controller together; the one place that knows all of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from uuid import uuid4

from reconciler.clusters.open import Ground, open_cluster
from reconciler.clusters.port import ClusterDriver
from reconciler.clusters.pull import PullCluster, ReportBranches
from reconciler.loop import Reconciler
from reconciler.settings import Settings
from reconciler.store.cache import DocumentCache
from reconciler.store.git import GitStore
from schemas.cluster import ClusterSpec
from schemas.errors import EgsError
from schemas.reading import READER_VERSION

log = logging.getLogger(__name__)


@dataclass(slots=True)
class OpenClusters:
    """A driver for every cluster in force, opened anew when its manifest changes."""

    ground: Ground
    reports: ReportBranches | None = None  # of clusters that only their own appliers reach
    _open: dict[str, tuple[ClusterSpec, ClusterDriver]] = field(default_factory=dict)
    _told: dict[str, str] = field(default_factory=dict)  # why a cluster is not driven, as the log has it

    def __call__(self, specs: Mapping[str, ClusterSpec]) -> Mapping[str, ClusterDriver]:
        """Drivers by cluster."""
        for name in [name for name in self._open if name not in specs]:
            self._close(name)
        for name, spec in specs.items():
            if name not in self._open or self._open[name][0] != spec:
                self._try(name, spec)
        return {name: driver for name, (_, driver) in self._open.items()}

    def _try(self, name: str, spec: ClusterSpec) -> None:
        """A cluster that cannot be driven counts as out of reach, stops nobody else and is tried again."""
        self._close(name)
        try:
            self._open[name] = (spec, self._driver(name, spec))
        except (EgsError, OSError) as error:
            if self._told.get(name) != str(error):
                reason = error.reason if isinstance(error, EgsError) else type(error).__name__
                log.warning("cluster not driven cluster=%s reason=%s message=%s", name, reason, error)
            self._told[name] = str(error)
        else:
            self._told.pop(name, None)

    def _close(self, name: str) -> None:
        if name in self._open:
            self._open.pop(name)[1].close()

    def _driver(self, name: str, spec: ClusterSpec) -> ClusterDriver:
        if spec.access is not None and spec.access.pull and self.reports is not None:
            return PullCluster(name, spec, partial(self.reports.read, name))
        return open_cluster(name, spec, self.ground)


def ground_of(settings: Settings, wake: Callable[[], None]) -> Ground:
    """What these settings say of clusters; `wake` is called whenever something changed in one."""
    from reconciler.clusters.kubernetes.connect import Keys  # commands that drive no cluster start without it
    from reconciler.clusters.kubernetes.driver import Home

    keys = Keys(settings.kubeconfigs, settings.namespace)
    return Ground(settings.state / "clusters", keys, Home(settings.project, settings.namespace), wake)


def controller(
    settings: Settings,
    *,
    adopt: bool = False,
    may_lead: Callable[[], bool] | None = None,
    wake: Callable[[], None] = lambda: None,
) -> Reconciler:
    """A controller over a real repository, with its state in `settings.state`; see `Reconciler` for the rest.

    `wake` is called whenever a cluster changed, from any thread.
    """
    settings.state.mkdir(parents=True, exist_ok=True)
    store = GitStore(settings.repo, settings.state / "mirror.git", credentials=settings.credentials)
    cache = DocumentCache(settings.state / "documents.sqlite", READER_VERSION)
    reports = ReportBranches(store)
    clusters = OpenClusters(ground_of(settings, wake), reports)
    writer = f"controller-{uuid4().hex[:12]}"
    return Reconciler(
        store, cache, clusters, settings, writer, adopt=adopt, may_lead=may_lead, settled=reports.settled
    )
