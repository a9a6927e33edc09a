"""Pull requests on a forge are told what they would do, and merged ones what became of them (A6, D8), end to end.

A real bare repository, a forge that serves it, a controller with a simulated cluster, and time as an argument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from reconciler.compose import controller, watcher
from reconciler.cycle import Cycle
from reconciler.model.evidence import Level
from reconciler.pulls.watcher import PER_MINUTE, POLL, REFRESH
from reconciler.settings import Settings, Trust
from schemas.errors import Fault
from tests.support import forge as fake
from tests.support import repos
from tests.support.machinekeys import line, private_text
from tests.support.world import START, cluster, gpr, gpr_path, project, slice_

BASE = {
    "project.yaml": project(),
    "clusters/east.yaml": cluster(),
    "slices/a/slice.yaml": slice_("a"),
    "slices/b/slice.yaml": slice_("b", quota={"gpus": 8}),
}
MARKER = "<!-- egs-check -->"
MINUTE = timedelta(minutes=1)


@dataclass
class Whole:
    """A forge, a controller and its watcher on one repository."""

    there: fake.Forge
    settings: Settings
    now: datetime = START

    def __post_init__(self) -> None:
        self.loop = controller(self.settings, adopt=True)
        self.watcher = watcher(self.settings)
        self.cycle: Cycle | None = None
        self.run(MINUTE)

    def run(self, for_: timedelta) -> None:
        """The controller alone goes on."""
        until = self.now + for_
        for _ in range(200):
            self.cycle = self.loop.cycle(self.now)
            if self.cycle.wake > until:
                break
            self.now = max(self.now, self.cycle.wake)
        self.now = until

    def look(self) -> datetime:
        """One round of the watcher, with what the loop knows."""
        assert self.cycle is not None
        self.watcher.note(self.cycle)
        return self.watcher.round(self.now)

    def restart(self) -> None:
        """Another process."""
        self.watcher.close()
        self.settings = replace(self.settings, state=self.settings.state.with_name("again"))
        self.watcher = watcher(self.settings)

    def ask(self, name: str = "llama", nodes: int = 1, slice_name: str = "a", fork: str = "") -> int:
        """Bo files a request by pull request."""
        branch = f"ask-{name}"
        files: dict[str, repos.FileText] = {gpr_path(f"{slice_name}/{name}"): gpr(slice_name, name, nodes)}
        self.there.push(branch, files, "bo", fork=fork)
        return self.there.open(branch, "bo", fork=fork)

    def comment(self, number: int) -> str:
        """The one comment of ours."""
        (found,) = [c for c in self.there.comments_of(number) if MARKER in c.body]
        return found.body

    def status(self, commit: str, context: str = "egs/check") -> tuple[str, str]:
        found = self.there.status(commit, context)
        assert found is not None, f"{commit} has no status {context}"
        return found["state"], found["description"]

    def writes(self) -> int:
        return len(self.there.writes())


def _keys(folder: Path, level: Level) -> Trust:
    key = folder / "controller"
    key.touch(mode=0o600)
    key.write_bytes(private_text("controller"))
    (folder / "trust").mkdir()
    (folder / "trust" / "allowed_signers").write_text(line("controller") + "\n")
    return Trust(level, folder / "trust", key)


@pytest.fixture
def whole(tmp_path: Path) -> Iterator[Callable[..., Whole]]:
    made: list[tuple[Whole, object]] = []

    def make(
        kind: str = "github",
        files: dict[str, str] | None = None,
        level: Level = "none",
        *,
        trusted: bool = False,
    ) -> Whole:
        """`trusted`: Bo is known by his account, and the controller by its key."""
        there = fake.Forge(repos.bare(tmp_path / "fleet.git", {**BASE, **(files or {})}), kind)
        context = fake.served(there, tmp_path)
        address = context.__enter__()
        settings = Settings(str(there.repo), tmp_path / "state", forge=address, pushes_per_minute=None)
        settings = replace(settings, trust=replace(settings.trust, level=level))
        if trusted:
            bo = {"email": "bo@example.com", "forge": {"login": "bo", "id": there.user("bo").id}}
            there.push("main", {"slices/a/slice.yaml": slice_("a", members=[bo])}, "ada")
            settings = replace(settings, trust=_keys(tmp_path, level))
        found = Whole(there, settings)
        made.append((found, context))
        return found

    yield make
    for found, context in made:
        found.watcher.close()
        context.__exit__(None, None, None)  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", ["github", "gitlab", "gitea"])
def test_a_pull_request_is_told_what_it_would_do_and_followed_to_its_start(
    whole: Callable[..., Whole], kind: str
) -> None:
    it = whole(kind)
    number = it.ask()
    it.look()
    head = it.there.pulls[number].head
    assert it.status(head)[0] == "success"
    assert "`a/llama`" in it.comment(number)
    assert "Good to merge" in it.comment(number)

    before = it.writes()
    for _ in range(3):
        it.look()
    assert it.writes() == before, "the same is not said again"

    merge = it.there.merge(number, "ada", "squash")
    it.run(timedelta(seconds=30))
    it.look()
    state, line = it.status(merge, "egs/schedule")
    assert (state, line.startswith("a/llama: starts ")) == ("pending", True)
    assert "### Merged" in it.comment(number)

    it.run(timedelta(minutes=10))
    it.look()
    state, line = it.status(merge, "egs/schedule")
    assert (state, line.startswith("a/llama: started ")) == ("success", True)
    assert "started" in it.comment(number)
    before = it.writes()
    it.run(timedelta(minutes=10))
    it.look()
    assert it.writes() == before, "it is followed to its start, no further"


def test_a_pull_request_from_a_fork_is_told_too(whole: Callable[..., Whole]) -> None:
    it = whole()
    number = it.ask(fork="bo")
    it.look()
    assert it.status(it.there.pulls[number].head)[0] == "success"
    assert MARKER in it.comment(number)


def test_what_is_not_valid_is_refused_in_the_same_comment(whole: Callable[..., Whole]) -> None:
    it = whole()
    number = it.ask()
    it.look()
    it.there.push("ask-llama", {gpr_path("a/llama"): "kind: GPR\nnodes: 010\n"}, "bo")
    it.look()
    assert it.status(it.there.pulls[number].head)[0] == "failure"
    assert "cannot be merged" in it.comment(number)


def test_a_branch_without_a_common_history_says_so(whole: Callable[..., Whole]) -> None:
    it = whole()
    tree = repos.git(it.there.repo, "rev-parse", "main^{tree}")
    oid = repos.commit_tree(it.there.repo, tree, "orphan")
    it.there.pushed("orphan", "", oid, "bo")
    number = it.there.open("orphan", "bo")
    it.look()
    assert it.status(oid)[0] == "failure"
    assert "no commit in common" in it.comment(number).replace("\\", "")


def test_a_queue_that_moved_makes_the_check_anew(whole: Callable[..., Whole]) -> None:
    it = whole()
    number = it.ask(nodes=2)
    it.look()
    first = it.comment(number)
    it.there.push("main", {gpr_path("b/other"): gpr("b", "other", 1)}, "bo")
    it.run(MINUTE)
    it.look()
    assert it.comment(number) != first


def test_what_says_the_same_is_brought_up_to_date_seldom(whole: Callable[..., Whole]) -> None:
    it = whole()
    number = it.ask()
    it.there.push("ask-llama", {gpr_path("a/llama"): "x"}, "bo")  # refused, whatever main is
    it.look()
    first, before = it.comment(number), it.writes()
    it.there.push("main", {"README.md": "news\n"}, "ada")
    it.run(MINUTE)
    it.look()
    assert it.writes() == before
    it.now += REFRESH
    it.look()
    assert it.writes() == before + 1
    assert it.comment(number) != first


def test_a_hostile_pull_request_keeps_no_other_from_its_answer(whole: Callable[..., Whole]) -> None:
    it = whole()
    link = repos.write_object(it.there.repo, "blob", b"/etc/passwd")
    broken = repos.write_object(it.there.repo, "tree", repos.tree_entry("100644", b"..", link))
    oid = repos.commit_tree(it.there.repo, broken, "hostile")
    it.there.pushed("hostile", "", oid, "eve")
    hostile = it.there.open("hostile", "eve")
    number = it.ask()
    it.look()
    assert it.status(it.there.pulls[number].head)[0] == "success"
    assert it.there.comments_of(hostile) == []


def test_the_budget_bounds_what_is_said_and_the_rest_comes_later(whole: Callable[..., Whole]) -> None:
    it = whole()
    numbers = [it.ask(f"r{n}") for n in range(14)]
    due = it.look()
    assert it.writes() <= PER_MINUTE
    assert due <= it.now + POLL
    told = [n for n in numbers if it.there.comments_of(n)]
    assert 0 < len(told) < len(numbers)
    for _ in range(4):
        it.now += MINUTE
        it.look()
    assert all(it.there.comments_of(n) for n in numbers)


def test_an_outage_is_a_fault_and_the_next_round_goes_on(whole: Callable[..., Whole]) -> None:
    it = whole()
    number = it.ask()
    it.there.down = 502
    with pytest.raises(Fault):
        it.look()
    it.there.down = None
    it.look()
    assert MARKER in it.comment(number)


def test_another_process_goes_on_with_the_same_comment(whole: Callable[..., Whole]) -> None:
    it = whole()
    number = it.ask()
    it.look()
    it.restart()
    it.look()
    assert len(it.there.comments_of(number)) == 1


def test_who_does_not_lead_says_nothing(whole: Callable[..., Whole]) -> None:
    it = whole()
    number = it.ask()
    assert it.cycle is not None
    it.watcher.note(replace(it.cycle, leading=False))
    it.watcher.round(it.now)
    assert it.there.comments_of(number) == []


def test_pull_requests_for_other_branches_are_none_of_ours(whole: Callable[..., Whole]) -> None:
    it = whole()
    it.there.push("release", {"README.md": "x\n"}, "ada")
    it.there.push("ask", {"README.md": "y\n"}, "bo", base="release")
    number = it.there.open("ask", "bo", base="release")
    it.look()
    assert it.there.comments_of(number) == []


def test_a_direct_push_is_followed_by_a_status_alone(whole: Callable[..., Whole]) -> None:
    it = whole()
    commit = it.there.push("main", {gpr_path("a/llama"): gpr("a", "llama", 2)}, "bo")
    it.there.push("main", {gpr_path("b/second"): gpr("b", "second", 1)}, "bo")
    it.run(timedelta(seconds=20))
    it.look()
    assert it.status(commit, "egs/schedule")[1].startswith("a/llama: ")


def test_what_waits_for_an_approval_says_so_after_the_merge(whole: Callable[..., Whole]) -> None:
    it = whole()
    number = it.ask("big", 2, "b")
    it.look()
    assert "approval" in it.comment(number)
    merge = it.there.merge(number, "bo")
    it.run(MINUTE)
    it.look()
    assert it.status(merge, "egs/schedule") == ("pending", "b/big: waits for an admin's approval")


def test_a_stranger_s_pull_request_of_the_same_commit_changes_nobody_s_status(
    whole: Callable[..., Whole],
) -> None:
    """The status is the commit's, the comment is each pull request's own."""
    it = whole(level="forge", trusted=True)
    number = it.ask()
    head = it.there.pulls[number].head
    it.look()
    assert it.status(head)[0] == "success"
    repos.git(it.there.repo, "update-ref", "refs/heads/copy", head)
    other = it.there.open("copy", "eve")
    it.look()
    assert it.status(head)[0] == "success"
    assert "cannot be merged" in it.comment(other)
    assert "Good to merge" in it.comment(number)
    it.restart()
    it.look()
    assert it.status(head)[0] == "success"
    it.there.pulls[number].state = "closed"
    it.look()
    assert it.status(head)[0] == "failure", "nobody entitled asks for it any more"


def test_a_stranger_who_is_first_with_somebody_s_commit_keeps_nobody_from_theirs(
    whole: Callable[..., Whole],
) -> None:
    it = whole(level="forge", trusted=True)
    it.there.push("ask", {gpr_path("a/llama"): gpr("a", "llama")}, "bo")
    repos.git(it.there.repo, "update-ref", "refs/heads/copy", it.there.pushes[-1].after)
    first = it.there.open("copy", "eve")
    head = it.there.pulls[first].head
    it.look()
    assert it.status(head)[0] == "failure"
    it.there.open("ask", "bo")
    it.look()
    assert it.status(head)[0] == "success"
    before = it.writes()
    it.look()
    assert it.writes() == before


def test_no_secret_is_in_what_is_said_or_logged(
    whole: Callable[..., Whole], caplog: pytest.LogCaptureFixture
) -> None:
    it = whole()
    number = it.ask()
    it.look()
    it.there.down = 403
    with pytest.raises(Fault) as caught:
        it.look()
    said = [
        caplog.text,
        str(caught.value),
        it.comment(number),
        *(s["description"] for s in it.there.statuses),
    ]
    assert not any(fake.TOKEN in text for text in said)
