"""`egs validate`: every problem in one run, in three forms, from wherever the documents lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reconciler.cli.rig import Control, egs, fleet, folder, minutes, repository, request, worktree
from tests.support.repos import commit, git

BROKEN = fleet(**request("a/first", nodes=2, priority=250), **request("b/over", nodes=40, clusters=["west"]))


def test_every_problem_is_listed_with_its_place_and_what_to_do(tmp_path: Path) -> None:
    """A4, A14: exactly the documented keys, sorted by file and line, exit 1 on an error."""
    done = egs("validate", folder(tmp_path / "f", BROKEN), "-o", "json")
    assert done.code == 1
    assert set(done.json) == {"documents", "problems"}
    assert done.json["documents"] == 6
    problems = done.json["problems"]
    assert {key for problem in problems for key in problem} == {
        "file", "line", "column", "rule", "severity", "message", "fix"
    }  # fmt: skip
    assert problems == sorted(problems, key=lambda p: (p["file"], p["line"], p["column"]))
    first = problems[0]
    assert (first["file"], first["line"], first["rule"]) == ("slices/a/gprs/first.yaml", 9, "PriorityTooHigh")


def test_needing_approval_is_a_notice_and_no_error(tmp_path: Path) -> None:
    """E5."""
    done = egs("validate", folder(tmp_path / "f", fleet(**request("a/over", nodes=3))), "-o", "json")
    assert done.code == 0
    assert [(p["rule"], p["severity"]) for p in done.json["problems"]] == [("NeedsApproval", "notice")]


def test_a_table_has_a_line_for_each_problem_and_a_count_beside_it(tmp_path: Path) -> None:
    done = egs("validate", "--repo", folder(tmp_path / "f", BROKEN))
    assert done.out.startswith("slices/a/gprs/first.yaml:9:13: error PriorityTooHigh: ")
    assert done.err.startswith("egs: 6 documents, ")


def test_github_gets_annotations(tmp_path: Path) -> None:
    done = egs("validate", folder(tmp_path / "f", BROKEN), "-o", "github")
    assert done.out.startswith("::error file=slices/a/gprs/first.yaml,line=9,col=13,title=PriorityTooHigh::")


def test_the_same_is_found_in_a_bare_repository_and_a_work_tree(tmp_path: Path) -> None:
    want = egs("validate", folder(tmp_path / "f", BROKEN), "-o", "json").json
    assert egs("validate", repository(tmp_path / "r.git", BROKEN), "-o", "json").json == want
    assert egs("validate", worktree(tmp_path / "w", BROKEN), "-o", "json").json == want
    assert egs("validate", "--repo", tmp_path / "w", "--ref", "HEAD", "-o", "json").json == want


def test_the_folder_we_stand_in_is_checked_from_anywhere_below_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = folder(tmp_path / "f", fleet())
    monkeypatch.chdir(repo / "slices" / "a")
    assert egs("validate", "-o", "json").json == {"documents": 4, "problems": []}


def test_links_and_programs_are_no_documents(tmp_path: Path) -> None:
    """What Git would record as no plain file is refused before it is committed; a link is never followed."""
    tree = worktree(tmp_path / "w", fleet(**request("b/run")))
    (tree / "clusters" / "link.yaml").symlink_to(tree / "project.yaml")
    (tree / "slices" / "b" / "gprs" / "run.yaml").chmod(0o755)
    problems = egs("validate", tree, "-o", "json").json["problems"]
    assert [(p["file"], p["rule"]) for p in problems] == [
        ("clusters/link.yaml", "NotAFile"),
        ("slices/b/gprs/run.yaml", "NotAFile"),
    ]


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    repo = repository(tmp_path / "r.git", fleet(**{"templates/big.yaml": "x" * 100_000}))
    problems = egs("validate", repo, "-o", "json").json["problems"]
    assert [(p["file"], p["rule"]) for p in problems] == [("templates/big.yaml", "TooLarge")]


def test_against_refuses_edits_of_a_request_that_holds_nodes(tmp_path: Path) -> None:
    """D9: only the status knows that it does."""
    repo = repository(tmp_path / "r.git", fleet(**request("a/run", nodes=1)))
    Control(repo, tmp_path / "state").run(minutes(10))
    git(repo, "branch", "change", "main")
    commit(repo, request("a/run", nodes=2), "change")
    done = egs("validate", "--repo", repo, "--ref", "change", "--against", "main", "-o", "json")
    assert (done.code, [p["rule"] for p in done.json["problems"]]) == (1, ["ForbiddenEdit"])
    assert egs("validate", "--repo", repo, "--ref", "change").code == 0


def test_a_folder_that_is_not_there_is_wrong_use(tmp_path: Path) -> None:
    done = egs("validate", tmp_path / "none")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)


def test_an_empty_folder_is_no_repository(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = egs("validate", tmp_path / "empty", "-o", "json")
    assert (done.code, [p["rule"] for p in done.json["problems"]]) == (1, ["ProjectMissing"])
