"""Whether an edit of a request asks for more or for something else, and whether it is allowed."""

from __future__ import annotations

from collections.abc import Iterator

from schemas.documents.gpr import RequestSpec
from schemas.rules.findings import Finding
from schemas.status.gpr_status import HOLDING, Phase

ALWAYS_FREE = (
    "display_name",
    "early_release",
    "extend",
    "idle_timeout",
    "model",
    "requeue_on_failure",
    "preemptible",
    "not_before",
    "start",
    "move",
    "stopped",
    "max_wait",
)
"""Fields that may change at any time. On a provisioned request notBefore and start then have no effect."""

MORE_IS_MORE = ("nodes", "gpus_per_node", "memory_per_gpu", "duration", "priority")
"""Fields where a larger value asks for more; a smaller one is free while the request waits."""

SOMETHING_ELSE = ("slice", "gpu_shapes", "clusters", "instance_type", "network", "sharing", "prefer")
"""Fields whose every change asks for something else."""


def asks_more_or_other(old: RequestSpec, new: RequestSpec) -> bool:
    """Whether this edit costs a waiting request its place among equals: its `filedAt` is reset."""
    if any(getattr(new, field) > getattr(old, field) for field in MORE_IS_MORE):
        return True
    return any(getattr(new, field) != getattr(old, field) for field in SOMETHING_ELSE)


def changed_terms(old: RequestSpec, new: RequestSpec) -> tuple[str, ...]:
    """The changed fields that are terms of a lease, by their Python names."""
    terms = (*MORE_IS_MORE, *SOMETHING_ELSE)
    return tuple(field for field in terms if getattr(old, field) != getattr(new, field))


def edit_problems(
    file: str, old: RequestSpec, new: RequestSpec, phase: Phase, before: RequestSpec | None = None
) -> Iterator[Finding]:
    """Forbidden edits: changed terms of a request that holds nodes.

    `before` is the file's content until now (None: unknown): a term that it already has is not blamed on this edit. A
    request that is to end may change anything.
    """
    if phase not in HOLDING or new.early_release:
        return
    for field in changed_terms(old, new):
        if before is not None and getattr(before, field) == getattr(new, field):
            continue
        name = FIELD_NAMES.get(field, field)
        message = f"{name} must not change while the request is {phase}"
        yield Finding(file, "ForbiddenEdit", message, ("spec", name))


FIELD_NAMES = {
    "gpus_per_node": "gpusPerNode",
    "memory_per_gpu": "memoryPerGpu",
    "gpu_shapes": "gpuShape",
    "instance_type": "instanceType",
}
"""Names in files of the fields that are named differently there."""
