"""Rules for endpoints: versions and weights alone, and the request's nodes and the clusters' Gateways."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from schemas.documents.base import Document
from schemas.documents.endpoint import LONGEST_DEPLOYMENT, Endpoint, EndpointSpec
from schemas.documents.gpr import RequestSpec, resolve
from schemas.reading.strict_yaml import Path
from schemas.rules.findings import Finding
from schemas.rules.surroundings import of_surroundings
from schemas.rules.view import ANY_HOSTNAME, View, below_key, hostname_key, served_key

_WHOLE = 100


def inside_endpoint(file: str, endpoint: Endpoint) -> Iterator[Finding]:
    """Problems of its versions and weights alone."""
    spec, name = endpoint.spec, endpoint.metadata.name
    if not name[:1].isalpha():
        message = "an endpoint's name begins with a letter: its Services have it"
        yield Finding(file, "EndpointNameDigit", message, ("metadata", "name"))
    most = LONGEST_DEPLOYMENT - (len("-predictor") if spec.backend == "kserve" else 0)
    longest = max((f"{name}-{version.name}" for version in spec.versions), key=len)
    if len(longest) > most:
        message = (
            f"{longest} has {len(longest)} characters; endpoint and version have at most {most} together"
        )
        yield Finding(file, "EndpointNameTooLong", message, ("metadata", "name"))
    yield from _of_versions(file, spec)
    yield from _of_weights(file, spec)


def _of_versions(file: str, spec: EndpointSpec) -> Iterator[Finding]:
    seen: set[str] = set()
    for i, version in enumerate(spec.versions):
        path: Path = ("spec", "versions", i)
        if version.name in seen:
            yield Finding(file, "DuplicateVersion", f"there are two versions {version.name}", (*path, "name"))
        seen.add(version.name)
        least, most = version.replicas.min, version.replicas.max
        if least > most:
            message = f"version {version.name} has at least {least} replicas, but at most {most}"
            yield Finding(file, "ReplicasReversed", message, (*path, "replicas"))
        elif most > least and spec.scaling is None:
            message = f"version {version.name} may have {least} to {most} replicas, but nothing scales it"
            yield Finding(file, "ScalingMissing", message, (*path, "replicas"))


def _of_weights(file: str, spec: EndpointSpec) -> Iterator[Finding]:
    known = {version.name for version in spec.versions}
    for name in sorted(spec.weights.keys() - known):
        fix = f"choose among {', '.join(sorted(known))}"
        yield Finding(file, "UnknownVersion", f"there is no version {name}", ("spec", "weights", name), fix)
    if (total := sum(spec.weights.values())) != _WHOLE:
        message = f"the weights are {total} together, not {_WHOLE}"
        yield Finding(file, "WeightsNotWhole", message, ("spec", "weights"))


def across_endpoint(file: str, endpoint: Document, view: View) -> Iterator[Finding]:
    """Its slice must exist and have the namespace, its request, if it is there, the GPUs."""
    if not isinstance(endpoint, Endpoint):
        return
    spec = endpoint.spec
    yield from of_surroundings(file, "endpoint", spec, view)
    slice_ = view.slice(spec.slice)
    if slice_ is None:
        return
    request = _request(spec, view)
    if request is not None:
        yield from _of_gpus(file, spec, request, _beside(file, spec, view))
    yield from _of_clusters(file, spec, slice_.spec.clusters, view)
    yield from _of_hostnames(file, spec, view)


def _of_hostnames(file: str, spec: EndpointSpec, view: View) -> Iterator[Finding]:
    """Names that another slice's endpoint has too, or one of both below the other's wildcard: traffic would mix.

    Documents have no age, so both files are told. A route without names has all names of the clusters' Gateways.
    """
    if spec.route is None:
        return
    if not spec.route.hostnames and (other := _sharing(spec, view.parts(below_key("")), view)) is not None:
        message = f"a route without hostnames would get those of {other}, which may use the same Gateway"
        yield Finding(file, "HostnameTaken", message, ("spec", "route"), "name hostnames in spec.route")
    for i, hostname in enumerate(spec.route.hostnames):
        parts = hostname.split(".")
        names = [hostname, *(".".join(("*", *parts[n:])) for n in range(1, len(parts)))]
        paths = [path for name in names for path in view.parts(hostname_key(name))]
        if parts[0] == "*":
            paths += view.parts(below_key(".".join(parts[1:])))
        others = [path for path in paths if not path.startswith(f"slices/{spec.slice}/")]
        any_ = None if others else _sharing(spec, view.parts(hostname_key(ANY_HOSTNAME)), view)
        if others or any_:
            message = f"hostname {hostname} is also used by {any_ or others[0]}"
            yield Finding(file, "HostnameTaken", message, ("spec", "route", "hostnames", i))


def _sharing(spec: EndpointSpec, paths: Iterable[str], view: View) -> str | None:
    """The first of these endpoints that is another slice's and may use the same Gateway."""
    own = view.slice(spec.slice)
    for path in paths:
        name = path.split("/")[1]
        other = None if name == spec.slice else view.slice(name)
        if own and other and not set(own.spec.clusters).isdisjoint(other.spec.clusters):
            return path
    return None


def _request(spec: EndpointSpec, view: View) -> RequestSpec | None:
    """The request with its template expanded; None: it is not there, or has problems of its own."""
    gpr = view.gpr(spec.slice, spec.gpr)
    if gpr is None:
        return None
    template = None if gpr.spec.template is None else view.template(gpr.spec.template)
    found = resolve(gpr.spec, None if template is None else template.spec)
    return found if isinstance(found, RequestSpec) else None


def _beside(file: str, spec: EndpointSpec, view: View) -> dict[str, list[int]]:
    """GPUs of each replica that the other endpoints of the request may have, by their name."""
    paths = [path for path in view.parts(served_key(spec.slice, spec.gpr)) if path != file]
    found = {path: view.document(path, Endpoint) for path in paths}
    return {other.metadata.name: _sizes(other.spec) for other in found.values() if other is not None}


def _sizes(spec: EndpointSpec) -> list[int]:
    """GPUs of each replica that it may have at most."""
    return [version.gpus_per_replica for version in spec.versions for _ in range(version.replicas.max)]


def _of_gpus(
    file: str, spec: EndpointSpec, request: RequestSpec, beside: Mapping[str, list[int]]
) -> Iterator[Finding]:
    nodes = "one node" if request.nodes == 1 else f"{request.nodes} nodes"
    has = f"request {spec.gpr} has {nodes} of at least {request.gpus_per_node} GPUs"
    for i, version in enumerate(spec.versions):
        if version.gpus_per_replica > request.gpus_per_node:
            message = (
                f"a replica of {version.name} needs {version.gpus_per_replica} GPUs of one node, but {has}"
            )
            fix = "ask for nodes with more GPUs, or lower gpusPerReplica"
            yield Finding(file, "TooManyGpusServed", message, ("spec", "versions", i, "gpusPerReplica"), fix)
            return
    own, sizes, whose = _sizes(spec), _sizes(spec), "its replicas"
    if packs(own, request.nodes, request.gpus_per_node) and beside:
        sizes = own + [size for its in beside.values() for size in its]
        names = ", ".join(sorted(beside))
        whose = f"its replicas and those of endpoint{'s' if len(beside) > 1 else ''} {names}"
    if not packs(sizes, request.nodes, request.gpus_per_node):
        message = f"{whose} may need {sum(sizes)} GPUs, but {has}"
        yield Finding(file, "TooManyGpusServed", message, ("spec", "versions"))
        return
    spare = [version.gpus_per_replica for version in spec.versions for _ in range(spec.max_surge)]
    if not packs([*sizes, *spare], request.nodes, request.gpus_per_node):
        message = (
            f"{whose} may need {sum(sizes)} GPUs, and {sum(spare)} more while they are replaced, but {has}"
        )
        yield Finding(file, "NoSpareGpu", message, ("spec", "maxSurge"))


def packs(sizes: list[int], nodes: int, gpus: int) -> bool:
    """True if replicas of these sizes fit onto the nodes, the largest first and each where it fits best.

    O(replicas × GPUs of a node): nodes with as many free GPUs are alike.
    """
    free = Counter({gpus: nodes})
    for size in sorted(sizes, reverse=True):
        left = min((left for left, count in free.items() if count and left >= size), default=None)
        if left is None:
            return False
        free[left] -= 1
        free[left - size] += 1
    return True


def _of_clusters(file: str, spec: EndpointSpec, clusters: tuple[str, ...], view: View) -> Iterator[Finding]:
    """What an endpoint needs of each cluster in which its request may run: a warning, since one may be enough."""
    found = [(name, cluster.spec) for name in clusters if (cluster := view.cluster(name)) is not None]
    without = [name for name, cluster in found if cluster.gateway is None]
    if spec.route is not None and without:
        message = (
            f"cluster {', '.join(without)} has no gateway: there nothing from outside reaches the endpoint"
        )
        yield Finding(file, "GatewayMissing", message, ("spec", "route"))
    unasked = [name for name, cluster in found if cluster.portal is None]
    if spec.scaling is not None and spec.scaling.by == "keda" and unasked:
        message = (
            f"cluster {', '.join(unasked)} has no portal: there KEDA scales nothing, and `min` replicas run"
        )
        yield Finding(file, "PortalMissing", message, ("spec", "scaling"))
    blind = [name for name, c in found if c.metrics is None or c.metrics.prometheus is None]
    if spec.rollout is not None and blind:
        message = f"cluster {', '.join(blind)} has no metrics.prometheus: there no step is judged, and weights stand"
        yield Finding(file, "MetricsMissing", message, ("spec", "rollout"))
