"""The endpoints of each cluster as workloads: from the documents in force and what is committed to objects. Pure.

An endpoint's objects stand under the name `endpoint.<name>`, which no workload can have.
"""

from __future__ import annotations

from datetime import datetime

from reconciler.documents.workload_terms import terms_of, workloads_in
from reconciler.endpoints.rendered import objects_of
from reconciler.endpoints.rollout import first_rollout
from reconciler.model.facts import Facts, Wanted
from reconciler.model.lease_end import end_of
from reconciler.model.workload_port import WorkloadTerms
from schemas.documents.cluster import ClusterSpec
from schemas.documents.endpoint import EndpointSpec
from schemas.documents.workload import WorkloadSpec
from schemas.status.endpoint_status import RolloutStatus
from schemas.status.gpr_status import GPRStatus

PREFIX = "endpoint."


def workload_key(key: str) -> str:
    """Under which the objects of endpoint `key` (slice/name) stand."""
    slice_, _, name = key.partition("/")
    return f"{slice_}/{PREFIX}{name}"


def request_of(key: str, wanted: Wanted) -> str:
    """The request, slice/name, on whose nodes that workload or endpoint runs."""
    slice_, _, name = key.partition("/")
    if name.startswith(PREFIX):
        return f"{slice_}/{wanted.endpoints[f'{slice_}/{name.removeprefix(PREFIX)}'].gpr}"
    return f"{slice_}/{wanted.workloads[key].gpr}"


def drains_at(spec: EndpointSpec, request: GPRStatus, cluster: ClusterSpec) -> datetime | None:
    """When traffic stops before the end of the lease; None: it has not started.

    Never more than half of the time before the notice: an endpoint on a short lease serves too.
    """
    end = end_of(request, cluster)
    if end is None or request.start_time is None:
        return None
    half = (end.notice_at - request.start_time) // 2
    return end.notice_at - min(spec.drain, half)


def is_draining(spec: EndpointSpec, request: GPRStatus | None, wanted: Wanted, now: datetime) -> bool:
    """True from the instant on at which nothing new may reach it."""
    held = None if request is None else request.assignment
    cluster = None if held is None else wanted.clusters.get(held.cluster)
    if request is None or cluster is None:
        return False
    at = drains_at(spec, request, cluster)
    return at is not None and now >= at


def as_workload(
    key: str,
    spec: EndpointSpec,
    rollout: RolloutStatus,
    request: GPRStatus | None,
    known: tuple[Wanted, datetime],
) -> WorkloadSpec:
    """The endpoint's objects with the weights that hold now."""
    wanted, now = known
    held = None if request is None else request.assignment
    cluster = None if held is None else wanted.clusters.get(held.cluster)
    weights = {} if is_draining(spec, request, wanted, now) else rollout.weights
    gateway, portal = (None, None) if cluster is None else (cluster.gateway, cluster.portal)
    manifests = objects_of(key, spec, weights, gateway, portal)
    return WorkloadSpec(slice=spec.slice, gpr=spec.gpr, namespace=spec.namespace, manifests=manifests)


def endpoints_in(cluster: str, wanted: Wanted, facts: Facts, now: datetime) -> tuple[WorkloadTerms, ...]:
    """Every endpoint whose request has nodes of that cluster now; without a status the document's weights hold."""
    found = []
    for key, spec in sorted(wanted.endpoints.items()):
        request, status = facts.requests.get(f"{spec.slice}/{spec.gpr}"), facts.endpoints.get(key)
        if request is None or request.assignment is None or request.assignment.cluster != cluster:
            continue
        rollout = first_rollout(spec, now) if status is None else status.rollout
        rendered = as_workload(key, spec, rollout, request, (wanted, now))
        run = None if status is None else status.run
        terms = terms_of(workload_key(key), rendered, run, (cluster, wanted, facts), now)
        if terms is not None:
            found.append(terms)
    return tuple(found)


def all_in(cluster: str, wanted: Wanted, facts: Facts, now: datetime) -> tuple[WorkloadTerms, ...]:
    """Everything of people's that runs in that cluster now: workloads, then endpoints."""
    return (*workloads_in(cluster, wanted, facts, now), *endpoints_in(cluster, wanted, facts, now))


def endpoint_instants(wanted: Wanted, facts: Facts) -> list[datetime]:
    """When traffic stops, and when a step has been observed long enough."""
    found: list[datetime] = []
    for key, status in facts.endpoints.items():
        spec = wanted.endpoints.get(key)
        request = None if spec is None else facts.requests.get(f"{spec.slice}/{spec.gpr}")
        held = None if request is None else request.assignment
        cluster = None if held is None else wanted.clusters.get(held.cluster)
        if spec is None or request is None or cluster is None:
            continue
        at = drains_at(spec, request, cluster)
        found += [] if at is None else [at]
        if status.rollout.state == "Moving" and spec.rollout is not None:
            begun = (status.rollout.at, status.rollout.unready_since)
            found += [at + spec.rollout.interval for at in begun if at is not None]
    return found
