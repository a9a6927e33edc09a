"""`egs validate`: every problem in one run, in three forms, from wherever the documents lie."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.cli.answers import kept_validation, validation
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


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files need not lie for seconds before what was found in them is kept."""
    monkeypatch.setattr(kept_validation, "RACY", timedelta(days=-1))


def checks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each check of files from now on."""
    made: list[int] = []
    real = validation.check_files
    monkeypatch.setattr(validation, "check_files", lambda *args: made.append(1) or real(*args))
    return made


def test_a_clone_that_did_not_change_is_not_checked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settled: None
) -> None:
    """What was found is told in every form."""
    tree, made = worktree(tmp_path / "w", BROKEN), checks(monkeypatch)
    forms = ("table", "json", "github")
    first, again = ([egs("validate", tree, "-o", form) for form in forms] for _ in range(2))
    assert first == again
    assert len(made) == 1


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            lambda file: file.write_text(file.read_text().replace("nodes: 1", "nodes: 0")), id="an edit"
        ),
        pytest.param(lambda file: file.rename(file.with_name("other.yaml")), id="a new name"),
        pytest.param(lambda file: file.chmod(0o755), id="a program"),
        pytest.param(lambda file: (file.unlink(), file.symlink_to("x")), id="a link"),
        pytest.param(
            lambda file: (file.parents[3] / "clusters" / "x.yaml").write_text("a: b"), id="a new file"
        ),
    ],
)
def test_a_clone_that_changed_is_checked_again(
    tmp_path: Path, settled: None, change: Callable[[Path], object]
) -> None:
    tree = worktree(tmp_path / "w", fleet(**request("a/run")))
    before = egs("validate", tree)
    change(next(tree.glob("slices/*/gprs/*.yaml")))
    after = egs("validate", tree)
    assert after != before
    assert [after, before] == [egs("validate", tree), before]


def test_problems_hold_while_the_status_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settled: None
) -> None:
    """Files of finished requests are not checked, so a new status may say something else."""
    repo = repository(tmp_path / "r.git", fleet(**request("a/run"), **{"slices/a/odd.yaml": "a: b\n"}))
    control = Control(repo, tmp_path / "state")
    control.run(minutes(1))
    tree, made = tmp_path / "w", checks(monkeypatch)
    git(tmp_path, "clone", "--quiet", str(repo), str(tree))
    first = egs("validate", tree)
    assert first == egs("validate", tree)
    assert len(made) == 1
    commit(repo, request("a/more"))
    control.run(minutes(2))
    assert first == egs("validate", tree)
    assert len(made) == 2


def test_what_just_changed_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second change within the clock's steps would not show."""
    tree, made = worktree(tmp_path / "w", BROKEN), checks(monkeypatch)
    assert egs("validate", tree) == egs("validate", tree)
    assert len(made) == 2


def test_every_program_that_can_decide_an_answer_is_in_the_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours are all that import-linter lets a command import."""
    rooms = ("egs", "reconciler/status", "scheduler", "schemas/rules")
    for room in rooms:
        (tmp_path / room).mkdir(parents=True)
        (tmp_path / room / "one.py").write_text("")
    monkeypatch.setattr(kept_validation, "_OURS", tmp_path)
    found = [kept_validation._version()]
    for room in rooms:
        (tmp_path / room / "one.py").write_text("changed = True")
        found.append(kept_validation._version())
    (tmp_path / "schemas/rules/one.py").rename(tmp_path / "schemas/rules/two.py")
    found.append(kept_validation._version())
    installed = kept_validation._libraries()
    assert any(name.startswith("pydantic_core-") for name in installed)
    monkeypatch.setattr(kept_validation, "_libraries", lambda: [*installed, "new-1.dist-info"])
    found.append(kept_validation._version())
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("what", ["damaged", "of other rules"])
def test_a_result_that_cannot_be_trusted_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settled: None, what: str
) -> None:
    tree, made = worktree(tmp_path / "w", BROKEN), checks(monkeypatch)
    before = egs("validate", tree)
    if what == "damaged":
        (kept,) = (tmp_path / "cache" / "read").glob("*.validated.sqlite")
        kept.write_bytes(kept.read_bytes().replace(b'"documents"', b'"documentz"'))
    else:
        monkeypatch.setattr(kept_validation, "_version", lambda: "other")
    assert egs("validate", tree) == before
    assert len(made) == 2
