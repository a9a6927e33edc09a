"""Leaving finished requests unread changes nothing: with what was kept and without it the same is so (D17, C5)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from reconciler.deciding.preview import Looked, alike, preview
from reconciler.documents.in_force import Desired
from reconciler.planning.snapshot import build_snapshot
from reconciler.status.status_cache import RECORDS_VERSION
from reconciler.store.document_cache import DocumentCache
from schemas.reading.reader import READER_VERSION
from tests.support.world import ADMIN, World, approval, cluster, gpr, gpr_path, project, slice_

pytestmark = pytest.mark.slow

CHANGES: dict[str, dict[str, str | None]] = {
    "nothing": {},
    "the file of a request that is over": {gpr_path("a/p"): gpr("a", "p", nodes=2)},
    "it is refused": {gpr_path("a/p"): "kind: GPR"},
    "it is gone": {gpr_path("a/p"): None},
    "all of them are gone": {gpr_path(f"a/{name}"): None for name in "pqr"},
    "its slice": {"slices/a/slice.yaml": slice_("a", limits={"maxNodes": 1, "maxDuration": "30m"})},
    "its slice is refused": {"slices/a/slice.yaml": "kind: Slice"},
    "its slice is gone": {"slices/a/slice.yaml": None},
    "the project": {"project.yaml": project(limits={"nodesPerRequest": 1})},
    "its cluster": {"clusters/east.yaml": cluster(nodes=1)},
    "its cluster is gone": {"clusters/east.yaml": None},
    "an approval of it": {
        f"approvals/a/p/{ADMIN}.yaml": approval("a", "p", "sha256:" + "0" * 64),
    },
    "another request": {gpr_path("a/new"): gpr("a", "new")},
}


def with_some_over() -> World:
    """Three requests of a slice are over, one of another waits for an admin."""
    world = World(poll=timedelta(minutes=10))
    for name in "pqr":
        world.file(f"a/{name}", nodes=1, duration="30m")
    world.file("b/waits", nodes=2, duration="1h")
    world.run(world.now + timedelta(hours=4))
    world.controller = world.start()
    world.run(world.now + timedelta(minutes=1))
    return world


def seen_by(world: World, *, remembers: bool) -> dict[str, Any]:
    """What a controller makes of the repository that begins with what the last one kept, or with nothing."""
    if not remembers:
        world.documents = DocumentCache(None, READER_VERSION)
        world.records = DocumentCache(None, RECORDS_VERSION)
    world.controller = world.start()
    cycles = world.run(world.now + timedelta(minutes=1))
    assert cycles[-1].facts is not None
    assert cycles[-1].wanted is not None
    return {
        "records": dict(cycles[-1].facts.requests),
        "files": {key: filed.spec for key, filed in cycles[-1].wanted.filed.items()},
        "problems": world.text("problems.yaml"),
        "queue": world.text("queue.yaml"),
        "told": [event for cycle in cycles for event in cycle.events if "took over" not in event.message],
    }


@pytest.mark.parametrize("when", ["before it begins", "while it runs"])
@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_a_change_is_met_the_same_way(changes: dict[str, str | None], when: str) -> None:
    found = []
    for remembers in (True, False):
        world = with_some_over()
        if when == "while it runs":
            seen_by(world, remembers=remembers)
        if changes:
            world.commit(changes)
        if when == "while it runs":
            world.run(world.now + timedelta(minutes=1))
        found.append(seen_by(world, remembers=remembers))
    assert found[0] == found[1]


def test_two_commits_are_read_as_each_alone() -> None:
    """`egs plan --against`: what both have alike is read once."""
    for changes in CHANGES.values():
        world = with_some_over()
        base = world.people.fetch(["main"])["main"]
        head = world.commit(changes) if changes else base
        world.people.fetch(["main"])
        first = Desired(world.people, DocumentCache(None, READER_VERSION))
        first.update(base)
        twin, alone = first.twin(), Desired(world.people, DocumentCache(None, READER_VERSION))
        facts = world.facts()
        for desired in (twin, alone):
            desired.update(head)
        assert twin.problems == alone.problems
        assert twin.accepted_files() == alone.accepted_files()
        assert twin.wanted(facts) == alone.wanted(facts)
        looked, wanted = Looked(), first.wanted(facts)
        assert preview(facts, wanted, world.now, looked=looked) == preview(facts, wanted, world.now)
        beside = alike(twin.wanted(facts), wanted)
        assert beside == alone.wanted(facts)
        found = preview(facts, beside, world.now, looked=looked)
        assert found == preview(facts, alone.wanted(facts), world.now)
        assert build_snapshot(beside, found, None) == build_snapshot(alone.wanted(facts), found, None)
