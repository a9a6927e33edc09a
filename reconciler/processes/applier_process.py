"""The process inside a cluster that carries out the controller's commits: `egs-reconciler apply`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from uuid import uuid4

from reconciler.clock import Timepiece
from reconciler.clusters.open_cluster import open_cluster
from reconciler.compose import driver_options_of
from reconciler.model.cluster_port import ClusterDriver
from reconciler.processes.applier import Applier
from reconciler.processes.awaited_cluster import Awaiting
from reconciler.processes.metrics import Metrics
from reconciler.processes.probes import Health, alive, ready
from reconciler.processes.wake import Waking
from reconciler.settings import Settings
from reconciler.signals import wait_for
from reconciler.store.document_cache import DocumentCache
from reconciler.store.git.git_store import GitStore
from reconciler.trust.machines import machines_of, own_key, signing
from schemas.documents.cluster import Access, ClusterSpec
from schemas.reading.reader import READER_VERSION


@dataclass(frozen=True, slots=True)
class Where:
    """The cluster that this process acts in."""

    cluster: str
    kubeconfig: Path | None = None  # None: the cluster it runs in


class Inside:
    """One applier, its loop and its health."""

    def __init__(
        self,
        settings: Settings,
        where: Where,
        clock: Timepiece,
        metrics: Metrics,
        may_act: Callable[[], bool] | None = None,
    ) -> None:
        metrics.expect(where.cluster)
        settings.state.mkdir(parents=True, exist_ok=True)
        sign = signing(own_key(settings.trust))
        store = GitStore(
            settings.repo, settings.state / "mirror.git", credentials=settings.credentials, sign=sign
        )
        cache = DocumentCache(settings.state / "documents.sqlite", READER_VERSION)
        applier = Applier(
            store,
            cache,
            where.cluster,
            partial(self._driver, settings, where),
            settings,
            f"applier-{uuid4().hex[:12]}",
            may_act=may_act or (lambda: True),
            machines=machines_of(settings.trust),
            clock=clock,
        )
        self._clock = clock
        awaiting = Awaiting(applier, where.cluster, settings.poll)
        tried, beside = partial(metrics.attempted, where.cluster), applier.hands.round
        self._loop = Waking(awaiting, clock, tried=tried, fatal=(), beside=beside)
        self.loops: Mapping[str, Waking] = {where.cluster: self._loop}

    def _driver(self, settings: Settings, where: Where, spec: ClusterSpec) -> ClusterDriver:
        """The cluster's own driver; changes there wake the loop."""
        options = driver_options_of(settings, self.wake)
        if where.kubeconfig is not None:
            from reconciler.clusters.kubernetes.api.connection import Keys  # not needed inside the cluster

            options = replace(options, keys=Keys(where.kubeconfig.parent))
            spec = spec.edited(access=Access(kubeconfig=where.kubeconfig.name))
        return open_cluster(where.cluster, spec, options)

    def start(self) -> None:
        self._loop.start()

    def end(self) -> None:
        """Begins nothing new; safe to call from a signal handler."""
        self._loop.ended.set()

    def wait(self) -> None:
        wait_for(self._loop.ended)

    def stop(self) -> bool:
        """Stops after the running cycle; False: it takes too long."""
        return self._loop.stop()

    def wake(self) -> None:
        self._loop.wake()

    def wakers(self) -> dict[str, Callable[[], None]]:
        """Called after changes in the repository."""
        return {name: loop.wake for name, loop in self.loops.items()}

    def alive(self) -> Health:
        return alive({name: loop.progress for name, loop in self.loops.items()}, self._clock.now())

    def ready(self) -> Health:
        return ready({name: loop.progress for name, loop in self.loops.items()})
