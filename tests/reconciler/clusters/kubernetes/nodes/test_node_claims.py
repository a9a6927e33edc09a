"""Which NodeClaims end when a Karpenter pool shrinks, whatever changes meanwhile: on a server of a few lines (F13)."""

from __future__ import annotations

from typing import cast

import pytest

from reconciler.clusters.kubernetes.api.api_client import Api, Json, Rejected
from reconciler.clusters.kubernetes.names import LEASE, STAMP
from reconciler.clusters.kubernetes.nodes.node_writer import NODES
from reconciler.clusters.kubernetes.nodes.pool_scale import Scaling
from reconciler.model.cluster_port import Answer, Done, Refused
from schemas.documents.cluster import ClusterSpec
from tests.reconciler.clusters.rig import FIRST

V1 = "karpenter.sh/v1"
POOL = f"/apis/{V1}/nodepools/h100"


class Karpenters:
    """A NodePool and its nodes; writes are refused on an older version."""

    def __init__(self, replicas: int, *nodes: str) -> None:
        self.replicas = replicas
        self.objects: dict[str, Json] = {POOL: {"metadata": {"resourceVersion": "1"}}}
        self.ended: list[str] = []
        self.leased_once_read = self.leased_once_stamped = ""
        for name in nodes:
            owner = {"apiVersion": V1, "kind": "NodeClaim", "name": f"claim-{name}", "uid": name}
            self.objects[f"{NODES}/{name}"] = {
                "metadata": {"uid": f"node-{name}", "resourceVersion": "1", "ownerReferences": [owner]}
            }

    def find(self, path: str) -> Json | None:
        if path not in self.objects:
            return None
        meta = self.objects[path]["metadata"]
        read = {"metadata": {**meta, "annotations": dict(meta.get("annotations") or {})}}
        if self.leased_once_read and path == f"{NODES}/{self.leased_once_read}":
            self.leased_once_read = ""
            self.merge(path, {"metadata": {"annotations": {LEASE: "{}"}}})
        return read

    def get(self, path: str) -> Json:
        version = self.objects[path.removesuffix("/scale")]["metadata"]["resourceVersion"]
        return {"metadata": {"resourceVersion": version}, "spec": {"replicas": self.replicas}}

    def merge(self, path: str, body: Json) -> Json:
        meta = self.objects[path.removesuffix("/scale")]["metadata"]
        given = body["metadata"]
        if given.get("resourceVersion", meta["resourceVersion"]) != meta["resourceVersion"]:
            raise Rejected("it changed", 409)
        meta["resourceVersion"] += "1"
        meta["annotations"] = {**meta.get("annotations", {}), **given.get("annotations", {})}
        self.replicas = body.get("spec", {}).get("replicas", self.replicas)
        written = {"metadata": dict(meta)}
        if self.leased_once_stamped and path == f"{NODES}/{self.leased_once_stamped}":
            self.leased_once_stamped = ""
            self.merge(path, {"metadata": {"annotations": {LEASE: "{}", STAMP: "99.1"}}})
        return written

    def delete(self, path: str, *, uid: str, version: str | None = None) -> bool:
        if path not in self.objects:
            assert path.endswith(f"/nodeclaims/claim-{uid}")
            self.ended.append(uid)
            return True
        meta = self.objects[path]["metadata"]
        if (uid, version) != (meta["uid"], meta["resourceVersion"]):
            raise Rejected("it changed", 409)
        del self.objects[path]
        return True


def scaled(there: Karpenters, count: int, *leaving: str) -> Answer:
    target = {"apiVersion": V1, "resource": "nodepools", "name": "h100"}
    pool = {"name": "h100", "gpuShape": "H100-80GB", "gpusPerNode": 8, "memoryPerGpu": 80}
    pool |= {"selector": {"pool": "h100"}, "elastic": {"max": 4, "target": target}}
    spec = ClusterSpec.model_validate({"driver": "kubernetes", "pools": [pool]}, strict=False)
    return Scaling(cast(Api, there), spec).scale("h100", count, leaving, FIRST)


@pytest.mark.parametrize("when", ["before", "after it was read"])
def test_a_lease_on_one_leaving_node_keeps_all(when: str) -> None:
    """Else the other would be made again: the number stays."""
    there = Karpenters(3, "a", "b", "c")
    if when == "before":
        there.merge(f"{NODES}/b", {"metadata": {"annotations": {LEASE: "{}"}}})
    else:
        there.leased_once_read = "b"
    answer = scaled(there, 1, "a", "b")
    assert isinstance(answer, Refused)
    assert answer.reason == "NodeHeld"
    assert (there.ended, there.replicas) == ([], 3)


@pytest.mark.parametrize(("leased", "ended"), [("a", []), ("b", ["a"])])
def test_a_lease_after_our_stamp_keeps_its_node(leased: str, ended: list[str]) -> None:
    """A newer controller gives the node away between our stamp and the deletion."""
    there = Karpenters(3, "a", "b", "c")
    there.leased_once_stamped = leased
    answer = scaled(there, 1, "a", "b")
    assert isinstance(answer, Refused)
    assert answer.reason == "NodeHeld"
    assert (there.ended, there.replicas) == (ended, 3)
    assert f"{NODES}/{leased}" in there.objects


def test_a_node_of_a_newer_controller_keeps_all() -> None:
    there = Karpenters(3, "a", "b", "c")
    there.merge(f"{NODES}/b", {"metadata": {"annotations": {STAMP: "99.1"}}})
    answer = scaled(there, 1, "a", "b")
    assert isinstance(answer, Refused)
    assert answer.reason == "StaleStamp"
    assert (there.ended, there.replicas) == ([], 3)


@pytest.mark.parametrize(
    ("replicas", "leaving", "ended"),
    [
        pytest.param(3, ("a", "b"), ["a", "b"], id="as many as the number falls by"),
        pytest.param(2, ("a", "b"), ["a"], id="no more than that"),
        pytest.param(3, ("gone", "a", "b"), ["a", "b"], id="those that are gone do not count"),
        pytest.param(1, ("a", "b"), [], id="none if the number does not fall"),
    ],
)
def test_no_more_claims_end_than_the_number_falls_by(
    replicas: int, leaving: tuple[str, ...], ended: list[str]
) -> None:
    there = Karpenters(replicas, "a", "b", "c")
    assert scaled(there, 1, *leaving) == Done()
    assert (there.ended, there.replicas) == (ended, 1)
