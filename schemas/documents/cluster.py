"""Cluster: how it is accessed, whether it is managed, and its GPU nodes."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from schemas.documents.base import Document, Model, PublicKey
from schemas.documents.elastic import Burst, Elastic
from schemas.documents.maintenance import Maintenance
from schemas.reading.units import Duration, Instant, Lasting, LongName, Name

MAX_NODES = 100_000
"""Most nodes of one cluster."""

Shape = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$",
        description="Name of a GPU product.",
        examples=["H100-80GB"],
    ),
]
Price = Annotated[float, Field(ge=0, le=100_000, description="Per GPU and hour, in the project's currency.")]


LabelValue = Annotated[
    str,
    Field(
        pattern=r"^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$",
        description="A label's value: letters, digits, '.', '_' and '-', at most 63.",
        examples=["NVIDIA-H100-80GB-HBM3"],
    ),
]


LabelKey = Annotated[
    str,
    Field(
        pattern=r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$",
        max_length=317,
        description="A label's key: a name of at most 63 characters, mostly after a domain and '/'.",
        examples=["topology.kubernetes.io/zone"],
    ),
]


class Pool(Model):
    """Equal nodes: same GPUs, same network. They are counted, named, or found by their labels."""

    name: Name
    gpu_shape: Annotated[Shape, Field(description="GPU product of these nodes.")]
    gpus_per_node: Annotated[int, Field(ge=1, le=64, description="GPUs of one node.")]
    memory_per_gpu: Annotated[int, Field(ge=1, le=4096, description="Nominal memory of one GPU, GB.")]
    nodes: Annotated[
        Annotated[int, Field(ge=0, le=100_000)]
        | Annotated[tuple[LongName, ...], Field(max_length=100_000)]
        | None,
        Field(description="Their number (they are then named <pool>-1, <pool>-2, …), or their names."),
    ] = None
    selector: Annotated[
        dict[str, LabelValue] | None,
        Field(
            min_length=1,
            max_length=16,
            description="Instead of `nodes`: every node with all of these labels. Only with driver kubernetes.",
            examples=[{"egs.dev/pool": "h100"}],
        ),
    ] = None
    instance_type: Annotated[
        str | None, Field(max_length=63, description="The provider's machine type, when requests name one.")
    ] = None
    elastic: Annotated[
        Elastic | None, Field(description="It grows and shrinks; absent: it has fixed nodes.")
    ] = None
    rdma: Annotated[bool, Field(description="These nodes share an RDMA network.")] = False
    secondary_network: Annotated[bool, Field(description="These nodes have a second pod network.")] = False
    price_per_gpu_hour: Annotated[Price | None, Field(description="Overrides the cluster's price.")] = None
    max_isolated: Annotated[
        int | None,
        Field(
            ge=0,
            le=100_000,
            description="Unhealthy nodes that may be taken out at once; absent: 10 % of the pool, at least one.",
        ),
    ] = None

    @property
    def size(self) -> int:
        """Number of its nodes; 0 for a selector until they are found."""
        return self.nodes if isinstance(self.nodes, int) else len(self.nodes or ())

    @property
    def most(self) -> int:
        """Number of its nodes; for an elastic pool the most that it can have."""
        return self.size if self.elastic is None else max(self.size, self.elastic.max)

    def could_have(self, nodes: int) -> bool:
        """Whether it may ever have that many nodes; what a selector finds is unknown."""
        if self.elastic is None and self.selector is not None:
            return True
        return self.most >= nodes

    @property
    def discovered(self) -> bool:
        """Whether the cluster reports its nodes: by labels, or as many as exist now."""
        return self.selector is not None or self.elastic is not None

    def node_names(self) -> tuple[str, ...]:
        """Names of all nodes, in the pool's order."""
        if isinstance(self.nodes, int):
            return tuple(f"{self.name}-{i}" for i in range(1, self.nodes + 1))
        return self.nodes or ()

    @property
    def isolation_limit(self) -> int:
        """Nodes of this pool that may be isolated at once without an admin's decision."""
        if self.max_isolated is not None:
            return self.max_isolated
        return max(1, self.size // 10)


class Health(Model):
    """Thresholds for judging GPUs of this cluster."""

    max_temperature: Annotated[
        int, Field(ge=40, le=120, description="°C at which a GPU is too hot (87: the vendor's alarm).")
    ] = 87
    clear_temperature: Annotated[
        int, Field(ge=30, le=119, description="°C at or below which a hot GPU has recovered.")
    ] = 80
    readings_to_fail: Annotated[
        int, Field(ge=1, le=100, description="Bad readings in a row before a soft fault counts.")
    ] = 3
    readings_to_clear: Annotated[
        int, Field(ge=1, le=1000, description="Good readings in a row before a soft fault is over.")
    ] = 6
    faults_to_quarantine: Annotated[
        int,
        Field(
            ge=2, le=100, description="Faults of one node within a day after which only an admin clears it."
        ),
    ] = 3


class Cleared(Model):
    """An admin's statement that a quarantined node is repaired."""

    node: Annotated[LongName, Field(description="Node of this cluster.")]
    at: Annotated[Instant, Field(description="Faults and failed checks before this instant no longer count.")]


class Access(Model):
    """Access to a cluster's API server: exactly one of the four ways."""

    in_cluster: Annotated[bool, Field(description="The cluster the controller itself runs in.")] = False
    kubeconfig: Annotated[
        str | None,
        Field(
            pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$",
            description="Name of a file in the controller's folder of kubeconfigs; never a path.",
            examples=["east"],
        ),
    ] = None
    context: Annotated[
        str | None,
        Field(
            min_length=1, max_length=253, description="Context of that kubeconfig; absent: its current one."
        ),
    ] = None
    secret: Annotated[
        LongName | None,
        Field(
            description="Secret in the controller's own namespace, with a kubeconfig under the key kubeconfig."
        ),
    ] = None
    pull: Annotated[
        bool,
        Field(
            description="An `egs-reconciler apply` inside the cluster does the work; no other process has access."
        ),
    ] = False

    @property
    def ways(self) -> tuple[str, ...]:
        """The ways that are given, as the manifest spells them."""
        named = {
            "inCluster": self.in_cluster,
            "kubeconfig": self.kubeconfig is not None,
            "secret": self.secret is not None,
            "pull": self.pull,
        }
        return tuple(way for way, is_named in named.items() if is_named)


class ProductShape(Model):
    """The shape of a device product, as labelled by GPU feature discovery."""

    product: Annotated[
        LabelValue, Field(description="Value of the label nvidia.com/gpu.product, without -SHARED.")
    ]
    gpu_shape: Annotated[Shape, Field(description="Its shape.")]
    memory_per_gpu: Annotated[int, Field(ge=1, le=4096, description="Nominal memory of one GPU, GB.")]


class Thresholds(Model):
    """Required results of the checks of one shape; absent: measured and shown, but never a failure."""

    gpu_shape: Annotated[Shape, Field(description="The shape that they apply to.")]
    max_nccl_latency: Annotated[
        float | None, Field(gt=0, le=1_000_000, description="Longest NCCL all-reduce of 8 bytes, µs.")
    ] = None
    min_nccl_bandwidth: Annotated[
        float | None, Field(gt=0, le=1_000_000, description="Least NCCL bus bandwidth, GB/s.")
    ] = None
    min_rdma_bandwidth: Annotated[
        float | None, Field(gt=0, le=1_000_000, description="Least RDMA bandwidth, Gb/s.")
    ] = None


class Checks(Model):
    """Checks of nodes before a start, after an end, and between the nodes of a running request."""

    image: Annotated[
        str | None,
        Field(
            pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,499}$",
            description="Container image of the checks; absent: only checks that need no image.",
            examples=["ghcr.io/example/egs-checks:1"],
        ),
    ] = None
    thresholds: Annotated[
        tuple[Thresholds, ...], Field(max_length=100, description="Required results, by shape.")
    ] = ()
    storage_class: Annotated[
        LongName | None,
        Field(description="Storage class of the tested volume; absent: the cluster's default."),
    ] = None
    timeout: Annotated[Lasting, Field(description="A check that takes longer has failed.")] = timedelta(
        minutes=5
    )
    latency_interval: Annotated[
        Lasting | None,
        Field(
            description="How often the latency between a running request's nodes is measured; absent: never."
        ),
    ] = None
    max_latency: Annotated[
        float | None,
        Field(
            gt=0, le=1_000_000, description="Latency between two nodes above which people are notified, µs."
        ),
    ] = None
    tolerate: Annotated[
        tuple[
            Annotated[str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._/-]{0,315}[A-Za-z0-9])?$")],
            ...,
        ],
        Field(max_length=50, description="Keys of foreign taints that the checks' pods tolerate."),
    ] = ()


class Exit(Model):
    """How nodes are taken back at the strict end."""

    force: Annotated[
        bool,
        Field(description="GPU pods that have not stopped by the strict end are deleted without grace."),
    ] = True
    settle: Annotated[
        Duration,
        Field(
            description="Time until a node counts as clean if its pods were deleted without confirmation from the "
            "kubelet."
        ),
    ] = timedelta(minutes=1)
    quarantine_after: Annotated[
        Lasting,
        Field(description="Time until a node is quarantined if GPU pods stay on it after the end."),
    ] = timedelta(hours=1)


class ClientRate(Model):
    """Rate limit of the controller's calls to an API server."""

    qps: Annotated[int, Field(ge=1, le=10_000, description="Sustained requests per second.")] = 50
    burst: Annotated[int, Field(ge=1, le=10_000, description="Requests at once.")] = 100


NamespacePattern = Annotated[
    str,
    Field(
        pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$|^[a-z0-9][-a-z0-9]{0,61}\*$",
        description="A namespace, or a prefix followed by `*`.",
        examples=["monitoring"],
    ),
]


class Outsiders(Model):
    """Pods outside of slices that may run on managed nodes."""

    namespaces: Annotated[
        tuple[NamespacePattern, ...],
        Field(
            max_length=200,
            description="Namespaces whose pods are allowed; `kube-system` and the controller's own always are.",
        ),
    ] = (
        "kube-*",
        "openshift-*",
        "gpu-operator",
        "network-operator",
        "nvidia-*",
        "calico-*",
        "tigera-operator",
        "cilium*",
    )
    daemon_sets: Annotated[
        bool, Field(description="Pods that the cluster's own controller makes for DaemonSets are allowed.")
    ] = True


class Admission(Model):
    """How GPU pods of a slice get its nodes and no others."""

    mode: Annotated[
        Literal["auto", "policy", "webhook", "none"],
        Field(
            description="policy: the API server's own admission policies; webhook: ours; auto: policy if the API "
            "server supports it, else webhook; none: pods carry selector and toleration themselves."
        ),
    ] = "auto"
    failure_policy: Annotated[
        Literal["Fail", "Ignore"],
        Field(description="What happens to a GPU pod of a slice while admission is unavailable."),
    ] = "Fail"
    outsiders: Annotated[
        Outsiders, Field(description="Other pods that may run on managed nodes; unless `mode` is none.")
    ] = Outsiders()


class AgentKey(Model):
    """The key of one agent, or one for all agents of the cluster."""

    agent: Annotated[
        LongName | Literal["*"], Field(description='Name of the agent, mostly its node\'s; "*": every agent.')
    ]
    key: Annotated[PublicKey, Field(description="A line of `ssh-keygen`'s .pub file.")]


class ClusterSpec(Model):
    """One Kubernetes cluster, or a simulated one."""

    driver: Annotated[
        Literal["embedded", "kubernetes"], Field(description="How it is driven; embedded: simulated.")
    ]
    access: Annotated[
        Access | None,
        Field(description="How it is accessed, with driver kubernetes; absent: the cluster we run in."),
    ] = None
    mode: Annotated[
        Literal["observe", "manage"],
        Field(description="observe: everything is planned and shown, nothing is changed."),
    ] = "observe"
    prepare: Annotated[Duration, Field(description="Time for checks before a start.")] = timedelta(minutes=2)
    drain: Annotated[Duration, Field(description="Time to clean nodes after an end.")] = timedelta(minutes=5)
    notice: Annotated[
        Duration, Field(description="Time before the strict end at which GPU workloads are asked to stop.")
    ] = timedelta(minutes=1)
    price_per_gpu_hour: Annotated[Price, Field(description="Price in pools without one of their own.")] = 0.0
    pools: Annotated[tuple[Pool, ...], Field(min_length=1, max_length=200, description="Its GPU nodes.")]
    maintenance: Annotated[
        tuple[Maintenance, ...],
        Field(max_length=500, description="Times in which some nodes are unavailable."),
    ] = ()
    health: Annotated[Health, Field(description="When a GPU counts as bad.")] = Health()
    topology: Annotated[
        tuple[LabelKey, ...],
        Field(
            max_length=8,
            description="Node labels that name a node's location, the largest domain first: a request is placed "
            "in as few domains as possible.",
            examples=[["topology.example.com/block", "topology.example.com/rack"]],
        ),
    ] = ()
    burst: Annotated[
        Burst | None,
        Field(description="Use it only when the wait elsewhere is too long; absent: always use it."),
    ] = None

    shapes: Annotated[
        tuple[ProductShape, ...],
        Field(max_length=200, description="The shapes of device products; absent: the pool's shape applies."),
    ] = ()
    checks: Annotated[Checks, Field(description="How nodes are checked.")] = Checks()
    exit: Annotated[Exit, Field(description="How nodes are taken back.")] = Exit()
    admission: Annotated[Admission, Field(description="How pods get their slice's nodes.")] = Admission()
    client_rate: Annotated[ClientRate, Field(description="Rate limit of calls to its API server.")] = (
        ClientRate()
    )
    stale: Annotated[
        Lasting, Field(description="A cluster that was silent for longer counts as unreachable.")
    ] = timedelta(minutes=2)
    paused: Annotated[
        bool,
        Field(description="Foreign changes in the cluster are shown but not repaired; requests go on."),
    ] = False

    @model_validator(mode="after")
    def _is_not_endless(self) -> Self:
        # A large number is a few characters in a file, but every node gets a name.
        if sum(pool.most for pool in self.pools) > MAX_NODES:
            raise ValueError(f"the pools together have more than {MAX_NODES} nodes")
        return self

    agent_keys: Annotated[
        tuple[AgentKey, ...],
        Field(max_length=1000, description="Keys by which its agents sign their reports."),
    ] = ()
    applier_keys: Annotated[
        tuple[PublicKey, ...],
        Field(max_length=20, description="Keys by which its applier signs its reports; with access.pull."),
    ] = ()
    cleared: Annotated[
        tuple[Cleared, ...], Field(max_length=1000, description="Nodes that people have repaired.")
    ] = ()


class Cluster(Document):
    """`clusters/<cluster>.yaml`."""

    kind: Annotated[Literal["Cluster"], Field(description="Kind of document.")] = "Cluster"
    spec: Annotated[ClusterSpec, Field(description="How it is driven, and its GPU nodes.")]
