"""Removes everything of ours from a cluster: marks on nodes, slices, admission objects, and then ourselves.

First the writers are stopped, then the admission objects are removed, so that no pod waits for a missing
webhook. Each step is repeatable; an interrupted one starts again. Other people's objects stay: namespaces
older than the installation, their pods, foreign taints and cordons. What Helm installed is stopped, and left
to Helm.

Held by tests/deploy/test_uninstall.py on a real API server.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from reconciler.clock import Clock, monotonic_s
from reconciler.clusters.kubernetes.admission.object_authors import GUARD
from reconciler.clusters.kubernetes.admission.object_shapes import KINDS as ADMISSIONS
from reconciler.clusters.kubernetes.api.api_client import Api, Json, Rejected
from reconciler.clusters.kubernetes.api.api_features import ADMISSION
from reconciler.clusters.kubernetes.names import (
    CHECK,
    CLOSED_NODES,
    MANAGED_BY,
    MANAGER,
    MIG_BEFORE,
    MIG_CONFIG,
    NAMESPACE_SLICE,
    OWNER,
    SLICE,
)
from reconciler.clusters.kubernetes.nodes.node_inventory import Node, read_node
from reconciler.clusters.kubernetes.nodes.node_marks import marks_of, read_stamp, untouched
from reconciler.clusters.kubernetes.nodes.node_writer import NODES
from reconciler.clusters.kubernetes.tenancy.slice_objects import CLUSTER_ROLE, MEMBER_ROLE
from reconciler.clusters.kubernetes.tenancy.slice_writer import Slices
from reconciler.deploying.install import installed
from reconciler.deploying.object_kinds import KINDS, called, path_of
from reconciler.deploying.part_names import APP, COMPONENT, INSTANCE, NAME, Place
from reconciler.model.cluster_port import Busy, Refused, Stamp
from schemas.errors import Fault, UserError
from schemas.export.crds import GROUP, PLURAL

PATIENCE_S = 120.0
"""Longest wait for pods to end and namespaces to be deleted; then the command says what is left."""
PAUSE_S = 0.2
QUIET_S = 12.0
"""A controller reacts to changes in a cluster within five seconds; this is twice that and a margin."""
TRIES = 5
_OURS = f"{MANAGED_BY}={MANAGER}"
_WRITERS = ("controller", "apply", "door")
"""Parts that would restore what is removed."""


@dataclass(frozen=True, slots=True)
class Found:
    """Our objects in a cluster."""

    nodes: tuple[Node, ...]
    projects: tuple[str, ...]

    def held(self, projects: Sequence[str]) -> list[str]:
        """Requests of these projects that have nodes now."""
        leases = [marks_of(node).lease for node in self.nodes if marks_of(node).project in projects]
        return sorted({lease.request for lease in leases if lease is not None})


def look(api: Api) -> Found:
    """Two listings."""
    nodes = tuple(node for node in map(read_node, api.items(NODES)) if _is_marked(node))
    spaces = api.items("/api/v1/namespaces", labelSelector=NAMESPACE_SLICE)
    owners = {(item["metadata"]["labels"]).get(OWNER, "") for item in spaces}
    for path in _admission_paths(api):
        owners |= {
            (item["metadata"].get("labels") or {}).get(OWNER, "")
            for item in api.items(path, labelSelector=_OURS)
        }
    return Found(nodes, tuple(sorted((owners | {marks_of(node).project for node in nodes}) - {""})))


def uninstall(
    api: Api, place: Place, projects: Sequence[str], clock: Clock, *, force: bool = False
) -> Iterator[str]:
    """Yields each completed action; if other projects remain, what they need stays.

    Raises UserError `NodesHeld` before anything is written, and `StillManaged` before any namespace is
    deleted.
    """
    found = look(api)
    held = found.held(projects)
    if held and not force:
        raise UserError(
            f"{', '.join(held[:5])}{' and more' if len(held) > 5 else ''} {'holds' if len(held) == 1 else 'hold'} "
            "nodes of this cluster; release them with `egs gpr release`, or end them now with --force",
            "NodesHeld",
        )
    is_last = set(found.projects) <= set(projects)
    if is_last:
        yield from _stopped(api, place)
    yield from _unguarded(api, projects, is_last=is_last)
    yield from _unmarked(api, found, {*projects, ""} if is_last else set(projects))
    if found.nodes:
        _stay_quiet(api, projects)
    for project in projects:
        yield from _slices_gone(api, place, project, clock)
    if is_last:
        yield from _remains_gone(api, place)
        yield from _objects_gone(api, place)
        yield from _shared_gone(api)
        yield from _namespace_gone(api, place)
    _check_quiet(api, projects)


def _is_marked(node: Node) -> bool:
    return bool(node.annotations) or SLICE in node.labels or any(t["key"] == SLICE for t in node.taints)


# --- the writers ---


def _stopped(api: Api, place: Place) -> Iterator[str]:
    base = KINDS["Deployment"].path(place.namespace)
    selector = f"{NAME}={APP},{INSTANCE}={place.name},{COMPONENT} in ({', '.join(_WRITERS)})"
    for item in list(api.items(base, labelSelector=selector)):
        if item["spec"]["replicas"]:
            api.merge(f"{base}/{item['metadata']['name']}", {"spec": {"replicas": 0}})
            yield f"stopped {item['metadata']['name']}"
    pods = f"/api/v1/namespaces/{place.namespace}/pods"
    _until(lambda: not list(api.items(pods, labelSelector=selector)), f"the pods of {place.name} to end")


# --- admission ---


def _admission_paths(api: Api) -> list[str]:
    """Of the kinds that this server has, bindings before their policies."""
    served = {found["name"] for found in api.get(ADMISSION).get("resources") or ()}
    return [f"{ADMISSION}/{plural}" for plural in reversed([*ADMISSIONS.values()]) if plural in served]


def _unguarded(api: Api, projects: Sequence[str], *, is_last: bool) -> Iterator[str]:
    for path in _admission_paths(api):
        for item in list(api.items(path, labelSelector=_OURS)):
            meta = item["metadata"]
            theirs = meta["labels"].get(OWNER) in projects or (is_last and meta["name"] == GUARD)
            if theirs and api.delete(f"{path}/{meta['name']}", uid=meta["uid"]):
                yield f"removed {path.rpartition('/')[2]} {meta['name']}"


# --- nodes ---


def _unmarked(api: Api, found: Found, projects: Collection[str]) -> Iterator[str]:
    for node in found.nodes:
        if marks_of(node).project in projects:
            _clean(api, node)
            yield f"removed our marks from node {node.name}"


def _clean(api: Api, node: Node) -> None:
    path = f"{NODES}/{node.name}"
    for _ in range(TRIES):
        try:
            api.patch(path, [*untouched(node), *_whole(node)])
        except Rejected as no:
            fresh = None if no.status == 404 else api.find(path)
            if fresh is None:
                return
            if no.status not in {409, 422}:
                raise
            node = read_node(fresh)
        else:
            return
    raise Fault(f"node {node.name} changed during {TRIES} writes in a row; run it again", "NodeContended")


def _whole(node: Node) -> list[Json]:
    """Partitioned GPUs are restored."""
    before = node.annotations.get(MIG_BEFORE)
    pointer = "/metadata/labels/" + MIG_CONFIG.replace("/", "~1")
    return [{"op": "add", "path": pointer, "value": before}] if before is not None else []


# --- slices ---


def _slices_gone(api: Api, place: Place, project: str, clock: Clock) -> Iterator[str]:
    slices = Slices(api, project, place.namespace)
    slices.start()
    try:
        for name in slices.namespaces():
            _until(
                lambda name=name: _is_gone(slices, name, _newest(api, place), clock),  # type: ignore[misc]
                f"the namespaces of slice {name} to go (kubectl get namespaces shows what blocks one)",
            )
            yield f"removed slice {name}"
    finally:
        slices.stop()
    claims = f"/api/v1/namespaces/{place.namespace}/configmaps"
    for what in (NAMESPACE_SLICE, CLOSED_NODES):
        for item in list(api.items(claims, labelSelector=f"{_OURS},{what},{OWNER}={project}")):
            api.delete(f"{claims}/{item['metadata']['name']}", uid=item["metadata"]["uid"])


def _is_gone(slices: Slices, name: str, stamp: Stamp, clock: Clock) -> bool:
    answer = slices.remove(name, False, stamp, clock.now())
    if isinstance(answer, Refused):
        raise Fault(f"slice {name} was not removed: {answer.message}; run it again", answer.reason)
    return not isinstance(answer, Busy)


def _newest(api: Api, place: Place) -> Stamp:
    """Not older than any stamp on a slice here."""
    claims = api.items(f"/api/v1/namespaces/{place.namespace}/configmaps", labelSelector=_OURS)
    stamps = [read_stamp((item.get("data") or {}).get("stamp")) for item in claims]
    return max((stamp for stamp in stamps if stamp is not None), default=Stamp(0, 0))


# --- what is left ---


def _remains_gone(api: Api, place: Place) -> Iterator[str]:
    """Records, checks, claims, the certificate, and the Leases of elections."""
    core, batch = (f"{root}/namespaces/{place.namespace}" for root in ("/api/v1", "/apis/batch/v1"))
    remains = (
        (f"{batch}/jobs", f"{_OURS},{CHECK}"),
        (f"{core}/persistentvolumeclaims", f"{_OURS},{CHECK}"),
        (f"{core}/configmaps", _OURS),
        (f"{core}/secrets", _OURS),
    )
    for path, selector in remains:
        for item in list(api.items(path, labelSelector=selector)):
            api.delete(f"{path}/{item['metadata']['name']}", uid=item["metadata"]["uid"])
            yield f"removed {path.rpartition('/')[2]} {item['metadata']['name']}"
    for lease in map(place.named, _WRITERS):
        if api.delete(f"/apis/coordination.k8s.io/v1/namespaces/{place.namespace}/leases/{lease}"):
            yield f"removed leases {lease}"


def _objects_gone(api: Api, place: Place) -> Iterator[str]:
    for item in installed(api, place):
        if api.delete(path_of(item, place.namespace), uid=item["metadata"]["uid"]):
            yield f"removed {called(item)}"


def _shared_gone(api: Api) -> Iterator[str]:
    """The members' role and the custom resource; the latter with its objects."""
    crds = KINDS["CustomResourceDefinition"]
    for path in (CLUSTER_ROLE.path(name=MEMBER_ROLE), crds.path("", f"{PLURAL}.{GROUP}")):
        found = api.find(path)
        if found is None or _is_helms(found):
            continue
        if api.delete(path):
            yield f"removed {path.rpartition('/')[2]}"
        # It stays until its objects are deleted.
        _until(lambda path=path: api.find(path) is None, f"{path} to go")  # type: ignore[misc]


def _namespace_gone(api: Api, place: Place) -> Iterator[str]:
    """Our own if we created it; an older one stays, and so does one where Helm still has objects."""
    path = f"/api/v1/namespaces/{place.namespace}"
    found = api.find(path)
    if found is None or helms(api, place):
        return
    if (found["metadata"].get("labels") or {}).get(MANAGED_BY) != MANAGER:
        return
    api.delete(path, uid=found["metadata"]["uid"])
    _until(lambda: api.find(path) is None, f"namespace {place.namespace} to go")
    yield f"removed namespace {place.namespace}"


def helms(api: Api, place: Place) -> bool:
    """True if Helm installed it and must remove the rest."""
    return bool(installed(api, place, "Helm"))


def _is_helms(item: Json) -> bool:
    return (item["metadata"].get("labels") or {}).get(MANAGED_BY) == "Helm"


def _stay_quiet(api: Api, projects: Sequence[str]) -> None:
    """Marks can be restored, a namespace's content cannot: any active controller shows up by then."""
    end = monotonic_s() + QUIET_S
    while monotonic_s() < end:
        _check_quiet(api, projects)
        time.sleep(PAUSE_S)


def _check_quiet(api: Api, projects: Sequence[str]) -> None:
    """A controller elsewhere may still drive this cluster, restoring what is removed."""
    back = [n.name for n in look(api).nodes if marks_of(n).project in projects]
    if back:
        raise UserError(
            f"node {back[0]} has marks again: another controller drives this cluster; set its document to "
            "mode: observe, or delete it, and run this again",
            "StillManaged",
        )


def _until(look: Callable[[], bool], what: str) -> None:
    end = monotonic_s() + PATIENCE_S
    while not look():
        if monotonic_s() > end:
            raise Fault(
                f"waited {PATIENCE_S:.0f} s for {what}; resolve this and run the command again", "StillThere"
            )
        time.sleep(PAUSE_S)
