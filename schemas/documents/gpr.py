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
from schemas.documents.cluster import Shape
from schemas.reading.units import Duration, Instant, Lasting, Line, Name, memory_gb

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

    rdma: Annotated[bool, Field(description="Only nodes with RDMA.")] = False
    secondary: Annotated[bool, Field(description="Only nodes with a second pod network.")] = False


class ModelInfo(Model):
    """The model that will run: shown beside the workload, never interpreted."""

    name: Annotated[str, Field(max_length=200, description="Model.")] = ""
    framework: Annotated[str, Field(max_length=100, description="Framework.")] = ""
    parameters: Annotated[dict[str, str], Field(max_length=100, description="Free parameters.")] = Field(
        default_factory=dict
    )


class Wish(Model):
    """Fields common to GPR and template; None: from the template, then from the default."""

    nodes: Annotated[Count | None, Field(description="Whole GPU nodes, from 1.")] = None
    gpus_per_node: Annotated[
        int | None, Field(ge=1, le=64, description="Least number of GPUs per node. Default 1.")
    ] = None
    gpu_shape: Annotated[
        Shape | Annotated[tuple[Shape, ...], Field(min_length=1, max_length=20)] | None,
        Field(description='A shape, a list in order of preference, or "any" (the default).'),
    ] = None
    memory_per_gpu: Annotated[
        int | None,
        Field(
            ge=1, le=4_194_304, description="Least memory of each GPU in GB; above 4096 it is taken as MiB."
        ),
    ] = None
    instance_type: Annotated[Line | None, Field(max_length=63, description="Only this machine type.")] = None
    clusters: Annotated[
        tuple[Name, ...] | None,
        Field(max_length=100, description="Order of preference; empty or absent: the slice's."),
    ] = None
    duration: Annotated[Lasting | None, Field(description="Strict: the nodes are released at its end.")] = (
        None
    )
    priority: Annotated[
        int | None,
        Field(ge=1, le=MAX_PRIORITY, description="Low 1-100, medium 101-200, high 201-300. Default 101."),
    ] = None
    start: Annotated[
        StartMode | None,
        Field(
            description="asap (default) | ready (early only when a GPU pod waits) | promised (never before "
            "the promise)."
        ),
    ] = None
    sharing: Annotated[
        Annotated[str, Field(pattern=r"^(dedicated|mig:[0-9a-z.+-]{1,40})$")] | None,
        Field(description="dedicated (default) | mig:<profile>."),
    ] = None
    preemptible: Annotated[
        bool | None, Field(description="May make room for a higher band. Default true.")
    ] = None
    requeue_on_failure: Annotated[
        bool | None,
        Field(description="Queue again for the rest of its time if its nodes fail. Default true."),
    ] = None
    idle_timeout: Annotated[Lasting | None, Field(description="Release after this long without use.")] = None
    prefer: Annotated[
        Prefer | None,
        Field(
            description="Which of the fitting pools: earliest (default) start | the lowest price | the least "
            "sufficient memory."
        ),
    ] = None
    max_wait: Annotated[
        Lasting | None,
        Field(description="With prefer price or memory: use other pools if the wait would be longer."),
    ] = None
    network: Annotated[Network | None, Field(description="Networks the nodes must have.")] = None
    model: Annotated[ModelInfo | None, Field(description="What will run; informational.")] = None


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

    slice: Annotated[Name, Field(description="The slice it is for; equals the folder.")]
    display_name: Annotated[
        Line | None, Field(max_length=200, description="Display name, one line; may change at any time.")
    ] = None
    not_before: Annotated[Instant | None, Field(description="Earliest wanted start.")] = None
    early_release: Annotated[
        bool, Field(description="true ends a provisioned request now, and cancels a waiting one.")
    ] = False
    extend: Annotated[
        Duration, Field(description="Total grace wanted beyond duration; within the project's limit.")
    ] = timedelta()
    move: Annotated[
        int,
        Field(
            ge=-1000,
            le=1000,
            description="An admin's adjustment of its place among requests of its priority: higher first.",
        ),
    ] = 0
    stopped: Annotated[
        bool,
        Field(description="true gives the nodes back and keeps the remaining time; false queues it again."),
    ] = False
    template: Annotated[Name | None, Field(description="Template for the fields that are absent here.")] = (
        None
    )

    @model_validator(mode="after")
    def _says_how_much(self) -> Self:
        if self.template is None and (self.nodes is None or self.duration is None):
            raise ValueError("nodes and duration are required unless a template gives them")
        return self


class GPR(Document):
    """`slices/<slice>/gprs/<name>.yaml`."""

    kind: Annotated[Literal["GPR"], Field(description="Kind of document.")] = "GPR"
    spec: Annotated[GPRSpec, Field(description="The requested slice.")]


class GPRTemplate(Document):
    """`templates/<name>.yaml`: defaults for GPRs that name it."""

    kind: Annotated[Literal["GPRTemplate"], Field(description="Kind of document.")] = "GPRTemplate"
    spec: Annotated[Wish, Field(description="Defaults of requests that name it.")]


class RequestSpec(Model):
    """A GPR with its template expanded and every default filled in."""

    slice: Annotated[Name, Field(description="The slice it is for.")]
    display_name: Annotated[str | None, Field(description="Display name.")] = None
    nodes: Annotated[Count, Field(description="Whole GPU nodes.")]
    gpus_per_node: Annotated[int, Field(description="Least number of GPUs per node.")] = 1
    gpu_shapes: Annotated[tuple[str, ...], Field(description="In order of preference; empty: any.")] = ()
    memory_per_gpu: Annotated[int, Field(description="GB; 0: any.")] = 0
    instance_type: Annotated[str | None, Field(description="Only this machine type.")] = None
    clusters: Annotated[tuple[str, ...], Field(description="Empty: the slice's.")] = ()
    duration: Annotated[Duration, Field(description="Strict.")]
    priority: Annotated[int, Field(description="1 to 300.")] = DEFAULT_PRIORITY
    not_before: Annotated[Instant | None, Field(description="Earliest wanted start.")] = None
    start: Annotated[StartMode, Field(description="When it may start.")] = "asap"
    sharing: Annotated[str, Field(description="How nodes are shared.")] = "dedicated"
    preemptible: Annotated[bool, Field(description="May make room for a higher band.")] = True
    requeue_on_failure: Annotated[bool, Field(description="Queue again if its nodes fail.")] = True
    idle_timeout: Annotated[Duration | None, Field(description="Release after this long idle.")] = None
    network: Annotated[Network, Field(description="Networks its nodes have.")] = Network()
    model: Annotated[ModelInfo, Field(description="What will run; informational.")] = ModelInfo()
    early_release: Annotated[bool, Field(description="End it now.")] = False
    extend: Annotated[Duration, Field(description="Total grace wanted.")] = timedelta()
    move: Annotated[int, Field(description="Place among requests of its priority: higher first.")] = 0
    prefer: Annotated[Prefer, Field(description="Which of the fitting pools.")] = "earliest"
    max_wait: Annotated[Duration | None, Field(description="Longest wait for the preferred pools.")] = None
    stopped: Annotated[bool, Field(description="Gives its nodes back and keeps its time.")] = False

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
