"""What people do to main: they file, edit, revert, approve, release, extend and race. Each act is one push."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from reconciler.clusters.simulated.simulated_world import Job
from reconciler.store.store_port import Draft, Outcome
from schemas.errors import UserError
from schemas.reading.units import format_instant
from tests.simulation.auditor.commits import OVER
from tests.simulation.network import Send
from tests.support import world as build
from tests.support.world import BO, gpr_path

if TYPE_CHECKING:
    from tests.simulation.story import Happening
    from tests.simulation.system import System

SLICES: Mapping[str, tuple[str, ...]] = {"a": ("east", "west"), "b": ("west", "east"), "c": ("east",)}
QUOTA = {"c": {"gpus": 8}}
WAITS = frozenset({"PendingApproval", "Queued"})
RUNS = frozenset({"Provisioning", "Provisioned"})
FLOOD = 20


class People:
    """All people of the story, in one clone; a push that meets a race is made again on the new tip."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._clone = system.remote.store(self)
        self._specs: dict[str, dict[str, Any]] = {}
        self._clusters: dict[str, dict[str, Any]] = {}
        self._before: list[dict[str, str | None]] = []  # what each of the last pushes replaced
        self._count = 0
        self._rejected = 0

    def begin(self) -> None:
        """The fleet's first commit."""
        given = self._system.story.given
        for name, nodes in given.nodes.items():
            self._clusters[name] = {"nodes": nodes, "pricePerGpuHour": 2, "notice": "0d0h1m"}
            if name in given.pulled:
                self._clusters[name]["access"] = {"pull": True}
        files: dict[str, str | None] = {"project.yaml": build.project(maxExtension="1h")}
        files |= {
            f"clusters/{name}.yaml": build.cluster(name, **spec) for name, spec in self._clusters.items()
        }
        for name, spans in SLICES.items():
            known = tuple(span for span in spans if span in self._clusters) or tuple(self._clusters)[:1]
            quota = {"quota": QUOTA[name]} if name in QUOTA else {}
            files[f"slices/{name}/slice.yaml"] = build.slice_(name, known, **quota)
        self._push(files)

    def act(self, what: Happening) -> None:
        """One act; with the remote away people come back later."""
        if self._system.is_remote_away:
            self._system.timeline.after(60, lambda: self.act(what))
            return
        getattr(self, "do_" + what.do.replace(" ", "_"))(what)

    def fetches(self) -> bool:
        """See `network.Guard`: people come when the remote answers."""
        return True

    def pushes(self, branch: str, new: str, send: Send) -> Outcome:
        """See `network.Guard`."""
        return self._system.push("people", branch, new, send)

    # -- pushes ----------------------------------------------------------------------------------------------

    def _push(self, files: Mapping[str, str | None], raced: Mapping[str, str | None] | None = None) -> None:
        """`raced`: another process pushes these while ours is prepared."""
        tip = self._clone.fetch(["main"]).get("main")
        self._before.append({path: self._text(tip, path) for path in files})
        if raced is not None:
            self._push(raced)
        changes = {path: None if text is None else text.encode() for path, text in files.items()}
        now = self._system.timeline.now
        draft = Draft(changes, "a change", BO, now, base=tip, parent=tip)
        outcome = self._clone.push("main", self._clone.write(draft), tip)
        if outcome is not Outcome.COMMITTED:
            assert outcome is Outcome.CONFLICT, outcome
            self._push(files)
        self._clone.fetch(["main"])

    def _text(self, tip: str | None, path: str) -> str | None:
        data = None if tip is None else self._clone.read_path(tip, path)
        return None if data is None else data.decode()

    def _write(self, key: str, **change: Any) -> dict[str, str | None]:
        self._specs[key] = self._specs.get(key, {}) | change
        slice_name, _, name = key.partition("/")
        return {gpr_path(key): build.gpr(slice_name, name, **self._specs[key])}

    def _some(self, n: int, phases: frozenset[str]) -> str | None:
        page = self._system.auditor.page
        requests = {} if page is None else page.requests
        found = sorted(k for k, s in requests.items() if s["phase"] in phases and k in self._specs)
        return found[n % len(found)] if found else None

    # -- members ---------------------------------------------------------------------------------------------

    def _new(self, what: Happening, turn: int = 0) -> dict[str, str | None]:
        self._count += 1
        n, m = what.n + turn, what.m + turn
        more: dict[str, Any] = {
            "priority": (50, 101, 101, 150, 250)[m % 5],
            "duration": f"{max(2, what.seconds // 60)}m",
        }
        if n % 11 == 1:
            more["start"] = ("promised", "ready")[m % 2]
        if n % 13 == 2:
            more["notBefore"] = format_instant(self._system.timeline.now + timedelta(minutes=m % 90))
        return self._write(f"{tuple(SLICES)[n % 3]}/r{self._count}", nodes=1 + n % 5 % 3, **more)

    def do_file(self, what: Happening) -> None:
        self._push(self._new(what))

    def do_flood(self, what: Happening) -> None:
        files: dict[str, str | None] = {}
        for turn in range(FLOOD):
            files |= self._new(what, turn)
        self._push(files)

    def do_race(self, what: Happening) -> None:
        self._push(self._new(what), self._new(what, 1))

    def do_edit(self, what: Happening) -> None:
        changes: tuple[dict[str, Any], ...] = (
            {"duration": f"{what.seconds // 60}m"}, {"nodes": 1 + what.m % 3}, {"priority": 1 + what.m % 300},
            {"displayName": "renamed"}, {"clusters": ["east"]}, {"start": "asap"},
        )  # fmt: skip
        if key := self._some(what.n, WAITS | RUNS):
            self._push(self._write(key, **changes[what.m % len(changes)]))

    def do_revert(self, what: Happening) -> None:
        """The last push is undone."""
        if len(self._before) > 1:
            self._push(self._before[-1])

    def do_release(self, what: Happening) -> None:
        if key := self._some(what.n, RUNS):
            self._push(self._write(key, earlyRelease=True))

    def do_cancel(self, what: Happening) -> None:
        if key := self._some(what.n, WAITS):
            self._push(self._write(key, earlyRelease=True))

    def do_extend(self, what: Happening) -> None:
        if key := self._some(what.n, RUNS):
            self._push(self._write(key, extend=f"{min(59, what.seconds // 60)}m"))

    def do_delete(self, what: Happening) -> None:
        if key := self._some(what.n, WAITS | RUNS | OVER):
            del self._specs[key]
            self._push({gpr_path(key): None})

    def do_stop(self, what: Happening) -> None:
        if key := self._some(what.n, WAITS | RUNS):
            self._push(self._write(key, stopped=True))

    def do_resume(self, what: Happening) -> None:
        stopped = sorted(key for key, spec in self._specs.items() if spec.get("stopped"))
        if stopped:
            self._push(self._write(stopped[what.n % len(stopped)], stopped=False))

    def do_broken_file(self, what: Happening) -> None:
        if key := self._some(what.n, WAITS | RUNS):
            self._push({gpr_path(key): "kind: GPR\nspec: {nodes: many}\n"})

    def do_job(self, what: Happening) -> None:
        """A GPU workload in a slice's namespace, on the cluster's own door."""
        self._count += 1
        clusters = self._system.clusters
        if not clusters:
            return
        cluster = clusters[sorted(clusters)[what.m % len(clusters)]]
        lasts = timedelta(seconds=what.seconds)
        job = Job(f"j{self._count}", tuple(SLICES)[what.n % 3], 4 * (what.m % 3), lasts)
        try:
            cluster.driver.submit(job, self._system.timeline.now)
        except UserError:
            self._rejected += 1  # its namespace is not there yet

    # -- admins ----------------------------------------------------------------------------------------------

    def do_approve(self, what: Happening, decision: str = "approve") -> None:
        if key := self._some(what.n, WAITS):
            slice_name, _, name = key.partition("/")
            page = self._system.auditor.page
            assert page is not None
            text = build.approval(slice_name, name, page.requests[key]["specDigest"], decision)
            self._push({f"approvals/{slice_name}/{name}/ada.yaml": text})

    def do_reject(self, what: Happening) -> None:
        self.do_approve(what, "reject")

    def _cluster(self, n: int, **change: Any) -> None:
        name = tuple(self._clusters)[n % len(self._clusters)]
        self._clusters[name] |= change
        self._push({f"clusters/{name}.yaml": build.cluster(name, **self._clusters[name])})

    def do_maintenance(self, what: Happening) -> None:
        begin = self._system.timeline.now + timedelta(minutes=what.m % 120)
        end = begin + timedelta(seconds=max(60, what.seconds))
        window = {"begin": format_instant(begin), "end": format_instant(end)}
        node = {"nodes": [f"h100-{1 + what.m % 2}"]}
        self._cluster(what.n, maintenance=[window | (node if what.m % 3 else {"pools": ["h100"]})])

    def do_price(self, what: Happening) -> None:
        self._cluster(what.n, drain=f"{2 + what.m % 6}m", prepare=f"{1 + what.m % 4}m")

    def do_policy(self, what: Happening) -> None:
        scheduling: dict[str, Any] = {}
        if what.n % 3:
            scheduling["preemption"] = {"guaranteed": f"{what.m % 40}m", "notice": f"{1 + what.m % 10}m"}
        self._push({"project.yaml": build.project(maxExtension="1h", scheduling=scheduling)})
