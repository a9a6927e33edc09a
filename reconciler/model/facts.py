"""What is known at one instant, as values: the committed status, what main says, what clusters and agents say.

`Facts` is exactly what the status branch holds; everything else here is read anew in every cycle.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from reconciler.model.cluster_port import Busy, CheckResult, ClusterView, Difference, LeaseRef, Stage
from reconciler.model.events import Event
from reconciler.model.evidence import ApprovalDecision
from reconciler.settings import Settings
from scheduler.choices.topology import Traits
from scheduler.snapshot import Pool, PoolKey
from schemas.documents.apikey import ApiKeySpec
from schemas.documents.approval import Approval
from schemas.documents.binding import GPRTemplateBindingSpec
from schemas.documents.cluster import ClusterSpec
from schemas.documents.gpr import RequestSpec, Wish
from schemas.documents.notifications import ProfileSpec
from schemas.documents.project import ProjectSpec
from schemas.documents.slice import SliceSpec
from schemas.documents.workspace import WorkspaceRequestSpec
from schemas.status.gpr_status import AgentReport, Cause, GPRStatus, NodeRecord, Provenance, WorkspaceRecord
from schemas.status.insights import EndedRecord, Insights
from schemas.status.inventory import PoolScale, UnmanagedNode
from schemas.status.judgements import HeldChange, SpentApproval, TrustRecord
from schemas.status.outbox import OutboxRecord
from schemas.status.usage import UsageRecord

NodeKey = tuple[str, str]
"""(cluster, node)."""
LeaseKey = tuple[str, datetime]
"""(uid, start): a request that is queued again gets another start."""


@dataclass(frozen=True, slots=True)
class Reachability:
    """Whether a cluster answered, and since when that is so."""

    reachable: bool
    since: datetime


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything the controller has committed."""

    at: datetime
    intent: str = ""  # the commit of main these facts answer
    requests: Mapping[str, GPRStatus] = field(default_factory=dict)
    nodes: Mapping[NodeKey, NodeRecord] = field(default_factory=dict)
    clusters: Mapping[str, Reachability] = field(default_factory=dict)
    usage: Mapping[str, UsageRecord] = field(default_factory=dict)
    held_deletions: str = ""  # names the deletions that wait for an admin; empty: none do
    found: Mapping[PoolKey, tuple[str, ...]] = field(default_factory=dict)  # nodes of pools with a selector
    unmanaged: Mapping[str, tuple[UnmanagedNode, ...]] = field(default_factory=dict)  # by cluster
    trust: TrustRecord | None = None  # how far main was judged; None: nothing is verified
    used_approvals: Mapping[str, tuple[SpentApproval, ...]] = field(default_factory=dict)  # by slice
    workspaces: Mapping[str, WorkspaceRecord] = field(default_factory=dict)  # by name
    scales: Mapping[PoolKey, PoolScale] = field(default_factory=dict)  # of elastic pools
    faults: Mapping[NodeKey, tuple[datetime, ...]] = field(default_factory=dict)  # when nodes failed lately
    insights: Insights | None = None  # what requests that are over have shown; None: none is over
    ended: Mapping[str, EndedRecord] = field(default_factory=dict)  # such requests one by one, by day
    outbox: Mapping[str, OutboxRecord] = field(default_factory=dict)  # what routes have not carried, by name
    unread: frozenset[str] = frozenset()  # clusters, see `reconciler.status.recognised_leases`


@dataclass(frozen=True, slots=True)
class Filed:
    """What main says about one request: its resolved spec, or why its file is refused."""

    spec: RequestSpec | None
    problem: str = ""
    provenance: Provenance | None = None
    """Of the file as it is; None: nothing is verified, or it is as before."""
    held: HeldChange | None = None
    """The change that main has of the file and that does not count; None: there is none."""
    ends: bool = False
    """Of a file that is refused and can be read: whether it says earlyRelease. Nothing else in it counts."""
    nonce: str = ""
    """What its id is made of beside its name, where its author wanted to know the id at once; empty: nothing."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """What main says about one request for a slice."""

    spec: WorkspaceRequestSpec | None  # as it is in force; None: it never was
    problem: str = ""  # why the file as it reads now does not count
    has_own_file: bool = False  # the slice has a slice.yaml, which counts instead


@dataclass(frozen=True, slots=True)
class Wanted:
    """The documents in force, resolved for deciding."""

    commit: str
    project: ProjectSpec
    clusters: Mapping[str, ClusterSpec]  # with the nodes that were found in pools with a selector
    slices: Mapping[str, SliceSpec]
    filed: Mapping[str, Filed]
    approvals: Mapping[str, tuple[Approval, ...]]  # by slice/gpr
    pools: Mapping[PoolKey, Pool]  # as the manifests say, before health
    manifests: Mapping[str, ClusterSpec] = field(default_factory=dict)  # clusters as their files say
    found: Mapping[PoolKey, tuple[str, ...]] = field(default_factory=dict)
    """Nodes of pools with a selector that `clusters` and `pools` have; see `reconciler.model.selected_nodes`."""
    workspaces: Mapping[str, Workspace] = field(default_factory=dict)  # by name
    decisions: Mapping[str, tuple[ApprovalDecision, ...]] = field(default_factory=dict)
    """Decisions about requests whose author was shown, by slice/gpr; see `reconciler.approvals.who_approved`."""
    ignored_decisions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Sentences on what looks like such a decision and does not count, by slice/gpr."""
    trust: TrustRecord | None = None  # how far main was judged; None: nothing is verified
    project_name: str = "default"  # as statements of approval name it
    templates: Mapping[str, Wish] = field(default_factory=dict)  # by name
    bindings: Mapping[str, GPRTemplateBindingSpec] = field(default_factory=dict)  # by slice
    keys: Mapping[str, ApiKeySpec] = field(default_factory=dict)  # by name; only as main has them now
    profiles: Mapping[str, ProfileSpec] = field(default_factory=dict)  # by name; only as main has them now
    worked_out: dict[str, object] = field(default_factory=dict, compare=False, repr=False)
    """A memory for `reconciler.planning.snapshot`: by request, what it made of it, and what that was made from."""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What clusters answered to earlier actions of this process; lost in a crash and simply asked again."""

    checks: Mapping[tuple[str, str, Stage], Busy | tuple[CheckResult, ...]] = field(default_factory=dict)
    """By lease uid, node and stage."""
    handed_over: frozenset[LeaseKey] = frozenset()
    """Leases whose nodes were all theirs at some look, and whose start could not be committed yet."""
    resting: frozenset[tuple[str, str]] = frozenset()
    """(cluster, slice) whose repair waits, because it is undone again and again; see `reconciler.acting.drift`."""
    taken_back: Mapping[str, datetime] = field(default_factory=dict)
    """When nodes of leases, by uid, were taken back while a cycle took long; see `reconciler.acting.due_actions`."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What clusters and agents say now; a cluster that is absent from `views` cannot be reached."""

    views: Mapping[str, ClusterView]
    reports: Mapping[NodeKey, AgentReport] = field(default_factory=dict)
    outcomes: Outcomes = field(default_factory=Outcomes)
    filed: Mapping[str, datetime] = field(default_factory=dict)
    """When this process first saw a file that no commit answers yet: a push that has to wait costs nobody a place."""
    differences: Mapping[str, tuple[Difference, ...]] = field(default_factory=dict)
    """What of the slices is not as it should be, for every managed cluster that could tell."""
    silences: Mapping[str, str] = field(default_factory=dict)
    """Why a cluster could not be looked at, in a sentence."""

    def lease_of(self, cluster: str, node: str) -> LeaseRef | None:
        """Who has that node, as far as the cluster can be seen."""
        view = self.views.get(cluster)
        found = view.nodes.get(node) if view is not None else None
        return found.lease if found is not None else None


@dataclass(frozen=True, slots=True)
class Context:
    """All that a decision about one request may look at."""

    now: datetime
    settings: Settings
    wanted: Wanted
    seen: Seen
    nodes: Mapping[NodeKey, NodeRecord]
    clusters: Mapping[str, Reachability] = field(default_factory=dict)
    faults: Mapping[NodeKey, tuple[datetime, ...]] = field(
        default_factory=dict
    )  # see `reconciler.health.node_faults`

    def is_out(self, cluster: str, node: str) -> bool:
        """True when that node serves nobody new; see `reconciler.health.node_health`."""
        record = self.nodes.get((cluster, node))
        return record is not None and record.state not in IN_SERVICE

    def traits(self, cluster: str) -> dict[str, Traits]:
        """What tells the nodes of a cluster apart: where they stand, as it shows them, and how often they failed."""
        view = self.seen.views.get(cluster)
        nodes = {} if view is None else view.nodes
        found = {name: Traits(node.domains) for name, node in nodes.items() if node.domains}
        for (where, name), times in self.faults.items():
            if where == cluster:
                found[name] = Traits(found[name].domains if name in found else (), len(times))
        return found

    def is_gone(self, cluster: str, node: str) -> bool:
        """True when the cluster answers and does not know that node any more."""
        view = self.seen.views.get(cluster)
        return view is not None and node not in view.nodes


IN_SERVICE = frozenset({"Ready", "Suspect"})


@dataclass(frozen=True, slots=True)
class RequestOutcome:
    """What became of one request: its status (None: forgotten), what to tell, and why others may move."""

    status: GPRStatus | None
    events: tuple[Event, ...] = ()
    cause: tuple[Cause, str] | None = None
