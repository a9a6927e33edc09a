"""Random histories of a small fleet: whatever people, nodes and clusters do, the laws hold in every cycle.

A history is data: pauses and happenings, drawn by Hypothesis, the same in every run and printed when it fails. Names
are drawn as numbers and taken modulo what there is, so that a shorter history stays a history.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from reconciler.clusters.simulated.scripted_faults import (
    ApiFails,
    CheckFails,
    DrainHangs,
    NodeCordoned,
    NodeDies,
)
from reconciler.clusters.simulated.simulated_world import Job
from schemas.errors import UserError
from schemas.reading.units import format_instant
from schemas.status.gpr_status import TERMINAL, WAITING, Phase
from tests.support import world as build
from tests.support.laws import Laws
from tests.support.profile import examples
from tests.support.world import World, gpr_path

SLICES = ("a", "b", "c")
NODES = {"east": 3, "west": 2}
PAUSES = (0.0, 0.2, 1.0, 4.0, 15.0, 40.0)
TOLD_WHY = frozenset({
    "FitsNowhere", "LimitExceeded", "NeedsApproval", "NodesOut", "ClusterObserved", "ClusterUnreachable", "Stopped",
})  # fmt: skip
"""Reasons with which a request may still wait when everything else is over."""


@dataclass(frozen=True)
class Step:
    """Something that happens after a pause (minutes); what the numbers pick depends on what there is."""

    pause: float
    what: str
    n: int = 0
    m: int = 0
    minutes: int = 0


WHAT = (
    "file", "file", "file", "file", "edit", "release", "cancel", "delete", "extend", "approve", "reject",
    "node dies", "check fails", "drain hangs", "cordon", "report bad", "report bad", "report good", "clear",
    "cluster away", "answer lost", "steal", "restart", "absence", "remote away", "maintenance", "quota", "limit",
    "prices", "observe", "invalid request", "invalid cluster", "mend", "gone slice", "job",
    "policy", "stop", "start", "rest",
)  # fmt: skip


def steps(
    what: tuple[str, ...], pauses: tuple[float, ...], minutes: tuple[int, ...]
) -> st.SearchStrategy[Step]:
    """Happenings of these kinds."""
    picks = st.integers(0, 11)
    return st.builds(
        Step, st.sampled_from(pauses), st.sampled_from(what), picks, picks, st.sampled_from(minutes)
    )


filed = st.lists(steps(("file",), (0.0, 0.5), (20, 60, 100, 240)), min_size=3, max_size=6)
happen = st.lists(steps(WHAT, PAUSES, (1, 3, 10, 30, 60, 150)), min_size=5, max_size=22)
histories = st.builds(lambda first, then: [*first, *then], filed, happen)


@settings(
    max_examples=examples(50),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
    database=None,
)
@given(histories)
def test_the_laws_hold_in_every_cycle_of_any_history(history: list[Step]) -> None:
    play = History()
    for step in history:
        play.through(step)
        note(f"{play.world.now:%d %H:%M:%S} {step.what} {play.said}")
    play.to_the_end()
    assert play.laws.broken == []


@dataclass
class History:
    """A world, and what each kind of step does to it."""

    world: World = field(init=False)
    laws: Laws = field(init=False)
    said: str = ""
    count: int = 0
    specs: dict[str, dict[str, object]] = field(default_factory=dict)
    clusters: dict[str, dict[str, object]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.clusters = {name: {"nodes": n, "pricePerGpuHour": 2} for name, n in NODES.items()}
        files = {f"clusters/{name}.yaml": build.cluster(name, **spec) for name, spec in self.clusters.items()}  # type: ignore[arg-type]
        spans = {"a": ("east", "west"), "b": ("west", "east"), "c": ("east",)}
        files |= {f"slices/{s}/slice.yaml": build.slice_(s, spans[s]) for s in SLICES}
        self.world = World(files, poll=timedelta(minutes=30))
        self.laws = Laws(self.world)
        self.world.run(self.world.now)

    def through(self, step: Step) -> None:
        """The pause, the happening, and the controller's rest after it."""
        self.world.run(self.world.now + timedelta(minutes=step.pause))
        self.said = ""
        getattr(self, "do_" + step.what.replace(" ", "_"))(step)
        self.world.run(self.world.now)

    def to_the_end(self) -> None:
        """Days later, when every fault is over, nobody was forgotten."""
        self.world.run(self.world.now + timedelta(days=2), limit=6000)
        for key, status in self.world.facts().requests.items():
            done = status.phase in TERMINAL or status.phase is Phase.PENDING_APPROVAL
            done = done or (status.assignment is not None and self._is_observed(status.assignment.cluster))
            if not done and status.reason not in TOLD_WHY:
                self.laws.broken.append(f"{key} is {status.phase} days later, reason {status.reason}")
        self.laws.reads_back()

    def _is_observed(self, name: str) -> bool:
        return self.clusters[name].get("mode") == "observe"

    # -- people -----------------------------------------------------------------------------------------------

    def _write(self, key: str, **change: object) -> None:
        self.specs[key] = self.specs.get(key, {}) | change
        slice_name, _, name = key.partition("/")
        self.world.commit({gpr_path(key): build.gpr(slice_name, name, **self.specs[key])})  # type: ignore[arg-type]
        self.said = f"{key} {change}"

    def _some(self, n: int, *phases: Phase) -> str | None:
        found = sorted(
            k for k, s in self.world.facts().requests.items() if s.phase in phases and k in self.specs
        )
        return found[n % len(found)] if found else None

    def do_file(self, step: Step) -> None:
        self.count += 1
        more: dict[str, object] = {
            "priority": (50, 101, 101, 150, 250)[step.m % 5],
            "duration": f"{step.minutes}m",
        }
        if step.n % 5 == 1:
            more["start"] = ("promised", "ready")[step.m % 2]
        if step.n % 7 == 2:
            more["notBefore"] = format_instant(self.world.now + timedelta(minutes=step.minutes))
        self._write(f"{SLICES[step.n % 3]}/r{self.count}", nodes=1 + step.n % 4 % 3, **more)

    def do_edit(self, step: Step) -> None:
        key = self._some(step.n, *WAITING, Phase.PROVISIONED, Phase.PROVISIONING)
        changes: tuple[dict[str, object], ...] = (
            {"duration": f"{step.minutes}m"}, {"nodes": 1 + step.m % 3}, {"priority": 20 * (step.m + 1)},
            {"displayName": "renamed"}, {"clusters": ["east"]}, {"start": "asap"},
        )  # fmt: skip
        if key is not None:
            self._write(key, **changes[step.m % len(changes)])

    def do_release(self, step: Step) -> None:
        if key := self._some(step.n, Phase.PROVISIONED, Phase.PROVISIONING):
            self._write(key, earlyRelease=True)

    def do_cancel(self, step: Step) -> None:
        if key := self._some(step.n, *WAITING):
            self._write(key, earlyRelease=True)

    def do_delete(self, step: Step) -> None:
        if key := self._some(step.n, *Phase):
            self.world.commit({gpr_path(key): None})
            del self.specs[key]
            self.said = key

    def do_extend(self, step: Step) -> None:
        if key := self._some(step.n, Phase.PROVISIONED):
            self._write(key, extend=f"{step.minutes}m")

    def do_approve(self, step: Step, decision: str = "approve") -> None:
        if key := self._some(step.n, *WAITING):
            slice_name, _, name = key.partition("/")
            spec: dict[str, object] = {}
            if step.m % 2 and decision == "approve":
                spec["notAfter"] = format_instant(self.world.now + timedelta(minutes=step.minutes))
            text = build.approval(slice_name, name, self.world.status(key).spec_digest, decision, **spec)  # type: ignore[arg-type]
            self.world.commit({f"approvals/{slice_name}/{name}/ada.yaml": text})
            self.said = key

    def do_reject(self, step: Step) -> None:
        self.do_approve(step, "reject")

    def do_job(self, step: Step) -> None:
        name = SLICES[step.n % 3]
        view = self.world.drivers["east"].observe if "east" in self.world.drivers else None
        if view is not None:
            self.count += 1
            try:
                job = Job(f"j{self.count}", name, 4 * (step.m % 3), timedelta(minutes=step.minutes))
                self.world.drivers["east"].submit(job, self.world.now)
            except UserError as error:
                self.said = error.reason

    # -- admins -----------------------------------------------------------------------------------------------

    def _cluster(self, name: str, **change: object) -> None:
        self.clusters[name] |= change
        self.world.commit({f"clusters/{name}.yaml": build.cluster(name, **self.clusters[name])})  # type: ignore[arg-type]
        self.said = f"{name} {change}"

    def do_maintenance(self, step: Step) -> None:
        begin = self.world.now + timedelta(minutes=5 * step.m)
        window: dict[str, object] = {
            "begin": format_instant(begin), "end": format_instant(begin + timedelta(minutes=step.minutes)),
        }  # fmt: skip
        window |= {"pools": ["h100"]} if step.n % 3 == 0 else {"nodes": [f"h100-{1 + step.n % 2}"]}
        self._cluster(("east", "west")[step.n % 2], maintenance=[window])

    def _slice(self, step: Step, **change: object) -> None:
        name = SLICES[step.n % 3]
        spans = {"a": ("east", "west"), "b": ("west", "east"), "c": ("east",)}
        self.world.commit({f"slices/{name}/slice.yaml": build.slice_(name, spans[name], **change)})
        self.said = f"{name} {change}"

    def do_policy(self, step: Step) -> None:
        """Preemption, idle reclaim and a reserve, each on or off."""
        scheduling: dict[str, object] = {}
        if step.n % 4:
            scheduling["preemption"] = {"guaranteed": f"{step.minutes % 40}m", "notice": f"{1 + step.m}m"}
        if step.m % 2:
            scheduling["idle"] = {"maxTimeout": f"{10 + step.minutes}m", "notice": "5m"}
        if step.n % 3 == 0:
            scheduling["reserve"] = [{"cluster": ("east", "west")[step.m % 2], "pool": "h100", "nodes": 1}]
        self.world.commit({"project.yaml": build.project(scheduling=scheduling)})
        self.said = str(scheduling)

    def do_stop(self, step: Step) -> None:
        if key := self._some(step.n, *WAITING, Phase.PROVISIONED, Phase.PROVISIONING):
            self._write(key, stopped=True)

    def do_start(self, step: Step) -> None:
        stopped = sorted(key for key, spec in self.specs.items() if spec.get("stopped"))
        if stopped:
            self._write(stopped[step.n % len(stopped)], stopped=False)

    def do_quota(self, step: Step) -> None:
        self._slice(step, quota={"gpus": (8, 16, 64)[step.m % 3]})

    def do_limit(self, step: Step) -> None:
        self._slice(step, limits={"maxDuration": f"{step.minutes}m"})

    def do_mend(self, step: Step) -> None:
        self._slice(step)

    def do_prices(self, step: Step) -> None:
        name = ("east", "west")[step.n % 2]
        self._cluster(name, pricePerGpuHour=step.m, drain=f"{1 + step.m}m", prepare=f"{1 + step.m % 4}m")

    def do_observe(self, step: Step) -> None:
        self._cluster("west", mode=("observe", "manage")[step.m % 2])

    def do_clear(self, step: Step) -> None:
        name = ("east", "west")[step.n % 2]
        cleared = [
            {"node": f"h100-{i + 1}", "at": format_instant(self.world.now)} for i in range(NODES[name])
        ]
        self._cluster(name, cleared=cleared)

    def do_invalid_request(self, step: Step) -> None:
        if key := self._some(step.n, *Phase):
            self.world.commit({gpr_path(key): "kind: GPR\nspec: {nodes: many}\n"})
            self.said = key

    def do_invalid_cluster(self, step: Step) -> None:
        self.world.commit({f"clusters/{('east', 'west')[step.n % 2]}.yaml": "pools: gone\n"})

    def do_gone_slice(self, step: Step) -> None:
        self.world.commit({f"slices/{SLICES[step.n % 3]}/slice.yaml": None})

    # -- nodes, clusters, controllers -------------------------------------------------------------------------

    def _node(self, step: Step) -> tuple[str, str]:
        name = ("east", "west")[step.n % 2]
        self.said = f"{name}/h100-{1 + step.m % NODES[name]} for {step.minutes}"
        return name, f"h100-{1 + step.m % NODES[name]}"

    def _inject(self, step: Step, kind: type, **more: object) -> None:
        name, node = self._node(step)
        until = self.world.now + timedelta(minutes=step.minutes)
        self.world.drivers[name].inject(kind(node=node, at=self.world.now, until=until, **more))

    def do_node_dies(self, step: Step) -> None:
        self._inject(step, NodeDies)

    def do_cordon(self, step: Step) -> None:
        self._inject(step, NodeCordoned)

    def do_drain_hangs(self, step: Step) -> None:
        self._inject(step, DrainHangs)

    def do_check_fails(self, step: Step) -> None:
        stage, check = (("pre", "NodeHealth"), ("post", "Network"))[step.minutes % 2]
        self._inject(step, CheckFails, stage=stage, check=check, times=1 + step.m % 2)

    def do_cluster_away(self, step: Step, acted: bool = False) -> None:
        name = ("east", "west")[step.n % 2]
        until = self.world.now + timedelta(minutes=min(step.minutes, 1 if acted else 1000))
        self.world.drivers[name].inject(ApiFails(at=self.world.now, until=until, acted=acted))
        self.said = f"{name} until {until:%H:%M:%S}"

    def do_answer_lost(self, step: Step) -> None:
        self.do_cluster_away(step, acted=True)

    def do_report_bad(self, step: Step) -> None:
        name, node = self._node(step)
        faults = (self.world.now,) * (step.minutes % 4)
        self.world.report(node, False, name, reason="GpuLost", faults=faults)

    def do_report_good(self, step: Step) -> None:
        name, node = self._node(step)
        self.world.report(node, True, name)

    def do_rest(self, step: Step) -> None:
        """Nobody uses the GPUs of some nodes, as their agents say."""
        name = ("east", "west")[step.n % 2]
        for number in range(1 + step.m % NODES[name]):
            self.world.report(f"h100-{1 + number}", True, name, idle_since=self.world.now)
        self.said = name

    def do_steal(self, step: Step) -> None:
        held = [(c, v) for c, v in self.laws.nodes(self.world.now) if v.lease is not None]
        if held:
            name, view = held[step.n % len(held)]
            with self.world.drivers[name]._state.locked() as inside:
                held_now = replace(inside.held(view.name), lease=None, drain_until=None)
                self.world.drivers[name]._state.save(inside.with_node(view.name, held_now))
            self.said = f"{name}/{view.name}"

    def do_restart(self, step: Step) -> None:
        self.world.controller = self.world.start()

    def do_absence(self, step: Step) -> None:
        self.world.now += timedelta(minutes=step.minutes)
        self.world.controller = self.world.start()
        self.said = f"{step.minutes} minutes"

    def do_remote_away(self, step: Step) -> None:
        self.world.remote.down = True
        self.world.run(self.world.now + timedelta(minutes=step.minutes))
        self.world.remote.down = False
        self.said = f"{step.minutes} minutes"
