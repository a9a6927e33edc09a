"""Puts the parts of a controller together; the only module that knows all of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from threading import Event
from uuid import uuid4

from reconciler.approvals.forge_reviews import OneByOne, Reviews
from reconciler.approvals.who_approved import decision_reader_of
from reconciler.clock import SystemClock, Timepiece
from reconciler.clusters.open_cluster import DriverOptions, open_cluster
from reconciler.clusters.pulled_cluster import PullCluster, ReportBranches
from reconciler.forges.forge_port import Forge
from reconciler.loop import Reconciler
from reconciler.model.clock_reading import Heard
from reconciler.model.cluster_port import ClusterDriver
from reconciler.model.observation import Asked, Observed, Watch
from reconciler.ports import Ports
from reconciler.pulls.watcher import Watcher
from reconciler.settings import Settings
from reconciler.status.status_cache import RECORDS_VERSION
from reconciler.store.believed_commit import Belief
from reconciler.store.document_cache import DocumentCache
from reconciler.store.git.git_store import GitStore
from reconciler.telling.courier import Courier
from reconciler.telling.mailroom import Mailroom
from reconciler.telling.route_secrets import Secrets
from reconciler.trust.gate import sources_of
from reconciler.trust.keyring import TrustFolder
from reconciler.trust.machines import machines_of, own_key, signing
from schemas.documents.cluster import ClusterSpec
from schemas.errors import EgsError
from schemas.reading.reader import READER_VERSION

log = logging.getLogger(__name__)

IN_LOOP = timedelta(seconds=5)
"""How much of each half minute the loop may wait for a forge: strict ends wait no longer."""


@dataclass(slots=True)
class OpenClusters:
    """A driver for every cluster in force, opened again when its manifest changes."""

    options: DriverOptions
    reports: ReportBranches | None = None  # for clusters reached only by their own appliers
    _open: dict[str, tuple[ClusterSpec, ClusterDriver]] = field(default_factory=dict)
    _told: dict[str, str] = field(default_factory=dict)  # why a cluster has no driver, as last logged

    def __call__(self, specs: Mapping[str, ClusterSpec]) -> Mapping[str, ClusterDriver]:
        for name in [name for name in self._open if name not in specs]:
            self._close(name)
        for name, spec in specs.items():
            if name not in self._open or self._open[name][0] != spec:
                self._try(name, spec)
        return {name: driver for name, (_, driver) in self._open.items()}

    def _try(self, name: str, spec: ClusterSpec) -> None:
        """A cluster that cannot be opened counts as unreachable, stops no other and is retried."""
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
            return PullCluster(name, spec, partial(self.reports.read, name, spec))
        return open_cluster(name, spec, self.options)


def driver_options_of(settings: Settings, wake: Callable[[], None]) -> DriverOptions:
    """The settings for clusters; `wake` is called after every change in one."""
    # Imported only by commands that drive clusters.
    from reconciler.clusters.kubernetes.api.connection import Keys
    from reconciler.clusters.kubernetes.driver import Home

    keys = Keys(settings.kubeconfigs, settings.namespace)
    return DriverOptions(settings.state / "clusters", keys, Home(settings.project, settings.namespace), wake)


def controller(
    settings: Settings,
    *,
    adopt: bool = False,
    may_lead: Callable[[], bool] | None = None,
    wake: Callable[[], None] = lambda: None,
    hooked: Event | None = None,
    clock: Timepiece | None = None,
) -> Reconciler:
    """A controller on a real repository, with its state in `settings.state`; see `Reconciler`.

    UserError `BadKey`, `BadTrustFolder`, `KeyMissing` or `KeyNotTrusted` for keys that a person must fix first.
    `wake` is called from any thread when a cluster or the forge's approvals changed; the caller sets `hooked`
    when a webhook arrives. `clock` None: each cycle uses the time that it is given.
    """
    settings.state.mkdir(parents=True, exist_ok=True)
    key, machines = own_key(settings.trust), machines_of(settings.trust)
    machines.check_own(key, (clock or SystemClock()).now())
    store = GitStore(
        settings.repo, settings.state / "mirror.git", credentials=settings.credentials, sign=signing(key)
    )
    cache = DocumentCache(settings.state / "documents.sqlite", READER_VERSION)
    records = DocumentCache(settings.state / "records.sqlite", RECORDS_VERSION)
    reports = ReportBranches(store, machines)
    clusters = OpenClusters(driver_options_of(settings, wake), reports)
    writer = f"controller-{uuid4().hex[:12]}"
    clocks: dict[str, Heard] = {}
    hear = partial(clocks.__setitem__, "the forge")
    return Reconciler(
        Ports(
            store,
            cache,
            clusters,
            may_lead=may_lead,
            settled=reports.settled,
            machines=machines,
            sources=sources_of(settings, _forge(settings, IN_LOOP, hear)),
            decision_reader=decision_reader_of(settings, store, _reviews(settings, wake, hooked, hear)),
            records=records,
            mailroom=None if settings.routes is None else Mailroom(Secrets(settings.routes), Courier()),
            clock=clock,
            watch=_watch(settings),
            clocks=lambda: dict(clocks),
        ),
        settings,
        writer,
        adopt=adopt,
    )


def _watch(settings: Settings) -> Watch:
    """Imported at the first look: HTTP is slow to import, and few controllers have endpoints on their way."""
    opened: list[Watch] = []

    def look(asked: Sequence[Asked], now: datetime) -> Observed:
        if not opened and asked:
            from reconciler.telemetry.served_models import ModelWatch

            opened.append(ModelWatch(settings.metrics_files))
        return opened[0](asked, now) if opened else {}

    return look


def _forge(
    settings: Settings, patience: timedelta | None = None, heard: Callable[[Heard], None] = lambda _: None
) -> Forge | None:
    """The settings' forge, with its own connection; None: plain Git."""
    if settings.forge is None:
        return None
    from reconciler.forges.open_forge import open_forge  # imported only if there is a forge

    return open_forge(settings.forge, patience=patience, heard=heard)


def _reviews(
    settings: Settings, wake: Callable[[], None], hooked: Event | None, heard: Callable[[Heard], None]
) -> Reviews | None:
    """The forge's approvals, queried outside the loop."""
    forge = _forge(settings, heard=heard)
    return None if forge is None else Reviews(forge, settings.main_branch, OneByOne(), wake, hooked)


def watcher(settings: Settings) -> Watcher:
    """Posts on pull requests, with its own mirror. UserError `BadForge`, `BadTrustFolder`, or one of `GitStore`."""
    forge = _forge(settings)
    assert forge is not None, "the settings have a forge"
    settings.state.mkdir(parents=True, exist_ok=True)
    machines, keys = machines_of(settings.trust), TrustFolder(settings.trust.folder)
    store = GitStore(settings.repo, settings.state / "pulls.git", credentials=settings.credentials)
    belief = Belief(store, machines.controllers(), store.tips().get(settings.status_branch))
    return Watcher(forge, store, settings, keys.keyring, belief.newest)
