"""What is kept between two lives of a process is what the status branch has, and no more (D17)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.status import status_cache
from reconciler.status.branch import StatusBranch
from reconciler.status.status_cache import RECORDS_VERSION, Remembered
from reconciler.store.document_cache import DocumentCache
from schemas.documents.base import Metadata
from schemas.documents.gpr import RequestSpec
from schemas.status.gpr_status import GPRRecord, GPRStatus, Phase
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


def test_of_very_many_records_a_portion_is_kept_per_call_and_all_are_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(status_cache, "PORTION", 2)
    world, cache = World(), DocumentCache(None, RECORDS_VERSION)
    remembered, record = Remembered(world.people, cache), a_record()
    oids = {f"slices/a/gprs/r{i}.yaml": f"{i:040x}" for i in range(6)}
    remembered.keep(dict.fromkeys(oids.values(), record))
    assert len(kept(cache)) == 2
    assert remembered.of(oids) == (dict.fromkeys(oids, record), {})
    remembered.forget([f"{3:040x}"])
    remembered.note({f"{4:040x}": "quiet"})
    assert remembered.of(oids)[0].keys() == {path for path in oids if path[-6] not in "34"}
    assert remembered.of(oids)[1] == {"slices/a/gprs/r4.yaml": "quiet"}
    for _ in range(2):
        remembered.keep({})
    assert kept(cache).keys() == {oid for oid in oids.values() if oid[-1] != "3"}
    remembered.keep({f"{7:040x}": record, f"{8:040x}": record, f"{9:040x}": record})
    remembered.retain([f"{9:040x}"])
    assert remembered.of({"new": f"{9:040x}", "old": f"{8:040x}"}) == ({"new": record}, {})


def a_record() -> GPRRecord:
    """Of a request that waits."""
    spec = RequestSpec(slice="a", nodes=1, duration=timedelta(hours=1))
    status = GPRStatus(phase=Phase.QUEUED, uid="u", filed_at=at(0), accepted_spec=spec, spec_digest="")
    return GPRRecord(metadata=Metadata(name="x"), status=status)
