"""The kubelets of a control plane that has none: bound pods run, pods told to stop do, nodes fall silent.

Nothing happens between two steps, so a test lives in its own time: `settle(now)` brings the cluster to where it would
be at `now`, and returns when scheduler and controllers have nothing left to do that a test could be waiting for.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime

from reconciler.clusters.kubernetes.api.api_client import Json, Rejected
from reconciler.clusters.kubernetes.nodes.node_inventory import gpus_of
from tests.support.kube import Plane

PATIENCE_S = 120.0
NOT_READY, UNREACHABLE, UNSCHEDULABLE = (
    f"node.kubernetes.io/{name}" for name in ("not-ready", "unreachable", "unschedulable")
)


class Kubelets:
    """All nodes of one cluster."""

    def __init__(self, plane: Plane) -> None:
        self._plane, self._api = plane, plane.api
        self._silent: dict[str, datetime] = {}
        self._hung: list[tuple[str, datetime, datetime]] = []

    def kill(self, node: str, at: datetime) -> None:
        """Silent from then on."""
        self._silent[node] = at

    def hang(self, node: str, at: datetime, until: datetime) -> None:
        """Its pods do not stop before `until`."""
        self._hung.append((node, at, until))

    def settle(self, now: datetime, caught_up: Callable[[], bool] = lambda: True) -> None:
        """Step until nothing changes and everybody has seen it."""
        end, quiet = time.monotonic() + PATIENCE_S, 0
        while quiet < 2:
            busy = self.step(now) or not caught_up()
            quiet = 0 if busy else quiet + 1
            assert time.monotonic() < end, f"the cluster does not come to rest: {self._unrest(now)}"
            if busy:
                time.sleep(0.02)

    def step(self, now: datetime) -> bool:
        """One look at everything; True when something moved, or is going to."""
        nodes = {n["metadata"]["name"]: n for n in self._plane.items("/api/v1/nodes")}
        pods = self._plane.items("/api/v1/pods")
        moved = [self._breathe(node, now) for node in nodes.values()]
        moved += [self._run(pod, now) for pod in pods]
        return any(moved) or bool(self._due(nodes, pods)) or self._missing(pods) or self._leaving()

    def _leaving(self) -> bool:
        """A namespace that is being cleaned up, and that nobody but its controller holds."""
        spaces = self._plane.items("/api/v1/namespaces")
        return any(
            s["metadata"].get("deletionTimestamp") and not s["metadata"].get("finalizers") for s in spaces
        )

    def _breathe(self, node: Json, now: datetime) -> bool:
        name = node["metadata"]["name"]
        dead = self._is_dead(name, now)
        wanted = "Unknown" if dead else "True"
        ready = next(c for c in node["status"]["conditions"] if c["type"] == "Ready")
        if ready["status"] == wanted:
            return not dead and _tainted_still(node)
        body = {"status": {"conditions": [{"type": "Ready", "status": wanted, "reason": "Test"}]}}
        self._api.merge(f"/api/v1/nodes/{name}/status", body, "strategic-merge-patch")
        return True

    def _is_dead(self, node: str | None, now: datetime) -> bool:
        return node in self._silent and now >= self._silent[node]

    def _run(self, pod: Json, now: datetime) -> bool:
        meta, node = pod["metadata"], pod["spec"].get("nodeName")
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        try:
            if meta.get("deletionTimestamp"):
                if self._is_dead(node, now) or any(
                    n == node and at <= now < until for n, at, until in self._hung
                ):
                    return False
                self._api.delete(path, uid=meta["uid"], grace_s=0)
                return True
            if node and not self._is_dead(node, now) and pod["status"].get("phase") == "Pending":
                status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
                self._api.merge(f"{path}/status", {"status": status}, "strategic-merge-patch")
                return True
        except Rejected:
            return True
        return False

    def _due(self, nodes: dict[str, Json], pods: list[Json]) -> list[str]:
        """Pods that the scheduler is going to bind: some node takes them."""
        free = Counter({name: _gpus(node) for name, node in nodes.items()})
        for pod in pods:
            if pod["spec"].get("nodeName"):
                free[pod["spec"]["nodeName"]] -= gpus_of(pod["spec"])
        waiting = [
            p for p in pods if not p["spec"].get("nodeName") and not p["metadata"].get("deletionTimestamp")
        ]
        return [
            p["metadata"]["name"]
            for p in waiting
            if any(_takes(node, p["spec"], free[name]) for name, node in nodes.items())
        ]

    def _missing(self, pods: list[Json]) -> bool:
        """A workload whose controller is going to make another pod, or one that will go with its workload."""
        owners = Counter(o["uid"] for p in pods for o in p["metadata"].get("ownerReferences") or ())
        sets = self._plane.items("/apis/apps/v1/statefulsets")
        return any(owners[s["metadata"]["uid"]] != s["spec"]["replicas"] for s in sets)

    def _unrest(self, now: datetime) -> str:
        nodes = {n["metadata"]["name"]: n for n in self._plane.items("/api/v1/nodes")}
        pods = self._plane.items("/api/v1/pods")
        return f"due {self._due(nodes, pods)}, missing {self._missing(pods)}"


def _tainted_still(node: Json) -> bool:
    """The node controller takes its own taints off a moment after the node is well, or no longer cordoned."""
    keys = {t["key"] for t in _taints(node)}
    cordoned = bool(node["spec"].get("unschedulable"))
    return bool(keys & {NOT_READY, UNREACHABLE}) or (UNSCHEDULABLE in keys and not cordoned)


def _taints(node: Json) -> list[Json]:
    return node["spec"].get("taints") or []


def _gpus(node: Json) -> int:
    return int(node["status"].get("allocatable", {}).get("nvidia.com/gpu", 0))


def _takes(node: Json, spec: Json, free: int) -> bool:
    labels = node["metadata"].get("labels") or {}
    selected = all(labels.get(k) == v for k, v in (spec.get("nodeSelector") or {}).items())
    tolerated = all(
        _tolerates(spec.get("tolerations") or (), t)
        for t in _taints(node)
        if t["effect"] != "PreferNoSchedule"
    )
    return selected and tolerated and not node["spec"].get("unschedulable") and free >= gpus_of(spec)


def _tolerates(tolerations: Iterable[Json], taint: Json) -> bool:
    return any(
        t.get("effect") in {None, "", taint["effect"]}
        and (t.get("key") in {None, "", taint["key"]})
        and (t.get("operator") == "Exists" or t.get("value", "") == taint.get("value", ""))
        for t in tolerations
    )
