"""A simulated Kubernetes cluster: the driver of the demo and of every test of the reconciler.

Time passes only through the `now` of each call; between two calls every end, fault and drain is processed in
order. Its state is one file, so it survives a restart and can be shared by processes. Faults are scripted as
data (`reconciler.clusters.simulated.scripted_faults`). It ignores `spec.mode`: the reconciler decides which
clusters may be changed.

Held by tests/contract/test_cluster_contract.py, and tests/reconciler/clusters for the simulation's specifics.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from reconciler.clusters.simulated import simulated_manifests, simulated_writes
from reconciler.clusters.simulated.gpu_readings import as_data, readings_of
from reconciler.clusters.simulated.growing_pools import fleet_at, scaled, sizes_of
from reconciler.clusters.simulated.scripted_faults import Scripted, api_failure, dead_nodes
from reconciler.clusters.simulated.simulated_exports import exports_of
from reconciler.clusters.simulated.simulated_remedies import let_go, remedied
from reconciler.clusters.simulated.simulated_workloads import advance, remembered, settle
from reconciler.clusters.simulated.simulated_world import Fleet, Job, Workload, World, fleet_of, view_of
from reconciler.clusters.simulated.simulated_writes import WriteTarget
from reconciler.clusters.simulated.state_file import StateFile
from reconciler.model.cluster_port import (
    Answer,
    Busy,
    CheckResult,
    ClusterView,
    Difference,
    Done,
    LeaseRef,
    Note,
    Refused,
    RemedyOrder,
    SliceTerms,
    Stage,
    Stamp,
)
from reconciler.model.workload_port import WorkloadTerms
from schemas.documents.cluster import ClusterSpec
from schemas.errors import Fault, UserError

log = logging.getLogger(__name__)

T = TypeVar("T")


class EmbeddedCluster:
    """`reconciler.model.cluster_port.ClusterDriver` over a simulation; `state` None keeps it in memory only."""

    def __init__(
        self,
        name: str,
        spec: ClusterSpec,
        state: Path | None = None,
        faults: Iterable[Scripted] = (),
    ) -> None:
        self._name = name
        self._fleet = fleet_of(name, spec)
        self._state = StateFile(state)
        if faults := tuple(faults):
            self.inject(*faults)

    def observe(self, now: datetime) -> ClusterView:
        """The fleet, its leases, and its workloads."""
        return self._call(now, False, lambda s: (s.world, self._view(s, now)))

    def differences(self, slices: tuple[SliceTerms, ...], now: datetime) -> tuple[Difference, ...]:
        """A slice is only its namespaces and its queue here."""
        return self._call(now, False, lambda s: (s.world, simulated_writes.differing(s, slices)))

    def ensure_fleet(self, stamp: Stamp, now: datetime) -> Answer:  # noqa: ARG002 - the port has it
        """Only slices can differ here."""
        return self._call(now, False, lambda s: (s.world, Done()))

    def ensure_slice(self, terms: SliceTerms, stamp: Stamp, now: datetime) -> Answer:
        """Exactly these namespaces belong to the slice; its queue and exports are shown as wanted."""
        return self._call(now, True, lambda s: simulated_writes.slice_ensured(s, terms, stamp))

    def remove_slice(self, slice_: str, stamp: Stamp, now: datetime) -> Answer:
        """Refused (`SliceHoldsNodes`) while a node serves it."""
        return self._call(now, True, lambda s: simulated_writes.slice_removed(s, slice_, stamp))

    def check(
        self, node: str, stage: Stage, lease: LeaseRef, stamp: Stamp, now: datetime
    ) -> Busy | Refused | tuple[CheckResult, ...]:
        """Takes `CHECK`; the results are those of the instant at which the checks ended."""
        return self._call(now, True, lambda s: simulated_writes.checked(s, node, stage, lease, stamp))

    def add(self, node: str, lease: LeaseRef, stamp: Stamp, now: datetime) -> Answer:
        """The slice's waiting GPU workloads start at once."""
        return self._call(now, True, lambda s: simulated_writes.added(s, node, lease, stamp))

    def show_end(self, lease: LeaseRef, stamp: Stamp, now: datetime) -> Answer:
        """Running GPU workloads show it at once."""
        return self._call(now, True, lambda s: simulated_writes.end_shown(s, lease, stamp))

    def evict(self, node: str, uid: str, by: datetime, stamp: Stamp, now: datetime) -> Answer:
        """Workloads run until `by`; a `by` in the past is now."""
        return self._call(now, True, lambda s: simulated_writes.evicted(s, node, uid, by, stamp))

    def remove(self, node: str, uid: str, stamp: Stamp, now: datetime) -> Answer:
        """Takes `DRAIN` with GPU workloads, no time without."""
        return self._call(now, True, lambda s: simulated_writes.removed(s, node, uid, stamp))

    def isolate(self, node: str, reason: str, stamp: Stamp, now: datetime) -> Answer:
        """Running workloads continue."""
        return self._call(now, True, lambda s: simulated_writes.isolated(s, node, reason, stamp))

    def restore(self, node: str, stamp: Stamp, now: datetime) -> Answer:
        """Waiting GPU workloads may use the node again."""
        return self._call(now, True, lambda s: simulated_writes.isolated(s, node, None, stamp))

    def drained(self, node: str, stamp: Stamp, now: datetime) -> Answer:
        """The scripted request to drain it is answered."""
        return self._call(now, True, lambda s: simulated_writes.drained(s, node, stamp))

    def remediate(
        self, node: str, order: RemedyOrder, stamp: Stamp, now: datetime
    ) -> Busy | Refused | tuple[CheckResult, ...]:
        """Takes `RESET`, and ends the faults that a reset or reboot can end."""
        return self._call(now, True, lambda s: remedied(s, node, order, stamp))

    def scale(self, pool: str, count: int, leaving: tuple[str, ...], stamp: Stamp, now: datetime) -> Answer:
        """New nodes arrive after the pool's `scaleUp`; nodes are removed at once."""
        return self._call(now, True, lambda s: scaled(s, pool, count, leaving, stamp))

    def run_workload(self, terms: WorkloadTerms, stamp: Stamp, now: datetime) -> Answer:
        """Its pods are simulated; every kind is served, and the members may use all of them."""
        return self._call(now, True, lambda s: simulated_manifests.run(s, terms, stamp))

    def end_workload(self, key: str, stamp: Stamp, now: datetime) -> Answer:
        """Its pods are gone at once."""
        return self._call(now, True, lambda s: simulated_manifests.end(s, key, stamp))

    def announce(self, notes: tuple[Note, ...], now: datetime) -> None:
        """Kept in the state, where `notes` finds them."""
        self._call(now, True, lambda s: (simulated_writes.announced(s, notes), None))

    def close(self) -> None:
        """Does nothing: no resources are held between calls."""

    def notes(self) -> tuple[Note, ...]:
        """What was announced, oldest first."""
        with self._state.locked() as world:
            return world.notes

    def inject(self, *faults: Scripted) -> None:
        """Adds to the script; existing faults are not added twice, so a restart may repeat them."""
        with self._state.locked() as world:
            new = tuple(f for f in dict.fromkeys(faults) if f not in world.faults)
            if new:
                self._state.save(replace(world, faults=world.faults + new))
        for fault in new:
            log.info("fault scripted cluster=%s kind=%s at=%s", self._name, fault.kind, fault.at)

    def follow(self, spec: ClusterSpec) -> None:
        """The manifest changed: nodes are added and removed, leases stay."""
        if spec is not self._fleet.spec:  # it is told in each cycle
            self._fleet = fleet_of(self._name, spec)

    def submit(self, job: Job, now: datetime) -> None:
        """A person starts a workload; its namespace must belong to a slice and its name be free there."""
        with self._state.locked() as world:
            at = advance(world, fleet_at(self._fleet, world, now), now)
            after = simulated_writes.submitted(
                self._state_at(at, now), Workload(job, _owner(at, job), since=now)
            )
            self._state.save(self._settled(after, now))

    def save(self, namespace: str, name: str, at: datetime, now: datetime) -> None:
        """A workload says that it saved its work at `at`; it may be missing."""
        self._call(now, True, lambda s: (simulated_writes.saved(s, namespace, name, at), None))

    def withdraw(self, namespace: str, name: str, now: datetime) -> None:
        """A person deletes a workload; it may be missing."""
        with self._state.locked() as world:
            at = advance(world, fleet_at(self._fleet, world, now), now)
            gone = [w for w in at.workloads if (w.job.namespace, w.job.name) == (namespace, name)]
            left = tuple(w for w in at.workloads if w not in gone)
            self._state.save(self._settled(remembered(replace(at, workloads=left), gone, now), now))

    def gpu_readings(self, node: str, now: datetime) -> tuple[Mapping[str, object], ...]:
        """What NVML would report on that node, as plain data; changes nothing.

        Raises `Fault` (`NodeNotReady`) if no agent could run: the node is dead or not in this cluster.
        """
        at, fleet = self._now_at(now)
        if node not in fleet.views or node in dead_nodes(at.faults, now):
            raise Fault(f"node {node} of cluster {self._name} does not answer", "NodeNotReady")
        return tuple(as_data(gpu) for gpu in readings_of(at, fleet, node, now))

    def release_asked(self, node: str, now: datetime) -> bool:
        """Whether the node's agent is to let go of the driver; changes nothing."""
        at, _ = self._now_at(now)
        return let_go(at, node, now)

    def history(self, now: datetime) -> tuple[World, Fleet]:
        """The state with what it remembers of the past, for telemetry; changes nothing."""
        at, fleet = self._now_at(now)
        if api_failure(at.faults, now) is not None:
            raise self._unreachable()
        return at, fleet

    def _now_at(self, now: datetime) -> tuple[World, Fleet]:
        with self._state.locked() as world:
            fleet = fleet_at(self._fleet, world, now)
            return advance(world, fleet, now), fleet

    def _call(self, now: datetime, writes: bool, work: Callable[[WriteTarget], tuple[World, T]]) -> T:
        """One API call: the world advances to `now`, `work` runs in it, and the answer may get lost."""
        with self._state.locked() as world:
            failure = api_failure(world.faults, now)
            if failure is not None and not (writes and failure.acted):
                raise self._unreachable()
            before = advance(world, fleet_at(self._fleet, world, now), now)
            after, answer = work(self._state_at(before, now))
            self._state.save(after if after is before else self._settled(after, now))
            if failure is not None:
                raise self._unreachable()
            return answer

    def _view(self, s: WriteTarget, now: datetime) -> ClusterView:
        placed = simulated_manifests.shown(s.world)
        sizes, exports = sizes_of(self._fleet, s.world), exports_of(s.world)
        return replace(view_of(s.world, s.fleet, now), sizes=sizes, placed=placed, exports=exports)

    def _state_at(self, world: World, now: datetime) -> WriteTarget:
        return WriteTarget(world, fleet_at(self._fleet, world, now), now)

    def _settled(self, world: World, now: datetime) -> World:
        """A change has its time: earlier events must not be processed again."""
        return settle(replace(world, at=max(world.at, now)), fleet_at(self._fleet, world, now), now)

    def _unreachable(self) -> Fault:
        return Fault(f"the API of cluster {self._name} did not answer in time", "ClusterUnreachable")


def _owner(world: World, job: Job) -> str:
    if any((w.job.namespace, w.job.name) == (job.namespace, job.name) for w in world.workloads):
        raise UserError(f"namespace {job.namespace} already has a workload {job.name}", "WorkloadExists")
    owner = next((n for n, s in sorted(world.slices.items()) if job.namespace in s.namespaces), None)
    if owner is None:
        raise UserError(
            f"no slice has a namespace {job.namespace}; create its slice first", "NamespaceMissing"
        )
    return owner
