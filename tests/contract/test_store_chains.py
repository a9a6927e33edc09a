"""Several commits at once, and who is named in them: in memory, on a folder, over HTTP and ssh (A7)."""

from __future__ import annotations

import pytest

from reconciler.store.git.git_objects import blob_oid
from reconciler.store.store_port import BEFORE, Draft, Entry, Outcome, Person, chain
from schemas.errors import UserError
from tests.contract.conftest import World
from tests.contract.test_store_contract import BO, NOW, add, draft, seal, start

PORTAL = Person("Portal", "portal@example.com")


def test_a_chain_is_written_in_one_go_each_on_the_one_before(world: World):
    """A7: many callers' changes go to the remote in one push, and each stays a commit of its own."""
    ours, theirs = world.store(), world.store()
    base = start(ours, {"a": b"0", "b/c": b"0"})
    changes = [{"a": b"1"}, {"b/c": None, "b": b"2"}, {}, {"d/e": b"3", "a": b"4"}]
    oids = ours.write_all(chain(base, [draft(each, message=str(n)) for n, each in enumerate(changes)]))
    assert ours.push("main", oids[-1], base) is Outcome.COMMITTED
    assert theirs.fetch(["main"]) == {"main": oids[-1]}
    log = theirs.log(oids[-1], 9)
    assert [commit.oid for commit in log] == [*reversed(oids), base]
    assert [commit.message for commit in log[:-1]] == ["3\n", "2\n", "1\n", "0\n"]
    assert theirs.diff(base, oids[0]) == [Entry("a", blob_oid(b"1"))]
    assert theirs.diff(oids[0], oids[1]) == [Entry("b", blob_oid(b"2")), Entry("b/c", None)]
    assert theirs.diff(oids[1], oids[2]) == []
    assert {entry.path for entry in theirs.diff(None, oids[3])} == {"a", "b", "d/e"}


def test_chains_and_single_drafts_go_together(world: World):
    store = world.store()
    base = start(store, {"a": b"0"})
    ahead = add(store, base, {"a": b"1"})
    drafts = [
        *chain(ahead, [draft({"b": b"1"}), draft({"c": b"1"})]),
        draft({"d": b"1"}, base, base),
        draft({"e": b"1"}, ahead, None),
        *chain(None, [draft({"f": b"1"}), draft({"g": b"1"})]),
    ]
    oids = store.write_all(drafts)
    parents = [store.commit(oid).parents for oid in oids]
    assert parents == [(ahead,), (oids[0],), (base,), (), (), (oids[4],)]
    files = [[entry.path for entry in store.diff(None, oid)] for oid in oids]
    assert files == [["a", "b"], ["a", "b", "c"], ["a", "d"], ["a", "e"], ["f"], ["f", "g"]]
    assert store.push("requests/one", oids[2], None) is Outcome.COMMITTED
    assert store.push("main", oids[1], ahead) is Outcome.COMMITTED
    assert store.write_all([]) == []


@pytest.mark.parametrize(
    ("base", "parent"),
    [(BEFORE, BEFORE), (BEFORE, None), (None, BEFORE)],
    ids=["nothing stands before the first", "its files alone", "its history alone"],
)
def test_a_draft_follows_wholly_or_not_at_all(world: World, base, parent):
    with pytest.raises(ValueError, match=r"(?i)before"):
        world.store().write_all([draft({"a": b"1"}, base, parent)])


def test_one_path_that_is_none_keeps_all_drafts_out(world: World):
    store = world.store()
    base = start(store, {"a": b"1"})
    with pytest.raises(UserError) as caught:
        store.write_all(chain(base, [draft({"b": b"1"}), draft({"../x": b"1"})]))
    assert caught.value.reason == "BadPath"
    add(store, base, {"b": b"2"})


def test_a_signed_chain_is_signed_commit_by_commit(world: World):
    store, other = world.store(sign=seal), world.store()
    base = start(store, {"a": b"0"})
    drafts = [draft({"a": b"%d" % n}, message=f"{n}\n\nparent {base}") for n in range(1, 6)]
    oids = store.write_all([*chain(base, drafts), draft({"b": b"1"}, base, base)])
    assert store.push("main", oids[4], base) is Outcome.COMMITTED
    assert store.push("side", oids[5], None) is Outcome.COMMITTED
    other.fetch(["main", "side"])
    for number, commit in enumerate(reversed(other.log(oids[4], 5)), 1):
        assert commit.signature == seal(commit.payload)
        assert commit.message.splitlines()[-1] == f"parent {base}"  # a text stays as it is
        assert other.read_path(commit.oid, "a") == b"%d" % number
    assert other.commit(oids[5]).parents == (base,)
    assert other.commit(oids[5]).signature == seal(other.commit(oids[5]).payload)


def test_who_commits_may_be_another_than_who_wrote(world: World):
    """A7: the service commits in the name of its caller."""
    store = world.store(sign=seal)
    alone = store.commit(start(store, {"a": b"1"}))
    assert (alone.author, alone.committer) == (BO, BO)
    on_behalf = Draft({"a": b"2"}, "Change", BO, NOW, alone.oid, alone.oid, PORTAL)
    commit = store.commit(store.write(on_behalf))
    assert (commit.author, commit.committer, commit.at) == (BO, PORTAL, NOW)
    assert commit.signature == seal(commit.payload)
