"""Reads the pods of some namespaces, what made them, and what the cluster warns of, with a few calls.

Only what is named is read: an owner that may not be read, or whose kind has another path, is left out, and the pod's
labels tell instead. Warnings are for sentences, so a cluster that does not give them is no fault.
"""

from __future__ import annotations

from collections.abc import Collection

from reconciler.clusters.kubernetes.api.api_client import Api, Rejected
from reconciler.clusters.kubernetes.workloads.pod_objects import read_owner, read_pod, read_trouble
from reconciler.model.pod_port import OwnerObject, OwnerRef, Pod, PodsSeen, PodTrouble, unread_owners
from schemas.errors import Fault

LEVELS = 8
"""Owners above each other that are read."""
MOST_OWNERS = 300
"""Owners read at one look; a fleet's pods have few, as they come in groups."""
MOST_TROUBLES = 500
PLURALS = {"Proxy": "proxies", "RayService": "rayservices", "InferenceService": "inferenceservices"}


class PodReader:
    """One cluster's pods; remembers owners, which hardly change."""

    def __init__(self, api: Api, cluster: str) -> None:
        self._api, self._cluster = api, cluster
        self._known: dict[str, OwnerObject | None] = {}  # by uid; None: it cannot be read

    def read(self, namespaces: Collection[str]) -> PodsSeen:
        """Raises Fault if the cluster does not answer, or does not let pods be listed."""
        pods: list[Pod] = []
        owners: dict[str, OwnerObject] = {}
        for namespace in sorted(namespaces):
            for item in self._api.items(f"/api/v1/namespaces/{namespace}/pods"):
                pods.append(read_pod(item, self._cluster))
                if pods[-1].gpus:  # a leader pod owns its workers
                    owners[pods[-1].uid] = read_owner({"apiVersion": "v1", "kind": "Pod", **item})
        with_gpus = [pod for pod in pods if pod.gpus]
        self._read_owners(with_gpus, owners)
        pods.sort(key=lambda pod: (pod.namespace, pod.name))
        troubles = tuple(t for namespace in sorted(namespaces) for t in self._troubles(namespace))
        return PodsSeen(tuple(pods), owners, troubles)

    def _read_owners(self, pods: list[Pod], owners: dict[str, OwnerObject]) -> None:
        if len(self._known) > 10 * MOST_OWNERS:
            self._known.clear()
        for _ in range(LEVELS):
            named = [
                one for one in unread_owners(pods, owners) if self._known.get(one[1].uid, ...) is not None
            ]
            if not named or len(owners) > len(pods) + MOST_OWNERS:
                return
            for namespace, ref in named:
                if ref.uid not in self._known:
                    self._known[ref.uid] = self._owner(namespace, ref)
                if (found := self._known[ref.uid]) is not None:
                    owners[ref.uid] = found

    def _owner(self, namespace: str, ref: OwnerRef) -> OwnerObject | None:
        """The object; None if it is gone, was made anew, or may not be read."""
        if not ref.version or ref.kind == "Node":
            return None
        group = f"/apis/{ref.group}/{ref.version}" if ref.group else f"/api/{ref.version}"
        plural = PLURALS.get(ref.kind) or f"{ref.kind.lower()}s"
        try:
            item = self._api.find(f"{group}/namespaces/{namespace}/{plural}/{ref.name}")
        except Rejected as no:
            if no.status in (403, 405):
                return None
            raise
        found = None if item is None else read_owner({"kind": ref.kind, **item})
        return found if found is not None and found.ref.uid == ref.uid else None

    def _troubles(self, namespace: str) -> list[PodTrouble]:
        path = f"/api/v1/namespaces/{namespace}/events"
        try:
            found = self._api.get(path, fieldSelector="type=Warning", limit=MOST_TROUBLES)
        except Fault:
            return []
        return [trouble for item in found.get("items") or () if (trouble := read_trouble(item)) is not None]
