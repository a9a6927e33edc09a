"""What every store does: in memory, on a folder, over HTTP."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.store.git.git_objects import blob_oid
from reconciler.store.store_port import Draft, Entry, Outcome, Person, Store
from schemas.errors import Fault, UserError
from tests.contract.conftest import World

NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
BO = Person("Bo Ek", "bo@example.com")


def draft(changes, base=None, parent=None, message="Change", at=NOW) -> Draft:
    return Draft(changes, message, BO, at, base, parent)


def start(store: Store, changes, branch="main") -> str:
    """A branch with one commit, pushed."""
    oid = store.write(draft(changes))
    assert store.push(branch, oid, None) is Outcome.COMMITTED
    return oid


def add(store: Store, tip: str, changes, branch="main") -> str:
    oid = store.write(draft(changes, tip, tip))
    assert store.push(branch, oid, tip) is Outcome.COMMITTED
    return oid


def test_a_remote_without_branches_has_no_tips(world: World):
    assert world.store().fetch(["main", "egs/*"]) == {}


def test_what_one_store_pushes_another_reads(world: World):
    ours, theirs = world.store(), world.store()
    oid = start(ours, {"slices/vision/slice.yaml": b"a", "project.yaml": b"b"})
    assert ours.tips() == {"main": oid}
    assert theirs.fetch(["main"]) == {"main": oid} == theirs.tips()
    entries = theirs.diff(None, oid)
    assert entries == [
        Entry("project.yaml", blob_oid(b"b")),
        Entry("slices/vision/slice.yaml", blob_oid(b"a")),
    ]
    assert theirs.read([entry.oid for entry in entries if entry.oid]) == {
        blob_oid(b"a"): b"a",
        blob_oid(b"b"): b"b",
    }
    assert theirs.sizes([blob_oid(b"a")]) == {blob_oid(b"a"): 1}
    assert theirs.alarms() == []


def test_a_commit_tells_its_facts(world: World):
    store = world.store()
    first = start(store, {"a": b"1"})
    message = "Second\n\nSome: text that is no trailer block\n\nWriter: w-1\nTerm: 7"
    second = store.write(draft({"a": b"2"}, first, first, message, NOW + timedelta(hours=1)))
    commit = store.commit(second)
    assert commit.oid == second
    assert commit.parents == (first,)
    assert commit.author == BO
    assert commit.at == NOW + timedelta(hours=1)
    assert commit.message == message + "\n"
    assert commit.trailers == {"Writer": "w-1", "Term": "7"}


def test_a_difference_names_only_what_differs(world: World):
    store = world.store()
    first = start(store, {"a/b": b"1", "a/c": b"1", "d": b"1"})
    second = add(store, first, {"a/b": b"2", "d": None, "e/f/g": b"3", "never/was": None})
    assert store.diff(first, second) == [
        Entry("a/b", blob_oid(b"2")),
        Entry("d", None),
        Entry("e/f/g", blob_oid(b"3")),
    ]
    assert store.diff(second, second) == []
    assert [entry.path for entry in store.diff(second, first)] == ["a/b", "d", "e/f/g"]


def test_a_folder_may_take_the_place_of_a_file_and_back(world: World):
    store = world.store()
    first = start(store, {"a": b"1"})
    second = add(store, first, {"a": None, "a/b": b"2"})
    third = add(store, second, {"a": b"3"})
    assert store.diff(None, second) == [Entry("a/b", blob_oid(b"2"))]
    assert store.diff(None, third) == [Entry("a", blob_oid(b"3"))]


def test_contents_come_back_byte_for_byte(world: World):
    store = world.store()
    contents = [b"", b"\n", b"\0\xff" * 1000, b"no line end", b"x" * 200_000, b"done\nget-mark :1\n"]
    oid = start(store, {f"f{number}": content for number, content in enumerate(contents)})
    assert [store.read_path(oid, f"f{number}") for number in range(len(contents))] == contents
    assert list(store.read(blob_oid(content) for content in contents).values()) == contents


def test_many_blobs_are_read_in_one_call(world: World):
    store = world.store()
    contents = {f"d{n % 7}/f{n}": b"%d " % n * 200 for n in range(1800)}
    start(store, contents)
    assert set(store.read(map(blob_oid, contents.values())).values()) == set(contents.values())
    assert len(store.sizes(map(blob_oid, contents.values()))) == 1800


@pytest.mark.parametrize("path", ["nothing", "a", "a/b/c"])
def test_a_path_that_is_no_file_reads_as_none(world: World, path):
    store = world.store()
    oid = start(store, {"a/b": b"1"})
    assert store.read_path(oid, path) is None


@pytest.mark.parametrize(
    "path", ["", "/a", "a//b", "a/", "../a", "a/./b", ".git/config", "a/.GIT/x", "a\nb", "a\0b"]
)
def test_a_path_that_leaves_the_tree_is_refused(world: World, path):
    store = world.store()
    oid = start(store, {"a": b"1"})
    with pytest.raises(UserError) as caught:
        store.read_path(oid, path)
    assert caught.value.reason == "BadPath"
    with pytest.raises(UserError):
        store.write(draft({path: b"x"}))


@pytest.mark.parametrize(
    "path", ["-rf", "--output=x", 'q"uote', "back\\slash", "a b", "ümlaut/ñ.yaml", "$(x)"]
)
def test_a_strange_but_possible_name_is_only_a_name(world: World, path):
    store = world.store()
    oid = start(store, {path: b"1"})
    assert [entry.path for entry in store.diff(None, oid)] == [path]
    assert store.read_path(oid, path) == b"1"


def test_the_log_follows_first_parents_newest_first(world: World):
    store = world.store()
    first = start(store, {"a": b"1"})
    second = add(store, first, {"a": b"2"})
    third = add(store, second, {"a": b"3"})
    assert [commit.oid for commit in store.log(third, 2)] == [third, second]
    assert [commit.oid for commit in store.log(third, 9)] == [third, second, first]
    assert store.is_ancestor(first, third)
    assert store.is_ancestor(third, third)
    assert not store.is_ancestor(third, first)


def test_where_two_branches_part(world: World):
    store = world.store()
    first = start(store, {"a": b"1"})
    second = add(store, first, {"a": b"2"})
    side = store.write(draft({"b": b"1"}, first, first))
    lone = start(store, {"c": b"1"}, "lone")
    assert store.merge_bases(second, side) == [first]
    assert store.merge_bases(first, second) == [first]
    assert store.merge_bases(second, lone) == []


def test_the_last_change_of_a_path_is_found_even_when_it_was_taken_back(world: World):
    store = world.store()
    first = start(store, {"a/b": b"1", "a/*": b"1", "d": b"1"})
    second = add(store, first, {"a/b": b"2"})
    third = add(store, second, {"a/b": b"1", "d": None})
    fourth = add(store, third, {"e": b"1"})
    assert store.last_change(fourth, "a/b") == third
    assert store.last_change(second, "a/b") == second
    assert store.last_change(first, "a/b") == first
    assert store.last_change(fourth, "d") == third
    assert store.last_change(fourth, "a/*") == first  # a name, and no pattern
    assert store.last_change(fourth, "never/was") is None
    fifth = add(store, fourth, {"a/b": None, "a/b/c": b"1"})
    assert store.last_change(add(store, fifth, {"a/b/c": b"2"}), "a/b") != fifth


def test_the_second_of_two_pushes_onto_one_tip_conflicts(world: World):
    ours, theirs = world.store(), world.store()
    base = start(ours, {"a": b"1"})
    theirs.fetch(["main"])
    mine = ours.write(draft({"a": b"2"}, base, base))
    yours = theirs.write(draft({"a": b"3"}, base, base))
    assert ours.push("main", mine, base) is Outcome.COMMITTED
    assert theirs.push("main", yours, base) is Outcome.CONFLICT
    assert theirs.fetch(["main"]) == {"main": mine}


def test_of_pushes_at_the_same_time_one_lands(world: World):
    """What was told to be on the remote stays there, however closely another push follows."""
    tip = start(world.store(), {"0": b"0"})
    stores = [world.store() for _ in range(4)]
    for number in range(3):
        drafts = []
        for name, store in enumerate(stores):
            store.fetch(["main"])
            drafts.append(store.write(draft({f"{number}-{name}": b""}, tip, tip)))
        together = threading.Barrier(len(stores))

        def push(store: Store, oid: str, tip: str = tip, together: threading.Barrier = together) -> Outcome:
            together.wait()
            return store.push("main", oid, tip)

        with ThreadPoolExecutor(len(stores)) as pool:
            outcomes = list(pool.map(push, stores, drafts))
        landed = [oid for oid, outcome in zip(drafts, outcomes, strict=True) if outcome is Outcome.COMMITTED]
        tip = world.store().fetch(["main"])["main"]
        assert landed == [tip]


def test_a_branch_that_exists_is_not_made_anew(world: World):
    ours, theirs = world.store(), world.store()
    start(ours, {"a": b"1"})
    assert theirs.push("main", theirs.write(draft({"b": b"1"})), None) is Outcome.CONFLICT


def test_a_branch_that_is_gone_conflicts_and_leaves_the_tips(world: World):
    store = world.store()
    base = start(store, {"a": b"1"})
    start(store, {"b": b"1"}, "egs/status")
    store.fetch(["main", "egs/*"])
    world.delete("main")
    assert store.push("main", store.write(draft({"a": b"2"}, base, base)), base) is Outcome.CONFLICT
    assert list(store.fetch(["main", "egs/*"])) == ["egs/status"]
    assert list(store.tips()) == ["egs/status"]


def test_pushing_the_same_commit_again_is_committed(world: World):
    store = world.store()
    oid = start(store, {"a": b"1"})
    assert store.push("main", oid, None) is Outcome.COMMITTED


def test_a_re_root_keeps_the_tree_and_drops_the_history(world: World):
    ours, theirs = world.store(), world.store()
    first = start(ours, {"a": b"1", "b/c": b"2"})
    second = add(ours, first, {"a": b"3"})
    theirs.fetch(["main"])
    root = ours.write(draft({"d": b"4"}, second, None))
    assert ours.push("main", root, second) is Outcome.COMMITTED
    assert theirs.fetch(["main"]) == {"main": root}
    assert theirs.commit(root).parents == ()
    assert theirs.diff(second, root) == [Entry("d", blob_oid(b"4"))]
    assert [entry.path for entry in theirs.diff(None, root)] == ["a", "b/c", "d"]


def test_a_server_that_forbids_a_re_root_refuses_it_and_stays(world: World):
    store = world.store()
    first = start(store, {"a": b"1"})
    world.forbid_rewinds()
    assert store.push("main", store.write(draft({}, first, message="Root")), first) is Outcome.REFUSED
    assert store.fetch(["main"]) == {"main": first}
    add(store, first, {"a": b"2"})


def test_patterns_name_whole_parts(world: World):
    store = world.store()
    for branch in ("main", "main-2", "egs/agents/east/a1", "egs/agents/west/a2", "egs/agents/x/y/z"):
        start(store, {"a": b"1"}, branch)
    other = world.store()
    assert list(other.fetch(["main", "egs/agents/*/*"])) == [
        "egs/agents/east/a1",
        "egs/agents/west/a2",
        "main",
    ]
    assert list(other.fetch(["mai*"])) == ["main", "main-2"]
    assert list(other.fetch(["egs/agents/east/*"])) == ["egs/agents/east/a1"]
    assert "main" in other.tips()


def test_a_remote_that_is_away_is_a_fault_and_leaves_a_push_unknown(world: World):
    store = world.store()
    first = start(store, {"a": b"1"})
    second = store.write(draft({"a": b"2"}, first, first))
    world.go_down()
    with pytest.raises(Fault) as caught:
        store.fetch(["main"])
    assert caught.value.reason == "RemoteUnreachable"
    assert store.push("main", second, first) is Outcome.UNKNOWN
    assert store.tips() == {"main": first}
    assert store.read_path(first, "a") == b"1"


def test_an_object_that_is_not_there_is_a_fault(world: World):
    store = world.store()
    first = start(store, {"a": b"1"})
    for read in (store.commit, lambda oid: store.read([oid]), lambda oid: store.diff(first, oid)):
        with pytest.raises(Fault) as caught:
            read("0" * 39 + "1")
        assert caught.value.reason == "CorruptObjects"
    assert store.read_path(first, "a") == b"1"


@pytest.mark.parametrize("oid", ["main", "HEAD", "--all", "abc123", "a" * 41, "A" * 40, "a" * 40 + "\n"])
def test_only_full_object_ids_are_taken(world: World, oid):
    store = world.store()
    for use in (
        store.commit,
        lambda o: store.read([o]),
        lambda o: store.diff(None, o),
        lambda o: store.push("x", o, None),
    ):
        with pytest.raises(UserError) as caught:
            use(oid)
        assert caught.value.reason == "BadObjectId"


@pytest.mark.parametrize(
    "branch",
    [
        "",
        "-x",
        "--force",
        "a..b",
        "a b",
        "a:b",
        "+a",
        "a/",
        "/a",
        "a.lock",
        "a/.b",
        "a~1",
        "a@{1}",
        "é",
        "a\nb",
    ],
)
def test_only_plain_branch_names_are_taken(world: World, branch):
    store = world.store()
    oid = start(store, {"a": b"1"})
    with pytest.raises(UserError) as caught:
        store.push(branch, oid, None)
    assert caught.value.reason == "BadBranch"
    with pytest.raises(UserError):
        store.fetch([branch])


def seal(payload: bytes) -> str:
    """Stands for a signature; of more than one line, one of them empty, as an OpenPGP one has it."""
    return f"-----BEGIN SEAL-----\n\n{blob_oid(payload)}\n-----END SEAL-----\n"


def test_a_store_with_a_signer_signs_every_commit_it_writes(world: World):
    store = world.store(sign=seal)
    first = start(store, {"a": b"1"})
    second = add(store, first, {"b": b"2"})
    other = world.store()
    other.fetch(["main"])
    for oid in (first, second):
        commit = other.commit(oid)
        assert commit == store.commit(oid)
        assert commit.payload
        assert commit.signature == seal(commit.payload)
    assert other.commit(second).parents == (first,)
    assert [entry.path for entry in other.diff(None, second)] == ["a", "b"]


def test_a_store_without_one_signs_nothing(world: World):
    store = world.store()
    commit = store.commit(start(store, {"a": b"1"}))
    assert (commit.signature, commit.payload) == ("", b"")


def test_what_is_signed_is_all_that_the_commit_says(world: World):
    plain, signing = world.store(), world.store(sign=seal)
    drafts = [draft({"a": b"1"}), draft({"a": b"2"}), draft({"a": b"1"}, message="Other")]
    drafts += [draft({"a": b"1"}, at=NOW + timedelta(seconds=1))]
    commits = [signing.commit(signing.write(each)) for each in drafts]
    assert len({commit.payload for commit in commits}) == len(commits)
    assert len({commit.oid for commit in commits} | {plain.write(each) for each in drafts}) == 2 * len(drafts)


def test_a_commit_that_no_branch_leads_to_any_more_is_kept_or_brought(world: World):
    ours, theirs, later = world.store(), world.store(), world.store()
    first = start(ours, {"a": b"1"})
    second = add(ours, first, {"a": b"2"})
    theirs.fetch(["main"])
    new = ours.write(draft({"b": b"1"}))
    assert ours.push("main", new, second) is Outcome.COMMITTED
    for store in (theirs, later):
        assert store.fetch(["main"]) == {"main": new}
        assert store.keep(second)
        assert store.read_path(second, "a") == b"2"
        assert store.is_ancestor(first, second)
        assert store.fetch(["main"]) == {"main": new} == store.tips()
    assert not later.keep("1" * 40)
