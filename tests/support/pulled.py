"""A world whose clusters nobody reaches from outside: in each an applier works, and the controller reads its reports.

Everything is pushed and fetched through the one remote, as in life. Webhooks are quick here: who pushes wakes the
others at the same instant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial

from reconciler.clusters.pulled_cluster import PullCluster, ReportBranches
from reconciler.cycle import Cycle
from reconciler.loop import Reconciler
from reconciler.model.cluster_port import ClusterDriver
from reconciler.ports import Drivers, Ports
from reconciler.processes.applier import Applier
from reconciler.store.document_cache import DocumentCache
from reconciler.store.memory_store import MemoryStore
from reconciler.store.store_port import Store
from schemas.documents.cluster import ClusterSpec
from schemas.errors import Fault, UserError
from schemas.reading.reader import READER_VERSION
from tests.support.crash import BRANCH, FILES, Points, WatchedCluster, WatchedStore
from tests.support.witness import Hold, RecordedState, Verdict, judge
from tests.support.witnessed import END, STEPS
from tests.support.world import World, cluster


def pulled_drivers(reports: ReportBranches) -> Drivers:
    """Every cluster as the controller has it that reads these reports."""
    kept: dict[str, tuple[ClusterSpec, ClusterDriver]] = {}

    def drivers(specs: Mapping[str, ClusterSpec]) -> Mapping[str, ClusterDriver]:
        for name, spec in specs.items():
            if name not in kept or kept[name][0] != spec:
                kept[name] = (spec, PullCluster(name, spec, partial(reports.read, name, spec)))
        return {name: kept[name][1] for name in specs}

    return drivers


class PulledWorld(World):
    """A `World` in pull mode; `appliers` are the processes inside of the clusters, by cluster."""

    appliers: dict[str, Applier]
    lives = 0

    def start(self, may_lead: object = None, clock: object = None) -> Reconciler:
        """A new controller process; the appliers are none of its affair."""
        self._count += 1
        if self._count == 1:
            self.appliers = {}
        store = MemoryStore(self.remote)
        reports = ReportBranches(store)
        return Reconciler(
            Ports(
                store,
                DocumentCache(None, READER_VERSION),
                pulled_drivers(reports),
                may_lead=may_lead,
                settled=reports.settled,
            ),
            self.settings,
            f"controller-{self._count}",
            adopt=self.adopt,
        )

    def apply(self, cluster: str, store: Store | None = None, **more: object) -> Applier:
        """A new applier process inside of that cluster."""
        self.lives += 1
        return Applier(
            MemoryStore(self.remote) if store is None else store,
            DocumentCache(None, READER_VERSION),
            cluster,
            lambda spec: self.inside(cluster, spec),
            self.settings,
            f"applier-{self.lives}",
            **more,  # type: ignore[arg-type]
        )

    def inside(self, cluster: str, spec: ClusterSpec) -> ClusterDriver:
        """The cluster as its applier has it."""
        return super()._open({cluster: spec})[cluster]

    def run(self, until: datetime, limit: int = 4000) -> list[Cycle]:
        """Controller and appliers at every instant that matters to one of them, and when another one pushed."""
        done: list[Cycle] = []
        for _ in range(limit):
            wakes = self._together(done)
            if min(wakes) > max(self.now, until):
                break
            self.now = max(self.now, min(wakes))
        else:
            raise AssertionError(f"no rest after {limit} rounds at {self.now}")
        self.now = max(self.now, until)
        self.log += done
        return done

    def leave_alone(self, until: datetime) -> None:
        """The appliers go on while no controller is there."""
        while self.now < until:
            wakes = [self.wake_of(applier) for applier in self.present()]
            self.now = min([until, *(max(wake, self.now) for wake in wakes)])

    def _together(self, done: list[Cycle]) -> list[datetime]:
        """Everybody's cycle at this instant, again until nobody pushes any more; gives their next instants."""
        for _ in range(50):
            tips = dict(self.remote.tips)
            wakes = [self.wake_of(applier) for applier in self.present()]
            cycle = self.controller.cycle(self.now)
            done.append(cycle)
            wakes.append(cycle.wake)
            for watch in self.watchers:
                watch(cycle)
            if self.remote.tips == tips:
                return [max(wake, self.now) for wake in wakes]
        raise AssertionError(f"they push without an end at {self.now}")

    def wake_of(self, applier: Applier) -> datetime:
        """One cycle of it; one that a person has to help first tries again later."""
        for name in self.fleets.keys() & self.drivers.keys():
            self.drivers[name].follow(self.fleets[name])
        try:
            return applier.cycle(self.now).wake
        except UserError:
            return self.now + self.settings.poll

    def present(self) -> list[Applier]:
        """An applier in every cluster that main has."""
        entries = self.people.diff(None, self.remote.tips["main"]) if self._fetched() else ()
        for entry in entries:
            if entry.path.startswith("clusters/"):
                name = entry.path.removeprefix("clusters/").removesuffix(".yaml")
                if name not in self.appliers:
                    self.appliers[name] = self.apply(name)
        return [applier for _, applier in sorted(self.appliers.items())]

    def _fetched(self) -> bool:
        try:
            self.people.fetch(["main"])
        except Fault:
            return False
        return True


class Killed(BaseException):
    """The process is gone; nothing in it may catch this."""


class PulledWitnessed(PulledWorld):
    """The story of `tests.support.witnessed` in pull mode; the applier's calls that write pass `points`."""

    def __init__(self) -> None:
        self.holds: list[Hold] = []
        self.points = Points()
        files = {**FILES, "clusters/east.yaml": cluster(nodes=3, notice="0d0h1m", access={"pull": True})}
        super().__init__(files, poll=timedelta(minutes=10))

    def kill(self, number: int, when: str) -> None:
        """The applier dies before or after its n-th call that writes; its successor is there a second later."""

        def visit(at: int, _: str, call: Callable[[], object]) -> None:
            if at == number:
                if when == "after":
                    call()
                raise Killed

        self.points.visit = visit

    def apply(self, cluster: str, store: Store | None = None) -> Applier:
        """Its store is watched."""
        watched = WatchedStore(MemoryStore(self.remote), self.points)  # type: ignore[arg-type]
        return super().apply(cluster, store or watched)

    def inside(self, cluster: str, spec: ClusterSpec) -> ClusterDriver:
        """Its writes are watched, and the cluster writes its own history down."""
        new = cluster not in self.drivers
        driver = super().inside(cluster, spec)
        if new:
            self.drivers[cluster]._state = RecordedState(
                None, lambda: self.remote.tips.get(BRANCH), self.holds.append
            )
        return WatchedCluster(driver, self.points)  # type: ignore[arg-type]

    def wake_of(self, applier: Applier) -> datetime:
        """One cycle; a process that is killed in it is followed by another one."""
        try:
            return super().wake_of(applier)
        except Killed:
            (name,) = (name for name, other in self.appliers.items() if other is applier)
            self.appliers[name] = self.apply(name)
            return self.now + timedelta(seconds=1)

    def play(self) -> Verdict:
        """The whole story, and what a stranger says of it."""
        for when, act in STEPS:
            self.run(when)
            act(self)
        self.run(END)
        return judge(MemoryStore(self.remote), BRANCH, self.holds, timedelta(seconds=2))
