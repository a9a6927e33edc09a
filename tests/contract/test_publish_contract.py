"""One contract for every front that publishes a change to main: the API, commands, and the door for GPR objects.

Each front files the same request, in a real repository, while its push meets one trouble. `reconciler.changes.push`
says what an outcome means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol

import pytest

from portal.writes import writer
from portal.writes.write_request import Landed
from reconciler.gpr_objects import door as gpr_door
from reconciler.gpr_objects.door import DoorSettings, RequestDoor
from reconciler.settings import Settings
from reconciler.store.document_cache import DocumentCache
from reconciler.store.git.git_store import GitStore
from reconciler.store.store_port import Outcome
from schemas.errors import Fault
from schemas.reading.reader import READER_VERSION
from tests.reconciler.cli.rig import BO, egs
from tests.support import repos
from tests.support.asked import BASE, NAMESPACES, asked
from tests.support.portal import Site
from tests.support.wishes import submit, wish
from tests.support.world import START, at, gpr, gpr_path

MINE, THEIRS = gpr_path("vision/mine"), "slices/nlp/gprs/theirs.yaml"
Push = Callable[[GitStore, str, str, str | None], Outcome]


class Front(Protocol):
    """Files the request vision/mine as bo. Gives what is said if it is not filed; empty: it is."""

    repo: Path

    def file(self) -> str: ...

    def close(self) -> None: ...


class Api:
    """A portal's writer."""

    def __init__(self, folder: Path, _patch: pytest.MonkeyPatch) -> None:
        self.site = Site(folder)
        self.repo = self.site.repo

    def file(self) -> str:
        mine = wish(self.site, "bo-editor", "vision/mine", idempotency="once")
        (found,) = submit(self.site.portal, mine)
        return "" if isinstance(found, Landed) else str(found)

    def close(self) -> None:
        self.site.close()


class Command:
    """`egs gpr create` on a bare repository."""

    def __init__(self, folder: Path, _patch: pytest.MonkeyPatch) -> None:
        self.repo = repos.bare(folder / "repo.git", BASE)

    def file(self) -> str:
        what = ("vision/mine", "--nodes", 1, "--duration", "1h", "--now", "2026-11-21T08:00:00Z")
        done = egs("gpr", "create", *what, "--repo", self.repo, "--author", BO)
        return "" if done.code == 0 else done.err

    def close(self) -> None:
        pass


class Door:
    """Passes of a door over one object, in a cluster that is a value."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.repo = repos.bare(folder / "repo.git", BASE)
        self.store = GitStore(str(self.repo), folder / "mirror.git")
        settings = Settings(repo=str(self.repo), state=folder)
        self.told: dict[str, Any] = {}
        patch.setattr(gpr_door, "guarded_since", lambda *_: START)
        api: Any = SimpleNamespace(find=lambda _: None, patch=self._told)
        self.door = RequestDoor(
            api, self.store, DocumentCache(None, READER_VERSION), settings, DoorSettings("east", "commit")
        )
        known = {"_objects": {"vision-train/mine": asked("mine")}, "_namespaces": NAMESPACES}
        for name, items in known.items():
            followed = SimpleNamespace(
                items=lambda items=items: items, wait_synced=lambda _: None, learn=lambda _: None
            )
            patch.setattr(self.door, name, followed)

    def _told(self, _path: str, steps: Sequence[Any]) -> None:
        self.told = steps[1]["value"]

    def file(self) -> str:
        try:
            self.door.step(at(2))
        except Fault as fault:
            return str(fault)
        return "" if self.told["phase"] == "Filed" else str(self.told["message"])

    def close(self) -> None:
        self.store.close()


@pytest.fixture(params=[Api, Command, Door])
def front(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Front]:
    monkeypatch.setattr(writer, "SETTLE_S", (0.01,))
    made = request.param(tmp_path, monkeypatch)
    yield made
    made.close()


class Pushes:
    """Pushes to main from now on: each meets the next trouble; without one more it is a plain push."""

    def __init__(self, patch: pytest.MonkeyPatch, *troubles: Push) -> None:
        self.count, self.left, real = 0, list(troubles), GitStore.push

        def push(store: GitStore, branch: str, new: str, expected: str | None) -> Outcome:
            if branch != "main":
                return real(store, branch, new, expected)
            self.count += 1
            trouble = self.left.pop(0) if self.left else real
            return trouble(store, branch, new, expected)

        patch.setattr(GitStore, "push", push)


REAL = GitStore.push


def others_first(front: Front) -> Push:
    """Another push comes first."""

    def push(store: GitStore, branch: str, new: str, expected: str | None) -> Outcome:
        repos.commit(front.repo, {THEIRS: gpr("nlp", "theirs")})
        return REAL(store, branch, new, expected)

    return push


def others_after(front: Front) -> Push:
    """It lands, and another push comes on top before the branch is read again."""

    def push(store: GitStore, branch: str, new: str, expected: str | None) -> Outcome:
        assert REAL(store, branch, new, expected) is Outcome.COMMITTED
        repos.commit(front.repo, {THEIRS: gpr("nlp", "theirs")})
        return Outcome.CONFLICT

    return push


def answered_by(outcome: Outcome, *, lands: bool = False) -> Push:
    """That answer, whether or not the push lands."""

    def push(store: GitStore, branch: str, new: str, expected: str | None) -> Outcome:
        if lands:
            assert REAL(store, branch, new, expected) is Outcome.COMMITTED
        return outcome

    return push


def commits_of(front: Front) -> int:
    """How many commits of main changed the file."""
    return len(repos.git(front.repo, "log", "--format=%H", "main", "--", MINE).splitlines())


def test_a_change_is_one_commit_by_its_author(front: Front) -> None:
    assert front.file() == ""
    assert commits_of(front) == 1
    assert repos.git(front.repo, "log", "-1", "--format=%ae", "main", "--", MINE).strip() == "bo@example.com"


def test_a_lost_race_is_run_again_on_what_the_others_left(
    front: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    pushes = Pushes(monkeypatch, others_first(front))
    assert front.file() == ""
    assert (pushes.count, commits_of(front)) == (2, 1)
    assert repos.git(front.repo, "show", f"main:{THEIRS}")


def test_races_end(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    pushes = Pushes(monkeypatch, *[answered_by(Outcome.CONFLICT)] * 100)
    said = front.file()
    assert f"others pushed to main {pushes.count} times in a row" in said
    assert (10 <= pushes.count <= 30, commits_of(front)) == (True, 0)


def test_a_refusal_says_so_and_is_not_tried_again(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    pushes = Pushes(monkeypatch, answered_by(Outcome.REFUSED))
    assert "the server refused the push to main, which may be protected; " in front.file()
    assert (pushes.count, commits_of(front)) == (1, 0)


def test_a_push_that_landed_without_an_answer_is_made_once(
    front: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    Pushes(monkeypatch, answered_by(Outcome.UNKNOWN, lands=True))
    said = front.file()
    assert said == "" or "did not answer whether a push arrived" in said
    assert front.file() == "" or isinstance(front, Command), "a door looks again; the API knows the key"
    assert commits_of(front) == 1


def test_a_push_that_others_built_upon_is_made_once(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    """Main has another head than ours, but ours is below it: no lost race."""
    Pushes(monkeypatch, others_after(front))
    assert front.file() == ""
    assert commits_of(front) == 1


def test_a_push_without_an_answer_that_did_not_land_is_made_once(
    front: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The API makes it again, because it finds its own writes; the others say so and are run again."""
    Pushes(monkeypatch, answered_by(Outcome.UNKNOWN))
    said = front.file()
    assert said == "" or "the server did not answer whether " in said
    assert said == "" or front.file() == ""
    assert commits_of(front) == 1


def test_the_same_change_again_makes_no_second_commit(front: Front) -> None:
    assert front.file() == ""
    again = front.file()
    assert again == "" or "exists already" in again
    assert commits_of(front) == 1
