"""What is known at one time: the committed status, main's documents, the state of clusters and agents.

`Facts` is exactly the status branch's content; everything else here is read again in every cycle.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from reconciler.model.cluster_port import Busy, CheckResult, ClusterView, Difference, LeaseRef, Topic
from reconciler.model.events import Event
from reconciler.model.evidence import ApprovalDecision
from reconciler.model.observation import Observation
from reconciler.settings import Settings
from scheduler.choices.topology import Traits
from scheduler.snapshot import Pool, PoolKey
from schemas.documents.apikey import ApiKeySpec
from schemas.documents.approval import Approval
from schemas.documents.binding import GPRTemplateBindingSpec
from schemas.documents.cluster import ClusterSpec
from schemas.documents.endpoint import EndpointSpec
from schemas.documents.gpr import RequestSpec, Wish
from schemas.documents.notifications import ProfileSpec
from schemas.documents.project import ProjectSpec
from schemas.documents.slice import SliceSpec
from schemas.documents.workload import WorkloadSpec
from schemas.documents.workspace import WorkspaceRequestSpec
from schemas.status.cards import Card
from schemas.status.endpoint_status import EndpointStatus
from schemas.status.gpr_status import Cause, GPRStatus, Provenance, WorkspaceRecord
from schemas.status.gpu_alerts import NodeAlert
from schemas.status.insights import EndedRecord, Insights
from schemas.status.inventory import PoolScale, SliceQueue, SliceServices, UnmanagedNode
from schemas.status.judgements import HeldChange, SpentApproval, TrustRecord
from schemas.status.node_status import AgentReport, NodeRecord
from schemas.status.outbox import OutboxRecord
from schemas.status.promises import PromisesRecord
from schemas.status.remedies import Remedy
from schemas.status.usage import UsageRecord
from schemas.status.workload_status import WorkloadStatus

NodeKey = tuple[str, str]
"""(cluster, node)."""
LeaseKey = tuple[str, datetime]
"""(uid, start): a requeued request gets another start."""


@dataclass(frozen=True, slots=True)
class Reachability:
    """Whether a cluster answered, and since when."""

    reachable: bool
    since: datetime


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything the controller has committed."""

    at: datetime
    intent: str = ""  # the commit of main that these facts cover
    requests: Mapping[str, GPRStatus] = field(default_factory=dict)
    nodes: Mapping[NodeKey, NodeRecord] = field(default_factory=dict)
    clusters: Mapping[str, Reachability] = field(default_factory=dict)
    usage: Mapping[str, UsageRecord] = field(default_factory=dict)
    held_deletions: str = ""  # identifies the deletions that need an admin's confirmation; empty: none
    found: Mapping[PoolKey, tuple[str, ...]] = field(default_factory=dict)  # nodes of pools with a selector
    unmanaged: Mapping[str, tuple[UnmanagedNode, ...]] = field(default_factory=dict)  # by cluster
    trust: TrustRecord | None = None  # how far main was judged; None: nothing is verified
    used_approvals: Mapping[str, tuple[SpentApproval, ...]] = field(default_factory=dict)  # by slice
    workspaces: Mapping[str, WorkspaceRecord] = field(default_factory=dict)  # by name
    scales: Mapping[PoolKey, PoolScale] = field(default_factory=dict)  # of elastic pools
    faults: Mapping[NodeKey, tuple[datetime, ...]] = field(default_factory=dict)  # when nodes failed recently
    insights: Insights | None = None  # statistics of finished requests; None: none has finished
    ended: Mapping[str, EndedRecord] = field(default_factory=dict)  # finished requests one by one, by day
    promises: Mapping[str, PromisesRecord] = field(default_factory=dict)  # settled promises, by month
    cards: Mapping[str, Card] = field(default_factory=dict)  # cards that failed, by serial number
    alerts: Mapping[str, tuple[NodeAlert, ...]] = field(default_factory=dict)  # of GPUs, by cluster
    remedies: Mapping[NodeKey, tuple[Remedy, ...]] = field(default_factory=dict)  # oldest first
    queues: Mapping[str, tuple[SliceQueue, ...]] = field(default_factory=dict)  # of slices, by cluster
    services: Mapping[str, tuple[SliceServices, ...]] = field(default_factory=dict)  # of slices, by cluster
    outbox: Mapping[str, OutboxRecord] = field(default_factory=dict)  # pending messages of routes, by name
    workloads: Mapping[str, WorkloadStatus] = field(default_factory=dict)  # by slice/name
    endpoints: Mapping[str, EndpointStatus] = field(default_factory=dict)  # by slice/name
    unread: frozenset[str] = frozenset()  # clusters, see `reconciler.status.recognised_leases`


@dataclass(frozen=True, slots=True)
class Filed:
    """Main's version of one request: its resolved spec, or why its file is refused."""

    spec: RequestSpec | None
    problem: str = ""
    provenance: Provenance | None = None
    """For the present file; None: nothing is verified, or unchanged."""
    held: HeldChange | None = None
    """The change of the file on main that does not count; None: there is none."""
    ends: bool = False
    """For a refused but readable file: whether it has earlyRelease. Nothing else in it counts."""
    nonce: str = ""
    """Part of its id besides its name, if its author wanted to know the id at once; empty: none."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """Main's version of one request for a slice."""

    spec: WorkspaceRequestSpec | None  # the spec in force; None: there never was one
    problem: str = ""  # why the present file does not count
    has_own_file: bool = False  # the slice has a slice.yaml, which takes precedence


@dataclass(frozen=True, slots=True)
class Wanted:
    """The documents in force, resolved for deciding."""

    commit: str
    project: ProjectSpec
    clusters: Mapping[str, ClusterSpec]  # with the nodes found by pool selectors
    slices: Mapping[str, SliceSpec]
    filed: Mapping[str, Filed]
    approvals: Mapping[str, tuple[Approval, ...]]  # by slice/gpr
    pools: Mapping[PoolKey, Pool]  # as in the manifests, before health
    manifests: Mapping[str, ClusterSpec] = field(default_factory=dict)  # clusters as in their files
    found: Mapping[PoolKey, tuple[str, ...]] = field(default_factory=dict)
    """Nodes found by pool selectors, included in `clusters` and `pools`; see `reconciler.model.selected_nodes`."""
    workspaces: Mapping[str, Workspace] = field(default_factory=dict)  # by name
    decisions: Mapping[str, tuple[ApprovalDecision, ...]] = field(default_factory=dict)
    """Decisions on requests by identified authors, by slice/gpr; see `reconciler.approvals.who_approved`."""
    ignored_decisions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Sentences on approvals that do not count, by slice/gpr."""
    trust: TrustRecord | None = None  # how far main was judged; None: nothing is verified
    project_name: str = "default"  # as used in approval statements
    templates: Mapping[str, Wish] = field(default_factory=dict)  # by name
    bindings: Mapping[str, GPRTemplateBindingSpec] = field(default_factory=dict)  # by slice
    keys: Mapping[str, ApiKeySpec] = field(default_factory=dict)  # by name; only as on main now
    profiles: Mapping[str, ProfileSpec] = field(default_factory=dict)  # by name; only as on main now
    workloads: Mapping[str, WorkloadSpec] = field(default_factory=dict)  # by slice/name
    endpoints: Mapping[str, EndpointSpec] = field(default_factory=dict)  # by slice/name
    worked_out: dict[str, object] = field(default_factory=dict, compare=False, repr=False)
    """A cache for `reconciler.planning.snapshot`: by request, its result and the inputs."""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Clusters' answers to earlier actions of this process; lost in a crash and then queried again."""

    checks: Mapping[tuple[str, str, Topic], Busy | tuple[CheckResult, ...]] = field(default_factory=dict)
    """By lease uid, node and stage; resets and reboots by their own uid, their result under the stage `remedy`."""
    handed_over: frozenset[LeaseKey] = frozenset()
    """Leases whose nodes were all assigned to them at some time, but whose start could not be committed yet."""
    resting: frozenset[tuple[str, str]] = frozenset()
    """(cluster, slice) whose repair is paused because it is undone repeatedly; see `reconciler.acting.drift`."""
    taken_back: Mapping[str, datetime] = field(default_factory=dict)
    """When nodes of leases, by uid, were released during a long cycle; see `reconciler.acting.due_actions`."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The present state of clusters and agents; a cluster missing in `views` is unreachable."""

    views: Mapping[str, ClusterView]
    reports: Mapping[NodeKey, AgentReport] = field(default_factory=dict)
    outcomes: Outcomes = field(default_factory=Outcomes)
    filed: Mapping[str, datetime] = field(default_factory=dict)
    """When this process first saw a file that no commit covers yet: a delayed push costs no request its position."""
    differences: Mapping[str, tuple[Difference, ...]] = field(default_factory=dict)
    """How slices differ from their terms, for every managed cluster that answered."""
    silences: Mapping[str, str] = field(default_factory=dict)
    """Why a cluster could not be read, as a sentence."""
    observed: Mapping[str, Mapping[str, Observation]] = field(default_factory=dict)
    """How versions of endpoints did in the last interval, by endpoint and version; only while weights change."""

    def lease_of(self, cluster: str, node: str) -> LeaseRef | None:
        """The lease of that node, as far as the cluster shows."""
        view = self.views.get(cluster)
        found = view.nodes.get(node) if view is not None else None
        return found.lease if found is not None else None


@dataclass(frozen=True, slots=True)
class Context:
    """Everything that a decision on one request may use."""

    now: datetime
    settings: Settings
    wanted: Wanted
    seen: Seen
    nodes: Mapping[NodeKey, NodeRecord]
    clusters: Mapping[str, Reachability] = field(default_factory=dict)
    faults: Mapping[NodeKey, tuple[datetime, ...]] = field(default_factory=dict)
    """See `reconciler.health.node_faults`."""

    def is_out(self, cluster: str, node: str) -> bool:
        """True if that node serves no new request; see `reconciler.health.node_health`."""
        record = self.nodes.get((cluster, node))
        return record is not None and record.state not in IN_SERVICE

    def traits(self, cluster: str) -> dict[str, Traits]:
        """What distinguishes the nodes of a cluster: their topology, and how often they failed."""
        view = self.seen.views.get(cluster)
        nodes = {} if view is None else view.nodes
        found = {name: Traits(node.domains) for name, node in nodes.items() if node.domains}
        for (where, name), times in self.faults.items():
            if where == cluster:
                found[name] = Traits(found[name].domains if name in found else (), len(times))
        return found

    def is_gone(self, cluster: str, node: str) -> bool:
        """True if the cluster answers and no longer has that node."""
        view = self.seen.views.get(cluster)
        return view is not None and node not in view.nodes


IN_SERVICE = frozenset({"Ready", "Suspect"})


@dataclass(frozen=True, slots=True)
class RequestOutcome:
    """The result for one request: its status (None: removed), its events, and why others may move."""

    status: GPRStatus | None
    events: tuple[Event, ...] = ()
    cause: tuple[Cause, str] | None = None
