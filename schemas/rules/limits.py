"""Quota and limits of one request, by itself and on the nodes of one pool. Pure.

A limit is hard; above a quota an admin must approve. Both come from the slice and from the project's rules for every
slice; the stricter applies. Only the controller knows what is used in a month: `reconciler.accounts.monthly_limits`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol, TypeVar

from schemas.documents.gpr import RequestSpec
from schemas.documents.project import ProjectSpec
from schemas.documents.slice import LimitsWhere, Quota, QuotaWhere, SliceLimits, SliceSpec
from schemas.reading.units import format_duration

NO_SHAPE = ("none",)
"""Shapes of a slice whose own shapes the project all forbids; no GPU has this name."""

LONGEST = timedelta(days=365)
"""Longest duration if neither slice nor project sets one: a longer one is nearly always a typo."""

RULES = {
    "duration": "DurationTooLong",
    "priority": "PriorityTooHigh",
    "nodes": "TooManyNodes",
    "gpuShape": "ShapeNotAllowed",
    "memoryPerGpu": "TooMuchMemory",
}
"""Rules of `schemas.rules.rule_list`, by the field of a request."""

Bound = TypeVar("Bound", int, timedelta)


class Offer(Protocol):
    """One node of a pool."""

    @property
    def gpus_per_node(self) -> int: ...
    @property
    def gpu_shape(self) -> str: ...
    @property
    def memory_per_gpu(self) -> int: ...


Offered = tuple[str, Offer]
"""A cluster and one node of one of its pools."""


@dataclass(frozen=True, slots=True)
class LimitViolation:
    """A hard limit that a request breaks; `field` is the request's, `allowed` says what would pass."""

    field: str
    asked: str
    allowed: str

    @property
    def rule(self) -> str:
        return RULES[self.field]

    @property
    def message(self) -> str:
        return f"{self.field} is {self.asked} but the slice allows {self.allowed}"


@dataclass(frozen=True, slots=True)
class HourBound:
    """A monthly bound on a slice's GPU-hours, for a cluster or shape (None: any)."""

    gpu_hours: int
    is_hard: bool
    cluster: str | None = None
    gpu_shape: str | None = None

    @property
    def where(self) -> str:
        """` in east of H100-80GB`, or empty: where it applies."""
        return _where(self)

    def covers(self, cluster: str, gpu_shape: str) -> bool:
        """Whether GPU-hours there count."""
        return _is_of(self, cluster, gpu_shape)


# -- the slice within its project --------------------------------------------------------------------------------------


def in_project(slice_: SliceSpec, project: ProjectSpec) -> SliceSpec:
    """The slice with the project's bounds for every slice applied; the stricter wins."""
    limits, quota = project.limits.every_slice, project.quota
    if limits != SliceLimits():
        slice_ = slice_.edited(limits=_stricter(slice_.limits, limits))
    if quota is None:
        return slice_
    return slice_.edited(quota=quota if slice_.quota is None else _less(slice_.quota, quota))


def _stricter(own: SliceLimits, every: SliceLimits) -> SliceLimits:
    return SliceLimits(
        max_duration=_least(own.max_duration, every.max_duration),
        max_priority=min(own.max_priority, every.max_priority),
        max_nodes=_least(own.max_nodes, every.max_nodes),
        max_gpus=_least(own.max_gpus, every.max_gpus),
        max_memory_per_gpu=_least(own.max_memory_per_gpu, every.max_memory_per_gpu),
        gpu_shapes=_common(own.gpu_shapes, every.gpu_shapes),
        max_waiting=_least(own.max_waiting, every.max_waiting),
        gpu_hours_per_month=_least(own.gpu_hours_per_month, every.gpu_hours_per_month),
        where=own.where + every.where,
    )


def _less(own: Quota, every: Quota) -> Quota:
    return Quota(
        gpus=_least(own.gpus, every.gpus),
        nodes=_least(own.nodes, every.nodes),
        gpu_hours_per_month=_least(own.gpu_hours_per_month, every.gpu_hours_per_month),
        where=own.where + every.where,
    )


def _least(one: Bound | None, other: Bound | None) -> Bound | None:
    return min((bound for bound in (one, other) if bound is not None), default=None)


def _common(own: tuple[str, ...], every: tuple[str, ...]) -> tuple[str, ...]:
    if not own or not every:
        return own or every
    return tuple(shape for shape in own if shape in every) or NO_SHAPE


# -- hard bounds -------------------------------------------------------------------------------------------------------


def broken(spec: RequestSpec, limits: SliceLimits) -> tuple[LimitViolation, ...]:
    """Hard limits that the request breaks wherever it runs."""
    barred = [shape for shape in spec.gpu_shapes if limits.gpu_shapes and shape not in limits.gpu_shapes]
    longest = LONGEST if limits.max_duration is None else limits.max_duration
    return (
        *_too_long(spec, longest, ""),
        *_of_request(spec, limits, ""),
        *_of_gpus(spec, spec.gpus_per_node, limits.max_gpus, ""),
        *_beyond("memoryPerGpu", spec.memory_per_gpu, limits.max_memory_per_gpu, " GB"),
        *((LimitViolation("gpuShape", ", ".join(barred), ", ".join(limits.gpu_shapes)),) if barred else ()),
    )


def broken_there(spec: RequestSpec, limits: SliceLimits, offered: Offered) -> tuple[LimitViolation, ...]:
    """Hard limits that keep the request off that pool's nodes; `broken` has those that it breaks anywhere."""
    cluster, node = offered
    if not bounds_nodes(limits):  # true for most slices
        return ()
    if limits.gpu_shapes and node.gpu_shape not in limits.gpu_shapes:
        return (LimitViolation("gpuShape", node.gpu_shape, ", ".join(limits.gpu_shapes)),)
    found = [
        *_beyond("memoryPerGpu", node.memory_per_gpu, limits.max_memory_per_gpu, " GB"),
        *_of_gpus(spec, node.gpus_per_node, limits.max_gpus, ""),
    ]
    for bound in limits.where:
        if _is_of(bound, cluster, node.gpu_shape):
            found += [
                *_too_long(spec, bound.max_duration, _where(bound)),
                *_of_request(spec, bound, _where(bound)),
                *_of_gpus(spec, node.gpus_per_node, bound.max_gpus, _where(bound)),
            ]
    return tuple(found)


def bounds_nodes(limits: SliceLimits) -> bool:
    """Whether any limit depends on the nodes."""
    return bool(limits.gpu_shapes or limits.where or limits.max_gpus or limits.max_memory_per_gpu)


def _too_long(spec: RequestSpec, longest: timedelta | None, where: str) -> Iterator[LimitViolation]:
    if longest is not None and spec.duration > longest:
        asked, most = format_duration(spec.duration), format_duration(longest)
        yield LimitViolation("duration", asked, f"at most {most}{where}")


def _of_request(spec: RequestSpec, limits: SliceLimits | LimitsWhere, where: str) -> Iterator[LimitViolation]:
    yield from _beyond("priority", spec.priority, limits.max_priority, where)
    yield from _beyond("nodes", spec.nodes, limits.max_nodes, where)


def _of_gpus(spec: RequestSpec, per_node: int, most: int | None, where: str) -> Iterator[LimitViolation]:
    gpus = spec.nodes * per_node
    if most is not None and gpus > most:
        yield LimitViolation("nodes", f"{spec.nodes} ({gpus} GPUs)", f"at most {most} GPUs{where}")


def _beyond(field: str, asked: int, most: int | None, of: str) -> Iterator[LimitViolation]:
    if most is not None and asked > most:
        yield LimitViolation(field, str(asked), f"at most {most}{of}")


def _is_of(bound: LimitsWhere | QuotaWhere | HourBound, cluster: str, gpu_shape: str) -> bool:
    return bound.cluster in (None, cluster) and bound.gpu_shape in (None, gpu_shape)


def _where(bound: LimitsWhere | QuotaWhere | HourBound) -> str:
    cluster = "" if bound.cluster is None else f" in {bound.cluster}"
    return f"{cluster}{'' if bound.gpu_shape is None else f' of {bound.gpu_shape}'}"


# -- quota -------------------------------------------------------------------------------------------------------------


def over_quota(spec: RequestSpec, slice_: SliceSpec, offered: Offered) -> str | None:
    """Text after the request's name, "asks for …", if it would hold more there than its quota."""
    cluster, node = offered
    gpus, quota = spec.nodes * node.gpus_per_node, slice_.quota
    if quota is None:
        return None
    bounds: list[Quota | QuotaWhere] = [quota]
    bounds += [part for part in quota.where if _is_of(part, cluster, node.gpu_shape)]
    for bound in bounds:
        if bound.gpus is not None and gpus > bound.gpus:
            return _over(gpus, f"GPUs but its slice may hold {bound.gpus}", bound)
        if bound.nodes is not None and spec.nodes > bound.nodes:
            return _over(spec.nodes, f"nodes but its slice may hold {bound.nodes}", bound)
    return None


def _over(asked: int, most: str, bound: Quota | QuotaWhere) -> str:
    where = _where(bound) if isinstance(bound, QuotaWhere) else ""
    return f"asks for {asked} {most}{where} per request without approval"


# -- GPU-hours per month -----------------------------------------------------------------------------------------------


def hour_bounds(slice_: SliceSpec) -> tuple[HourBound, ...]:
    """Every monthly bound on the slice's GPU-hours, hard ones first."""
    kinds: list[tuple[bool, SliceLimits | Quota]] = [(True, slice_.limits)]
    if slice_.quota is not None:
        kinds.append((False, slice_.quota))
    return tuple(bound for is_hard, whole in kinds for bound in _hours(whole, is_hard))


def _hours(whole: SliceLimits | Quota, is_hard: bool) -> Iterator[HourBound]:
    if whole.gpu_hours_per_month is not None:
        yield HourBound(whole.gpu_hours_per_month, is_hard)
    parts: Iterable[LimitsWhere | QuotaWhere] = whole.where
    for part in parts:
        if part.gpu_hours_per_month is not None:
            yield HourBound(part.gpu_hours_per_month, is_hard, part.cluster, part.gpu_shape)
