"""A slice's Kueue objects in one cluster. Pure.

    LocalQueue default   ─▶ ClusterQueue egs-…      ─▶ ResourceFlavor ─▶ Topology     workloads with GPUs
    LocalQueue egs-cpu   ─▶ ClusterQueue egs-…-cpu  ─▶ ResourceFlavor                 workloads without, at any time

A flavor is never changed once it is made, because topology-aware scheduling ignores changes: its name has a digest of
its content, so a change of content makes a new flavor. Only the GPUs of the first ClusterQueue are counted; its other
resources are there because Kueue refuses workloads that ask for a resource without quota.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass

from reconciler.clusters.kubernetes.api.api_client import Json
from reconciler.clusters.kubernetes.names import (
    GPU_RESOURCE,
    MIG_RESOURCE_PREFIX,
    NAMESPACE_SLICE,
    OWNER,
    SLICE,
)
from reconciler.clusters.kubernetes.nodes.mig import resource_of
from reconciler.clusters.kubernetes.tenancy.slice_objects import Kind, labels, quantity
from reconciler.model.cluster_port import QueueTerms, QueueView, SliceTerms, Stop

GROUP = "kueue.x-k8s.io"
VERSIONS = ("v1beta2", "v1beta1")
"""Versions that we can write, the preferred one first."""
FLAVOR, TOPOLOGY, CLUSTER_QUEUE, LOCAL_QUEUE = "ResourceFlavor", "Topology", "ClusterQueue", "LocalQueue"
PLURALS = {
    TOPOLOGY: "topologies",
    FLAVOR: "resourceflavors",
    CLUSTER_QUEUE: "clusterqueues",
    LOCAL_QUEUE: "localqueues",
}
"""In the order in which they are made: what refers to another comes after it."""
DEFAULT, CPU = "default", "egs-cpu"
"""Names of the LocalQueues; Kueue puts workloads that name no queue into the first one."""
_PLENTY = {"cpu": "1M", "memory": "1Ei", "ephemeral-storage": "1Ei"}
"""More than any cluster has."""
_LONGEST = 36
"""Of a slice's name inside a name, so that this one stays a label's value (63)."""


@dataclass(frozen=True, slots=True)
class Served:
    """What the cluster has of Kueue's API."""

    version: str
    has_topologies: bool = True

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Those that we write."""
        return tuple(
            Kind(name, f"{GROUP}/{self.version}", plural, ("spec",), name == LOCAL_QUEUE, is_shared=True)
            for name, plural in PLURALS.items()
            if name != TOPOLOGY or self.has_topologies
        )


def base_name(project: str, slice_: str) -> str:
    """The same for one slice of one project, another for every other one."""
    return f"egs-{slice_[:_LONGEST].rstrip('-')}-{_digest(project, slice_)}"


def queue_objects(terms: SliceTerms, project: str, served: Served) -> tuple[Json, ...]:
    """All of them, in the order in which they are made; none if the slice wants no queue."""
    if terms.queue is None:
        return ()
    base, levels = base_name(project, terms.name), terms.queue.topology if served.has_topologies else ()
    made = _Made(served.version, labels(terms.name, project))
    topology = made.topology(base, levels) if levels else None
    flavor = made.flavor(base, terms.name, None if topology is None else topology["metadata"]["name"])
    plain = made.object(FLAVOR, f"{base}-cpu", {})
    quotas = {**_gpus(terms.queue), **_PLENTY}
    queues = [
        made.cluster_queue(base, flavor, quotas, terms.queue.stop),
        made.cluster_queue(f"{base}-cpu", plain, _PLENTY, "None"),
    ]
    doors = [
        made.local_queue(namespace, name, queue)
        for namespace in sorted(set(terms.namespaces))
        for name, queue in ((DEFAULT, base), (CPU, f"{base}-cpu"))
    ]
    return (*(() if topology is None else (topology,)), flavor, plain, *queues, *doors)


def shown(spec: Json) -> QueueView:
    """The queue that a ClusterQueue's spec makes; what is unreadable in it counts as nothing."""
    flavors = [flavor for group in spec.get("resourceGroups") or () for flavor in group.get("flavors") or ()]
    quotas = {row["name"]: str(row["nominalQuota"]) for flavor in flavors for row in flavor["resources"]}
    mig = next((name for name in sorted(quotas) if name.startswith(MIG_RESOURCE_PREFIX)), "")
    stop = next((stop for stop in _STOPS if spec.get("stopPolicy") == stop), _STOPS[0])
    return QueueView(_number(quotas.get(GPU_RESOURCE, "0")), stop, mig.removeprefix(MIG_RESOURCE_PREFIX))


_STOPS: tuple[Stop, ...] = ("None", "Hold", "HoldAndDrain")


def _gpus(queue: QueueTerms) -> dict[str, str]:
    """Partitions have a name of their own or that of whole GPUs, as the device plugin's strategy says."""
    names = (GPU_RESOURCE, *((resource_of(queue.mig),) if queue.mig else ()))
    return dict.fromkeys(names, quantity(queue.gpus))


def _number(text: str) -> int:
    digits = text.rstrip("kMG")
    return int(digits) * 1000 ** " kMG".index(text[len(digits) :] or " ") if digits.isdigit() else 0


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:8]


@dataclass(frozen=True, slots=True)
class _Made:
    """Makes objects of one slice."""

    version: str
    own: dict[str, str]

    def object(self, kind: str, name: str, spec: Json, namespace: str = "") -> Json:
        where = {"namespace": namespace} if namespace else {}
        meta = {"name": name, **where, "labels": dict(self.own)}
        return {"apiVersion": f"{GROUP}/{self.version}", "kind": kind, "metadata": meta, "spec": spec}

    def topology(self, base: str, levels: Iterable[str]) -> Json:
        spec = {"levels": [{"nodeLabel": label} for label in levels]}
        return self.object(TOPOLOGY, f"{base}-{_digest(spec)}", spec)

    def flavor(self, base: str, slice_: str, topology: str | None) -> Json:
        """Nodes that serve the slice, whichever these are: so a replacement changes no flavor."""
        ours = {"key": SLICE, "operator": "Equal", "value": slice_, "effect": "NoSchedule"}
        spec: Json = {"nodeLabels": {SLICE: slice_}, "tolerations": [ours]}
        if topology is not None:
            spec["topologyName"] = topology
        return self.object(FLAVOR, f"{base}-{_digest(spec)}", spec)

    def cluster_queue(self, name: str, flavor: Json, quotas: dict[str, str], stop: Stop) -> Json:
        """For the slice's namespaces only, and with no other quota."""
        rows = [{"name": resource, "nominalQuota": quota} for resource, quota in quotas.items()]
        flavors = [{"name": flavor["metadata"]["name"], "resources": rows}]
        mine = {key: self.own[key] for key in (NAMESPACE_SLICE, OWNER)}
        spec = {
            "namespaceSelector": {"matchLabels": mine},
            "resourceGroups": [{"coveredResources": list(quotas), "flavors": flavors}],
            "stopPolicy": stop,
        }
        return self.object(CLUSTER_QUEUE, name, spec)

    def local_queue(self, namespace: str, name: str, queue: str) -> Json:
        return self.object(LOCAL_QUEUE, name, {"clusterQueue": queue}, namespace)
