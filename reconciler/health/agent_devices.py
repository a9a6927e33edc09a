"""Every GPU as its agent reported it last, healthy ones too: the inventory. For processes that decide nothing.

Agents write on change only, so their branches are fetched seldom. A remote that does not answer leaves what is known.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from threading import Lock

from reconciler.clock import monotonic_s
from reconciler.health.agent_reports import PATTERN, Reports
from reconciler.model.facts import NodeKey, Wanted
from reconciler.store.store_port import Store
from reconciler.trust.machines import Machines
from schemas.errors import EgsError
from schemas.status.node_status import GpuReport

log = logging.getLogger(__name__)

EVERY = timedelta(minutes=1)
"""Time between two fetches."""


class AgentDevices:
    """Reads reports when asked. Safe for threads."""

    def __init__(
        self, store: Store, machines: Machines | None, monotonic: Callable[[], float] = monotonic_s
    ) -> None:
        self._store, self._monotonic, self._lock = store, monotonic, Lock()
        self._reports = Reports(store, machines)
        self._fetched_s: float | None = None

    def __call__(self, wanted: Wanted, now: datetime) -> Mapping[NodeKey, tuple[GpuReport, ...]]:
        """GPUs by node. Never raises."""
        with self._lock:
            self._fetch()
            try:
                found = self._reports.read(wanted.manifests or wanted.clusters, now)
            except EgsError as error:
                log.debug("reports not read reason=%s", error.reason)
                return {}
        return {key: report.gpus for key, report in found.items()}

    def _fetch(self) -> None:
        at_s = self._monotonic()
        if self._fetched_s is not None and at_s - self._fetched_s < EVERY.total_seconds():
            return
        self._fetched_s = at_s
        try:
            self._store.fetch([PATTERN])
        except EgsError as error:
            log.debug("reports not fetched reason=%s", error.reason)


def no_devices(_wanted: Wanted, _now: datetime) -> Mapping[NodeKey, tuple[GpuReport, ...]]:
    """Where no agents' branches can be read."""
    return {}
