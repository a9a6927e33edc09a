"""A large push is read in portions: no cycle waits for all of it, and it counts as one change when it is read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from reconciler.documents import read_ahead
from reconciler.documents.in_force import Desired
from schemas.status.gpr_status import Phase
from tests.support.world import World, at, gpr, gpr_path

READ: list[int] = []


@pytest.fixture(autouse=True)
def _portions(monkeypatch: pytest.MonkeyPatch) -> None:
    read = Desired._read
    READ.clear()

    def counted(self: Desired, entries: Iterable[Any]) -> Any:
        entries = list(entries)
        known = self._cache.get_many([entry.oid for entry in entries if entry.oid])
        READ.append(sum(entry.oid is not None and entry.oid not in known for entry in entries))
        return read(self, entries)

    monkeypatch.setattr(Desired, "_read", counted)
    monkeypatch.setattr(read_ahead, "PORTION", 2)


def flooded(files: int) -> World:
    """A world that runs, and a push of so many requests."""
    world = World()
    world.run(at(1))
    READ.clear()
    world.commit({gpr_path(f"a/n{i}"): gpr("a", f"n{i}") for i in range(files)})
    return world


def test_a_flood_is_read_in_portions_and_counts_as_one_change() -> None:
    world = flooded(7)
    seen = []
    for _ in range(5):
        cycle = world.controller.cycle(at(2))
        seen.append(len(world.facts().requests))
        assert cycle.wake == at(2) or seen[-1] == 7, "it goes on at once"
    assert seen == [0, 0, 0, 7, 7]
    assert max(READ) <= 2
    assert {status.filed_at for status in world.facts().requests.values()} == {at(2)}


def test_a_small_push_counts_in_the_cycle_that_sees_it() -> None:
    world = flooded(2)
    world.controller.cycle(at(2))
    assert len(world.facts().requests) == 2


def test_what_is_in_force_goes_on_meanwhile() -> None:
    """A strict end and a start fall due while a flood is read."""
    world = World()
    world.file("b/runs", duration="10m")
    world.run(at(3))
    world.file("a/waits", notBefore="2026-11-21T08:15:00Z")
    world.run(at(4))
    assert world.status("b/runs").end_time == at(12)
    world.commit({gpr_path(f"b/n{i}"): gpr("b", f"n{i}") for i in range(100)})
    for minute in (11.9, 12, 12.7, 13.5, 14, 15, 15):
        world.controller.cycle(at(minute))
    assert len(world.facts().requests) == 2, "the flood is not read to its end"
    assert (world.status("b/runs").phase, world.status("b/runs").end_time) == (Phase.COMPLETED, at(12))
    waits = world.status("a/waits")
    assert (waits.phase, waits.start_time, waits.slips) == (Phase.PROVISIONED, at(15), ())


def test_a_push_on_top_of_a_flood_reads_nothing_twice() -> None:
    world = flooded(7)
    world.controller.cycle(at(2))
    world.file("b/late")
    while not world.facts().requests:
        world.controller.cycle(at(2))
    assert len(world.facts().requests) == 8
    assert sum(READ) == 8


def test_files_that_no_cache_keeps_are_read_once_ahead() -> None:
    """What is no document at all is read, found wanting, and told; it holds nothing up."""
    world = World()
    world.run(at(1))
    world.commit({gpr_path(f"a/n{i}"): "\x00" * (i + 1) for i in range(5)})
    for _ in range(5):
        cycle = world.controller.cycle(at(2))
    assert cycle.wake > at(2)
