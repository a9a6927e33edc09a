"""What people mistype: each mistake ends in one sentence that names it, and in nothing written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reconciler.cli.rig import (
    BO,
    NOW,
    Control,
    egs,
    fleet,
    folder,
    minutes,
    repository,
    request,
    worktree,
)
from tests.support.repos import tip

ASK = ("--nodes", "1", "--duration", "1h")
READS = "write a duration above zero, like 0d6h0m, 6h, 90m or 1w"


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        pytest.param(
            ["create", "A/mine", *ASK],
            2,
            "A/mine is not a valid name: use lower-case letters, digits and '-', at most 63",
            id="a name that no file may have",
        ),
        *(
            pytest.param(
                ["create", "a/mine", "--nodes", "1", "--duration", text],
                2,
                f"--duration {text}: {READS}",
                id=text,
            )
            for text in ("6", "six", "-6h", "0h")
        ),
        pytest.param(["extend", "a/there", "6"], 2, READS, id="extend"),
        pytest.param(["edit", "a/there", "duration=6"], 2, "write a duration like 6h", id="edit"),
        pytest.param(
            ["create", "a/mine", *ASK, "--not-before", "soon"], 2, "--not-before soon", id="no time"
        ),
        pytest.param(
            ["create", "a/mine", *ASK, "--start", "now"], 2, "one of asap, ready", id="no such mode"
        ),
        pytest.param(["create", "a/mine", *ASK, "--cluster", "eas"], 1, "did you mean east?", id="cluster"),
        pytest.param(["create", "a/mine", *ASK, "--template", "x"], 1, "no template x", id="template"),
        pytest.param(["edit", "a/there", "slice=b"], 1, "slice cannot be edited", id="another slice"),
        pytest.param(["edit", "a/there", "metadata.name=b"], 1, "metadata.name cannot be", id="another name"),
    ],
)
def test_a_mistake_is_named_and_nothing_is_written(
    tmp_path: Path, args: list[str], code: int, sentence: str
) -> None:
    repo = repository(tmp_path / "r.git", fleet(**request("a/there")))
    before = tip(repo)
    done = egs("gpr", *args, "--repo", repo, "--author", BO)
    assert (done.code, done.out, done.err.count("\n"), tip(repo)) == (code, "", 1, before)
    assert sentence in done.err
    assert "<" not in done.err


def test_a_wait_names_the_option_too(tmp_path: Path) -> None:
    repo = folder(tmp_path / "f", fleet())
    done = egs("wait", "--slice", "a", "--nodes", 1, "--duration", "six", "--repo", repo)
    assert (done.code, done.err) == (2, f"egs: --duration six: {READS}\n")


@pytest.mark.parametrize(
    ("repo", "words"),
    [
        ("git@host:a/b.git", "ssh needs a private key"),
        ("ssh://git@host/b.git", "ssh needs a private key"),
        ("ssh://bo:hunter22@host/b.git", "without a password"),
        ("ftp://bo:hunter22@host/b.git", "'ftp' is not one of"),
    ],
)
def test_an_address_that_cannot_be_opened_says_why_without_its_password(repo: str, words: str) -> None:
    done = egs("plan", "--repo", repo)
    assert (done.code, done.err.count("\n"), words in done.err, "hunter22" in done.err) == (2, 1, True, False)


def test_a_folder_that_is_no_repository_says_how_to_begin_one(tmp_path: Path) -> None:
    done = egs("plan", "--repo", tmp_path)
    assert done.code == 1
    assert "is not a repository: it has no project.yaml; choose one with --repo" in done.err


def test_the_clock_never_runs_behind_the_status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo's time runs ahead of ours; who has started waits for nothing, whatever the clock says."""
    monkeypatch.setattr(
        "reconciler.queries.state.SystemClock", lambda: type("Past", (), {"now": lambda _: minutes(-90)})()
    )
    repo = repository(tmp_path / "r.git", fleet(**request("a/run"), **request("a/then")))
    Control(repo, tmp_path / "state").run(minutes(10))
    found = egs("plan", "--repo", repo, "-o", "json").json
    assert found["now"] >= NOW
    fixed = egs("plan", "--repo", repo, "--now", "2026-11-21T07:00:00Z", "-o", "json").json
    assert fixed["now"] == "2026-11-21T07:00:00Z"
    assert (fixed["requests"][0]["phase"], fixed["requests"][0]["estimatedWaitSeconds"]) == ("Provisioned", 0)


def test_only_a_work_tree_has_a_next_step(tmp_path: Path) -> None:
    tree = worktree(tmp_path / "w", fleet())
    assert "next: git add -A" in egs("gpr", "create", "a/mine", *ASK, "--repo", tree).err


def test_one_of_a_thing_is_not_several(tmp_path: Path) -> None:
    (tmp_path / "project.yaml").write_text(fleet()["project.yaml"])
    assert egs("validate", tmp_path).err == "egs: 1 document, nothing wrong\n"


def test_a_description_has_true_and_false(tmp_path: Path) -> None:
    done = egs("describe", "gpr", "a/x", "--repo", folder(tmp_path / "f", fleet(**request("a/x"))))
    assert "preemptible: true" in done.out
