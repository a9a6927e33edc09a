"""NVSentinel drains our nodes through us: its custom resources `DrainRequest`.

Only where `spec.remediation.nvsentinel` of the cluster allows it and the API server serves them. Its node drainer
lists the pods to evict, waits for the condition `DrainComplete`, and deletes the request. Requests for nodes that are
not ours are left to others: an answer says that the listed pods are gone.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from reconciler.clusters.kubernetes.api.api_client import Api, Json, Patch, Rejected
from reconciler.clusters.kubernetes.nodes.node_inventory import FINISHED, Pod
from reconciler.model.cluster_port import ClusterView
from schemas.reading.units import format_instant

log = logging.getLogger(__name__)

GROUP, VERSION, PLURAL = "nvsentinel.nvidia.com", "v1alpha1", "drainrequests"
ROOT = f"/apis/{GROUP}/{VERSION}"
COMPLETE = "DrainComplete"
NOT_SERVED, FORBIDDEN = 404, 403
NAMED = 3
"""Requests listed per node."""
_ACTION = re.compile(r"[A-Za-z0-9_.-]{1,63}")


@dataclass(frozen=True, slots=True)
class DrainRequest:
    """The parts read of one object."""

    namespace: str
    name: str
    version: str
    node: str
    action: str  # what NVSentinel does afterwards; empty: it does not say, or says more than a word
    pods: frozenset[str]  # namespace/name of those that must leave
    conditions: tuple[Json, ...] | None  # None: it has no status yet

    @property
    def is_complete(self) -> bool:
        """True once it was answered."""
        found = self.conditions or ()
        return any(c.get("type") == COMPLETE and c.get("status") == "True" for c in found)


class DrainRequests:
    """Those of one cluster; read again at each look, because there are few."""

    def __init__(self, api: Api, cluster: str, allowed: bool) -> None:
        self._api, self._cluster, self._allowed = api, cluster, allowed
        self._is_forbidden = False

    def shown(self, view: ClusterView) -> ClusterView:
        """The view with what is asked for its nodes."""
        asked = self._asked()
        nodes = {
            name: replace(node, drain=_told(found), drain_open=any(not one.is_complete for one in found))
            for name, node in view.nodes.items()
            if node.pool and (found := asked.get(name)) is not None
        }
        return replace(view, nodes={**view.nodes, **nodes}) if nodes else view

    def open_for(self, node: str) -> list[DrainRequest]:
        """Unanswered requests for that node."""
        return [found for found in self._asked().get(node, ()) if not found.is_complete]

    def answer(self, request: DrainRequest, now: datetime) -> None:
        """Sets the condition, if the request is as it was read. Raises `Rejected` if not."""
        path = f"{ROOT}/namespaces/{request.namespace}/{PLURAL}/{request.name}/status"
        self._api.patch(path, _completed(request, now))

    def _asked(self) -> Mapping[str, tuple[DrainRequest, ...]]:
        found: dict[str, tuple[DrainRequest, ...]] = {}
        for request in self._listed() if self._allowed else ():
            found[request.node] = (*found.get(request.node, ()), request)
        return found

    def _listed(self) -> list[DrainRequest]:
        try:
            items = list(self._api.items(f"{ROOT}/{PLURAL}"))
        except Rejected as no:
            if no.status not in {NOT_SERVED, FORBIDDEN}:
                raise
            if no.status == FORBIDDEN and not self._is_forbidden:
                log.warning("drain requests not read cluster=%s message=%s", self._cluster, no)
            self._is_forbidden = no.status == FORBIDDEN
            return []
        self._is_forbidden = False
        return [request for item in items if (request := read_drain_request(item)) is not None]


def read_drain_request(item: Json) -> DrainRequest | None:
    """None for one that names no node, that is being deleted, or that has another shape."""
    meta, spec, status = item["metadata"], item.get("spec") or {}, item.get("status")
    try:
        if not spec.get("nodeName") or meta.get("deletionTimestamp"):
            return None
        listed, action = spec.get("podsToDrain") or {}, str(spec.get("recommendedAction") or "")
        return DrainRequest(
            namespace=meta["namespace"],
            name=meta["name"],
            version=meta["resourceVersion"],
            node=str(spec["nodeName"]),
            action=action if _ACTION.fullmatch(action) else "",
            pods=frozenset(f"{space}/{name}" for space, names in listed.items() for name in names or ()),
            conditions=None if not status else tuple(dict(found) for found in status.get("conditions") or ()),
        )
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        log.debug("drain request not read name=%s error=%s", meta.get("name"), type(error).__name__)
        return None


def still_there(requests: Iterable[DrainRequest], pods: Mapping[str, Pod]) -> tuple[Pod, ...]:
    """Pods of the requests that still run on their node. Those of DaemonSets do not count: they come back at once."""
    listed = {(key, request.node) for request in requests for key in request.pods}
    return tuple(
        pod
        for key, pod in sorted(pods.items())
        if (key, pod.node) in listed and not (pod.exempt or pod.stopped or pod.phase in FINISHED)
    )


def _told(requests: Iterable[DrainRequest]) -> str:
    found = sorted(
        f"NVSentinel in {one.namespace}/{one.name}{f' ({one.action})' if one.action else ''}"
        for one in requests
    )
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return ", ".join(found[:NAMED]) + more


def _completed(request: DrainRequest, now: datetime) -> Patch:
    condition = {
        "type": COMPLETE,
        "status": "True",
        "reason": "Drained",
        "message": f"node {request.node} serves no request, and none of the listed pods runs there",
        "lastTransitionTime": format_instant(now),
    }
    kept = [found for found in request.conditions or () if found.get("type") != COMPLETE]
    wanted = [*kept, condition]
    return [
        {"op": "test", "path": "/metadata/resourceVersion", "value": request.version},
        {"op": "add", "path": "/status", "value": {"conditions": wanted}}
        if request.conditions is None
        else {"op": "add", "path": "/status/conditions", "value": wanted},
    ]
