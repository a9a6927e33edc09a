"""The port through which everything else sees the pods of slices, and what made them.

Pure values and one protocol. A source that does not answer says so in `PodsSeen.silence` and raises nothing: the
rows of other clusters stand without it. Values of environment variables that come from Secrets or ConfigMaps are never
read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from schemas.documents.cluster import ClusterSpec

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class OwnerRef:
    """Who made an object."""

    group: str  # of its API; empty: the core
    kind: str
    name: str
    uid: str
    version: str = field(default="", compare=False)  # of its API


@dataclass(frozen=True, slots=True)
class OwnerObject:
    """An object above pods, as far as it was read."""

    ref: OwnerRef
    namespace: str
    owners: tuple[OwnerRef, ...] = ()  # the controller first
    annotations: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    spec: Json = field(default_factory=dict)  # only of kinds that name their model in it


@dataclass(frozen=True, slots=True)
class Container:
    """One container of a pod."""

    name: str
    image: str = ""
    command: tuple[str, ...] = ()  # command and args
    env: Mapping[str, str] = field(default_factory=dict)  # only values that stand in the pod itself
    gpus: int = 0
    restarts: int = 0
    waiting: str = ""  # the kubelet's reason, such as CrashLoopBackOff; empty: it does not wait
    waiting_message: str = ""
    ended: str = ""  # why it ended last, such as OOMKilled; empty: it never did
    exit_code: int | None = None  # of that end
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod in a namespace of a slice."""

    cluster: str
    namespace: str
    name: str
    uid: str = ""
    phase: str = "Running"
    node: str | None = None
    gpus: int = 0
    owners: tuple[OwnerRef, ...] = ()  # the controller first
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    containers: tuple[Container, ...] = ()
    created: datetime | None = None
    started: datetime | None = None
    unplaced: str = ""  # why no node takes it, as the scheduler says; empty: it has one, or nothing is said
    gates: tuple[str, ...] = ()  # what still holds it back from the scheduler
    ending: bool = False

    @property
    def key(self) -> str:
        """namespace/name."""
        return f"{self.namespace}/{self.name}"

    @property
    def is_over(self) -> bool:
        return self.phase in ("Succeeded", "Failed")

    @property
    def holds_gpus(self) -> bool:
        """Whether it has GPUs of its node now."""
        return self.gpus > 0 and self.node is not None and not self.is_over

    @property
    def restarts(self) -> int:
        return sum(container.restarts for container in self.containers)


@dataclass(frozen=True, slots=True)
class PodTrouble:
    """A warning of the cluster about a pod, or about an object that could not make its pods."""

    namespace: str
    object: str  # Kind/name
    reason: str
    message: str
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class PodsSeen:
    """The pods of some namespaces, now."""

    pods: tuple[Pod, ...] = ()  # by namespace and name
    owners: Mapping[str, OwnerObject] = field(default_factory=dict)  # by uid; those that could be read
    troubles: tuple[PodTrouble, ...] = ()
    silence: str = ""  # why there are none, as a sentence; empty: the cluster answered
    knows_owners: bool = True
    """Whether labels, owners and containers are known; False: only names, nodes and phases."""


class PodSource(Protocol):
    """Pods and nodes of clusters."""

    def look(
        self, cluster: str, spec: ClusterSpec, namespaces: Collection[str], now: datetime, /
    ) -> PodsSeen:
        """The pods of these namespaces. Never raises."""

    def attributes(
        self, cluster: str, spec: ClusterSpec, now: datetime, /
    ) -> Mapping[str, Mapping[str, str]]:
        """What its nodes show of themselves besides their GPUs; nothing if it does not answer. Never raises."""


def unread_owners(pods: Iterable[Pod], owners: Mapping[str, OwnerObject]) -> list[tuple[str, OwnerRef]]:
    """Owners that are named and not read yet, with their namespaces, sorted: what a source reads next."""
    found: dict[str, tuple[str, OwnerRef]] = {}
    for pod in pods:
        for ref in pod.owners[:1]:
            found[ref.uid] = (pod.namespace, ref)
    for one in owners.values():
        for ref in one.owners[:1]:
            found[ref.uid] = (one.namespace, ref)
    return [found[uid] for uid in sorted(found) if uid and uid not in owners]
