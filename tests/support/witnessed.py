"""The story of `tests.support.crash` in memory, under a witness: for faults that need no process to die.

A push of the status branch may meet any fate, and a controller may stand still before any call that writes while
another one plays on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta

from reconciler.clusters.simulated.simulated_world import Job
from reconciler.loop import Reconciler
from reconciler.model.cluster_port import ClusterDriver
from reconciler.store.memory_store import MemoryStore
from schemas.documents.cluster import ClusterSpec
from tests.support.crash import BRANCH, FILES, NODE, Points, WatchedCluster
from tests.support.memory_remote import Fate, Operation
from tests.support.witness import Hold, RecordedState, Verdict, judge
from tests.support.world import World, approval, at, gpr, gpr_path

END = at(50)
"""The story is over well before."""


def _approve(world: World) -> None:
    status = world.facts().requests.get("c/big")
    assert status is not None, "c/big was not filed in time to be approved"
    world.commit({"approvals/c/big/ada.yaml": approval("c", "big", status.spec_digest)})


STEPS: tuple[tuple[datetime, Callable[[World], None]], ...] = (
    (at(2), lambda _: None),  # whoever could not take the branch at once is woken
    (at(3), lambda w: w.drivers["east"].submit(Job("trainer", "a", 8), w.now)),
    (at(4), lambda w: w.report(NODE, False)),
    (at(6), lambda w: w.report(NODE, True)),
    (at(7), _approve),
    (at(15), lambda w: w.commit({gpr_path("a/train"): gpr("a", "train", 2, "40m", earlyRelease=True)})),
)


class Witnessed(World):
    """A world with the story's files, whose clusters write their history down and whose pushes are watched."""

    def __init__(self) -> None:
        self.holds: list[Hold] = []
        self.points = Points()
        self.fates: dict[int, Fate] = {}
        self.pushes = 0
        self.steps = STEPS
        self.before_push: Callable[[], object] = lambda: None
        super().__init__(FILES, poll=timedelta(minutes=10))
        self.remote.hook = self._fate

    def _fate(self, operation: Operation) -> Fate:
        if operation.kind != "push" or operation.branch != BRANCH:
            return Fate.PASS
        if operation.when == "before":
            self.pushes += 1
            self.before_push()
            self.points.around("push", lambda: None)
        fate = self.fates.get(self.pushes, Fate.PASS)
        return fate if (operation.when == "after") == (fate is Fate.HIDE) else Fate.PASS

    def _open(self, specs: Mapping[str, ClusterSpec]) -> Mapping[str, ClusterDriver]:
        new = specs.keys() - self.drivers.keys()
        super()._open(specs)
        for name in new:
            self.drivers[name]._state = RecordedState(None, self._tip, self.holds.append)
        return {name: WatchedCluster(self.drivers[name], self.points) for name in specs}  # type: ignore[misc]

    def _tip(self) -> str | None:
        return self.remote.tips.get(BRANCH)

    def play_all(self, controllers: list[Reconciler], until: datetime = END) -> None:
        """The story with several controllers, each awake when it wants to be; more may join on the way."""
        wakes: dict[int, datetime] = {}
        for _ in range(2000):
            wanted = [wakes.get(number, self.now) for number in range(len(controllers))]
            self.now = max(self.now, min([*wanted, *(when for when, _ in self.steps[:1])]))
            if self.now > until:
                return
            for act in self._due():
                act(self)
                wakes = {}  # as a webhook wakes them
            for number, controller in enumerate(list(controllers)):
                if wakes.get(number, self.now) <= self.now:
                    cycle = controller.cycle(self.now)
                    self.log.append(cycle)
                    wakes[number] = cycle.wake
        raise AssertionError(f"no rest at {self.now}")

    def _due(self) -> Iterator[Callable[[World], None]]:
        while self.steps and self.steps[0][0] <= self.now:
            yield self.steps[0][1]
            self.steps = self.steps[1:]

    def verdict(self, slack: timedelta = timedelta()) -> Verdict:
        """What a stranger says of the run so far."""
        return judge(MemoryStore(self.remote), BRANCH, self.holds, slack)
