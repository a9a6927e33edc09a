"""Whole scenarios in simulated time, read from tests/cases/reconciler/*.yaml.

A story is a world and steps; every number is a minute since the world began, `@N` in a manifest is the instant of
minute N. A step happens at its minute: what it changes comes first, then the controller runs until it rests, then what
the step expects is compared. The laws of tests/support/laws.py hold in every cycle of every story.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.clusters.simulated import scripted_faults as scripted
from reconciler.clusters.simulated.embedded import EmbeddedCluster
from reconciler.clusters.simulated.simulated_world import Job, Made
from reconciler.deciding.violations import violations
from reconciler.documents.in_force import Desired
from reconciler.store.document_cache import DocumentCache
from schemas.documents.cluster import Cluster
from schemas.errors import UserError
from schemas.reading.reader import READER_VERSION
from schemas.reading.units import format_instant, parse_instant
from schemas.status.gpr_status import GPRStatus
from schemas.status.gpu_faults import GpuAction
from schemas.status.node_status import GpuReport
from tests.support import world as build
from tests.support.laws import Laws
from tests.support.profile import PROFILE, drawn
from tests.support.world import START, World, at, gpr_path

TOLD = {
    file.stem: yaml.load(file.read_bytes(), yaml.CSafeLoader)
    for file in sorted((Path(__file__).parents[1] / "cases" / "reconciler").glob("*.yaml"))
}
"""The stories of each file."""
STORIES = [
    pytest.param(story, id=story["story"])
    for stories in TOLD.values()
    for story in stories
    if PROFILE != "quick" or drawn(story["story"], 4)
]


@pytest.mark.parametrize("story", STORIES)
def test_story(story: dict[str, Any]) -> None:
    Play(story.get("given", {})).through(story["steps"])


class Play:
    """Carries out the steps of one story."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.specs: dict[str, dict[str, Any]] = {}
        files = self._manifests("project", {"default": given.get("project", {})})
        files |= self._manifests("cluster", {"east": {}, **given.get("clusters", {})})
        files |= self._manifests("slice", {"a": {}, "b": {}, **given.get("slices", {})})
        settings = {name: build.timedelta(minutes=m) for name, m in given.get("minutes", {}).items()}
        self.world = World(
            files,
            adopt=given.get("adopt", True),
            **{"poll": at(15) - START} | settings | given.get("settings", {}),
        )
        self.do_fleet(given.get("fleets", {}))
        self.laws = Laws(self.world)
        self.runs, self.commits = True, 0

    def through(self, steps: list[dict[str, Any]]) -> None:
        """All steps in order, then the laws."""
        for step in steps:
            now = at(step["at"])
            if self.runs and now > self.world.now:
                self.world.run(now)
            self.world.now = now
            for name, content in step.items():
                if name not in {"at", "expect", "fails"}:
                    getattr(self, f"do_{name}")(_instants(content))
            self._rest(step.get("fails"))
            self._compare(step["at"], step.get("expect", {}))
            self.commits = self.laws.commits
        self.laws.reads_back()
        assert self.laws.broken == []

    def _rest(self, fails: str | None) -> None:
        if fails is not None:
            with pytest.raises(UserError) as caught:
                self.world.controller.cycle(self.world.now)
            assert caught.value.reason == fails
        elif self.runs:
            self.world.run(self.world.now)

    # -- what people, nodes and clusters do -------------------------------------------------------------------

    def _manifests(self, kind: str, changes: Mapping[str, Any]) -> dict[str, str | None]:
        """Manifests with their spec changed in part."""
        paths = {"project": "project.yaml", "cluster": "clusters/{}.yaml", "slice": "slices/{}/slice.yaml"}
        makers: dict[str, Callable[..., str]] = {
            "project": lambda _, **spec: build.project(**spec),
            "cluster": build.cluster,
            "slice": build.slice_,
        }
        files: dict[str, str | None] = {}
        for name, change in changes.items():
            spec = self.specs.setdefault(f"{kind} {name}", {})
            spec |= _instants(change or {})
            files[paths[kind].format(name)] = None if change is None else makers[kind](name, **spec)
        return files

    def do_project(self, change: Mapping[str, Any]) -> None:
        self.world.commit(self._manifests("project", {"default": change}))

    def do_cluster(self, changes: Mapping[str, Any]) -> None:
        self.world.commit(self._manifests("cluster", changes))

    def do_slice(self, changes: Mapping[str, Any]) -> None:
        self.world.commit(self._manifests("slice", changes))

    def do_file(self, requests: Mapping[str, Any]) -> None:
        """New requests, or changes to the files of old ones; all in one commit."""
        files: dict[str, str | None] = {}
        for key, change in requests.items():
            spec = self.specs.setdefault(f"request {key}", {})
            spec |= change or {}
            slice_name, _, name = key.partition("/")
            files[gpr_path(key)] = build.gpr(slice_name, name, **spec)
        self.world.commit(files)

    def do_delete(self, keys: list[str]) -> None:
        self.world.commit({gpr_path(key): None for key in keys})

    def do_text(self, files: Mapping[str, str | None]) -> None:
        """Raw files; null deletes one."""
        self.world.commit(files)

    def do_say(self, words: Mapping[str, Mapping[str, Any]]) -> None:
        """An admin's (or anybody's, `by`) word about requests, each as it reads on the status branch."""
        for key, word in words.items():
            slice_name, _, name = key.partition("/")
            spec = dict(word)
            by, digest = spec.pop("by", build.ADMIN), spec.pop("digest", None)
            text = build.approval(
                slice_name, name, digest or self.world.status(key).spec_digest, by=by, **spec
            )
            self.world.commit({f"approvals/{slice_name}/{name}/{by}.yaml": text})

    def do_confirm_deletions(self, _: object) -> None:
        held = self.world.facts().held_deletions
        self.do_project({"confirmedDeletions": [held]})

    def do_fault(self, faults: list[dict[str, Any]]) -> None:
        for fault in faults:
            fields = {k: at(v) if k in {"at", "until"} else v for k, v in fault.items()}
            kind, name = fields.pop("kind"), fields.pop("cluster", "east")
            fields.setdefault("at", self.world.now)
            self._driver(name).inject(getattr(scripted, kind)(**fields))

    def do_report(self, reports: Mapping[str, Mapping[str, Any]]) -> None:
        for where, said in reports.items():
            name, _, node = where.partition("/")
            more = dict(said)
            more["faults"] = tuple(at(minute) for minute in more.pop("faults", ()))
            more["released_at"] = at(more.pop("released")) if "released" in more else None
            more["action"] = GpuAction(more["action"]) if "action" in more else None
            more["idle_since"] = at(more.pop("idle")) if "idle" in more else None
            told = tuple(_gpu(*gpu) for gpu in more.pop("gpus", ()))
            more["gpus"] = _gpus(more.pop("card"), said) if "card" in more else told
            self.world.report(node, more.pop("healthy"), name, **more)

    def do_job(self, jobs: Mapping[str, Mapping[str, Any]]) -> None:
        for where, job in jobs.items():
            namespace, _, name = where.partition("/")
            minutes = job.get("duration")
            duration = None if minutes is None else at(minutes) - START
            self._driver("east").submit(Job(name, namespace, job["gpus"], duration), self.world.now)

    def do_save(self, instants: Mapping[str, float]) -> None:
        """Workloads say at which minute they saved their work."""
        for where, minute in instants.items():
            namespace, _, name = where.partition("/")
            self._driver("east").save(namespace, name, at(minute), self.world.now)

    def do_steal(self, nodes: list[str]) -> None:
        """Somebody with rights in the cluster takes a lease's mark off a node."""
        for where in nodes:
            name, _, node = where.partition("/")
            view = next(v for c, v in self.laws.nodes(self.world.now) if (c, v.name) == (name, node))
            assert view.lease is not None
            assert view.stamp is not None
            self._driver(name).remove(node, view.lease.uid, view.stamp, self.world.now)

    def do_fleet(self, fleets: Mapping[str, int]) -> None:
        """How many nodes a cluster really has, whose manifest finds them by a selector."""
        for name, nodes in fleets.items():
            document = build.parsed(f"clusters/{name}.yaml", build.cluster(name, nodes))
            assert isinstance(document, Cluster)
            self.world.fleets[name] = document.spec

    def do_appear(self, pools: Mapping[str, int]) -> None:
        """Somebody else makes so many more nodes in an elastic pool, ready at once."""
        for where, more in pools.items():
            name, _, pool = where.partition("/")
            state = self._driver(name)._state
            with state.locked() as world:
                old = world.sizes[pool]
                made = tuple(Made(f"{pool}-{old.made + i}", self.world.now) for i in range(1, more + 1))
                size = replace(old, count=old.count + more, nodes=(*old.nodes, *made), made=old.made + more)
                state.save(replace(world, sizes={**world.sizes, pool: size}))

    def do_remote(self, state: str) -> None:
        self.world.remote.down = state == "down"

    def do_controller(self, what: str) -> None:
        """stops (time passes without it), starts (a new process), or restarts."""
        self.runs = what != "stops"
        if self.runs:
            self.world.controller = self.world.start()

    def _driver(self, name: str) -> EmbeddedCluster:
        if name not in self.world.drivers:
            path = f"clusters/{name}.yaml"
            text = build.cluster(name, **self.specs[f"cluster {name}"])
            document = build.parsed(path, text)
            assert isinstance(document, Cluster)
            self.world.drivers[name] = EmbeddedCluster(name, document.spec)
        return self.world.drivers[name]

    # -- what a story expects ---------------------------------------------------------------------------------

    def _compare(self, minute: float, expect: Mapping[str, Any]) -> None:
        facts = self.world.facts() if any("/" in name for name in expect) else None
        for name, want in expect.items():
            if "/" in name and facts is not None:
                got = _shown(facts.requests.get(name), want)
            else:
                got = getattr(self, f"see_{name}")(want)
            assert got == want, f"minute {minute}: {name}"

    def see_nodes(self, want: Mapping[str, str]) -> dict[str, str]:
        found = {}
        for name, node in self.laws.nodes(self.world.now):
            marks = [node.lease.request if node.lease else "free", *(["isolated"] if node.isolated else [])]
            found[f"{name}/{node.name}"] = ", ".join(marks)
        return {where: found.get(where, "gone") for where in want}

    def see_records(self, want: Mapping[str, str]) -> dict[str, str]:
        """State and reason of nodes on the status branch; `Ready` where there is no record."""
        nodes = self.world.facts().nodes
        records = {where: nodes.get(tuple(where.split("/"))) for where in want}  # type: ignore[call-overload]
        return {w: "Ready" if r is None else f"{r.state} {r.reason}" for w, r in records.items()}

    def see_drains(self, want: object) -> dict[str, str]:
        """Nodes that others want drained, and whether they were answered."""
        return {
            f"{name}/{node.name}": "open" if node.drain_open else "answered"
            for name, node in self.laws.nodes(self.world.now)
            if node.drain
        }

    def see_cards(self, want: object) -> dict[str, list[str]]:
        """The cards that are remembered, and why."""
        return {
            serial: [fault.reason for fault in card.faults]
            for serial, card in self.world.facts().cards.items()
        }

    def see_workloads(self, want: Mapping[str, str]) -> dict[str, str]:
        view = self._driver("east").observe(self.world.now)
        return {f"{w.namespace}/{w.name}": w.phase for w in view.workloads}

    def see_ends(self, want: object) -> dict[str, float | None]:
        """The minutes at which running GPU workloads are shown that they end."""
        view = self._driver("east").observe(self.world.now)
        return {
            f"{w.namespace}/{w.name}": None if w.ends_at is None else _minute(parse_instant(w.ends_at))
            for w in view.workloads
            if w.phase == "Running" and w.gpus
        }

    def see_sizes(self, want: Mapping[str, int]) -> dict[str, int]:
        """How many nodes an elastic pool is told to have."""
        found = {where: where.split("/") for where in want}
        return {w: self._driver(c).observe(self.world.now).sizes[p] for w, (c, p) in found.items()}

    def see_slices(self, want: object) -> list[str]:
        return sorted(self._driver("east").observe(self.world.now).slices)

    def see_namespaces(self, want: object) -> list[str]:
        slices = self._driver("east").observe(self.world.now).slices
        return sorted(f"{name}/{namespace}" for name, found in slices.items() for namespace in found)

    def see_notes(self, want: list[str]) -> list[str]:
        """Those of the wanted notes, as `Reason subject`, that the cluster shows exactly once."""
        notes = [f"{n.reason} {n.request or n.node or n.slice}" for n in self._driver("east").notes()]
        return [line for line in want if notes.count(line) == 1]

    def see_told(self, want: list[str]) -> list[str]:
        """Those of the wanted events that were told, in this order, and nothing of them missing."""
        told = iter(self._events())
        return [line for line in want if any(_is(line, event) for event in told)]

    def see_once(self, want: list[str]) -> list[str]:
        return [line for line in want if sum(_is(line, event) for event in self._events()) == 1]

    def see_never(self, want: list[str]) -> list[str]:
        return [line for line in want if not any(_is(line, event) for event in self._events())]

    def _events(self) -> list[tuple[str, str, str]]:
        events = [event for cycle in self.world.log for event in cycle.events]
        return [(str(e.reason), e.request or e.node or e.cluster, e.message) for e in events]

    def see_usage(self, want: Mapping[str, Any]) -> dict[str, Any]:
        usage = self.world.facts().usage
        return {
            name: [[m.month, m.gpu_hours, m.amount, m.leases] for m in usage[name].months]
            for name in want
            if name in usage
        }

    def see_spent(self, want: Mapping[str, Any]) -> dict[str, Any]:
        usage = self.world.facts().usage
        return {
            name: [[m.month, m.cluster, m.gpu_shape, m.gpu_hours] for m in usage[name].spent]
            for name in want
            if name in usage
        }

    def see_violations(self, want: object) -> list[str]:
        """What breaks a policy now, as `slice/name Rule waits` or `… holds`."""
        facts, desired = self.world.facts(), Desired(self.world.people, DocumentCache(None, READER_VERSION))
        desired.update(self.world.people.fetch(["main"])["main"])
        found = violations(facts, desired.wanted(facts))
        return [f"{v.key} {v.rule} {'waits' if v.is_waiting else 'holds'}" for v in found]

    def see_commits(self, want: int) -> int:
        """Commits of the status branch since the step before."""
        return self.laws.commits - self.commits

    def see_branch(self, want: Mapping[str, str | None]) -> dict[str, str | None]:
        """Files of the status branch: a part of their text, null where there is none."""
        texts = {path: self.world.text(path) for path in want}
        return {
            p: want[p] if t is not None and want[p] is not None and str(want[p]) in t else t
            for p, t in texts.items()
        }


def _gpu(uuid: str, serial: str, *reasons: str) -> GpuReport:
    """A GPU of a report, as `[uuid, serial, reasons …]`."""
    return GpuReport(
        uuid=uuid, index=0, product="H100", memory_mib=1, healthy=not reasons, reasons=reasons, serial=serial
    )


def _is(line: str, event: tuple[str, str, str]) -> bool:
    """`Reason`, `Reason subject`, or `Reason subject: part of the message`."""
    head, _, part = line.partition(": ")
    reason, _, subject = head.partition(" ")
    return event[0] == reason and subject in ("", event[1]) and part in event[2]


def _shown(status: GPRStatus | None, want: object) -> object:
    """The fields that a story names, as it would write them."""
    if status is None or not isinstance(want, dict):
        return "gone" if status is None else str(status.phase)
    shown: dict[str, Callable[[GPRStatus], object]] = {
        "phase": lambda s: str(s.phase),
        "reason": lambda s: s.reason,
        "message": lambda s: want["message"] if want["message"] in (s.message or "") else s.message,
        "start": lambda s: _minute(s.estimated_start_time),
        "end": lambda s: _minute(s.estimated_end_time),
        "started": lambda s: _minute(s.start_time),
        "ended": lambda s: _minute(s.end_time),
        "filed": lambda s: _minute(s.filed_at),
        "back": lambda s: _minute(s.eviction.back.start) if s.eviction and s.eviction.back else None,
        "cluster": lambda s: s.assignment.cluster if s.assignment else s.estimated_cluster,
        "nodes": lambda s: list(s.assignment.nodes) if s.assignment else [],
        "bound": lambda s: list(s.bound_nodes),
        "replaced": lambda s: list(s.replaced_nodes),
        "slips": lambda s: [
            f"{' and '.join(f'{c.cause} by {c.by}' for c in x.causes)} "
            f"from {_minute(x.was):g} to {_minute(x.now) or 0:g}"
            for x in s.slips
        ],
        "conditions": lambda s: sorted(c.type for c in s.conditions),
        "says": lambda s: (
            want["says"] if any(want["says"] in c.message for c in s.conditions) else s.conditions
        ),
        "marks": lambda s: [m.percent for m in s.marks],
        "warned": lambda s: s.warned and _minute(s.warned.at),
        "saved": lambda s: s.checkpoint and _minute(s.checkpoint.at),
        "savedBy": lambda s: s.checkpoint and [*s.checkpoint.pods, *s.checkpoint.nodes],
        "leaves": lambda s: s.eviction and _minute(s.eviction.at),
        "evictedBy": lambda s: s.evicted_by,
        "remaining": lambda s: s.remaining and s.remaining.total_seconds() / 60,
        "grace": lambda s: s.extended_by.total_seconds() / 60,
        "idle": lambda s: _minute(s.idle_since),
        "place": lambda s: s.estimated_pool,
        "retries": lambda s: s.retry_count,
        "delayed": lambda s: s.delayed_count,
        "displaced": lambda s: s.displaced_count,
        "firstCome": lambda s: _minute(s.place.first_come) if s.place else None,
        "cost": lambda s: s.cost and s.cost.amount,
        "gpuHours": lambda s: s.cost and s.cost.gpu_hours,
        "name": lambda s: s.accepted_spec.display_name,
        "duration": lambda s: s.accepted_spec.duration.total_seconds() / 60,
        "askedNodes": lambda s: s.accepted_spec.nodes,
        "needs": lambda s: list(s.approval.reasons) if s.approval else [],
        "approvedBy": lambda s: s.approval.by if s.approval else None,
        "charged": lambda s: s.charge and s.charge.gpu_hours,
        "barred": lambda s: list(s.charge.barred) if s.charge else [],
        "failed": lambda s: sorted({c.node for c in s.checks if not c.passed}),
    }
    return {name: shown[name](status) for name in want}


def _gpus(card: str, said: Mapping[str, Any]) -> tuple[GpuReport, ...]:
    """The only GPU of a node that is told of: the one with that serial number."""
    reasons = () if said["healthy"] else (said["reason"],)
    gpu = GpuReport(
        uuid="GPU-a",
        index=0,
        product="H100",
        memory_mib=1,
        healthy=said["healthy"],
        reasons=reasons,
        serial=card,
    )
    return (gpu,)


def _minute(instant: datetime | None) -> float | None:
    return None if instant is None else (instant - START).total_seconds() / 60


def _instants(content: Any) -> Any:
    """`@30` becomes the instant of minute 30, in any depth."""
    if isinstance(content, dict):
        return {name: _instants(value) for name, value in content.items()}
    if isinstance(content, list):
        return [_instants(value) for value in content]
    if isinstance(content, str) and re.fullmatch(r"@-?[0-9.]+", content):
        return format_instant(at(float(content[1:])))
    return content
