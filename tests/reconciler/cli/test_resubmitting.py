"""Held changes do not stand in the way of those who may make them (A1, A6, D11)."""

from __future__ import annotations

import pytest

from reconciler.changes.reinstate import brought_again
from reconciler.store.store_port import Person
from schemas.status.gpr_status import Phase
from tests.reconciler.cli.rig import egs, main_file, minutes
from tests.reconciler.cli.test_signed_changes import Verified
from tests.support.repos import commit, git, tip
from tests.support.world import START

MINE, LAB = "slices/a/gprs/mine.yaml", "requests/lab.yaml"


@pytest.fixture
def running(tmp_path):
    """a/mine of bo holds a node; it is the fifth minute."""
    world = Verified(tmp_path)
    done = world.types("bo", "gpr", "create", "a/mine", "--nodes", 1, "--duration", "1h")
    assert (done.code, "will hold" in done.err) == (0, False), done.err
    world.run(minutes(5))
    assert world.phase("a/mine") is Phase.PROVISIONED
    return world


def pushed(world, path, text, until):
    """Somebody without a key pushes; the controller has looked."""
    commit(world.repo, {path: text}, "main", "Mine now")
    world.run(minutes(until))


def spec(world):
    return world.last.facts.requests["a/mine"].accepted_spec


def test_a_strangers_release_does_not_stand_in_the_way_of_the_members(running):
    pushed(running, MINE, main_file(running.repo, MINE) + "\n  earlyRelease: true\n", 6)
    assert running.phase("a/mine") is Phase.PROVISIONED
    done = running.types("bo", "gpr", "release", "a/mine")
    assert done.code == 0, done.err
    assert "is held" in done.err
    running.run(minutes(7))
    assert running.phase("a/mine") in {Phase.RELEASING, Phase.COMPLETED}


def test_what_a_stranger_slipped_in_is_not_taken_along(running):
    pushed(running, MINE, main_file(running.repo, MINE) + "\n  displayName: eve was here\n", 6)
    done = running.types("bo", "gpr", "extend", "a/mine", "0d0h10m")
    assert done.code == 0, done.err
    assert "eve was here" not in main_file(running.repo, MINE)
    running.run(minutes(7))
    assert spec(running).extend.total_seconds() == 600


def test_a_file_that_a_stranger_deleted_comes_back_with_the_edit(running):
    pushed(running, MINE, None, 6)
    cancelled = running.types("bo", "gpr", "cancel", "a/mine")
    assert (cancelled.code, "has no file" in cancelled.err) == (1, False)
    done = running.types("bo", "gpr", "release", "a/mine")
    assert done.code == 0, done.err
    running.run(minutes(7))
    assert running.phase("a/mine") in {Phase.RELEASING, Phase.COMPLETED}


def test_what_a_stranger_deleted_is_cancelled_like_any_other(running):
    running.types("bo", "gpr", "create", "a/next", "--nodes", 4, "--duration", "1h")
    running.run(minutes(6))
    pushed(running, "slices/a/gprs/next.yaml", None, 7)
    cancelled = running.types("bo", "gpr", "cancel", "a/next")
    assert cancelled.code == 0, cancelled.err
    running.run(minutes(8))
    assert running.phase("a/next") is Phase.CANCELLED


def test_in_a_clone_the_file_is_written_and_pushing_it_is_the_persons(running, tmp_path):
    pushed(running, MINE, main_file(running.repo, MINE) + "\n  earlyRelease: true\n", 6)
    git(tmp_path, "clone", "--quiet", str(running.repo), "clone")
    before = tip(running.repo)
    done = egs("gpr", "release", "a/mine", "--repo", tmp_path / "clone")
    assert (done.code, tip(running.repo)) == (0, before), done.err
    text = (tmp_path / "clone" / MINE).read_text()
    assert "earlyRelease: true\n# brought in again at " in text
    assert "earlyRelease" not in git(running.repo, "show", "main~1:" + MINE)


def test_an_approval_is_of_what_counts(running):
    running.types("bo", "gpr", "create", "a/big", "--nodes", 3, "--duration", "1h")
    running.run(minutes(6))
    path = "slices/a/gprs/big.yaml"
    digest = running.last.facts.requests["a/big"].accepted_spec.digest(200)
    pushed(running, path, main_file(running.repo, path).replace("nodes: 3", "nodes: 4") + "\n", 7)
    done = running.types("ada", "reject", "a/big", "--reason", "no", "--now", "2026-11-21T08:07:00Z")
    assert done.code == 0, done.err
    assert digest in main_file(running.repo, "approvals/a/big/ada.yaml")


def test_a_held_change_of_members_is_made_again_by_an_owner(running):
    path = "slices/a/slice.yaml"
    args = ("slice", "members", "add", "a", "eve@example.com", "--key", running.folder / "eve.pub")
    tried = running.types("eve", *args)
    assert tried.code == 0, tried.err
    running.run(minutes(6))
    done = running.types("ada", *args)
    assert done.code == 0, done.err
    assert (
        main_file(running.repo, path)
        .splitlines()[-1]
        .startswith("# brought in again by ada@example.com at 20")
    )
    running.types("eve", "gpr", "create", "a/hers", "--nodes", 1, "--duration", "1h")
    running.run(minutes(8))
    assert running.phase("a/hers") is not None


def test_a_request_that_was_held_is_filed_again_under_its_name(running):
    running.types("eve", "gpr", "create", "a/next", "--nodes", 1, "--duration", "1h")
    running.run(minutes(6))
    assert running.phase("a/next") is None
    done = running.types("bo", "gpr", "create", "a/next", "--nodes", 1, "--duration", "1h")
    assert done.code == 0, done.err
    running.run(minutes(8))
    assert running.phase("a/next") is not None


def test_an_admin_stands_behind_a_file_as_it_reads(running):
    """Also twice: one line says it, the latest."""
    asked = running.types("eve", "slice", "request", "lab", "--push")
    assert asked.code == 0, asked.err
    running.run(minutes(6))
    (row,) = egs("get", "requests", "--repo", running.repo, "-o", "json").json
    assert f"egs resubmit {LAB}" in row["message"]
    assert running.types("eve", "resubmit", LAB).code == 0
    running.run(minutes(7))
    assert running.last.facts.workspaces["lab"].phase == "PendingApproval", "eve is no admin"
    done = running.types("ada", "resubmit", LAB)
    assert done.code == 0, done.err
    running.run(minutes(8))
    assert running.last.facts.workspaces["lab"].phase == "Ready"
    assert main_file(running.repo, LAB).count("# brought in again") == 1
    again = running.types("ada", "resubmit", LAB)
    assert (again.code, "is not held" in again.err) == (1, True)
    filed = running.types("eve", "gpr", "create", "lab/first", "--nodes", 1, "--duration", "1h")
    assert filed.code == 0
    running.run(minutes(10))
    assert running.phase("lab/first") is not None, "the request for the slice has the key that eve signs with"


def test_a_member_is_warned_of_what_only_admins_may(running):
    running.types("bo", "gpr", "create", "a/one", "--nodes", 4, "--duration", "1h")
    running.types("bo", "gpr", "create", "a/two", "--nodes", 4, "--duration", "1h")
    running.run(minutes(6))
    done = running.types("bo", "gpr", "move", "a/two", "--first")
    assert (done.code, "MoveIsForAdmins" in done.err) == (0, True), done.err
    assert "NotAnOwner" in running.types("bo", "slice", "edit", "a", "paused=true").err
    told = running.types("ada", "slice", "edit", "a", "paused=false")
    assert "will hold" not in told.err, told.err


def test_the_merge_that_is_printed_is_signed_where_merges_are_words(running):
    asked = running.types("eve", "slice", "request", "lab")
    assert "git merge --no-ff -S FETCH_HEAD && git push" in asked.err, asked.err


def test_the_line_replaces_an_earlier_one():
    bo = Person("Bo", "bo@example.com")
    once = brought_again(b"a: 1", bo, START)
    assert once == b"a: 1\n# brought in again by bo@example.com at 2026-11-21T08:00:00Z\n"
    assert brought_again(once, None, START) == b"a: 1\n# brought in again at 2026-11-21T08:00:00Z\n"
