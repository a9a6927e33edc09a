"""Workload: Kubernetes objects that run on the nodes of one request, in whichever cluster these come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, JsonValue, WithJsonSchema

from schemas.documents.base import Document, Model
from schemas.reading.units import Name


@dataclass(frozen=True, slots=True)
class ObjectKind:
    """A kind of Kubernetes object that a workload may have."""

    group: str
    """Its API group; empty: the core group."""
    plural: str
    ends: bool = False
    """It runs to an end of its own: once it has ended it is not applied again."""
    first: bool = False
    """Others refer to it, so it is applied before them."""


OBJECT_KINDS: Mapping[str, ObjectKind] = {
    "ConfigMap": ObjectKind("", "configmaps", first=True),
    "PersistentVolumeClaim": ObjectKind("", "persistentvolumeclaims", first=True),
    "Service": ObjectKind("", "services", first=True),
    "Deployment": ObjectKind("apps", "deployments"),
    "Job": ObjectKind("batch", "jobs", ends=True),
    "JobSet": ObjectKind("jobset.x-k8s.io", "jobsets", ends=True),
    "LeaderWorkerSet": ObjectKind("leaderworkerset.x-k8s.io", "leaderworkersets"),
    "PyTorchJob": ObjectKind("kubeflow.org", "pytorchjobs", ends=True),
    "RayJob": ObjectKind("ray.io", "rayjobs", ends=True),
    "TrainJob": ObjectKind("trainer.kubeflow.org", "trainjobs", ends=True),
}
"""Everything else is refused; the cluster judges by the members' rights besides."""

RENDERED_KINDS: Mapping[str, ObjectKind] = {
    **OBJECT_KINDS,
    "HorizontalPodAutoscaler": ObjectKind("autoscaling", "horizontalpodautoscalers"),
    "HTTPRoute": ObjectKind("gateway.networking.k8s.io", "httproutes"),
    "InferenceService": ObjectKind("serving.kserve.io", "inferenceservices"),
    "ScaledObject": ObjectKind("keda.sh", "scaledobjects"),
}
"""Also those that endpoints are rendered into; a workload's document has none of these."""

Manifest = dict[str, JsonValue]
_SHOWN = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata"],
    "properties": {
        "apiVersion": {"type": "string", "title": "apiVersion", "description": "Its API group and version."},
        "kind": {"enum": sorted(OBJECT_KINDS), "title": "kind", "description": "Its kind."},
        "metadata": {
            "type": "object",
            "title": "metadata",
            "description": "Its name, labels and annotations.",
        },
    },
}
"""For editors; `schemas.rules.workload_rules` judges."""


class WorkloadSpec(Model):
    """What runs, and on whose nodes."""

    slice: Name = Field(description="The slice; equals the folder.")
    gpr: Name = Field(
        description="The request of this slice on whose nodes it runs. The workload waits until it is Provisioned."
    )
    namespace: Name | None = Field(
        None, description="One of the slice's namespaces; absent: the first one of slice.yaml."
    )
    manifests: tuple[Annotated[Manifest, WithJsonSchema(_SHOWN)], ...] = Field(
        min_length=1,
        max_length=50,
        description=f"Kubernetes objects: {', '.join(sorted(OBJECT_KINDS))}. Each needs apiVersion, kind and "
        "metadata.name. ConfigMaps, PersistentVolumeClaims and Services are applied first, then the others in this "
        "order.",
    )


class Workload(Document):
    """`slices/<slice>/workloads/<name>.yaml`; applied when its request starts, removed when the lease ends."""

    kind: Literal["Workload"] = Field("Workload", description="Kind of document.")
    spec: WorkloadSpec = Field(description="Its objects, and the request on whose nodes they run.")
