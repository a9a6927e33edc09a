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

from reconciler.model.clock_reading import Heard

Stage = Literal["pre", "run", "post"]
"""When a node is checked: before a start, between the nodes of a running lease, after an end."""


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
    mig: str = ""  # the MIG profile its nodes are cut into while it holds them; empty: whole GPUs
    start: datetime | None = None  # what a lost status branch cannot tell any more; None: an older mark


@dataclass(frozen=True, slots=True)
class SliceTerms:
    """What a slice is in one cluster."""

    name: str
    namespaces: tuple[str, ...]
    members: tuple[str, ...] = ()  # who may work there, as the cluster knows people (their email)
    gpus: int | None = None  # most GPUs its pods may ask for together; None: no bound
    paused: bool = False  # what others change is shown and not repaired


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
    foreign: tuple[
        str, ...
    ] = ()  # namespace/pod of GPU workloads that belong to no slice: the node is not free
    unfit: str = ""  # why it is not what its pool's manifest says; empty: it is
    taint: str = (
        ""  # key=value:effect of somebody's taint that keeps pods of slices off; empty: there is none
    )
    domains: tuple[
        str, ...
    ] = ()  # where it stands, as the manifest's topology asks, the largest domain first
    staying: tuple[
        str, ...
    ] = ()  # GPU pods of a node that is being left, with their namespaces, and what keeps each of them

    @property
    def usable(self) -> bool:
        """It may be given to somebody new, as far as the cluster can tell."""
        return self.ready and self.fits and not (self.cordoned or self.foreign)

    @property
    def fits(self) -> bool:
        """It is what its pool says, and takes pods of slices."""
        return not (self.unfit or self.taint)


@dataclass(frozen=True, slots=True)
class UnmanagedNode:
    """A GPU node outside every pool: shown to people, never touched."""

    name: str
    product: str
    gpus: int


@dataclass(frozen=True, slots=True)
class Difference:
    """Something of ours in the cluster that is not as it should be."""

    slice: str
    object: str  # kind namespace/name, as a person would look it up
    # outdated: it is as we left it, and is to be otherwise by now
    found: Literal["missing", "changed", "extra", "outdated"]
    detail: str = ""  # which fields, and by whom where that is known


@dataclass(frozen=True, slots=True)
class Note:
    """What people of a slice should see in their cluster too."""

    key: str  # the same note has the same key, however often it is told
    reason: str
    text: str
    at: datetime
    slice: str = ""
    request: str = ""  # slice/name
    node: str = ""
    warning: bool = False


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
    unmanaged: tuple[UnmanagedNode, ...] = ()
    served: frozenset[tuple[str, datetime]] = frozenset()
    """Leases, by uid and start, that had all their nodes once: where another process does the work, and says so."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """How many nodes each elastic pool is to have, as the cluster was told last."""
    clock: Heard | None = field(default=None, compare=False)
    """What its server's clock said as it answered this look; None: it has none of its own. No part of what is."""
    fence: Stamp | None = None
    """The newest stamp on whatever is no node (slices, pools' targets, a report), as far as it is known."""

    @property
    def newest(self) -> Stamp | None:
        """The newest stamp that anything here bears."""
        found = [self.fence, *(node.stamp for node in self.nodes.values())]
        return max((stamp for stamp in found if stamp is not None), default=None)


class ClusterDriver(Protocol):
    """Any method may raise `schemas.errors.Fault` with reason `ClusterUnreachable`."""

    def observe(self, now: datetime) -> ClusterView:
        """What is."""

    def differences(self, slices: tuple[SliceTerms, ...], now: datetime) -> tuple[Difference, ...]:
        """What is not as `ensure_slice`, or `ensure_fleet` where it bears no slice, would leave it. Changes nothing."""

    def ensure_fleet(self, stamp: Stamp, now: datetime) -> Answer:
        """What `differences` says of no slice is put right: nodes' marks, and what the cluster needs as a whole."""

    def ensure_slice(self, terms: SliceTerms, stamp: Stamp, now: datetime) -> Answer:
        """Exactly these namespaces exist and are the slice's own, with all it needs; others lose the mark only."""

    def remove_slice(self, slice_: str, stamp: Stamp, now: datetime) -> Answer:
        """Nothing of ours is left of it; refused while it holds nodes. Busy while the cluster cleans up."""

    def check(
        self, node: str, stage: Stage, lease: LeaseRef, stamp: Stamp, now: datetime
    ) -> Busy | Refused | tuple[CheckResult, ...]:
        """Run the checks of a stage for a lease (its uid counts, not its end).

        Once finished, the same results come again for ten minutes at least; asked after half an hour, the
        checks run anew. A node that the cluster does not know fails at once. `run` measures between the nodes that
        bear the lease; its results are as old as the cluster's interval at most. Before a start the node is cut
        into the lease's MIG profile.
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

    def scale(self, pool: str, count: int, leaving: tuple[str, ...], stamp: Stamp, now: datetime) -> Answer:
        """The elastic pool is to have so many nodes; nodes come and go in their own time, those of `leaving` first."""

    def announce(self, notes: tuple[Note, ...], now: datetime) -> None:
        """Tell the people who look at the cluster only. One note is told once, however often it is given."""

    def close(self) -> None:
        """Let go of the connection; no call comes after it."""
