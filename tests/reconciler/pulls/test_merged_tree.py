"""Where a branch left main, and what of it comes to main: beside git's own answer, on histories of every shape."""

from __future__ import annotations

import tempfile
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.pulls import merged_tree
from reconciler.pulls.merged_tree import merged
from reconciler.store.git.local_store import LocalStore
from reconciler.store.memory_store import MemoryStore
from reconciler.store.store_port import Draft
from schemas.errors import UserError
from tests.support import repos
from tests.support.memory_remote import MemoryRemote
from tests.support.profile import law
from tests.support.world import BO, START


class History:
    """Commits in memory, each a minute after the one before it."""

    def __init__(self) -> None:
        self.store = MemoryStore(MemoryRemote())
        self.count = 0

    def commit(self, parent: str | None, **files: str | None) -> str:
        self.count += 1
        changes = {name: None if text is None else text.encode() for name, text in files.items()}
        at = START + timedelta(minutes=self.count)
        return self.store.write(Draft(changes, f"no. {self.count}", BO, at, base=parent, parent=parent))


def test_a_branch_leaves_main_where_it_was_made() -> None:
    history = History()
    root = history.commit(None, a="1")
    fork = history.commit(root, a="2")
    main = history.commit(history.commit(fork, b="1"), b="2")
    head = history.commit(fork, c="1")
    found = merged(history.store, main, head)
    assert (found.fork, found.behind, found.conflicts) == (fork, 2, ())
    assert list(found.changes) == ["c"]


def test_a_branch_that_is_merged_changes_nothing() -> None:
    history = History()
    root = history.commit(None, a="1")
    head = history.commit(root, a="2")
    main = history.commit(head, b="1")
    found = merged(history.store, main, head)
    assert (dict(found.changes), found.conflicts) == ({}, ())


@pytest.mark.parametrize(
    ("ours", "theirs", "conflicts", "changes"),
    [
        pytest.param({"a": "2"}, {"b": "2"}, (), ["b"], id="different files"),
        pytest.param({"a": "2"}, {"a": "3"}, ("a",), [], id="one file, two contents"),
        pytest.param({"a": "2"}, {"a": "2"}, (), [], id="one file, the same content"),
        pytest.param({"a": None}, {"a": "2"}, ("a",), [], id="deleted here, changed there"),
        pytest.param({"a": None}, {"a": None}, (), [], id="deleted on both sides"),
        pytest.param({"c": "1"}, {"c": "2", "a": None}, ("c",), ["a"], id="made on both sides"),
    ],
)
def test_both_sides(
    ours: dict[str, str | None], theirs: dict[str, str | None], conflicts: tuple[str, ...], changes: list[str]
) -> None:
    history = History()
    fork = history.commit(None, a="1", b="1")
    found = merged(history.store, history.commit(fork, **ours), history.commit(fork, **theirs))
    assert (found.conflicts, list(found.changes)) == (conflicts, changes)


def test_histories_without_a_common_commit_are_refused() -> None:
    history = History()
    with pytest.raises(UserError, match="fetch-depth: 0") as caught:
        merged(history.store, history.commit(None, a="1"), history.commit(None, a="2"))
    assert caught.value.reason == "NoCommonHistory"


def test_a_change_of_too_many_files_is_refused_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merged_tree, "MOST_FILES", 2)
    history = History()
    fork = history.commit(None, a="1")
    with pytest.raises(UserError, match="split the change") as caught:
        merged(history.store, fork, history.commit(fork, b="1", c="1", d="1"))
    assert caught.value.reason == "TooManyFiles"


class Graph:
    """Commits of a real repository with the parents and the dates that somebody chose for them."""

    def __init__(self, folder: Path) -> None:
        self.repo = repos.bare(folder)
        self.parents: dict[str, tuple[str, ...]] = {}

    def commit(self, *parents: str, at: int = 0, **files: str) -> str:
        blobs = {name: repos.write_object(self.repo, "blob", text.encode()) for name, text in files.items()}
        entries = b"".join(repos.tree_entry("100644", n.encode(), oid) for n, oid in sorted(blobs.items()))
        tree = repos.write_object(self.repo, "tree", entries)
        who = f"Eve <eve@example.com> {1_767_225_600 + at} +0000"
        lines = [f"tree {tree}", *(f"parent {p}" for p in parents), f"author {who}", f"committer {who}"]
        text = "\n".join([*lines, "", f"no. {len(self.parents)}", ""])
        oid = repos.write_object(self.repo, "commit", text.encode())
        self.parents[oid] = parents
        return oid

    def below(self, oid: str) -> set[str]:
        """A commit and all that it was built on."""
        return {oid}.union(*(self.below(parent) for parent in self.parents[oid]))


def test_no_date_of_a_commit_moves_where_a_branch_left_main(tmp_path: Path) -> None:
    """Dated long ago, the commit by which the branch has main's newest would be passed over."""
    there = Graph(tmp_path / "fleet.git")
    early = there.commit(quota="1600")
    late = there.commit(early, at=3600, quota="16", request="x")
    main = there.commit(late, at=7200, quota="16", request="x", news="y")
    has_late = there.commit(late, at=-400 * 86400, quota="16", request="x")
    has_early = there.commit(early, at=7200, quota="1600")
    head = there.commit(has_early, has_late, at=7200, quota="1600", new="tiny")
    with closing(LocalStore(there.repo)) as store:
        found = merged(store, main, head)
    assert found.fork == late
    assert sorted(found.changes) == ["new", "quota", "request"], "what git would make of it"


def test_a_branch_that_left_main_in_several_places_is_refused(tmp_path: Path) -> None:
    there = Graph(tmp_path / "fleet.git")
    root = there.commit(a="0")
    one, other = there.commit(root, at=1, a="1"), there.commit(root, at=2, a="2")
    main, head = there.commit(one, other, a="1"), there.commit(other, one, a="2")
    updated = there.commit(head, main, a="3")
    with closing(LocalStore(there.repo)) as store:
        with pytest.raises(UserError, match=r"has 2 merge bases with main.*update the branch") as caught:
            merged(store, main, head)
        assert caught.value.reason == "SeveralMergeBases"
        assert merged(store, main, updated).fork == main


@law(15)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(-9, 9)), min_size=1, max_size=9))
def test_merge_bases_are_the_common_commits_that_no_other_common_one_was_built_on(
    shape: list[tuple[int, int, int]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        there = Graph(Path(folder) / "fleet.git")
        line = [there.commit()]
        for one, other, day in shape:
            parents = dict.fromkeys((line[one % len(line)], line[other % len(line)]))
            line.append(there.commit(*parents, at=day * 86400))
        common = there.below(line[-1]) & there.below(line[-2])
        lower = {below for oid in common for below in there.below(oid) - {oid}}
        with closing(LocalStore(there.repo)) as store:
            assert store.merge_bases(line[-1], line[-2]) == sorted(common - lower)
