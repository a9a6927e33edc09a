"""Sets the size of an elastic pool through the `scale` subresource of its target.

Any target with one works: a MachineDeployment of Cluster API, a provider's node group. We set the number and
never create a node. Before a pool shrinks its leaving nodes are cordoned. With Cluster API their Machines are also
marked for deletion, and unmarked if such a node is kept after all. With Karpenter they are deleted just before, with
their NodeClaims: what Karpenter makes in their place until it hears the new number has no node yet, and goes first. All
of these nodes are looked at, and get our stamp on the version looked at, before the first goes: one with a lease keeps
all. Each is deleted on the version that has our stamp, so that a lease of a newer controller keeps it. Other scalers
must be configured to delete cordoned nodes first.

Each write is conditional on the version read, and puts our stamp on the target, so that an outdated
controller scales nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from reconciler.clusters.kubernetes.api.api_client import Api, Json, Rejected
from reconciler.clusters.kubernetes.names import LEASE, OBJECT_STAMP, STAMP
from reconciler.clusters.kubernetes.nodes.node_marks import late, read_stamp, stamp_of, write_stamp
from reconciler.clusters.kubernetes.nodes.node_writer import NODES
from reconciler.model.cluster_port import Answer, Done, Refused, Stamp
from schemas.documents.cluster import ClusterSpec
from schemas.documents.elastic import CLUSTER_API, ScaleTarget

TRIES = 5
"""The target's controllers write its status now and then; each try reads it again."""
CONFLICT, FORBIDDEN = 409, 403
MACHINE, NAMESPACE = CLUSTER_API + "machine", CLUSTER_API + "cluster-namespace"
"""Annotations of a node: which Machine it is."""
CLAIM = "NodeClaim"
"""Kind of Karpenter's object that owns a node."""
DELETE = CLUSTER_API + "delete-machine"
"""Annotation of a Machine: it is deleted first when its set shrinks."""


class Scaling:
    """The targets of one cluster's elastic pools."""

    def __init__(
        self, api: Api, spec: ClusterSpec, empty: Callable[[str], tuple[str, ...]] = lambda _: ()
    ) -> None:
        """`empty`: nodes of a pool with a lease but without pods."""
        self._api, self._empty = api, empty
        self._targets = {
            pool.name: pool.elastic.target
            for pool in spec.pools
            if pool.elastic is not None and pool.elastic.target is not None
        }

    def sizes(self) -> dict[str, int]:
        """Each pool's last set size; an unreadable one is left out, and reported when scaled."""
        found = {}
        for pool, target in self._targets.items():
            try:
                found[pool] = _replicas(self._api.get(f"{path_of(target)}/scale"))
            except Rejected as no:
                if no.status not in {FORBIDDEN, 404}:
                    raise
        return found

    def scale(self, pool: str, count: int, leaving: tuple[str, ...], stamp: Stamp) -> Answer:
        """Raises `Rejected` if the server refuses."""
        target = self._targets.get(pool)
        if target is None:
            return Refused("NotElastic", f"pool {pool} has nothing to scale; set elastic.target")
        where = f"{target.resource} {target.name}"
        return _again(
            where, lambda: self._unsafe(pool, target, count) or self._try(target, count, leaving, stamp)
        )

    def _unsafe(self, pool: str, target: ScaleTarget, count: int) -> Refused | None:
        """Karpenter removes nodes without pods first, cordoned or not: a leased one may be among them."""
        empty = self._empty(pool) if target.is_karpenter else ()
        if not empty:
            return None
        found = self._api.find(f"{path_of(target)}/scale")
        if found is None or count >= _replicas(found):
            return None
        text = f"pool {pool} does not shrink while {empty[0]} is leased but has no pod: Karpenter could remove it"
        return Refused("LeasedNodeEmpty", text)

    def keep(self, node: str, stamp: Stamp) -> Answer:
        """It is kept: our deletion mark on its Machine is removed. No effect without Cluster API."""
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
            return Done()  # without permission on Machines we have marked none

    def _try(self, target: ScaleTarget, count: int, leaving: tuple[str, ...], stamp: Stamp) -> Answer | None:
        """None: it changed meanwhile."""
        path = path_of(target)
        found = self._api.find(path)
        if found is None:
            where = f"{target.resource} {target.name} of {target.api_version}"
            return Refused("TargetMissing", f"there is no {where} to scale; correct elastic.target")
        held = stamp_of(found)
        if (refusal := late(f"{target.resource} {target.name}", held, stamp)) is not None:
            return refusal
        version = found["metadata"]["resourceVersion"]
        if held != stamp:
            meta = {"resourceVersion": version, "annotations": {OBJECT_STAMP: write_stamp(stamp)}}
            version = self._api.merge(path, {"metadata": meta})["metadata"]["resourceVersion"]
        now = self._api.get(f"{path}/scale")
        if now["metadata"]["resourceVersion"] != version:
            return None
        if _replicas(now) > count:
            refusal = self._named(leaving, _replicas(now) - count, target, stamp)
            if refusal is not None:
                return refusal
        if _replicas(now) != count:
            body = {"metadata": {"resourceVersion": version}, "spec": {"replicas": count}}
            self._api.merge(f"{path}/scale", body)
        return Done()

    def _named(
        self, leaving: tuple[str, ...], most: int, target: ScaleTarget, stamp: Stamp
    ) -> Refused | None:
        """Tells those who make the nodes that these go; others are not told."""
        if target.is_karpenter:
            return self._claims_ended(leaving, most, target.api_version, stamp)
        for node in leaving if target.is_cluster_api else ():
            if (refusal := self._marked(node, target.api_version, "true", stamp)) is not None:
                return refusal
        return None

    def _claims_ended(
        self, leaving: tuple[str, ...], most: int, version: str, stamp: Stamp
    ) -> Refused | None:
        """Deletes at most that many of the nodes, with their NodeClaims.

        None is deleted if a node has a lease. One that gets it after we looked changes its node, so that our stamp or
        our deletion is refused, and all are looked at again. A NodeClaim has no such version: so the node goes first,
        and Karpenter's finalizer keeps it until its machine is gone.
        """
        found = [(name, node) for name in leaving if (node := self._api.find(f"{NODES}/{name}")) is not None]
        for name, node in found:
            if (refusal := _stays(name, node, stamp)) is not None:
                return refusal
        claimed = [
            (name, node, claim) for name, node in found if (claim := _claim(node, version)) is not None
        ]
        stamped = [self._stamped(name, node, stamp) for name, node, _ in claimed[:most]]
        for (name, _, claim), meta in zip(claimed, stamped, strict=False):
            self._api.delete(f"{NODES}/{name}", uid=meta["uid"], version=meta["resourceVersion"])
            self._api.delete(f"/apis/{version}/nodeclaims/{claim['name']}", uid=claim["uid"])
        return None

    def _stamped(self, name: str, node: Json, stamp: Stamp) -> Json:
        """The node's metadata with our stamp, written on the version that was looked at."""
        marked = {"resourceVersion": node["metadata"]["resourceVersion"]}
        body = {"metadata": {**marked, "annotations": {STAMP: write_stamp(stamp)}}}
        found: Json = self._api.merge(f"{NODES}/{name}", body)["metadata"]
        return found

    def _marked(self, node: str, version: str, mark: str | None, stamp: Stamp) -> Refused | None:
        """Marks or unmarks the node's Machine for deletion; a mark without our stamp is foreign and stays."""
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
        held = stamp_of(machine)
        if marks.get(DELETE) == mark or (DELETE in marks and held is None):
            return None
        if (refusal := late(f"Machine {said[MACHINE]}", held, stamp)) is not None:
            return refusal
        changed = {DELETE: mark, OBJECT_STAMP: write_stamp(stamp)}
        update = {"resourceVersion": meta["resourceVersion"], "annotations": changed}
        self._api.merge(path, {"metadata": update})
        return None


def _stays(name: str, node: Json, stamp: Stamp) -> Refused | None:
    """Why this node may not be removed."""
    marks = node["metadata"].get("annotations") or {}
    if LEASE in marks:
        return Refused("NodeHeld", f"node {name} is leased, so its pool does not shrink by it")
    return late(f"node {name}", read_stamp(marks.get(STAMP)), stamp)


def _claim(node: Json, version: str) -> Json | None:
    """The reference to the NodeClaim that owns the node."""
    owners = node["metadata"].get("ownerReferences") or ()
    return next((o for o in owners if o["apiVersion"] == version and o["kind"] == CLAIM), None)


def _again(what: str, act: Callable[[], Answer | None]) -> Answer:
    """The first answer; an object that changed meanwhile is read again."""
    for _ in range(TRIES):
        try:
            answer = act()
        except Rejected as no:
            if no.status != CONFLICT:
                raise
            answer = None
        if answer is not None:
            return answer
    return Refused("Conflict", f"{what} changes constantly; retrying")


def path_of(target: ScaleTarget) -> str:
    root = f"/apis/{target.api_version}" if "/" in target.api_version else f"/api/{target.api_version}"
    space = "" if target.namespace is None else f"/namespaces/{target.namespace}"
    return f"{root}{space}/{target.resource}/{target.name}"


def _replicas(scale: Json) -> int:
    return int((scale.get("spec") or {}).get("replicas") or 0)
