"""How many nodes an elastic pool is to have: the `scale` subresource of the object that makes them.

Whatever has one will do: a MachineDeployment of Cluster API, a provider's node group. We say how many and never make or
delete a node. Before a pool shrinks its leaving nodes are cordoned; where Cluster API makes them, their Machines are
also marked as the ones to delete, and the mark is taken off again when such a node is kept after all. Other scalers
must be told by their own means to delete cordoned nodes first.

Each write is conditional on the version that was read, and bears our stamp on the object itself, so that a paused old
controller scales nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from reconciler.clusters.kubernetes.api.api_client import Api, Json, Rejected
from reconciler.clusters.kubernetes.names import OBJECT_STAMP
from reconciler.clusters.kubernetes.nodes.node_marks import late, read_stamp, write_stamp
from reconciler.clusters.kubernetes.nodes.node_writer import NODES
from reconciler.model.cluster_port import Answer, Done, Refused, Stamp
from schemas.documents.cluster import ClusterSpec
from schemas.documents.elastic import CLUSTER_API, ScaleTarget

TRIES = 5
"""Whoever works on the object writes its status now and then; each try reads all anew."""
CONFLICT, FORBIDDEN = 409, 403
MACHINE, NAMESPACE = CLUSTER_API + "machine", CLUSTER_API + "cluster-namespace"
"""Annotations of a node: which Machine it is."""
DELETE = CLUSTER_API + "delete-machine"
"""Annotation of a Machine: it goes first when its set shrinks."""


class Scaling:
    """The targets of one cluster's elastic pools."""

    def __init__(
        self, api: Api, spec: ClusterSpec, empty: Callable[[str], tuple[str, ...]] = lambda _: ()
    ) -> None:
        """`empty`: nodes of a pool that bear a lease and on which nobody's pod runs."""
        self._api, self._empty = api, empty
        self._targets = {
            pool.name: pool.elastic.target
            for pool in spec.pools
            if pool.elastic is not None and pool.elastic.target is not None
        }

    def sizes(self) -> dict[str, int]:
        """What each was told last; one that cannot be read is left out, and says why when it is scaled."""
        found = {}
        for pool, target in self._targets.items():
            try:
                found[pool] = _replicas(self._api.get(f"{path_of(target)}/scale"))
            except Rejected as no:
                if no.status not in {FORBIDDEN, 404}:
                    raise
        return found

    def scale(self, pool: str, count: int, leaving: tuple[str, ...], stamp: Stamp) -> Answer:
        """Raises `Rejected` what the server refuses."""
        target = self._targets.get(pool)
        if target is None:
            return Refused("NotElastic", f"pool {pool} names nothing to scale; give it elastic.target")
        where = f"{target.resource} {target.name}"
        return _again(
            where, lambda: self._unsafe(pool, target, count) or self._try(target, count, leaving, stamp)
        )

    def _unsafe(self, pool: str, target: ScaleTarget, count: int) -> Refused | None:
        """Karpenter takes nodes without pods before others, whoever cordoned which: one that is leased may be one."""
        empty = self._empty(pool) if target.is_karpenter else ()
        if not empty:
            return None
        found = self._api.find(f"{path_of(target)}/scale")
        if found is None or count >= _replicas(found):
            return None
        text = f"pool {pool} does not shrink while {empty[0]} is leased and bears no pod: Karpenter could take it"
        return Refused("LeasedNodeEmpty", text)

    def keep(self, node: str, stamp: Stamp) -> Answer:
        """It does not go: what we said of its Machine is taken back. Nothing where Cluster API makes no nodes."""
        version = next(
            (target.api_version for target in self._targets.values() if target.is_cluster_api), None
        )
        if version is None:
            return Done()
        try:
            return _again(
                f"the Machine of {node}", lambda: self._marked(node, version, None, stamp) or Done()
            )
        except Rejected as no:
            if no.status != FORBIDDEN:
                raise
            return Done()  # who may not touch Machines has marked none

    def _try(self, target: ScaleTarget, count: int, leaving: tuple[str, ...], stamp: Stamp) -> Answer | None:
        """None: it changed meanwhile."""
        path = path_of(target)
        found = self._api.find(path)
        if found is None:
            where = f"{target.resource} {target.name} of {target.api_version}"
            return Refused("TargetMissing", f"there is no {where} to scale; correct elastic.target")
        held = read_stamp((found["metadata"].get("annotations") or {}).get(OBJECT_STAMP))
        if (refusal := late(f"{target.resource} {target.name}", held, stamp)) is not None:
            return refusal
        version = found["metadata"]["resourceVersion"]
        if held != stamp:
            meta = {"resourceVersion": version, "annotations": {OBJECT_STAMP: write_stamp(stamp)}}
            version = self._api.merge(path, {"metadata": meta})["metadata"]["resourceVersion"]
        now = self._api.get(f"{path}/scale")
        if now["metadata"]["resourceVersion"] != version:
            return None
        if _replicas(now) > count and target.is_cluster_api:
            for name in leaving:
                if (refusal := self._marked(name, target.api_version, "true", stamp)) is not None:
                    return refusal
        if _replicas(now) != count:
            body = {"metadata": {"resourceVersion": version}, "spec": {"replicas": count}}
            self._api.merge(f"{path}/scale", body)
        return Done()

    def _marked(self, node: str, version: str, mark: str | None, stamp: Stamp) -> Refused | None:
        """Whether the node's Machine goes first; a mark without our stamp is somebody else's and stays."""
        found = self._api.find(f"{NODES}/{node}")
        said = {} if found is None else found["metadata"].get("annotations") or {}
        if MACHINE not in said or NAMESPACE not in said:
            return None
        path = f"/apis/{version}/namespaces/{said[NAMESPACE]}/machines/{said[MACHINE]}"
        machine = self._api.find(path)
        if machine is None:
            return None
        meta = machine["metadata"]
        marks = meta.get("annotations") or {}
        held = read_stamp(marks.get(OBJECT_STAMP))
        if marks.get(DELETE) == mark or (DELETE in marks and held is None):
            return None
        if (refusal := late(f"Machine {said[MACHINE]}", held, stamp)) is not None:
            return refusal
        changed = {DELETE: mark, OBJECT_STAMP: write_stamp(stamp)}
        update = {"resourceVersion": meta["resourceVersion"], "annotations": changed}
        self._api.merge(path, {"metadata": update})
        return None


def _again(what: str, act: Callable[[], Answer | None]) -> Answer:
    """The first answer; an object that changed meanwhile is looked at anew."""
    for _ in range(TRIES):
        try:
            answer = act()
        except Rejected as no:
            if no.status != CONFLICT:
                raise
            answer = None
        if answer is not None:
            return answer
    return Refused("Conflict", f"{what} changes all the time; it is tried again")


def path_of(target: ScaleTarget) -> str:
    """Where the server has it."""
    root = f"/apis/{target.api_version}" if "/" in target.api_version else f"/api/{target.api_version}"
    space = "" if target.namespace is None else f"/namespaces/{target.namespace}"
    return f"{root}{space}/{target.resource}/{target.name}"


def _replicas(scale: Json) -> int:
    return int((scale.get("spec") or {}).get("replicas") or 0)
