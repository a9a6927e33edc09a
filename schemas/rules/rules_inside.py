"""Rules for one document alone, beyond what its model checks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from schemas.documents.approval import Approval
from schemas.documents.base import Document
from schemas.documents.binding import GPRTemplateBinding
from schemas.documents.cluster import Cluster
from schemas.documents.endpoint import Endpoint
from schemas.documents.gpr import GPR, GPRTemplate, Wish
from schemas.documents.pool import Pool
from schemas.documents.project import Project
from schemas.documents.workload import Workload
from schemas.reading.strict_yaml import Path
from schemas.reading.units import MIB_ABOVE, memory_gb
from schemas.rules.endpoint_rules import inside_endpoint
from schemas.rules.findings import Finding
from schemas.rules.offer_rules import inside_binding
from schemas.rules.route_rules import inside_routes
from schemas.rules.workload_rules import inside_workload


def inside(file: str, document: Document) -> Iterator[Finding]:
    """Problems, warnings and notices of this document alone."""
    match document:
        case GPR() | GPRTemplate():
            yield from _of_wish(file, document.spec)
        case Cluster():
            yield from _of_access(file, document)
            yield from _of_selectors(file, document)
            yield from _of_names(file, document)
            yield from _of_maintenance(file, document)
            yield from _of_reserved(file, document)
            yield from _of_health(file, document)
        case Project():
            yield from _of_admins(file, document)
        case Approval():
            yield from _of_approval(file, document)
        case GPRTemplateBinding():
            yield from inside_binding(file, document)
        case Workload():
            yield from inside_workload(file, document)
        case Endpoint():
            yield from inside_endpoint(file, document)
    yield from inside_routes(file, document)


def _of_approval(file: str, approval: Approval) -> Iterator[Finding]:
    spec = approval.spec
    if spec.decision == "approve" and spec.limit is None:
        yield Finding(file, "LimitMissing", "the approval has no limit", ("spec",))
    elif spec.rule == "extension" and spec.limit is not None and spec.limit.extend is None:
        yield Finding(file, "LimitMissing", "the limit has no extend", ("spec", "limit"), "add extend")
    lacks = [
        name for name, there in (("signature", spec.signature), ("notAfter", spec.not_after)) if not there
    ]
    if lacks:
        yield Finding(file, "UnsignedApproval", f"the approval has no {' and no '.join(lacks)}", ("spec",))


def _of_wish(file: str, wish: Wish) -> Iterator[Finding]:
    memory = wish.memory_per_gpu
    if memory is not None and memory > MIB_ABOVE:
        message = f"memoryPerGpu {memory} is taken as MiB: {memory_gb(memory)} GB"
        fix = f"write memoryPerGpu: {memory_gb(memory)}"
        yield Finding(file, "MemoryInMiB", message, ("spec", "memoryPerGpu"), fix)


def _of_admins(file: str, project: Project) -> Iterator[Finding]:
    seen: set[str] = set()
    for i, admin in enumerate(project.spec.admins):
        if admin.handle in seen:
            message = f"several admins would file approvals as {admin.handle}"
            yield Finding(file, "DuplicateAdmin", message, ("spec", "admins", i))
        seen.add(admin.handle)


LABEL_KEY = re.compile(
    r"(?=.{1,317}$)([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
)


def _of_access(file: str, cluster: Cluster) -> Iterator[Finding]:
    access, products = cluster.spec.access, Counter(shape.product for shape in cluster.spec.shapes)
    if access is not None and cluster.spec.driver != "kubernetes" and access.ways != ("pull",):
        yield Finding(file, "OnlyKubernetes", "a simulated cluster needs no access", ("spec", "access"))
    if access is not None and len(access.ways) != 1:
        named = " and ".join(access.ways) or "none"
        yield Finding(file, "OneAccess", f"ways to reach it: {named}", ("spec", "access"))
    elif access is not None and access.context is not None and access.kubeconfig is None:
        yield Finding(file, "OneAccess", "a context needs a kubeconfig", ("spec", "access", "context"))
    for i, shape in enumerate(cluster.spec.shapes):
        if products[shape.product] > 1:
            message = f"several shapes for product {shape.product}"
            yield Finding(file, "DuplicateProduct", message, ("spec", "shapes", i, "product"))


def _of_selectors(file: str, cluster: Cluster) -> Iterator[Finding]:
    for i, pool in enumerate(cluster.spec.pools):
        at: Path = ("spec", "pools", i)
        if pool.elastic is not None:
            yield from _of_elastic(file, pool, is_real=cluster.spec.driver == "kubernetes", at=at)
        elif (pool.nodes is None) == (pool.selector is None):
            which = "neither nodes nor selector" if pool.nodes is None else "both nodes and selector"
            yield Finding(file, "NodesOrSelector", f"pool {pool.name} has {which}", at)
        if pool.selector is not None and cluster.spec.driver != "kubernetes":
            message = "the nodes of a simulated cluster are counted or named"
            yield Finding(file, "OnlyKubernetes", message, (*at, "selector"))
        yield from _of_labels(file, pool, at)


def _of_elastic(file: str, pool: Pool, *, is_real: bool, at: Path) -> Iterator[Finding]:
    assert pool.elastic is not None
    if pool.nodes is not None:
        yield Finding(
            file,
            "ElasticPool",
            f"pool {pool.name} is elastic but has a fixed number of nodes",
            (*at, "nodes"),
        )
    if is_real and pool.selector is None:
        yield Finding(file, "ElasticPool", f"pool {pool.name} has no selector to find its nodes", at)
    if is_real != (pool.elastic.target is not None):
        what = "has no target to scale" if is_real else "has a target to scale, but the cluster is simulated"
        yield Finding(file, "ElasticPool", f"pool {pool.name} {what}", (*at, "elastic"))


def _of_labels(file: str, pool: Pool, at: Path) -> Iterator[Finding]:
    for key in pool.selector or ():
        if not LABEL_KEY.fullmatch(key):
            yield Finding(
                file, "BadLabel", f"{key[:100]!r} is not a label key", (*at, "selector", key), on_key=True
            )


def _of_names(file: str, cluster: Cluster) -> Iterator[Finding]:
    pools = Counter(pool.name for pool in cluster.spec.pools)
    nodes: set[str] = set()
    for i, pool in enumerate(cluster.spec.pools):
        at: Path = ("spec", "pools", i)
        if pools[pool.name] > 1:
            yield Finding(file, "DuplicatePool", f"several pools are named {pool.name}", (*at, "name"))
        names = pool.node_names()
        twice = nodes.intersection(names) or {name for name, n in Counter(names).items() if n > 1}
        if twice and pools[pool.name] == 1:
            message = f"several nodes are named {min(twice)}"
            yield Finding(file, "DuplicateNode", message, (*at, "nodes"))
        nodes.update(names)


def _of_maintenance(file: str, cluster: Cluster) -> Iterator[Finding]:
    pools = {pool.name for pool in cluster.spec.pools}
    nodes = {name for pool in cluster.spec.pools for name in pool.node_names()}
    finds = any(pool.discovered for pool in cluster.spec.pools)  # then only the cluster knows its nodes
    for i, window in enumerate(cluster.spec.maintenance):
        at: Path = ("spec", "maintenance", i)
        if window.end <= window.begin:
            yield Finding(file, "EndBeforeBegin", "the window ends before it begins", (*at, "end"))
        for rule, field, names, known in (
            ("UnknownPool", "pools", window.pools, pools),
            ("UnknownNode", "nodes", window.nodes, nodes),
        ):
            for j, name in enumerate(names):
                if name not in known and not (field == "nodes" and finds):
                    yield Finding(file, rule, f"no such {field[:-1]}: {name}", (*at, field, j))


def _of_reserved(file: str, cluster: Cluster) -> Iterator[Finding]:
    for i, pool in enumerate(cluster.spec.pools):
        at: Path = ("spec", "pools", i, "reserved")
        for j, item in enumerate(pool.reserved):
            if item.end <= item.begin:
                yield Finding(
                    file, "EndBeforeBegin", "the reservation ends before it begins", (*at, j, "end")
                )
            elif any(item.begin < other.end and other.begin < item.end for other in pool.reserved[:j]):
                yield Finding(file, "ReservedTwice", "it overlaps an earlier reservation", (*at, j))
            if item.nodes is not None and (pool.nodes is None or item.nodes > pool.size):
                has = "its nodes are not listed" if pool.nodes is None else f"it has {pool.size}"
                yield Finding(file, "ReservedNodes", f"pool {pool.name}: {has}", (*at, j, "nodes"))
        if pool.reserved and pool.elastic is not None and (pool.elastic.min or pool.elastic.warm):
            message = f"pool {pool.name} keeps nodes that its reservations do not cover"
            yield Finding(file, "ReservedMinimum", message, ("spec", "pools", i, "elastic"))


def _of_health(file: str, cluster: Cluster) -> Iterator[Finding]:
    health = cluster.spec.health
    if health.clear_temperature > health.max_temperature:
        message = (
            f"clearTemperature {health.clear_temperature} is above maxTemperature {health.max_temperature}"
        )
        yield Finding(file, "BadThresholds", message, ("spec", "health"))
    for place, limit in enumerate(health.limits):
        of_shape = health.of_shape(limit.gpu_shape)
        if of_shape.clear_temperature > of_shape.max_temperature:
            message = (
                f"for {limit.gpu_shape}, clearTemperature {of_shape.clear_temperature} is above maxTemperature "
                f"{of_shape.max_temperature}"
            )
            yield Finding(file, "BadThresholds", message, ("spec", "health", "limits", place))
