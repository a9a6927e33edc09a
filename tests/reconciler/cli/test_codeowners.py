"""C10, A1: `egs codeowners` says in the forge's words who reviews what, and whether that is in force."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.forges.branch_protection import gitea_lacks, github_lacks
from reconciler.forges.json_fields import Row
from tests.reconciler.cli.rig import egs, fleet, folder, repository
from tests.support import forge as fake
from tests.support.repos import git, tip
from tests.support.world import project, slice_

ADA = {"email": "ada@example.com", "forge": {"login": "ada", "id": 11}}
IDA = {"email": "ida@example.com", "forge": {"login": "ida", "id": 12}}
FILES = {
    "project.yaml": project(admins=[ADA, {"email": "max@example.com"}]),
    "slices/b/slice.yaml": slice_("b", owners=[IDA]),
}


def body(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("#")]


@pytest.mark.parametrize("kind", ["github", "gitlab"])
def test_admins_have_everything_but_requests_and_owners_their_slice(tmp_path: Path, kind: str) -> None:
    repo = folder(tmp_path / "f", fleet(**FILES))
    done = egs("codeowners", "--forge", kind, "--repo", repo)
    assert done.code == 0, done.err
    assert body(done.out) == [
        "* @ada max@example.com",
        "/slices/*/gprs/",
        "/people/",
        "/slices/b/slice.yaml @ida @ada max@example.com",
    ]


def test_gitea_has_patterns_for_the_whole_path_and_no_addresses(tmp_path: Path) -> None:
    repo = folder(tmp_path / "f", fleet(**FILES))
    done = egs("codeowners", "--forge", "gitea", "--repo", repo)
    assert "max@example.com has no account of the forge" in done.err
    rows = [line.rsplit(" @", 1)[0].split(" ") for line in body(done.out)]
    patterns = [re.compile(row[0].replace("\\\\", "\\")) for row in rows]

    def is_reviewed(path: str) -> bool:
        return any(pattern.fullmatch(path) for pattern in patterns)

    for path in (
        "project.yaml",
        "clusters/east.yaml",
        "slices/a/slice.yaml",
        ".gitea/CODEOWNERS",
        "requests/x.yaml",
        "bindings/b.yaml",
        "keys/ci.yaml",
    ):
        assert is_reviewed(path), path
    assert not is_reviewed("slices/a/gprs/train.yaml")
    assert not is_reviewed("people/bo.yaml"), "everybody their own"
    assert body(done.out)[-1] == "slices/b/slice\\\\.yaml @ida @ada"


def test_a_forge_that_knows_no_admin_is_refused(tmp_path: Path) -> None:
    repo = folder(tmp_path / "f", fleet())
    done = egs("codeowners", "--forge", "gitea", "--repo", repo)
    assert done.code == 1
    assert "give forge: {login, id} to the admins" in done.err
    assert egs("codeowners", "--repo", repo).code == 2, "the forge is unknown"


def test_the_rules_are_what_the_check_asks_for(tmp_path: Path) -> None:
    """Whoever makes exactly these calls has nothing lacking."""
    repo = folder(tmp_path / "f", fleet(**FILES))
    github = json.loads(egs("codeowners", "--rules", "--forge", "github", "--repo", repo).out)
    assert [call["path"] for call in github] == ["/repos/OWNER/NAME/rulesets"] * 2
    rows = [Row(rule, "rules") for rule in github[0]["body"]["rules"]]
    assert github_lacks("main", rows, None) == ()
    gitea = json.loads(egs("codeowners", "--rules", "--forge", "gitea", "--repo", repo).out)
    assert gitea_lacks("main", Row(gitea[0]["body"], "rule")) == ()
    gitlab = json.loads(egs("codeowners", "--rules", "--forge", "gitlab", "--repo", repo).out)
    assert [(call["method"], call["body"].get("name")) for call in gitlab] == [
        ("POST", "main"), ("POST", "egs/*"), ("PUT", None),
    ]  # fmt: skip


@pytest.fixture
def forge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[fake.Forge]:
    found = fake.Forge(repository(tmp_path / "r.git", fleet(**FILES)), "github")
    token = tmp_path / "token"
    token.write_text(fake.TOKEN)
    with fake.serve(found) as api:
        for name, value in (
            ("", "github"),
            ("_API", api),
            ("_REPOSITORY", fake.REPOSITORY),
            ("_TOKEN_FILE", token),
        ):
            monkeypatch.setenv(f"EGS_FORGE{name}", str(value))
        yield found


def test_check_says_what_is_not_in_force_until_all_is(forge: fake.Forge) -> None:
    first = egs("codeowners", "--check", "--repo", forge.repo, "-o", "json")
    assert first.code == 1
    assert first.json["lacking"][0] == ".github/CODEOWNERS is missing; `egs codeowners --write` writes it"
    assert "main can be pushed to directly: require pull requests" in first.json["lacking"]
    written = egs(
        "codeowners", "--write", "--push", "--repo", forge.repo, "--author", "Ada <ada@example.com>"
    )
    assert written.code == 0, written.err
    assert git(forge.repo, "show", "main:.github/CODEOWNERS").startswith("# Written by `egs codeowners`")
    calls = json.loads(egs("codeowners", "--rules", "--repo", forge.repo).out)
    assert calls[0]["path"] == f"/repos/{fake.REPOSITORY}/rulesets"
    for branch, call in (("main", calls[0]), ("egs/status", calls[1])):
        forge.protection[branch] = {"rules": call["body"]["rules"]}
    done = egs("codeowners", "--check", "--repo", forge.repo)
    assert (done.code, done.out) == (0, ""), done.out
    assert "are in force" in done.err
    again = egs("codeowners", "--write", "--push", "--repo", forge.repo, "--author", "Ada <ada@example.com>")
    assert (again.code, "says so already" in again.err) == (1, True)


def test_a_change_of_people_makes_it_stale(forge: fake.Forge) -> None:
    author = ("--author", "Ada <ada@example.com>")
    egs("codeowners", "--write", "--push", "--repo", forge.repo, *author)
    added = egs(
        "slice", "members", "add", "b", "dee@example.com", "--owner", "--push", "--repo", forge.repo, *author
    )
    assert added.code == 0, added.err
    lacking = egs("codeowners", "--check", "--repo", forge.repo, "-o", "json").json["lacking"]
    assert lacking[0].startswith(".github/CODEOWNERS differs from the manifests")


def test_in_a_folder_the_file_is_written_and_read_there(tmp_path: Path) -> None:
    repo = folder(tmp_path / "f", fleet(**FILES))
    assert egs("codeowners", "--write", "--forge", "gitlab", "--repo", repo).code == 0
    assert (repo / ".gitlab" / "CODEOWNERS").is_file()
    check = egs("codeowners", "--check", "--forge", "gitlab", "--repo", repo, "-o", "json")
    assert [line for line in check.json["lacking"] if "CODEOWNERS" in line] == []
    assert "the forge was not asked" in check.json["lacking"][0]


def test_a_repository_with_codeowners_is_still_valid(forge: fake.Forge) -> None:
    egs("codeowners", "--write", "--push", "--repo", forge.repo, "--author", "Ada <ada@example.com>")
    assert egs("validate", "--repo", forge.repo, "-o", "json").json["problems"] == []
    assert tip(forge.repo)
