"""Old states of the status branch are kept, and found again: bounded, crash-safe, harmless where forbidden."""

from __future__ import annotations

import itertools
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from reconciler.settings import Settings
from reconciler.status.history import History
from reconciler.status.kept_states import Bounds, Kept, is_worth, kept, kept_message, week_of
from reconciler.status.past_states import Gone, PastStates
from reconciler.store.branch_writer import BranchWriter
from reconciler.store.git.git_store import GitStore
from reconciler.store.memory_store import MemoryStore
from reconciler.store.store_port import Draft, Outcome, Person, Store
from reconciler.store.write_decision import WriterSettings
from tests.support import repos
from tests.support.memory_remote import Fate, MemoryRemote

NOW = datetime(2026, 11, 23, 8, 0, tzinfo=UTC)
"""A Monday."""
HOUR, MINUTE, DAY = timedelta(hours=1), timedelta(minutes=1), timedelta(days=1)
BRANCH, PREFIX = "egs/status", "egs/history"
ROBOT = Person("egs", "egs@example.com")
BOUNDS = Bounds(90 * DAY, 32_000_000)
SETTINGS = Settings(repo="", state=Path())
FREE = WriterSettings(pushes_per_minute=None)


def writer(
    store: Store, name: str = "w-1", bounds: Bounds = BOUNDS, settings: WriterSettings = FREE
) -> BranchWriter:
    keeps = History(store, PREFIX, ROBOT, bounds).keep
    return BranchWriter(store, BRANCH, name, ROBOT, settings, keeps=keeps)


def run(
    made: BranchWriter, begin: datetime, end: datetime, every: timedelta, size: int = 10
) -> list[tuple[datetime, str]]:
    """Writes every so often; the commits by time."""
    found = []
    at = begin
    while at < end:
        content = f"{at.isoformat()} ".encode() * (size // 10)
        assert made.write({"f": content}, "1" * 40, at, "Status").landed
        assert made.tip is not None
        found.append((at, made.tip))
        at += every
    return found


def past(store: Store) -> PastStates:
    store.fetch([BRANCH])
    return PastStates(store, SETTINGS, None, itertools.count(0, 1000).__next__)


@pytest.fixture
def remote() -> MemoryRemote:
    return MemoryRemote()


@pytest.fixture
def store(remote: MemoryRemote) -> MemoryStore:
    return MemoryStore(remote)


def histories(remote: MemoryRemote) -> dict[str, str]:
    return {name: tip for name, tip in remote.tips.items() if name.startswith(PREFIX)}


def test_of_each_hour_the_last_state_is_kept_when_the_history_is_left_behind(store, remote) -> None:
    made = writer(store)
    made.take_over(NOW)
    commits = run(made, NOW, NOW + 3 * DAY, 20 * MINUTE)
    found = past(MemoryStore(remote))
    kept_at = {state.at for state in found.states()}
    for at, oid in commits:
        if at + 20 * MINUTE >= NOW + 3 * DAY - HOUR or (at + 20 * MINUTE).hour != at.hour:
            assert at in kept_at
            state = found.find(oid, None)
            assert (state.status, state.at) == (oid, at)
            assert store.read_path(state.commit, "f") == store.read_path(oid, "f")
    assert len(histories(remote)) == 1


def test_a_moment_shows_the_newest_state_by_then(store, remote) -> None:
    made = writer(store)
    made.take_over(NOW)
    run(made, NOW, NOW + 3 * DAY, 20 * MINUTE)
    found = past(MemoryStore(remote))
    assert found.find("", NOW + 5 * HOUR + 59 * MINUTE).at == NOW + 5 * HOUR + 40 * MINUTE
    assert found.find("", NOW + 5 * HOUR + 39 * MINUTE).at == NOW + 4 * HOUR + 40 * MINUTE
    with pytest.raises(Gone, match="the oldest is of 2026-11-23T08:"):
        found.find("", NOW - HOUR)


def test_what_is_gone_is_said_to_be_gone(store, remote) -> None:
    made = writer(store)
    made.take_over(NOW)
    commits = run(made, NOW, NOW + 3 * DAY, 20 * MINUTE)
    found = past(MemoryStore(remote))
    for name in (commits[0][1], "f" * 40):
        with pytest.raises(Gone, match="not kept any more"):
            found.find(name, None)
    newest = commits[-1][1]
    assert found.find(newest[:7], None).status == newest


def test_a_short_walk_answers_from_the_branch_without_the_remote(store, remote) -> None:
    made = writer(store)
    made.take_over(NOW)
    commits = run(made, NOW, NOW + HOUR, MINUTE)
    reader = MemoryStore(remote)
    found = past(reader)
    remote.hook = lambda _: Fate.REFUSE
    assert [found.find(oid, None).at for _, oid in commits] == [at for at, _ in commits]


def test_there_are_never_more_branches_and_the_oldest_week_goes_first(store, remote) -> None:
    made = writer(store)
    made.take_over(NOW)
    run(made, NOW, NOW + 200 * DAY, 6 * HOUR)
    assert len(histories(remote)) == BOUNDS.slots == 14
    states = past(MemoryStore(remote)).states()
    assert NOW + 200 * DAY - states[0].at >= 90 * DAY
    assert NOW + 200 * DAY - states[0].at <= 99 * DAY
    gaps = [after.at - before.at for before, after in itertools.pairwise(states)]
    assert max(gaps) == 6 * HOUR


def test_a_busy_fleet_keeps_fewer_states_but_one_a_day(store, remote) -> None:
    made = writer(store, bounds=Bounds(90 * DAY, 20_000))
    made.take_over(NOW)
    run(made, NOW, NOW + 8 * DAY, HOUR, size=1000)
    first = next(
        c
        for c in (kept(store.commit(tip)) for _, tip in sorted(histories(remote).items()))
        if c and c.week == week_of(NOW)
    )
    assert first.written <= 20_000 + 7 * 3_000
    days = {state.at.date() for state in past(MemoryStore(remote)).states()}
    assert len(days) == 9


@pytest.mark.parametrize(
    ("after", "size", "want"),
    [
        pytest.param(timedelta(hours=84), 40, True, id="half of the week may use half of its bytes"),
        pytest.param(timedelta(hours=84), 41, False, id="and no more"),
        pytest.param(timedelta(hours=97), 10**9, True, id="the first state of a day is always kept"),
    ],
)
def test_bytes_are_spread_over_the_week(after: timedelta, size: int, want: bool) -> None:
    monday = NOW.replace(hour=0)
    last = Kept("a", "b", monday + timedelta(hours=83), week_of(NOW), 10)
    assert is_worth(monday + after, size, last, Bounds(90 * DAY, 100)) is want


def test_a_crash_between_keeping_and_leaving_behind_keeps_nothing_twice(store, remote) -> None:
    made = writer(store)
    made.take_over(NOW)
    run(made, NOW, NOW + DAY, 30 * MINUTE)
    assert History(store, PREFIX, ROBOT, BOUNDS).keep(made.tip or "", NOW + DAY) == 1
    before = histories(remote)
    later = writer(MemoryStore(remote), "w-2")
    later.take_over(NOW + DAY)
    assert History(store, PREFIX, ROBOT, BOUNDS).keep(made.tip or "", NOW + DAY) == 0
    assert histories(remote) == before
    run(later, NOW + DAY, NOW + 2 * DAY, 30 * MINUTE)
    found = [state.at for state in past(MemoryStore(remote)).states() if state.at < NOW + DAY]
    assert found == [NOW + number * HOUR + 30 * MINUTE for number in range(24)]


def test_a_remote_that_does_not_answer_postpones_it_and_does_not_hold_up_writes(store, remote) -> None:
    made = writer(store)
    made.take_over(NOW)
    run(made, NOW, NOW + DAY, 30 * MINUTE)
    remote.hook = lambda op: Fate.LOSE if op.branch.startswith(PREFIX) else Fate.PASS
    run(made, NOW + DAY, NOW + DAY + 3 * HOUR, 30 * MINUTE)
    assert not histories(remote)
    assert len(store.log(made.tip or "", 999)) == 1 + 54  # not left behind yet
    remote.hook = lambda _: Fate.PASS
    run(made, NOW + DAY + 3 * HOUR, NOW + DAY + 4 * HOUR, 30 * MINUTE)
    assert len(store.log(made.tip or "", 999)) <= 2
    assert len(past(MemoryStore(remote)).states()) >= 27


def test_a_history_that_cannot_be_kept_for_long_is_left_behind_anyway(store, remote) -> None:
    made = writer(store)
    made.take_over(NOW)
    remote.hook = lambda op: Fate.LOSE if op.branch.startswith(PREFIX) else Fate.PASS
    run(made, NOW, NOW + 2 * DAY + HOUR, 30 * MINUTE)
    assert len(store.log(made.tip or "", 999)) <= 3


def test_commits_of_others_on_a_history_branch_count_for_nothing(remote) -> None:
    """With keys, only what controllers signed is read or continued."""
    store = MemoryStore(remote, lambda _: "ours")
    signed = lambda commit: commit.signature == "ours"  # noqa: E731
    keeps = History(store, PREFIX, ROBOT, BOUNDS, signed).keep
    made = BranchWriter(store, BRANCH, "w-1", ROBOT, FREE, keeps=keeps)
    made.take_over(NOW)
    run(made, NOW, NOW + 2 * DAY, HOUR)
    (branch, tip), *_ = histories(remote).items()
    stranger = MemoryStore(remote)
    stranger.fetch([branch])
    text = kept_message(store.commit(tip), week_of(NOW), 0)
    forged = stranger.write(Draft({"f": b"forged"}, text, ROBOT, NOW + 2 * DAY, tip, tip))
    assert stranger.push(branch, forged, tip) is Outcome.COMMITTED
    before = PastStates(MemoryStore(remote), SETTINGS, signed, lambda: 0.0).states()
    assert before
    assert forged not in {state.commit for state in before}
    run(made, NOW + 2 * DAY, NOW + 3 * DAY, HOUR)
    after = PastStates(MemoryStore(remote), SETTINGS, signed, lambda: 0.0).states()
    assert {state.status for state in before} < {state.status for state in after}
    assert forged not in {commit.oid for commit in store.log(histories(remote)[branch], 999)}


def test_it_can_be_switched_off(store, remote) -> None:
    made = writer(store, bounds=Bounds(timedelta(), 1))
    made.take_over(NOW)
    run(made, NOW, NOW + 2 * DAY, HOUR)
    assert not histories(remote)


def test_its_pushes_count_in_the_budget(store) -> None:
    made = writer(store, settings=WriterSettings(pushes_per_minute=2, reroot_after=HOUR))
    made.take_over(NOW)
    assert made.write({"f": b"1"}, None, NOW + HOUR, "Status").landed
    assert not made.write({"f": b"2"}, None, NOW + HOUR, "Status").landed


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    return repos.bare(tmp_path / "remote.git", {"project.yaml": "kind: Project\n"})


def test_on_git_with_a_server_that_forbids_replacing_a_branch(bare: Path, tmp_path: Path, caplog) -> None:
    repos.git(bare, "config", "receive.denyNonFastForwards", "true")
    store = GitStore(str(bare), tmp_path / "mirror")
    bounds = Bounds(7 * DAY, 64_000_000)
    made = writer(store, bounds=bounds)
    made.take_over(NOW)
    run(made, NOW, NOW + 22 * DAY, 8 * HOUR)
    store.close()
    reader = GitStore(str(bare), tmp_path / "reader")
    states = past(reader).states()
    assert len({name for name in reader.tips() if name.startswith(PREFIX)}) == bounds.slots == 2
    assert max(after.at - before.at for before, after in itertools.pairwise(states)) == 8 * HOUR
    assert reader.read_path(states[5].commit, "f")
    reader.close()


def test_on_git_with_a_server_that_refuses_the_branches(bare: Path, tmp_path: Path, caplog) -> None:
    hook = bare / "hooks" / "update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text('#!/bin/sh\ncase "$1" in refs/heads/egs/history/*) exit 1;; esac\n')
    hook.chmod(0o755)
    store = GitStore(str(bare), tmp_path / "mirror")
    made = writer(store)
    made.take_over(NOW)
    run(made, NOW, NOW + 3 * DAY, 4 * HOUR)
    assert len(store.log(made.tip or "", 99)) <= 7  # left behind as ever
    warnings = [
        r.getMessage() for r in caplog.records if r.levelno == logging.WARNING and "history" in r.getMessage()
    ]
    assert len(warnings) == 1
    store.close()
