"""What every forge's driver holds to, on a forge of this machine that speaks the three dialects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from reconciler.clock import ManualClock
from reconciler.forges.forge_cache import PATIENCE
from reconciler.forges.forge_port import Forge, RateLimited
from reconciler.forges.open_forge import open_forge
from reconciler.settings import ForgeAddress
from schemas.errors import Fault
from tests.support import forge as fake
from tests.support import repos

PATH = "slices/vision/gprs/llama.yaml"
MARKER = "<!-- egs-check -->"


@dataclass
class On:
    """A forge, and our driver on it."""

    there: fake.Forge
    ours: Forge
    address: ForgeAddress
    clock: ManualClock

    def again(self) -> Forge:
        """Another process."""
        return open_forge(self.address, self.clock)


@pytest.fixture(params=["github", "gitlab", "gitea"])
def on(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[On]:
    repo = repos.bare(tmp_path / "fleet.git", {"project.yaml": "a\n", PATH: "old\n"})
    there = fake.Forge(repo, request.param)
    with fake.served(there, tmp_path) as address:
        clock = ManualClock(fake.START)
        yield On(there, open_forge(address, clock), address, clock)


def _opened(on: On, by: str = "bo", branch: str = "ask", text: str = "new\n", fork: str = "") -> int:
    on.there.push(branch, {PATH: text}, by, fork=fork)
    return on.there.open(branch, by, fork=fork)


def test_an_open_pull_request_is_told(on: On) -> None:
    number = _opened(on)
    pull = on.ours.pull(number)
    there = on.there.pulls[number]
    assert (pull.number, pull.state, pull.base_branch, pull.head) == (1, "open", "main", there.head)
    assert pull.author.login == "bo"
    assert pull.author.is_person
    assert pull.last_pusher == pull.author
    assert (pull.merge_commit, pull.merged_by) == ("", None)
    assert repos.git(on.there.repo, "rev-parse", pull.head_ref) == pull.head


def test_open_pull_requests_are_listed_with_those_from_forks(on: On) -> None:
    _opened(on)
    _opened(on, "eve", "ask", fork="eve")
    merged = _opened(on, "cy", "other", "other\n")
    on.there.merge(merged, "ada", "squash")
    assert [pull.number for pull in on.ours.open_pulls()] == [1, 2]
    assert {pull.head for pull in on.ours.open_pulls()} == {on.there.pulls[n].head for n in (1, 2)}


@pytest.mark.parametrize("how", ["merge", "squash", "rebase"])
def test_a_merged_pull_request_is_found_by_what_it_brought(on: On, how: str) -> None:
    number = _opened(on)
    commit = on.there.merge(number, "ada", how)
    (pull,) = on.ours.pulls_of(commit)
    assert (pull.number, pull.state, pull.merge_commit) == (number, "merged", commit)
    assert pull.merged_by is not None
    assert pull.merged_by.login == "ada"
    assert pull.head == on.there.pulls[number].head


def test_a_rebase_of_several_commits_is_found_by_each_of_them(on: On) -> None:
    for n in range(8):
        on.there.push("ask", {PATH: f"{n}\n"}, "bo")
    number = on.there.open("ask", "bo")
    last = on.there.merge(number, "ada", "rebase")
    first = repos.git(on.there.repo, "rev-parse", f"{last}~7")
    assert [pull.number for pull in on.ours.pulls_of(first)] == [number]


def test_a_commit_that_was_pushed_has_no_pull_request_but_a_pusher(on: On) -> None:
    commit = on.there.push("main", {PATH: "new\n"}, "bo")
    assert list(on.ours.pulls_of(commit)) == []
    pusher = on.ours.pusher_of("main", commit)
    assert pusher is not None
    assert pusher.login == "bo"


def test_each_commit_of_one_push_has_its_pusher(on: On) -> None:
    before = repos.tip(on.there.repo)
    commits = [repos.commit(on.there.repo, {PATH: f"{n}\n"}) for n in range(8)]
    on.there.pushed("main", before, commits[-1], "bo")
    for commit in commits:
        pusher = on.ours.pusher_of("main", commit)
        assert pusher is not None
        assert pusher.login == "bo"


def test_a_commit_that_the_forge_does_not_know_is_nobodys_only_after_a_while(on: On) -> None:
    commit = repos.tip(on.there.repo)
    for _ in range(2):
        with pytest.raises(Fault) as caught:
            on.ours.pusher_of("main", commit)
        assert caught.value.reason == "NotKnownYet"
    on.clock.set(fake.START + PATIENCE)
    assert on.ours.pusher_of("main", commit) is None


def test_the_last_pusher_is_who_pushed_the_head_and_not_the_author(on: On) -> None:
    number = _opened(on)
    on.there.push("ask", {PATH: "newer\n"}, "eve", author="bo <bo@example.com>")
    pull = on.ours.pull(number)
    assert (pull.author.login, pull.last_pusher and pull.last_pusher.login) == ("bo", "eve")


def test_the_last_pusher_of_a_fork_is_told_unless_the_fork_is_gone(on: On) -> None:
    number = _opened(on, "eve", fork="eve")
    pull = on.ours.pull(number)
    assert pull.last_pusher == pull.author
    on.there.pulls[number].fork_is_gone = True
    assert on.again().pull(number).last_pusher is None


@pytest.mark.parametrize(
    "detects",
    [pytest.param(True, id="merges are detected"), pytest.param(None, id="the server does not tell")],
)
def test_a_pusher_does_not_choose_who_merged(on: On, detects: bool | None) -> None:
    if on.ours.kind != "gitea":
        pytest.skip("others name the account that pushed")
    on.there.detects_merges = detects
    number = _opened(on, "bo", "mine", "mine\n")
    commit = on.there.merge_by_push(number, pusher="eve", names="ada")
    (pull,) = on.ours.pulls_of(commit)
    assert pull.merged_by is not None
    assert pull.merged_by.login == "eve"


def test_a_merge_on_the_forge_counts_where_merges_are_detected_too(on: On) -> None:
    on.there.detects_merges = True
    commit = on.there.merge(_opened(on, "bo", "mine", "mine\n"), "ada")
    (pull,) = on.ours.pulls_of(commit)
    assert pull.merged_by is not None
    assert pull.merged_by.login == "ada"


def test_a_pull_request_that_merged_itself_after_another_push_has_no_merger(on: On) -> None:
    if on.there.kind == "gitlab":
        pytest.skip("GitLab itself takes auto-merge back at a push")
    number = _opened(on)
    on.there.auto_merge(number, "ada")
    on.there.push("ask", {PATH: "hostile\n"}, "eve")
    on.there.merge(number)
    assert on.ours.pull(number).merged_by is None


def test_the_latest_word_of_each_reviewer_counts(on: On) -> None:
    number = _opened(on)
    on.there.approve(number, "ada")
    on.there.approve(number, "ada", "comment")
    on.there.approve(number, "cy")
    head = on.there.pulls[number].head
    found = {review.by.login: review for review in on.ours.reviews(number)}
    assert {name for name, review in found.items() if review.decision == "approve"} >= {"cy"}
    assert all(review.commit == head for review in found.values() if review.decision == "approve")
    assert len({review.id for review in found.values()}) == len(found)


def test_an_approval_from_before_a_push_is_not_of_the_head(on: On) -> None:
    number = _opened(on)
    on.there.approve(number, "ada")
    on.there.push("ask", {PATH: "hostile\n"}, "bo")
    pull = on.ours.pull(number)
    assert [review.commit == pull.head for review in on.ours.reviews(number)] == [False]


def test_a_dismissed_approval_is_no_approval(on: On) -> None:
    number = _opened(on)
    on.there.approve(number, "ada").dismissed = True
    assert not [r for r in on.ours.reviews(number) if r.decision == "approve" and not r.is_dismissed]


def test_bots_are_no_persons(on: On) -> None:
    if on.there.kind == "gitea":
        pytest.skip("Gitea tells bots from people only where they are its own")
    on.there.user("renovate", bot=True)
    number = _opened(on, "renovate")
    assert not on.ours.pull(number).author.is_person


def test_everybody_who_wrote_or_committed_is_told(on: On) -> None:
    on.there.push("ask", {PATH: "one\n"}, "bo", author="cy <cy@example.com>")
    on.there.push("ask", {PATH: "two\n"}, "bo", author="x <unknown@example.com>")
    on.there.user("cy")
    number = on.there.open("ask", "bo")
    found = on.ours.committers(number)
    assert {committer.email for committer in found} == {"cy@example.com", "unknown@example.com"}
    known = {c.account for c in found if c.email == "cy@example.com"}
    assert known == ({0} if on.there.kind == "gitlab" else {on.there.user("cy").id})


def test_contents_are_told_by_gits_own_id(on: On) -> None:
    number = _opened(on)
    head, base = on.there.pulls[number].head, repos.tip(on.there.repo)
    assert on.ours.blob_at(head, PATH) == repos.git(on.there.repo, "rev-parse", f"{head}:{PATH}")
    assert on.ours.blob_at(base, PATH) == repos.git(on.there.repo, "rev-parse", f"{base}:{PATH}")
    assert on.ours.blob_at(base, "slices/vision/gprs/other.yaml") is None


def test_changed_paths_are_those_of_the_pull_request(on: On) -> None:
    on.there.push("ask", {PATH: None, "slices/vision/gprs/b c.yaml": "x\n"}, "bo")
    number = on.there.open("ask", "bo")
    on.there.push("main", {"project.yaml": "moved on\n"}, "ada")
    assert set(on.ours.changed_paths(number)) == {PATH, "slices/vision/gprs/b c.yaml"}


def test_more_than_a_page_is_read_to_its_end(on: On) -> None:
    files: dict[str, repos.FileText] = {f"slices/vision/gprs/r{n:03}.yaml": "x\n" for n in range(230)}
    on.there.push("ask", files, "bo")
    number = on.there.open("ask", "bo")
    assert set(on.ours.changed_paths(number)) == set(files)


def test_a_status_is_put_once(on: On) -> None:
    commit = repos.tip(on.there.repo)
    for _ in range(2):
        on.ours.put_status(commit, "success", "egs/check", "Valid.", "https://egs.example.com/x")
    on.again().put_status(commit, "success", "egs/check", "Valid.", "https://egs.example.com/x")
    assert len(on.there.writes()) == 1
    on.ours.put_status(commit, "failure", "egs/check", "Not\nvalid. " + "x" * 500, "")
    found = on.there.status(commit, "egs/check")
    assert found is not None
    assert found["state"] == "failure"
    assert found["description"].startswith("Not valid. xxx")
    assert len(found["description"]) == 140


def test_a_status_whose_words_alone_change_is_no_fault(on: On) -> None:
    commit = repos.tip(on.there.repo)
    on.ours.put_status(commit, "pending", "egs/schedule", "Starts at 14:20.", "")
    on.ours.put_status(commit, "pending", "egs/schedule", "Starts at 14:10.", "")
    found = on.there.status(commit, "egs/schedule")
    assert found is not None
    if on.there.kind != "gitlab":  # has no move from a state to itself
        assert found["description"] == "Starts at 14:10."


def test_the_head_of_a_fork_gets_its_status(on: On) -> None:
    number = _opened(on, "eve", fork="eve")
    (pull,) = on.ours.open_pulls()
    on.ours.put_status(pull.head, "success", "egs/check", "Valid.", "")
    assert on.there.status(on.there.pulls[number].head, "egs/check") is not None


def test_there_is_one_comment_and_it_is_kept_up_to_date(on: On) -> None:
    number = _opened(on)
    on.ours.put_comment(number, MARKER, f"{MARKER}\nfirst\n")
    on.ours.put_comment(number, MARKER, f"{MARKER}\nfirst\n")
    other = on.again()
    other.put_comment(number, MARKER, f"{MARKER}\nfirst\n")
    assert len(on.there.writes()) == 1
    other.put_comment(number, MARKER, f"{MARKER}\nsecond")
    (comment,) = on.there.comments_of(number)
    assert comment.body == f"{MARKER}\nsecond"


def test_a_comment_that_somebody_deleted_is_written_anew(on: On) -> None:
    number = _opened(on)
    on.ours.put_comment(number, MARKER, f"{MARKER}\nfirst")
    on.there.comments.clear()
    on.ours.put_comment(number, MARKER, f"{MARKER}\nsecond")
    assert [comment.body for comment in on.there.comments_of(number)] == [f"{MARKER}\nsecond"]


def test_a_comment_of_somebody_else_with_our_marker_is_left_alone(on: On) -> None:
    number = _opened(on)
    on.there.comment(number, "eve", f"{MARKER}\nall is well, merge it")
    on.ours.put_comment(number, MARKER, f"{MARKER}\nnot valid")
    texts = {comment.by.login: comment.body for comment in on.there.comments_of(number)}
    assert texts == {
        "eve": f"{MARKER}\nall is well, merge it",
        on.there.me.login: f"{MARKER}\nnot valid",
    }


def test_a_pull_request_is_opened_once(on: On) -> None:
    on.there.push("egs/ask", {PATH: "new\n"}, "bo")
    first = on.ours.open_pull("egs/ask", "main", "Two nodes for vision", "Please.")
    again = on.ours.open_pull("egs/ask", "main", "Two nodes for vision", "Please.")
    assert first.number == again.number == 1
    assert (on.there.pulls[1].title, on.there.pulls[1].body) == ("Two nodes for vision", "Please.")


def test_an_unprotected_branch_lacks_everything(on: On) -> None:
    found = on.ours.protection("main")
    assert len(found) >= 4
    assert all("main" in sentence for sentence in found)


@pytest.mark.parametrize("status", [500, 502, 503])
def test_trouble_of_the_forge_is_a_fault_that_passes(on: On, status: int) -> None:
    on.there.down = status
    with pytest.raises(Fault) as caught:
        on.ours.pulls_of("a" * 40)
    assert caught.value.reason == "ForgeUnreachable"
    on.there.down = None
    assert list(on.ours.pulls_of(repos.tip(on.there.repo))) == []


def test_a_forge_that_is_gone_is_a_fault(on: On, tmp_path: Path) -> None:
    address = ForgeAddress(on.address.kind, "http://127.0.0.1:9", on.address.repository, on.address.token)
    with pytest.raises(Fault) as caught:
        open_forge(address).pull(1)
    assert caught.value.reason == "ForgeUnreachable"


def test_a_forge_that_asks_for_rest_gets_it(on: On) -> None:
    on.there.limited = True
    with pytest.raises(RateLimited) as caught:
        on.ours.pull(1)
    before = len(on.there.calls)
    with pytest.raises(RateLimited):
        on.ours.open_pulls()
    assert len(on.there.calls) == before
    on.there.limited = False
    on.clock.set(caught.value.until)
    assert list(on.ours.open_pulls()) == []


def test_no_text_holds_the_token(on: On) -> None:
    on.there.down = 403
    with pytest.raises(Fault) as caught:
        on.ours.pull(1)
    assert fake.TOKEN not in str(caught.value)
    assert caught.value.reason == "ForgeRefused"
