"""The agents of one cluster's nodes, as one simulated process; single agents may lie or stop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from agent.report import Identity, Reporter
from agent.simulated import SimulatedReader
from agent.watch import Manifest, Watch
from schemas.errors import Fault
from tests.simulation.process import Process

if TYPE_CHECKING:
    from tests.simulation.clusters import Cluster
    from tests.simulation.system import System

EVERY, ILL = timedelta(minutes=20), timedelta(minutes=2)
"""How often agents read while all is well, and while a node is not: reading every ten seconds would cost most of a run.

They also read when a fault begins and when it ends.
"""
MANIFEST_EVERY = timedelta(hours=1)


class Agents(Process):
    """Every node's `egs-agent run` in one cluster."""

    def __init__(self, system: System, cluster: Cluster) -> None:
        super().__init__(system, f"agents-{cluster.name}")
        self._cluster = cluster
        self._watches: dict[str, Watch] = {}
        self.stopped: set[str] = set()
        self.lying: set[str] = set()

    def begin(self, *, keeps: bool) -> None:
        """See `Process.begin`."""
        self._watches = {}

    def step(self) -> datetime:
        """Every agent reads, judges and reports once."""
        now = self.clock.now()
        nodes = [node for node in self._cluster.driver._fleet.views if node not in self.stopped]
        verdicts = [self._watch(node).cycle(now) for node in nodes]
        well = all(verdict is not None and verdict.healthy for verdict in verdicts)
        return now + (EVERY if well else ILL)

    def _watch(self, node: str) -> Watch:
        if node not in self._watches:
            store = self.system.remote.store(self)
            who = Identity(self._cluster.name, node, node, f"{node}/{self.lives}")
            manifest = Manifest(store, "main", who, MANIFEST_EVERY)
            reader = SimulatedReader(partial(self._readings, node))
            self._watches[node] = Watch(reader, Reporter(store, who), manifest, who)
        return self._watches[node]

    def _readings(self, node: str, _: datetime) -> Sequence[Mapping[str, object]]:
        """By the true time; a liar has lost a GPU."""
        now = self.system.timeline.now
        found = self._cluster.driver.gpu_readings(node, now)
        if node in self.lying:
            if not found:
                raise Fault(f"node {node} has no GPU to lie about", "NodeNotReady")
            return found[1:]
        return found
