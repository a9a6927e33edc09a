"""Which signatures speak for what a merge brought, on real Git."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.store.git.local_store import LocalStore
from reconciler.trust.ancestry import MOST_QUESTIONS
from tests.reconciler.trust.test_policy_matrix import of_slice
from tests.support import repos
from tests.support.landing import Files, Land, rules
from tests.support.world import gpr, gpr_path

QUOTA = {"slices/a/slice.yaml": of_slice(quota={"gpus": 1600})}
NOBODY = "NobodyStandsBehindIt"
NEW, OLD = gpr_path("a/new"), gpr_path("a/old")
SLICE = "slices/a/slice.yaml"


@pytest.fixture
def land(tmp_path: Path) -> Land:
    return Land.begun(tmp_path)


def judged(land: Land, since: str) -> dict[str, str]:
    return rules(land.admit(land.gate(), None, since))


def before(land: Land, path: str) -> str:
    return repos.git(land.repo, "show", f"{land.at}:{path}") + "\n"


# -- what main did to a file since ------------------------------------------------------------------------------


def squashed(land: Land, files: Files) -> tuple[str, str]:
    """A branch of the admin's that came to main by a squash and was taken back since; and main's tip then."""
    undone = {path: before(land, path) if _has(land, path) else None for path in files}
    branch = land.commit(files, "ada", land.at)
    land.push(files, "ada", text="Squashed (#7)")
    return branch, land.push(undone, "ada", text="Taken back")


def _has(land: Land, path: str) -> bool:
    return repos.git(land.repo, "ls-tree", land.at, path) != ""


@pytest.mark.parametrize(
    "files", [QUOTA, {NEW: gpr("a", "new")}, {OLD: None}], ids=["change", "create", "delete"]
)
def test_a_branch_that_was_squashed_and_taken_back_does_not_speak_again(land: Land, files: Files) -> None:
    branch, base = squashed(land, files)
    land.pushed(land.of_tree(land.tree(files, base), None, base, branch))
    assert judged(land, base) == dict.fromkeys(files, NOBODY)


def test_nor_when_it_is_merged_under_new_commits(land: Land) -> None:
    branch, base = squashed(land, QUOTA)
    land.push({"NEWS": "1\n"}, None)
    on_top = land.commit({"NEWS": "2\n"}, "bo", branch)
    aside = land.of_tree(land.tree(QUOTA, land.at), None, on_top, base)
    land.pushed(land.of_tree(land.tree(QUOTA, land.at), None, land.at, aside))
    assert judged(land, base) == {SLICE: NOBODY}


def test_nor_when_main_is_turned_round(land: Land) -> None:
    branch, base = squashed(land, QUOTA)
    land.pushed(land.of_tree(land.tree(QUOTA, base), None, branch, base))
    assert judged(land, base) == {SLICE: NOBODY}


def test_who_merged_main_first_speaks_for_the_file_again(land: Land) -> None:
    branch, base = squashed(land, QUOTA)
    resolved = {SLICE: of_slice(quota={"gpus": 800})}
    again = land.of_tree(land.tree(resolved, base), "ada", branch, base, text="Merge branch 'main' into it")
    land.pushed(land.merge(again, None))
    assert judged(land, base) == {}


def test_what_main_did_to_other_files_is_no_matter(land: Land) -> None:
    side = land.commit({NEW: gpr("a", "new"), OLD: None}, "bo", land.at)
    land.push(QUOTA, "ada")
    base = land.push({gpr_path("b/old"): gpr("b", "old", nodes=2)}, "cy")
    land.pushed(land.merge(side, None))
    assert judged(land, base) == {}


# -- who merges main --------------------------------------------------------------------------------------------

PULLS = {
    "main by its name": "Merge branch 'main' of https://forge.example.com/fleet",
    "main and another": "Merge branches 'main' and 'topic'",
    "the remote's main": "Merge remote-tracking branch 'origin/main'",
    "the remote's head": "Merge remote-tracking branch 'origin/HEAD'",
    "a commit": "Merge commit '0123456789012345678901234567890123456789'",
    "an address": "Merge https://forge.example.com/fleet",
    "own words": "Up to date again",
}


@pytest.mark.parametrize("text", PULLS.values(), ids=PULLS)
def test_an_admins_pull_brings_nobody_elses_change_into_force(land: Land, text: str) -> None:
    base = land.at
    forbidden = land.push(QUOTA, "bo")
    land.at = land.commit({"NEWS": "1\n"}, "ada", base)
    land.pushed(land.merge(forbidden, "ada", text=text))
    assert judged(land, base) == {SLICE: "NotAnOwner"}


@pytest.mark.parametrize(
    "text",
    ["Merge branch 'fix/main' into 'main'", "Merge pull request #7 from bo/main", "Merge branch 'topic'"],
)
def test_an_admin_who_merges_a_branch_speaks_for_it_even_after_their_own_commit(
    land: Land, text: str
) -> None:
    base = land.at
    land.push({"NEWS": "1\n"}, "ada")
    land.pushed(land.merge(land.commit(QUOTA, "bo", base), "ada", text=text))
    assert judged(land, base) == {}


def test_an_admin_who_merges_in_their_own_words_speaks_after_anothers_commit(land: Land) -> None:
    base = land.at
    land.push({"NEWS": "1\n"}, "bo")
    land.pushed(land.merge(land.commit(QUOTA, None, base), "ada", text="As we said"))
    assert judged(land, base) == {}


def test_what_a_pull_makes_up_is_its_signers(land: Land) -> None:
    base = land.at
    theirs = land.push({"NEWS": "1\n"}, "bo")
    land.at = land.commit({"NOTES": "1\n"}, "ada", base)
    land.pushed(land.merge(theirs, "ada", QUOTA, text="Up to date again"))
    assert judged(land, base) == {}


# -- what it costs ----------------------------------------------------------------------------------------------


def questions(land: Land, since: str, monkeypatch: pytest.MonkeyPatch) -> tuple[int, dict[str, str]]:
    """How often git was started to judge it, and what is held."""
    asked: list[str] = []
    for name in ("is_ancestor", "last_change"):
        whole = getattr(LocalStore, name)

        def counting(store: LocalStore, *args: str, of=whole) -> object:  # type: ignore[no-untyped-def]
            asked.append(args[0])
            return of(store, *args)

        monkeypatch.setattr(LocalStore, name, counting)
    held = judged(land, since)
    return len(asked), held


def test_a_long_branch_costs_few_questions(land: Land, monkeypatch: pytest.MonkeyPatch) -> None:
    base = side = land.at
    for number in range(60):
        side = land.commit({gpr_path("a/new"): gpr("a", "new", nodes=1 + number)}, "bo", side)
    land.push({"NEWS": "1\n"}, None)
    land.pushed(land.merge(side, None))
    asked, held = questions(land, base, monkeypatch)
    assert held == {}
    assert asked <= 20


def test_many_files_and_commits_of_main_cost_no_question_for_each_pair(
    land: Land, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, root = land.at, land.at
    for number in range(30):
        land.push({"NEWS": f"{number}\n"}, None)
    side = land.commit({gpr_path(f"a/n{each}"): gpr("a", f"n{each}") for each in range(40)}, "bo", root)
    land.pushed(land.merge(side, None))
    asked, held = questions(land, base, monkeypatch)
    assert held == {}
    assert asked <= 50


def test_files_beyond_the_bound_count_by_who_merges_alone(
    land: Land, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconciler.trust.ancestry.MOST_QUESTIONS", 10)
    base = land.at
    side = land.commit({gpr_path(f"a/n{each}"): gpr("a", f"n{each}") for each in range(20)}, "bo", base)
    land.pushed(land.merge(side, None))
    asked, held = questions(land, base, monkeypatch)
    assert set(held.values()) == {NOBODY}
    assert 10 <= len(held) < 20
    assert asked <= 10 < MOST_QUESTIONS
    land.at = base
    land.pushed(land.merge(side, "ada"))
    assert judged(land, base) == {}


def test_a_parent_named_a_thousand_times_is_one(land: Land) -> None:
    base = land.at
    side = land.commit({NEW: gpr("a", "new")}, "bo", base)
    tree = land.tree({NEW: gpr("a", "new")}, base)
    land.pushed(land.of_tree(tree, None, base, *[side] * 1000))
    admitted = land.gate()
    assert rules(land.admit(admitted, None, base)) == {}


def test_a_merge_of_very_many_branches_counts_by_its_signer_alone(land: Land) -> None:
    base = land.at
    sides = [land.commit({NEW: gpr("a", "new")}, "bo", base, text=f"{each}") for each in range(17)]
    tree = land.tree({NEW: gpr("a", "new")}, base)
    land.pushed(land.of_tree(tree, None, base, *sides))
    assert judged(land, base) == {NEW: NOBODY}
    land.at = base
    land.pushed(land.of_tree(tree, "bo", base, *sides, text="Merge branches 'a' and 'b'"))
    assert judged(land, base) == {}


def test_all_that_is_read_is_work(land: Land, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two merges of long branches are not judged in one call."""
    monkeypatch.setattr("reconciler.trust.gate.WORK", 50)
    base, gate = land.at, land.gate()
    for number in range(2):
        side = land.at
        for each in range(30):
            side = land.commit({NEW: gpr("a", "new", nodes=1 + each + number)}, "bo", side)
        land.pushed(land.merge(side, None))
    assert gate.admit(land.at, None, base, land.now).has_more
    assert rules(land.admit(gate, None, base)) == {}
