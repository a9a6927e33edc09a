"""What the reconciler needs of a cluster, and nothing else.

Every write has a `Stamp` and is refused if the object has a newer one, so that an outdated controller that
wakes up does no harm. Writes are idempotent: a repeated one answers `Done`. No write blocks: a slow one
answers `Busy(until)` and continues when called again. One contract suite
(tests/contract/test_cluster_contract.py) runs on every driver.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, Protocol

from reconciler.model.clock_reading import Heard
from reconciler.model.service_port import ExportsView, Peer
from reconciler.model.workload_port import PlacedWorkload, WorkloadTerms

Stage = Literal["pre", "run", "post"]
"""When a node is checked: before a start, between the nodes of a running lease, after an end."""
Topic = Stage | Literal["remedy"]
"""What results are about: the checks of a stage, or a reset or reboot."""


EARLIEST, LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
"""Instants of views are between these: what people write on objects may be anything."""
UPGRADE_FAILED = "upgrade-failed"
AT_REST = frozenset({"", "upgrade-required", UPGRADE_FAILED})
"""States of an upgrade in which nothing happens on the node: none, waiting for its turn, given up."""


@dataclass(frozen=True, slots=True, order=True)
class Stamp:
    """The decision's origin: the controller's term, then its commit's sequence number. Later is greater."""

    term: int
    seq: int


@dataclass(frozen=True, slots=True)
class LeaseRef:
    """The lease a node is assigned to."""

    uid: str
    request: str  # slice/name
    slice: str
    end: datetime  # strict; written on the node so that people can see it
    mig: str = ""  # the MIG profile of its nodes during the lease; empty: whole GPUs
    start: datetime | None = None  # recorded in case the status branch is lost; None: an older mark


Stop = Literal["None", "Hold", "HoldAndDrain"]
"""What a queue does with workloads: admits them; admits no more; also suspends those that it admitted."""


@dataclass(frozen=True, slots=True)
class QueueTerms:
    """A slice's queue in one cluster (Kueue), for its workloads with GPUs."""

    gpus: int  # of the nodes that are leased and ready now, or their partitions; 0: nothing is admitted
    stop: Stop = "None"
    mig: str = ""  # the MIG profile that `gpus` counts; empty: whole GPUs
    topology: tuple[
        str, ...
    ] = ()  # node labels, the largest domain first; empty: placement is the scheduler's


@dataclass(frozen=True, slots=True)
class QueueView:
    """A slice's queue as the cluster shows it."""

    gpus: int = 0
    stop: Stop = "None"
    mig: str = ""
    problem: str = ""  # why there is none although it is wanted, and what to do


@dataclass(frozen=True, slots=True)
class SliceTerms:
    """A slice's terms in one cluster."""

    name: str
    namespaces: tuple[str, ...]
    members: tuple[str, ...] = ()  # members, by the name the cluster knows (their email)
    gpus: int | None = None  # most GPUs that its pods may request together; None: no limit
    paused: bool = False  # foreign changes are shown and not repaired
    queue: QueueTerms | None = None  # None: the slice wants none
    peers: tuple[Peer, ...] | None = None  # the slice's other clusters; None: it exports no Services
    callers: tuple[str, ...] = ()  # namespaces whose pods reach the servers of endpoints


@dataclass(frozen=True, slots=True)
class Done:
    """The wanted state is reached."""


@dataclass(frozen=True, slots=True)
class Busy:
    """Not yet; call again at `until`."""

    until: datetime
    message: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """Refused: `StaleStamp`, `NodeHeld`, `NodeGone`, `NodeNotReady`, …"""

    reason: str
    message: str


Answer = Done | Busy | Refused


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check of one node; `log` explains a failure, in a few lines."""

    name: str
    passed: bool
    value: str = ""
    log: str = ""


@dataclass(frozen=True, slots=True, order=True)
class RemedyOrder:
    """A reset of GPUs, or a reboot of their node, which no lease has."""

    uid: str
    action: Literal["reset", "reboot"]
    gpus: tuple[str, ...] = ()  # uuids; empty: all of the node
    released: bool = False  # the node's agent has let go of the driver, or is no longer waited for


@dataclass(frozen=True, slots=True)
class GpuView:
    """One GPU in the cluster's inventory."""

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
    cordoned: bool = False  # by others
    isolated: bool = False  # by us, for health reasons
    lease: LeaseRef | None = None
    stamp: Stamp | None = None
    draining: bool = False
    gpus: tuple[GpuView, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)  # network and similar, for people
    foreign: tuple[str, ...] = ()  # namespace/pod of GPU workloads outside slices: the node is not free
    unfit: str = ""  # why it does not match its pool's manifest; empty: it does
    taint: str = ""  # key=value:effect of a foreign taint that repels pods of slices; empty: none
    domains: tuple[str, ...] = ()  # its topology domains in the manifest's order, the largest first
    staying: tuple[str, ...] = ()
    """GPU pods of a node that is being released, with their namespaces, and what blocks each."""
    upgrade: str = ""
    """State of an upgrade of its GPU driver, as the GPU operator names it; empty: none, or done."""
    keeps_driver: bool = False  # by us: no upgrade may begin
    drain: str = ""  # the request by others to drain it; empty: none
    drain_open: bool = False  # it was not answered yet

    @property
    def usable(self) -> bool:
        """True if it can be assigned to a new lease, as far as the cluster shows."""
        return self.ready and self.fits and not (self.cordoned or self.foreign or self.upgrade_runs)

    @property
    def upgrade_runs(self) -> bool:
        """True while its GPU driver is being replaced."""
        return self.upgrade not in AT_REST

    @property
    def fits(self) -> bool:
        """True if it matches its pool and accepts pods of slices."""
        return not (self.unfit or self.taint)


@dataclass(frozen=True, slots=True)
class UnmanagedNode:
    """A GPU node outside every pool: shown, never changed."""

    name: str
    product: str
    gpus: int


@dataclass(frozen=True, slots=True)
class Difference:
    """An object of ours in the cluster that differs from what it should be."""

    slice: str
    object: str  # kind namespace/name, as used to look it up
    # outdated: unchanged since we wrote it, but its terms have changed
    found: Literal["missing", "changed", "extra", "outdated"]
    detail: str = ""  # which fields, and changed by whom if known


@dataclass(frozen=True, slots=True)
class Note:
    """An event to show to a slice's users in their cluster."""

    key: str  # the same for the same note, however often it is written
    reason: str
    text: str
    at: datetime
    slice: str = ""
    request: str = ""  # slice/name
    node: str = ""
    warning: bool = False
    everywhere: bool = False  # in each of the slice's namespaces, not only in the first


@dataclass(frozen=True, slots=True)
class WorkloadView:
    """A pod or similar workload in a slice's namespace."""

    name: str
    namespace: str
    slice: str
    gpus: int  # 0: a CPU workload, never affected by leases
    phase: Literal["Pending", "Running", "Succeeded"]
    node: str | None = None
    ends_at: str | None = None
    """The end of its lease as it can read it (`egs.dev/ends-at`); None: it has no such annotation."""
    checkpointed_at: datetime | None = None  # when it last saved its work, as it says

    @property
    def asks_for_end(self) -> bool:
        """True if it is shown the end although it uses no GPU: its annotation exists."""
        return self.gpus == 0 and self.ends_at is not None


@dataclass(frozen=True, slots=True)
class ClusterView:
    """Everything at one time."""

    at: datetime
    nodes: Mapping[str, NodeView]
    slices: Mapping[str, tuple[str, ...]]  # slice -> its existing namespaces
    workloads: tuple[WorkloadView, ...] = ()
    unmanaged: tuple[UnmanagedNode, ...] = ()
    served: frozenset[tuple[str, datetime]] = frozenset()
    """Leases, by uid and start, that have had all their nodes: reported by another process that does the work."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """The last target size of each elastic pool."""
    queues: Mapping[str, QueueView] = field(default_factory=dict)
    """By slice; only of slices that want one, as far as known."""
    exports: Mapping[str, ExportsView] = field(default_factory=dict)
    """By slice; only of slices that export Services, as far as known."""
    clock: Heard | None = field(default=None, compare=False)
    """The server's clock in its answer; None: it has none of its own. Not part of the observed state."""
    fence: Stamp | None = None
    """The newest known stamp on anything but nodes (slices, pools' targets, a report)."""
    placed: Mapping[str, PlacedWorkload] = field(default_factory=dict)
    """Workloads that we applied, by slice/name."""

    @property
    def newest(self) -> Stamp | None:
        """The newest stamp on anything here."""
        found = [self.fence, *(node.stamp for node in self.nodes.values())]
        return max((stamp for stamp in found if stamp is not None), default=None)


class ClusterDriver(Protocol):
    """Any method may raise `schemas.errors.Fault` with reason `ClusterUnreachable`."""

    def observe(self, now: datetime) -> ClusterView:
        """The present state."""

    def differences(self, slices: tuple[SliceTerms, ...], now: datetime) -> tuple[Difference, ...]:
        """How the state differs from what `ensure_slice` and `ensure_fleet` would leave. Changes nothing."""

    def ensure_fleet(self, stamp: Stamp, now: datetime) -> Answer:
        """Repairs the differences without a slice: nodes' marks, and objects of the cluster as a whole."""

    def ensure_slice(self, terms: SliceTerms, stamp: Stamp, now: datetime) -> Answer:
        """Exactly these namespaces exist and belong to the slice, with all its objects; others only lose the mark.

        Its queue and its exported Services too; where the cluster has no API for them, the view says so, and all else
        is done.
        """

    def remove_slice(self, slice_: str, stamp: Stamp, now: datetime) -> Answer:
        """Removes all our objects of it; refused while it holds nodes. Busy while the cluster cleans up."""

    def check(
        self, node: str, stage: Stage, lease: LeaseRef, stamp: Stamp, now: datetime
    ) -> Busy | Refused | tuple[CheckResult, ...]:
        """Runs the checks of a stage for a lease (its uid counts, not its end).

        Results are returned again for at least ten minutes; after half an hour the checks run again. They fail at
        once on a missing node. `run` measures between the lease's nodes; its results are at most as old as the
        cluster's interval. Before a start the node gets the lease's MIG profile.
        """

    def add(self, node: str, lease: LeaseRef, stamp: Stamp, now: datetime) -> Answer:
        """Assigns the node to that slice. Refused while another lease has it."""

    def show_end(self, lease: LeaseRef, stamp: Stamp, now: datetime) -> Answer:
        """GPU workloads on the lease's nodes, and others of its slice that ask for it, show `lease.end`.

        Those on a node that leaves before that show when it leaves. Nothing is stopped.
        """

    def evict(self, node: str, uid: str, by: datetime, stamp: Stamp, now: datetime) -> Answer:
        """GPU workloads of that lease must stop by `by`; the lease stays. An `add` of the same lease cancels this."""

    def remove(self, node: str, uid: str, stamp: Stamp, now: datetime) -> Answer:
        """Frees the node: GPU workloads return to Pending, CPU ones stay. Busy while it drains.

        Done without a change if another lease has the node by now or the node is gone.
        """

    def isolate(self, node: str, reason: str, stamp: Stamp, now: datetime) -> Answer:
        """No new workload runs on it; running ones stay."""

    def restore(self, node: str, stamp: Stamp, now: datetime) -> Answer:
        """Ends our own isolation; a foreign cordon stays."""

    def drained(self, node: str, stamp: Stamp, now: datetime) -> Answer:
        """Tells those who asked for it that the node is drained. Refused while it serves a lease.

        Busy while pods that they named are asked to leave.
        """

    def remediate(
        self, node: str, order: RemedyOrder, stamp: Stamp, now: datetime
    ) -> Busy | Refused | tuple[CheckResult, ...]:
        """Resets the GPUs, or reboots the node, once for each uid; one result says whether that was carried out.

        Until it is `released`, it only asks the node's agent to let go of the driver. A reboot that the cluster cannot
        carry out counts as carried out: people or hooks were told. Fails at once on a missing node.
        """

    def scale(self, pool: str, count: int, leaving: tuple[str, ...], stamp: Stamp, now: datetime) -> Answer:
        """Sets the target size of the elastic pool; nodes come and go with a delay, those in `leaving` first."""

    def run_workload(self, terms: WorkloadTerms, stamp: Stamp, now: datetime) -> Answer:
        """Exactly these objects of the workload exist, with the rights of the slice's members and no others.

        One object that is refused stops no other; `ClusterView.placed` says of each what became of it. Busy while the
        objects of an earlier run are there.
        """

    def end_workload(self, key: str, stamp: Stamp, now: datetime) -> Answer:
        """Removes all its objects, except PersistentVolumeClaims: data is never deleted."""

    def announce(self, notes: tuple[Note, ...], now: datetime) -> None:
        """Shows notes to people who only look at the cluster. Each note appears once, however often it is given."""

    def close(self) -> None:
        """Closes the connection; no call follows."""
