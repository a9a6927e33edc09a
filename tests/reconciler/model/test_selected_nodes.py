"""Nodes that a selector finds: in the plan, on the status branch, and when the cluster does not answer (G1, G5)."""

from __future__ import annotations

from dataclasses import replace

from reconciler.documents.in_force import Desired
from reconciler.model.cluster_port import ClusterView, NodeView, UnmanagedNode
from reconciler.model.facts import Facts, Wanted
from reconciler.model.pools import manifest_pools
from reconciler.model.selected_nodes import found_in, unmanaged_in, with_found
from reconciler.status.parse import OWN_BYTES
from reconciler.status.render import MAX_NAMES, render
from reconciler.store.document_cache import DocumentCache
from schemas.documents.cluster import Cluster
from schemas.documents.project import Project
from schemas.reading.reader import READER_VERSION
from schemas.status.inventory import UnmanagedNode as Shown
from tests.support.readback import facts_from
from tests.support.world import World, at, cluster, parsed, project

POOL = {"gpuShape": "H100-80GB", "gpusPerNode": 8, "memoryPerGpu": 80}
POOLS = [
    {**POOL, "name": "found", "selector": {"pool": "found"}},
    {**POOL, "name": "named", "nodes": ["n1"]},
]


def wanted() -> Wanted:
    east = parsed("clusters/east.yaml", cluster("east", driver="kubernetes", pools=POOLS))
    admin = parsed("project.yaml", project())
    assert isinstance(east, Cluster)
    assert isinstance(admin, Project)
    clusters = {"east": east.spec}
    pools = manifest_pools(clusters)
    return Wanted("c0", admin.spec, clusters, {}, {}, {}, pools, manifests=clusters)


def view(**pools: str) -> dict[str, ClusterView]:
    """Nodes by name, with the pool that the cluster says they are of."""
    return {"east": ClusterView(at(0), {n: NodeView(n, p, ready=True) for n, p in pools.items()}, {})}


def names(found: Wanted) -> dict[str, tuple[str, ...]]:
    return {key[1]: pool.nodes for key, pool in found.pools.items()}


def test_a_pool_has_the_nodes_that_the_cluster_shows_in_the_order_of_their_names() -> None:
    seen = view(b="found", a="found", n1="named", other="")
    found = with_found(wanted(), found_in(wanted(), seen))
    assert names(found) == {"found": ("a", "b"), "named": ("n1",)}
    assert found.clusters["east"].pools[0].node_names() == ("a", "b")
    assert found.manifests == wanted().manifests


def test_a_node_that_a_pool_names_is_found_by_no_other() -> None:
    assert names(with_found(wanted(), found_in(wanted(), view(n1="found", a="found"))))["found"] == ("a",)


def test_what_was_found_stands_while_the_cluster_is_silent_and_goes_when_it_shows_no_node() -> None:
    before = with_found(wanted(), {("east", "found"): ("a", "b")})
    assert names(with_found(before, found_in(before, {})))["found"] == ("a", "b")
    assert names(with_found(before, found_in(before, view(b="found"))))["found"] == ("b",)
    assert names(with_found(before, found_in(before, view())))["found"] == ()


def test_nothing_new_is_the_same_object() -> None:
    before = with_found(wanted(), {("east", "found"): ("a",)})
    assert with_found(before, found_in(before, view(a="found"))) is before


def test_a_pool_that_is_gone_keeps_no_nodes() -> None:
    assert with_found(wanted(), {("east", "gone"): ("a",), ("west", "found"): ("b",)}) == wanted()


def test_many_long_names_are_read_back_from_files_of_less_than_a_megabyte() -> None:
    nodes = tuple(f"{i:06}.{'x' * 60}.{'y' * 60}.{'z' * 60}.{'w' * 60}" for i in range(2 * MAX_NAMES + 1))
    unmanaged = {"east": (Shown(name="old.example", product="Tesla-V100", gpus=4),)}
    found = with_found(wanted(), {("east", "found"): nodes})
    facts = Facts(at(0), "c0", found=found.found, unmanaged=unmanaged)
    files = render(facts, found, (), ())
    assert max(map(len, files.values())) < OWN_BYTES
    assert sum(path.startswith("clusters/east/pools/found/") for path in files) == 3
    assert replace(facts_from(files, at(0), "c0"), at=at(0)) == facts


def test_nodes_outside_every_pool_are_written_down_and_no_more_than_a_thousand() -> None:
    """A12."""
    outside = tuple(UnmanagedNode(f"n{i:04}", "Tesla-V100", 4) for i in reversed(range(1200)))
    shown = unmanaged_in(ClusterView(at(0), {}, {}, unmanaged=outside))
    assert len(shown) == 1000
    assert shown[0] == Shown(name="n0000", product="Tesla-V100", gpus=4)


def test_whoever_reads_the_status_plans_with_the_nodes_that_were_found() -> None:
    """As `egs plan` and `egs wait` do: they ask no cluster."""
    world = World({"clusters/east.yaml": cluster("east", driver="kubernetes", pools=POOLS)})
    real = parsed(
        "clusters/east.yaml", cluster("east", pools=[{**POOL, "name": "found", "nodes": ["b", "a"]}])
    )
    assert isinstance(real, Cluster)
    world.fleets["east"] = real.spec
    world.run(at(1))
    reader = Desired(world.people, DocumentCache(None, READER_VERSION))
    reader.update(world.people.fetch(["main"])["main"])
    assert names(reader.wanted(world.facts())) == {"found": ("a", "b"), "named": ("n1",)}
