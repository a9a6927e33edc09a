"""Our marks on a node: read from it, and written as one JSON patch conditional on the node's version.

Pure. The wanted state of a node follows from its marks alone: its lease, whether it is being released, why we
cordoned it. So a repair after drift and a first write are the same patch. Foreign taints, labels and cordons
stay: the list of taints is written as a whole, but only on the version that was read.

From before a lease until its node is clean, a label of the GPU operator keeps upgrades of the driver away. It gets its
previous value back afterwards.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from reconciler.clusters.kubernetes.api.api_client import Json
from reconciler.clusters.kubernetes.names import (
    CORDON,
    CORDONED_BEFORE,
    DRIVER_SKIP,
    EXIT,
    FORCED,
    LEASE,
    OBJECT_STAMP,
    PREPARED,
    PROJECT,
    SKIP_BEFORE,
    SLICE,
    STAMP,
)
from reconciler.clusters.kubernetes.nodes.node_inventory import Node
from reconciler.model.cluster_port import LeaseRef, Refused, Stamp
from schemas.reading.units import NAME_PATTERN, format_instant, parse_instant

_STAMP = re.compile(r"([0-9]{1,18})\.([0-9]{1,18})")
_NAME = re.compile(NAME_PATTERN)
_LABEL = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)")
YES = "true"
HEALTH = "health: "
LEAVING = "exit"
UNSET = "(none)"
"""No label can have this value."""


@dataclass(frozen=True, slots=True)
class Marks:
    """Our annotations on a node."""

    project: str = ""  # its project; empty: never ours
    stamp: Stamp | None = None
    lease: LeaseRef | None = None
    exit_by: datetime | None = None  # its GPU pods must be gone by then
    forced: datetime | None = None  # when pods were deleted that may still have been running
    isolated: str | None = None  # why we cordoned it for health reasons
    cordoned_before: bool = False  # by others, before us
    prepared: str = ""  # the uid of the lease that it is prepared for, or cleaned from

    @property
    def cordons(self) -> bool:
        """True if no new pod may run on it."""
        return self.isolated is not None or self.exit_by is not None

    @property
    def keeps_driver(self) -> bool:
        """True if the driver may not be upgraded."""
        return self.lease is not None or bool(self.prepared)

    @property
    def serves(self) -> str:
        """The slice whose pods may run on it; empty: none."""
        return self.lease.slice if self.lease is not None and self.exit_by is None else ""


def marks_of(node: Node) -> Marks:
    """The node's marks; a damaged mark counts as none."""
    found = node.annotations
    cordon = found.get(CORDON, "").splitlines()
    isolated = next((line.removeprefix(HEALTH) for line in cordon if line.startswith(HEALTH)), None)
    lease = _lease(found.get(LEASE))
    return Marks(
        project=found.get(PROJECT, ""),
        stamp=read_stamp(found.get(STAMP)),
        lease=lease,
        # Without a lease there is no release.
        exit_by=None if lease is None else _instant(found.get(EXIT)),
        forced=None if lease is None else _instant(found.get(FORCED)),
        isolated=isolated,
        cordoned_before=found.get(CORDONED_BEFORE) == YES,
        prepared=found.get(PREPARED, ""),
    )


def read_stamp(text: str | None) -> Stamp | None:
    """`term.seq`, or None for anything else."""
    found = _STAMP.fullmatch(text or "")
    return None if found is None else Stamp(int(found[1]), int(found[2]))


def stamp_of(item: Json) -> Stamp | None:
    """The stamp of a namespaced object."""
    return read_stamp((item["metadata"].get("annotations") or {}).get(OBJECT_STAMP))


def write_stamp(stamp: Stamp) -> str:
    """`term.seq`."""
    return f"{stamp.term}.{stamp.seq}"


def late(what: str, held: Stamp | None, stamp: Stamp) -> Refused | None:
    """Refuses a write with an older stamp than the present one."""
    if held is None or held <= stamp:
        return None
    return Refused("StaleStamp", f"{what} was written by a newer controller ({write_stamp(held)})")


def cordoned_by_others(node: Node, marks: Marks) -> bool:
    return node.cordoned and (marks.cordoned_before or CORDON not in node.annotations)


def freed(marks: Marks, uid: str) -> Marks:
    """The lease of that uid is over; any other stays. The driver stays as it is until the node is clean."""
    if marks.lease is None or marks.lease.uid != uid:
        return marks
    return replace(marks, lease=None, exit_by=None, forced=None, prepared=uid)


def leaving(marks: Marks, uid: str, by: datetime, now: datetime) -> Marks:
    """Must be empty by then, or at once; never later than announced before."""
    if marks.lease is None or marks.lease.uid != uid:
        return marks
    by = max(by, now)
    return replace(marks, exit_by=by if marks.exit_by is None else min(by, marks.exit_by))


def unproven(marks: Marks, uid: str, now: datetime) -> Marks:
    """From now on its pods are deleted without their kubelet's confirmation."""
    if marks.lease is None or marks.lease.uid != uid:
        return marks
    return replace(marks, forced=now)


def patch(node: Node, wanted: Marks) -> list[Json]:
    """Operations that make the node match `wanted`; empty if it does."""
    steps = [
        *relabelled(node, _labels(node, wanted), _annotations(node, wanted)),
        *_taints(node, wanted),
        *_cordon(node, wanted),
    ]
    return on_version(node, steps)


def untouched(node: Node) -> list[Json]:
    """Operations that remove all our marks from a node that is no longer ours."""
    steps = [
        *relabelled(node, _labels(node, Marks()), {}),
        *_set_taints(node, _others(node)),
        *_cordon(node, Marks(cordoned_before=marks_of(node).cordoned_before)),
    ]
    return on_version(node, steps)


def on_version(node: Node, steps: list[Json]) -> list[Json]:
    """The operations, which fail as a whole if the node changed; empty if there are none."""
    test = {"op": "test", "path": "/metadata/resourceVersion", "value": node.version}
    return [test, *steps] if steps else []


def relabelled(node: Node, labels: Mapping[str, str], annotations: Mapping[str, str]) -> list[Json]:
    """Operations that give the node these labels, and these as our annotations."""
    return [
        *_map("annotations", node.annotations, annotations, exists=node.annotated),
        *_map("labels", node.labels, labels, exists=bool(node.labels)),
    ]


def differing(node: Node, wanted: Marks) -> tuple[str, ...]:
    """Fields of the node that differ from its marks, as text."""
    labels = _labels(node, wanted)
    found = [f"label {key}" for key in (SLICE, DRIVER_SKIP) if labels.get(key) != node.labels.get(key)]
    if _taints(node, wanted):
        found.append(f"taint {SLICE}")
    if _cordon(node, wanted):
        found.append("spec.unschedulable")
    if wanted.project and node.annotations.get(PROJECT) != wanted.project:
        found.append(f"annotation {PROJECT}")
    if _annotations(node, wanted).get(SKIP_BEFORE) != node.annotations.get(SKIP_BEFORE):
        found.append(f"annotation {SKIP_BEFORE}")
    return tuple(found)


def _annotations(node: Node, marks: Marks) -> dict[str, str]:
    lines = ([HEALTH + marks.isolated] if marks.isolated is not None else []) + (
        [LEAVING] if marks.exit_by is not None else []
    )
    # Others had cordoned it before us; nothing is remembered once we no longer need a cordon.
    before = marks.cordons and (marks.cordoned_before or cordoned_by_others(node, marks_of(node)))
    found = {
        PROJECT: marks.project,
        STAMP: "" if marks.stamp is None else write_stamp(marks.stamp),
        LEASE: "" if marks.lease is None else _lease_text(marks.lease),
        EXIT: "" if marks.exit_by is None else format_instant(marks.exit_by),
        FORCED: "" if marks.forced is None else format_instant(marks.forced),
        CORDON: "\n".join(lines),
        CORDONED_BEFORE: YES if before else "",
        PREPARED: marks.prepared,
        SKIP_BEFORE: _skip_before(node) if marks.keeps_driver else "",
    }
    others = {k: v for k, v in node.annotations.items() if k not in found}
    return others | {key: value for key, value in found.items() if value}


def _labels(node: Node, marks: Marks) -> dict[str, str]:
    found = {k: v for k, v in node.labels.items() if k != SLICE}
    if marks.serves:
        found[SLICE] = marks.serves
    if marks.keeps_driver:
        found[DRIVER_SKIP] = YES
    elif SKIP_BEFORE in node.annotations:
        found.pop(DRIVER_SKIP, None)
        if _skip_before(node) != UNSET:
            found[DRIVER_SKIP] = _skip_before(node)
    return found


def _skip_before(node: Node) -> str:
    """The label's value without us. A kubelet can write its node's annotations: an impossible value counts as none."""
    found = node.annotations.get(SKIP_BEFORE) or node.labels.get(DRIVER_SKIP) or UNSET
    return found if _LABEL.fullmatch(found) else UNSET


def _taints(node: Node, marks: Marks) -> list[Json]:
    """A managed node has our taint even when free: no GPU pod runs there by accident."""
    ours = {"key": SLICE, "value": marks.serves, "effect": "NoSchedule"}
    kept = [t for t in node.taints if t["key"] == SLICE]
    if len(kept) == 1 and {k: kept[0].get(k, "") for k in ours} == ours:
        return []
    return _set_taints(node, [*_others(node), ours if marks.serves else {k: v for k, v in ours.items() if v}])


def _others(node: Node) -> list[Json]:
    return [t for t in node.taints if t["key"] != SLICE]


def _set_taints(node: Node, wanted: list[Json]) -> list[Json]:
    if list(node.taints) == wanted:
        return []
    test = [{"op": "test", "path": "/spec/taints", "value": list(node.taints)}] if node.taints else []
    if not wanted:
        return [*test, {"op": "remove", "path": "/spec/taints"}]
    return [*test, {"op": "add", "path": "/spec/taints", "value": wanted}]


def _cordon(node: Node, marks: Marks) -> list[Json]:
    if marks.cordons:
        return [] if node.cordoned else [{"op": "add", "path": "/spec/unschedulable", "value": True}]
    ours = CORDON in node.annotations and not marks_of(node).cordoned_before
    return [{"op": "remove", "path": "/spec/unschedulable"}] if node.cordoned and ours else []


def _map(field: str, found: Mapping[str, str], wanted: Mapping[str, str], *, exists: bool) -> list[Json]:
    """Key by key, so that foreign entries stay."""
    changed = {k: v for k, v in wanted.items() if found.get(k) != v}
    steps: list[Json] = []
    if changed and not exists:
        steps.append({"op": "add", "path": f"/metadata/{field}", "value": {}})
    steps += [{"op": "add", "path": _path(field, k), "value": v} for k, v in sorted(changed.items())]
    return steps + [{"op": "remove", "path": _path(field, k)} for k in sorted(found) if k not in wanted]


def _path(field: str, key: str) -> str:
    return f"/metadata/{field}/" + key.replace("~", "~0").replace("/", "~1")


def _lease_text(lease: LeaseRef) -> str:
    found = {
        "uid": lease.uid,
        "request": lease.request,
        "slice": lease.slice,
        "end": format_instant(lease.end),
    }
    begun = {} if lease.start is None else {"start": format_instant(lease.start)}
    return json.dumps(found | begun | ({"mig": lease.mig} if lease.mig else {}))


def _lease(text: str | None) -> LeaseRef | None:
    """A kubelet can write its node's annotations: an impossible lease counts as none."""
    if not text:
        return None
    try:
        found = json.loads(text)
        end, slice_ = parse_instant(found["end"]), str(found["slice"])
        if _NAME.fullmatch(slice_) is None:
            return None  # it would become a label value
        mig, start = str(found.get("mig", "")), _instant(found.get("start"))
        return LeaseRef(str(found["uid"]), str(found["request"]), slice_, end, mig, start)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _instant(text: str | None) -> datetime | None:
    try:
        return parse_instant(text) if text else None
    except ValueError:
        return None
