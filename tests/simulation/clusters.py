"""Simulated clusters, and the way of each process to them. The hardware keeps the true time, whatever clocks say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from reconciler.clusters.simulated.embedded import EmbeddedCluster
from reconciler.clusters.simulated.simulated_world import World
from reconciler.clusters.simulated.state_file import StateFile
from reconciler.model.clock_reading import Heard
from reconciler.model.cluster_port import ClusterView
from schemas.documents.cluster import ClusterSpec
from schemas.errors import Fault

if TYPE_CHECKING:
    from tests.simulation.process import Process

WRITES = frozenset(
    {
        "ensure_slice", "remove_slice", "check", "add", "evict", "remove", "isolate", "restore", "show_end",
        "drained", "remediate", "scale", "run_workload", "end_workload",
    }
)  # fmt: skip


class WatchedState(StateFile):
    """A cluster's state in memory that shows every change of it."""

    def __init__(self, shown: Callable[[World], None]) -> None:
        super().__init__(None)
        self._shown = shown

    def save(self, world: World) -> None:
        """See `StateFile.save`."""
        if world is not self._world:
            super().save(world)
            self._shown(world)


@dataclass(slots=True)
class Weather:
    """How a cluster's API server answers at present."""

    away: int = 0  # faults that keep it from answering
    loses: int = 0  # faults that lose its answers to writes, which it makes
    slow_s: float = 0.0  # each write takes that long


class Cluster:
    """The real cluster: its nodes do not change with its manifest."""

    def __init__(self, name: str, spec: ClusterSpec, shown: Callable[[str, World], None]) -> None:
        self.name = name
        self.driver = EmbeddedCluster(name, spec)
        self.driver._state = WatchedState(lambda world: shown(name, world))
        self.weather = Weather()

    @property
    def world(self) -> World:
        """Its state as of its last change."""
        with self.driver._state.locked() as world:
            return world


class Door:
    """`ClusterDriver` of one process on one cluster."""

    def __init__(self, cluster: Cluster, process: Process) -> None:
        self._cluster, self._process = cluster, process

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = getattr(self._cluster.driver, name)
        if name in WRITES:
            return lambda *args: self._write(name, found, args)
        return found

    def observe(self, _: object) -> ClusterView:
        """As it is now, with its own clock."""
        now = self._asked()
        view: ClusterView = self._cluster.driver.observe(now)
        return replace(view, clock=Heard(now, self._process.clock.steady_s()))

    def differences(self, slices: Any, _: object) -> Any:
        """See the port."""
        return self._cluster.driver.differences(slices, self._asked())

    def ensure_fleet(self, stamp: Any, _: object) -> Any:
        """Changes nothing here, so it is no write."""
        return self._cluster.driver.ensure_fleet(stamp, self._asked())

    def announce(self, notes: Any, _: object) -> None:
        """Notes are best effort; a lost one is no harm."""
        self._cluster.driver.announce(notes, self._asked())

    def close(self) -> None:
        """Holds nothing."""

    def _asked(self) -> Any:
        if self._cluster.weather.away:
            raise self._silent()
        return self._process.system.timeline.now

    def _write(self, name: str, found: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        weather = self._cluster.weather
        if weather.slow_s:
            self._process.stand_still(weather.slow_s, "slow")
        return self._process.written(name, lambda: self._written(found, args))

    def _written(self, found: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        answer = found(*args[:-1], self._asked())
        if self._cluster.weather.loses:
            raise self._silent()
        return answer

    def _silent(self) -> Fault:
        return Fault(f"the API of cluster {self._cluster.name} did not answer in time", "ClusterUnreachable")
