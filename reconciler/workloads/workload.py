"""Workloads: pods that belong together, with the request that they run on and the model that they run. Pure.

Held by tests/reconciler/workloads/test_owners.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from reconciler.model.pod_port import OwnerObject, Pod, PodsSeen, PodTrouble
from reconciler.workloads.model_names import ModelFound, model_of
from reconciler.workloads.owners import Found, Via, WorkloadKey, workload_of
from schemas.documents.gpr import ModelInfo


@dataclass(frozen=True, slots=True)
class Workload:
    """A Job, a Deployment, an InferenceService, …: what people started, with its pods."""

    key: WorkloadKey
    slice: str
    via: Via
    model: ModelFound
    pods: tuple[Pod, ...]  # by name, finished ones too
    troubles: tuple[PodTrouble, ...] = ()  # what the cluster warns of about it and its pods

    @property
    def gpus(self) -> int:
        """GPUs that its unfinished pods ask for."""
        return sum(pod.gpus for pod in self.pods if not pod.is_over)

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(sorted({pod.node for pod in self.pods if pod.node is not None and not pod.is_over}))

    @property
    def phase(self) -> str:
        """Pending while a pod waits for its node, Running, Failed, or Succeeded."""
        phases = {pod.phase for pod in self.pods}
        return next((one for one in ("Pending", "Running", "Failed") if one in phases), "Succeeded")


@dataclass(frozen=True, slots=True)
class Homes:
    """Whose a namespace is, and what each slice's running request says about its model."""

    slices: Mapping[tuple[str, str], str]  # by cluster and namespace
    models: Mapping[str, ModelInfo]  # by slice


def workloads_in(seen: Mapping[str, PodsSeen], homes: Homes) -> tuple[Workload, ...]:
    """The workloads with GPUs in all these clusters, by key. Pods of namespaces without a slice are left out."""
    found = (one for cluster, here in sorted(seen.items()) for one in _in_cluster(cluster, here, homes))
    return tuple(sorted(found, key=lambda workload: workload.key))


def _in_cluster(cluster: str, seen: PodsSeen, homes: Homes) -> Iterable[Workload]:
    groups: dict[WorkloadKey, list[tuple[Pod, Found]]] = defaultdict(list)
    for pod in seen.pods:
        if (cluster, pod.namespace) in homes.slices:
            found = workload_of(pod, seen.owners)
            groups[found.key].append((pod, found))
    for key, members in groups.items():
        pods = tuple(sorted((pod for pod, _ in members), key=lambda pod: pod.name))
        if not any(pod.gpus for pod in pods) or all(pod.phase == "Succeeded" for pod in pods):
            continue
        slice_ = homes.slices[cluster, key.namespace]
        asked = homes.models.get(slice_, ModelInfo())
        chain = _chain(found for _, found in members)
        yield Workload(
            key,
            slice_,
            members[0][1].via,
            model_of(asked, key.kind, chain, pods),
            pods,
            _about(key, pods, chain, seen),
        )


def _chain(found: Iterable[Found]) -> tuple[OwnerObject, ...]:
    """All objects above its pods, each once, lower ones first."""
    chains: dict[str, OwnerObject] = {}
    for one in found:
        chains |= {owner.ref.uid: owner for owner in one.chain if owner.ref.uid not in chains}
    return tuple(chains.values())


def _about(
    key: WorkloadKey, pods: tuple[Pod, ...], chain: tuple[OwnerObject, ...], seen: PodsSeen
) -> tuple[PodTrouble, ...]:
    names = {f"Pod/{pod.name}" for pod in pods}
    names |= {f"{owner.ref.kind}/{owner.ref.name}" for owner in chain} | {f"{key.kind}/{key.name}"}
    return tuple(t for t in seen.troubles if t.namespace == key.namespace and t.object in names)
