"""What the reconciler needs of a cluster, and nothing else.

Every write carries a `Stamp` and is refused when the object it would change bears a newer one, so that a
paused old controller that wakes up does no harm. Writes may be repeated freely: a repeated one answers
`Done`. No write blocks: what takes time answers `Busy(until)` and goes on when it is called again. One
contract suite (tests/contract/test_cluster_contract.py) runs on every driver.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

Stage = Literal["pre", "post"]


@dataclass(frozen=True, slots=True, order=True)
class Stamp:
    """Who decided: the controller's term, then its commit's sequence number. Later is greater."""

    term: int
    seq: int


@dataclass(frozen=True, slots=True)
class LeaseRef:
    """Whose node it becomes."""

    uid: str
    request: str  # slice/name
    slice: str
    end: datetime  # strict; written on the node so that a person can see it


@dataclass(frozen=True, slots=True)
class Done:
    """It is so."""


@dataclass(frozen=True, slots=True)
class Busy:
    """Not yet; call again at `until`."""

    until: datetime
    message: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """It will not be done: `StaleStamp`, `NodeHeld`, `NodeGone`, `NodeNotReady`, …"""

    reason: str
    message: str


Answer = Done | Busy | Refused


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check of one node; `log` is what a person reads when it failed, at most a few lines."""

    name: str
    passed: bool
    value: str = ""
    log: str = ""


@dataclass(frozen=True, slots=True)
class GpuView:
    """One GPU as the cluster's inventory knows it."""

    uuid: str
    index: int
    product: str
    memory_mib: int


@dataclass(frozen=True, slots=True)
class NodeView:
    """One GPU node as it is now."""

    name: str
    pool: str
    ready: bool
    cordoned: bool = False  # by somebody else than us
    isolated: bool = False  # by us, for its health
    lease: LeaseRef | None = None
    stamp: Stamp | None = None
    draining: bool = False
    gpus: tuple[GpuView, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)  # network and the like, for people


@dataclass(frozen=True, slots=True)
class WorkloadView:
    """One pod-like thing in a slice's namespace."""

    name: str
    namespace: str
    slice: str
    gpus: int  # 0: a CPU workload, which leases never touch
    phase: Literal["Pending", "Running", "Succeeded"]
    node: str | None = None


@dataclass(frozen=True, slots=True)
class ClusterView:
    """Everything at one instant."""

    at: datetime
    nodes: Mapping[str, NodeView]
    slices: Mapping[str, tuple[str, ...]]  # slice -> its namespaces that exist
    workloads: tuple[WorkloadView, ...] = ()


class ClusterDriver(Protocol):
    """Any method may raise `schemas.errors.Fault` with reason `ClusterUnreachable`."""

    def observe(self, now: datetime) -> ClusterView:
        """What is."""

    def ensure_slice(self, slice_: str, namespaces: tuple[str, ...], stamp: Stamp, now: datetime) -> Answer:
        """Exactly these namespaces exist and are marked as the slice's own; others lose the mark only."""

    def remove_slice(self, slice_: str, stamp: Stamp, now: datetime) -> Answer:
        """Nothing of ours is left of it; refused while it holds nodes."""

    def check(
        self, node: str, stage: Stage, lease: LeaseRef, now: datetime
    ) -> Busy | tuple[CheckResult, ...]:
        """Run the checks of a stage for a lease (its uid counts, not its end).

        Once finished, the same results come again for ten minutes at least; asked after half an hour, the
        checks run anew. A node that the cluster does not know fails at once.
        """

    def add(self, node: str, lease: LeaseRef, stamp: Stamp, now: datetime) -> Answer:
        """The node serves that slice. Refused while another lease has it."""

    def evict(self, node: str, uid: str, by: datetime, stamp: Stamp, now: datetime) -> Answer:
        """GPU workloads of that lease are told to stop by `by` and no new one lands; the lease stays.

        An `add` of the same lease calls it off, as when the end moved later.
        """

    def remove(self, node: str, uid: str, stamp: Stamp, now: datetime) -> Answer:
        """The node serves nobody: GPU workloads go back to Pending, CPU ones stay. Busy while it drains.

        Done, and nothing touched, when another lease has the node by now or the node is gone.
        """

    def isolate(self, node: str, reason: str, stamp: Stamp, now: datetime) -> Answer:
        """No new workload lands on it; what runs there stays."""

    def restore(self, node: str, stamp: Stamp, now: datetime) -> Answer:
        """Ends our own isolation; what others cordoned stays cordoned."""
