"""Partitions a node's GPUs into a request's MIG profile during its lease, and restores them afterwards (F12).

The GPU operator's MIG manager does the work: it watches the label `nvidia.com/mig.config`, answers in
`nvidia.com/mig.config.state`, and restarts the GPUs' users. So the label changes only between two slices:
before the checks of a start, and in those after an end. The previous value is kept in an annotation, so that
any controller can restore it; a node with the annotation that serves no slice is always restored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reconciler.clusters.kubernetes.api.api_client import Json, Patch
from reconciler.clusters.kubernetes.names import (
    GPU_RESOURCE,
    MIG_BEFORE,
    MIG_CONFIG,
    MIG_RESOURCE_PREFIX,
    MIG_STATE,
    STAMP,
)
from reconciler.clusters.kubernetes.nodes.node_inventory import Node
from reconciler.clusters.kubernetes.nodes.node_marks import (
    late,
    marks_of,
    on_version,
    relabelled,
    write_stamp,
)
from reconciler.clusters.kubernetes.nodes.node_writer import NodeWriter
from reconciler.model.cluster_port import Answer, Refused, Stamp

WHOLE = "all-disabled"
"""The MIG manager's own layout without MIG: the one restored if there was no label."""
CAPABLE = "nvidia.com/mig.capable"
STRATEGY = "nvidia.com/mig.strategy"
PRODUCT = "nvidia.com/gpu.product"


@dataclass(frozen=True, slots=True)
class Change:
    """Labels and annotations to change first; None removes one."""

    labels: dict[str, str | None]
    annotations: dict[str, str | None]


@dataclass(frozen=True, slots=True)
class Waiting:
    """The MIG manager is working."""

    message: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The layout cannot be reached without help."""

    message: str


@dataclass(frozen=True, slots=True)
class Ready:
    """The node has the wanted layout."""


Step = Change | Waiting | Failed | Ready


def layout_of(profile: str) -> str:
    """The MIG manager's name for all GPUs cut into one profile: all-1g.10gb, all-1g.10gb.me."""
    return f"all-{_in_names(profile)}"


def resource_of(profile: str) -> str:
    """The resource name of one MIG slice under the strategy `mixed`."""
    return MIG_RESOURCE_PREFIX + _in_names(profile)


def shows(node: Node, profile: str) -> bool:
    """True if its device plugin offers MIG slices of that profile."""
    if node.labels.get(STRATEGY) == "single":
        # Each MIG slice is then offered as a GPU with a product of that name.
        cut = node.labels.get(PRODUCT, "").endswith(f"-MIG-{_in_names(profile)}")
        return cut and node.allocatable.get(GPU_RESOURCE, 0) > 0
    return node.allocatable.get(resource_of(profile), 0) > 0


def step(node: Node, profile: str) -> Step:
    """The next step towards that profile; an empty profile means the original layout."""
    return _towards(node, profile) if profile else _back(node)


def _towards(node: Node, profile: str) -> Step:
    wanted, found = layout_of(profile), node.labels.get(MIG_CONFIG)
    if node.labels.get(CAPABLE) == "false":
        return Failed(f"the GPUs of node {node.name} cannot be partitioned: its label {CAPABLE} is false")
    if found != wanted:
        return _relabelled(wanted, {MIG_BEFORE: node.annotations.get(MIG_BEFORE, found or WHOLE)})
    state = _state(node, wanted)
    if not isinstance(state, Ready) or shows(node, profile):
        return state
    return Waiting(
        f"node {node.name} is partitioned, but its device plugin does not offer {resource_of(profile)} yet"
    )


def _back(node: Node) -> Step:
    before = node.annotations.get(MIG_BEFORE)
    if before is None:
        return Ready()
    if node.labels.get(MIG_CONFIG) != before:
        return _relabelled(before, {})
    state = _state(node, before)
    if not isinstance(state, Ready):
        return state
    if before == WHOLE and not node.allocatable.get(GPU_RESOURCE, 0):
        return Waiting(f"node {node.name} is restored, but its device plugin offers no GPU yet")
    return Change({}, {MIG_BEFORE: None})


def _relabelled(layout: str, annotations: dict[str, str | None]) -> Change:
    # The previous layout's state must not count for this one.
    return Change({MIG_CONFIG: layout, MIG_STATE: None}, annotations)


def _state(node: Node, layout: str) -> Waiting | Failed | Ready:
    state = node.labels.get(MIG_STATE, "")
    if state == "success":
        return Ready()
    if state == "failed":
        return Failed(f"the MIG manager of node {node.name} could not apply layout {layout}; see its log")
    return Waiting(
        f"the MIG manager of node {node.name} is applying layout {layout} ({state or 'not begun'})"
    )


def _in_names(profile: str) -> str:
    """Attributes (1g.10gb+me) are written with a dot in names of resources and layouts."""
    return profile.replace("+", ".")


def is_returning(node: Node) -> bool:
    """True if we partitioned it and it is not restored yet; if its MIG manager gave up, its label says so."""
    return MIG_BEFORE in node.annotations and not isinstance(_back(node), Failed)


def operations(node: Node, change: Change, stamp: Stamp) -> list[Json]:
    """The change as a JSON patch conditional on the node's version."""
    annotations = _with(node.annotations, {**change.annotations, STAMP: write_stamp(stamp)})
    return on_version(node, relabelled(node, _with(node.labels, change.labels), annotations))


def _with(found: Mapping[str, str], change: Mapping[str, str | None]) -> dict[str, str]:
    return {key: value for key, value in {**found, **change}.items() if value is not None}


def settle(writer: NodeWriter, node: Node, profile: str, stamp: Stamp) -> Waiting | Failed | Ready | Refused:
    """Takes the next step towards that profile in the cluster; refused for an older stamp."""
    found = step(node, profile)
    if not isinstance(found, Change):
        return found
    answer = _change(writer, node.name, profile, stamp)
    if isinstance(answer, Refused):
        return answer
    done = MIG_BEFORE in found.annotations and found.annotations[MIG_BEFORE] is None
    return Ready() if done else Waiting(f"node {node.name} was given its new layout")


def _change(writer: NodeWriter, name: str, profile: str, stamp: Stamp) -> Answer:
    def decide(node: Node) -> Patch | Refused:
        refusal = late(f"node {name}", marks_of(node).stamp, stamp)
        if refusal is not None:
            return refusal
        found = step(node, profile)
        return operations(node, found, stamp) if isinstance(found, Change) else []

    return writer.write(name, decide)
