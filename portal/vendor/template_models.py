"""Templates on the wire and in files, both ways. Pure.

The vendor's `enableEviction` is our `preemptible`; an idle timeout that is not enforced is absent; a shape may be a
list in order of preference. Held by tests/portal/vendor/test_template_models.py: reading and writing are inverse.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Annotated, Any

from pydantic import Field, ValidationError

from portal.http.context import Changed, Flag, Line, Whole, Wire, example, optional
from portal.http.durations import checked_duration
from portal.http.errors import ApiError, bad_parameters
from portal.http.names import listed
from schemas.documents.gpr import Network, Wish
from schemas.reading.units import format_duration, memory_gb
from schemas.rules.problems import quoted

ANY = "any"

Text = Annotated[str, Field(max_length=200)]
TextLine = Annotated[Line, Field(max_length=200)]


class TemplateFields(Wire):
    """The fields of a template; absent ones are left to requests, or in a change kept."""

    cluster_name: Text | None = optional(
        'The cluster; "" or absent: any of the workspace\'s.', examples=["east"]
    )
    preferred_clusters: Annotated[tuple[Text, ...], Field(max_length=100)] | None = optional(
        "Several, in order of preference; `clusterName`, if given, is the first of them."
    )
    number_of_gpus: Whole | None = optional("Per node.", alias="numberOfGPUs", ge=1, le=64, examples=[8])
    number_of_gpu_nodes: Whole | None = optional(
        "Whole nodes.", alias="numberOfGPUNodes", ge=1, le=100_000, examples=[2]
    )
    memory_per_gpu: Whole | None = optional(
        "Least memory of each GPU in GB; a value above 4096 is taken as MiB; 0: any.",
        alias="memoryPerGPU",
        ge=0,
        le=4_194_304,
        examples=[80],
    )
    gpu_shape: Text | None = optional('The GPU\'s shape; "" or "any": any.', examples=["H100-80GB"])
    gpu_shapes: Annotated[tuple[Text, ...], Field(max_length=20)] | None = optional(
        "Several, in order of preference; `gpuShape` is the first of them."
    )
    instance_type: TextLine | None = optional('Machine type; "": any.', examples=["p5.48xlarge"])
    exit_duration: Text | None = optional("How long; the end is strict.", examples=["0d6h0m", "6h"])
    priority: Whole | None = optional("1 to 300, higher first.", ge=1, le=300, examples=[150])
    gpu_sharing_mode: Text | None = optional("`dedicated` or `mig:<profile>`.")
    enforce_idle_time_out: Flag | None = optional(
        "Whether idle nodes are released; needs `idleTimeOutDuration`."
    )
    idle_time_out_duration: Text | None = optional(
        "Release after this long without use.", examples=["0d0h30m"]
    )
    enable_eviction: Flag | None = optional("Whether it may make room for more urgent requests.")
    requeue_on_failure: Flag | None = optional("Whether it is queued again if its nodes fail.")
    enable_auto_gpu_selection: Flag | None = optional(
        "true: any shape and machine type; then neither may be named."
    )
    enable_rdma: Flag | None = optional("Only nodes with RDMA.", alias="enableRDMA")
    enable_secondary_network: Flag | None = optional("Only nodes with a second network for pods.")


EXAMPLE: dict[str, Any] = {
    "name": "finetune-small",
    "clusterName": "east",
    "numberOfGPUs": 8,
    "numberOfGPUNodes": 1,
    "memoryPerGPU": 80,
    "gpuShape": "H100-80GB",
    "exitDuration": "0d2h0m",
    "priority": 120,
    "enforceIdleTimeOut": True,
    "idleTimeOutDuration": "0d0h30m",
    "enableEviction": True,
    "requeueOnFailure": True,
}


class TemplateWish(TemplateFields):
    """A template to make or change."""

    model_config = example(EXAMPLE)

    name: str = Field(min_length=1, max_length=253, description="Its name.", examples=["finetune-small"])


class Template(TemplateFields):
    """A template as it is in force."""

    model_config = example(EXAMPLE)

    name: str = Field(description="Its name.")


class TemplateNamed(Wire):
    """Names a template."""

    model_config = example({"gprTemplateName": "finetune-small"})

    gpr_template_name: str = Field(min_length=1, max_length=253, description="Its name.")


class TemplateChanged(Wire):
    """A template that was made or changed, and where the change is."""

    model_config = example({"name": "finetune-small", "change": {"way": "pushed", "commit": "8d5f…"}})

    name: str = Field(description="The template's name.")
    change: Changed = Field(description="Where the change is.")


def template_of(name: str, spec: Wish) -> Template:
    clusters = spec.clusters or ()
    shapes = (spec.gpu_shape,) if isinstance(spec.gpu_shape, str) else spec.gpu_shape or ()
    given = {
        "name": name,
        "cluster_name": clusters[0] if clusters else None,
        "preferred_clusters": clusters if len(clusters) > 1 else None,
        "number_of_gpus": spec.gpus_per_node,
        "number_of_gpu_nodes": spec.nodes,
        "memory_per_gpu": None if spec.memory_per_gpu is None else memory_gb(spec.memory_per_gpu),
        "gpu_shape": shapes[0] if shapes else None,
        "gpu_shapes": shapes if len(shapes) > 1 else None,
        "instance_type": spec.instance_type,
        "exit_duration": _shown(spec.duration),
        "priority": spec.priority,
        "gpu_sharing_mode": spec.sharing,
        "enforce_idle_time_out": None if spec.idle_timeout is None else True,
        "idle_time_out_duration": _shown(spec.idle_timeout),
        "enable_eviction": spec.preemptible,
        "requeue_on_failure": spec.requeue_on_failure,
        "enable_rdma": None if spec.network is None else spec.network.rdma,
        "enable_secondary_network": None if spec.network is None else spec.network.secondary,
    }
    return Template.model_validate(given, by_name=True)


def _shown(value: timedelta | None) -> str | None:
    return None if value is None else format_duration(value)


def wish_of(asked: TemplateFields, before: Wish) -> Wish:
    """The file's new fields: `before` with the changes; ApiError 422 if they are not valid."""
    _check_auto(asked)
    given = {field: getattr(before, field) for field in Wish.model_fields}
    given |= _plain(asked) | _places(asked) | _shapes(asked) | _network(asked, before) | _idle(asked, before)
    try:
        return Wish.model_validate(given)
    except ValidationError as error:
        raise _refused(error) from error


def _plain(asked: TemplateFields) -> dict[str, Any]:
    """Fields with one meaning each; "" and 0 remove a field."""
    found: dict[str, Any] = {
        "gpus_per_node": asked.number_of_gpus,
        "nodes": asked.number_of_gpu_nodes,
        "priority": asked.priority,
        "preemptible": asked.enable_eviction,
        "requeue_on_failure": asked.requeue_on_failure,
    }
    given = {field: value for field, value in found.items() if value is not None}
    if asked.memory_per_gpu is not None:
        given["memory_per_gpu"] = memory_gb(asked.memory_per_gpu) or None
    if asked.exit_duration is not None:
        given["duration"] = checked_duration("exitDuration", asked.exit_duration)
    for field, text in (("instance_type", asked.instance_type), ("sharing", asked.gpu_sharing_mode)):
        if text is not None:
            given[field] = text or None
    return given


def _places(asked: TemplateFields) -> dict[str, Any]:
    if asked.cluster_name is None and asked.preferred_clusters is None:
        return {}
    return {"clusters": _first(asked.cluster_name, asked.preferred_clusters) or None}


def _shapes(asked: TemplateFields) -> dict[str, Any]:
    if asked.enable_auto_gpu_selection:
        return {"gpu_shape": None, "instance_type": None}
    if asked.gpu_shape is None and asked.gpu_shapes is None:
        return {}
    shapes = tuple(s for s in _first(asked.gpu_shape, asked.gpu_shapes) if s != ANY)
    return {"gpu_shape": shapes[0] if len(shapes) == 1 else shapes or None}


def _first(one: str | None, several: tuple[str, ...] | None) -> tuple[str, ...]:
    """The first one, then the others, each once."""
    return tuple(dict.fromkeys(text for text in (one or "", *(several or ())) if text))


def _network(asked: TemplateFields, before: Wish) -> dict[str, Any]:
    if asked.enable_rdma is None and asked.enable_secondary_network is None:
        return {}
    old = before.network or Network()
    rdma = old.rdma if asked.enable_rdma is None else asked.enable_rdma
    secondary = old.secondary if asked.enable_secondary_network is None else asked.enable_secondary_network
    return {"network": Network(rdma=rdma, secondary=secondary)}


def _idle(asked: TemplateFields, before: Wish) -> dict[str, Any]:
    if asked.enforce_idle_time_out is False:
        return {"idle_timeout": None}
    if asked.idle_time_out_duration:
        return {"idle_timeout": checked_duration("idleTimeOutDuration", asked.idle_time_out_duration)}
    if asked.enforce_idle_time_out and before.idle_timeout is None:
        raise bad_parameters("enforceIdleTimeOut: give idleTimeOutDuration too, for example 0d0h30m")
    return {}


def _check_auto(asked: TemplateFields) -> None:
    named = [
        name for name, value in (("gpuShape", asked.gpu_shape), ("gpuShapes", asked.gpu_shapes)) if value
    ]
    named += ["instanceType"] if asked.instance_type else []
    if asked.enable_auto_gpu_selection and named and asked.gpu_shape != ANY:
        raise bad_parameters(
            f"enableAutoGpuSelection means any GPU; leave {' and '.join(named)} out, or enableAutoGpuSelection"
        )


_WIRE = {
    "gpus_per_node": "numberOfGPUs",
    "nodes": "numberOfGPUNodes",
    "memory_per_gpu": "memoryPerGPU",
    "clusters": "clusterName",
    "gpu_shape": "gpuShape",
    "instance_type": "instanceType",
    "sharing": "gpuSharingMode",
}
"""Fields of files by their names in the API."""


def _refused(error: ValidationError) -> ApiError:
    """One sentence per field, under the API's names."""
    found: dict[str, str] = {}
    for each in error.errors(include_url=False, include_context=False):
        field = str(each["loc"][0]) if each["loc"] else ""
        found.setdefault(_WIRE.get(field, field), f"{quoted(str(each['input']))} is not valid: {each['msg']}")
    return bad_parameters("; ".join(f"{field}: {why}" for field, why in found.items()))


def check_clusters(spec: Wish, known: Collection[str]) -> None:
    """ApiError 422 for an unknown cluster."""
    unknown = [name for name in spec.clusters or () if name not in known]
    if unknown:
        raise bad_parameters(
            f"clusterName: there is no cluster {', '.join(unknown)}; choose from {listed(known)}"
        )
