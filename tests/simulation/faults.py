"""What goes wrong: each fault begins, is recorded for the auditor's allowances, and ends."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

from reconciler.clusters.simulated import scripted_faults as scripted
from tests.simulation.agents import Agents
from tests.simulation.clusters import Cluster
from tests.simulation.controllers import ApplierProcess, Controller
from tests.simulation.process import Fate, Process, Trap

if TYPE_CHECKING:
    from tests.simulation.story import Happening
    from tests.simulation.system import System


class Faults:
    """Makes faults in one system."""

    def __init__(self, system: System) -> None:
        self._system = system

    def act(self, what: Happening) -> None:
        """One fault begins."""
        self._system.count["fault"] += 1
        getattr(self, "do_" + what.do.replace(" ", "_"))(what)

    def _process(self, what: Happening) -> Process:
        """One that leads, or an applier, more often than others."""
        processes = self._system.processes
        leads = [
            p for p in processes if isinstance(p, ApplierProcess) or (isinstance(p, Controller) and p.leads)
        ]
        among = leads if leads and what.n % 3 else processes
        return among[what.n // 3 % len(among)]

    def _cluster(self, what: Happening) -> Cluster:
        clusters = self._system.clusters
        return clusters[sorted(clusters)[what.n % len(clusters)]]

    def _holds(self, kind: str, whom: str, seconds: float, end: Callable[[], object]) -> None:
        """It is recorded, and ends after that time."""
        timeline = self._system.timeline
        trouble = self._system.troubles.begin(kind, whom, timeline.now)
        trouble.until = timeline.now + timedelta(seconds=seconds)
        timeline.after(seconds, end)

    # -- processes -------------------------------------------------------------------------------------------

    def do_kill(self, what: Happening) -> None:
        """At its m-th write from now; `for good`: its folder is lost."""
        how = what.how.split()[0]
        self._process(what).traps.append(
            Trap(what.m, how, float(what.seconds), keeps=not what.how.endswith("good"))
        )

    def do_pause(self, what: Happening) -> None:
        self._process(what).traps.append(Trap(what.m, "pause", float(what.seconds)))

    def do_freeze(self, what: Happening) -> None:
        self._process(what).freeze(what.seconds)

    def do_caches_damaged(self, what: Happening) -> None:
        """A process is killed at once, and comes back without its folder."""
        self._process(what).die(Trap(0, "after", 1.0, keeps=False))

    def do_clock_jumps(self, what: Happening) -> None:
        process = self._process(what)
        process.clock.jump(what.seconds * 2 if what.how == "ahead" else -what.seconds * 2)
        process.wake()
        self._system.clock_wrong(process)
        self._holds("clock", process.name, what.seconds + 60, lambda: self._right(process))

    def do_clock_drifts(self, what: Happening) -> None:
        process = self._process(what)
        process.clock.run_at(1.02 if what.how == "ahead" else 0.98)
        self._system.clock_wrong(process)
        self._holds("clock", process.name, what.seconds * 3, lambda: self._right(process))

    def _right(self, process: Process) -> None:
        process.clock.correct()
        process.wake()

    # -- the remote ------------------------------------------------------------------------------------------

    def do_push(self, what: Happening) -> None:
        self._process(what).fates.append(Fate(what.how, what.m, float(what.seconds)))
        self._holds("remote", "", 30 * what.m, lambda: None)

    def do_remote_away(self, what: Happening) -> None:
        self._system.remote_away += 1
        self._holds("remote", "", what.seconds, self._remote_back)

    def _remote_back(self) -> None:
        self._system.remote_away -= 1

    def do_cut_off(self, what: Happening) -> None:
        process = self._process(what)
        self._system.cut_off[process.name] += 1
        self._holds("remote", process.name, what.seconds, lambda: self._joined(process))

    def _joined(self, process: Process) -> None:
        self._system.cut_off[process.name] -= 1

    def do_status_deleted(self, what: Happening) -> None:
        self._system.damage(None)

    def do_status_set_back(self, what: Happening) -> None:
        self._system.damage(what.m)

    def do_agent_branch_deleted(self, what: Happening) -> None:
        remote = self._system.remote
        branches = [b for b in remote.branches() if b.startswith(("egs/agents/", "egs/clusters/"))]
        if branches:
            remote.point(branches[what.n % len(branches)], None)

    def do_news_lost(self, what: Happening) -> None:
        self._system.news_lost += 1
        self._holds("news", "", what.seconds, self._news_back)

    def _news_back(self) -> None:
        self._system.news_lost -= 1

    # -- clusters --------------------------------------------------------------------------------------------

    def do_api_away(self, what: Happening) -> None:
        weather = self._cluster(what).weather

        def back() -> None:
            weather.away -= 1

        weather.away += 1
        self._holds("api", self._cluster(what).name, what.seconds, back)

    def do_answers_lost(self, what: Happening) -> None:
        weather = self._cluster(what).weather

        def back() -> None:
            weather.loses -= 1

        weather.loses += 1
        self._holds("api", self._cluster(what).name, what.seconds, back)

    def do_api_slow(self, what: Happening) -> None:
        weather = self._cluster(what).weather

        def back() -> None:
            weather.slow_s = 0.0

        weather.slow_s = 1.0 + what.m
        self._holds("api", self._cluster(what).name, what.seconds, back)

    # -- nodes and agents ------------------------------------------------------------------------------------

    def _inject(self, what: Happening, kind: type, **more: object) -> None:
        cluster, now = self._cluster(what), self._system.timeline.now
        nodes = list(cluster.driver._fleet.views)
        until = now + timedelta(seconds=what.seconds)
        node = nodes[what.m % len(nodes)]
        cluster.driver.inject(kind(node=node, at=now, until=until, **more))
        self._holds("node", f"{cluster.name}/{node}", what.seconds, lambda: self._noticed(cluster))
        self._noticed(cluster)

    def _noticed(self, cluster: Cluster) -> None:
        """Its agents look."""
        for process in self._system.processes:
            if process.name == f"agents-{cluster.name}":
                process.wake()

    def do_node_flaps(self, what: Happening) -> None:
        """Away three times, a while apart."""
        self._inject(what, scripted.NodeDies)
        for turn in (1, 2):
            self._system.timeline.after(
                turn * (what.seconds + 45), lambda: self._inject(what, scripted.NodeDies)
            )

    def do_cordon(self, what: Happening) -> None:
        self._inject(what, scripted.NodeCordoned)

    def do_drain_hangs(self, what: Happening) -> None:
        """Its pods do not stop, so the node is not free in time."""
        self._inject(what, scripted.DrainHangs)
        self._holds("drain", "", what.seconds, lambda: None)

    def do_check_fails(self, what: Happening) -> None:
        stage, check = (("pre", "NodeHealth"), ("post", "Network"))[what.n % 2]
        self._inject(what, scripted.CheckFails, stage=stage, check=check, times=1 + what.m % 2)

    def do_gpu_fails(self, what: Happening) -> None:
        self._inject(what, scripted.GpuFails, gpu=0, xid=79)

    def _agent(self, what: Happening, told: Callable[[Agents], set[str]]) -> None:
        found = [p for p in self._system.processes if isinstance(p, Agents)]
        if not found:
            return
        agents = found[what.n % len(found)]
        nodes = list(self._system.clusters[agents.name.removeprefix("agents-")].driver._fleet.views)
        node = nodes[what.m % len(nodes)]
        told(agents).add(node)
        agents.wake()
        self._holds("agent", node, what.seconds, lambda: self._honest(agents, told(agents), node))

    def _honest(self, agents: Agents, those: set[str], node: str) -> None:
        those.discard(node)
        agents.wake()

    def do_agent_stops(self, what: Happening) -> None:
        self._agent(what, lambda agents: agents.stopped)

    def do_agent_lies(self, what: Happening) -> None:
        self._agent(what, lambda agents: agents.lying)
