"""Readers hear of what is held, of a main that is not followed, and of who has to approve (A1, A6, D9, D14)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reconciler.cli.rig import NOW, egs, minutes, request
from tests.reconciler.cli.test_signed_changes import Verified
from tests.support.repos import commit, git

CREATE = ("gpr", "create", "a/mine", "--nodes", 1, "--duration", "1h")


@pytest.fixture
def verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Verified:
    found = Verified(tmp_path)
    monkeypatch.setenv("EGS_REPO", str(found.repo))
    monkeypatch.setenv("EGS_TRUST", str(tmp_path / "trust"))
    return found


def why(key: str) -> str:
    done = egs("why", key)
    assert done.code == 0, done.err
    return done.out


def test_a_new_request_that_is_held_is_not_gone_for_its_author(verified: Verified) -> None:
    assert verified.types("eve", "gpr", "create", "a/hers", "--nodes", 1, "--duration", "1h").code == 0
    verified.run(minutes(3))
    said, oid = why("a/hers"), git(verified.repo, "rev-parse", "main")[:12]
    assert f"commit {oid}, rule NobodyStandsBehindIt" in said or f"commit {oid}, rule NotAMember" in said
    assert "it does not count, and the request is not planned" in said
    described = egs("describe", "gpr", "a/hers", "-o", "json").json
    assert (described["held"]["commit"][:12], described["held"]["counts"]) == (oid, False)
    assert "a/hers" in egs("get", "gprs").err


def test_an_edit_that_is_held_leaves_the_request_as_it_was(verified: Verified) -> None:
    assert verified.types("bo", *CREATE).code == 0
    verified.run(minutes(1))
    commit(verified.repo, request("a/mine", 1, "3h"))
    verified.run(minutes(5))
    said = why("a/mine")
    assert "An edit of its file is held" in said
    assert "the request itself continues as it was accepted" in said
    assert said.count("NobodyStandsBehindIt") == 1
    commit(verified.repo, {"slices/a/gprs/mine.yaml": None})
    verified.run(minutes(6))
    assert "The deletion of its file is held" in why("a/mine")


def test_held_changes_are_problems_with_commit_and_rule(verified: Verified) -> None:
    assert egs("get", "problems", "-o", "json").json == []
    oid = commit(verified.repo, request("a/theirs"))
    verified.run(minutes(3))
    (row,) = egs("get", "problems", "-o", "json").json
    assert (row["file"], row["rule"], row["severity"]) == (
        "slices/a/gprs/theirs.yaml",
        "NobodyStandsBehindIt",
        "error",
    )
    assert oid[:12] in row["message"]
    page = git(verified.repo, "show", "egs/status:README.md")
    assert f"| slices/a/gprs/theirs.yaml | NobodyStandsBehindIt | {oid[:12]} |" in page.split("## Held")[1]


def test_a_main_that_is_not_followed_is_a_problem_until_it_is_back(verified: Verified) -> None:
    good, old = git(verified.repo, "rev-parse", "main"), git(verified.repo, "rev-parse", "main^{tree}")
    other = git(verified.repo, "commit-tree", old, "-m", "Another history")
    git(verified.repo, "update-ref", "refs/heads/main", other)
    verified.run(minutes(3))
    (row,) = egs("get", "problems", "-o", "json").json
    assert (row["file"], row["rule"]) == ("main", "RepositoryAlarm")
    assert "main was rewritten" in row["message"]
    git(verified.repo, "update-ref", "refs/heads/main", good)
    verified.run(minutes(6))
    assert egs("get", "problems", "-o", "json").json == []


def test_who_waits_for_an_admin_hears_numbers_and_names(verified: Verified) -> None:
    files = {"slices/a/slice.yaml": git(verified.repo, "show", "main:slices/a/slice.yaml")}
    tree = files["slices/a/slice.yaml"].replace("spec:", "spec:\n  quota: {gpus: 2}", 1)
    signed = Path(verified.folder) / "tree"
    git(verified.folder, "clone", "--quiet", str(verified.repo), str(signed))
    (signed / "slices/a/slice.yaml").write_text(tree)
    sign = ("-c", "gpg.format=ssh", "-c", f"user.signingkey={verified.folder / 'ada'}")
    git(signed, *sign, "commit", "--quiet", "-S", "-am", "Quota")
    git(signed, "push", "--quiet", "origin", "HEAD:main")
    assert verified.types("bo", "gpr", "create", "a/mine", "--nodes", 3, "--duration", "1h").code == 0
    verified.run(minutes(3))
    said = why("a/mine")
    assert "may hold 2 per request" in said
    assert "ada may approve it (never their own request), with `egs approve a/mine`." in said
    assert "QuotaExceeded" not in said


def test_a_pull_request_is_judged_by_its_signatures(verified: Verified) -> None:
    asked = (*CREATE, "--pull-request")
    assert verified.types("bo", *asked).code == 0
    assert verified.types("eve", "gpr", "create", "a/hers", *asked[3:]).code == 0
    rows = {row["name"]: row for row in egs("pr", "status", "--now", NOW, "-o", "json").json}
    assert rows["requests/a-mine"]["verdict"] == "clear"
    assert rows["requests/a-mine"]["judged"] == "bo@example.com"
    assert rows["requests/a-hers"]["verdict"] == "refused"


def test_where_nobody_is_known_nothing_is_called_good(verified: Verified) -> None:
    git(verified.repo, "branch", "requests/theirs", "main")
    commit(verified.repo, request("a/theirs"), "requests/theirs")
    (row,) = egs("pr", "status", "--now", NOW, "-o", "json").json
    assert (row["judged"], "not judged here" in row["summary"]) == (None, True)
    assert "Good to merge" not in row["summary"]


def test_a_slice_asked_for_on_a_branch_says_where_it_waits(verified: Verified) -> None:
    assert verified.types("eve", "slice", "request", "lab").code == 0
    done = egs("describe", "request", "lab")
    assert (done.code, "which is not merged yet" in done.err) == (1, True)
    assert "there is no request" in egs("describe", "request", "lob").err


def test_why_tells_of_words_that_do_not_count(verified: Verified) -> None:
    """What the controller found wrong with an admin's word stands in the status; the reader hears it as well."""
    limits = {"project.yaml": git(verified.repo, "show", "main:project.yaml")}
    text = limits["project.yaml"].replace("spec:", "spec:\n  limits: {nodesPerRequest: 1}", 1)
    tree = Path(verified.folder) / "tree"
    git(verified.folder, "clone", "--quiet", str(verified.repo), str(tree))
    (tree / "project.yaml").write_text(text)
    sign = ("-c", "gpg.format=ssh", "-c", f"user.signingkey={verified.folder / 'ada'}")
    git(tree, *sign, "commit", "--quiet", "-S", "-am", "Limit")
    git(tree, "push", "--quiet", "origin", "HEAD:main")
    assert verified.types("ada", *CREATE[:4], 2, *CREATE[5:]).code == 0
    verified.run(minutes(2))
    verified.types("ada", "approve", "a/mine")
    verified.run(minutes(4))
    said = why("a/mine")
    assert "hold 1 without approval" in said
    assert "\nthe approval of ada does not count" in said
