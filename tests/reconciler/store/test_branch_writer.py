"""One writer a branch (design section 5): terms, unknown outcomes, re-roots, the push budget."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.store.branch_writer import BranchWriter
from reconciler.store.memory_store import MemoryStore
from reconciler.store.store_port import Outcome, Person
from reconciler.store.trailers import Epoch, Stamp, message, parse_stamp
from reconciler.store.write_decision import WriterSettings
from reconciler.store.write_results import NotLeading, Postponed, Unchanged, Written
from tests.support import repos
from tests.support.memory_remote import Fate, MemoryRemote

NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
BRANCH = "egs/status"
ROBOT = Person("egs", "egs@example.com")
INTENT = "1" * 40
FREE = WriterSettings(pushes_per_minute=None)


def writer(store, name="w-1", settings=FREE) -> BranchWriter:
    return BranchWriter(store, BRANCH, name, ROBOT, settings)


def leading(store, name="w-1", settings=FREE, now=NOW) -> BranchWriter:
    made = writer(store, name, settings)
    assert made.take_over(now).landed
    return made


def stamp_of(store) -> Stamp:
    tip = store.fetch([BRANCH])[BRANCH]
    stamp = parse_stamp(store.commit(tip).trailers)
    assert stamp is not None
    return stamp


def contents(store) -> dict[str, bytes]:
    tip = store.fetch([BRANCH])[BRANCH]
    return {entry.path: store.read([entry.oid])[entry.oid] for entry in store.diff(None, tip)}


@pytest.fixture
def remote_memory() -> MemoryRemote:
    return MemoryRemote()


@pytest.fixture
def store(remote_memory) -> MemoryStore:
    return MemoryStore(remote_memory)


# -- terms ---------------------------------------------------------------------------------------------------


def test_nothing_is_written_before_the_branch_is_taken(store):
    assert writer(store).write({"a": b"1"}, INTENT, NOW, "First") == NotLeading(None)


def test_the_first_commit_of_a_life_takes_the_next_term(store, remote_memory):
    first = leading(store)
    first.write({"a": b"1"}, INTENT, NOW, "First")
    assert stamp_of(store) == Stamp("w-1", 1, 2, INTENT, Epoch(NOW, 2, 1))
    second = leading(MemoryStore(remote_memory), "w-2")
    assert (second.term, stamp_of(store).writer, stamp_of(store).term) == (2, "w-2", 2)
    assert contents(store) == {"a": b"1"}


def test_the_writer_before_is_fenced_and_may_come_back(store, remote_memory):
    old = leading(store)
    new = leading(MemoryStore(remote_memory), "w-2")
    assert old.write({"a": b"old"}, INTENT, NOW, "Late") == Written(Outcome.CONFLICT)
    assert old.superseded
    assert not old.leading
    assert old.alarms == ()
    refused = old.write({"a": b"old"}, INTENT, NOW, "Late")
    assert isinstance(refused, NotLeading)
    assert refused.by is not None
    assert (refused.by.writer, refused.by.term) == ("w-2", 2)
    assert new.write({"a": b"new"}, INTENT, NOW, "Now").landed
    assert old.take_over(NOW).landed
    assert old.term == 3
    assert not old.superseded


def test_a_fetch_is_enough_to_learn_of_a_successor(store, remote_memory):
    old = leading(store)
    leading(MemoryStore(remote_memory), "w-2")
    assert old.check()
    store.fetch([BRANCH])
    assert not old.check()
    assert old.superseded


def test_a_follower_says_once_that_it_follows(store, remote_memory, caplog):
    caplog.set_level(logging.INFO)
    leader, follower = leading(MemoryStore(remote_memory), "w-2"), writer(store)
    for number in range(3):
        leader.write({"a": b"%d" % number}, INTENT, NOW, "Step")
        store.fetch([BRANCH])
        assert not follower.check()
    assert [record.getMessage() for record in caplog.records] == [
        "writer superseded branch=egs/status term=0 by_term=1 by=w-2"
    ]


def test_of_two_take_overs_at_once_one_lands_and_the_other_knows(store, remote_memory):
    leading(store)
    slow, fast = writer(MemoryStore(remote_memory), "w-2"), writer(MemoryStore(remote_memory), "w-3")

    def race(operation):
        if operation.kind == "push" and operation.when == "before":
            remote_memory.hook = lambda _: Fate.PASS
            assert fast.take_over(NOW).landed
        return Fate.PASS

    remote_memory.hook = race
    assert slow.take_over(NOW) == Written(Outcome.CONFLICT)
    assert slow.superseded
    assert slow.term == 0
    assert slow.alarms == ()
    assert stamp_of(store).writer == "w-3"


# -- strangers -----------------------------------------------------------------------------------------------


def test_a_strangers_commit_is_an_alarm_and_asks_for_a_take_over(remote, open_store):
    ours = open_store()
    made = leading(ours)
    made.write({"a": b"1"}, INTENT, NOW, "First")
    repos.commit(remote, {"a": "edited by hand"}, BRANCH)
    assert made.write({"b": b"2"}, INTENT, NOW, "Second") == Written(Outcome.CONFLICT)
    assert not made.leading
    assert not made.superseded
    assert "foreign" in made.alarms[0]
    assert made.write({"b": b"2"}, INTENT, NOW, "Second") == NotLeading(None)
    assert made.take_over(NOW).landed
    assert made.term == 2
    assert made.alarms
    # What the stranger changed is seen as a difference and put right.
    assert made.write({"a": b"1"}, INTENT, NOW, "Again").landed
    assert contents(ours) == {"a": b"1"}
    assert made.alarms == ()


def test_a_branch_that_vanished_is_an_alarm(store, remote_memory):
    made = leading(store)
    remote_memory.delete(BRANCH)
    assert made.write({"a": b"1"}, INTENT, NOW, "First") == Written(Outcome.CONFLICT)
    assert "gone" in made.alarms[0]
    assert made.take_over(NOW).landed
    assert made.term == 2


def test_copied_trailers_make_nobody_the_writer(remote, open_store):
    made = leading(open_store())
    repos.commit(remote, {"a": "x"}, BRANCH, message=message("Forged", Stamp("w-1", 1, 2, INTENT)))
    assert made.write({"b": b"2"}, INTENT, NOW, "Second") == Written(Outcome.CONFLICT)
    assert made.alarms


def test_a_path_that_is_no_plain_file_is_written_over(remote, open_store):
    link = repos.write_object(remote, "blob", b"1")
    tree = repos.write_object(remote, "tree", repos.tree_entry("120000", b"a", link))
    repos.commit_tree(remote, tree, BRANCH)
    store = open_store()
    made = leading(store)
    assert made.write({"a": b"1"}, INTENT, NOW, "Plain").landed
    (entry,) = store.diff(None, store.fetch([BRANCH])[BRANCH])
    assert entry.mode == 0o100644


# -- what is written -----------------------------------------------------------------------------------------


def test_nothing_changed_means_no_commit(store):
    made = leading(store)
    made.write({"a": b"1", "b": b"2"}, INTENT, NOW, "First")
    tip = made.tip
    assert made.write({"a": b"1", "gone": None}, "2" * 40, NOW + MINUTE, "Again") == Unchanged()
    assert made.tip == tip


def test_a_restarted_writer_knows_what_is_there(store, remote_memory):
    leading(store).write({"a": b"1"}, INTENT, NOW, "First")
    second = leading(MemoryStore(remote_memory), "w-2")
    assert second.write({"a": b"1"}, INTENT, NOW, "Same") == Unchanged()


# -- unknown outcomes ----------------------------------------------------------------------------------------


def once(remote, fate, when="before"):
    """The next push meets this fate, those after it pass."""

    def hook(operation):
        if operation.kind == "push" and operation.when == when:
            remote.hook = lambda _: Fate.PASS
            return fate
        return Fate.PASS

    remote.hook = hook


def test_a_lost_push_is_made_again(store, remote_memory):
    made = leading(store)
    once(remote_memory, Fate.LOSE)
    assert made.write({"a": b"1"}, INTENT, NOW, "First") == Written(Outcome.UNKNOWN)
    assert made.write({"a": b"1"}, INTENT, NOW, "First").landed
    assert contents(store) == {"a": b"1"}


def test_a_push_whose_answer_was_lost_is_found_and_not_made_again(store, remote_memory):
    made = leading(store)
    once(remote_memory, Fate.HIDE, "after")
    assert made.write({"a": b"1"}, INTENT, NOW, "First") == Written(Outcome.UNKNOWN)
    assert made.write({"a": b"1"}, INTENT, NOW, "First") == Unchanged()
    assert made.leading


def test_a_push_that_lands_before_it_is_asked_about_is_found(store, remote_memory):
    made = leading(store)
    once(remote_memory, Fate.DELAY)
    made.write({"a": b"1"}, INTENT, NOW, "First")
    assert remote_memory.land() == [Outcome.COMMITTED]
    assert made.settle()
    assert made.write({"a": b"1", "b": b"2"}, INTENT, NOW, "Second").landed
    assert contents(store) == {"a": b"1", "b": b"2"}


def test_a_push_that_lands_after_it_was_given_up_conflicts_once_and_is_ours(store, remote_memory):
    made = leading(store)
    once(remote_memory, Fate.DELAY)
    made.write({"a": b"late"}, INTENT, NOW, "First")
    assert made.settle()

    def land_first(operation):
        if operation.kind == "push" and operation.when == "before":
            remote_memory.hook = lambda _: Fate.PASS
            remote_memory.land()
        return Fate.PASS

    remote_memory.hook = land_first
    assert made.write({"a": b"new"}, INTENT, NOW, "Second") == Written(Outcome.CONFLICT)
    assert made.leading
    assert made.alarms == ()
    assert made.write({"a": b"new"}, INTENT, NOW, "Third").landed
    assert contents(store) == {"a": b"new"}


def test_a_push_that_lands_after_the_next_one_is_kept_out(store, remote_memory):
    made = leading(store)
    once(remote_memory, Fate.DELAY)
    made.write({"a": b"late"}, INTENT, NOW, "First")
    assert made.write({"a": b"new"}, INTENT, NOW, "Second").landed
    assert remote_memory.land() == [Outcome.CONFLICT]
    assert contents(store) == {"a": b"new"}


def test_a_take_over_of_unknown_outcome_counts_when_it_landed(store, remote_memory):
    made = writer(store)
    once(remote_memory, Fate.HIDE, "after")
    assert made.take_over(NOW) == Written(Outcome.UNKNOWN)
    assert not made.leading
    assert made.write({"a": b"1"}, INTENT, NOW, "First").landed
    assert made.term == 1


def test_while_the_remote_is_down_every_outcome_is_unknown(store, remote_memory):
    made = leading(store)
    remote_memory.down = True
    assert made.write({"a": b"1"}, INTENT, NOW, "First") == Written(Outcome.UNKNOWN)
    assert made.write({"a": b"2"}, INTENT, NOW, "Second") == Written(Outcome.UNKNOWN)
    assert not made.settle()
    remote_memory.down = False
    assert made.write({"a": b"2"}, INTENT, NOW, "Second").landed


FATES = st.sampled_from([Fate.PASS, Fate.PASS, Fate.LOSE, Fate.DELAY, Fate.HIDE, Fate.REFUSE])


@given(st.lists(st.tuples(st.integers(0, 1), FATES, st.booleans(), st.booleans()), max_size=25))
def test_whatever_happens_to_pushes_a_landed_write_stays_and_terms_only_grow(steps):
    """Two writers, every fate of a push, late landings at any time: the branch tells one story."""
    remote = MemoryRemote()
    stores = [MemoryStore(remote), MemoryStore(remote)]
    writers = [writer(stores[0], "w-1"), writer(stores[1], "w-2")]
    reader, terms = MemoryStore(remote), [0]
    for number, (who, fate, land, take) in enumerate(steps):
        # An answer that is hidden is hidden after the push; all other fates meet it before.
        remote.hook = lambda op, fate=fate: (
            fate if op.kind == "push" and (op.when == "after") == (fate is Fate.HIDE) else Fate.PASS
        )
        if take:
            writers[who].take_over(NOW)
        result = writers[who].write({"f": b"%d" % number}, INTENT, NOW, "Step")
        if result.landed:
            assert contents(reader) == {"f": b"%d" % number}
            assert stamp_of(reader).writer == f"w-{who + 1}"
        remote.hook = lambda _: Fate.PASS
        if land:
            remote.land()
        if remote.tips:
            terms.append(stamp_of(reader).term)
        assert not any(each.alarms for each in writers)
    assert terms == sorted(terms)


# -- re-roots ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "step"),
    [
        pytest.param(WriterSettings(None, reroot_after=timedelta(minutes=4)), MINUTE, id="by age"),
        pytest.param(WriterSettings(None, reroot_commits=4), timedelta(0), id="by commits"),
        pytest.param(WriterSettings(None, reroot_bytes=300), timedelta(0), id="by bytes"),
    ],
)
def test_a_history_is_left_behind(open_store, settings, step):
    store = open_store()
    made = leading(store, settings=settings)
    roots = 0
    for number in range(1, 13):
        made.write({"keep": b"k", "a": b"%099d" % number}, INTENT, NOW + number * step, "Step")
        assert made.tip is not None
        roots += store.commit(made.tip).parents == ()
        assert len(store.log(made.tip, 99)) <= 5
    assert roots >= 2
    assert contents(store) == {"keep": b"k", "a": b"%099d" % 12}
    assert (stamp_of(store).term, stamp_of(store).seq) == (1, 13)


def test_a_restart_does_not_forget_how_old_the_history_is(store, remote_memory):
    settings = WriterSettings(None, reroot_commits=5)
    made = leading(store, settings=settings)
    made.write({"a": b"1"}, INTENT, NOW, "First")
    later = leading(MemoryStore(remote_memory), "w-2", settings)
    later.write({"a": b"2"}, INTENT, NOW, "Second")
    later.write({"a": b"3"}, INTENT, NOW, "Third")
    later.write({"a": b"4"}, INTENT, NOW, "Fourth")
    assert stamp_of(store).epoch == Epoch(NOW, 1, 1)


def test_a_server_that_forbids_re_roots_gets_a_straight_history_and_one_warning(remote, open_store, caplog):
    repos.git(remote, "config", "receive.denyNonFastForwards", "true")
    store = open_store()
    settings = WriterSettings(None, reroot_after=timedelta(minutes=20))
    made = leading(store, settings=settings)
    pushes = []
    for number in range(1, 70):
        before = made.seq
        assert made.write({"a": b"%d" % number}, INTENT, NOW + number * MINUTE, "Step").landed
        pushes.append(made.seq - before)
    # Tried when due, and again only after another whole period.
    assert [number for number, count in enumerate(pushes, 1) if count == 2] == [20, 40, 60]
    assert made.tip is not None
    assert len(store.log(made.tip, 999)) == 70
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert [record.getMessage().split(" branch=")[0] for record in warnings] == ["history kept"]


def test_a_server_that_refuses_everything_is_told_as_refused(remote, open_store):
    made = leading(open_store())
    hook = remote / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    assert made.write({"a": b"1"}, INTENT, NOW, "First") == Written(Outcome.REFUSED)
    assert made.leading
    hook.unlink()
    assert made.write({"a": b"1"}, INTENT, NOW, "First").landed


# -- the budget ----------------------------------------------------------------------------------------------


def test_pushes_beyond_the_budget_wait_and_urgent_ones_do_not(store):
    made = leading(store, settings=WriterSettings(pushes_per_minute=2))
    second = timedelta(seconds=1)
    assert made.write({"a": b"1"}, INTENT, NOW + 10 * second, "First").landed
    assert made.write({"a": b"2"}, INTENT, NOW + 20 * second, "Second") == Postponed(NOW + MINUTE)
    assert made.write({"a": b"2"}, INTENT, NOW + 30 * second, "Urgent", urgent=True).landed
    assert made.write({"a": b"3"}, INTENT, NOW + 59 * second, "Third") == Postponed(NOW + 70 * second)
    assert made.write({"a": b"2"}, INTENT, NOW + 59 * second, "Same") == Unchanged()
    assert made.write({"a": b"3"}, INTENT, NOW + 70 * second, "Third").landed
