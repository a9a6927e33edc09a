"""From a pod to the workload that it belongs to: owner references upward, then labels. Pure.

Owners are climbed as far as they are known; the last reference counts even if its object could not be read. What ends
at a kind of Kubernetes itself, or at no owner, may belong to something larger: controllers mark their pods with labels.

Held by tests/reconciler/workloads/test_owners.py, on objects as clusters give them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from reconciler.model.pod_port import OwnerObject, OwnerRef, Pod

Via = Literal["owner", "label", "pod"]
"""How it is known: by owner references, by a label of the pod, or because the pod stands alone."""

MOST_STEPS = 12
"""Owners above each other; Knative and KServe together have six."""
ORDINARY = frozenset({"Pod", "ReplicaSet", "Deployment", "StatefulSet", "Job", "ReplicationController"})
"""Kinds of Kubernetes itself: labels may name something larger even if they have no owner."""


@dataclass(frozen=True, slots=True, order=True)
class WorkloadKey:
    """The object that people made, by cluster."""

    cluster: str
    namespace: str
    kind: str
    name: str

    @property
    def id(self) -> str:
        """The same wherever it is computed, and fit for a path of a URL."""
        text = "\n".join((self.cluster, self.namespace, self.kind, self.name))
        return f"wl-{sha256(text.encode()).hexdigest()[:12]}"


@dataclass(frozen=True, slots=True)
class Found:
    """A workload, how it is known, and the objects on the way, the lowest first."""

    key: WorkloadKey
    via: Via
    chain: tuple[OwnerObject, ...] = ()


LABELS: tuple[tuple[str, str], ...] = (
    ("serving.kserve.io/inferenceservice", "InferenceService"),
    ("leaderworkerset.sigs.k8s.io/name", "LeaderWorkerSet"),
    ("jobset.sigs.k8s.io/jobset-name", "JobSet"),
    ("training.kubeflow.org/job-name", "TrainingJob"),
    ("pytorch-job-name", "PyTorchJob"),
    ("tf-job-name", "TFJob"),
    ("ray.io/cluster", "RayCluster"),
    ("volcano.sh/job-name", "VolcanoJob"),
    ("nvidia.com/dynamo-graph-deployment-name", "DynamoGraphDeployment"),
)
"""Labels that controllers set, the largest thing first, and the kind that they name."""
RAY_NAME, RAY_KIND = "ray.io/originated-from-cr-name", "ray.io/originated-from-crd"
LLM_PART = "llminferenceservice"
KUBEFLOW_OPERATOR = "training.kubeflow.org/operator-name"
KUBEFLOW_KINDS: Mapping[str, str] = {
    "pytorchjob": "PyTorchJob",
    "tfjob": "TFJob",
    "mpijob": "MPIJob",
    "xgboostjob": "XGBoostJob",
    "paddlejob": "PaddleJob",
    "jaxjob": "JAXJob",
}
APP = ("app.kubernetes.io/instance", "app.kubernetes.io/name", "app")
"""Labels of people and of Helm: the last resort, for pods without any owner."""
JOB = ("batch.kubernetes.io/job-name", "job-name")


def workload_of(pod: Pod, owners: Mapping[str, OwnerObject]) -> Found:
    """The workload of a pod; `owners` by uid. A pod that nothing made is its own workload."""
    top, chain = _climbed(pod, owners)
    named = _labelled(pod.labels)
    if named is not None and _is_larger(named, top, chain):
        return Found(_key(pod, *named), "label", chain)
    if top is not None:
        return Found(_key(pod, _kind(top), top.name), "owner", chain)
    if (app := _app(pod.labels)) is not None:
        return Found(_key(pod, *app), "label")
    return Found(_key(pod, "Pod", pod.name), "pod")


def _key(pod: Pod, kind: str, name: str) -> WorkloadKey:
    return WorkloadKey(pod.cluster, pod.namespace, kind, name)


def _is_larger(named: tuple[str, str], top: OwnerRef | None, chain: tuple[OwnerObject, ...]) -> bool:
    """Whether the label names something above the highest known owner."""
    if top is None:
        return True
    kinds = {_kind(one.ref) for one in chain}
    is_read = bool(chain) and chain[-1].ref == top
    return named[0] not in kinds | {_kind(top)} and (not is_read or top.kind in ORDINARY)


def _climbed(pod: Pod, owners: Mapping[str, OwnerObject]) -> tuple[OwnerRef | None, tuple[OwnerObject, ...]]:
    """The highest owner that is named, and the objects up to it that were read."""
    top: OwnerRef | None = None
    chain: list[OwnerObject] = []
    above = pod.owners[:1]
    # A static pod belongs to its node, which is no workload.
    while above and above[0].kind != "Node" and len(chain) < MOST_STEPS:
        found = owners.get(above[0].uid)
        if found is None:
            return _deployment_of(above[0], pod.labels), tuple(chain)
        if found in chain:
            break
        top = found.ref
        chain.append(found)
        above = found.owners[:1]
    return top, tuple(chain)


def _deployment_of(ref: OwnerRef, labels: Mapping[str, str]) -> OwnerRef:
    """A ReplicaSet that was not read, as the Deployment that its name tells, if its hash is on the pod."""
    digest = labels.get("pod-template-hash", "")
    if ref.kind == "ReplicaSet" and digest and ref.name.endswith(f"-{digest}"):
        return OwnerRef(ref.group, "Deployment", ref.name.removesuffix(f"-{digest}"), "")
    return ref


def _kind(ref: OwnerRef) -> str:
    """Volcano's Job is not Kubernetes' Job."""
    return "VolcanoJob" if ref.kind == "Job" and ref.group == "batch.volcano.sh" else ref.kind


def _labelled(labels: Mapping[str, str]) -> tuple[str, str] | None:
    """Kind and name of the largest thing that a controller's label names."""
    if labels.get("app.kubernetes.io/part-of") == LLM_PART and labels.get("app.kubernetes.io/name"):
        return "LLMInferenceService", labels["app.kubernetes.io/name"]
    if labels.get(RAY_NAME) and labels.get(RAY_KIND):
        return labels[RAY_KIND], labels[RAY_NAME]
    for label, kind in LABELS:
        if labels.get(label):
            return (_kubeflow(labels) if kind == "TrainingJob" else kind), labels[label]
    return None


def _kubeflow(labels: Mapping[str, str]) -> str:
    operator = labels.get(KUBEFLOW_OPERATOR, "").removesuffix("-controller")
    return KUBEFLOW_KINDS.get(operator, "TrainingJob")


def _app(labels: Mapping[str, str]) -> tuple[str, str] | None:
    job = next((labels[name] for name in JOB if labels.get(name)), None)
    if job is not None:
        return "Job", job
    app = next((labels[name] for name in APP if labels.get(name)), None)
    return None if app is None else ("App", app)
