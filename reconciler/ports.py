"""A controller's connections: a repository, clusters, a forge, an election, clocks. Values only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from reconciler.approvals.who_approved import DecisionReader
from reconciler.clock import Timepiece
from reconciler.model.cluster_port import ClusterDriver
from reconciler.model.observation import Watch
from reconciler.store.document_cache import DocumentCache
from reconciler.store.store_port import Store
from reconciler.telling.mailroom import Mailroom
from reconciler.timekeeping.timekeeper import Others
from reconciler.trust.machines import Machines
from reconciler.trust.step_evidence import Sources
from schemas.documents.cluster import ClusterSpec

Drivers = Callable[[Mapping[str, ClusterSpec]], Mapping[str, ClusterDriver]]
"""Opens (or keeps open) a driver for every cluster in force."""


@dataclass(frozen=True, slots=True)
class Ports:
    """The parts around a controller; those with a default are optional."""

    store: Store
    cache: DocumentCache
    """Parsed documents, by blob."""
    drivers: Drivers
    records: DocumentCache | None = None
    """A cache of the status branch for the next process; None: that one reads all of it."""
    machines: Machines | None = None
    """Verifies signatures of controllers and agents; None: being able to push suffices."""
    sources: Sources | None = None
    """The evidence for judging main; None: from `settings.trust`, without a forge."""
    decision_reader: DecisionReader | None = None
    """Finds the approvals that count; None: from `settings.trust`, without a forge."""
    mailroom: Mailroom | None = None
    """Sends the messages of routes; None: none are sent."""
    may_lead: Callable[[], bool] | None = None
    """True while this process is elected; None: no election, only the branch decides."""
    settled: Callable[[datetime, bool], bool] = lambda _, reachable: reachable
    """False postpones deciding: the repository answers again, but its appliers have not reported yet."""
    clock: Timepiece | None = None
    """Read again after each slow step; None: time stands still in a cycle, as in a simulation."""
    watch: Watch = lambda _asked, _now: {}
    """Observes endpoints whose weights change; by default nothing is observed."""
    clocks: Others = dict
    """Clocks besides those of clusters."""
