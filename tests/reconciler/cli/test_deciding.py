"""`egs approve`, `egs reject`, `egs init`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reconciler.cli.rig import (
    ADA,
    BO,
    NOW,
    Control,
    egs,
    fleet,
    folder,
    main_file,
    minutes,
    repository,
    request,
    shell,
)
from tests.support.repos import commit, tip

WORD = "approvals/a/over/ada.yaml"


def _over(tmp_path: Path) -> Path:
    return repository(tmp_path / "r.git", fleet(**request("a/over", nodes=3)))


def test_an_approval_binds_the_request_as_it_reads_now(tmp_path: Path) -> None:
    """E5: the digest of the resolved spec, and as much as it asks for."""
    repo = _over(tmp_path)
    shown = egs("describe", "gpr", "a/over", "--repo", repo, "-o", "json").json
    said = ("--reason", "for the paper", "--now", NOW)
    done = egs("approve", "a/over", "--repo", repo, "--author", ADA, *said)
    assert (done.code, done.out, "is not signed" in done.err) == (0, "", True)
    assert main_file(repo, WORD).splitlines() == [
        "apiVersion: egs.dev/v1alpha1", "kind: Approval", "metadata:", "  name: ada", "spec:", "  slice: a",
        "  gpr: over", "  decision: approve", f"  specDigest: {shown['status']['specDigest']}",
        "  limit:", "    gpus: 24", "    nodes: 3",
        "  notAfter: 2026-12-21T08:00:00Z", "  reason: for the paper",
    ]  # fmt: skip


def test_the_controller_plans_it_from_then_on_and_waits_again_after_an_edit(tmp_path: Path) -> None:
    """E5: approve, then ask for more: the word does not cover it."""
    repo = _over(tmp_path)
    control = Control(repo, tmp_path / "state")
    control.run(minutes(1))
    limits = ("--limit-gpus", "32", "--limit-nodes", "4", "--not-after", "2026-12-01T00:00:00Z")
    assert egs("approve", "a/over", "--repo", repo, "--author", ADA, *limits).code == 0
    control.run(minutes(2))
    assert _phase(repo) in {"Queued", "Provisioning"}
    text = main_file(repo, WORD)
    assert "    gpus: 32\n    nodes: 4\n  notAfter: 2026-12-01T00:00:00Z" in text


def _phase(repo: Path) -> str:
    (row,) = egs("get", "gprs", "--repo", repo, "-o", "json").json
    return str(row["phase"])


def test_a_rejection_ends_it_with_its_reason(tmp_path: Path) -> None:
    """E5."""
    repo = _over(tmp_path)
    control = Control(repo, tmp_path / "state")
    control.run(minutes(1))
    assert (
        egs("reject", "a/over", "--repo", repo, "--author", ADA, "--reason", "wait for new nodes").code == 0
    )
    control.run(minutes(2))
    assert _phase(repo) == "Rejected"
    assert "rejected by ada: wait for new nodes" in egs("why", "a/over", "--repo", repo).out
    again = egs("approve", "a/over", "--repo", repo, "--author", ADA)
    assert (again.code, "nothing to decide" in again.err) == (1, True)


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        pytest.param(
            ["approve", "a/over", "--author", BO], 1, "admins are ada", id="somebody who is no admin"
        ),
        pytest.param(
            ["approve", "a/over", "--as", "bo", "--author", BO], 1, "admins are ada", id="an unknown name"
        ),
        pytest.param(
            ["approve", "a/over", "--author", ADA, "--limit-nodes", "2"],
            1,
            "is below what",
            id="too small a limit",
        ),
        pytest.param(
            ["approve", "a/over", "--author", ADA, "--not-after", "soon"], 2, "reads like", id="no time"
        ),
        pytest.param(
            ["approve", "a/over", "--author", ADA, "--not-after", "2020-01-01T00:00:00Z"],
            2,
            "2020-01-01T00:00:00Z is in the past",
            id="a time that is over",
        ),
        pytest.param(["approve", "a/none", "--author", ADA], 1, "did you mean a/over", id="no such request"),
        pytest.param(["reject", "a/over", "--author", ADA], 2, "--reason", id="a rejection without a reason"),
    ],
)
def test_a_word_that_cannot_count_is_refused(
    tmp_path: Path, args: list[str], code: int, sentence: str
) -> None:
    repo = _over(tmp_path)
    before = tip(repo)
    done = egs(*args, "--repo", repo)
    assert (done.code, done.err.count("\n"), tip(repo)) == (code, 1, before)
    assert sentence in done.err


def test_a_request_that_needs_no_word_gets_none(tmp_path: Path) -> None:
    repo = repository(tmp_path / "r.git", fleet(**request("a/small")))
    before = tip(repo)
    done = egs("approve", "a/small", "--repo", repo, "--author", ADA)
    assert (done.code, "needs no approval" in done.err, tip(repo)) == (1, True, before)


def test_a_word_that_was_given_may_be_renewed(tmp_path: Path) -> None:
    repo = _over(tmp_path)
    assert egs("approve", "a/over", "--repo", repo, "--author", ADA).code == 0
    assert egs("approve", "a/over", "--repo", repo, "--author", ADA, "--limit-nodes", "4").code == 0
    assert "    nodes: 4" in main_file(repo, WORD)


def test_init_without_a_name_asks_for_what_it_takes(tmp_path: Path) -> None:
    done = egs("init", tmp_path / "g")
    assert (done.code, "--admin" in done.err, "--author" in done.err) == (2, True, False)


def test_in_a_folder_the_admin_is_named(tmp_path: Path) -> None:
    repo = folder(tmp_path / "f", fleet(**request("a/over", nodes=3)))
    assert egs("approve", "a/over", "--as", "ada", "--repo", repo).code == 0
    rules = [p["rule"] for p in egs("validate", repo, "-o", "json").json["problems"]]
    assert rules == ["UnsignedApproval"]


# -- init ------------------------------------------------------------------------------------------------------------


def test_init_makes_a_repository_for_project_default(tmp_path: Path) -> None:
    """B1: valid at once, a Git repository on main, ready to commit; only a fleet is missing."""
    path = tmp_path / "gpus"
    assert egs("init", path, "--admin", "ada@example.com").code == 0
    checked = egs("validate", path, "-o", "json")
    assert (checked.code, checked.json) == (0, {"documents": 1, "problems": []})
    assert "name: default" in (path / "project.yaml").read_text()
    assert shell(path, "git", "symbolic-ref", "--short", "HEAD").stdout == "main\n"
    status = shell(path, "git", "status", "--porcelain", "-uall").stdout
    assert "?? project.yaml" in status
    assert "?? slices/.gitkeep" in status
    assert egs("plan", "--repo", path, "-o", "json").json["requests"] == []


def test_init_overwrites_nothing(tmp_path: Path) -> None:
    """B1: what is there stays, a README too."""
    (tmp_path / "README.md").write_text("ours")
    assert egs("init", tmp_path, "--admin", "ada@example.com").code == 0
    assert (tmp_path / "README.md").read_text() == "ours"
    before = (tmp_path / "project.yaml").read_bytes()
    done = egs("init", tmp_path, "--admin", "eve@example.com")
    assert (done.code, "nothing is overwritten" in done.err) == (1, True)
    assert (tmp_path / "project.yaml").read_bytes() == before


@pytest.mark.parametrize("mail", ["nobody", "a@b c", "x\n@y"])
def test_init_needs_an_admin(tmp_path: Path, mail: str) -> None:
    assert egs("init", tmp_path / "g", "--admin", mail).code == 2
    assert not (tmp_path / "g").exists()
    assert egs("init", tmp_path / "g").code == 2


def test_init_refuses_what_is_no_folder(tmp_path: Path) -> None:
    assert egs("init", repository(tmp_path / "r.git", {}), "--admin", "ada@example.com").code == 2


def test_an_edit_in_main_after_approval_needs_a_new_word(tmp_path: Path) -> None:
    """E5."""
    repo = _over(tmp_path)
    assert egs("approve", "a/over", "--repo", repo, "--author", ADA).code == 0
    commit(repo, request("a/over", nodes=4))
    rules = [p["rule"] for p in egs("validate", repo, "-o", "json").json["problems"]]
    assert rules == ["UnsignedApproval", "StaleApproval", "NeedsApproval"]
