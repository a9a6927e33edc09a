"""Cluster: how it is accessed, whether it is managed, and its GPU nodes."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from schemas.documents.base import Document, Model, PublicKey
from schemas.documents.elastic import Burst
from schemas.documents.endpoint import Gateway
from schemas.documents.maintenance import Maintenance
from schemas.documents.metrics import Metrics
from schemas.documents.pool import LabelKey, LabelValue, Pool, Price
from schemas.documents.remediation import Remediation
from schemas.documents.thresholds import Alerts
from schemas.reading.units import Duration, Instant, Lasting, LongName, Network, Shape

MAX_NODES = 100_000
"""Most nodes of one cluster."""


class HeatLimit(Model):
    """Limits of one shape, for products that do not name their own."""

    gpu_shape: Shape = Field(description="The shape that they apply to.")
    max_temperature: int | None = Field(None, ge=40, le=120, description="°C at which a GPU is too hot.")
    clear_temperature: int | None = Field(
        None, ge=30, le=119, description="°C at or below which a hot GPU has recovered."
    )
    max_memory_temperature: int | None = Field(
        None, ge=40, le=130, description="°C above which its memory is too hot."
    )


class Health(Model):
    """Thresholds for judging GPUs of this cluster; a limit that a product names itself goes first."""

    max_temperature: int = Field(
        87, ge=40, le=120, description="°C at which a GPU is too hot (87: the vendor's alarm)."
    )
    clear_temperature: int = Field(
        80, ge=30, le=119, description="°C at or below which a hot GPU has recovered."
    )
    max_memory_temperature: int | None = Field(
        None, ge=40, le=130, description="°C above which memory is too hot; absent: only the product's limit."
    )
    limits: tuple[HeatLimit, ...] = Field((), max_length=100, description="Limits of single shapes.")
    readings_to_fail: int = Field(
        3, ge=1, le=100, description="Bad readings in a row before a soft fault counts."
    )
    readings_to_clear: int = Field(
        6, ge=1, le=1000, description="Good readings in a row before a soft fault is over."
    )
    faults_to_quarantine: int = Field(
        3, ge=2, le=100, description="Faults of one node within a day after which only an admin clears it."
    )

    def of_shape(self, shape: str) -> Health:
        """The thresholds with the limits of that shape put in."""
        limit = next((limit for limit in self.limits if limit.gpu_shape == shape), None)
        if limit is None:
            return self
        return self.edited(
            max_temperature=limit.max_temperature or self.max_temperature,
            clear_temperature=limit.clear_temperature or self.clear_temperature,
            max_memory_temperature=limit.max_memory_temperature or self.max_memory_temperature,
        )


class Cleared(Model):
    """An admin's statement that a quarantined node is repaired."""

    node: LongName = Field(description="Node of this cluster.")
    at: Instant = Field(description="Faults and failed checks before this instant no longer count.")


class Access(Model):
    """Access to a cluster's API server: exactly one of the four ways."""

    in_cluster: bool = Field(False, description="The cluster the controller itself runs in.")
    kubeconfig: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$",
        description="Name of a file in the controller's folder of kubeconfigs; never a path.",
        examples=["east"],
    )
    context: str | None = Field(
        None, min_length=1, max_length=253, description="Context of that kubeconfig; absent: its current one."
    )
    secret: LongName | None = Field(
        None,
        description="Secret in the controller's own namespace, with a kubeconfig under the key kubeconfig.",
    )
    pull: bool = Field(
        False,
        description="An `egs-reconciler apply` inside the cluster does the work; no other process has access.",
    )

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

    product: LabelValue = Field(description="Value of the label nvidia.com/gpu.product, without -SHARED.")
    gpu_shape: Shape = Field(description="Its shape.")
    memory_per_gpu: int = Field(ge=1, le=4096, description="Nominal memory of one GPU, GB.")


class Thresholds(Model):
    """Required results of the checks of one shape; absent: measured and shown, but never a failure."""

    gpu_shape: Shape = Field(description="The shape that they apply to.")
    max_nccl_latency: float | None = Field(
        None, gt=0, le=1_000_000, description="Longest NCCL all-reduce of 8 bytes, µs."
    )
    min_nccl_bandwidth: float | None = Field(
        None, gt=0, le=1_000_000, description="Least NCCL bus bandwidth, GB/s."
    )
    min_rdma_bandwidth: float | None = Field(
        None, gt=0, le=1_000_000, description="Least RDMA bandwidth, Gb/s."
    )


class Checks(Model):
    """Checks of nodes before a start, after an end, and between the nodes of a running request."""

    image: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,499}$",
        description="Container image of the checks; absent: only checks that need no image.",
        examples=["ghcr.io/example/egs-checks:1"],
    )
    thresholds: tuple[Thresholds, ...] = Field((), max_length=100, description="Required results, by shape.")
    storage_class: LongName | None = Field(
        None, description="Storage class of the tested volume; absent: the cluster's default."
    )
    timeout: Lasting = Field(timedelta(minutes=5), description="A check that takes longer has failed.")
    latency_interval: Lasting | None = Field(
        None,
        description="How often the latency between a running request's nodes is measured; absent: never.",
    )
    max_latency: float | None = Field(
        None, gt=0, le=1_000_000, description="Latency between two nodes above which people are notified, µs."
    )
    tolerate: tuple[
        Annotated[str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._/-]{0,315}[A-Za-z0-9])?$")], ...
    ] = Field((), max_length=50, description="Keys of foreign taints that the checks' pods tolerate.")


class Exit(Model):
    """How nodes are taken back at the strict end."""

    force: bool = Field(
        True, description="GPU pods that have not stopped by the strict end are deleted without grace."
    )
    settle: Duration = Field(
        timedelta(minutes=1),
        description="Time until a node counts as clean if its pods were deleted without confirmation from the "
        "kubelet.",
    )
    quarantine_after: Lasting = Field(
        timedelta(hours=1),
        description="Time until a node is quarantined if GPU pods stay on it after the end.",
    )


class ClientRate(Model):
    """Rate limit of the controller's calls to an API server."""

    qps: int = Field(50, ge=1, le=10_000, description="Sustained requests per second.")
    burst: int = Field(100, ge=1, le=10_000, description="Requests at once.")


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

    namespaces: tuple[NamespacePattern, ...] = Field(
        (
            "kube-*",
            "openshift-*",
            "gpu-operator",
            "network-operator",
            "nvidia-*",
            "calico-*",
            "tigera-operator",
            "cilium*",
        ),
        max_length=200,
        description="Namespaces whose pods are allowed; `kube-system` and the controller's own always are.",
    )
    daemon_sets: bool = Field(
        True, description="Pods that the cluster's own controller makes for DaemonSets are allowed."
    )


class Admission(Model):
    """How GPU pods of a slice get its nodes and no others."""

    mode: Literal["auto", "policy", "webhook", "none"] = Field(
        "auto",
        description="policy: the API server's own admission policies; webhook: ours; auto: policy if the API "
        "server supports it, else webhook; none: pods carry selector and toleration themselves.",
    )
    failure_policy: Literal["Fail", "Ignore"] = Field(
        "Fail", description="What happens to a GPU pod of a slice while admission is unavailable."
    )
    outsiders: Outsiders = Field(
        Outsiders(), description="Other pods that may run on managed nodes; unless `mode` is none."
    )


class Mesh(Model):
    """How other clusters know this one, for Services across clusters."""

    name: str | None = Field(
        None,
        pattern=r"^[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?$",
        description="Its name in Cilium's cluster mesh (`cluster.name`); absent: the name of this document.",
    )
    addresses: tuple[Network, ...] = Field(
        (),
        max_length=20,
        description="Where its pods' traffic comes from and goes to in other clusters, for those without Cilium.",
        examples=[["10.8.0.0/14"]],
    )


class AgentKey(Model):
    """The key of one agent, or one for all agents of the cluster."""

    agent: LongName | Literal["*"] = Field(
        description='Name of the agent, mostly its node\'s; "*": every agent.'
    )
    key: PublicKey = Field(description="A line of `ssh-keygen`'s .pub file.")


class ClusterSpec(Model):
    """One Kubernetes cluster, or a simulated one."""

    driver: Literal["embedded", "kubernetes"] = Field(description="How it is driven; embedded: simulated.")
    access: Access | None = Field(
        None, description="How it is accessed, with driver kubernetes; absent: the cluster we run in."
    )
    mode: Literal["observe", "manage"] = Field(
        "observe", description="observe: everything is planned and shown, nothing is changed."
    )
    prepare: Duration = Field(timedelta(minutes=2), description="Time for checks before a start.")
    drain: Duration = Field(timedelta(minutes=5), description="Time to clean nodes after an end.")
    notice: Duration = Field(
        timedelta(minutes=1),
        description="Time before the strict end at which GPU workloads are asked to stop.",
    )
    warning: Lasting | None = Field(
        None,
        description="Time before the notice at which workloads and people are warned; nothing is evicted yet. "
        "Absent: no warning.",
    )
    price_per_gpu_hour: Price = Field(0.0, description="Price in pools without one of their own.")
    pools: tuple[Pool, ...] = Field(min_length=1, max_length=200, description="Its GPU nodes.")
    maintenance: tuple[Maintenance, ...] = Field(
        (), max_length=500, description="Times in which some nodes are unavailable."
    )
    health: Health = Field(Health(), description="When a GPU counts as bad.")
    alerts: Alerts = Field(Alerts(), description="When a GPU deserves attention; it stays in service.")
    remediation: Remediation = Field(
        Remediation(),
        description="What is done about bad GPUs; absent: people are told, and nothing is done.",
    )
    topology: tuple[LabelKey, ...] = Field(
        (),
        max_length=8,
        description="Node labels that name a node's location, the largest domain first: a request is placed "
        "in as few domains as possible.",
        examples=[["topology.example.com/block", "topology.example.com/rack"]],
    )
    burst: Burst | None = Field(
        None, description="Use it only when the wait elsewhere is too long; absent: always use it."
    )

    shapes: tuple[ProductShape, ...] = Field(
        (), max_length=200, description="The shapes of device products; absent: the pool's shape applies."
    )
    checks: Checks = Field(Checks(), description="How nodes are checked.")
    exit: Exit = Field(Exit(), description="How nodes are taken back.")
    admission: Admission = Field(Admission(), description="How pods get their slice's nodes.")
    client_rate: ClientRate = Field(ClientRate(), description="Rate limit of calls to its API server.")
    stale: Lasting = Field(
        timedelta(minutes=2), description="A cluster that was silent for longer counts as unreachable."
    )
    paused: bool = Field(
        False, description="Foreign changes in the cluster are shown but not repaired; requests go on."
    )

    @model_validator(mode="after")
    def _is_not_endless(self) -> Self:
        # A large number is a few characters in a file, but every node gets a name.
        if sum(pool.most for pool in self.pools) > MAX_NODES:
            raise ValueError(f"the pools together have more than {MAX_NODES} nodes")
        return self

    agent_keys: tuple[AgentKey, ...] = Field(
        (), max_length=1000, description="Keys by which its agents sign their reports."
    )
    applier_keys: tuple[PublicKey, ...] = Field(
        (), max_length=20, description="Keys by which its applier signs its reports; with access.pull."
    )
    metrics: Metrics | None = Field(
        None, description="Where telemetry of its GPUs comes from; absent: its agents, if they show it."
    )
    gateway: Gateway | None = Field(
        None,
        description="Gateway (Gateway API) for routes of endpoints; absent: nothing from outside reaches them.",
    )
    mesh: Mesh = Field(Mesh(), description="How other clusters of its slices know it.")
    portal: str | None = Field(
        None,
        pattern=r"^https?://[A-Za-z0-9][A-Za-z0-9.:_-]{0,252}(/[A-Za-z0-9._~/-]{0,200})?$",
        description="Address of this project's portal as seen from the cluster, which KEDA asks how many replicas an "
        "endpoint needs; absent: KEDA scales none.",
        examples=["https://egs.example.com"],
    )
    cleared: tuple[Cleared, ...] = Field((), max_length=1000, description="Nodes that people have repaired.")


class Cluster(Document):
    """`clusters/<cluster>.yaml`."""

    kind: Literal["Cluster"] = Field("Cluster", description="Kind of document.")
    spec: ClusterSpec = Field(description="How it is driven, and its GPU nodes.")


def is_same_but_for_maintenance(one: ClusterSpec, other: ClusterSpec) -> bool:
    """Whether nothing but windows of maintenance differs: rules of other documents and judgements read no window."""
    return all(getattr(one, name) == getattr(other, name) for name in _BUT_MAINTENANCE)


_BUT_MAINTENANCE = tuple(name for name in ClusterSpec.model_fields if name != "maintenance")
