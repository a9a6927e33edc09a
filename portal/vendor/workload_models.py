"""Workloads that people file, on the wire: a new one, with a new request or for one that exists. Models only."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, JsonValue

from portal.http.context import Changed, Flag, Wire, example, optional
from portal.vendor.gpr_models import GprDetails

MOST_BYTES = 1 << 16
"""As for a file on main (schemas.reading.strict_yaml.MAX_BYTES)."""
MOST_OBJECTS = 50
"""As `spec.manifests` of a Workload."""

_JOB: dict[str, Any] = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "train"},
    "spec": {
        "completions": 2,
        "parallelism": 2,
        "completionMode": "Indexed",
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "containers": [
                    {
                        "name": "train",
                        "image": "example.com/train:1",
                        "resources": {"limits": {"nvidia.com/gpu": 8}},
                    }
                ],
            }
        },
    },
}
DEPLOY = {
    "name": "finetune",
    "sliceName": "vision",
    "manifests": [_JOB],
    "gprDetails": {"numberOfGPUNodes": 2, "numberOfGPUs": 8, "exitDuration": "0d6h0m"},
}
DEPLOY_ON = {"name": "evaluate", "sliceName": "vision", "manifests": [_JOB], "gprId": "vision/finetune"}
"""Bodies for the OpenAPI document: with a new request, and for one that exists."""


class WorkloadAsk(Wire):
    """A new workload: objects, and the request on whose nodes they run."""

    name: Annotated[str, Field(max_length=63)] = Field(
        description="Name of the workload, and of its new request.", examples=["finetune"]
    )
    slice_name: Annotated[str, Field(max_length=63)] = Field(
        description="The workspace it is for.", examples=["vision"]
    )
    manifests: (
        Annotated[str, Field(max_length=MOST_BYTES)]
        | Annotated[list[dict[str, JsonValue]], Field(min_length=1, max_length=MOST_OBJECTS)]
    ) = Field(description="Kubernetes objects; or a YAML text with one or more documents.")
    gpr_id: Annotated[str, Field(max_length=200)] | None = optional(
        "A request of the workspace that exists: its id, or slice/name. Absent: a new one is filed."
    )
    gpr_details: GprDetails | None = optional("Terms of the new request; never with `gprId`.")
    namespace: Annotated[str, Field(max_length=63)] | None = optional(
        "One of the workspace's namespaces; absent: its first."
    )
    dry_run: Flag = Field(
        default=False, description="Write nothing; `text` of the answer has the files that it would write."
    )


class WorkloadFiled(Wire):
    """A workload that was filed, or only tried."""

    model_config = example(
        {
            "name": "vision/finetune",
            "gprId": "gpr-7c29e338-ebda",
            "gprName": "vision/finetune",
            "text": "",
            "change": {"way": "pushed", "commit": "8d5f0a1c6b7e4f2d9a3b5c7d9e1f2a3b4c5d6e7f"},
        }
    )

    name: str = Field(description="slice/name.")
    gpr_id: str = Field(
        description="Id of its request, valid at once; empty: the controller has not seen a request without one yet."
    )
    gpr_name: str = Field(description="slice/file of its request.")
    text: str = Field(description="After a dry run: the files that it would write, as YAML documents.")
    change: Changed | None = optional("Absent after a dry run.")


class WorkloadNamed(Wire):
    """Names a workload."""

    name: str = Field(max_length=200, description="slice/name.", examples=["vision/finetune"])


class WorkloadChanged(Wire):
    """A workload that was changed."""

    name: str = Field(description="slice/name.", examples=["vision/finetune"])
    change: Changed
