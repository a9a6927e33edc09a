"""What a request holds: the mark that its nodes bear, and their GPUs. Pure."""

from __future__ import annotations

from reconciler.model.cluster_port import LeaseRef
from reconciler.model.facts import Wanted
from reconciler.model.status_edits import counted_end, lease_duration
from scheduler.choices.fit import candidate_pools
from schemas.documents.gpr import RequestSpec
from schemas.status.gpr_status import GPRStatus

MIG = "mig:"
"""What `spec.sharing` begins with where nodes are cut."""


def lease_ref(key: str, status: GPRStatus) -> LeaseRef | None:
    """The mark a node of this request bears."""
    start = status.start_time or status.estimated_start_time
    if start is None:
        return None
    end = counted_end(status) or start + lease_duration(status)
    spec = status.accepted_spec
    mig = spec.sharing.removeprefix(MIG) if spec.sharing.startswith(MIG) else ""
    return LeaseRef(uid=status.uid, request=key, slice=spec.slice, end=end, mig=mig, start=start)


def gpus_of(status: GPRStatus, wanted: Wanted) -> int:
    """GPUs of all nodes that it holds, is promised, or would get in the first pool that fits."""
    held, spec = status.assignment, status.accepted_spec
    cluster, name = status.estimated_cluster, status.estimated_pool
    if held is not None:
        cluster, name = held.cluster, held.pool
    pool = None if cluster is None or name is None else wanted.pools.get((cluster, name))
    return spec.nodes * (gpus_per_node(spec, wanted) if pool is None else pool.gpus_per_node)


def gpus_per_node(spec: RequestSpec, wanted: Wanted) -> int:
    """Of the first pool that fits; as many as it asks for where none does."""
    slice_ = wanted.slices.get(spec.slice)
    fitting = () if slice_ is None else candidate_pools(spec, slice_, wanted.pools)
    return wanted.pools[fitting[0]].gpus_per_node if fitting else spec.gpus_per_node
