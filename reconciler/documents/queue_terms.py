"""A slice's queue in a cluster: what it shall be now, and what the status says about it. Pure.

The queue follows the lease: its GPUs are those of the nodes that the lease has and that are ready. At the warning it
admits nothing more, at the notice it suspends what it admitted, and without a lease it admits nothing: work that is
submitted meanwhile waits for the next lease.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from reconciler.model.cluster_port import ClusterView, QueueTerms, QueueView, SliceTerms, Stop
from reconciler.model.facts import Wanted
from reconciler.model.holdings import lease_ref
from reconciler.model.lease_end import LeasePhase, end_of
from reconciler.model.pools import home_of
from schemas.documents.cluster import ClusterSpec
from schemas.status.gpr_status import GPRStatus, Phase
from schemas.status.inventory import SliceQueue

STOPS: Mapping[LeasePhase, Stop] = {
    "running": "None",
    "warning": "Hold",
    "notice": "HoldAndDrain",
    "over": "HoldAndDrain",
}
_COMPUTE_SLICES = 7
"""Of one GPU with MIG, at most."""
_PROFILE = re.compile(r"(\d+)g\.(\d+)gb")


def queue_in(
    cluster: str, slice_: str, wanted: Wanted, holding: Mapping[str, GPRStatus], view: ClusterView
) -> QueueTerms:
    """The queue of this slice when the cluster looks like this; `holding`: the requests that hold nodes of it."""
    spec = wanted.clusters[cluster]
    own = (found for found in holding.items() if found[1].accepted_spec.slice == slice_)
    lease = next((found for found in own if _phase(found[1], spec, view) != "over"), None)
    if lease is None:
        return QueueTerms(0, STOPS["over"], topology=spec.topology)
    key, status = lease
    mark = lease_ref(key, status)
    mig = "" if mark is None else mark.mig
    gpus = len(_ready(status, view)) * _gpus_per_node(status, wanted, mig)
    return QueueTerms(gpus, STOPS[_phase(status, spec, view)], mig, spec.topology)


def _phase(status: GPRStatus, spec: ClusterSpec, view: ClusterView) -> LeasePhase:
    end = end_of(status, spec)
    return "over" if end is None or status.phase is not Phase.PROVISIONED else end.phase(view.at)


def _ready(status: GPRStatus, view: ClusterView) -> list[str]:
    """Nodes on which the lease's pods can start now."""
    nodes = () if status.assignment is None else status.assignment.nodes
    return [
        name
        for name in nodes
        if (node := view.nodes.get(name)) is not None
        and (node.lease is not None and node.lease.uid == status.uid)
        and node.ready
        and not (node.cordoned or node.isolated)
    ]


def _gpus_per_node(status: GPRStatus, wanted: Wanted, mig: str) -> int:
    """All GPUs of a node, or their partitions."""
    spec = status.accepted_spec
    pool = None if status.assignment is None else wanted.pools.get(home_of(status.assignment, wanted.pools))
    gpus, memory = (spec.gpus_per_node, 0) if pool is None else (pool.gpus_per_node, pool.memory_per_gpu)
    return gpus * (partitions(mig, memory) if mig else 1)


def partitions(profile: str, memory_gb: int) -> int:
    """How often a GPU of this memory can be cut into the profile; 1 for one that is not known."""
    found = _PROFILE.match(profile)
    if found is None:
        return 1
    compute, memory = int(found[1]), int(found[2])
    return max(1, min(_COMPUTE_SLICES // max(compute, 1), memory_gb // max(memory, 1)))


def queue_rows(spec: ClusterSpec, terms: tuple[SliceTerms, ...], view: ClusterView) -> Iterator[SliceQueue]:
    """What the status says of the queues in one cluster, by slice; one that is being made is left out."""
    for found in terms:
        want, have = found.queue, view.queues.get(found.name)
        if want is None:
            continue
        if spec.mode == "observe":
            would = QueueView(want.gpus, want.stop, want.mig)
            yield _row(found.name, would, "Observed", "nothing is written while the cluster is only observed")
        elif have is not None:
            yield _row(found.name, have, "Missing" if have.problem else "Kept", have.problem)


def _row(slice_: str, have: QueueView, state: str, message: str) -> SliceQueue:
    return SliceQueue.model_validate(
        {
            "slice": slice_,
            "gpus": have.gpus,
            "stop": have.stop,
            "mig": have.mig,
            "state": state,
            "message": message,
        }
    )
