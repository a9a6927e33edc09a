"""The workloads of each cluster: from the documents in force and the committed leases to objects. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from datetime import datetime

from reconciler.model.cluster_port import ClusterView
from reconciler.model.facts import Facts, Wanted
from reconciler.model.status_edits import counted_end
from reconciler.model.workload_port import (
    PlacedWorkload,
    WorkloadObject,
    WorkloadRun,
    WorkloadTerms,
    in_order,
)
from schemas.documents.endpoint import EndpointSpec
from schemas.documents.workload import WorkloadSpec
from schemas.rules.workload_rules import identity
from schemas.status.gpr_status import GPRStatus, Phase
from schemas.status.workload_status import ObjectState, WorkloadPhase, WorkloadStatus

OVER = frozenset({ObjectState.SUCCEEDED, ObjectState.FAILED})
"""States of an object that has ended."""


def objects_of(spec: WorkloadSpec) -> tuple[WorkloadObject, ...]:
    """Its objects in the order of application."""
    return in_order(
        WorkloadObject(*identity(each), json.dumps(each, sort_keys=True)) for each in spec.manifests
    )


def digest_of(spec: WorkloadSpec) -> str:
    """The digest of its objects; the same in every process."""
    text = json.dumps(spec.manifests, sort_keys=True)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()[:16]


def namespace_of(spec: WorkloadSpec | EndpointSpec, wanted: Wanted) -> str | None:
    """Where it runs; None if its slice does not have the namespace, or has none."""
    slice_ = wanted.slices.get(spec.slice)
    if slice_ is None:
        return None
    namespace = spec.namespace or next(iter(slice_.namespaces), None)
    return namespace if namespace in slice_.namespaces else None


def run_of(status: GPRStatus, now: datetime) -> WorkloadRun | None:
    """The run of a request that is Provisioned and not over; None: it gives its workloads no nodes."""
    end = counted_end(status) or status.estimated_end_time
    if status.phase is not Phase.PROVISIONED or status.start_time is None or end is None or now >= end:
        return None
    return WorkloadRun(status.uid, status.start_time)


def is_of(status: WorkloadStatus, run: WorkloadRun) -> bool:
    """True if the status tells of that run."""
    return (status.uid, status.start_time) == (run.uid, run.start)


def is_settled(status: WorkloadStatus | None, spec: WorkloadSpec) -> bool:
    """True if it has succeeded with these objects in an earlier run: it does not run again."""
    return status is not None and status.phase is WorkloadPhase.SUCCEEDED and status.digest == digest_of(spec)


def workloads_in(cluster: str, wanted: Wanted, facts: Facts, now: datetime) -> tuple[WorkloadTerms, ...]:
    """Every workload whose request has nodes of that cluster now, by slice and name."""
    found = (
        terms_of(key, spec, facts.workloads.get(key), (cluster, wanted, facts), now)
        for key, spec in sorted(wanted.workloads.items())
    )
    return tuple(terms for terms in found if terms is not None)


def terms_of(
    key: str,
    spec: WorkloadSpec,
    known: WorkloadStatus | None,
    where: tuple[str, Wanted, Facts],
    now: datetime,
) -> WorkloadTerms | None:
    """The terms of one workload; None: its request has no nodes of that cluster, or it does not run again."""
    cluster, wanted, facts = where
    request = facts.requests.get(f"{spec.slice}/{spec.gpr}")
    namespace = namespace_of(spec, wanted)
    if request is None or request.assignment is None or namespace is None:
        return None
    run = run_of(request, now)
    if run is None or request.assignment.cluster != cluster:
        return None
    same, digest = known is not None and is_of(known, run), digest_of(spec)
    if not same and is_settled(known, spec):
        return None
    # A document that changed is run anew: only objects of the same content count as ended.
    ended = () if known is None or not same or known.digest != digest else _ended(known)
    return WorkloadTerms(key, namespace, run, digest, objects_of(spec), ended)


def to_run(
    cluster: str, wanted: Wanted, there: Iterable[WorkloadTerms], view: ClusterView
) -> list[WorkloadTerms]:
    """What of `there` must be applied now; what differs while repairs are paused is only shown."""
    found = []
    for terms in there:
        placed = view.placed.get(terms.key)
        if placed is None:
            found.append(terms)
        elif _is_same_run(placed, terms) and placed.differs(terms):
            is_paused = wanted.clusters[cluster].paused or wanted.slices[terms.slice].paused
            if placed.digest != terms.digest or not is_paused:
                found.append(terms)
    return found


def to_end(there: Iterable[WorkloadTerms], view: ClusterView) -> list[str]:
    """Workloads of which the cluster has objects, and whose run is over: by slice and name."""
    runs = {terms.key: terms for terms in there}
    return [
        key
        for key, placed in sorted(view.placed.items())
        if key not in runs or not _is_same_run(placed, runs[key])
    ]


def _is_same_run(placed: PlacedWorkload, terms: WorkloadTerms) -> bool:
    return (placed.run, placed.namespace) == (terms.run, terms.namespace)


def _ended(known: WorkloadStatus) -> tuple[str, ...]:
    return tuple(f"{each.kind}/{each.name}" for each in known.objects if each.state in OVER)
