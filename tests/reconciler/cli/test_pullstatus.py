"""`egs pr status`: open pull requests as they are now, on a forge and on plain Git."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reconciler.cli.rig import BO, NOW, egs, fleet, repository, request
from tests.support import forge as fake
from tests.support.repos import git
from tests.support.world import _document, project, slice_

ADA = {"email": "ada@example.com", "forge": {"login": "ada", "id": 12}}
PEOPLE = {
    "project.yaml": project(admins=[ADA]),
    "slices/a/slice.yaml": slice_(
        "a",
        members=[{"email": "bo@example.com", "forge": {"login": "bo", "id": 13}}],
        quota={"gpus": 16},
        limits={"maxPriority": 200},
    ),
}


@pytest.fixture(params=["github", "gitlab", "gitea"])
def forge(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[fake.Forge]:
    found = fake.Forge(repository(tmp_path / "r.git", fleet(**PEOPLE)), request.param)
    assert (found.user("ada").id, found.user("bo").id) == (12, 13)
    token = tmp_path / "token"
    token.write_text(fake.TOKEN)
    with fake.serve(found) as api:
        for name, value in (
            ("", request.param),
            ("_API", api),
            ("_REPOSITORY", fake.REPOSITORY),
            ("_TOKEN_FILE", token),
        ):
            monkeypatch.setenv(f"EGS_FORGE{name}", str(value))
        yield found


def rows(forge: fake.Forge, *more: object) -> list[dict[str, object]]:
    done = egs("pr", "status", "--repo", forge.repo, "--now", NOW, "-o", "json", *more)
    assert done.code == 0, done.err
    return list(done.json)


def test_each_says_what_it_would_do_and_what_it_waits_for(forge: fake.Forge) -> None:
    forge.push("mine", request("a/mine"), "bo")
    forge.push("big", request("a/big", nodes=4), "bo")
    forge.push("bad", request("a/bad", priority=300), "bo")
    forge.push("foreign", request("b/theirs"), "bo")
    for branch in ("mine", "big", "bad", "foreign"):
        forge.open(branch, "bo", title=f"About {branch}")
    found = {str(row["title"]).split()[-1]: row for row in rows(forge)}
    assert {name: row["verdict"] for name, row in found.items()} == {
        "mine": "clear", "big": "waits", "bad": "refused", "foreign": "refused",
    }  # fmt: skip
    assert found["big"]["needs"][0]["admins"] == ["ada"]  # type: ignore[index]
    assert "a/mine starts" in str(found["mine"]["summary"])
    assert [row["author"] for row in found.values()] == ["bo"] * 4


def test_approvals_of_an_older_head_and_a_main_that_moved_are_stale(forge: fake.Forge) -> None:
    forge.push("big", request("a/big", nodes=4), "bo")
    number = forge.open("big", "bo")
    forge.approve(number, "ada")
    (row,) = rows(forge, number)
    assert (row["approvedBy"], row["staleApprovals"], row["behind"]) == (["ada"], [], 0)
    forge.push("big", request("a/big", nodes=5), "bo")
    forge.push("main", request("b/other"), "ada")
    (row,) = rows(forge)
    if forge.kind != "gitlab":  # which forgets them, or does not tell of which head they were
        assert (row["approvedBy"], row["staleApprovals"]) == ([], ["ada"])
    assert row["behind"] == 1
    table = egs("pr", "status", "--repo", forge.repo, "--now", NOW)
    assert "main moved by 1" in table.out


def test_a_slice_that_somebody_asks_for_waits_for_an_admin(forge: fake.Forge) -> None:
    """B9: it can be merged by an admin, and says so; it is not refused."""
    asked = {"requester": {"email": "bo@example.com"}, "clusters": ["east"], "namespaces": ["nlp"]}
    forge.push("nlp", {"requests/nlp.yaml": _document("WorkspaceRequest", "nlp", asked)}, "bo")
    forge.open("nlp", "bo")
    (row,) = rows(forge)
    assert row["verdict"] == "waits", row


def test_one_that_is_merged_says_so(forge: fake.Forge) -> None:
    forge.push("mine", request("a/mine"), "bo")
    number = forge.open("mine", "bo")
    forge.merge(number, "ada")
    assert rows(forge) == []
    (row,) = rows(forge, number)
    assert (row["state"], row["summary"], row["verdict"]) == ("merged", "is merged", None)


def test_on_plain_git_branches_stand_for_pull_requests(tmp_path: Path) -> None:
    repo = repository(tmp_path / "r.git", fleet())
    wish = ("--nodes", 1, "--duration", "1h", "--pull-request", "--repo", repo, "--author", BO)
    assert egs("gpr", "create", "a/mine", *wish).code == 0
    assert egs("gpr", "create", "a/big", *wish[2:], "--nodes", 4).code == 0
    done = egs("pr", "status", "--repo", repo, "--now", NOW, "-o", "json")
    assert [(row["name"], row["author"], row["verdict"]) for row in done.json] == [
        ("requests/a-big", "bo@example.com", "waits"),
        ("requests/a-mine", "bo@example.com", "clear"),
    ]
    git(repo, "update-ref", "refs/heads/main", "requests/a-mine")
    (left,) = egs("pr", "status", "--repo", repo, "--now", NOW, "-o", "json").json
    assert (left["name"], left["behind"]) == ("requests/a-big", 1)
    (merged,) = egs("pr", "status", "a-mine", "--repo", repo, "--now", NOW, "-o", "json").json
    assert merged["state"] == "merged"
    wrong = egs("pr", "status", "a-min", "--repo", repo)
    assert (wrong.code, "did you mean requests/a-mine" in wrong.err) == (1, True)


def test_a_branch_that_is_no_relative_says_so(tmp_path: Path) -> None:
    repo = repository(tmp_path / "r.git", fleet())
    tree = git(repo, "rev-parse", "main^{tree}")
    lone = git(repo, "commit-tree", tree, "-m", "Out of nowhere")
    git(repo, "update-ref", "refs/heads/requests/lone", lone)
    (row,) = egs("pr", "status", "--repo", repo, "--now", NOW, "-o", "json").json
    assert (row["verdict"], row["title"]) == ("refused", "Out of nowhere")
