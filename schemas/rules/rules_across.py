"""Rules about references between documents. They read other documents only through a `View`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import NamedTuple

from schemas.documents.apikey import ApiKey
from schemas.documents.approval import Approval, ApprovalSpec
from schemas.documents.base import Document
from schemas.documents.binding import GPRTemplateBinding
from schemas.documents.gpr import GPR, GPRTemplate, RequestSpec, resolve
from schemas.documents.notifications import Profile
from schemas.documents.pool import Pool
from schemas.documents.project import Project
from schemas.documents.slice import LimitsWhere, QuotaWhere, Slice
from schemas.documents.workspace import WorkspaceRequest
from schemas.reading.strict_yaml import Path
from schemas.reading.units import format_duration
from schemas.rules.endpoint_rules import across_endpoint
from schemas.rules.findings import Finding
from schemas.rules.fit import (
    admins_needed,
    approval_needs,
    free_gpus_by_hours,
    free_priority,
    gpus_held,
    misfits,
    pool_fits,
)
from schemas.rules.limits import NO_SHAPE, LimitViolation, broken, broken_there, hour_bounds, in_project
from schemas.rules.offer_rules import of_binding, of_bound_template, of_groups, of_key
from schemas.rules.route_rules import across_routes, of_profile
from schemas.rules.view import (
    View,
    across_key,
    any_namespace_key,
    approvals_key,
    cluster_path,
    gpr_path,
    namespace_key,
    requests_key,
    slice_path,
    template_path,
    workspace_path,
)
from schemas.rules.workload_rules import across_workload

MAX_REQUESTS = 1000
"""Files in one slice's folder, if there is no valid project.yaml to say."""


class Place(NamedTuple):
    """A pool and the cluster that has it."""

    cluster: str
    pool: Pool

    def __str__(self) -> str:
        pool = self.pool
        size = "the nodes of its selector," if pool.could_have(pool.most + 1) else f"{pool.most} nodes of"
        return (
            f"{self.cluster}/{pool.name} has {size} {pool.gpus_per_node} x {pool.gpu_shape} "
            f"with {pool.memory_per_gpu} GB"
        )


class FiledRequest(NamedTuple):
    """A request with its name, file and slice, as the rules need it."""

    file: str
    name: str
    spec: RequestSpec
    slice_: Slice


def across(file: str, document: Document, view: View) -> Iterator[Finding]:
    """Problems of this document in relation to the others."""
    match document:
        case GPR():
            yield from _of_gpr(file, document, view)
        case GPRTemplateBinding():
            yield from of_binding(file, document, view)
        case ApiKey():
            yield from of_key(file, document, view)
        case Profile():
            yield from of_profile(file, document, view)
        case Slice():
            yield from _of_slice(file, document, view)
        case WorkspaceRequest():
            yield from _of_workspace(file, document, view)
        case GPRTemplate():
            yield from _of_clusters(file, document.spec.clusters or (), view)
        case Approval():
            yield from _of_approval(file, document, view)
        case Project():
            yield from _of_where(file, ("limits", "everySlice"), document.spec.limits.every_slice.where, view)
            yield from _of_where(
                file, ("quota",), document.spec.quota.where if document.spec.quota else (), view
            )
            yield from _of_reserve(file, document, view)
            yield from of_groups(file, document, view)
    yield from across_routes(file, document, view)
    yield from across_workload(file, document, view)
    yield from across_endpoint(file, document, view)


def _of_where(
    file: str, path: Path, parts: Iterable[LimitsWhere | QuotaWhere], view: View
) -> Iterator[Finding]:
    for i, part in enumerate(parts):
        if part.cluster is not None and view.absent(cluster_path(part.cluster)):
            message = f"there is no cluster {part.cluster}"
            yield Finding(file, "UnknownCluster", message, ("spec", *path, "where", i, "cluster"))


def _of_reserve(file: str, project: Project, view: View) -> Iterator[Finding]:
    for i, entry in enumerate(project.spec.scheduling.reserve):
        path = ("spec", "scheduling", "reserve", i)
        cluster = view.cluster(entry.cluster)
        if view.absent(cluster_path(entry.cluster)):
            message = f"there is no cluster {entry.cluster}"
            yield Finding(file, "UnknownCluster", message, (*path, "cluster"))
        elif cluster is not None and all(pool.name != entry.pool for pool in cluster.spec.pools):
            message = f"cluster {entry.cluster} has no pool {entry.pool}"
            yield Finding(file, "UnknownPool", message, (*path, "pool"))


def _of_clusters(file: str, names: Iterable[str], view: View) -> Iterator[Finding]:
    for i, name in enumerate(names):
        if view.absent(cluster_path(name)):
            yield Finding(file, "UnknownCluster", f"there is no cluster {name}", ("spec", "clusters", i))


def _of_gpr(file: str, gpr: GPR, view: View) -> Iterator[Finding]:
    slice_ = _bounded(gpr.spec.slice, view)
    if slice_ is None and view.no_slice(gpr.spec.slice):
        yield Finding(file, "UnknownSlice", f"there is no slice {gpr.spec.slice}", ("spec", "slice"))
    spec = _resolved(file, gpr, view)
    if isinstance(spec, Finding):
        yield spec
    # A request that is to end needs no nodes: a broken rule must not keep it alive.
    if slice_ is None or not isinstance(spec, RequestSpec) or spec.early_release:
        return
    yield from _of_clusters(file, spec.clusters, view)
    for i, name in enumerate(spec.clusters):
        if name not in slice_.spec.clusters:
            message = f"slice {spec.slice} does not span cluster {name}"
            fix = f"choose among {', '.join(slice_.spec.clusters)}, or leave clusters out"
            yield Finding(file, "ClusterNotAllowed", message, ("spec", "clusters", i), fix)
    yield from of_bound_template(file, gpr, spec, view)
    asked = FiledRequest(file, gpr.metadata.name, spec, slice_)
    yield from _of_limits(asked)
    places = _places(spec, slice_, view)
    # If a cluster is missing or refused, it is unknown what would fit.
    if places is not None:
        fitting = [place for place in places if pool_fits(spec, place.pool)]
        allowed = [place for place in fitting if not broken_there(spec, slice_.spec.limits, place)]
        if allowed or not fitting:
            yield from _of_places(file, spec, places, allowed)
        else:
            yield from _nowhere_allowed(asked, fitting)
        yield from _of_approval_need(asked, allowed, view)


def _bounded(name: str, view: View) -> Slice | None:
    """A slice with the project's bounds applied."""
    slice_, project = view.slice(name), view.project()
    if slice_ is None or project is None:
        return slice_
    return slice_.edited(spec=in_project(slice_.spec, project.spec))


def _resolved(file: str, gpr: GPR, view: View) -> RequestSpec | Finding | None:
    name = gpr.spec.template
    template = view.template(name) if name else None
    if name and template is None:
        if view.absent(template_path(name)):
            return Finding(file, "UnknownTemplate", f"there is no template {name}", ("spec", "template"))
        return None
    spec = resolve(gpr.spec, template.spec if template else None)
    return Finding(file, "NothingToAskFor", spec, ("spec",)) if isinstance(spec, str) else spec


def _of_limits(asked: FiledRequest) -> Iterator[Finding]:
    file, spec, limits = asked.file, asked.spec, asked.slice_.spec.limits
    for violation in broken(spec, limits):
        yield _violation(file, violation)
    hours = [bound for bound in hour_bounds(asked.slice_.spec) if bound.is_hard and not bound.where]
    for bound in hours:
        if spec.nodes * spec.gpus_per_node > free_gpus_by_hours(spec, bound.gpu_hours):
            message = f"the slice may use {bound.gpu_hours} GPU-hours a month, but this alone needs more"
            yield Finding(file, "TooManyGpuHours", message, ("spec",))


def _violation(file: str, violation: LimitViolation) -> Finding:
    message = f"the slice allows {violation.allowed}, but this asks for {violation.asked}"
    return Finding(file, violation.rule, message, ("spec", violation.field))


def _nowhere_allowed(asked: FiledRequest, fitting: Sequence[Place]) -> Iterator[Finding]:
    """Pools fit, but a limit rules out each of them: the limits of the nearest pool."""
    limits = asked.slice_.spec.limits
    nearest = min((broken_there(asked.spec, limits, place) for place in fitting), key=len)
    if not broken(asked.spec, limits):  # otherwise those were reported already
        yield from (_violation(asked.file, violation) for violation in nearest)


def _places(spec: RequestSpec, slice_: Slice, view: View) -> list[Place] | None:
    """Every pool that the slice may use and the request allows; None if a cluster cannot be read."""
    clusters = [view.cluster(name) for name in spec.clusters or slice_.spec.clusters]
    shapes = slice_.spec.limits.gpu_shapes
    places = []
    for cluster in clusters:
        if cluster is None:
            return None
        name = cluster.metadata.name
        places += [Place(name, p) for p in cluster.spec.pools if not shapes or p.gpu_shape in shapes]
    return places


def _of_places(
    file: str, spec: RequestSpec, places: Sequence[Place], fitting: Sequence[Place]
) -> Iterator[Finding]:
    # Only the controller knows how many nodes a selector finds; it reports too few as its own `FitsNowhere`.
    if any(place.pool.could_have(spec.nodes) for place in fitting):
        return
    shapes = {place.pool.gpu_shape for place in places}
    if spec.gpu_shapes and shapes.isdisjoint(spec.gpu_shapes):
        message = f"no allowed cluster has {' or '.join(spec.gpu_shapes)}"
        fix = f"choose among {', '.join(sorted(shapes)) or 'no shape'}"
        yield Finding(file, "UnknownShape", message, ("spec", "gpuShape"), fix)
    elif not fitting:
        yield _misfit(file, spec, places)
    else:
        largest = max(fitting, key=lambda place: place.pool.most)
        message = f"{spec.nodes} nodes of one pool are asked for; {largest}"
        fix = f"ask for at most {largest.pool.most} nodes"
        yield Finding(file, "FitsNowhere", message, ("spec", "nodes"), fix)


def _misfit(file: str, spec: RequestSpec, places: Sequence[Place]) -> Finding:
    """The nearest pool, and what keeps the request out of it."""
    if not places:
        return Finding(file, "FitsNowhere", "the allowed clusters have no pool the slice may use", ("spec",))
    nearest = min(places, key=lambda place: len(misfits(spec, place.pool)))
    fields = misfits(spec, nearest.pool)
    path: Path = ("spec", *fields[0].split("."))
    message = f"no pool has such nodes; {nearest}, which does not match {' and '.join(fields)}"
    return Finding(file, "FitsNowhere", message, path, f"change {' and '.join(fields)}")


def _of_approval_need(asked: FiledRequest, fitting: Sequence[Place], view: View) -> Iterator[Finding]:
    project = view.project()
    if project is None:
        return
    words = _fresh_words(asked, project, view)
    needs = approval_needs(asked.spec, asked.slice_.spec, project.spec, fitting)
    held = min((gpus_held(asked.spec, place.pool) for place in fitting), default=0)
    enough = sum(_lets_in(word, asked.spec.nodes, held) for word in words)
    if needs and enough < admins_needed(project.spec, asked.spec.nodes, held):
        message = f"an admin must approve: it {', and '.join(need.message for need in needs)}"
        yield Finding(asked.file, "NeedsApproval", message, ("spec",))
    yield from _of_grace(asked, project, words)


def _of_grace(asked: FiledRequest, project: Project, words: Iterable[ApprovalSpec]) -> Iterator[Finding]:
    wish, free = asked.spec.extend, project.spec.max_extension
    if wish <= free or any(_lengthens(word, wish) for word in words):
        return
    message = (
        f"an admin must approve: it asks for {format_duration(wish)} of grace but a request may have "
        f"{format_duration(free)} without approval"
    )
    yield Finding(asked.file, "NeedsApproval", message, ("spec", "extend"))


def _fresh_words(asked: FiledRequest, project: Project, view: View) -> list[ApprovalSpec]:
    """Approvals on file for exactly this content; whether they still count depends on time and keys."""
    paths = view.parts(approvals_key(asked.spec.slice, asked.name))
    words = [word.spec for path in paths if (word := view.document(path, Approval)) is not None]
    if not words:
        return []
    digest = asked.spec.digest(free_priority(asked.slice_.spec, project.spec))
    return [word for word in words if word.decision == "approve" and word.spec_digest == digest]


def _lets_in(word: ApprovalSpec, nodes: int, gpus: int) -> bool:
    limit = word.limit
    return word.rule == "request" and limit is not None and limit.gpus >= gpus and limit.nodes >= nodes


def _lengthens(word: ApprovalSpec, extend: timedelta) -> bool:
    most = None if word.limit is None else word.limit.extend
    return word.rule == "extension" and most is not None and most >= extend


def _of_slice(file: str, slice_: Slice, view: View) -> Iterator[Finding]:
    spec, name = slice_.spec, slice_.metadata.name
    yield from _of_clusters(file, spec.clusters, view)
    for i, namespace in enumerate(spec.namespaces):
        for message in _taken(slice_, namespace, view):
            yield Finding(file, "NamespaceTaken", message, ("spec", "namespaces", i))
    yield from _of_slice_shapes(file, slice_, view)
    yield from _of_where(file, ("limits",), spec.limits.where, view)
    yield from _of_where(file, ("quota",), spec.quota.where if spec.quota else (), view)
    project = view.project()
    most = project.spec.limits.requests_per_slice if project else MAX_REQUESTS
    for path in view.beyond(requests_key(name), most):
        # Without their number: a message that changes with every file would be reported again each time.
        message = f"slices/{name}/gprs holds more than {most} requests, and this is one of the newest"
        yield Finding(path, "TooManyRequests", message)


def _taken(slice_: Slice, namespace: str, view: View) -> Iterator[str]:
    """By whom, in one of the slice's clusters; across clusters Services of one name and namespace are one."""
    own = {slice_path(slice_.metadata.name), workspace_path(slice_.metadata.name)}
    is_taken = False
    for cluster in slice_.spec.clusters:
        others = [path for path in view.parts(namespace_key(cluster, namespace)) if path not in own]
        if others:
            is_taken = True
            yield f"namespace {namespace} of cluster {cluster} is also claimed by {others[0]}"
    is_across = slice_.spec.services.across != "none"
    key = any_namespace_key(namespace) if is_across else across_key(namespace)
    others = [path for path in view.parts(key) if path not in own]
    if others and not is_taken:
        which = "this slice" if is_across else "that slice"
        yield (
            f"namespace {namespace} is also claimed by {others[0]}, in another cluster; {which} has services across "
            "clusters, which take a namespace name as one namespace everywhere"
        )


def _of_workspace(file: str, asked: WorkspaceRequest, view: View) -> Iterator[Finding]:
    name = asked.metadata.name
    if view.absent(slice_path(name)):
        yield from _of_slice(file, asked.as_slice(), view)
    else:
        message = f"slice {name} has a file of its own, which counts instead"
        yield Finding(file, "WorkspaceMade", message, ("metadata", "name"))


def _of_slice_shapes(file: str, slice_: Slice, view: View) -> Iterator[Finding]:
    if not slice_.spec.limits.gpu_shapes:
        return
    clusters = [view.cluster(name) for name in slice_.spec.clusters]
    known = {pool.gpu_shape for cluster in clusters if cluster for pool in cluster.spec.pools}
    for i, shape in enumerate(slice_.spec.limits.gpu_shapes):
        if shape not in known and None not in clusters:
            message = f"no cluster of the slice has {shape}"
            yield Finding(file, "UnknownShape", message, ("spec", "limits", "gpuShapes", i))
    bounded = _bounded(slice_.metadata.name, view)
    if bounded is not None and bounded.spec.limits.gpu_shapes == NO_SHAPE:
        message = "the project allows none of these shapes"
        yield Finding(file, "ShapeNotAllowed", message, ("spec", "limits", "gpuShapes"))


def _of_approval(file: str, approval: Approval, view: View) -> Iterator[Finding]:
    spec, name = approval.spec, approval.metadata.name
    project = view.project()
    if project is not None and name not in {admin.handle for admin in project.spec.admins}:
        handles = ", ".join(admin.handle for admin in project.spec.admins)
        message = f"{name} is not an admin of the project"
        yield Finding(file, "NotAnAdmin", message, ("metadata", "name"), f"admins are {handles}")
    gpr = view.gpr(spec.slice, spec.gpr)
    if gpr is None:
        if view.absent(gpr_path(spec.slice, spec.gpr)):
            message = f"there is no request {spec.slice}/{spec.gpr}"
            yield Finding(file, "UnknownRequest", message, ("spec", "gpr"))
        return
    slice_, request = _bounded(spec.slice, view), _resolved(file, gpr, view)
    if slice_ is None or not isinstance(request, RequestSpec):
        return
    if project is None:
        return
    digest = request.digest(free_priority(slice_.spec, project.spec))
    if digest != spec.spec_digest:
        message = f"{spec.slice}/{spec.gpr} now has the digest {digest}"
        yield Finding(file, "StaleApproval", message, ("spec", "specDigest"))
