"""`egs plan` without reading finished requests answers as with them (E3, D17)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, cast

import pytest

from reconciler.model.statuses import Records, UnreadRecord
from reconciler.queries.plans import planned
from reconciler.settings import DEFAULTS
from reconciler.sources.source import Source
from reconciler.status.branch import StatusBranch
from reconciler.status.render import request_path
from reconciler.status.status_cache import RECORDS_VERSION
from reconciler.status.tree import Loaded
from reconciler.store.document_cache import DocumentCache
from reconciler.store.store_port import Contents
from schemas.reading.reader import READER_VERSION
from tests.support.world import ADMIN, World, approval, cluster, gpr, gpr_path, project, slice_

OVER = ("a/p", "a/q", "a/r")
CHANGES: dict[str, dict[str, str | None]] = {
    "nothing": {},
    "another request": {gpr_path("a/new"): gpr("a", "new")},
    "the file of a request that is over": {gpr_path("a/p"): gpr("a", "p", nodes=2)},
    "it is refused": {gpr_path("a/p"): "kind: GPR"},
    "it is gone": {gpr_path("a/p"): None},
    "its slice": {"slices/a/slice.yaml": slice_("a", limits={"maxNodes": 1, "maxDuration": "30m"})},
    "the project": {"project.yaml": project(limits={"nodesPerRequest": 1})},
    "its cluster": {"clusters/east.yaml": cluster(nodes=1)},
    "an approval of it": {f"approvals/a/p/{ADMIN}.yaml": approval("a", "p", "sha256:" + "0" * 64)},
}


@dataclass
class Clone:
    """What a command reads, in memory; `thorough`: it reads every record and file, whatever it is told."""

    world: World
    records: DocumentCache
    thorough: bool
    is_folder = False

    def __post_init__(self) -> None:
        self.store: Contents = self.world.people
        self.cache = DocumentCache(None, READER_VERSION)
        settings = replace(DEFAULTS, status_branch="egs/status")
        self.branch = StatusBranch(self.world.people, settings, "reader", None, self.records)
        self.loads: list[Loaded] = []
        self.world.people.fetch(["main", "egs/status"])

    def skim(self) -> None:
        if not self.thorough:
            self.branch.skim()

    def contents(self, ref: str | None) -> tuple[Contents, str]:
        assert ref is not None
        return self.store, ref

    def commit_of(self, ref: str) -> str:
        return ref

    def shown(self, ref: str) -> str:
        return ref

    def loaded(self, now: datetime) -> Loaded:
        self.loads.append(self.branch.read(now))
        return self.loads[-1]

    def note(self, notes: Mapping[str, str]) -> None:
        self.branch.note(notes)


def answer(clone: Clone, refs: tuple[str, str]) -> dict[str, Any]:
    return planned(cast("Source", clone), clone.world.now, *refs).json()


def kept() -> DocumentCache:
    return DocumentCache(None, RECORDS_VERSION)


def with_some_over() -> World:
    """Three requests of a slice are over; one of another waits for an admin, one runs, one waits for it."""
    world = World(poll=timedelta(minutes=10))
    for key in OVER:
        world.file(key, nodes=1, duration="30m")
    world.run(world.now + timedelta(hours=3))
    world.file("b/waits", nodes=2, duration="1h")
    world.file("a/runs", nodes=2, duration="1h")
    world.file("a/next", nodes=2, duration="1h")
    world.run(world.now + timedelta(minutes=20))
    return world


def read_records(clone: Clone) -> set[str]:
    """Finished requests whose records were parsed."""
    requests = clone.loads[-1].facts.requests
    assert isinstance(requests, Records)
    return {
        key
        for key, one in requests.over.items()
        if not isinstance(one, UnreadRecord) or one._status is not None
    }


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_a_plan_is_the_same_without_reading_what_is_over(changes: dict[str, str | None]) -> None:
    world = with_some_over()
    base = world.people.fetch(["main"])["main"]
    head = world.commit(changes) if changes else base
    records = kept()
    for refs in ((head, base), (base, head)):
        want = answer(Clone(world, kept(), thorough=True), refs)
        assert answer(Clone(world, records, thorough=False), refs) == want  # with an empty cache
        assert answer(Clone(world, records, thorough=False), refs) == want  # with what the first one kept


def test_what_is_over_is_not_parsed_and_others_do_not_trust_that_it_was() -> None:
    world = with_some_over()
    main, records = world.people.fetch(["main"])["main"], kept()
    for _ in range(2):
        hasty = Clone(world, records, thorough=False)
        answer(hasty, (main, main))
        assert read_records(hasty) == set()
    thorough = Clone(world, records, thorough=True)
    answer(thorough, (main, main))
    assert read_records(thorough) == set(OVER)


def test_a_record_that_somebody_broke_below_its_phase_does_no_harm() -> None:
    """The controller did not write the newest commit, so its records are parsed."""
    world = with_some_over()
    main = world.people.fetch(["main"])["main"]
    want = answer(Clone(world, kept(), thorough=True), (main, main))
    path = request_path("a/p")
    world.commit({path: f"{world.text(path)}\n  phase: ["}, "egs/status")
    assert answer(Clone(world, kept(), thorough=False), (main, main)) == want
