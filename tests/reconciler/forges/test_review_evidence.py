"""Who stands behind content on main, and who approved it, on every kind of forge (A6, E4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from reconciler.forges.forge_port import Account, Forge
from reconciler.forges.open_forge import open_forge
from reconciler.forges.review_evidence import approving, forge_vouchers
from tests.support import forge as fake
from tests.support import repos

PATH = "slices/vision/gprs/llama.yaml"
OTHER = "slices/vision/slice.yaml"


@dataclass
class On:
    there: fake.Forge
    ours: Forge

    def vouchers(self, commit: str, path: str = PATH) -> set[str]:
        """Logins of those who stand behind a file as it is at a commit."""
        blob = self.there.blob(commit, path)
        accounts = {v.account for v in forge_vouchers(self.ours, commit, path, blob)}
        return {user.login for user in self.there.users.values() if user.id in accounts}

    def approvers(self, commit: str, path: str = PATH, **more: frozenset[str]) -> set[str]:
        """Logins of those whose approval of a file's content counts, but for who is an admin."""
        blob = self.there.blob(commit, path)
        assert blob is not None
        addresses = {self.there.user(login).id: found for login, found in more.items()}
        found = approving(self.ours, commit, path, blob, addresses=addresses)
        return {review.by.login for review, _ in found}


@pytest.fixture(params=["github", "gitlab", "gitea"])
def on(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[On]:
    repo = repos.bare(tmp_path / "fleet.git", {PATH: "old\n", OTHER: "quota: 8\n"})
    there = fake.Forge(repo, request.param)
    with fake.served(there, tmp_path) as address:
        yield On(there, open_forge(address))


def _ask(on: On, by: str = "bo", text: str = "new\n") -> int:
    on.there.push("ask", {PATH: text}, by)
    return on.there.open("ask", by)


# -- who stands behind it --------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["merge", "squash", "rebase"])
def test_author_and_merger_stand_behind_what_a_pull_request_brought(on: On, how: str) -> None:
    assert on.vouchers(on.there.merge(_ask(on), "ada", how)) == {"bo", "ada"}


def test_a_direct_push_is_its_pushers_word(on: On) -> None:
    assert on.vouchers(on.there.push("main", {PATH: "new\n"}, "bo", author="ada <ada@example.com>")) == {"bo"}


def test_a_merge_that_the_forge_tells_of_as_a_push_first_is_judged_as_a_merge(on: On) -> None:
    commit = on.there.merge(_ask(on), "ada")

    class Late:
        """The pull request is known a moment later."""

        asked = 0

        def __getattr__(self, name: str) -> object:
            return getattr(on.ours, name)

        def pulls_of(self, commit: str) -> object:
            self.asked += 1
            return on.ours.pulls_of(commit) if self.asked > 1 else []

        def pusher_of(self, branch: str, commit: str) -> object:
            return Account(on.there.user("ada").id, "ada")

    found = forge_vouchers(cast(Forge, Late()), commit, PATH, on.there.blob(commit, PATH))
    assert {voucher.account for voucher in found} == {on.there.user(login).id for login in ("bo", "ada")}


def test_a_pull_request_says_nothing_about_files_that_it_does_not_change(on: On) -> None:
    assert on.vouchers(on.there.merge(_ask(on), "ada"), OTHER) == set()


def test_an_author_does_not_stand_behind_what_others_pushed_to_the_branch(on: On) -> None:
    number = _ask(on, "ada")
    on.there.push("ask", {PATH: "hostile\n"}, "eve", author="ada <ada@example.com>")
    assert on.vouchers(on.there.merge(number, "eve")) == {"eve"}


def test_an_author_does_not_stand_behind_what_was_merged_with_something_else(on: On) -> None:
    number = _ask(on, "ada")
    before, head = repos.tip(on.there.repo), on.there.pulls[number].head
    repos.git(on.there.repo, "update-ref", "refs/heads/main", head)
    after = repos.commit(on.there.repo, {PATH: "hostile\n"})
    on.there.pushed("main", before, after, "eve")
    assert on.vouchers(after) == {"eve"}


def test_a_merge_that_brings_an_old_version_back_is_not_vouched_for_by_an_old_head(on: On) -> None:
    """Ada's pull request began before the quota was lowered; merging it by hand, Eve puts the old quota back."""
    number = _ask(on, "ada")
    on.there.push("main", {OTHER: "quota: 4\n"}, "ada")
    before = repos.tip(on.there.repo)
    tree = repos.git(on.there.repo, "rev-parse", f"{on.there.pulls[number].head}^{{tree}}")
    hostile = on.there._commit(tree, [before, on.there.pulls[number].head], on.there.user("eve"), "Merge")
    repos.git(on.there.repo, "update-ref", "refs/heads/main", hostile)
    on.there.pushed("main", before, hostile, "eve")
    assert on.vouchers(hostile, OTHER) <= {"eve"}


def test_a_deletion_is_vouched_for_by_who_deleted_and_no_head_that_never_had_the_file(on: On) -> None:
    on.there.push("ask", {"README.md": "x\n"}, "ada")
    number = on.there.open("ask", "ada")
    on.there.push("main", {"slices/vision/gprs/b.yaml": "x\n"}, "bo")
    before = repos.tip(on.there.repo)
    tree = repos.git(on.there.repo, "rev-parse", f"{on.there.pulls[number].head}^{{tree}}")
    hostile = on.there._commit(tree, [before, on.there.pulls[number].head], on.there.user("eve"), "Merge")
    repos.git(on.there.repo, "update-ref", "refs/heads/main", hostile)
    on.there.pushed("main", before, hostile, "eve")
    assert on.vouchers(hostile, "slices/vision/gprs/b.yaml") <= {"eve"}


def test_a_pull_request_for_another_branch_says_nothing(on: On) -> None:
    on.there.push("release", {"README.md": "x\n"}, "ada")
    on.there.push("ask", {PATH: "new\n"}, "ada", base="release")
    number = on.there.open("ask", "ada", base="release")
    commit = on.there.merge(number, "ada")
    before = repos.tip(on.there.repo)
    repos.git(on.there.repo, "update-ref", "refs/heads/main", commit)
    on.there.pushed("main", before, commit, "eve")
    assert on.vouchers(commit) == {"eve"}


def test_bots_stand_behind_nothing(on: On) -> None:
    on.there.user("renovate", bot=True)
    assert on.vouchers(on.there.merge(_ask(on, "renovate"), "renovate")) == set()


def test_the_version_between_two_commits_of_a_rebase_has_nobody(on: On) -> None:
    on.there.push("ask", {PATH: "between\n"}, "bo")
    on.there.push("ask", {PATH: "new\n"}, "bo")
    last = on.there.merge(on.there.open("ask", "bo"), "ada", "rebase")
    first = repos.git(on.there.repo, "rev-parse", f"{last}^")
    assert on.vouchers(first) == set()
    assert on.vouchers(last) == {"bo", "ada"}


# -- who approved it -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["merge", "squash", "rebase"])
def test_an_approval_of_the_head_counts_however_it_was_merged(on: On, how: str) -> None:
    number = _ask(on)
    on.there.approve(number, "ada")
    assert on.approvers(on.there.merge(number, "bo", how)) == {"ada"}


def test_an_approval_does_not_count_for_what_was_pushed_after_it(on: On) -> None:
    number = _ask(on)
    on.there.approve(number, "ada")
    on.there.push("ask", {PATH: "hostile\n"}, "bo")
    assert on.approvers(on.there.merge(number, "bo")) == set()


def test_approve_push_and_push_back_does_not_count_where_the_forge_tells_no_commit(on: On) -> None:
    number = _ask(on)
    on.there.approve(number, "ada")
    on.there.push("ask", {PATH: "hostile\n"}, "bo")
    on.there.push("ask", {PATH: "new\n"}, "bo")
    assert on.approvers(on.there.merge(number, "bo")) == set()


def test_nobody_approves_what_they_had_a_part_in(on: On) -> None:
    on.there.push("ask", {PATH: "one\n"}, "cy", author="dee <dee@example.com>")
    on.there.user("dee")
    on.there.push("ask", {PATH: "new\n"}, "eve", author="bo <bo@example.com>")
    number = on.there.open("ask", "bo")
    for login in ("bo", "dee", "eve", "ada"):
        on.there.approve(number, login)
    # GitLab tells no accounts of committers: their addresses are what is compared.
    known = {"dee": frozenset({"Dee@example.com"})}
    assert on.approvers(on.there.merge(number, "bo"), **known) == {"ada"}


def test_an_approval_does_not_count_for_a_version_on_the_way_to_the_head(on: On) -> None:
    on.there.push("ask", {PATH: "hostile\n"}, "bo")
    on.there.push("ask", {PATH: "new\n"}, "bo")
    number = on.there.open("ask", "bo")
    on.there.approve(number, "ada")
    last = on.there.merge(number, "bo", "rebase")
    assert on.approvers(repos.git(on.there.repo, "rev-parse", f"{last}^")) == set()
    assert on.approvers(last) == {"ada"}


def test_an_approval_that_became_another_word_does_not_count(on: On) -> None:
    number = _ask(on)
    on.there.approve(number, "ada")
    on.there.approve(number, "ada", "reject")
    assert on.approvers(on.there.merge(number, "bo")) == set()


def test_a_dismissed_approval_does_not_count(on: On) -> None:
    number = _ask(on)
    on.there.approve(number, "ada").dismissed = True
    assert on.approvers(on.there.merge(number, "bo")) == set()


def test_an_approval_by_a_bot_does_not_count(on: On) -> None:
    number = _ask(on)
    on.there.user("auto-approve", bot=True)
    on.there.approve(number, "auto-approve")
    assert on.approvers(on.there.merge(number, "bo")) == set()


def test_an_approval_counts_for_the_files_of_its_pull_request_alone(on: On) -> None:
    number = _ask(on)
    on.there.approve(number, "ada")
    assert on.approvers(on.there.merge(number, "bo"), OTHER) == set()


def test_nothing_is_approved_where_the_last_pusher_is_not_known(on: On) -> None:
    on.there.push("ask", {PATH: "new\n"}, "eve", fork="eve")
    number = on.there.open("ask", "eve", fork="eve")
    on.there.approve(number, "ada")
    on.there.pulls[number].fork_is_gone = True
    assert on.approvers(on.there.merge(number, "ada")) == set()


def test_a_later_direct_push_of_the_content_is_not_approved(on: On) -> None:
    number = _ask(on)
    on.there.approve(number, "ada")
    on.there.merge(number, "bo")
    on.there.push("main", {PATH: "old\n"}, "bo")
    assert on.approvers(on.there.push("main", {PATH: "new\n"}, "bo")) == set()


@pytest.mark.parametrize(
    ("resets", "told", "noted", "want"),
    [
        pytest.param(False, False, True, {"ada"}, id="GitLab's own note tells when it was given"),
        pytest.param(True, False, False, {"ada"}, id="a project that resets approvals needs no times"),
        pytest.param(False, False, False, set(), id="without a time and without resets nothing counts"),
    ],
)
def test_gitlabs_approvals_need_a_time_or_a_reset(
    tmp_path: Path, resets: bool, told: bool, noted: bool, want: set[str]
) -> None:
    there = fake.Forge(repos.bare(tmp_path / "fleet.git", {PATH: "old\n"}), "gitlab")
    there.settings |= {"resets": resets, "tells_times": told, "notes": noted}
    with fake.served(there, tmp_path) as address:
        on = On(there, open_forge(address))
        number = _ask(on)
        there.approve(number, "ada")
        assert on.approvers(there.merge(number, "bo")) == want
