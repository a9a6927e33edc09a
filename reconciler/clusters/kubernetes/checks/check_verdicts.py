"""Check results from a node's API objects: no image, no pod, no call. Pure.

Of what only a pod on the node can measure, the objects show some: a broken network reported by the node,
missing RDMA devices, a missing storage class. The rest passes as `not measured`, explicitly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from reconciler.clusters.kubernetes.checks.measurements import NOT_MEASURED
from reconciler.clusters.kubernetes.names import SLICE
from reconciler.clusters.kubernetes.nodes.mig import resource_of, shows
from reconciler.clusters.kubernetes.nodes.node_inventory import Node, Pod, is_gpu, misfit
from reconciler.clusters.kubernetes.nodes.node_marks import marks_of
from reconciler.model.cluster_port import CheckResult, LeaseRef, Stage
from schemas.documents.cluster import ClusterSpec
from schemas.documents.pool import Pool

DIRECT = frozenset({"NodeHealth", "Drained", "Labels"})
"""Checks answered by objects alone."""
RDMA_PREFIXES = ("rdma/", "nvidia.com/hostdev", "vpc.amazonaws.com/efa")
"""Resources by which device plugins show RDMA devices."""
NODE_GONE = (CheckResult("NodeHealth", False, "", "the cluster has no such node"),)
NO_IMAGE = "spec.checks.image sets no image that can measure it"


@dataclass(frozen=True, slots=True)
class Subject:
    """A checked node, as the informers know it."""

    node: Node
    pool: Pool | None  # None: it left its pool while serving
    lease: LeaseRef
    peers: tuple[str, ...] = ()  # the other nodes of the lease
    pods: tuple[Pod, ...] = ()  # pods that hold GPUs of it

    @property
    def gpus(self) -> int:
        """GPUs that it must have."""
        return self.node.gpus if self.pool is None else self.pool.gpus_per_node

    @property
    def shape(self) -> str:
        """The shape that selects the thresholds."""
        return "" if self.pool is None else self.pool.gpu_shape


@dataclass(frozen=True, slots=True)
class Storage:
    """Storage classes of the cluster, each with whether it is the default."""

    classes: Mapping[str, bool]

    def usable(self, wanted: str | None) -> str | None:
        """The class to request a volume from; None: there is none."""
        if wanted is not None:
            return wanted if wanted in self.classes else None
        return next((name for name, is_default in sorted(self.classes.items()) if is_default), None)


def checks_of(subject: Subject, stage: Stage) -> tuple[str, ...]:
    """The checks of a stage, in the order shown."""
    if stage == "run":
        return ("Latency",)
    # NCCL does not work between MIG slices.
    several = subject.gpus > 1 and not (subject.lease.mig and stage == "pre")
    nccl = ("NcclLatency",) if several else ()
    if stage == "post":
        return ("Drained", "Network", *nccl, "PersistentVolume", "Labels")
    rdma = ("RdmaSubnet",) if subject.pool is not None and subject.pool.rdma else ()
    return ("NodeHealth", "PersistentVolume", "Connectivity", *rdma, *nccl)


def silent(subject: Subject, stage: Stage) -> tuple[CheckResult, ...]:
    """All results for a node that does not answer."""
    log = f"node {subject.node.name} is not Ready"
    return tuple(CheckResult(name, False, "", log) for name in checks_of(subject, stage))


def direct(subject: Subject, stage: Stage, spec: ClusterSpec) -> dict[str, CheckResult]:
    """Results of the checks that need no pod."""
    found = {
        "NodeHealth": lambda: node_health(subject, spec),
        "Drained": lambda: drained(subject),
        "Labels": lambda: labels(subject),
    }
    return {name: found[name]() for name in checks_of(subject, stage) if name in DIRECT}


def unmeasured(subject: Subject, stage: Stage, spec: ClusterSpec, storage: Storage) -> dict[str, CheckResult]:
    """What the objects show about checks that a pod would measure."""
    judges: Mapping[str, Callable[[], CheckResult]] = {
        "PersistentVolume": lambda: _volume(spec, storage),
        "Connectivity": lambda: _network("Connectivity", subject),
        "Network": lambda: _network("Network", subject),
        "RdmaSubnet": lambda: _rdma(subject),
    }
    names = [name for name in checks_of(subject, stage) if name not in DIRECT]
    return {name: judges[name]() if name in judges else _blank(name, NO_IMAGE) for name in names}


def skipped(name: str, because: str) -> CheckResult:
    """A check that is pointless because the node failed another one."""
    return _blank(name, f"not run, since {because} failed")


def node_health(subject: Subject, spec: ClusterSpec) -> CheckResult:
    """F4: no condition reports a fault, and all its GPUs are allocatable."""
    node, pool = subject.node, subject.pool
    have, can = _gpus(node.capacity), _gpus(node.allocatable)
    value = f"{can}/{have} GPUs allocatable"
    if node.problems:
        return CheckResult("NodeHealth", False, value, f"conditions report {', '.join(node.problems)}")
    if pool is not None and (why := misfit(node, pool, spec)):
        return CheckResult("NodeHealth", False, value, why)
    if subject.lease.mig:
        return _mig_health(subject, value)
    if can < have or have < subject.gpus:
        log = f"{can} of {have} GPUs are allocatable and {subject.gpus} are needed; the device plugin took the rest out"
        return CheckResult("NodeHealth", False, value, log)
    return CheckResult("NodeHealth", True, value, "Ready, and no condition reports a fault")


def _mig_health(subject: Subject, value: str) -> CheckResult:
    if not shows(subject.node, subject.lease.mig):
        log = f"no {resource_of(subject.lease.mig)} is allocatable"
        return CheckResult("NodeHealth", False, value, log)
    return CheckResult("NodeHealth", True, value, f"Ready, and cut into {subject.lease.mig}")


def drained(subject: Subject) -> CheckResult:
    """F10: no pod of the slice holds a GPU."""
    left = subject.pods
    used = sum(pod.gpus for pod in left)
    if left:
        names = ", ".join(pod.key for pod in left[:3]) + (" and more" if len(left) > 3 else "")
        return CheckResult("Drained", False, f"{used} GPUs in use", f"GPU pods are left: {names}")
    return CheckResult("Drained", True, "0 GPUs in use", "no GPU pod is left")


def labels(subject: Subject) -> CheckResult:
    """F10: no mark of a slice is left on the node."""
    lease, label = marks_of(subject.node).lease, subject.node.labels.get(SLICE)
    if lease is not None:
        return CheckResult("Labels", False, lease.slice, f"the node still has the lease of {lease.request}")
    if label is not None:
        return CheckResult("Labels", False, label, f"the node still has the label {SLICE}")
    return CheckResult("Labels", True, "none left", "no label of a slice is left")


def rdma_resources(node: Node) -> tuple[str, ...]:
    """RDMA devices that its plugins offer to pods."""
    return tuple(sorted(n for n, count in node.allocatable.items() if count and n.startswith(RDMA_PREFIXES)))


def _volume(spec: ClusterSpec, storage: Storage) -> CheckResult:
    wanted = spec.checks.storage_class
    usable = storage.usable(wanted)
    if usable is None and wanted is not None:
        return CheckResult("PersistentVolume", False, "", f"the cluster has no storage class {wanted}")
    what = "the cluster has no default storage class" if usable is None else f"storage class {usable} exists"
    return _blank("PersistentVolume", f"{what}; {NO_IMAGE}")


def _network(name: str, subject: Subject) -> CheckResult:
    if subject.node.conditions.get("NetworkUnavailable") == "True":
        return CheckResult(name, False, "", "condition NetworkUnavailable is True")
    return _blank(name, f"no condition reports its network broken; {NO_IMAGE}")


def _rdma(subject: Subject) -> CheckResult:
    node = subject.node
    gone = sorted(
        n for n, c in node.capacity.items() if n.startswith(RDMA_PREFIXES) and node.allocatable.get(n, 0) < c
    )
    if gone:
        return CheckResult("RdmaSubnet", False, "", f"not all of {', '.join(gone)} is allocatable")
    seen = ", ".join(rdma_resources(node)) or "no RDMA resource"
    return _blank("RdmaSubnet", f"the node shows {seen}; {NO_IMAGE}")


def _blank(name: str, log: str) -> CheckResult:
    return CheckResult(name, True, NOT_MEASURED, log)


def _gpus(resources: Mapping[str, int]) -> int:
    return sum(count for name, count in resources.items() if is_gpu(name))
