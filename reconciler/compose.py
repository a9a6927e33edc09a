"""Put the parts of a controller together; the one place that knows all of them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from reconciler.clusters.open import open_cluster
from reconciler.clusters.port import ClusterDriver
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

    state: Path
    _open: dict[str, tuple[ClusterSpec, ClusterDriver]] = field(default_factory=dict)
    _told: dict[str, str] = field(default_factory=dict)  # why a cluster is not driven, as the log has it

    def __call__(self, specs: Mapping[str, ClusterSpec]) -> Mapping[str, ClusterDriver]:
        """Drivers by cluster."""
        for name in [name for name in self._open if name not in specs]:
            del self._open[name]
        for name, spec in specs.items():
            if name not in self._open or self._open[name][0] != spec:
                self._try(name, spec)
        return {name: driver for name, (_, driver) in self._open.items()}

    def _try(self, name: str, spec: ClusterSpec) -> None:
        """A cluster that cannot be driven counts as out of reach, stops nobody else and is tried again."""
        self._open.pop(name, None)
        try:
            self._open[name] = (spec, open_cluster(name, spec, self.state))
        except (EgsError, OSError) as error:
            if self._told.get(name) != str(error):
                reason = error.reason if isinstance(error, EgsError) else type(error).__name__
                log.warning("cluster not driven cluster=%s reason=%s message=%s", name, reason, error)
            self._told[name] = str(error)
        else:
            self._told.pop(name, None)


def controller(settings: Settings, *, adopt: bool = False) -> Reconciler:
    """A controller over a real repository, with its state in `settings.state`."""
    settings.state.mkdir(parents=True, exist_ok=True)
    store = GitStore(settings.repo, settings.state / "mirror.git")
    cache = DocumentCache(settings.state / "documents.sqlite", READER_VERSION)
    clusters = OpenClusters(settings.state / "clusters")
    return Reconciler(store, cache, clusters, settings, f"controller-{uuid4().hex[:12]}", adopt=adopt)
