"""The terms of each slice in each cluster, from the documents in force and the committed leases. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.documents.queue_terms import queue_in
from reconciler.documents.service_terms import peers_in
from reconciler.model.cluster_port import ClusterView, SliceTerms
from reconciler.model.facts import Facts, Wanted
from reconciler.model.pools import home_of
from reconciler.model.statuses import holders
from schemas.documents.cluster import ClusterSpec
from schemas.documents.slice import SliceSpec
from schemas.status.gpr_status import GPRStatus


def assigned(cluster: str, facts: Facts) -> dict[str, GPRStatus]:
    """Requests that hold nodes of that cluster, by name."""
    return {
        key: status
        for key, status in sorted(holders(facts.requests).items())
        if status.assignment is not None and status.assignment.cluster == cluster
    }


def slices_in(cluster: str, wanted: Wanted, holding: Mapping[str, GPRStatus]) -> dict[str, SliceSpec]:
    """Slices of a cluster: those that list the cluster, and those that still hold nodes of it."""
    used = {status.accepted_spec.slice for status in holding.values()}
    return {name: spec for name, spec in wanted.slices.items() if cluster in spec.clusters or name in used}


def terms_in(cluster: str, wanted: Wanted, facts: Facts, view: ClusterView | None) -> tuple[SliceTerms, ...]:
    """The terms of every slice of that cluster, by name; without a view the queues are left out."""
    spec, holding = wanted.clusters.get(cluster), assigned(cluster, facts)
    is_paused = spec is not None and spec.paused
    held = _gpus_held(holding, wanted)
    callers = () if spec is None else _callers(spec)
    return tuple(
        SliceTerms(
            name=name,
            namespaces=slice_.namespaces,
            members=tuple(person.email for person in slice_.people),
            gpus=_most_gpus(slice_, held.get(name, 0)),
            paused=is_paused or slice_.paused,
            callers=callers,
            queue=None
            if view is None or not slice_.queues.kueue
            else queue_in(cluster, name, wanted, holding, view),
            peers=peers_in(cluster, slice_, wanted.clusters),
        )
        for name, slice_ in sorted(slices_in(cluster, wanted, holding).items())
    )


def _callers(cluster: ClusterSpec) -> tuple[str, ...]:
    """Namespaces of the cluster's Gateway and of what reads metrics there, sorted."""
    gateway, source = cluster.gateway, None if cluster.metrics is None else cluster.metrics.prometheus
    found = {None if gateway is None else gateway.proxies or gateway.namespace}
    found.add(None if source is None else source.namespace)
    return tuple(sorted(name for name in found if name is not None))


def _most_gpus(slice_: SliceSpec, held: int) -> int | None:
    """The quota, or what an admin approved beyond it; None without a quota: a limit of 0 would refuse pending pods."""
    quota = 0 if slice_.quota is None else slice_.quota.gpus or 0
    return max(quota, held) if quota else None


def _gpus_held(holding: Mapping[str, GPRStatus], wanted: Wanted) -> dict[str, int]:
    """By slice, all GPUs of the nodes of its largest request."""
    found: dict[str, int] = {}
    for status in holding.values():
        assert status.assignment is not None
        spec, pool = status.accepted_spec, wanted.pools.get(home_of(status.assignment, wanted.pools))
        gpus = len(status.assignment.nodes) * (spec.gpus_per_node if pool is None else pool.gpus_per_node)
        found[spec.slice] = max(found.get(spec.slice, 0), gpus)
    return found
