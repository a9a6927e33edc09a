"""What exports a slice's Services from one cluster, and lets the slice's pods of its other clusters in. Pure.

    Service with the label egs.dev/export=true  ─▶ ServiceExport of the same name: its controller does the rest
    each namespace, where Cilium is             ─▶ CiliumNetworkPolicy egs-peers: the slice's namespaces in the peers

A peer's pods are those of the same slice and project there, by the labels of their namespaces: a namespace that has
the same name but belongs to others is not let in. Without Cilium `tenancy` has policies by address.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.clusters.kubernetes.api.api_client import Json
from reconciler.clusters.kubernetes.names import NAMESPACE_SLICE, OWNER
from reconciler.clusters.kubernetes.tenancy.slice_objects import Kind, labels
from reconciler.model.cluster_port import SliceTerms
from reconciler.model.service_port import MOST_EXPORTS, ExportView, Peer

GROUP = "multicluster.x-k8s.io"
VERSIONS = ("v1beta1", "v1alpha1")
"""Versions that we can write, the preferred one first."""
EXPORT, EXPORTS = "ServiceExport", "serviceexports"
CILIUM, CILIUM_VERSION = "cilium.io", "v2"
CILIUM_POLICY, CILIUM_POLICIES = "CiliumNetworkPolicy", "ciliumnetworkpolicies"
PEERS = "egs-peers"
UNANSWERED_AFTER = timedelta(minutes=1)
"""Time in which a controller takes up a new export."""
LONGEST = 300
"""Characters that we show of a controller's message."""
_CLUSTER = "k8s:io.cilium.k8s.policy.cluster"
_NAMESPACE = "k8s:io.cilium.k8s.namespace.labels."


@dataclass(frozen=True, slots=True)
class Served:
    """What the cluster has for exports."""

    version: str
    has_cilium: bool = False

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Those that we write: who may come in is there before anything is exported."""
        policy = Kind(
            CILIUM_POLICY, f"{CILIUM}/{CILIUM_VERSION}", CILIUM_POLICIES, ("spec", "specs"), is_exact=True
        )
        export = Kind(EXPORT, f"{GROUP}/{self.version}", EXPORTS, (), shown=("status",))
        return (*((policy,) if self.has_cilium else ()), export)


def export_objects(
    terms: SliceTerms, project: str, served: Served, services: Mapping[str, Iterable[str]]
) -> tuple[Json, ...]:
    """All of them, in the order in which they are made. `services`: names of exported Services, by namespace."""
    if terms.peers is None:
        return ()
    own = labels(terms.name, project)
    namespaces = sorted(set(terms.namespaces))
    policies = (
        [_policy(terms.peers, own, namespace) for namespace in namespaces]
        if served.has_cilium and terms.peers
        else []
    )
    exports = [
        _object(EXPORT, f"{GROUP}/{served.version}", name, namespace, own)
        for namespace, name in asked(terms, services)[:MOST_EXPORTS]
    ]
    return (*policies, *exports)


def asked(terms: SliceTerms, services: Mapping[str, Iterable[str]]) -> list[tuple[str, str]]:
    """Namespace and name of the slice's Services that ask for an export."""
    return [
        (space, name) for space in sorted(set(terms.namespaces)) for name in sorted(services.get(space, ()))
    ]


def shown(namespace: str, name: str, body: Json, made: datetime | None, now: datetime) -> ExportView:
    """One export with what its controller says; `made`: when it was created."""
    found = {c.get("type"): c for c in (body.get("status") or {}).get("conditions") or ()}
    valid, ready, conflict = (found.get(kind, {}) for kind in ("Valid", "Ready", "Conflict"))
    if valid.get("status") == "False":
        return ExportView(namespace, name, "Refused", _said(valid))
    if conflict.get("status") == "True":
        return ExportView(namespace, name, "Conflict", _said(conflict))
    if ready.get("status") == "False":
        return ExportView(namespace, name, "Waiting", _said(ready))
    if "True" in {valid.get("status"), ready.get("status")}:
        return ExportView(namespace, name, "Exported")
    if made is not None and now - made >= UNANSWERED_AFTER:
        return ExportView(namespace, name, "Unanswered", NO_CONTROLLER)
    return ExportView(namespace, name, "Waiting")


NO_CONTROLLER = (
    "no controller of the Multi-Cluster Services API has taken it up; install one in the cluster, such as Cilium's "
    "cluster mesh, Submariner or the cloud's own"
)


def _said(condition: Json) -> str:
    """What others wrote, as one printable line of at most `LONGEST` characters."""
    text = str(condition.get("message") or condition.get("reason") or "")
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


def _object(kind: str, api: str, name: str, namespace: str, own: dict[str, str], **content: object) -> Json:
    meta = {"name": name, "namespace": namespace, "labels": dict(own)}
    return {"apiVersion": api, "kind": kind, "metadata": meta, **content}


def _policy(peers: tuple[Peer, ...], own: dict[str, str], namespace: str) -> Json:
    """To and from the slice's pods in the peers."""
    mine = {f"{_NAMESPACE}{key}": own[key] for key in (NAMESPACE_SLICE, OWNER)}
    there = {"key": _CLUSTER, "operator": "In", "values": sorted({peer.mesh for peer in peers})}
    ours = [{"matchLabels": mine, "matchExpressions": [there]}]
    spec = {
        "endpointSelector": {},
        "ingress": [{"fromEndpoints": ours}],
        "egress": [{"toEndpoints": ours}],
    }
    return _object(CILIUM_POLICY, f"{CILIUM}/{CILIUM_VERSION}", PEERS, namespace, own, spec=spec, specs=[])
