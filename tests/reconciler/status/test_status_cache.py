"""What is kept between two lives of a process is what the status branch has, and no more (D17)."""

from __future__ import annotations

from reconciler.status.branch import StatusBranch
from reconciler.status.status_cache import RECORDS_VERSION
from reconciler.store.document_cache import DocumentCache
from tests.support.world import World, at, gpr_path


def kept(cache: DocumentCache) -> dict[str, int]:
    """The size of what is kept of each blob."""
    return dict(cache._database.execute("SELECT oid, length(content) FROM documents"))


def blobs(world: World) -> set[str]:
    """Records of requests on the status branch."""
    tip = world.people.fetch([world.settings.status_branch])[world.settings.status_branch]
    return {e.oid for e in world.people.diff(None, tip) if e.path.startswith("slices/") and e.oid}


def test_a_request_that_is_over_leaves_a_few_bytes_and_one_that_is_gone_leaves_none() -> None:
    world = World()
    for i in range(4):
        world.file(f"a/r{i}", duration="20m")
    world.run(at(60))
    assert kept(world.records).keys() == blobs(world)
    world.run(at(200))
    assert {str(status.phase) for status in world.facts().requests.values()} == {"Completed"}
    assert kept(world.records).keys() == blobs(world)
    assert max(kept(world.records).values()) < 100
    world.commit({gpr_path("a/r0"): None})
    world.run(at(201))
    assert kept(world.records).keys() == blobs(world)
    assert len(blobs(world)) == 3


def test_a_reader_keeps_what_the_branch_has_now() -> None:
    world, cache = World(), DocumentCache(None, RECORDS_VERSION)
    world.file("a/x", duration="1h")
    world.file("b/y", duration="1h")
    for minute in (0, 5, 70):
        world.run(at(minute))
        world.people.fetch([world.settings.status_branch])
        StatusBranch(world.people, world.settings, "reader", cache=cache).read(at(minute))
        assert kept(cache).keys() == blobs(world)
