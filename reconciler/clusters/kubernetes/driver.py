"""A real cluster behind the port. Reads come from informers; every write is conditional on what was read.

It combines parts and decides little: `node_marks` reads a node's marks, `slice_writer` keeps slices,
`departures` empties nodes, `node_checks` checks them, `placement_objects` makes pods find them.

Held by tests/contract/test_cluster_contract.py on a real API server, and tests/reconciler/clusters/kubernetes
for Kubernetes specifics.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from reconciler.clusters.kubernetes.admission.placement_objects import Closed, Placement, Site
from reconciler.clusters.kubernetes.api.api_client import Api, Rejected, answered
from reconciler.clusters.kubernetes.api.api_features import Features, discover
from reconciler.clusters.kubernetes.api.informer import Informer
from reconciler.clusters.kubernetes.checks.check_verdicts import NODE_GONE, Subject
from reconciler.clusters.kubernetes.checks.node_checks import Checks
from reconciler.clusters.kubernetes.names import SYSTEM_NAMESPACE
from reconciler.clusters.kubernetes.nodes import cluster_view, drain_requests, pod_ends, pod_exits
from reconciler.clusters.kubernetes.nodes.cluster_view import Known, Looks, PodsOfNodes
from reconciler.clusters.kubernetes.nodes.departures import Departures, Sight
from reconciler.clusters.kubernetes.nodes.gpu_resets import GpuResets
from reconciler.clusters.kubernetes.nodes.node_inventory import (
    Node,
    Pod,
    named_pools,
    pool_of,
    read_node,
    read_pod,
)
from reconciler.clusters.kubernetes.nodes.node_marks import Marks, differing, late, marks_of, untouched
from reconciler.clusters.kubernetes.nodes.node_writer import NODES, NodeWriter
from reconciler.clusters.kubernetes.nodes.pool_scale import Scaling
from reconciler.clusters.kubernetes.nodes.stray_pods import Strays
from reconciler.clusters.kubernetes.tenancy.cluster_events import Heard, announce
from reconciler.clusters.kubernetes.whole_slices import WholeSlices
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
from reconciler.model.memo import Memo
from reconciler.model.workload_port import WorkloadTerms
from schemas.documents.cluster import ClusterSpec
from schemas.errors import Fault

PODS = "/api/v1/pods"
UPGRADED = timedelta(minutes=10)
"""A server with another version for this long has been upgraded."""
FLEET_WRITES = 200
"""Nodes marked per call: starts and ends of other clusters must not wait."""
AGAIN = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Home:
    """The project, and where our own objects are in the cluster."""

    project: str = "default"
    namespace: str = SYSTEM_NAMESPACE
    instance: str = "egs"  # the reporting instance in events
    webhook: str = ""  # https://host:port of our webhook, instead of its Service


@dataclass(frozen=True, slots=True)
class Begun:
    """Parts that depend on the API server's features."""

    features: Features
    placement: Placement


class KubernetesCluster:
    """`reconciler.model.cluster_port.ClusterDriver` over one API server; `wake` is called after each change."""

    def __init__(
        self,
        name: str,
        spec: ClusterSpec,
        api: Api,
        home: Home = Home(),
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        self._name, self._spec, self._api, self._home = name, spec, api, home
        self._named = named_pools(spec)
        self._looks = Looks(spec, self._named)
        self._fields: Memo[tuple[str, ...]] = Memo()  # of nodes that differ from their marks
        self._nodes = Informer(api, NODES, read_node, wake=wake)
        read = partial(read_pod, system=home.namespace)
        self._pods = Informer(api, PODS, read, wake=wake, matters=lambda pod: pod.gpus > 0)
        self._slices = WholeSlices(api, home.project, home.namespace, name, wake)
        self._writer = NodeWriter(api, self._nodes, home.project)
        self._checks = Checks(api, spec, self._writer, home.namespace, wake)
        self._resets = GpuResets(api, spec, home.namespace)
        self._wake, self._heard, self.remote = wake, Heard(), True
        self._parts: Begun | None = None
        self._same = datetime.min.replace(tzinfo=UTC)  # when the server last had the version that we know
        self._index: Memo[PodsOfNodes] = Memo()
        self._strays = Strays(spec, self._named)
        self._scaling = Scaling(
            api, spec, lambda pool: cluster_view.empty_leased(pool, self._known(), spec, self._named)
        )
        sight = Sight(self._marks, self._gpu_pods, lambda: self._begun().features.eviction)
        self._departures = Departures(api, spec, self._writer, sight)
        self._pods.tell_gone(self._departures.gone)
        self._closed = Closed(spec, self._named, home.namespace)
        self._drains = drain_requests.DrainRequests(api, name, spec.remediation.nvsentinel)

    # --- what is ---

    def observe(self, now: datetime) -> ClusterView:
        """Everything in the informers; a server that does not answer right now counts as unreachable."""
        version, heard = str(self._api.get("/version").get("gitVersion", "")), self._api.heard
        self._follow_upgrade(version, now)
        known = self._known()
        self._refuse_stale()
        view = self._drains.shown(self._looks.look(known, self._pods_by_node(known), now))
        return self._slices.shown(replace(view, sizes=self._scaling.sizes(), clock=heard), now)

    def differences(self, slices: tuple[SliceTerms, ...], now: datetime) -> tuple[Difference, ...]:
        """For nodes, slices and placement; differences of the cluster as a whole have no slice."""
        known = self._known()
        found = [*self._slices.differences(slices, now)]
        for node in cluster_view.managed(known, self._spec, self._named):
            fields = self._fields.of(node.name, partial(self._differing, node), equal=node)
            if fields:
                found.append(Difference("", f"Node {node.name}", "changed", ", ".join(fields)))
        self._fields.keep(known.nodes)
        found += [
            Difference("", f"Node {node.name}", "extra", "it has our marks but is in none of our pools")
            for node in cluster_view.left_over(known, self._spec, self._named)
        ]
        found += [
            Difference(
                "", f"Pod {pod.key}", "extra", f"it uses GPUs of {pod.node}, which does not serve its slice"
            )
            for pod in self._strays.lasting(known, now)
        ]
        found += [
            Difference("", f"Pod {repair.pod}", "changed", "it was admitted without its slice's toleration")
            for repair in self._begun().placement.unplaced(known.pods, known.slices)
        ]
        found += self._checks.left_over(cluster_view.to_sweep(known, self._spec, self._named), now)
        return (*found, *self._begun().placement.differences(now, self._closed.of(known)))

    def _differing(self, node: Node) -> tuple[str, ...]:
        return differing(node, replace(marks_of(node), project=self._home.project))

    # --- the cluster as a whole, and slices ---

    def ensure_fleet(self, stamp: Stamp, now: datetime) -> Answer:
        """Placement works, exactly the pools' nodes have our marks, no pod is where it may not be."""
        known = self._known()
        answer: Answer = answered(lambda: self._begun().placement.ensure(stamp, now, self._closed.of(known)))
        unlike = [n for n in cluster_view.managed(known, self._spec, self._named) if self._differing(n)]
        for node in unlike[:FLEET_WRITES]:
            answer = self._first(answer, self._writer.change(node.name, stamp, lambda _, marks: marks))
        for node in cluster_view.left_over(known, self._spec, self._named):
            answer = self._first(
                answer, self._writer.write(node.name, lambda n: _late(n, stamp) or untouched(n))
            )
        mended = answered(lambda: self._begun().placement.repair(known.pods, known.slices))
        to_end = cluster_view.to_sweep(known, self._spec, self._named)
        swept = answered(lambda: self._checks.sweep(to_end, stamp, now))
        for refusal in (mended, swept):
            answer = self._first(answer, refusal or Done())
        by = now + self._spec.notice
        for pod in self._strays.lasting(known, now):
            asked = self._departures.ask(str(pod.node), (pod,), by, stamp, now)
            answer = self._first(answer, asked.refused or Done())
        more = len(unlike) - FLEET_WRITES
        if more > 0:
            answer = self._first(answer, Busy(now + AGAIN, f"{more} more nodes wait for our marks"))
        return answer

    @staticmethod
    def _first(answer: Answer, then: Answer) -> Answer:
        """A failure on one node stops no other; the first refusal is returned."""
        return then if isinstance(answer, Done) else answer

    def ensure_slice(self, terms: SliceTerms, stamp: Stamp, now: datetime) -> Answer:
        """Namespaces, rights, quota and network of the slice."""
        self._known()
        return self._slices.ensure(terms, stamp, now)

    def remove_slice(self, slice_: str, stamp: Stamp, now: datetime) -> Answer:
        """Refused (`SliceHoldsNodes`) while a node serves it."""
        nodes = self._known().nodes.values()
        holds = any((lease := marks_of(n).lease) is not None and lease.slice == slice_ for n in nodes)
        return self._slices.remove(slice_, holds, stamp, now)

    # --- nodes ---

    def check(
        self, node: str, stage: Stage, lease: LeaseRef, stamp: Stamp, now: datetime
    ) -> Busy | Refused | tuple[CheckResult, ...]:
        """With Jobs and API objects; before a start the node gets the lease's MIG profile."""
        found = self._known().nodes.get(node)
        if found is not None and (refusal := _late(found, stamp)) is not None:
            return refusal
        subject = None if found is None else self._subject(found, lease)
        return answered(lambda: self._checks.run(subject, stage, stamp, now))

    def _subject(self, node: Node, lease: LeaseRef) -> Subject:
        peers = tuple(peer.name for peer in self._serving(lease.uid) if peer.name != node.name)
        pods = self._pods_by_node(self._known()).get(node.name, ())
        return Subject(node, pool_of(node, self._spec, self._named), lease, peers, pods)

    def _serving(self, uid: str) -> list[Node]:
        return [
            node
            for _, node in sorted(self._nodes.items().items())
            if (lease := marks_of(node).lease) is not None and lease.uid == uid
        ]

    def add(self, node: str, lease: LeaseRef, stamp: Stamp, now: datetime) -> Answer:
        """From now on the slice's waiting GPU pods can run on it."""
        known = self._known()
        owners = cluster_view.owners_of(known.slices)
        pods = self._gpu_pods(node)

        def decide(found: Node, marks: Marks) -> Marks | Refused:
            held = marks.lease
            if held is not None and held.uid != lease.uid:
                return Refused("NodeHeld", f"node {node} serves {held.request}")
            if held is None and not found.ready:
                return Refused("NodeNotReady", f"node {node} is not Ready")
            if held is None and found.deleted:
                return Refused("NodeNotReady", f"node {node} is being deleted")
            strangers = cluster_view.foreign(pods, owners, lease.slice)
            if held is None and strangers:
                return Refused("NodeInUse", f"GPUs of node {node} are used by {', '.join(strangers[:3])}")
            return replace(marks, lease=lease, exit_by=None, prepared="")

        return self._writer.change(node, stamp, decide)

    def show_end(self, lease: LeaseRef, stamp: Stamp, now: datetime) -> Answer:
        return pod_ends.show(self._api, self._pods.learn, lease, self._known(), stamp, now)

    def evict(self, node: str, uid: str, by: datetime, stamp: Stamp, now: datetime) -> Answer:
        return self._departures.evict(node, uid, by, stamp, now)

    def remove(self, node: str, uid: str, stamp: Stamp, now: datetime) -> Answer:
        """Free once no GPU pod is left; a pod that overstays is deleted if the cluster's policy says so."""
        return self._departures.remove(node, uid, stamp, now)

    def isolate(self, node: str, reason: str, stamp: Stamp, now: datetime) -> Answer:
        """Cordons it; an earlier cordon by others is remembered."""
        return self._writer.change(node, stamp, lambda _, marks: replace(marks, isolated=reason))

    def restore(self, node: str, stamp: Stamp, now: datetime) -> Answer:
        """Uncordons it, unless it is leaving or others cordoned it; it is also no longer the next to be deleted."""
        kept = answered(lambda: self._scaling.keep(node, stamp))
        if not isinstance(kept, Done):
            return kept
        return self._writer.change(node, stamp, lambda _, marks: replace(marks, isolated=None))

    def drained(self, node: str, stamp: Stamp, now: datetime) -> Answer:
        """For NVSentinel, once none of the pods that it named is left."""

        def decide(found: Node, marks: Marks) -> Marks | Refused:
            if pool_of(found, self._spec, self._named) is None:
                return Refused("NodeUnmanaged", f"node {node} is in none of our pools")
            if marks.lease is not None:
                return Refused("NodeHeld", f"node {node} serves {marks.lease.request}")
            return marks

        answer = self._writer.change(node, stamp, decide)
        return answered(lambda: self._drained(node, stamp, now)) if isinstance(answer, Done) else answer

    def _drained(self, node: str, stamp: Stamp, now: datetime) -> Answer:
        open_ = self._drains.open_for(node)
        pods = drain_requests.still_there(open_, self._known().pods)
        if pods:
            asked = self._departures.ask(node, pods, now + self._spec.notice, stamp, now)
            blocked = f"; a disruption budget blocks {'; '.join(asked.blocked)}" if asked.blocked else ""
            text = f"node {node} is draining: {len(pods)} pods must leave{blocked}"
            return asked.refused or Busy(now + pod_exits.RETRY, text)
        for request in open_:
            self._drains.answer(request, now)
        return Done()

    def remediate(
        self, node: str, order: RemedyOrder, stamp: Stamp, now: datetime
    ) -> Busy | Refused | tuple[CheckResult, ...]:
        """By NVSentinel, or a Job of ours."""
        found = self._known().nodes.get(node)
        if found is None:
            return NODE_GONE
        if (refusal := _late(found, stamp)) is not None:
            return refusal
        if (held := marks_of(found).lease) is not None:
            return Refused("NodeHeld", f"node {node} serves {held.request}")
        return answered(lambda: self._resets.run(found, order, stamp, now))

    def scale(self, pool: str, count: int, leaving: tuple[str, ...], stamp: Stamp, now: datetime) -> Answer:
        """By the `scale` subresource of the pool's target."""
        return answered(lambda: self._scaling.scale(pool, count, leaving, stamp))

    def run_workload(self, terms: WorkloadTerms, stamp: Stamp, now: datetime) -> Answer:
        """By server-side apply, as the ServiceAccount of its namespace."""
        self._known()
        return answered(lambda: self._slices.workloads.run(terms, stamp, now))

    def end_workload(self, key: str, stamp: Stamp, now: datetime) -> Answer:
        self._known()
        return answered(lambda: self._slices.workloads.end(key, stamp, now))

    def announce(self, notes: tuple[Note, ...], now: datetime) -> None:
        """As events, shown by `kubectl get events`."""
        announce(self._api, notes, self._known().slices, self._heard, self._home.instance)

    def close(self) -> None:
        for informer in self._informers():
            informer.stop()
        self._slices.stop()
        self._checks.stop()

    def _known(self) -> Known:
        self._begun()
        for informer in self._informers():
            informer.wait_synced()
        return Known(self._nodes.items(), self._pods.items(), self._slices.namespaces(), self._home.project)

    def _begun(self) -> Begun:
        """The parts that need the server's features; then all watches start."""
        if self._parts is None:
            self._parts = self._made()
            for informer in self._informers():
                informer.start()
            self._slices.start()
            self._checks.start()
        return self._parts

    def _follow_upgrade(self, version: str, now: datetime) -> None:
        """An upgraded server has other features; while its replicas differ, not every call discovers them again."""
        if self._parts is None or self._parts.features.version == version:
            self._same = now
        elif now - self._same >= UPGRADED:
            for informer in self._parts.placement.informers:
                informer.stop()
            self._parts, self._same = self._made(), now
            for informer in self._parts.placement.informers:
                informer.start()

    def _made(self) -> Begun:
        features, home = discover(self._api), self._home
        grace_s = int(self._spec.notice.total_seconds())
        site = Site(home.project, home.namespace, home.webhook, grace_s)
        return Begun(features, Placement(self._api, features, self._spec.admission, site, self._wake))

    def _informers(self) -> tuple[Informer[Any], ...]:
        placement = () if self._parts is None else self._parts.placement.informers
        return (self._nodes, self._pods, *placement)

    def _refuse_stale(self) -> None:
        """Without a watch nothing is known: a missing permission counts at once, silence after a while."""
        watches = (*self._informers(), *self._slices.informers, *self._checks.informers)
        for trouble in (watch.trouble for watch in watches):
            if isinstance(trouble, Rejected) and trouble.status in {401, 403}:
                raise trouble
        silent_s = max(watch.silent_s for watch in watches)
        if silent_s > self._spec.stale.total_seconds():
            raise Fault(
                f"the API server of cluster {self._name} answers, but a watch has been silent for {silent_s:.0f} s",
                "ClusterUnreachable",
            )

    def _marks(self, node: str) -> Marks:
        found = self._nodes.items().get(node)
        return Marks() if found is None else marks_of(found)

    def _gpu_pods(self, node: str) -> tuple[Pod, ...]:
        """Pods that must leave before the node is free; one that arrives later is a stray."""
        return self._pods_by_node(self._known()).get(node, ())

    def _pods_by_node(self, known: Known) -> PodsOfNodes:
        owners = cluster_view.owners_of(known.slices)
        return self._index.of(
            "", partial(cluster_view.by_node, known.pods, owners), same=(known.pods,), equal=owners
        )


def _late(node: Node, stamp: Stamp) -> Refused | None:
    return late(f"node {node.name}", marks_of(node).stamp, stamp)
