"""Where a branch left main, and what of it comes to main: beside git's own answer, on histories of every shape."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.pulls import merging
from reconciler.pulls.merging import merge_base, merged
from reconciler.store.memory import MemoryRemote, MemoryStore
from reconciler.store.port import Draft
from schemas.errors import UserError
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
    monkeypatch.setattr(merging, "MOST_FILES", 2)
    history = History()
    fork = history.commit(None, a="1")
    with pytest.raises(UserError, match="split the change") as caught:
        merged(history.store, fork, history.commit(fork, b="1", c="1", d="1"))
    assert caught.value.reason == "TooManyFiles"


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=2, max_size=20))
def test_the_merge_base_is_an_ancestor_of_both_that_no_other_common_one_descends_from(
    shape: list[tuple[int, int]],
) -> None:
    history = History()
    line = [history.commit(None, root="1")]
    for number, (one, _) in enumerate(shape):
        line.append(history.commit(line[one % len(line)], **{f"f{number}": "1"}))
    store = history.store
    found = merge_base(store, line[-1], line[-2])
    assert found is not None
    common = [c for c in line if store.is_ancestor(c, line[-1]) and store.is_ancestor(c, line[-2])]
    assert found in common
    assert all(store.is_ancestor(other, found) for other in common)
