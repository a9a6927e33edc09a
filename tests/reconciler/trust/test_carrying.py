"""Who carries somebody else's signed approval, and that nobody replaces a newer word by an older one (D9, E5)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.reconciler.trust.test_policy_matrix import DIGEST, _root, approval
from tests.support import repos
from tests.support.landing import Files, Land, rules
from tests.support.world import _document

PATH = "approvals/a/old/ada.yaml"
OLDER = approval("ada", "old", "ada")
LESS = OLDER.replace("gpus: 8", "gpus: 4")  # unsigned, in effect: she commits it herself
NO = _document("Approval", "ada", {"slice": "a", "gpr": "old", "decision": "reject", "specDigest": DIGEST})

Push = Callable[[Land, Files, str | None], None]


def pushed(land: Land, files: Files, by: str | None) -> None:
    land.push(files, by)


def branched(land: Land, files: Files, by: str | None) -> None:
    """By a branch that nobody's signature merges."""
    land.pushed(land.of_tree(land.tree(files, land.at), None, land.at, land.commit(files, by, land.at)))


def made_up(land: Land, files: Files, by: str | None) -> None:
    """By a merge that makes it up."""
    land.pushed(land.merge(land.commit({"NEWS": "1\n"}, by, land.at), by, files))


def turned_round(land: Land, files: Files, by: str | None) -> None:
    """By a merge whose first parent is not main."""
    beside = land.commit({"NEWS": "2\n"}, by, _root(land))
    land.pushed(land.of_tree(land.tree(files, land.at), by, beside, land.at))


def left_out(land: Land, files: Files, by: str | None) -> None:
    """By a merge whose first parent is main before its last commit."""
    before = repos.git(land.repo, "rev-parse", f"{land.at}^")
    land.pushed(land.of_tree(land.tree(files, land.at), by, before, land.at))


ON_LINE = [pushed, branched, made_up]
WAYS = [*ON_LINE, turned_round, left_out]


class Seen:
    """A repository that one gate looks at again and again."""

    def __init__(self, folder: Path, first: Files) -> None:
        self.land = Land.begun(folder)
        self.land.push(first, "ada")
        self.gate = self.land.gate()
        self.look()

    def look(self) -> dict[str, str]:
        """What is held by now."""
        self.admitted = self.land.admit(self.gate)
        return rules(self.admitted)

    def has(self, text: str | None, path: str = PATH) -> bool:
        """Whether that is what counts at a path, as it was looked at last."""
        held = next((change for change in self.admitted.held if change.path == path), None)
        listed = repos.git(self.land.repo, "ls-tree", "--format=%(objectname)", self.admitted.commit, path)
        found = listed or None if held is None else held.authorised
        return found == (text and repos.git(self.land.repo, "hash-object", "--stdin", given=text.encode()))


@pytest.mark.parametrize("looks", [True, False], ids=["looked at between", "in one look"])
@pytest.mark.parametrize(("way", "newer"), [*((way, NO) for way in WAYS), *((way, LESS) for way in ON_LINE)])
@pytest.mark.parametrize("first", [{}, {PATH: OLDER}], ids=["never there", "there before"])
def test_nobody_replaces_a_newer_word_by_an_older_one(
    tmp_path: Path, first: Files, newer: str, way: Push, looks: bool
) -> None:
    seen = Seen(tmp_path, {"NEWS": "0\n", **first})
    seen.land.push({PATH: newer}, "ada")
    if looks:
        seen.look()
    way(seen.land, {PATH: OLDER}, "bo")
    seen.look()
    assert seen.has(newer)


@pytest.mark.parametrize("looks", [True, False], ids=["looked at between", "in one look"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("first", [{}, {PATH: OLDER}], ids=["never there", "there before"])
def test_a_rejection_that_is_deleted_first_stays_all_the_same(
    tmp_path: Path, first: Files, way: Push, looks: bool
) -> None:
    seen = Seen(tmp_path, {"NEWS": "0\n", **first})
    seen.land.push({PATH: NO}, "ada")
    for files in ({PATH: None}, {PATH: OLDER}):
        if looks:
            seen.look()
        way(seen.land, files, "bo")
    seen.look()
    assert seen.has(NO)


def test_an_admins_own_merge_may_leave_a_rejection_out(tmp_path: Path) -> None:
    seen = Seen(tmp_path, {"NEWS": "0\n", PATH: OLDER})
    seen.land.push({PATH: NO}, "ada")
    turned_round(seen.land, {PATH: OLDER}, "ada")
    assert seen.look() == {}
    assert seen.has(OLDER)


def test_a_rejection_of_long_ago_does_not_come_back_by_a_merge(tmp_path: Path) -> None:
    """It was squashed into main from a branch, and Ada thought otherwise since."""
    seen = Seen(tmp_path, {"NEWS": "0\n"})
    branch = seen.land.commit({PATH: NO}, "ada", seen.land.at)
    seen.land.push({PATH: NO}, "ada")
    seen.land.push({PATH: OLDER}, "ada")
    seen.look()
    tree = seen.land.tree({"NEWS": "1\n"}, seen.land.at)
    seen.land.pushed(seen.land.of_tree(tree, "bo", seen.land.at, branch))
    assert seen.look() == {}
    assert seen.has(OLDER)


def test_a_rejection_that_a_merge_left_out_is_told(tmp_path: Path) -> None:
    seen = Seen(tmp_path, {"NEWS": "0\n", PATH: OLDER})
    seen.land.push({PATH: NO}, "ada")
    left_out(seen.land, {PATH: OLDER}, "bo")
    assert seen.look() == {PATH: "LeftOutByMerge"}
    seen.land.push({PATH: f"# after all\n{OLDER}"}, "ada")
    assert seen.look() == {}


@pytest.mark.parametrize("looks", [True, False], ids=["looked at between", "in one look"])
def test_a_rejection_is_not_moved_away(tmp_path: Path, looks: bool) -> None:
    seen, elsewhere = Seen(tmp_path, {PATH: NO}), "approvals/a/moved/ada.yaml"
    seen.land.push({PATH: None, elsewhere: NO}, "bo")
    if looks:
        assert seen.look() == {PATH: "NotAnAdmin", elsewhere: "NotTheApprover"}
    seen.land.push({PATH: OLDER}, "bo")
    assert seen.look() == {PATH: "NotTheApprover", elsewhere: "NotTheApprover"}
    assert seen.has(NO)
    assert seen.has(None, elsewhere)


def test_its_admin_replaces_a_word_and_another_admin_takes_a_rejection_back(tmp_path: Path) -> None:
    seen = Seen(tmp_path, {PATH: NO})
    for files in ({PATH: OLDER}, {PATH: NO}, {PATH: None}, {PATH: OLDER}):
        seen.land.push(files, "ada")
        assert seen.look() == {}


@pytest.mark.parametrize("by", ["bo", "cy", None])
def test_anybody_carries_a_signed_word_to_where_there_is_none(tmp_path: Path, by: str | None) -> None:
    seen = Seen(tmp_path, {"NEWS": "0\n"})
    seen.land.push({PATH: OLDER}, by)
    assert seen.look() == {}
    assert seen.has(OLDER)


def test_who_may_give_an_approval_back_makes_room_for_another_word(tmp_path: Path) -> None:
    """The same statement written otherwise is no other word; another one needs room."""
    seen, newer = Seen(tmp_path, {PATH: OLDER}), approval("ada", "old", "ada", gpus=4)
    seen.land.push({PATH: f"# as Ada said\n{OLDER}"}, "bo")
    assert seen.look() == {}
    seen.land.push({PATH: newer}, "bo")
    assert seen.look() == {PATH: "NotTheApprover"}
    seen.land.push({PATH: None}, "cy")
    assert seen.look() == {PATH: "NotAnAdmin"}
    seen.land.push({PATH: newer}, "bo")
    assert seen.look() == {PATH: "NotTheApprover"}
    seen.land.push({PATH: None}, "bo")
    seen.land.push({PATH: newer}, "cy")
    assert seen.look() == {}
    assert seen.has(newer)


def test_a_word_that_nobody_can_read_is_replaced_by_its_admin_alone(tmp_path: Path) -> None:
    seen = Seen(tmp_path, {PATH: "a: [\n"})
    seen.land.push({PATH: OLDER}, "bo")
    assert seen.look() == {PATH: "NotTheApprover"}
    seen.land.push({PATH: f"# mine\n{OLDER}"}, "ada")
    assert seen.look() == {}
