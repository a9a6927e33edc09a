"""However many events one hour has, each is in a file that can be read back, or counted there (G6; design §5)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.events import Event, EventReason
from reconciler.status import event_files
from reconciler.status.branch import StatusBranch
from reconciler.status.event_files import PARTS_PER_HOUR, Row, age, appended
from reconciler.status.parse import OWN_BYTES, events_from
from reconciler.status.render import EVENT_BYTES, event_rows
from tests.support.world import World, at

FIRST = "events/2026-11-21/08-0.yaml"


def rows(count: int, letter: str = "m", begin: int = 0) -> list[Row]:
    """So many events, as long as they may be."""
    texts = (f"{i} {letter * EVENT_BYTES}" for i in range(begin, begin + count))
    names = ("n" * 63 + "/" + "m" * 63, "s" * 63, "c" * 63, "k" * 253)
    return [row for text in texts for row in event_rows([Event(at(0), EventReason.DELAYED, text, *names)])]


@pytest.mark.parametrize("letter", ["m", "\u65e5", "\udcff", '"'], ids=ascii)
def test_a_burst_of_long_events_fills_files_that_can_each_be_read(letter: str) -> None:
    told = rows(2500, letter)
    found = appended(FIRST, told[:10], told[10:])
    assert [age(file.path)[2] for file in found] == list(range(len(found)))
    assert all(len(file.data) <= OWN_BYTES for file in found)
    assert [row for file in found for row in events_from(file.data)] == told


def test_the_parts_of_a_whole_day_are_fewer_than_the_entries_of_a_folder() -> None:
    assert 24 * PARTS_PER_HOUR < 1000


@given(st.lists(st.integers(0, 12), max_size=6))
def test_what_an_hour_has_no_room_for_is_counted_in_its_last_event(bursts: list[int]) -> None:
    """Files of four events, three in an hour; each burst follows what the one before left."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(event_files, "EVENTS_PER_FILE", 4)
        patch.setattr(event_files, "PARTS_PER_HOUR", 3)
        path, last, files, told = FIRST, [], {}, []
        for count in bursts:
            fresh = [{"at": "x", "message": f"{len(told) + i} of them"} for i in range(count)]
            told += fresh
            written = appended(path, last, fresh) if fresh else ()
            files |= {file.path: list(file.rows) for file in written}
            path, last = (written[-1].path, list(written[-1].rows)) if written else (path, last)
    kept = [row for path in sorted(files, key=age) for row in files[path]]
    assert all(len(rows) <= 4 for rows in files.values())
    if len(told) <= 11:
        assert kept == told
    else:
        assert kept[:-1] == told[:11]
        assert kept[-1]["reason"] == "EventsOmitted"
        assert kept[-1]["message"].startswith(f"{len(told) - 11} more events")


def test_a_burst_is_found_again_by_the_next_controller_which_goes_on_after_it() -> None:
    world = World()
    world.run(at(0))
    burst = [Event(at(0), EventReason.FOLLOWED, f"{i} of many") for i in range(2500)]
    world.controller._pending.note(burst)
    world.run(at(1))
    world.people.fetch([world.settings.status_branch])
    branch = StatusBranch(world.people, world.settings, "next")
    assert branch.take_over(at(1)) is not None
    assert all(map(branch.has_told, burst))
    world.controller = world.start()
    world.run(at(2))
    texts = [world.text(FIRST.replace("08-0", f"08-{part}")) or "" for part in range(4)]
    told = [row["message"] for text in texts if text for row in events_from(text.encode())]
    assert [message for message in told if message.endswith("of many")] == [e.message for e in burst]
    assert "took over" in told[-1]
