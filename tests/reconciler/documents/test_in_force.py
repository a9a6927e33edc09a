"""The cache of documents stays as large as the repository, whatever its history."""

from __future__ import annotations

from reconciler.documents.in_force import Desired
from reconciler.store.document_cache import DocumentCache
from schemas.reading.reader import READER_VERSION
from tests.support.world import World, gpr, gpr_path


def test_a_start_forgets_documents_that_are_gone() -> None:
    """The cache survives restarts, and is bounded."""
    world, cache = World(), DocumentCache(None, READER_VERSION)
    cache.put_many({"0" * 40: b"{}"})
    commit = world.commit({gpr_path("a/x"): gpr("a", "x")})
    world.people.fetch(["main"])
    Desired(world.people, cache).update(commit)
    live = {entry.oid for entry in world.people.diff(None, commit) if entry.oid is not None}
    assert set(cache.get_many({"0" * 40, *live})) == live
