"""GPR and GPRTemplate: a number of GPU nodes of a shape, for a strict time, at a priority.

A file may leave fields to a template; `resolve` merges both into a `RequestSpec`, which is planned, accepted and
approved.
"""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from schemas.documents.base import Document, Model
from schemas.reading.units import Duration, Instant, Lasting, Line, Name, Shape, memory_gb

DEFAULT_PRIORITY = 101
MAX_PRIORITY = 300
OUTSIDE_DIGEST = (
    "displayName",
    "earlyRelease",
    "extend",
    "notBefore",
    "start",
    "idleTimeout",
    "model",
    "priority",
    "move",
    "stopped",
)
"""Fields that an approval does not bind; a priority above the slice's limit is bound all the same."""

_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)

_CAME_LATER = (("prefer", "earliest"), ("maxWait", None))
"""Newer fields that are left out of the digest at their default, so that older approvals stay valid."""

Count = Annotated[int, Field(ge=1, le=100_000)]
StartMode = Literal["asap", "ready", "promised"]
Prefer = Literal["earliest", "price", "memory"]


class Network(Model):
    """Networks the nodes must have."""

    rdma: bool = Field(False, description="Only nodes with RDMA.")
    secondary: bool = Field(False, description="Only nodes with a second pod network.")


class ModelInfo(Model):
    """The model that will run: shown beside the workload, never interpreted."""

    name: str = Field("", max_length=200, description="Model.")
    framework: str = Field("", max_length=100, description="Framework.")
    parameters: dict[str, str] = Field(default_factory=dict, max_length=100, description="Free parameters.")


class Wish(Model):
    """Fields common to GPR and template; None: from the template, then from the default."""

    nodes: Count | None = Field(None, description="Whole GPU nodes, from 1.")
    gpus_per_node: int | None = Field(
        None, ge=1, le=64, description="Least number of GPUs per node. Default 1."
    )
    gpu_shape: Shape | Annotated[tuple[Shape, ...], Field(min_length=1, max_length=20)] | None = Field(
        None, description='A shape, a list in order of preference, or "any" (the default).'
    )
    memory_per_gpu: int | None = Field(
        None, ge=1, le=4_194_304, description="Least memory of each GPU in GB; above 4096 it is taken as MiB."
    )
    instance_type: Line | None = Field(None, max_length=63, description="Only this machine type.")
    clusters: tuple[Name, ...] | None = Field(
        None, max_length=100, description="Order of preference; empty or absent: the slice's."
    )
    duration: Lasting | None = Field(None, description="Strict: the nodes are released at its end.")
    priority: int | None = Field(
        None, ge=1, le=MAX_PRIORITY, description="Low 1-100, medium 101-200, high 201-300. Default 101."
    )
    start: StartMode | None = Field(
        None,
        description="asap (default) | ready (early only when a GPU pod waits) | promised (never before "
        "the promise).",
    )
    sharing: Annotated[str, Field(pattern=r"^(dedicated|mig:[0-9a-z.+-]{1,40})$")] | None = Field(
        None, description="dedicated (default) | mig:<profile>."
    )
    preemptible: bool | None = Field(None, description="May make room for a higher band. Default true.")
    requeue_on_failure: bool | None = Field(
        None, description="Queue again for the rest of its time if its nodes fail. Default true."
    )
    idle_timeout: Lasting | None = Field(None, description="Release after this long without use.")
    prefer: Prefer | None = Field(
        None,
        description="Which of the fitting pools: earliest (default) start | the lowest price | the least "
        "sufficient memory.",
    )
    max_wait: Lasting | None = Field(
        None, description="With prefer price or memory: use other pools if the wait would be longer."
    )
    network: Network | None = Field(None, description="Networks the nodes must have.")
    model: ModelInfo | None = Field(None, description="What will run; informational.")


_SAYS_HOW_MUCH: dict[str, Any] = {
    "anyOf": [
        {"required": ["template"], "properties": {"template": {"type": "string"}}},
        {
            "required": ["nodes", "duration"],
            "properties": {"nodes": {"type": "integer"}, "duration": {"type": "string"}},
        },
    ]
}


class GPRSpec(Wish):
    """The spec in the file of a request."""

    model_config = ConfigDict(json_schema_extra=_SAYS_HOW_MUCH)

    slice: Name = Field(description="The slice it is for; equals the folder.")
    display_name: Line | None = Field(
        None, max_length=200, description="Display name, one line; may change at any time."
    )
    not_before: Instant | None = Field(None, description="Earliest wanted start.")
    early_release: bool = Field(
        False, description="true ends a provisioned request now, and cancels a waiting one."
    )
    extend: Duration = Field(
        timedelta(), description="Total grace wanted beyond duration; within the project's limit."
    )
    move: int = Field(
        0,
        ge=-1000,
        le=1000,
        description="An admin's adjustment of its place among requests of its priority: higher first.",
    )
    stopped: bool = Field(
        False, description="true gives the nodes back and keeps the remaining time; false queues it again."
    )
    template: Name | None = Field(None, description="Template for the fields that are absent here.")

    @model_validator(mode="after")
    def _says_how_much(self) -> Self:
        if self.template is None and (self.nodes is None or self.duration is None):
            raise ValueError("nodes and duration are required unless a template gives them")
        return self


class GPR(Document):
    """`slices/<slice>/gprs/<name>.yaml`."""

    kind: Literal["GPR"] = Field("GPR", description="Kind of document.")
    spec: GPRSpec = Field(description="The requested slice.")


class GPRTemplate(Document):
    """`templates/<name>.yaml`: defaults for GPRs that name it."""

    kind: Literal["GPRTemplate"] = Field("GPRTemplate", description="Kind of document.")
    spec: Wish = Field(description="Defaults of requests that name it.")


class RequestSpec(Model):
    """A GPR with its template expanded and every default filled in."""

    slice: Name = Field(description="The slice it is for.")
    display_name: str | None = Field(None, description="Display name.")
    nodes: Count = Field(description="Whole GPU nodes.")
    gpus_per_node: int = Field(1, description="Least number of GPUs per node.")
    gpu_shapes: tuple[str, ...] = Field((), description="In order of preference; empty: any.")
    memory_per_gpu: int = Field(0, description="GB; 0: any.")
    instance_type: str | None = Field(None, description="Only this machine type.")
    clusters: tuple[str, ...] = Field((), description="Empty: the slice's.")
    duration: Duration = Field(description="Strict.")
    priority: int = Field(DEFAULT_PRIORITY, description="1 to 300.")
    not_before: Instant | None = Field(None, description="Earliest wanted start.")
    start: StartMode = Field("asap", description="When it may start.")
    sharing: str = Field("dedicated", description="How nodes are shared.")
    preemptible: bool = Field(True, description="May make room for a higher band.")
    requeue_on_failure: bool = Field(True, description="Queue again if its nodes fail.")
    idle_timeout: Duration | None = Field(None, description="Release after this long idle.")
    network: Network = Field(Network(), description="Networks its nodes have.")
    model: ModelInfo = Field(ModelInfo(), description="What will run; informational.")
    early_release: bool = Field(False, description="End it now.")
    extend: Duration = Field(timedelta(), description="Total grace wanted.")
    move: int = Field(0, description="Place among requests of its priority: higher first.")
    prefer: Prefer = Field("earliest", description="Which of the fitting pools.")
    max_wait: Duration | None = Field(None, description="Longest wait for the preferred pools.")
    stopped: bool = Field(False, description="Gives its nodes back and keeps its time.")

    def digest(self, max_priority: int) -> str:
        """What an approval is bound to: `sha256:` over the canonical JSON of the spec without `OUTSIDE_DIGEST`."""
        plain = self.model_dump(mode="json", by_alias=True, exclude=_UNBOUND)
        bound = {key: value for key, value in plain.items() if (key, value) not in _CAME_LATER}
        if self.priority > max_priority:
            bound["priority"] = self.priority
        return "sha256:" + hashlib.sha256(_CANONICAL.encode(bound).encode()).hexdigest()


_UNBOUND = {
    name
    for name, field in RequestSpec.model_fields.items()
    if (field.serialization_alias or name) in OUTSIDE_DIGEST
}


def resolve(spec: GPRSpec, template: Wish | None) -> RequestSpec | str:
    """The request with the template's fields as defaults; a sentence if nodes or duration are missing."""
    given: dict[str, Any] = {} if template is None else _set_fields(template)
    given |= _set_fields(spec)
    for need in ("nodes", "duration"):
        if need not in given:
            return f"neither the request nor its template gives {need}"
    shape = given.pop("gpu_shape", "any")
    shapes = (shape,) if isinstance(shape, str) else shape
    given["gpu_shapes"] = () if "any" in shapes else shapes
    given["memory_per_gpu"] = memory_gb(given.get("memory_per_gpu", 0))
    given.pop("template", None)
    # All values are validated already; copying a blank with them is five times as fast as validating again.
    return _BLANK.edited(**given)


_BLANK = RequestSpec(slice="none", nodes=1, duration=timedelta(hours=1))


def _set_fields(spec: Wish) -> dict[str, Any]:
    return {name: value for name, value in vars(spec).items() if value is not None}
